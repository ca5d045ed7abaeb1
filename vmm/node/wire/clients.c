/* clients.c - node 0's command lines: `vmp run`, `vmp console`, `vmp exec`, and commands that ask.
 * They connect to the control socket (control.c).
 *
 * One client is special: the one whose HELLO says CLIENT_KIND_RUN owns the machine.  The machine
 * starts when it is connected, it has the command's streams, and the machine ends when it leaves.
 * All others may come and go.
 *
 * Queries are answered by several nodes, perhaps to several clients at once.  The client's slot is
 * in the upper byte of the query's sequence number, and is removed before the answer goes to the
 * client.  So are three bits that change with each client of the slot: an answer for one that has
 * left does not go to its successor.  Frames of `vmp exec` carry the same tag, as `client`.
 */
#include "vmm/node/node.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/agent_abi.h"
#include "base/log.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/debugger.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/node/moves/policy.h"
#include "vmm/node/wire/conn.h"
#include "vmm/shared/stats.h"

/* A tag: the sequence number, the slot, and the number of the client within the slot, which counts
 * from 1 to LIFE_MASK and begins again.  So no tag is 0.  The answers that every node sends at its
 * end have the tag 0: they are for `vmp run`. */
enum { SEQ_BITS = 24, SEQ_MASK = (1 << SEQ_BITS) - 1, SLOT_BITS = 5, LIFE_MASK = 7 };
_Static_assert(MAX_CLIENTS == 1 << SLOT_BITS, "a slot in a tag");

static struct client_slot *run_client(const struct node *node)
{
	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		if (node->client[i].conn && node->client[i].greeted &&
		    node->client[i].kind == CLIENT_KIND_RUN)
			return (struct client_slot *)&node->client[i];
	return NULL;
}

bool clients_have_run(const struct node *node)
{
	return run_client(node) != NULL;
}

/* Sends a message; drops it on -ENOBUFS.  Console output may be dropped; everything else has flow
 * control and never fills the queue, except the trace, whose machine has ended: this waits. */
static void send_to(struct client_slot *slot, const struct msg_header *header, const void *body)
{
	int error = conn_send(slot->conn, header, body, header->bytes, NULL, 0);

	if (error == -ENOBUFS && header->type == MSG_TRACE && !slot->stuck) {
		conn_flush(slot->conn, STATS_LIMIT_MS);
		error = conn_send(slot->conn, header, body, header->bytes, NULL, 0);
		slot->stuck = error == -ENOBUFS;
	}
	if (error == -ENOBUFS)
		log_warn_rarely("%s does not take its messages: a %s is lost",
				conn_name(slot->conn), wire_type_name(header->type));
}

bool clients_send_run(struct node *node, const struct msg_header *header, const void *body)
{
	struct client_slot *slot = run_client(node);

	if (!slot)
		return false;
	send_to(slot, header, body);
	return true;
}

void clients_send_all(struct node *node, enum msg_type type, const void *body, uint32_t body_bytes,
		      const void *payload, uint32_t payload_bytes)
{
	struct msg_header header = packet_header(type, VNODE_CLI, node->o.node,
						 body_bytes + payload_bytes);

	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		if (node->client[i].conn)
			conn_send(node->client[i].conn, &header, body, body_bytes, payload,
				  payload_bytes);
}

void clients_send_console(struct node *node, const struct msg_header *header, const void *body)
{
	struct msg_console console;

	memcpy(&console, body, sizeof console);
	for (unsigned i = 0; i < MAX_CLIENTS; i++) {
		struct client_slot *slot = &node->client[i];

		if (slot->conn && slot->console &&
		    (console.client == CONSOLE_ALL || console.client == i))
			send_to(slot, header, body);
	}
}

static uint32_t life_of(const struct client_slot *slot) { return 1 + slot->life % LIFE_MASK; }

