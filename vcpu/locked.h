/* locked.h - whether an instruction is a locked one: a read-modify-write with a LOCK prefix, or
 * XCHG with memory, which locks by itself.  Pure.
 *
 * Programs and kernels synchronise by these.  A CPU that misses a page with one is at a lock or a
 * barrier: what it has written to other pages before, it has written for now.
 */
#ifndef VCPU_LOCKED_H
#define VCPU_LOCKED_H

#include "base/types.h"

/* Returns whether the instruction at `code`, of which `bytes` are there, is a locked one.  False in
 * doubt. */
bool locked_insn(const uint8_t *code, unsigned bytes);

#endif
