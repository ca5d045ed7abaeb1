/* query_back.c - waits for a machine that comes back: one with checkpoints that has lost a host, or
 * one whose host 0 is leaving.  `vmp console` and `vmp top` go on then, and `vmp host remove 0`
 * reports that host 0 has gone. */
#include "vmm/cli/query/query_private.h"

#include <stdio.h>
#include <string.h>
#include "base/log.h"

enum { BACK_MS = 100, BACK_TRIES = 600 };

bool query_yields(const struct query *q)
{
	struct machine_info now;
	struct problem p;

	return !rundir_read_info(&q->rundir, &now, &p) && now.yields;
}

bool query_yields_or_has(const struct query *q)
{
	struct machine_info now;
	struct problem p;

	return !rundir_read_info(&q->rundir, &now, &p) &&
	       (now.yields || now.yielded != q->info.yielded);
}

/* The machine is back, and the command goes on: host 0 may leave again. */
static void note_yielded(struct query *q)
{
	struct machine_info now;
	struct problem p;

	if (!rundir_read_info(&q->rundir, &now, &p))
		q->info.yielded = now.yielded;
}

/* Returns whether the machine has left this computer: another host of the cluster is its first host
 * now.  Ends the command then. */
static bool has_gone_elsewhere(struct query *q)
{
	struct machine_info now;
	struct problem p;

	if (rundir_read_info(&q->rundir, &now, &p) || !now.elsewhere[0])
		return false;
	if (q->yields_ns) {
		change_has_gone(q, now.elsewhere);
	} else {
		problem(&p, "the machine goes on on %s", now.elsewhere);
		query_end(q, 0, p.line);
	}
	return true;
}

/* Checks whether the machine is back.  Its run folder exists as long as it may come back. */
static void on_back(evutil_socket_t fd, short events, void *context)
{
	static const struct timeval pause = { 0, BACK_MS * 1000 };
	struct query *q = context;
	struct rundir ignored;
	struct problem p;

	(void)fd, (void)events;
	if (has_gone_elsewhere(q))
		return;
	if (++q->tries == BACK_TRIES || rundir_find(&ignored, q->rundir.name, &p)) {
		query_end(q, q->yields_ns ? EXIT_VMP_FAILURE : 0,
			  q->yields_ns ? "the machine has ended" : "");
		return;
	}
	if (query_yields(q) || client_connect(&q->client, q->base, q->rundir.path, q->kind)) {
		event_add(q->back, &pause);
		return;
	}
	q->tries = 0;
	if (q->live || q->typed)
		note_yielded(q);
	q->start = q->live ? look_anew : q->typed ? console_attach_again : change_has_yielded;
}

bool query_wait_for_machine(struct query *q)
{
	static const struct timeval pause = { 0, BACK_MS * 1000 };
	bool host_0_goes = query_yields_or_has(q);

	if (!(q->typed || q->live || q->yields_ns) ||
	    !(q->info.machine.checkpoint_ms || host_0_goes) || q->done)
		return false;
	if (!q->back)
		q->back = evtimer_new(q->base, on_back, q);
	if (!q->back)
		die("no memory");
	if (!q->told && !host_0_goes)
		dprintf(2, "%s[vmp: a host was lost; the machine goes back to its last "
			"checkpoint%s]%s\n",
			q->raw ? "\r\n" : "", q->live ? "" : ", and may repeat itself",
			q->raw ? "\r" : "");
	q->told = !host_0_goes;
	if (q->again)
		event_del(q->again);
	client_close(&q->client);
	event_add(q->back, &pause);
	return true;
}
