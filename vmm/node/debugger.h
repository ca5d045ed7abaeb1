/* debugger.h - a debugger's requests (MSG_DEBUG) on their way from the run client to CPUs, and their answers (MSG_DEBUG_ANSWER).
 *
 * The debugger itself speaks to the run client (vmm/cli/gdb/gdb_session.h).  Node 0 remembers that there is one: CPUs stay where they are
 * meanwhile, and nothing is saved, since breakpoints stand in the guest's memory.
 */
#ifndef VMM_NODE_DEBUGGER_H
#define VMM_NODE_DEBUGGER_H

#include "vmm/node/node.h"

/* Node 0: a debugger is attached. */
bool debug_holds(void);
/* Node 0, --hold: all CPUs stand still before their first instruction. */
void debug_hold_all(struct node *node);

#endif
