/* connection.c - one connection: its life, and plain bytes from and to its socket. */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include "phoenix/flow/flow.h"
#include "phoenix/net/net_private.h"

/* ---- life ---- */

struct conn *conn_new(struct net *net, int fd, struct contact *c, enum conn_state state)
{
	struct conn *k = calloc(1, sizeof *k);

	if (!k)
		return NULL;
	*k = (struct conn){ .next = net->conns, .net = net, .fd = fd, .contact = c, .state = state,
			    .since_us = net_now(), .ssh_door = -1 };
	net->conns = k;
	if (c)
		contact_set_transport(c, k);
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
	notes_forget(k);
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
	free(k->record.data);
	ssh_end(k);
	if (k->contact && contact_transport(k->contact) == k)
		contact_set_transport(k->contact, NULL);
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
		link_lost(l);
	else if (c)
		contact_dial_failed(ph, c);
}

void conn_origin(const struct conn *k, char *host, size_t room)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof at;

	if (getpeername(k->fd, (struct sockaddr *)&at, &len) ||
	    getnameinfo((struct sockaddr *)&at, len, host, (socklen_t)room, NULL, 0,
			NI_NUMERICHOST))
		*host = 0;
}

bool conn_open(struct conn *k)
{
	unsigned char binding[32] = { 0 };

	if (!k->ssl || SSL_export_keying_material(k->ssl, binding, sizeof binding, "EXPORTER-phnx",
						  13, NULL, 0, 0) == 1) {
		k->state = OPEN;
		k->l = link_open(k->net->ph, k, k->contact, binding);
	}
	if (k->l) {
		k->l->secured = k->ssl != NULL;
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
	/* fails, and rightly, if it is no TCP socket */
	setsockopt(k->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	k->readable = event_new(base, k->fd, EV_READ | EV_PERSIST, net_event, k);
	k->writable = event_new(base, k->fd, EV_WRITE | EV_PERSIST, net_event, k);
	return k->readable && k->writable ? event_add(k->readable, NULL) : -1;
}

/* ---- sending ---- */

int conn_write(struct conn *k, struct iovec *iov, size_t n, size_t *sent)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t got = n == 1 ? send(k->fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL)
			     : sendmsg(k->fd, &msg, MSG_NOSIGNAL);

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
		size_t len = f->body ? f->body->len - f->bare : 0;
		if (len > skip)
			iov[n++] = (struct iovec){ (void *)(f->body->data + skip), len - skip };
		if (f->bare)
			break;
	}
	return n;
}

/* Copies small pieces into one, which costs a socket less. */
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
		link_taken(k->l, sent);
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
	return k->state == OPEN && k->l && !(k->ssl ? tls_flush(k) : flush_plain(k)) &&
	       (k->l->out || k->cipher.len);
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
		unsigned char *to = link_space(k->l, &room);
		ssize_t n = recv(k->fd, to, room, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		conn_stirs(k);
		if (n <= 0) {
			conn_lost(k);
			return;
		}
		total += (size_t)n;
		if (link_input(k->l, (size_t)n))
			return;		/* the link was closed, and conn_close() did the rest */
		if (k->net->lodger) {
			net_push(k->net);
			/* reading what has arrived meanwhile costs less than another round of
			 * the loop */
			continue;
		}
		if ((size_t)n < room ||
		    (!k->l->in_len && (total > IN_BYTES || flow_has_received(k->net->ph))))
			/* everything is read, or a large frame is complete, or a message that a
			 * call may wait for */
			return;
	}
}

void conn_read(struct conn *k)
{
	if (k->ssl)
		tls_read(k);
	else
		read_plain(k);
}

bool conn_is_near(const struct sockaddr *peer)
{
	const struct sockaddr_in *four = (const void *)peer;
	const struct sockaddr_in6 *six = (const void *)peer;

	switch (peer->sa_family) {
	case AF_UNIX: return true;
	case AF_INET: return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) && six->sin6_addr.s6_addr[12] == 127);
	}
	return false;
}

/* Whether this peer may speak without TLS. */
static bool may_be_plain(const struct conn *k)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof at;

	return !k->net->wary ||
	       (!getpeername(k->fd, (struct sockaddr *)&at, &len) && conn_is_near((void *)&at));
}

void conn_peek(struct conn *k)
{
	unsigned char first;
	ssize_t n = recv(k->fd, &first, 1, MSG_PEEK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		conn_lost(k);
	else if (first != 0x16 && !may_be_plain(k))
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

/* Closes a connection whose link the node closes: frames that the socket takes at once go out
 * first, then this side is shut down. */
void conn_close(struct conn *k)
{
	/* after a failure nobody is left to be told */
	(void)(k->ssl ? tls_flush(k) : flush_plain(k));
	k->l = NULL;
	cool(k);
	if (k->contact && contact_transport(k->contact) == k)
		contact_set_transport(k->contact, NULL);
	k->contact = NULL;
	k->state = DRAINING;
	k->since_us = net_now();
	if (k->blocked)
		event_del(k->writable);
	k->blocked = false;
	shutdown(k->fd, SHUT_WR);
}
