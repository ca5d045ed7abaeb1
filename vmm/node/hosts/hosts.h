/* hosts.h - hosts that are added to a running machine, and removed from it.
 *
 * Node 0 leads (hosts.c, hostcomes.c, hostgoes.c), one change after the other.  Each daemon does
 * its part (hostpart.c).  The decisions are in hostplan.c, which is pure.  Daemons are started and
 * reaped by the `vmp run` or keeper that owns the machine.
 *
 * Host K is added:
 *   1. LAUNCH: the owner starts its daemon, which connects to all others and sends NODE_READY.
 *   2. Node 0 sends it MACHINE_START, where each CPU is, and NEWS: where the homes are, and which
 *      hosts there are.
 *   3. NEWS to all: from here on K is a part of the machine, and its death ends the machine. Before
 *      that, the change can be undone.
 *   4. Its share of homes is given to it, an interval at a time (dsm/homes.c).
 * Host K is removed:
 *   1. NEWS to all: no page becomes owned there any more. Its CPUs move away; if one cannot, the
 *      change is undone.
 *   2. Its homes are given to the others; NEWS to all says where they are.
 *   3. LEAVE: K hands over what it owns (dsm/leave.c), and is EMPTY.
 *   4. FORGET to all others. They remove K from their copysets and send it MARK, their last message
 *      to it. When K has all marks it sends FAREWELL to each, its last message, and they tell node
 *      0: GONE. Then no message is in flight.
 *   5. The owner is told to expect K's end, and K ends.
 * Host 0 leaves: its devices and the leadership must move too.  The owner takes a checkpoint after
 * which the machine does not go on, ends all daemons, and loads it on one host less (YIELD;
 * run/yield.c); or another owner does so on another computer (standby/sender.h).  The host that
 * leads then has number 0.
 */
#ifndef VMM_NODE_HOSTS_HOSTS_H
#define VMM_NODE_HOSTS_HOSTS_H

#include "vmm/node/agenda.h"
#include "vmm/node/node.h"

/* ---- node 0; hostlead.h has what its files share ---- */
void hosts_start(struct node *node);
/* This daemon knows from now on where the homes are at the start. */
void hosts_on_homes(struct node *node);
void hosts_forget_client(struct node *node, unsigned client);
void hosts_tell_client(struct node *node, struct conn *conn);
void hosts_tell_clients(struct node *node);
/* Begins the next change, if the agenda allows this operation: CHANGE or TURN. */
void hosts_begin(struct node *node, enum agenda_operation operation);
bool hosts_under_way(const struct node *node); /* a change that waits counts */
/* returns whether a change is being made, other than the removal of host 0, which makes a
 * snapshot */
bool hosts_one_goes(const struct node *node);
bool hosts_host_0_goes(const struct node *node);
/* Writes a description of the host that is changed: "host 2, which comes". */
void hosts_describe(const struct node *node, char *line, size_t bytes);
/* Bit set of hosts to which a CPU may move. */
uint32_t hosts_that_stay(const struct node *node);
/* Returns whether this daemon was started but is no host of the machine yet. */
bool hosts_joins(const struct node *node, unsigned host);
void hosts_on_ready(struct node *node, const struct msg_node_ready *ready);
void hosts_join_failed(struct node *node, unsigned host, const char *line, unsigned line_bytes);
/* Takes the answer to a move that MOVE_CLIENT_HOSTS asked for. */
void hosts_on_moved(struct node *node, unsigned cpu, int error, const char *why);
/* Called at the end of every move. */
void hosts_after_move(struct node *node);
/* Answers of the daemons. */
void hosts_on_step(struct node *node, const struct msg_host *step);
void hosts_on_home_taken(struct node *node, unsigned host, const struct msg_home *home);

/* ---- every daemon ---- */
void hostpart_start(struct node *node);
void hostpart_on_start(const struct node *node); /* MACHINE_START has arrived */
/* The connection to a peer is lost.  Returns true if the peer is no part of the machine, which goes
 * on. */
bool hostpart_peer_lost(struct node *node, unsigned peer);

#endif
