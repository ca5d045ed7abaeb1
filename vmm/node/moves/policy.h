/* policy.h - where CPUs run, by policy (placement.h decides).  All on node 0, except for each
 * host's samples. */
#ifndef VMM_NODE_MOVES_POLICY_H
#define VMM_NODE_MOVES_POLICY_H

#include "vmm/node/node.h"

void policy_start(struct node *node);
enum policy policy_now(const struct node *node);
void policy_forget_client(struct node *node, unsigned client);
/* Takes the answer to a move that MOVE_CLIENT_POLICY asked for. */
void policy_on_moved(struct node *node, unsigned cpu, int error, const char *why);
void policy_host_came(struct node *node);
/* Every host: a CPU here has requested a page. */
void policy_on_want(struct node *node);
/* Every host: tasks wait for a CPU here, as its guest says. */
void policy_on_crowded(struct node *node, unsigned cpu);

#endif
