/* clock.c - see clock.h. */
#include "vmm/cluster/clock.h"

#include <stdlib.h>
#include <string.h>
#include "base/log.h"

enum { ANSWERS = 24 };

struct clock_sync {
	struct clock_guess guess;
	bool asked;
};

static void ask(struct node *node)
{
	struct msg_ping ping = { .sent_ns = node_now_ns() };

	net_send(node->net, VNODE_DAEMON(0), MSG_PING, &ping, sizeof ping, NULL, 0);
}

static void on_ping(void *ctx, const struct msg_header *header, const void *body)
{
	struct node *node = ctx;
	struct msg_ping ping;

	memcpy(&ping, body, sizeof ping);
	ping.answered_ns = node_now_ns();
	net_send(node->net, VNODE_DAEMON(header->from_node), MSG_PONG, &ping, sizeof ping, NULL, 0);
}

static void on_pong(void *ctx, const struct msg_header *header, const void *body)
{
	struct node *node = ctx;
	struct clock_guess *guess = &node->clock->guess;
	struct msg_ping pong;

	(void)header;
	memcpy(&pong, body, sizeof pong);
	if (guess->answers >= ANSWERS)
		return;
	clock_guess_add(guess, pong.sent_ns, pong.answered_ns, node_now_ns());
	if (guess->answers < ANSWERS) {
		ask(node);
		return;
	}
	log_info("node 0's clock is %lld us ahead; an answer takes %llu us", (long long)guess->ahead_ns / 1000,
		 (unsigned long long)guess->took_ns / 1000);
	node_check_ready(node);
}

void clock_start(struct node *node)
{
	if (!node->o.cluster)
		return;
	node->clock = calloc(1, sizeof *node->clock);
	if (!node->clock)
		die("out of memory");
	net_on(node->net, MSG_PING, on_ping);
	net_on(node->net, MSG_PONG, on_pong);
}

bool clock_known(struct node *node)
{
	if (!node->clock || node->o.node == 0 || node->clock->guess.answers >= ANSWERS)
		return true;
	if (!node->clock->asked)
		ask(node);
	node->clock->asked = true;
	return false;
}

uint64_t clock_here(const struct node *node, uint64_t node0_ns)
{
	return node->clock ? node0_ns - (uint64_t)node->clock->guess.ahead_ns : node0_ns;
}
