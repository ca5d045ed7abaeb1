/* sampler.c - see sampler.h. */
#include "vmm/cli/watch/sampler.h"

#include <string.h>
#include "base/clock.h"

enum { SEQ_MASK = 0xffffff /* node 0 keeps the client's number in the bits above */ };
static const uint64_t patience_ns = 2000000000;

static void lost(void *context)
{
	struct sampler *s = context;
	char why[sizeof s->client.wrong];

	memcpy(why, s->client.wrong, sizeof why);
	sampler_close(s);
	s->on_lost(s->context, why);
}

static void look_whether_complete(struct sampler *s)
{
	if (!s->busy || !(s->wants_pages ? report_is_complete(&s->now.report)
					 : report_has_stats(&s->now.report)))
		return;
	s->busy = false;
	s->now.at_ns = clock_now_ns();
	s->on_sample(s->context);
}

static void on_hosts(struct sampler *s, const struct message *m)
{
	memcpy(&s->hosts, m->body, sizeof s->hosts);
	if (s->busy) {
		report_keep_hosts(&s->now.report, s->hosts.present);
		look_whether_complete(s);
	} else if (!s->now.at_ns) {
		sampler_ask(s);
	}
}

/* Takes an answer of the present sample. */
static void on_answer(struct sampler *s, const struct message *m,
		      void (*take)(struct report *, const void *, size_t))
{
	struct msg_stats body;

	memcpy(&body, m->body, sizeof body);
	if (!s->busy || body.seq != s->seq)
		return;
	take(&s->now.report, m->body, m->header.bytes);
	look_whether_complete(s);
}

/* Node 0 answers in the order of the requests, so these come before the last of its other
 * answers. */
static void on_notes(struct sampler *s, const struct message *m)
{
	struct msg_move_notes body;

	memcpy(&body, m->body, sizeof body);
	if (s->busy && body.seq == s->seq)
		status_take_notes(&s->now, m->payload, m->payload_bytes);
}

static void on_message(void *context, const struct message *m)
{
	struct sampler *s = context;

	switch (m->header.type) { /* what a query may receive, and this one has asked for */
	case MSG_HOSTS:
		on_hosts(s, m);
		break;
	case MSG_STATS:
		on_answer(s, m, report_on_stats);
		break;
	case MSG_MOVE_NOTES:
		on_notes(s, m);
		break;
	case MSG_PAGES:
		on_answer(s, m, report_on_pages);
		break;
	}
}

int sampler_open(struct sampler *s, struct event_base *base)
{
	int error;

	s->client = (struct client){ .fd = -1,
				     .context = s,
				     .link = LINK_NODE_TO_QUERY,
				     .on_message = on_message,
				     .on_closed = lost };
	s->hosts.present = 0;
	s->busy = false;
	error = client_connect(&s->client, base, s->rundir, CLIENT_QUERY);
	s->open = !error;
	return error;
}

void sampler_ask(struct sampler *s)
{
	uint64_t now_ns = clock_now_ns();
	struct msg_move_notes notes = { .node = 0 };

	if (!s->open || !s->hosts.present || (s->busy && now_ns - s->asked_ns < patience_ns))
		return;
	pageheat_free(&s->now.report.heat);
	s->now = (struct status_look){ .hosts = s->hosts };
	names_read(&s->now.names, s->rundir);
	report_expect(&s->now.report, s->hosts.present);
	s->busy = true;
	s->asked_ns = now_ns;
	s->seq = (s->seq + 1) & SEQ_MASK;
	notes.seq = s->seq;
	client_send(&s->client, MSG_MOVE_NOTES_REQUEST, VNODE_CLI, &notes, sizeof notes, NULL, 0);
	for (uint32_t node = 0; node < MAX_NODES; node++) {
		struct msg_stats ask = { .node = node, .seq = s->seq };

		if (!(s->hosts.present >> node & 1))
			continue;
		client_send(&s->client, MSG_STATS_REQUEST, VNODE_DAEMON(node), &ask, sizeof ask,
			    NULL, 0);
		if (s->wants_pages)
			client_send(&s->client, MSG_PAGES_REQUEST, VNODE_DAEMON(node), &ask,
				    sizeof ask, NULL, 0);
	}
}

void sampler_close(struct sampler *s)
{
	if (s->open)
		client_close(&s->client);
	s->open = s->busy = false;
	s->hosts.present = 0;
}
