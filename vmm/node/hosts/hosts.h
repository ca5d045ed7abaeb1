/* hosts.h - hosts that come to a machine that runs, and go from it.
 *
 * Node 0 leads (hosts.c, hostcomes.c, hostgoes.c), one change after the other; each daemon does its part (hostpart.c); what shall
 * happen is decided in hostplan.c, which is pure.  Daemons are started and reaped by the `vmp run` or keeper that owns the machine.
 *
 * Host K comes:
 *   1. LAUNCH: the owner starts its daemon, which connects to all that there are, and says NODE_READY.
 *   2. Node 0 sends it MACHINE_START, where each CPU is, and NEWS: where the homes are, and who is there.
 *   3. NEWS to all: from here on it is a part of the machine, and its death the machine's.  Before, the change is undone.
 *   4. Its share of homes is given to it, an interval at a time (dsm/homes.c).
 * Host K goes:
 *   1. NEWS to all: nobody adopts a page there.  Its CPUs move away; if one cannot, all is undone.
 *   2. Its homes are given to the others; NEWS to all where they are.
 *   3. LEAVE: it hands over what it owns (dsm/leave.c), and is EMPTY.
 *   4. FORGET to all others, which take it out of their copysets and send it MARK, the last that they send.  When it has all marks
 *      it sends FAREWELL to each, the last that it sends, and they tell node 0: GONE.  No message is under way then.
 *   5. The owner is told to expect its end, and it ends.
 * Host 0 goes: its devices, and who leads, go over with all the rest: the owner takes a checkpoint behind which nobody goes on, ends
 * all daemons, and loads it on one host less (YIELD; run/yield.c), or another owner does, on another computer (standby/sender.h).
 * Whoever leads then has number 0.
 */
#ifndef VMM_NODE_HOSTS_HOSTS_H
#define VMM_NODE_HOSTS_HOSTS_H

#include "vmm/node/node.h"

/* --- node 0; hostlead.h has what its files share --- */
void hosts_start(struct node *node);
void hosts_forget_client(struct node *node, unsigned client);
void hosts_tell_client(struct node *node, struct conn *conn);
void hosts_tell_clients(struct node *node);
/* What was asked for while the machine was saved, or was to be. */
void hosts_after_snapshot(struct node *node);
bool hosts_under_way(const struct node *node); /* one that waits counts */
bool hosts_one_goes(const struct node *node);  /* or comes; but for host 0, for which the machine is saved */
/* Which: "host 2, which comes". */
void hosts_describe(const struct node *node, char *line, size_t bytes);
/* Bit set: where a CPU may go. */
uint32_t hosts_that_stay(const struct node *node);
/* A daemon that is started, but is no host of the machine yet. */
bool hosts_joins(const struct node *node, unsigned host);
void hosts_on_ready(struct node *node, const struct msg_node_ready *ready);
void hosts_join_failed(struct node *node, unsigned host, const char *line, unsigned line_bytes);
/* The answer to a move that was asked for by MOVE_CLIENT_HOSTS. */
void hosts_on_moved(struct node *node, unsigned cpu, int error, const char *why);
/* A move has ended, whoever asked for it. */
void hosts_after_move(struct node *node);
/* What the daemons answer. */
void hosts_on_step(struct node *node, const struct msg_host *step);
void hosts_on_home_taken(struct node *node, unsigned host, const struct msg_home *home);

/* --- every daemon --- */
void hostpart_start(struct node *node);
void hostpart_on_start(const struct node *node); /* MACHINE_START has come */
/* The connection to a peer is lost. True: it is no part of the machine, which goes on. */
bool hostpart_peer_lost(struct node *node, unsigned peer);

#endif
