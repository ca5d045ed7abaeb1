/* clients.c - the control socket of node 0: `vmp run`, `vmp console`, `vmp regs`, `vmp pages`.
 *
 * One client is special: the one whose HELLO says CLIENT_KIND_RUN owns the machine.  The machine starts when it is there,
 * the streams are its, and the machine ends when it goes.  All others may come and go.
 *
 * Queries are answered by several nodes, perhaps to several clients at once: the client's slot travels in the upper byte
 * of the query's sequence number, and is taken out again before the answer goes to the client.
 */
#include "vmm/node/node.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/log.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/debugger.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/node/moves/policy.h"
#include "vmm/node/wire/conn.h"
#include "vmm/node/wire/localsock.h"

enum { SEQ_BITS = 24, SEQ_MASK = (1 << SEQ_BITS) - 1 };

static char control_path[108];

static struct client_slot *run_client(const struct node *node)
{
	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		if (node->client[i].conn && node->client[i].greeted && node->client[i].kind == CLIENT_KIND_RUN)
			return (struct client_slot *)&node->client[i];
	return NULL;
}

bool clients_have_run(const struct node *node)
{
	return run_client(node) != NULL;
}

/* 0, or -ENOBUFS: for console output that is no loss, the rest has flow control and never comes so far. */
static void send_to(struct client_slot *slot, const struct msg_header *header, const void *body)
{
	if (conn_send(slot->conn, header, body, header->bytes, NULL, 0) == -ENOBUFS)
		log_warn("%s does not take its messages: a %s is lost", conn_name(slot->conn), wire_type_name(header->type));
}

bool clients_send_run(struct node *node, const struct msg_header *header, const void *body)
{
	struct client_slot *slot = run_client(node);

	if (!slot)
		return false;
	send_to(slot, header, body);
	return true;
}

void clients_send_all(struct node *node, enum msg_type type, const void *body, uint32_t body_bytes, const void *payload,
		      uint32_t payload_bytes)
{
	struct msg_header header = { .type = type, .version = WIRE_VERSION, .bytes = body_bytes + payload_bytes,
				     .to = VNODE_CLI, .from_node = node->o.node };

	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		if (node->client[i].conn)
			conn_send(node->client[i].conn, &header, body, body_bytes, payload, payload_bytes);
}

void clients_send_console(struct node *node, const struct msg_header *header, const void *body)
{
	struct msg_console console;

	memcpy(&console, body, sizeof console);
	for (unsigned i = 0; i < MAX_CLIENTS; i++) {
		struct client_slot *slot = &node->client[i];

		if (slot->conn && slot->console && (console.client == CONSOLE_ALL || console.client == i))
			send_to(slot, header, body);
	}
}

uint32_t clients_tag(unsigned client, uint32_t seq)
{
	return (seq & SEQ_MASK) | client << SEQ_BITS;
}

/* Of, and the sequence number, are the first two words of all answers' bodies. */
struct query { uint32_t of, seq; };
_Static_assert(sizeof(struct query) == sizeof(struct msg_dump) && sizeof(struct query) == sizeof(struct msg_stats) &&
		       sizeof(struct query) == sizeof(struct msg_pages) &&
		       offsetof(struct query, seq) == offsetof(struct msg_cpu_moved, seq) &&
		       offsetof(struct query, seq) == offsetof(struct msg_host, seq) &&
		       offsetof(struct query, seq) == offsetof(struct msg_policy, seq), "one layout for all queries");

void clients_send_answer(struct node *node, const struct msg_header *header, const void *body)
{
	struct query query;
	struct client_slot *slot;

	memcpy(&query, body, sizeof query);
	slot = &node->client[query.seq >> SEQ_BITS & (MAX_CLIENTS - 1)];
	query.seq &= SEQ_MASK;
	if (!slot->conn)
		return; /* it has gone since */
	if (conn_send(slot->conn, header, &query, sizeof query, (const char *)body + sizeof query,
		      header->bytes - sizeof query))
		log_warn("%s does not take its answers", conn_name(slot->conn));
}

