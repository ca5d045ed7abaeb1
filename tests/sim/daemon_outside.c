/* daemon_outside.c - what is passed in to daemon-sim's daemons besides their loops
 * (vmm/node/outside.h): children, connections to them and to command lines, the overlay. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "tests/sim/daemons.h"
#include "tests/sim/nowhere.h"

enum { MAX_DEAD = 256 };

static struct {
	struct sim_conn child[MAX_NODES][PORTS], client[LAST_CLIENT + 1];
	struct { unsigned n; uint32_t pid[MAX_DEAD]; } dead[MAX_NODES]; /* to be reaped */
	uint32_t next_pid;
} outside;

/* ---- connections ---- */

static bool is_client(const struct sim_conn *c) { return c->port >= PORT_OWNER; }

/* Checks why a machine ends, whoever says so: the only allowed reason is that a host was lost. */
static void check_end(const struct packet *packet)
{
	struct msg_machine_end end;
	struct daemon *first = &daemons[0];

	memcpy(&end, packet->body, sizeof end);
	if (end.reason != END_PART_DIED)
		sim_fail(machine, "node %u ends the machine: %.*s", end.node,
			 (int)(packet->header.bytes - sizeof end),
			 (const char *)packet->body + sizeof end);
	if (!end.lost) {
		machine->broken = true;
		return;
	}
	if (!daemons[end.lost - 1].dead && !daemons[end.lost - 1].silent &&
	    !daemons[end.node].silent)
		sim_fail(machine, "node %u takes node %u for dead", end.node, end.lost - 1);
	/* the host may have died just before it became a part of the machine */
	machine->broken |= node_has_host(&first->node, end.node) &&
			   node_has_host(&first->node, end.lost - 1);
}

void outside_check_end(const struct packet *packet)
{
	if (packet->header.type == MSG_MACHINE_END)
		check_end(packet);
}

/* A command line gets what the daemon sends it. */
static void to_client(unsigned number, const struct packet *packet, uint32_t bytes)
{
	struct msg_snapshot_item item = { 0 };
	struct msg_hosts hosts;

	outside_check_end(packet);
	if (packet->header.type == MSG_SNAPSHOT_ITEM)
		memcpy(&item, packet->body, sizeof item);
	if (packet->header.type == MSG_SNAPSHOT_ITEM && item.kind == SNAPSHOT_MACHINE)
		witness_take(&world_cut);
	if (packet->header.type == MSG_HELLO)
		return;
	if (!number)
		return world_after(WORLD_TO_OWNER, OWNER, PORT_OWNER, 0, packet, bytes);
	if (packet->header.type == MSG_HOSTS) {
		memcpy(&hosts, packet->body, sizeof hosts);
		client_on_hosts(number, hosts.present);
	} else if (packet->header.type != MSG_MACHINE_END) {
		client_on_answer(number, &packet->header, packet->body);
	}
}

static int op_send(struct conn *conn, const struct msg_header *header, const void *body,
		   uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	struct sim_conn *c = (struct sim_conn *)conn;
	struct packet packet;
	uint32_t bytes;

	if (!c->open)
		return -EPIPE;
	bytes = world_pack(&packet, header, body, body_bytes, payload, payload_bytes);
	if (is_client(c))
		to_client(c->number, &packet, bytes);
	else
		world_after(WORLD_TO_CHILD, c->node, c->port, c->number, &packet, bytes);
	return 0;
}

/* What a child has sent arrives before its death, and all is sent at once. */
static void op_drain(struct conn *conn) { (void)conn; }
static void op_flush(struct conn *conn, int timeout_ms) { (void)conn, (void)timeout_ms; }
static void op_close(struct conn *conn) { ((struct sim_conn *)conn)->open = false; }
static size_t op_queued_bytes(const struct conn *conn) { (void)conn; return 0; }

static void open_conn(struct sim_conn *c, unsigned node, unsigned port, uint32_t number)
{
	static const struct conn_ops ops = { op_send, op_drain, op_flush, op_close,
					     op_queued_bytes };

	*c = (struct sim_conn){ .conn = { .ops = &ops, .owner = &daemons[node].node, .fd = -1 },
				.node = node, .port = port, .number = number, .open = true };
}

static void hear(struct sim_conn *c, const struct msg_header *header, const void *body)
{
	struct message m = packet_message(header, body);

	m.from = c->conn.index;
	c->conn.handler->on_message(&c->conn, &m);
}

static void greet(struct sim_conn *c, enum peer_role role, uint32_t index)
{
	const struct msg_hello hello = { .wire_version = wire_version, .role = role,
					 .index = index };
	const struct msg_header header = packet_header(MSG_HELLO, 0, c->node, sizeof hello);

	hear(c, &header, &hello);
}

