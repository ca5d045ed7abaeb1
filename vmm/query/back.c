/* back.c - a machine with checkpoints that loses a host goes back to the last one; console and top wait for it, and go on. */
#include "vmm/query/internal.h"

#include <stdio.h>
#include <string.h>
#include "base/log.h"

enum { BACK_MS = 100, BACK_TRIES = 600 };

/* A machine with checkpoints has lost a host: is it there again? Its folder is there as long as it may come. */
static void on_back(evutil_socket_t fd, short events, void *context)
{
	static const struct timeval pause = { 0, BACK_MS * 1000 };
	struct query *q = context;
	struct rundir ignored;
	struct problem p;

	(void)fd, (void)events;
	if (++q->tries == BACK_TRIES || rundir_find(&ignored, q->rundir.name, &p)) {
		query_end(q, 0, "");
		return;
	}
	if (client_connect(&q->client, q->base, q->rundir.path, q->kind)) {
		event_add(q->back, &pause);
		return;
	}
	q->tries = 0;
	q->start = q->live ? look_anew : console_attach_again;
}

bool query_wait_for_machine(struct query *q)
{
	static const struct timeval pause = { 0, BACK_MS * 1000 };

	if (!(q->typed || q->live) || !q->info.checkpoint_ms || q->done)
		return false;
	if (!q->back)
		q->back = evtimer_new(q->base, on_back, q);
	if (!q->back)
		die("no memory");
	if (!q->told)
		dprintf(2, "%s[vmp: a host was lost; the machine goes back to its last checkpoint%s]%s\n", q->raw ? "\r\n" : "",
			q->live ? "" : ", and may repeat itself", q->raw ? "\r" : "");
	q->told = true;
	if (q->again)
		event_del(q->again);
	client_close(&q->client);
	event_add(q->back, &pause);
	return true;
}