/* Returns the slot of a tag's client; NULL: that client has left. */
static struct client_slot *slot_of(struct node *node, uint32_t tag)
{
	struct client_slot *slot = &node->client[tag >> SEQ_BITS & (MAX_CLIENTS - 1)];

	return slot->conn && tag >> (SEQ_BITS + SLOT_BITS) == life_of(slot) ? slot : NULL;
}

void clients_send_exec(struct node *node, const struct msg_header *header, const void *body)
{
	struct client_slot *slot;
	struct msg_exec exec;

	memcpy(&exec, body, sizeof exec);
	slot = slot_of(node, exec.client);
	if (slot && slot->execs)
		send_to(slot, header, body);
}

uint32_t clients_tag(const struct node *node, unsigned client, uint32_t seq)
{
	uint32_t life = client < MAX_CLIENTS ? life_of(&node->client[client]) : 0;

	return (seq & SEQ_MASK) | client << SEQ_BITS | life << (SEQ_BITS + SLOT_BITS);
}

/* A query is these two words and nothing else; the bodies of all answers begin with them. */
struct query { uint32_t of, seq; };
#define HAS_SEQ(body) (offsetof(body, seq) == offsetof(struct query, seq))

/* CHOOSE(WORD, other) is `chosen` where WORD is a macro `~, chosen`, and `other` elsewhere: so the
 * rows of msg.def with one handler can be checked, which may have members that others lack. */
#define SECOND(first, second, ...) second
#define CHOOSE(...) SECOND(__VA_ARGS__, ~)
#define UNCHECKED(name)

#define PAYLOAD_NONE ~, true
#define MESSAGE(name, number, body, bytes, payload) \
	HAS_NO_PAYLOAD_##name = CHOOSE(PAYLOAD_##payload, false),
enum {
#include "base/msg.def"
};

