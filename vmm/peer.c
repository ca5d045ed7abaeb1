/* peer.c - the direct connections between the daemons of a machine: node K listens on RUNDIR/node-K.sock and connects to
 * every lower node, or, when it joins a machine that runs, to all; both sides say HELLO.  Only processes of the same user are
 * let in.
 */
#include "vmm/peer.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/log.h"
#include "vmm/conn.h"
#include "vmm/hosts.h"
#include "vmm/node.h"

enum { RETRY_MS = 5, CONNECT_LIMIT_MS = 20000, LISTEN_BACKLOG = 64, NOT_CALLED = MAX_NODES };

struct peers {
	int listen_fd;
	struct event *incoming, *retry;
	char path[108];
	uint32_t greeted;   /* bit set of peers that said HELLO */
	uint32_t connected; /* bit set of nodes to which a connection was made from here */
};

int unix_address(struct sockaddr_un *address, const char *dir, const char *name)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return snprintf(address->sun_path, sizeof address->sun_path, "%s/%s", dir, name) < (int)sizeof address->sun_path ? 0
		: -ENAMETOOLONG;
}

int unix_listen(const char *dir, const char *name, char *path, size_t path_bytes)
{
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0077);

	if (fd < 0 || unix_address(&address, dir, name) || bind(fd, (struct sockaddr *)&address, sizeof address) ||
	    listen(fd, LISTEN_BACKLOG))
		die("cannot listen on %s/%s: %s", dir, name, strerror(errno));
	umask(mask);
	snprintf(path, path_bytes, "%s", address.sun_path);
	return fd;
}

int unix_accept(int listen_fd)
{
	struct ucred who;
	socklen_t bytes = sizeof who;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
		die("cannot accept a connection: %s; see ulimit -n", strerror(errno));
	if (fd < 0)
		return -1; /* whoever called has gone again */
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) && who.uid == geteuid())
		return fd;
	log_warn("a process of another user tried to connect: refused");
	close(fd);
	return -1;
}

static void say_hello(struct node *node, struct conn *conn)
{
	struct msg_hello hello = { .wire_version = WIRE_VERSION, .role = PEER_DAEMON, .index = node->o.node };
	struct msg_header header = { .type = MSG_HELLO, .version = WIRE_VERSION, .bytes = sizeof hello,
				     .from_node = node->o.node };

	conn_send(conn, &header, &hello, sizeof hello, NULL, 0);
}

static void on_peer_message(struct conn *conn, const struct msg_header *header, const void *body)
{
	struct node *node = conn_owner(conn);

	net_receive(node->net, conn_index(conn), header, body);
}

static void on_peer_closed(struct conn *conn, int reason)
{
	struct node *node = conn_owner(conn);
	unsigned peer = conn_index(conn);

	net_set_peer(node->net, peer, NULL);
	node->peers->greeted &= ~(1u << peer);
	if (node->ending || hostpart_peer_lost(node, peer))
		return;
	if (reason)
		node_end(node, END_PART_DIED, 0, "host %u lost the daemon of host %u: %s", node->o.node, peer,
			 strerror(-reason));
	else if (peer == 0)
		node_end_here(node); /* nobody is left to tell */
	else
		node_end(node, END_PART_DIED, 0, "the daemon of host %u died", peer);
}

static const struct conn_handler peer_handler = { on_peer_message, on_peer_closed };

/* The first message on a new connection; the connection has no name yet. */
static void on_stranger_message(struct conn *conn, const struct msg_header *header, const void *body)
{
	struct node *node = conn_owner(conn);
	struct peers *peers = node->peers;
	struct msg_hello hello;
	char name[48];

	if (header->type == MSG_HELLO)
		memcpy(&hello, body, sizeof hello);
	if (header->type != MSG_HELLO || hello.role != PEER_DAEMON || hello.index >= MAX_NODES ||
	    hello.index == node->o.node || peers->greeted & 1u << hello.index) {
		log_error("a connection between daemons began with %s: refused", wire_type_name(header->type));
		conn_close(conn);
		return;
	}
	if (conn_index(conn) == NOT_CALLED)
		say_hello(node, conn);
	peers->greeted |= 1u << hello.index;
	snprintf(name, sizeof name, "daemon of host %u", hello.index);
	conn_rename(conn, name, &peer_handler, hello.index);
	net_set_peer(node->net, hello.index, conn);
	node_check_ready(node);
}

