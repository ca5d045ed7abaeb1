/* gdb_server.c - see gdb_server.h. */
#include "vmm/cli/gdb/gdb_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "base/printable.h"
#include "vmm/cli/loopback_peer.h"

enum { AGAIN_MS = 20, INPUT_LIMIT = 64 << 10, OUTPUT_LIMIT = 64 << 10 };

/* ---- the address ---- */

int gdb_address_parse(const char *text, struct gdb_address *a, struct problem *p)
{
	static const char nowait[] = ",nowait";
	char host[64];
	size_t n = strlen(text), skip = sizeof nowait - 1;
	int error;

	*a = (struct gdb_address){ .nowait = n > skip && !strcmp(text + n - skip, nowait) };
	snprintf(host, sizeof host, "%.*s", (int)(n - (a->nowait ? skip : 0)), text);
	error = loopback_parse(host, &a->own);
	if (error == -EINVAL)
		return problem(p, "--gdb %s: write it as 127.0.0.1:1234, or 127.0.0.1:1234,nowait",
			       text);
	if (error)
		return problem(p, "--gdb %s: only addresses of this computer, as 127.0.0.1, since "
			       "whoever connects is not asked for a password", text);
	return 0;
}

int gdbserver_listen(struct gdbserver *g, const struct gdb_address *a, struct problem *p)
{
	int fd = loopback_listen(&a->own, 1);

	*g = (struct gdbserver){ .fd = fd < 0 ? -1 : fd };
	if (fd < 0)
		return problem(p, "--gdb: cannot listen on port %u: %s",
			       ntohs(a->own.at.v4.sin_port), strerror(-fd));
	return 0;
}

/* Writes a path as one word for a shell, since the line is there to be pasted.  The path may come
 * from a snapshot's file; gdb shall not take it for an option. */
static void quote_word(const char *word, char *quoted, size_t bytes)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "_./+,@%:=-";
	const char *here = *word == '-' ? "./" : "";
	size_t n;

	if (word[0] && !word[strspn(word, plain)]) {
		snprintf(quoted, bytes, "%s%s", here, word);
		return;
	}
	n = (size_t)snprintf(quoted, bytes, "'%s", here);
	for (; *word && n + 6 < bytes; word++)
		if (*word == '\'')
			n += (size_t)snprintf(quoted + n, bytes - n, "'\\''");
		else
			quoted[n++] = *word;
	quoted[n++] = '\'';
	quoted[n] = 0;
	printable_line(quoted);
}

void gdbserver_describe(const struct gdbserver *g, const char *kernel, char *line, size_t bytes)
{
	struct loopback a = { .bytes = sizeof a.at };
	char host[INET6_ADDRSTRLEN] = "?", file[4096];
	bool v6;

	getsockname(g->fd, &a.at.any, &a.bytes);
	v6 = a.at.any.sa_family == AF_INET6;
	inet_ntop(a.at.any.sa_family, v6 ? (void *)&a.at.v6.sin6_addr : (void *)&a.at.v4.sin_addr,
		  host, sizeof host);
	quote_word(kernel, file, sizeof file);
	snprintf(line, bytes, "gdb %s -ex 'target remote %s%s%s:%u'", file, v6 ? "[" : "", host,
		 v6 ? "]" : "", ntohs(a.at.v4.sin_port));
}

/* ---- one connection ---- */

static void close_gdb(struct gdbserver *g)
{
	if (!g->gdb)
		return;
	bufferevent_free(g->gdb);
	g->gdb = NULL;
	g->hang_up = false;
	gdb_gone(&g->session);
}

/* Gives the session the bytes that have arrived, as many as it takes now. */
static void feed(struct gdbserver *g)
{
	size_t n, taken = 1;

	while (g->gdb && taken && !g->hang_up) {
		struct evbuffer *input = bufferevent_get_input(g->gdb);

		n = evbuffer_get_length(input);
		taken = n ? gdb_take(&g->session, evbuffer_pullup(input, (ev_ssize_t)n), n) : 0;
		evbuffer_drain(input, taken);
	}
	if (g->hang_up)
		close_gdb(g);
}

static void on_bytes(struct bufferevent *gdb, void *context)
{
	(void)gdb;
	feed(context);
}

static void on_event(struct bufferevent *gdb, short what, void *context)
{
	(void)gdb;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		close_gdb(context);
}

/* Lets in only users who may kill `vmp run` as well.  Logs the first connection that is turned
 * away. */