#define SERVED_BY_clients_on_query ~, CHECK_QUERY
#define CHECK_QUERY(name)                                                            \
	_Static_assert(sizeof(body_##name) == sizeof(struct query) &&                \
			       HAS_SEQ(body_##name) && HAS_NO_PAYLOAD_##name,        \
		       #name " is no query: its body must be one word and `seq`, and no payload");
#define CLIENT_TO_NODE(name, how, handler) CHOOSE(SERVED_BY_##handler, UNCHECKED)(name)
#include "base/msg.def"

#define SERVED_BY_route_on_answer ~, CHECK_ANSWER
#define CHECK_ANSWER(name)                   \
	_Static_assert(HAS_SEQ(body_##name), \
		       #name " is no answer: its body's second word must be `seq`");
#define NODE_TO_LEADER(name, how, handler) CHOOSE(SERVED_BY_##handler, UNCHECKED)(name)
#include "base/msg.def"

/* Those which node 0 itself gives. */
_Static_assert(HAS_SEQ(body_MOVE_NOTES) && HAS_SEQ(body_CPU_MOVED) && HAS_SEQ(body_HOST) &&
		       HAS_SEQ(body_POLICY) && HAS_SEQ(body_SNAPSHOT_ITEM),
	       "one layout for all answers");

void clients_send_answer(struct node *node, const struct msg_header *header, const void *body)
{
	struct query query;
	struct client_slot *slot;

	memcpy(&query, body, sizeof query);
	slot = query.seq ? slot_of(node, query.seq) : run_client(node);
	if (!slot)
		return;
	query.seq &= SEQ_MASK;
	if (conn_send(slot->conn, header, &query, sizeof query, (const char *)body + sizeof query,
		      header->bytes - sizeof query))
		log_warn("%s does not take its answers", conn_name(slot->conn));
}

void clients_on_query(struct node *node, const struct message *m)
{
	struct query query;
	bool of_cpu = m->header.type == MSG_DUMP_REQUEST;

	memcpy(&query, m->body, sizeof query);
	if (of_cpu ? query.of >= node->o.machine.cpus : !node_has_host(node, query.of)) {
		log_warn("a query about %s %u, which this machine does not have",
			 of_cpu ? "CPU" : "host", query.of);
		return;
	}
	query.seq = clients_tag(node, m->from, query.seq);
	net_send(node->net, of_cpu ? VNODE_CPU(query.of) : VNODE_DAEMON(query.of), m->header.type,
		 &query, sizeof query, NULL, 0);
}

void clients_on_frame(struct node *node, const struct message *m, const struct msg_frame *body)
{
	struct msg_frame frame = *body;

	if (frame.cpu >= node->o.machine.cpus) {
		log_warn("a query about CPU %u, which this machine does not have", frame.cpu);
		return;
	}
	frame.seq = clients_tag(node, m->from, frame.seq);
	net_send(node->net, VNODE_CPU(frame.cpu), MSG_FRAME_REQUEST, &frame, sizeof frame, NULL, 0);
}

/* Adds the client's number to its console input, so that the I/O server can answer this client
 * alone. */
void clients_on_console(struct node *node, const struct message *m, const struct msg_console *body)
{
	struct msg_console console = *body;

	console.client = m->from;
	net_send(node->net, VNODE_IOSRV, MSG_CONSOLE, &console, sizeof console, m->payload,
		 m->payload_bytes);
}

void clients_on_attach(struct node *node, const struct message *m,
		       const struct msg_console_attach *body)
{
	struct msg_console_attach attach = *body;

	attach.client = m->from;
	node->client[m->from].console = true;
	net_send(node->net, VNODE_IOSRV, MSG_CONSOLE_ATTACH, &attach, sizeof attach, NULL, 0);
}

/* Refuses a command, since the guest's agent could not answer. */
static void refuse_exec(struct node *node, const struct msg_exec *exec)
{
	static const char why[] = "the machine is stopped by a debugger: let it continue there";
	struct { struct msg_exec exec; char why[sizeof why]; } packet = { .exec = *exec };
	struct msg_header header = packet_header(MSG_EXEC, VNODE_CLI, node->o.node,
						 sizeof packet.exec + sizeof why - 1);

	packet.exec.kind = AGENT_REFUSED;
	memcpy(packet.why, why, sizeof why);
	clients_send_exec(node, &header, &packet);
}

void clients_on_exec(struct node *node, const struct message *m, const struct msg_exec *body)
{
	struct msg_exec exec = *body;

	exec.client = clients_tag(node, m->from, 0);
	node->client[m->from].execs = true;
	if (exec.kind == AGENT_SPEC && debug_stops_all(node)) {
		refuse_exec(node, &exec);
		return;
	}
	net_send(node->net, VNODE_IOSRV, MSG_EXEC, &exec, sizeof exec, m->payload,
		 m->payload_bytes);
}

/* Tells the guest's agent that nobody waits for the command any more. */
static void hang_up(struct node *node, unsigned client)
{
	struct msg_exec exec = { .client = clients_tag(node, client, 0), .kind = AGENT_HANGUP };

	if (!node->ending)
		net_send(node->net, VNODE_IOSRV, MSG_EXEC, &exec, sizeof exec, NULL, 0);
}

/* Drops what a client had asked for that is gone, or is refused.  The machine of `vmp run` ends. */
static void forget_client(struct node *node, unsigned client)
{
	struct client_slot *slot = &node->client[client];
	bool was_run = slot->greeted && slot->kind == CLIENT_KIND_RUN;

	moves_forget_client(node, client);
	hosts_forget_client(node, client);
	policy_forget_client(node, client);
	if (slot->execs)
		hang_up(node, client);
	*slot = (struct client_slot){ .life = slot->life };
	freeze_client_gone(node, client);
	if (!was_run)
		return;
	node_end(node, END_USER, 0, "vmp run is gone");
	node->end_told = true; /* nobody else needs to be told why */
}

static void refuse(struct node *node, unsigned client)
{
	struct conn *conn = node->client[client].conn;

	forget_client(node, client);
	conn_close(conn);
}

void clients_on_hello(struct node *node, const struct message *m, const struct msg_hello *hello)
{
	static const char *const names[] = { "vmp run", "a console client", "a query" };
	struct msg_hello ours = { .wire_version = wire_version,
				  .role = PEER_DAEMON,
				  .index = node->o.node };
	struct msg_header header = packet_header(MSG_HELLO, VNODE_CLI, node->o.node, sizeof ours);
	struct client_slot *slot = &node->client[m->from];

	if (hello->wire_version != wire_version || hello->role != PEER_CLI ||
	    hello->index > CLIENT_KIND_QUERY || slot->greeted ||
	    (hello->index == CLIENT_KIND_RUN && clients_have_run(node))) {
		log_warn("a command line introduced itself wrongly: refused");
		refuse(node, m->from);
		return;
	}
	slot->kind = hello->index;
	slot->greeted = true;
	log_debug("%s connected", names[slot->kind]);
	conn_send(slot->conn, &header, &ours, sizeof ours, NULL, 0);
	hosts_tell_client(node, slot->conn);
	if (slot->kind != CLIENT_KIND_RUN)
		return;
	if (node->ending) { /* the machine failed before this client was connected */
		node->end_told = true;
		clients_send_all(node, MSG_MACHINE_END, &node->end, sizeof node->end,
				 node->end_line, strlen(node->end_line));
		supervise_proceed(node);
	} else {
		node_check_ready(node);
	}
}

void clients_on_end(struct node *node, const struct message *m, const struct msg_machine_end *end)
{
	/* it has everything that it waits for */
	node->end_told |= node->client[m->from].kind == CLIENT_KIND_RUN;
	node_end_message(node, end, m->payload, m->payload_bytes);
	supervise_proceed(node);
}

static void on_client_message(struct conn *conn, const struct message *m)
{
	struct node *node = conn_owner(conn);

	if (m->header.type != MSG_HELLO && !node->client[m->from].greeted) {
		log_warn("a command line began with %s: refused", wire_type_name(m->header.type));
		refuse(node, m->from);
	} else {
		/* the link's check has refused all other messages */
		bug_on(!dispatch_from_client(node, m));
	}
}

/* A command line of any version understands a HELLO well enough to report that this daemon has
 * another version. */
static void tell_version(struct node *node, int fd)
{
	struct msg_hello ours = { .wire_version = wire_version,
				  .role = PEER_DAEMON,
				  .index = node->o.node };
	struct msg_header header = packet_header(MSG_HELLO, VNODE_CLI, node->o.node, sizeof ours);

	if (packet_send(fd, &header, &ours, sizeof ours, NULL, 0, false))
		log_debug("a command line of another version has gone already");
}

static void on_client_closed(struct conn *conn, int reason)
{
	struct node *node = conn_owner(conn);

	if (reason == -EPROTONOSUPPORT)
		tell_version(node, conn_fd(conn));
	forget_client(node, conn_index(conn));
}

static const struct conn_handler client_handler = { LINK_CLIENT_TO_NODE, on_client_message,
						    on_client_closed, NULL };

bool clients_take(struct node *node, struct conn *conn)
{
	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		if (!node->client[i].conn) {
			node->client[i] = (struct client_slot){
				.conn = conn, .life = node->client[i].life + 1
			};
			conn_rename(conn, "a command line", &client_handler, i);
			return true;
		}
	return false;
}

/* Flushes what is queued for `vmp run`. */
void clients_flush_run(struct node *node, int timeout_ms)
{
	struct client_slot *slot = run_client(node);

	if (slot)
		conn_flush(slot->conn, timeout_ms);
}

/* Sends the last messages before the sockets close. */
void clients_close(struct node *node)
{
	for (unsigned i = 0; i < MAX_CLIENTS; i++)
		if (node->client[i].conn) {
			conn_flush(node->client[i].conn, 200);
			conn_close(node->client[i].conn);
		}
}
