/* exec.c - `vmp exec`: a command in a running machine, with this process's three streams or
 * terminal, and its exit status.  The frames are those of base/agent_abi.h; the other end is
 * guest/guest_agent.c.
 *
 * The machine does not wait for this process, nor the other way round: a stream flows as far as its
 * reader has room (vmm/cli/streams.h).  When the connection is lost, the guest's agent hangs the
 * command up.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/agent_abi.h"
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/query/query_private.h"
#include "vmm/cli/streams.h"

enum { ANSWER_S = 60, SIGNALS_AT_ONCE = 3 };

static struct exec {
	struct query *q;
	uint32_t token;
	char *spec;
	size_t spec_bytes, spec_sent;
	uint32_t room; /* before the specification is sent: bytes that the agent takes */
	bool sent, started, ended;
	uint32_t status, interrupts;
	struct stream_in in;
	struct stream_out out, err;
} exec;

/* --- what shall run -------------------------------------------------------------------- */

static void put_string(FILE *to, const char *text) { fwrite(text, 1, strlen(text) + 1, to); }

/* What shall run, as base/agent_abi.h says; `term`: the terminal's kind, or NULL.  The caller frees
 * it. */
static char *make_spec(const struct options *o, const char *term, size_t *bytes)
{
	char *text = NULL, count[16], variable[80];
	FILE *to = open_memstream(&text, bytes);
	bool set_term = o->tty && term && strlen(term) < sizeof variable - 8;

	if (!to)
		die("no memory");
	snprintf(count, sizeof count, "%u", o->n_env + set_term);
	put_string(to, o->user ? o->user : "");
	put_string(to, o->workdir ? o->workdir : "");
	put_string(to, count);
	if (set_term) { /* first: --env TERM=... counts more */
		snprintf(variable, sizeof variable, "TERM=%s", term);
		put_string(to, variable);
	}
	for (uint32_t i = 0; i < o->n_env; i++)
		put_string(to, o->env[i]);
	for (char **word = o->command; *word; word++)
		put_string(to, *word);
	if (fclose(to))
		die("no memory");
	return text;
}

/* --- frames to the agent --------------------------------------------------------------- */

static void send_frame(enum agent_kind kind, uint32_t value, const void *bytes, size_t n)
{
	struct msg_exec body = { .token = exec.token, .kind = kind, .value = value };

	client_send(&exec.q->client, MSG_EXEC, VNODE_IOSRV, &body, sizeof body, bytes, n);
}

static void send_input(void *context, const void *bytes, size_t n, bool eof)
{
	const char *from = bytes;

	(void)context;
	for (size_t at = 0, part; at < n; at += part) {
		part = n - at < AGENT_PAYLOAD ? n - at : AGENT_PAYLOAD;
		send_frame(AGENT_INPUT, 0, from + at, part);
	}
	if (eof)
		send_frame(AGENT_INPUT, 0, NULL, 0);
}

static void send_room(void *context, uint32_t stream, uint32_t bytes)
{
	(void)context;
	if (!exec.ended)
		send_frame(stream == 1 ? AGENT_ROOM_OUT : AGENT_ROOM_ERR, bytes, NULL, 0);
}

static void send_gone(void *context, uint32_t stream)
{
	(void)context;
	if (!exec.ended)
		send_frame(stream == 1 ? AGENT_GONE_OUT : AGENT_GONE_ERR, 0, NULL, 0);
}

static const struct stream_wire wire = { send_input, send_room, send_gone };

/* The next parts of the specification, as far as there is room; behind it, standard input flows. */
static void send_spec(void)
{
	while (exec.room && exec.spec_sent < exec.spec_bytes) {
		size_t n = exec.spec_bytes - exec.spec_sent;

		if (n > exec.room)
			n = exec.room;
		if (n > AGENT_PAYLOAD)
			n = AGENT_PAYLOAD;
		send_frame(AGENT_SPEC, 0, exec.spec + exec.spec_sent, n);
		exec.spec_sent += n;
		exec.room -= (uint32_t)n;
	}
	if (exec.spec_sent < exec.spec_bytes || exec.sent)
		return;
	exec.sent = true;
	send_frame(AGENT_START, exec.q->o->tty, NULL, 0);
	if (stream_in_start(&exec.in, &exec.q->client, 0, exec.room))
		die("no memory");
}

static void on_window_changed(evutil_socket_t fd, short events, void *context)
{
	uint32_t columns, rows;

	(void)fd, (void)events, (void)context;
	terminal_size(&columns, &rows);
	if (columns)
		send_frame(AGENT_RESIZE, columns << 16 | (rows & 0xffff), NULL, 0);
}

