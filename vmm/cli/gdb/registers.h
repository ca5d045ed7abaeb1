/* registers.h - a CPU's registers as GDB has them: what it is told of them, and their text.  Pure.
 *
 * GDB numbers them as they stand in struct debug_registers.
 */
#ifndef VMM_CLI_GDB_REGISTERS_H
#define VMM_CLI_GDB_REGISTERS_H

#include "base/wire.h"

enum { GDB_REGISTERS_TEXT = 2 * sizeof(struct debug_registers) + 1 };

extern const char gdb_target_xml[];
extern const size_t gdb_target_xml_bytes;

/* All, or one: hex and a NUL in `text` of GDB_REGISTERS_TEXT. 0, or -EINVAL: there is no such register. */
void gdb_registers_text(const struct debug_registers *r, char *text);
int gdb_register_text(const struct debug_registers *r, uint32_t number, char *text);

/* Hex into the registers that may change: the first ten, and what the FPU and SSE compute with. A CPU's selectors, and what
 * stands behind, are the guest's to change. Of a text for all, the others are passed over. 0, or -EINVAL. */
int gdb_registers_set(struct debug_registers *r, const char *text);
int gdb_register_set(struct debug_registers *r, uint32_t number, const char *text);

#endif