static void close_conn(struct sim_conn *c)
{
	if (!c->open)
		return;
	c->open = false;
	c->conn.handler->on_closed(&c->conn, 0);
}

/* ---- command lines ---- */

void outside_client_comes(unsigned number)
{
	struct sim_conn *c = &outside.client[number];

	if (c->open)
		return;
	open_conn(c, 0, number ? PORT_CLIENT : PORT_OWNER, number);
	if (!clients_take(&daemons[0].node, &c->conn))
		sim_fail(machine, "node 0 takes no more command lines");
	greet(c, PEER_CLI, number ? CLIENT_KIND_QUERY : CLIENT_KIND_RUN);
}

void outside_client_goes(unsigned number) { close_conn(&outside.client[number]); }

void outside_from_client(unsigned number, const struct packet *packet)
{
	outside_client_comes(number);
	hear(&outside.client[number], &packet->header, packet->body);
}

/* ---- children ---- */

static unsigned port_of(const struct child *child)
{
	return child->role == CHILD_IOSRV ? PORT_IOSRV : child->cpu;
}

static int start(struct node *node, struct child *child, const struct child_program *program,
		 char *why, size_t why_bytes)
{
	unsigned port = port_of(child);
	struct sim_conn *c = &outside.child[node->o.node][port];

	(void)why, (void)why_bytes;
	bug_on(child->pid);
	if (port == PORT_IOSRV)
		io_start(node->o.machine.restore);
	child->pid = (pid_t)++outside.next_pid;
	open_conn(c, node->o.node, port, (uint32_t)child->pid);
	conn_rename(&c->conn, child->name, program->handler, child->cpu);
	child->conn = &c->conn;
	world_after(WORLD_CHILD_READY, node->o.node, port, (uint32_t)child->pid, NULL, 0);
	return 0;
}

static void kill_child(struct node *node, struct child *child, int signal_number)
{
	(void)signal_number;
	if (node->ending && child->role == CHILD_MONITOR &&
	    machine->cpus[child->cpu].node == node->o.node)
		cpu_hold(machine, child->cpu);
	children_kill(node->o.node, port_of(child), (uint32_t)child->pid);
}

static pid_t reap(struct node *node, int *status)
{
	uint32_t *pid = outside.dead[node->o.node].pid, first = pid[0];

	if (!outside.dead[node->o.node].n)
		return 0;
	memmove(pid, pid + 1, --outside.dead[node->o.node].n * sizeof *pid);
	*status = SIGKILL;
	return (pid_t)first;
}

void outside_child_ready(unsigned node, unsigned port)
{
	greet(&outside.child[node][port], port == PORT_IOSRV ? PEER_IOSRV : PEER_MONITOR, port);
}

void outside_from_child(unsigned node, unsigned port, const struct packet *packet)
{
	struct sim_conn *c = &outside.child[node][port];

	if (c->open)
		hear(c, &packet->header, packet->body);
}

void outside_child_died(unsigned node, unsigned port, uint32_t pid)
{
	struct sim_conn *c = &outside.child[node][port];

	bug_on(outside.dead[node].n == MAX_DEAD);
	outside.dead[node].pid[outside.dead[node].n++] = pid;
	if (c->number == pid)
		close_conn(c);
	loops_signal(node, SIGCHLD);
}

/* ---- the overlay, and this computer ---- */

static bool reaches(const struct node *node, unsigned peer)
{
	return !(daemons[node->o.node].lost >> peer & 1);
}

static bool reaches_all(const struct node *node) { return daemons[node->o.node].connected; }

/* Each host may use a few processors, so that a policy finds room there. */
static bool processors(cpu_set_t *allowed)
{
	CPU_ZERO(allowed);
	for (unsigned i = sim_random(machine, 4); i < 4; i++)
		CPU_SET(i, allowed);
	return true;
}

static uint32_t load_percent(void)
{
	policies_measure();
	return sim_random(machine, 200);
}

const struct outside outside_sim = {
	NOWHERE,
	.has_more = pages_has_more,
	.reaches = reaches,
	.reaches_all = reaches_all,
	.start = start,
	.kill = kill_child,
	.reap = reap,
	.processors = processors,
	.load_percent = load_percent,
};

void outside_forget(unsigned node)
{
	for (unsigned port = 0; port < PORTS; port++)
		outside.child[node][port].open = false;
	for (unsigned number = 0; node == 0 && number <= LAST_CLIENT; number++)
		outside.client[number].open = false;
	outside.dead[node].n = 0;
}
