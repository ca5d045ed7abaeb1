/* pause.h - whether an instruction is PAUSE, which stands in loops that wait.  Pure. */
#ifndef VCPU_PAUSE_H
#define VCPU_PAUSE_H

#include "base/types.h"

enum { PAUSE_BYTES = 2 };

/* Returns whether a PAUSE is at `code`, of which `bytes` are there. */
static inline bool pause_insn(const uint8_t *code, unsigned bytes)
{
	return bytes >= PAUSE_BYTES && code[0] == 0xf3 && code[1] == 0x90;
}

#endif
