/* gdb_watch.h - GDB's watchpoints in a processor's four debug registers.  Pure.
 *
 * A register covers 1, 2, 4 or 8 bytes, aligned to their size.  It reports writes, or reads and
 * writes.  No processor of this family reports reads alone; GDB derives them from reads and writes.
 */
#ifndef VMM_CLI_GDB_GDB_WATCH_H
#define VMM_CLI_GDB_GDB_WATCH_H

#include "base/wire.h"

enum { GDB_MAX_WATCHES = DEBUG_WATCHES };

struct gdb_watch { uint32_t bytes /* 0: none */; gva_t gva; bool reads; };

/* Computes what the debug registers must hold for all watchpoints.  Returns 0, -ENOSPC if four are
 * not enough, or -EINVAL for a range that ends beyond 4 GiB. */
int gdb_watch_plan(const struct gdb_watch watch[GDB_MAX_WATCHES], struct debug_watch *plan);

#endif
