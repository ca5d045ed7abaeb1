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
#include "vmm/cli/gdb/gdb_peer.h"

enum { AGAIN_MS = 20, INPUT_LIMIT = 64 << 10, OUTPUT_LIMIT = 64 << 10 };

/* --- the address ---------------------------------------------------------------------------------------------------- */

static int parse_port(const char *text, in_port_t *port)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value > 65535)
		return -1;
	*port = htons((uint16_t)value);
	return 0;
}

static int set_host(const char *host, in_port_t port, struct gdb_address *a)
{
	if (!strcmp(host, "[::1]")) {
		a->at.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
		a->bytes = sizeof a->at.v6;
		return 0;
	}
	a->at.v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port };
	a->bytes = sizeof a->at.v4;
	if (inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1", &a->at.v4.sin_addr) != 1)
		return -1;
	return ntohl(a->at.v4.sin_addr.s_addr) >> 24 == 127 ? 0 : -1;
}

int gdb_address_parse(const char *text, struct gdb_address *a, struct problem *p)
{
	static const char nowait[] = ",nowait";
	char host[64];
	in_port_t port;
	size_t n = strlen(text), skip = sizeof nowait - 1;
	char *colon;

	*a = (struct gdb_address){ .nowait = n > skip && !strcmp(text + n - skip, nowait) };
	snprintf(host, sizeof host, "%.*s", (int)(n - (a->nowait ? skip : 0)), text);
	colon = strrchr(host, ':');
	if (!colon || parse_port(colon + 1, &port))
		return problem(p, "--gdb %s: write it as 127.0.0.1:1234, or 127.0.0.1:1234,nowait", text);
	*colon = 0;
	if (set_host(host, port, a))
		return problem(p, "--gdb %s: only addresses of this computer, as 127.0.0.1, since whoever connects is not asked for a password",
			       text);
	return 0;
}

int gdbserver_listen(struct gdbserver *g, const struct gdb_address *a, struct problem *p)
{
	int one = 1;

	*g = (struct gdbserver){ .fd = socket(a->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) };
	if (g->fd < 0)
		return problem(p, "--gdb: no socket: %s", strerror(errno));
	setsockopt(g->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (!bind(g->fd, &a->at.any, a->bytes) && !listen(g->fd, 1))
		return 0;
	problem(p, "--gdb: cannot listen on port %u: %s", ntohs(a->at.v4.sin_port), strerror(errno));
	close(g->fd);
	g->fd = -1;
	return -1;
}

/* As one word for a shell: the path may come from a snapshot's file, and the line is there to be pasted. */
static void quote_word(const char *word, char *quoted, size_t bytes)
{
	size_t n = 0;

	if (word[0] && !word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+,@%:=-")]) {
		snprintf(quoted, bytes, "%s", word);
		return;
	}
	quoted[n++] = '\'';
	for (; *word && n + 6 < bytes; word++) {
		if (*word == '\'')
			n += (size_t)snprintf(quoted + n, bytes - n, "'\\''");
		else
			quoted[n++] = (unsigned char)*word < ' ' || *word == 0x7f ? '?' : *word;
	}
	quoted[n++] = '\'';
	quoted[n] = 0;
}

void gdbserver_describe(const struct gdbserver *g, const char *kernel, char *line, size_t bytes)
{
	struct gdb_address a = { .bytes = sizeof a.at };
	char host[INET6_ADDRSTRLEN] = "?", file[4096];
	bool v6;

	getsockname(g->fd, &a.at.any, &a.bytes);
	v6 = a.at.any.sa_family == AF_INET6;
	inet_ntop(a.at.any.sa_family, v6 ? (void *)&a.at.v6.sin6_addr : (void *)&a.at.v4.sin_addr, host, sizeof host);
	quote_word(kernel, file, sizeof file);
	snprintf(line, bytes, "gdb %s -ex 'target remote %s%s%s:%u'", file, v6 ? "[" : "", host, v6 ? "]" : "",
		 ntohs(a.at.v4.sin_port));
}

/* --- one connection ------------------------------------------------------------------------------------------------- */

static void close_gdb(struct gdbserver *g)
{
	if (!g->gdb)
		return;
	bufferevent_free(g->gdb);
	g->gdb = NULL;
	g->hang_up = false;
	gdb_gone(&g->session);
}

/* Give the session what has come, as far as it takes it now. */
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

/* Only who may kill `vmp run` may have the machine. The first who is turned away is said. */
static bool is_let_in(struct gdbserver *g, int fd)
{
	uid_t user = 0;
	int error = gdb_peer_check(fd, &user);

	if (error == -EPERM && !g->turned_away)
		log_warn("--gdb: a connection of user %u was turned away: only you and root are let in", (unsigned)user);
	else if (error && !g->turned_away)
		log_warn("--gdb: a connection was turned away: /proc/net/tcp does not say whose it is");
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
		g->gdb = bufferevent_socket_new(event_get_base(g->incoming), fd, BEV_OPT_CLOSE_ON_FREE);
	}
	if (!g->gdb || bufferevent_getfd(g->gdb) != fd) {
		close(fd); /* one at a time; or not ours */
		return;
	}
	bufferevent_setcb(g->gdb, on_bytes, NULL, on_event, g);
	bufferevent_setwatermark(g->gdb, EV_READ, 0, INPUT_LIMIT);
	bufferevent_enable(g->gdb, EV_READ | EV_WRITE);
}

/* --- what the session does ------------------------------------------------------------------------------------------ */

static void to_gdb(void *ctx, const char *bytes, size_t n)
{
	struct gdbserver *g = ctx;

	if (!g->gdb)
		return;
	bufferevent_write(g->gdb, bytes, n);
	if (evbuffer_get_length(bufferevent_get_output(g->gdb)) > OUTPUT_LIMIT)
		g->hang_up = true; /* it asks and does not listen */
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

int gdbserver_start(struct gdbserver *g, struct event_base *base, struct client *client, unsigned n_cpus, bool held)
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
	gdb_on_answer(&g->session, &answer, (const char *)body + sizeof answer, bytes - sizeof answer);
	feed(g);
}

/* Without the loop, which has ended: what it has not come to write goes out here. */
static void last_words(struct gdbserver *g, unsigned status)
{
	struct evbuffer *output = bufferevent_get_output(g->gdb);
	size_t n;

	gdb_machine_ended(&g->session, status);
	n = evbuffer_get_length(output);
	if (n && send(bufferevent_getfd(g->gdb), evbuffer_pullup(output, (ev_ssize_t)n), n, MSG_NOSIGNAL) < 0)
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
