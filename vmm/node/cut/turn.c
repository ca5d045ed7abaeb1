/* turn.c - see turn.h. */
#include "vmm/node/cut/turn.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/debugger.h"
#include "vmm/node/hosts/hosts.h"

enum { TELL_AFTER_NS = 2000000000, TELL_S = 1 };

struct asked { unsigned client; uint32_t seq; enum snapshot_mode mode; uint64_t since_ns; };
struct turn {
	unsigned n;
	struct asked wait[MAX_CLIENTS]; /* one for each client, at most */
	struct event *tell;
};

bool turn_is_next(const struct node *node)
{
	return node->turn->n && !freeze_is_led(node) && !hosts_one_goes(node);
}

static const char *why_not(const struct node *node)
{
	if (node->ending || !node->running)
		return node->ending ? "the machine is going down" : "the machine has not started yet";
	return debug_holds() ? "a debugger is attached, whose breakpoints stand in its memory" : NULL;
}

static void refuse(struct node *node, uint32_t seq, const char *why)
{
	const uint32_t nothing_happened = 1;

	freeze_answer(node, seq, SNAPSHOT_REFUSED, nothing_happened, why, (uint32_t)strlen(why));
}

static void take(struct turn *turn, unsigned i)
{
	turn->n--;
	memmove(turn->wait + i, turn->wait + i + 1, (turn->n - i) * sizeof turn->wait[0]);
	if (!turn->n)
		event_del(turn->tell);
}

void turn_next(struct node *node)
{
	struct asked next;

	while (turn_is_next(node) && !moves_one_goes(node)) {
		next = node->turn->wait[0];
		take(node->turn, 0);
		if (why_not(node)) /* since it was asked for */
			refuse(node, next.seq, why_not(node));
		else
			freeze_begin(node, next.client, next.seq, next.mode);
	}
}

static void tell(struct node *node, const struct asked *asked)
{
	char what[64] = "a processor that moves", line[128];

	if (freeze_is_led(node))
		snprintf(what, sizeof what, "the snapshot that is being made");
	else if (hosts_one_goes(node))
		hosts_describe(node, what, sizeof what);
	snprintf(line, sizeof line, "waiting for %s", what);
	freeze_answer(node, asked->seq, SNAPSHOT_WAITS, 0, line, (uint32_t)strlen(line));
}

static void on_tell(evutil_socket_t fd, short what, void *ctx)
{
	static const struct timeval second = { TELL_S, 0 };
	struct node *node = ctx;
	const struct turn *turn = node->turn;

	(void)fd, (void)what;
	for (unsigned i = 0; i < turn->n; i++)
		if (node_now_ns() - turn->wait[i].since_ns > TELL_AFTER_NS)
			tell(node, &turn->wait[i]);
	event_add(turn->tell, &second);
}

/* Its place, or turn->n. */
static unsigned find(const struct turn *turn, unsigned client)
{
	unsigned i = 0;

	while (i < turn->n && turn->wait[i].client != client)
		i++;
	return i;
}

void turn_ask(struct node *node, unsigned client, uint32_t seq, enum snapshot_mode mode)
{
	static const struct timeval second = { TELL_S, 0 };
	struct turn *turn = node->turn;

	if (why_not(node))
		return refuse(node, seq, why_not(node));
	if (find(turn, client) < turn->n || turn->n == MAX_CLIENTS)
		return refuse(node, seq, "this client waits for a snapshot already");
	if (!turn->n)
		event_add(turn->tell, &second);
	turn->wait[turn->n++] = (struct asked){ client, seq, mode, node_now_ns() };
	turn_next(node);
}

/* What waited behind its snapshot goes on. */
void turn_forget_client(struct node *node, unsigned client)
{
	unsigned i = find(node->turn, client);

	if (i == node->turn->n)
		return;
	take(node->turn, i);
	moves_after_freeze(node);
	hosts_after_snapshot(node);
}

void turn_start(struct node *node)
{
	node->turn = calloc(1, sizeof *node->turn);
	if (!node->turn)
		die("out of memory");
	node->turn->tell = evtimer_new(node->base, on_tell, node);
	if (!node->turn->tell)
		die("no memory for events");
}
