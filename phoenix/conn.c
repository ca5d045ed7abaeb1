/* conn.c - one connection: its life, and plain bytes from and to its socket. */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "phoenix/conn.h"

/* ---- life ---- */

struct conn *conn_new(struct net *net, int fd, struct contact *c, enum conn_state state)
{
	struct conn *k = calloc(1, sizeof *k);

	if (!k)
		return NULL;
	*k = (struct conn){ .next = net->conns, .net = net, .fd = fd, .contact = c, .state = state,
			    .since_us = net_now() };
	net->conns = k;
	if (c)
		c->transport = k;
	return k;
}

void conn_has_more(struct conn *k)
{
	struct net *net = k->net;

	if (k->dirty)
		return;
	k->dirty = true;
	k->dirty_next = NULL;
	*(net->dirty ? net->dirty_end : &net->dirty) = k;
	net->dirty_end = &k->dirty_next;
}

static void clean(struct conn *k)
{
	struct conn **at = &k->net->dirty, *before = NULL;

	for (; *at && *at != k; at = &before->dirty_next)
		before = *at;
	if (!*at)
		return;
	*at = k->dirty_next;
	if (!k->dirty_next && before)
		k->net->dirty_end = &before->dirty_next;
}

static void cool(struct conn *k)
{
	if (k->net->hot != k)
		return;
	net_watch_all(k->net);
	k->net->hot = NULL;
}

void conn_drop_socket(struct conn *k)
{
	ssh_deafen(k);
	if (k->readable)
		event_free(k->readable);	/* waits for its callback in another thread */
	if (k->writable)
		event_free(k->writable);
	k->readable = k->writable = NULL;
	pthread_mutex_lock(&k->net->ready_lock);
	if (k->lookup)
		k->lookup->conn = NULL;
	k->lookup = NULL;
	for (struct conn **at = &k->net->ready; k->ready && *at; at = &(*at)->ready_next)
		if (*at == k) {
			*at = k->ready_next;
			break;
		}
	k->ready = 0;
	pthread_mutex_unlock(&k->net->ready_lock);
	if (k->fd >= 0)
		close(k->fd);
	k->fd = -1;
}

void conn_free(struct conn *k)
{
	struct conn **at = &k->net->conns;

	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	cool(k);
	clean(k);
	conn_drop_socket(k);
	if (k->found)
		evutil_freeaddrinfo(k->found);
	if (k->numeric)
		freeaddrinfo(k->numeric);
	SSL_free(k->ssl);
	if (k->ssh > 0) {
		kill(k->ssh, SIGTERM);
		waitpid(k->ssh, NULL, 0);
	}
	if (k->contact && k->contact->transport == k)
		k->contact->transport = NULL;
	free(k->cipher.data);
	free(k);
}

void conn_lost(struct conn *k)
{
	struct plink *l = k->l;
	struct contact *c = l ? NULL : k->contact;
	struct phnx *ph = k->net->ph;

	ssh_lost(k);
	k->l = NULL;
	conn_free(k);
	if (l)
		phnx_link_lost(l);
	else if (c)
		phnx_dial_failed(ph, c);
}

void conn_origin(const struct conn *k, char *host, size_t room)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof at;

	if (getpeername(k->fd, (struct sockaddr *)&at, &len) ||
	    getnameinfo((struct sockaddr *)&at, len, host, (socklen_t)room, NULL, 0, NI_NUMERICHOST))
		*host = 0;
}

bool conn_open(struct conn *k)
{
	unsigned char binding[32] = { 0 };

	if (!k->ssl || SSL_export_keying_material(k->ssl, binding, sizeof binding, "EXPORTER-phnx", 13, NULL, 0, 0) == 1) {
		k->state = OPEN;
		k->l = phnx_link_open(k->net->ph, k, k->contact, binding);
	}
	if (k->l) {
		if (!k->contact)
			conn_origin(k, k->l->from, sizeof k->l->from);
		return true;
	}
	conn_lost(k);
	return false;
}

int conn_watch(struct conn *k)
{
	struct event_base *base = k->net->base;
	int on = 1;

	evutil_make_socket_nonblocking(k->fd);
	setsockopt(k->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);	/* not a TCP socket? then never mind */
	k->readable = event_new(base, k->fd, EV_READ | EV_PERSIST, net_event, k);
	k->writable = event_new(base, k->fd, EV_WRITE | EV_PERSIST, net_event, k);
	return k->readable && k->writable ? event_add(k->readable, NULL) : -1;
}

/* ---- sending ---- */