static void on_stranger_closed(struct conn *conn, int reason)
{
	log_warn("%s closed before it said who it was (%d)", conn_name(conn), reason);
}

static const struct conn_handler stranger_handler = { on_stranger_message, on_stranger_closed };

static void on_incoming(evutil_socket_t fd, short what, void *arg)
{
	struct node *node = arg;
	int peer = unix_accept(fd);

	(void)what;
	if (peer >= 0)
		conn_new(node->base, peer, "a new daemon", &stranger_handler, node, NOT_CALLED);
}

static bool connect_to(struct node *node, unsigned peer)
{
	struct sockaddr_un address;
	struct conn *conn;
	char name[32];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(name, sizeof name, "node-%u.sock", peer);
	if (fd < 0 || unix_address(&address, node->o.dir, name))
		die("cannot make a socket for host %u: %s", peer, strerror(errno));
	if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
		if (errno != ENOENT && errno != ECONNREFUSED)
			node_end(node, END_FAILURE, 0, "host %u cannot connect to host %u: %s", node->o.node, peer,
				 strerror(errno));
		close(fd);
		return false;
	}
	conn = conn_new(node->base, fd, "a new daemon", &stranger_handler, node, peer);
	say_hello(node, conn);
	return true;
}

/* The other daemons come up at the same time: try again until they listen. */
static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct node *node = arg;
	struct peers *peers = node->peers;
	const struct timeval pause = { 0, RETRY_MS * 1000 };
	uint32_t called = node->o.join ? node->o.join : (1u << node->o.node) - 1; /* those that join later call us */

	(void)fd, (void)what;
	if (node->ending)
		return;
	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		if (called >> peer & 1 && !(peers->connected >> peer & 1) && connect_to(node, peer))
			peers->connected |= 1u << peer;
	if (peers_complete(node))
		return;
	if (node_now_ns() - node->boot_ns > CONNECT_LIMIT_MS * 1000000ull)
		node_end(node, END_FAILURE, 0, "not all daemons of the machine reached host %u within %d s", node->o.node,
			 CONNECT_LIMIT_MS / 1000);
	else
		event_add(peers->retry, &pause);
}

bool peers_complete(const struct node *node)
{
	uint32_t all = node->hosts & ~(1u << node->o.node);

	return (node->peers->greeted & all) == all;
}

void peers_start(struct node *node)
{
	struct peers *peers = node->peers = calloc(1, sizeof *peers);
	char name[32];

	if (!peers)
		die("out of memory");
	peers->listen_fd = -1;
	if (!node_shares_memory(node))
		return;
	snprintf(name, sizeof name, "node-%u.sock", node->o.node);
	peers->listen_fd = unix_listen(node->o.dir, name, peers->path, sizeof peers->path);
	peers->incoming = event_new(node->base, peers->listen_fd, EV_READ | EV_PERSIST, on_incoming, node);
	peers->retry = evtimer_new(node->base, on_retry, node);
	if (!peers->incoming || !peers->retry || event_add(peers->incoming, NULL))
		die("no memory for events");
	event_active(peers->retry, EV_TIMEOUT, 0);
}

void peers_close(struct node *node)
{
	struct peers *peers = node->peers;

	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		if (net_peer(node->net, peer)) {
			conn_flush(net_peer(node->net, peer), 100);
			conn_close(net_peer(node->net, peer));
			net_set_peer(node->net, peer, NULL);
		}
	if (peers->listen_fd >= 0) {
		event_free(peers->incoming);
		event_free(peers->retry);
		close(peers->listen_fd);
		unlink(peers->path);
	}
	free(peers);
}
