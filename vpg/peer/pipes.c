/* pipes.c - see pipes.h. */
#include "vpg/peer/pipes.h"

#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>
#include "vpg/peer/jobs.h"

enum { EARLY_MAX = 1024, CREDIT_STEP = VPG_WINDOW / 4 };

struct pipe_end {
	struct pipe_end *next;
	struct daemon *d;
	uint64_t id, job;
	struct tunnel *via;		/* NULL: an attached pipe that no SPAWN has named yet */
	bool writes;			/* this end sends data */
	struct shell *shell;		/* or NULL */
	struct stage *owner;		/* or NULL */
	int fd;
	struct event *ready;		/* of fd; NULL: a shell has the end, and gets its frames */
	struct evbuffer *pending;	/* reader: what the pipe has no room for */
	uint64_t credit;		/* writer: may be sent; reader: given, and not used yet */
	uint64_t owed;			/* reader: written, and not given as credit again yet */
	bool ended;			/* reader: the stream has ended */
};

/* What the other end has sent before this end existed. */
struct early { struct early *next; struct tunnel *via; uint64_t id, credit; bool broken; };

static struct pipe_end *ends;
static struct early *earlies;
static unsigned n_early;

/* ---- what comes too early ---- */

static void note_early(struct tunnel *t, uint64_t id, uint64_t credit, bool broken)
{
	struct early *e;

	for (e = earlies; e; e = e->next)
		if (e->via == t && e->id == id)
			break;
	if (!e && n_early < EARLY_MAX) {
		e = calloc(1, sizeof *e);
		if (!e)
			return;
		*e = (struct early){ .next = earlies, .via = t, .id = id };
		earlies = e;
		n_early++;
	}
	if (e) {
		e->credit += credit;
		e->broken |= broken;
	}
}

static struct early take_early(const struct tunnel *t, uint64_t id)
{
	struct early found = { 0 };

	for (struct early **at = &earlies, *e; (e = *at); at = &e->next)
		if (e->via == t && e->id == id) {
			found = *e;
			*at = e->next;
			free(e);
			n_early--;
			break;
		}
	return found;
}

static void forget_early(const struct tunnel *t)
{
	for (struct early **at = &earlies, *e; (e = *at);) {
		if (e->via != t) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		free(e);
		n_early--;
	}
}

/* ---- ends ---- */

static void end_free(struct pipe_end *p)
{
	for (struct pipe_end **at = &ends; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	if (p->ready)
		event_free(p->ready);
	if (p->fd >= 0)
		close(p->fd);
	if (p->pending)
		evbuffer_free(p->pending);
	free(p);
}

static void say_number(struct pipe_end *p, enum vpg_type type)
{
	struct vpg_STREAM_END m = { p->id };

	tunnel_send(p->via, type, &m);
}

static void give_credit(struct pipe_end *p, uint64_t bytes)
{
	struct vpg_CREDIT m = { p->id, bytes };

	p->credit += bytes;
	tunnel_send(p->via, VPG_CREDIT, &m);
}

/* Frees a reader's end.  A shell that has attached it must know when. */
static void reader_free(struct pipe_end *p)
{
	struct vpg_STREAM_END m = { p->id };

	if (p->shell)
		shell_say(p->shell, VPG_STREAM_END, &m);
	end_free(p);
}

/* Sends what the command has written, as far as the credit allows. */
static void send_some(struct pipe_end *p)
{
	static unsigned char frame[VPG_DATA_HEAD + VPG_CHUNK];

	for (int round = 0; round < 4 && p->credit; round++) {
		size_t want = p->credit < VPG_CHUNK ? p->credit : VPG_CHUNK;
		ssize_t n = read(p->fd, frame + VPG_DATA_HEAD, want);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) {
			say_number(p, VPG_STREAM_END);
			end_free(p);
			return;
		}
		message_data_head(frame, p->id, (size_t)n);
		p->credit -= (size_t)n;
		tunnel_send_frame(p->via, frame, VPG_DATA_HEAD + (size_t)n);
	}
	tunnel_flush(p->via);
	if (p->credit)
		event_add(p->ready, NULL);
}

/* Writes the data that have come, as far as the command reads them. */
static void write_some(struct pipe_end *p)
{
	while (evbuffer_get_length(p->pending)) {
		int n = evbuffer_write(p->pending, p->fd);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			event_add(p->ready, NULL);
			break;
		}
		if (n <= 0) {
			say_number(p, VPG_STREAM_BREAK);
			reader_free(p);
			return;
		}
		p->owed += (uint64_t)n;
	}
	if (p->ended && !evbuffer_get_length(p->pending)) {
		reader_free(p);
		return;
	}
	if (p->owed >= CREDIT_STEP && !p->ended) {
		give_credit(p, p->owed);
		p->owed = 0;
	}
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct pipe_end *p = arg;

	(void)fd, (void)what;
	if (p->writes)
		send_some(p);
	else
		write_some(p);
}

static struct pipe_end *end_new(struct daemon *d, uint64_t id, struct tunnel *via, bool writes)
{
	struct pipe_end *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	*p = (struct pipe_end){ .next = ends, .d = d, .id = id, .via = via, .writes = writes,
				.fd = -1 };
	ends = p;
	return p;
}

/* Begins to read or write p->fd. */
static void begin(struct pipe_end *p)
{
	struct early early;

	p->ready = event_new(p->d->base, p->fd, p->writes ? EV_READ : EV_WRITE, on_ready, p);
	p->pending = p->writes ? NULL : evbuffer_new();
	if (!p->ready || (!p->writes && !p->pending)) {
		end_free(p);
		return;
	}
	if (!p->writes) {
		give_credit(p, VPG_WINDOW);
		return;
	}
	early = take_early(p->via, p->id);
	p->credit = early.credit;
	if (early.broken) {	/* the command gets SIGPIPE when it writes */
		close(p->fd);
		p->fd = -1;
	} else if (p->credit) {
		event_add(p->ready, NULL);
	}
}