static void forward_query(struct node *node, unsigned number, const struct msg_header *header, const void *body)
{
	struct query query;
	bool of_cpu = header->type == MSG_DUMP_REQUEST;

	memcpy(&query, body, sizeof query);
	if (of_cpu ? query.of >= node->o.machine.cpus : !node_has_host(node, query.of)) {
		log_warn("a query about %s %u, which this machine does not have", of_cpu ? "CPU" : "host", query.of);
		return;
	}
	query.seq = clients_tag(number, query.seq);
	net_send(node->net, of_cpu ? VNODE_CPU(query.of) : VNODE_DAEMON(query.of), header->type, &query, sizeof query, NULL, 0);
}

/* Its number goes in front of what a client sends to the console, so that the I/O server can answer it alone. */
static void forward_console(struct node *node, unsigned number, const struct msg_header *header, const void *body)
{
	struct msg_console console;

	memcpy(&console, body, sizeof console);
	console.client = number;
	net_send(node->net, VNODE_IOSRV, header->type, &console, sizeof console, (const char *)body + sizeof console,
		 header->bytes - sizeof console);
}

static void attach_console(struct node *node, unsigned number, const void *body)
{
	struct msg_console_attach attach;

	memcpy(&attach, body, sizeof attach);
	attach.client = number;
	node->client[number].console = true;
	net_send(node->net, VNODE_IOSRV, MSG_CONSOLE_ATTACH, &attach, sizeof attach, NULL, 0);
}

static void greet(struct node *node, struct conn *conn, const void *body)
{
	static const char *const names[] = { "vmp run", "a console client", "a query" };
	struct msg_hello hello, ours = { .wire_version = WIRE_VERSION, .role = PEER_DAEMON, .index = node->o.node };
	struct msg_header header = { .type = MSG_HELLO, .version = WIRE_VERSION, .bytes = sizeof ours };
	struct client_slot *slot = &node->client[conn_index(conn)];

	memcpy(&hello, body, sizeof hello);
	if (hello.wire_version != WIRE_VERSION || hello.role != PEER_CLI || hello.index > CLIENT_KIND_QUERY || slot->greeted ||
	    (hello.index == CLIENT_KIND_RUN && clients_have_run(node))) {
		log_warn("a command line introduced itself wrongly: refused");
		slot->conn = NULL;
		conn_close(conn);
		return;
	}
	slot->kind = hello.index;
	slot->greeted = true;
	log_debug("%s connected", names[slot->kind]);
	conn_send(conn, &header, &ours, sizeof ours, NULL, 0);
	hosts_tell_client(node, conn);
	if (slot->kind != CLIENT_KIND_RUN)
		return;
	if (node->ending) { /* the machine failed before: now there is somebody to hear it */
		node->end_told = true;
		clients_send_all(node, MSG_MACHINE_END, &node->end, sizeof node->end, node->end_line, strlen(node->end_line));
		supervise_proceed(node);
	} else {
		node_check_ready(node);
	}
}

static void on_client_message(struct conn *conn, const struct msg_header *header, const void *body)
{
	struct node *node = conn_owner(conn);
	unsigned number = conn_index(conn);
	struct msg_header readdressed = *header;

	readdressed.to = VNODE_IOSRV;
	if (header->type != MSG_HELLO && !node->client[number].greeted) {
		log_warn("a command line began with %s: refused", wire_type_name(header->type));
		node->client[number].conn = NULL;
		conn_close(conn);
		return;
	}
	switch (header->type) {
	case MSG_HELLO:
		greet(node, conn, body);
		break;
	case MSG_STREAM:
	case MSG_STREAM_ROOM:
	case MSG_CONSOLE_SIZE:
		net_forward(node->net, &readdressed, body);
		break;
	case MSG_CONSOLE:
		forward_console(node, number, header, body);
		break;
	case MSG_CONSOLE_ATTACH:
		attach_console(node, number, body);
		break;
	case MSG_DUMP_REQUEST:
	case MSG_STATS_REQUEST:
	case MSG_PAGES_REQUEST:
		forward_query(node, number, header, body);
		break;
	case MSG_CPU_MOVE: {
		struct msg_cpu_move move;

		memcpy(&move, body, sizeof move);
		moves_request(node, number, &move);
		break;
	}
	case MSG_POLICY: {
		struct msg_policy policy;

		memcpy(&policy, body, sizeof policy);
		policy_on_client(node, number, &policy);
		break;
	}
	case MSG_HOST:
		hosts_on_client(node, number, header, body);
		break;
	case MSG_SNAPSHOT:
	case MSG_SNAPSHOT_PULL:
	case MSG_SNAPSHOT_ITEM:
		freeze_on_client(node, number, header, body);
		break;
	case MSG_DEBUG:
		debug_on_client(node, number, header, body);
		break;
	case MSG_MACHINE_END: {
		struct msg_machine_end end;

		memcpy(&end, body, sizeof end);
		node->end_told |= node->client[number].kind == CLIENT_KIND_RUN; /* it has all that it waits for */
		node_end_message(node, &end, (const char *)body + sizeof end, header->bytes - sizeof end);
		supervise_proceed(node);
		break;
	}
	default:
		log_warn("unexpected message %s from %s: dropped", wire_type_name(header->type), conn_name(conn));
	}
}

