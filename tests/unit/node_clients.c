/* node_clients.c - vmm/node/wire/clients.c: what comes for a command line that has left does not
 * reach the one that has its slot now.  The rest of the daemon is played.
 */
#include <string.h>
#include "base/agent_abi.h"
#include "tests/unit/unit.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/debugger.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/node/moves/policy.h"
#include "vmm/node/node.h"
#include "vmm/node/wire/conn.h"

static struct node node;
/* what the daemon last sent to the I/O server, and to whom it last sent a message */
static struct msg_exec to_iosrv;
static struct conn *heard;
/* whom the rest of the daemon has forgotten last, and how often; whether the machine has ended */
static unsigned forgotten, n_forgotten, closed;
static bool ended;

/* ---- the rest of the daemon ---- */

void net_send(struct net *net, vnode_t to, enum msg_type type, const void *body,
	      uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	(void)net, (void)payload, (void)payload_bytes;
	CU_ASSERT(to == VNODE_IOSRV && type == MSG_EXEC && body_bytes == sizeof to_iosrv);
	memcpy(&to_iosrv, body, sizeof to_iosrv);
}
void conn_rename(struct conn *conn, const char *name, const struct conn_handler *handler,
		 unsigned index)
{
	(void)name;
	conn->handler = handler;
	conn->index = index;
}
bool debug_stops_all(const struct node *n) { (void)n; return false; }
bool dispatch_from_client(struct node *n, const struct message *m)
{
	if (m->header.type == MSG_HELLO)
		clients_on_hello(n, m, m->body);
	else
		clients_on_exec(n, m, m->body);
	return true;
}
void freeze_client_gone(struct node *n, unsigned client)
{
	(void)n;
	forgotten = client;
	n_forgotten++;
}
void hosts_forget_client(struct node *n, unsigned client) { (void)n, (void)client; }
void hosts_tell_client(struct node *n, struct conn *conn) { (void)n, (void)conn; }
void moves_forget_client(struct node *n, unsigned client) { (void)n, (void)client; }
void policy_forget_client(struct node *n, unsigned client) { (void)n, (void)client; }
void node_check_ready(struct node *n) { (void)n; }
void node_end(struct node *n, enum end_reason reason, uint32_t status, const char *format, ...)
{
	(void)n, (void)reason, (void)status, (void)format;
	ended = true;
}
void node_end_message(struct node *n, const struct msg_machine_end *end, const char *line,
		      unsigned bytes)
{
	(void)n, (void)end, (void)line, (void)bytes;
}
void supervise_proceed(struct node *n) { (void)n; }

static int op_send(struct conn *conn, const struct msg_header *header, const void *body,
		   uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	(void)header, (void)body, (void)body_bytes, (void)payload, (void)payload_bytes;
	heard = conn;
	return 0;
}
static void op_close(struct conn *conn)
{
	(void)conn;
	closed++;
}
static const struct conn_ops conn_ops = { .send = op_send, .close = op_close };

/* ---- command lines ---- */

static void comes(struct conn *conn)
{
	*conn = (struct conn){ .ops = &conn_ops, .owner = &node };
	CU_ASSERT_TRUE_FATAL(clients_take(&node, conn));
	node.client[conn->index].greeted = true;
	node.client[conn->index].kind = CLIENT_KIND_QUERY;
}

static void goes(struct conn *conn) { conn->handler->on_closed(conn, 0); }

static void runs_command(struct conn *conn)
{
	const struct msg_exec exec = { .token = 1, .kind = AGENT_START };
	struct msg_header header = packet_header(MSG_EXEC, VNODE_IOSRV, 0, sizeof exec);
	struct message m = packet_message(&header, &exec);

	m.from = conn->index;
	conn->handler->on_message(conn, &m);
}

static struct conn *gets_frame(struct msg_exec exec)
{
	struct msg_header header = packet_header(MSG_EXEC, VNODE_CLI, 0, sizeof exec);

	heard = NULL;
	clients_send_exec(&node, &header, &exec);
	return heard;
}

static void frames_reach_their_client(void)
{
	struct conn one, two;
	struct msg_exec first, second;

	comes(&one), comes(&two);
	runs_command(&one);
	first = to_iosrv;
	runs_command(&two);
	second = to_iosrv;
	CU_ASSERT(gets_frame(first) == &one && gets_frame(second) == &two);
	goes(&one);
	CU_ASSERT(to_iosrv.kind == AGENT_HANGUP && to_iosrv.client == first.client);
	CU_ASSERT(gets_frame(first) == NULL && gets_frame(second) == &two);
	goes(&two);
}

/* The guest's last words to a command whose client has left come late, and the next client has its
 * slot, with the same token. */
static void late_frames_are_dropped(void)
{
	struct conn before, after;
	struct msg_exec late;

	comes(&before);
	runs_command(&before);
	late = to_iosrv;
	goes(&before);
	comes(&after);
	CU_ASSERT(after.index == before.index);
	runs_command(&after);
	CU_ASSERT(gets_frame(late) == NULL);
	CU_ASSERT(gets_frame(to_iosrv) == &after);
	goes(&after);
}

static void frames_that_name_nobody(void)
{
	CU_ASSERT(gets_frame((struct msg_exec){ .client = UINT32_MAX }) == NULL);
	CU_ASSERT(gets_frame((struct msg_exec){ .client = 0 }) == NULL);
}

static void says_hello(struct conn *conn, enum client_kind kind)
{
	const struct msg_hello hello = { .wire_version = wire_version, .role = PEER_CLI,
					 .index = kind };
	struct msg_header header = packet_header(MSG_HELLO, VNODE_DAEMON(0), 0, sizeof hello);
	struct message m = packet_message(&header, &hello);

	m.from = conn->index;
	conn->handler->on_message(conn, &m);
}

/* A client that introduces itself twice is refused, and is as gone as one that has left. */
static void a_second_hello(void)
{
	static const enum client_kind kinds[] = { CLIENT_KIND_QUERY, CLIENT_KIND_RUN };
	struct conn one, two;

	for (unsigned i = 0; i < 2; i++) {
		comes(&one);
		node.client[one.index].greeted = false;
		says_hello(&one, kinds[i]);
		CU_ASSERT(node.client[one.index].greeted && node.client[one.index].conn == &one);
		runs_command(&one);
		n_forgotten = closed = 0;
		ended = false;
		says_hello(&one, CLIENT_KIND_QUERY);
		CU_ASSERT(to_iosrv.kind == AGENT_HANGUP && closed == 1);
		CU_ASSERT(n_forgotten == 1 && forgotten == one.index);
		CU_ASSERT_EQUAL(ended, kinds[i] == CLIENT_KIND_RUN);
		CU_ASSERT_PTR_NULL(node.client[one.index].conn);
		CU_ASSERT_FALSE(node.client[one.index].greeted || node.client[one.index].execs);
	}
	comes(&two);
	CU_ASSERT_EQUAL(two.index, one.index);
	goes(&two);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "frames reach their client", frames_reach_their_client },
		{ "late frames are dropped", late_frames_are_dropped },
		{ "frames that name nobody", frames_that_name_nobody },
		{ "a second hello", a_second_hello },
		UNIT_END
	};

	return UNIT_RUN("clients", tests);
}