/* --- the end --------------------------------------------------------------------------- */

static void finish_if_written(void *context)
{
	(void)context;
	if (exec.ended && stream_out_drained(&exec.out) && stream_out_drained(&exec.err))
		query_end(exec.q, (int)(exec.status & 0xff), "");
}

static void on_write_failed(void *context, const char *name, int error)
{
	char line[120];

	(void)context;
	snprintf(line, sizeof line, "cannot write standard %s: %s", name, strerror(error));
	query_end(exec.q, EXIT_VMP_FAILURE, line);
}

static void on_no_answer(evutil_socket_t fd, short events, void *context)
{
	(void)fd, (void)events, (void)context;
	query_end(exec.q, EXIT_VMP_FAILURE,
		  "the guest does not answer: it is stopped by a debugger, has no time, "
		  "or runs another --image, which has no agent");
}

/* Ctrl-C is the command's. One that does not end by it is left alone at the third. */
bool exec_signal(int signal_number)
{
	if (!exec.started || exec.ended || signal_number == SIGHUP ||
	    (signal_number == SIGINT && ++exec.interrupts == SIGNALS_AT_ONCE))
		return false;
	send_frame(AGENT_SIGNAL, (uint32_t)signal_number, NULL, 0);
	return true;
}

const char *exec_lost(bool goes_back)
{
	return goes_back ? "the machine goes back to a checkpoint, or to other hosts, without this "
			   "command: type it again" :
			   "the machine has ended";
}

/* --- frames from the agent ------------------------------------------------------------- */

static void take_output(struct stream_out *out, const struct message *m)
{
	if (!stream_out_take(out, m->payload, m->payload_bytes))
		query_end(exec.q, EXIT_VMP_FAILURE,
			  "the guest sent more output than there is room for");
}

static void on_taken(uint32_t bytes)
{
	if (exec.sent) {
		stream_in_room(&exec.in, bytes);
		return;
	}
	exec.room += bytes < AGENT_IN_WINDOW - exec.room ? bytes : AGENT_IN_WINDOW - exec.room;
	send_spec();
}

void exec_on_frame(struct query *q, const struct message *m, const struct msg_exec *frame)
{
	char line[200];

	if (q->done || exec.q != q || frame->token != exec.token)
		return;
	switch (frame->kind) {
	case AGENT_OUTPUT: take_output(&exec.out, m); return;
	case AGENT_ERROR: take_output(&exec.err, m); return;
	case AGENT_TAKEN: on_taken(frame->value); return;
	case AGENT_STARTED:
		exec.started = true;
		event_del(q->limit);
		return;
	case AGENT_EXIT:
		exec.ended = true;
		exec.status = frame->value;
		event_del(q->limit);
		finish_if_written(NULL);
		return;
	case AGENT_REFUSED:
		snprintf(line, sizeof line, "%.*s", (int)m->payload_bytes,
			 (const char *)m->payload);
		query_end(q, EXIT_VMP_FAILURE, line);
		return;
	}
}

/* --- the beginning --------------------------------------------------------------------- */

static void start_output(struct stream_out *out, uint32_t stream, int fd)
{
	if (stream_out_start(out, &exec.q->client, stream, fd))
		die("no memory");
	out->wire = &wire;
	out->on_drained = finish_if_written;
	out->on_failed = on_write_failed;
}

void exec_start(struct query *q)
{
	static const struct timeval limit = { ANSWER_S, 0 };

	exec = (struct exec){ .q = q, .token = (uint32_t)getpid(), .room = AGENT_IN_WINDOW,
			      .in = { .fd = 0, .wire = &wire } };
	exec.spec = make_spec(q->o, getenv("TERM"), &exec.spec_bytes);
	event_free(q->limit);
	q->limit = evtimer_new(q->base, on_no_answer, q);
	if (!q->limit || event_add(q->limit, &limit))
		die("no memory");
	start_output(&exec.out, 1, 1);
	start_output(&exec.err, 2, 2);
	if (q->o->tty) {
		q->window = evsignal_new(q->base, SIGWINCH, on_window_changed, q);
		if (!q->window || event_add(q->window, NULL))
			die("no memory");
		q->raw = terminal_raw();
		on_window_changed(0, 0, q);
	} else {
		signal(SIGTTIN, SIG_IGN); /* in the background of a shell: input waits */
	}
	send_spec();
}

void exec_stop(void)
{
	if (!exec.q)
		return;
	stream_in_free(&exec.in);
	stream_out_stop(&exec.out);
	stream_out_stop(&exec.err);
	free(exec.spec);
	exec.spec = NULL;
}
