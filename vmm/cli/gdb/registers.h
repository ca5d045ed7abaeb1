/* registers.h - a CPU's registers in GDB's form: their description, and their text.  Pure.
 *
 * GDB numbers registers by their order in struct debug_registers.
 */
#ifndef VMM_CLI_GDB_REGISTERS_H
#define VMM_CLI_GDB_REGISTERS_H

#include "base/wire.h"

enum { GDB_REGISTERS_TEXT = 2 * sizeof(struct debug_registers) + 1 };

extern const char gdb_target_xml[];
extern const size_t gdb_target_xml_bytes;

/* Write all registers, or one, as hex with a NUL; `text` has room for GDB_REGISTERS_TEXT.
 * gdb_register_text() returns 0, or -EINVAL if there is no such register. */
void gdb_registers_text(const struct debug_registers *r, char *text);
int gdb_register_text(const struct debug_registers *r, uint32_t number, char *text);

/* Read hex into the registers that a debugger may change: the first ten, and those with which FPU
 * and SSE compute.  Selectors and system registers are the guest's to change; a text for all
 * registers may contain them, and they are ignored.  Return 0 or -EINVAL. */
int gdb_registers_set(struct debug_registers *r, const char *text);
int gdb_register_set(struct debug_registers *r, uint32_t number, const char *text);

#endif
