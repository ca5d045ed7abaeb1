/* breakpoint.h - the table of GDB's breakpoints.  Pure.
 *
 * Each is an int3 in the guest's memory, known by its physical address, so that it is the same one for every CPU and every host.
 * What GDB reads and writes where one stands is what the guest would have there.
 */
#ifndef VMM_CLI_GDB_BREAKPOINT_H
#define VMM_CLI_GDB_BREAKPOINT_H

#include "base/types.h"

enum { GDB_MAX_BREAKPOINTS = 256, GDB_INT3 = 0xcc };

struct gdb_breakpoint { bool used; gva_t gva; gpa_t gpa; uint8_t original; };

/* `all` has GDB_MAX_BREAKPOINTS entries. The first three: NULL if there is none. */
struct gdb_breakpoint *gdb_breakpoint_at(struct gdb_breakpoint *all, gva_t gva);
/* One of those at a physical address; several linear ones may lead there. */
struct gdb_breakpoint *gdb_breakpoint_in_memory(struct gdb_breakpoint *all, gpa_t gpa);
struct gdb_breakpoint *gdb_breakpoint_free(struct gdb_breakpoint *all);

/* What was read at gpa as the guest has it. */
void gdb_hide_breakpoints(const struct gdb_breakpoint *all, gpa_t gpa, uint8_t *bytes, size_t n);
/* What is to be written at gpa: breakpoints stay, and remember it. */
void gdb_keep_breakpoints(struct gdb_breakpoint *all, gpa_t gpa, uint8_t *bytes, size_t n);

#endif
