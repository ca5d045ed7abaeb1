/* turn.c - see turn.h. */
#include "vmm/node/cut/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "vmm/node/agenda.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/hosts/hosts.h"

enum { TELL_AFTER_NS = 2000000000, TELL_S = 1 };

struct asked { unsigned client; uint32_t seq; enum snapshot_mode mode; uint64_t since_ns; };
struct turn {
	unsigned n;
	struct asked wait[MAX_CLIENTS]; /* at most one for each client */
	struct loop_event *tell;
};

bool turn_waits(const struct node *node)
{
	return node->turn->n;
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
		loop_disarm(turn->tell);
}

/* Begins the first snapshot that may begin.  A request that has become impossible meanwhile is
 * refused. */
void turn_begin(struct node *node)
{
	const char *why;
	struct asked next;

	while (node->turn->n) {
		why = agenda_why_not(node, AGENDA_SNAPSHOT);
		if (!why && !agenda_may(node, AGENDA_SNAPSHOT))
			return;
		next = node->turn->wait[0];
		take(node->turn, 0);
		if (why)
			refuse(node, next.seq, why);
		else
			freeze_begin(node, next.client, next.seq, next.mode);
	}
}

static void tell(struct node *node, const struct asked *asked)
{
	char what[64] = "the snapshot that is being made", line[128];
	enum agenda_condition because = agenda_waits_for(node, AGENDA_SNAPSHOT);

	if (because == AGENDA_MOVED)
		snprintf(what, sizeof what, "a processor that moves");
	else if (because == AGENDA_CHANGED)
		hosts_describe(node, what, sizeof what);
	snprintf(line, sizeof line, "waiting for %s", what);
	freeze_answer(node, asked->seq, SNAPSHOT_WAITS, 0, line, (uint32_t)strlen(line));
}

static void on_tell(void *ctx)
{
	struct node *node = ctx;
	const struct turn *turn = node->turn;

	for (unsigned i = 0; i < turn->n; i++)
		if (node_now_ns(node) - turn->wait[i].since_ns > TELL_AFTER_NS)
			tell(node, &turn->wait[i]);
	loop_after(turn->tell, TELL_S * (uint64_t)LOOP_S);
}

/* Returns the client's index, or turn->n. */
static unsigned find(const struct turn *turn, unsigned client)
{
	unsigned i = 0;

	while (i < turn->n && turn->wait[i].client != client)
		i++;
	return i;
}

void turn_ask(struct node *node, unsigned client, uint32_t seq, enum snapshot_mode mode)
{
	const char *why = agenda_why_not(node, AGENDA_SNAPSHOT);
	struct turn *turn = node->turn;

	if (why)
		return refuse(node, seq, why);
	if (find(turn, client) < turn->n || turn->n == MAX_CLIENTS)
		return refuse(node, seq, "this client waits for a snapshot already");
	if (!turn->n)
		loop_after(turn->tell, TELL_S * (uint64_t)LOOP_S);
	turn->wait[turn->n++] = (struct asked){ client, seq, mode, node_now_ns(node) };
	turn_begin(node);
}

/* Removes the client's request; what waited behind it goes on. */
void turn_forget_client(struct node *node, unsigned client)
{
	unsigned i = find(node->turn, client);

	if (i == node->turn->n)
		return;
	take(node->turn, i);
	agenda_done(node, AGENDA_SNAPSHOT_NEXT);
}

void turn_start(struct node *node)
{
	node->turn = calloc(1, sizeof *node->turn);
	if (!node->turn)
		die("out of memory");
	node->turn->tell = loop_timer(&node->loop, on_tell, node);
	if (!node->turn->tell)
		die("no memory for events");
}
