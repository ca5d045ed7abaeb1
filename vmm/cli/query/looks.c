/* looks.c - `vmp status` and `vmp top`: what the hosts have counted, sampled twice, half a second
 * or a second apart. */
#include "vmm/cli/query/query_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "vmm/cli/guest/guestplace.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

enum { PATIENCE_S = 2, LOOK_MS = 500, TOP_MS = 1000 };

/* Takes a sample.  A machine that goes back to a checkpoint may not answer, since its daemons have
 * not connected to each other yet; then `patience` starts another sample. */
static void look_again(struct query *q)
{
	static const struct timeval patience = { PATIENCE_S, 0 };
	static const struct msg_move_notes notes = { .node = 0 };

	if (q->live)
		event_add(q->again, &patience);
	q->before = q->now;
	memset(&q->now, 0, sizeof q->now);
	q->now.hosts = q->hosts;
	names_read(&q->now.names, q->rundir.path);
	if (q->live)
		client_send(&q->client, MSG_MOVE_NOTES_REQUEST, VNODE_CLI, &notes, sizeof notes,
			    NULL, 0);
	report_ask_stats(&q->now.report, &q->client, q->hosts.present);
}

static void on_again(evutil_socket_t fd, short events, void *context)
{
	(void)fd, (void)events;
	look_again(context);
}

static void print_status(FILE *out, struct query *q)
{
	struct machine_info now;
	struct problem p;

	if (!rundir_read_info(&q->rundir, &now, &p))
		q->info = now;
	status_print(out, q->rundir.name, &q->info, &q->before, &q->now, q->o->json);
}

void look_print_status(struct query *q)
{
	print_status(stdout, q);
}

static void print_all(FILE *out, struct query *q, uint32_t columns)
{
	print_status(out, q);
	history_add(&q->history, &q->before, &q->now);
	/* if the language is in UTF-8, the terminal has block characters */
	history_print(out, &q->history, q->now.at_ns, columns, guestplace_language() != NULL);
	history_print_moves(out, &q->now, columns);
}

/* On a terminal, what is printed is cut to its size. */
static void print_live(struct query *q)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	uint32_t columns, rows;

	q->told = false;
	terminal_size(&columns, &rows);
	if (!out)
		die("no memory");
	print_all(out, q, columns);
	if (fclose(out))
		die("no memory");
	if (isatty(1)) {
		printf("\033[H\033[2J");
		history_fit(stdout, text, columns, rows);
	} else {
		printf("%s\n", text);
	}
	free(text);
	if (fflush(stdout))
		query_end(q, EXIT_VMP_FAILURE, "cannot write the answer");
}

void look_check(struct query *q)
{
	static const struct timeval pauses[] = { { 0, LOOK_MS * 1000 }, { TOP_MS / 1000, 0 } };

	if (q->now.at_ns || !report_has_stats(&q->now.report))
		return;
	q->now.at_ns = clock_now_ns();
	if (q->before.at_ns && !q->live)
		query_end(q, 0, "");
	else if (q->before.at_ns)
		print_live(q);
	event_add(q->again, &pauses[q->live && q->before.at_ns]);
}

void look_on_stats(struct query *q, const struct message *m, const struct msg_stats *stats)
{
	(void)stats;
	if (q->done)
		return;
	report_on_stats(&q->now.report, m->body, m->header.bytes);
	look_check(q);
}

void look_on_move_notes(struct query *q, const struct message *m,
			const struct msg_move_notes *notes)
{
	(void)notes;
	if (!q->done && q->live)
		status_take_notes(&q->now, m->payload, m->payload_bytes);
}

void look_start_status(struct query *q)
{
	q->again = evtimer_new(q->base, on_again, q);
	if (!q->again)
		die("no memory");
	look_again(q);
}

void look_start_top(struct query *q)
{
	q->live = q->until_end = true;
	event_del(q->limit);
	look_start_status(q);
}

/* The machine is back from a checkpoint, and all counters start from 0. */
void look_anew(struct query *q)
{
	memset(&q->now, 0, sizeof q->now);
	look_again(q);
}
