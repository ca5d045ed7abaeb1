/* gdb_watch.h - GDB's watchpoints in a processor's four debug registers.  Pure.
 *
 * A register covers 1, 2, 4 or 8 bytes at a multiple of as many, and reports writes, or reads and writes.  What reads alone is
 * not reported by any processor of this family: GDB makes it out of the latter.
 */
#ifndef VMM_CLI_GDB_GDB_WATCH_H
#define VMM_CLI_GDB_GDB_WATCH_H

#include "base/wire.h"

enum { GDB_MAX_WATCHES = DEBUG_WATCHES };

struct gdb_watch { uint32_t bytes /* 0: none */; gva_t gva; bool reads; };

/* What the debug registers must hold for all of them: 0, or -ENOSPC when four are not enough, -EINVAL for one beyond 4 GiB. */
int gdb_watch_plan(const struct gdb_watch watch[GDB_MAX_WATCHES], struct debug_watch *plan);

#endif