static void on_client_closed(struct conn *conn, int reason)
{
	struct node *node = conn_owner(conn);
	struct client_slot *slot = &node->client[conn_index(conn)];
	bool was_run = slot->greeted && slot->kind == CLIENT_KIND_RUN;

	(void)reason;
	moves_forget_client(node, conn_index(conn));
	hosts_forget_client(node, conn_index(conn));
	policy_forget_client(conn_index(conn));
	*slot = (struct client_slot){ 0 };
	freeze_client_gone(node, conn_index(conn));
	if (!was_run)
		return;
	node_end(node, END_USER, 0, "vmp run is gone");
	node->end_told = true; /* and nobody else needs to be told why */
}

static const struct conn_handler client_handler = { on_client_message, on_client_closed, NULL };

static void on_incoming(evutil_socket_t listen_fd, short what, void *arg)
{
	struct node *node = arg;
	int fd = unix_accept(listen_fd);

	(void)what;
	if (fd < 0)
		return;
	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		if (!node->client[i].conn) {
			node->client[i] = (struct client_slot){ 0 };
			node->client[i].conn = conn_new(node->base, fd, "a command line", &client_handler, node, i);
			return;
		}
	log_warn("more than %d command lines are connected: refused", MAX_CLIENTS);
	close(fd);
}

/* Without the event loop: die() may have been called from anywhere in it. */
void clients_last_words(struct node *node, const char *line)
{
	enum { PATIENCE_MS = 2000 };
	struct msg_machine_end end = { .reason = END_FAILURE, .node = node->o.node };
	struct msg_header header = { .type = MSG_MACHINE_END, .version = WIRE_VERSION, .bytes = sizeof end + strlen(line),
				     .to = VNODE_CLI, .from_node = node->o.node };
	struct pollfd incoming = { .fd = node->control_fd, .events = POLLIN };
	struct iovec parts[3] = { { &header, sizeof header }, { &end, sizeof end }, { (void *)line, strlen(line) } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };
	int fd = -1;

	if (clients_have_run(node)) {
		clients_send_all(node, MSG_MACHINE_END, &end, sizeof end, line, strlen(line));
		conn_flush(run_client(node)->conn, PATIENCE_MS);
	} else if (node->control_event && poll(&incoming, 1, PATIENCE_MS) == 1) {
		fd = unix_accept(node->control_fd);
		if (fd >= 0 && sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
			log_warn("nobody could be told: %s", strerror(errno));
	}
	if (node->control_event)
		unlink(control_path);
}

void clients_listen(struct node *node)
{
	node->control_fd = unix_listen(node->o.dir, "control.sock", control_path, sizeof control_path);
	node->control_event = event_new(node->base, node->control_fd, EV_READ | EV_PERSIST, on_incoming, node);
	if (!node->control_event || event_add(node->control_event, NULL))
		die("no memory for events");
}

/* The last words go out before the socket closes. */
void clients_close(struct node *node)
{
	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		if (node->client[i].conn) {
			conn_flush(node->client[i].conn, 200);
			conn_close(node->client[i].conn);
		}
	if (node->control_event) {
		event_free(node->control_event);
		close(node->control_fd);
		unlink(control_path);
	}
}