static bool is_let_in(struct gdbserver *g, int fd)
{
	uid_t user = 0;
	int error = loopback_peer_check(fd, &user);

	if (error == -EPERM && !g->turned_away)
		log_warn("--gdb: a connection of user %u was turned away: only you and root are "
			 "let in",
			 (unsigned)user);
	else if (error && !g->turned_away)
		log_warn("--gdb: a connection was turned away: the kernel does not say whose it "
			 "is");
	g->turned_away |= error != 0;
	return !error;
}

static void on_incoming(evutil_socket_t listening, short what, void *context)
{
	struct gdbserver *g = context;
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), one = 1;

	(void)what;
	if (fd < 0)
		return;
	if (!g->gdb && is_let_in(g, fd)) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		g->gdb = bufferevent_socket_new(event_get_base(g->incoming), fd,
						BEV_OPT_CLOSE_ON_FREE);
	}
	if (!g->gdb || bufferevent_getfd(g->gdb) != fd) {
		close(fd); /* one connection at a time, and none of another user */
		return;
	}
	bufferevent_setcb(g->gdb, on_bytes, NULL, on_event, g);
	bufferevent_setwatermark(g->gdb, EV_READ, 0, INPUT_LIMIT);
	bufferevent_enable(g->gdb, EV_READ | EV_WRITE);
}

/* ---- what the session does ---- */

static void to_gdb(void *ctx, const char *bytes, size_t n)
{
	struct gdbserver *g = ctx;

	if (!g->gdb)
		return;
	bufferevent_write(g->gdb, bytes, n);
	if (evbuffer_get_length(bufferevent_get_output(g->gdb)) > OUTPUT_LIMIT)
		g->hang_up = true; /* it sends requests and does not read replies */
}

static void to_machine(void *ctx, const struct msg_debug *request, const void *payload, size_t n)
{
	struct gdbserver *g = ctx;

	client_send(g->client, MSG_DEBUG, VNODE_CLI, request, sizeof *request, payload, n);
}

static void try_again(void *ctx)
{
	static const struct timeval moment = { 0, AGAIN_MS * 1000 };

	event_add(((struct gdbserver *)ctx)->again, &moment);
}

static void hang_up(void *ctx)
{
	((struct gdbserver *)ctx)->hang_up = true;
}

static void end_machine(void *ctx)
{
	struct gdbserver *g = ctx;

	g->on_kill(g->context);
}

static void on_again(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	gdb_try_again(&((struct gdbserver *)context)->session);
}

int gdbserver_start(struct gdbserver *g, struct event_base *base, struct client *client,
		    unsigned n_cpus, bool held)
{
	static const struct gdb_ops ops = { to_gdb, to_machine, try_again, hang_up, end_machine };

	g->client = client;
	gdb_init(&g->session, &ops, g, n_cpus, held);
	g->incoming = event_new(base, g->fd, EV_READ | EV_PERSIST, on_incoming, g);
	g->again = evtimer_new(base, on_again, g);
	return g->incoming && g->again && !event_add(g->incoming, NULL) ? 0 : -1;
}

void gdbserver_on_answer(struct gdbserver *g, const void *body, size_t bytes)
{
	struct msg_debug answer;

	memcpy(&answer, body, sizeof answer);
	gdb_on_answer(&g->session, &answer, (const char *)body + sizeof answer,
		      bytes - sizeof answer);
	feed(g);
}

/* Tells GDB that the machine has ended.  The event loop has ended too, so this writes what is still
 * queued. */
static void last_words(struct gdbserver *g, unsigned status)
{
	struct evbuffer *output = bufferevent_get_output(g->gdb);
	size_t n;

	gdb_machine_ended(&g->session, status);
	n = evbuffer_get_length(output);
	if (n && send(bufferevent_getfd(g->gdb), evbuffer_pullup(output, (ev_ssize_t)n), n,
		      MSG_NOSIGNAL) < 0)
		log_debug("gdb is gone: %s", strerror(errno));
}

void gdbserver_end(struct gdbserver *g, unsigned status)
{
	if (g->gdb) {
		last_words(g, status);
		bufferevent_free(g->gdb);
	}
	if (g->incoming)
		event_free(g->incoming);
	if (g->again)
		event_free(g->again);
	if (g->fd >= 0)
		close(g->fd);
	*g = (struct gdbserver){ .fd = -1 };
}