void pipe_open(struct daemon *d, uint64_t id, struct tunnel *via, bool writes, int fd,
	       struct stage *owner)
{
	struct pipe_end *p = end_new(d, id, via, writes);

	if (!p) {
		close(fd);
		return;
	}
	p->fd = fd;
	p->owner = owner;
	begin(p);
}

void pipe_attach(struct daemon *d, uint64_t id, struct shell *shell, int fd)
{
	struct pipe_end *p = end_new(d, id, NULL, false);

	if (!p) {
		close(fd);
		return;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	p->fd = fd;
	p->shell = shell;
}

void pipe_relay(struct daemon *d, uint64_t id, struct tunnel *via, bool writes, struct shell *shell,
		uint64_t job)
{
	struct pipe_end *p = ends;

	while (p && (p->shell != shell || p->id != id || p->via))
		p = p->next;
	if (!p)
		p = end_new(d, id, via, writes);
	if (!p)
		return;
	p->via = via;
	p->writes = writes;
	p->shell = shell;
	p->job = job;
	if (p->fd >= 0)
		begin(p);
}

/* ---- frames ---- */

bool pipe_is_frame(enum vpg_type type)
{
	return type == VPG_DATA || type == VPG_STREAM_END || type == VPG_CREDIT ||
	       type == VPG_STREAM_BREAK;
}

static bool is_for_writer(enum vpg_type type)
{
	return type == VPG_CREDIT || type == VPG_STREAM_BREAK;
}

static void hear_writer(struct pipe_end *p, enum vpg_type type, const union vpg_any *m)
{
	if (p->fd < 0)
		return;
	if (type == VPG_STREAM_BREAK) {
		end_free(p);
		return;
	}
	p->credit += m->CREDIT.bytes < VPG_WINDOW ? m->CREDIT.bytes : VPG_WINDOW;
	send_some(p);
}

/* Writes at once what the command reads, and keeps the rest. */
static void take_data(struct pipe_end *p, const unsigned char *bytes, size_t n)
{
	ssize_t done = evbuffer_get_length(p->pending) ? 0 : write(p->fd, bytes, n);

	done = done > 0 ? done : 0;	/* write_some() will get an error, too */
	p->owed += (uint64_t)done;
	evbuffer_add(p->pending, bytes + done, n - (size_t)done);
}

static void hear_reader(struct pipe_end *p, enum vpg_type type, const union vpg_any *m)
{
	struct tunnel *via = p->via;

	if (type == VPG_STREAM_END) {
		p->ended = true;
		if (isatty(p->fd))	/* as if Ctrl-D were typed */
			evbuffer_add(p->pending, "\004", 1);
		write_some(p);
		return;
	}
	if (m->DATA.bytes.n > p->credit || p->ended) {
		tunnel_close(via, "it sends more than it may");
		return;
	}
	p->credit -= m->DATA.bytes.n;
	take_data(p, m->DATA.bytes.at, m->DATA.bytes.n);
	write_some(p);
}

/* Serves a frame.  In all four types the number of the stream comes first. */
void pipe_hear(struct tunnel *t, enum vpg_type type, const union vpg_any *m)
{
	uint64_t id = m->DATA.stream;
	bool writes = is_for_writer(type);
	struct pipe_end *p = ends;

	while (p && (p->via != t || p->id != id || p->writes != writes))
		p = p->next;
	if (p && p->shell && !p->ready)
		shell_say(p->shell, type, m);
	else if (p && writes)
		hear_writer(p, type, m);
	else if (p)
		hear_reader(p, type, m);
	else if (writes)
		note_early(t, id, type == VPG_CREDIT ? m->CREDIT.bytes : 0,
			   type == VPG_STREAM_BREAK);
}

static void pass_on(struct tunnel *t, enum vpg_type type, const union vpg_any *m)
{
	struct vpg_bytes frame;

	if (type != VPG_DATA) {
		tunnel_send_more(t, type, m);
		return;
	}
	frame = message_data_frame(&m->DATA);
	tunnel_send_frame(t, frame.at, frame.n);
}

void pipe_hear_shell(struct shell *s, enum vpg_type type, const union vpg_any *m)
{
	for (struct pipe_end *p = ends; p; p = p->next)
		if (p->shell == s && p->via && !p->ready && p->id == m->DATA.stream &&
		    p->writes != is_for_writer(type)) {
			pass_on(p->via, type, m);
			return;
		}
}

/* ---- the end ---- */

void pipes_close_stage(struct daemon *d, const struct stage *owner)
{
	(void)d;
	for (struct pipe_end *p = ends, *next; p; p = next) {
		next = p->next;
		if (p->owner == owner)
			end_free(p);
	}
}

void pipes_close_shell(struct daemon *d, const struct shell *shell, uint64_t job)
{
	(void)d;
	for (struct pipe_end *p = ends, *next; p; p = next) {
		next = p->next;
		if (p->shell == shell && (!job || !p->via || p->job == job))
			end_free(p);
	}
}

void pipes_tunnel_closed(struct tunnel *t)
{
	forget_early(t);
	for (struct pipe_end *p = ends, *next; p; p = next) {
		next = p->next;
		if (p->via != t)
			continue;
		if (p->owner)
			jobs_kill_stage(p->owner);
		end_free(p);
	}
}
