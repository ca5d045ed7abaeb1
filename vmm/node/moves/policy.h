/* policy.h - where CPUs run, by policy (placement.h decides). Node 0, but for what each host is asked. */
#ifndef VMM_NODE_MOVES_POLICY_H
#define VMM_NODE_MOVES_POLICY_H

#include "vmm/node/node.h"

void policy_start(struct node *node);
enum policy policy_now(void);
void policy_forget_client(unsigned client);
/* The answer to a move that was asked for by MOVE_CLIENT_POLICY. */
void policy_on_moved(struct node *node, unsigned cpu, int error, const char *why);
void policy_host_came(void);

#endif