int conn_write(struct conn *k, struct iovec *iov, size_t n, size_t *sent)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t got = n == 1 ? send(k->fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL) : sendmsg(k->fd, &msg, MSG_NOSIGNAL);

	*sent = got > 0 ? (size_t)got : 0;
	return got >= 0 || errno == EAGAIN || errno == EINTR ? 0 : -1;
}

size_t conn_gather(struct plink *l, struct iovec *iov, size_t room)
{
	size_t n = 0;

	for (struct outframe *f = l->out; f && n + 2 <= room; f = f->next) {
		if (f->done < f->head_len)
			iov[n++] = (struct iovec){ f->head + f->done, f->head_len - f->done };
		size_t skip = f->done > f->head_len ? f->done - f->head_len : 0;
		if (f->body && f->body->len > skip)
			iov[n++] = (struct iovec){ (void *)(f->body->data + skip), f->body->len - skip };
	}
	return n;
}

/* Small pieces as one, which costs a socket less. */
static size_t join(struct iovec *iov, size_t n, size_t want, unsigned char *to)
{
	unsigned char *end = to;

	for (size_t i = 0; i < n; end += iov[i++].iov_len)
		memcpy(end, iov[i].iov_base, iov[i].iov_len);
	iov[0] = (struct iovec){ to, want };
	return 1;
}

static int flush_plain(struct conn *k)
{
	enum { JOINED = 2048 };
	unsigned char joined[JOINED];
	struct iovec iov[64];
	size_t n, sent, want;

	while (k->l->out) {
		n = conn_gather(k->l, iov, 64);
		want = 0;
		for (size_t i = 0; i < n; i++)
			want += iov[i].iov_len;
		if (n > 1 && want <= JOINED)
			n = join(iov, n, want, joined);
		if (conn_write(k, iov, n, &sent))
			return -1;
		phnx_link_taken(k->l, sent);
		if (sent < want)
			break;
	}
	return 0;
}

void conn_flush(struct conn *k)
{
	k->dirty = false;
	if (k->state != OPEN || !k->l)
		return;
	if (k->ssl ? tls_flush(k) : flush_plain(k)) {
		conn_lost(k);
		return;
	}
	bool blocked = k->l->out || k->cipher.len;
	if (blocked && !k->blocked)
		event_add(k->writable, NULL);
	else if (!blocked && k->blocked)
		event_del(k->writable);
	k->blocked = blocked;
}

bool conn_push(struct conn *k)
{
	return k->state == OPEN && k->l && !(k->ssl ? tls_flush(k) : flush_plain(k)) && (k->l->out || k->cipher.len);
}

/* ---- receiving ---- */

void conn_stirs(struct conn *k)
{
	if (k->net->hot != k)
		net_watch_all(k->net);
	k->net->hot = k;
	k->net->stirred = true;
}

static void read_plain(struct conn *k)
{
	for (size_t total = 0; total < READ_BUDGET;) {
		size_t room;
		unsigned char *to = phnx_link_space(k->l, &room);
		ssize_t n = recv(k->fd, to, room, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		conn_stirs(k);
		if (n <= 0) {
			conn_lost(k);
			return;
		}
		total += (size_t)n;
		if (phnx_link_input(k->l, (size_t)n))
			return;		/* the link was closed: conn_close() did the rest */
		if (k->net->lodger)
			continue;	/* what came meanwhile costs less now than another round of the loop */
		if ((size_t)n < room || (!k->l->in_len && (total > IN_BYTES || k->net->ph->flows.received)))
			return;	/* read to the end, or to that of a large frame, or of a message that may be waited for */
	}
}

void conn_read(struct conn *k)
{
	if (k->ssl)
		tls_read(k);
	else
		read_plain(k);
}

void conn_peek(struct conn *k)
{
	unsigned char first;
	ssize_t n = recv(k->fd, &first, 1, MSG_PEEK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		conn_lost(k);
	else if (first != 0x16)
		conn_open(k);
	else if (tls_start(k, true))
		conn_lost(k);
}

void conn_drain(struct conn *k)
{
	char buf[4096];
	ssize_t n = recv(k->fd, buf, sizeof buf, 0);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		conn_free(k);
}

/* The node closes a link: what is queued goes out first if the socket takes it at once, then our side is shut. */
void conn_close(struct conn *k)
{
	(void)(k->ssl ? tls_flush(k) : flush_plain(k));		/* if it fails, nobody is there to be told */
	k->l = NULL;
	cool(k);
	if (k->contact && k->contact->transport == k)
		k->contact->transport = NULL;
	k->contact = NULL;
	k->state = DRAINING;
	k->since_us = net_now();
	if (k->blocked)
		event_del(k->writable);
	k->blocked = false;
	shutdown(k->fd, SHUT_WR);
}
