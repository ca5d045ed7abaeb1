/* breakpoint.h - the table of GDB's breakpoints.  Pure.
 *
 * Each breakpoint is an int3 in the guest's memory.  Its physical address identifies it, so that it
 * is the same one for every CPU and every host.  Where a breakpoint stands, GDB reads and writes
 * the byte that the guest has there.
 */
#ifndef VMM_CLI_GDB_BREAKPOINT_H
#define VMM_CLI_GDB_BREAKPOINT_H

#include "base/types.h"

enum { GDB_MAX_BREAKPOINTS = 256, GDB_INT3 = 0xcc };

struct gdb_breakpoint { bool used; gva_t gva; gpa_t gpa; uint8_t original; };

/* `all` has GDB_MAX_BREAKPOINTS entries.  The first three functions return NULL if there is
 * none. */
struct gdb_breakpoint *gdb_breakpoint_at(struct gdb_breakpoint *all, gva_t gva);
/* Returns one of the breakpoints at a physical address; several linear addresses may lead there. */
struct gdb_breakpoint *gdb_breakpoint_in_memory(struct gdb_breakpoint *all, gpa_t gpa);
struct gdb_breakpoint *gdb_breakpoint_free(struct gdb_breakpoint *all);

/* Replaces each int3 in bytes that were read at gpa by the guest's byte. */
void gdb_hide_breakpoints(const struct gdb_breakpoint *all, gpa_t gpa, uint8_t *bytes, size_t n);
/* Prepares bytes to be written at gpa: each breakpoint keeps its int3 and remembers the new
 * byte. */
void gdb_keep_breakpoints(struct gdb_breakpoint *all, gpa_t gpa, uint8_t *bytes, size_t n);

#endif
