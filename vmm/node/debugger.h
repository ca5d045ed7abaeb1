/* debugger.h - a debugger's requests (MSG_DEBUG) on their way from the run client to CPUs, and
 * their answers (MSG_DEBUG_ANSWER).
 *
 * The debugger itself talks to the run client (vmm/cli/gdb/gdb_session.h).  Node 0 remembers that
 * one is attached: CPUs do not move then, and no snapshot is made, since there are breakpoints in
 * the guest's memory.
 */
#ifndef VMM_NODE_DEBUGGER_H
#define VMM_NODE_DEBUGGER_H

#include "vmm/node/node.h"

/* Node 0: returns whether a debugger is attached. */
bool debug_holds(const struct node *node);
/* Node 0: returns whether every CPU is stopped: by a debugger, or since the machine begins so. */
bool debug_stops_all(const struct node *node);
/* Node 0, --hold: stops all CPUs before their first instruction. */
void debug_hold_all(struct node *node);

#endif
