/* route.c - which message goes where: one dispatch switch per kind of child, and one handler per type for what arrives for
 * the roles of this node (CPUs that live here; on node 0 also the I/O server and the command lines).
 *
 * A child's word is not trusted further than its part goes: where its message goes is decided by the message's type and
 * body, not by the address that it wrote.
 */
#include "vmm/node/node.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/guest_abi.h"
#include "base/log.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/debugger.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/node/wire/conn.h"

static void end_by_message(struct node *node, const struct msg_header *header, const void *body)
{
	struct msg_machine_end end;

	memcpy(&end, body, sizeof end);
	node_end_message(node, &end, (const char *)body + sizeof end, header->bytes - sizeof end);
}

/* Give a message to a child of ours. It reads little and often: a full queue means that it has stopped. */
void route_to_child(struct node *node, struct child *child, const struct msg_header *header, const void *body)
{
	if (!child->conn)
		return;
	if (conn_send(child->conn, header, body, header->bytes, NULL, 0) == -ENOBUFS)
		node_end(node, END_FAILURE, 0, "the %s does not take its messages", child->name);
}

void route_to_cpu(struct node *node, unsigned cpu, const struct msg_header *header, const void *body)
{
	if (!node_has_cpu(node, cpu)) {
		log_error("%s for CPU %u, which is not here", wire_type_name(header->type), cpu);
		return;
	}
	route_to_child(node, &node->monitor[cpu], header, body);
	hostshm_post(node->shm, cpu, POST_MESSAGE);
}

static void resend(struct node *node, vnode_t to, const struct msg_header *header, const void *body)
{
	struct msg_header readdressed = *header;

	readdressed.to = to;
	readdressed.from_node = node->o.node;
	net_forward(node->net, &readdressed, body);
}

/* --- interrupts and CPU starts -------------------------------------------------------------------------------------- */

static void post_here(struct node *node, unsigned cpu, const struct msg_interrupt *interrupt)
{
	if (interrupt->kind == INTERRUPT_NMI)
		hostshm_post(node->shm, cpu, POST_NMI);
	else
		hostshm_post_interrupt(node->shm, cpu, (uint8_t)interrupt->vector);
}

/* One message to `home` for all CPUs of `mask` that are there; returns which these are. */
static uint32_t send_interrupt(struct node *node, int home, uint32_t mask, const struct msg_interrupt *interrupt)
{
	struct msg_interrupt part = *interrupt;

	part.cpu_mask = 0;
	for (uint32_t left = mask; left; left &= left - 1)
		if (net_node_of(node->net, VNODE_CPU(__builtin_ctz(left))) == home)
			part.cpu_mask |= left & -left;
	net_send(node->net, VNODE_CPU(__builtin_ctz(part.cpu_mask)), MSG_INTERRUPT, &part, sizeof part, NULL, 0);
	return part.cpu_mask;
}

void route_interrupt(struct node *node, const struct msg_interrupt *interrupt)
{
	uint32_t left = interrupt->cpu_mask, done;

	for (; left; left &= ~done) {
		unsigned cpu = __builtin_ctz(left);
		int home = cpu < node->o.machine.cpus ? net_node_of(node->net, VNODE_CPU(cpu)) : -1;

		done = 1u << cpu;
		if (node_has_cpu(node, cpu))
			post_here(node, cpu, interrupt);
		else if (home >= 0 && home != (int)node->o.node)
			done = send_interrupt(node, home, left, interrupt);
		else
			log_error("an interrupt for CPU %u, which is nowhere: dropped", cpu);
	}
}

static void on_interrupt(void *ctx, const struct msg_header *header, const void *body)
{
	struct msg_interrupt interrupt;

	(void)header;
	memcpy(&interrupt, body, sizeof interrupt);
	route_interrupt(ctx, &interrupt);
}

void route_start_cpu(struct node *node, unsigned cpu, uint32_t eip)
{
	if (!node_has_cpu(node, cpu)) {
		log_error("CPU %u cannot be started here", cpu);
		return;
	}
	atomic_store(&node->shm->slot[cpu].start_eip, eip);
	hostshm_post(node->shm, cpu, POST_START);
}

static void on_cpu_start(void *ctx, const struct msg_header *header, const void *body)
{
	struct msg_cpu_start start;

	(void)header;
	memcpy(&start, body, sizeof start);
	route_start_cpu(ctx, start.cpu, start.eip);
}

/* --- what arrives for this node's other roles ----------------------------------------------------------------------- */

static void userland_is_there(struct node *node)
{
	struct msg_machine_up up = { .boot_ns = node_now_ns() - node->boot_ns };
	struct msg_header header = { .type = MSG_MACHINE_UP, .version = WIRE_VERSION, .bytes = sizeof up, .to = VNODE_CLI,
				     .from_node = node->o.node };

	node->user_ns = node_now_ns();
	clients_send_run(node, &header, &up);
}

static void on_io_request(void *ctx, const struct msg_header *header, const void *body)
{
	struct node *node = ctx;
	struct msg_io_request request;

	memcpy(&request, body, sizeof request);
	/* The first touch of a stream register is the guest's init: the boot is over. */
	if (!node->user_ns && request.kind <= IO_PORT_OUT && request.address >= VMP_STREAM_PORT &&
	    request.address <= VMP_STREAM_COLS_ROWS_PORT)
		userland_is_there(node);
	route_to_child(node, &node->iosrv, header, body);
}

static void on_io_reply(void *ctx, const struct msg_header *header, const void *body)
{
	struct node *node = ctx;
	struct msg_io_reply reply;

	memcpy(&reply, body, sizeof reply);
	if (node_has_cpu(node, reply.cpu))
		route_to_child(node, &node->monitor[reply.cpu], header, body);
	else
		log_error("an I/O reply for CPU %u, which is not here", reply.cpu);
}

static void on_machine_end(void *ctx, const struct msg_header *header, const void *body)
{
	struct node *node = ctx;

	if (node->o.node)
		node_end_here(node);
	else if (node_has_host(node, header->from_node))
		end_by_message(node, header, body);
	else
		hosts_join_failed(node, header->from_node, (const char *)body + sizeof(struct msg_machine_end),
				  header->bytes - sizeof(struct msg_machine_end));
}

static void on_log(void *ctx, const struct msg_header *header, const void *body)
{
	struct node *node = ctx;
	struct msg_log line;
	int bytes = header->bytes - sizeof line;

	if (clients_send_run(node, header, body))
		return;
	memcpy(&line, body, sizeof line);
	log_at(line.level <= LOG_TRACE ? line.level : LOG_INFO, "host %u CPU %d: %.*s", line.node, (int)line.cpu, bytes,
	       (const char *)body + sizeof line);
}

static void on_dump_request(void *ctx, const struct msg_header *header, const void *body)
{
	struct node *node = ctx;
	struct msg_dump dump;

	memcpy(&dump, body, sizeof dump);
	route_to_cpu(node, dump.cpu, header, body);
}

/* Streams and console: towards the I/O server or towards the command line, as the address says. */
static void on_stream(void *ctx, const struct msg_header *header, const void *body)
{
	struct node *node = ctx;

	if (header->to == VNODE_IOSRV)
		route_to_child(node, &node->iosrv, header, body);
	else if (header->type == MSG_CONSOLE)
		clients_send_console(node, header, body);
	else if (!clients_send_run(node, header, body))
		log_warn("%s for a run client that is not there", wire_type_name(header->type));
}

static void on_answer(void *ctx, const struct msg_header *header, const void *body)
{
	clients_send_answer(ctx, header, body);
}

static void on_stats_request(void *ctx, const struct msg_header *header, const void *body)
{
	struct msg_stats request;

	(void)header;
	memcpy(&request, body, sizeof request);
	node_stats_send(ctx, request.seq);
}

static void on_pages_request(void *ctx, const struct msg_header *header, const void *body)
{
	struct msg_pages request;

	(void)header;
	memcpy(&request, body, sizeof request);
	node_pages_send(ctx, request.seq);
}

static void on_node_ready(void *ctx, const struct msg_header *header, const void *body)
{
	struct msg_node_ready ready;

	(void)header;
	memcpy(&ready, body, sizeof ready);
	node_on_ready(ctx, &ready);
}

static void on_machine_start(void *ctx, const struct msg_header *header, const void *body)
{
	struct msg_machine_start start;
	struct page_range ranges[MAX_PRELOADED];
	uint32_t bytes = header->bytes - sizeof start;

	memcpy(&start, body, sizeof start);
	if (start.ranges > MAX_PRELOADED || bytes != start.ranges * sizeof *ranges) {
		node_end(ctx, END_FAILURE, 0, "MACHINE_START of %u bytes names %u page ranges", header->bytes, start.ranges);
		return;
	}
	memcpy(ranges, (const char *)body + sizeof start, bytes);
	node_on_start(ctx, &start, ranges);
}

/* Which handler serves which type; the page protocol's types all go to the page store. */
void route_start(struct node *node)
{
	static const struct { enum msg_type type; net_handler_fn handler; } table[] = {
		{ MSG_IO_REQUEST, on_io_request },     { MSG_IO_REPLY, on_io_reply },
		{ MSG_INTERRUPT, on_interrupt },       { MSG_CPU_START, on_cpu_start },
		{ MSG_MACHINE_END, on_machine_end },   { MSG_LOG, on_log },
		{ MSG_DUMP_REQUEST, on_dump_request }, { MSG_DUMP, on_answer },
		{ MSG_MACHINE_START, on_machine_start }, { MSG_NODE_READY, on_node_ready },
		{ MSG_STREAM, on_stream },	       { MSG_STREAM_ROOM, on_stream },
		{ MSG_CONSOLE, on_stream },	       { MSG_CONSOLE_SIZE, on_stream },
		{ MSG_CONSOLE_ATTACH, on_stream },     { MSG_COMMAND_EXIT, on_stream },
		{ MSG_STATS_REQUEST, on_stats_request }, { MSG_STATS, on_answer },
		{ MSG_PAGES_REQUEST, on_pages_request }, { MSG_PAGES, on_answer },
		{ MSG_SNAPSHOT, freeze_on_message },   { MSG_SNAPSHOT_PULL, freeze_on_pull },
		{ MSG_SNAPSHOT_ITEM, freeze_on_item }, { MSG_DEBUG, debug_on_request },
		{ MSG_DEBUG_ANSWER, debug_on_answer },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		net_on(node->net, table[i].type, table[i].handler);
	for (unsigned type = MSG_DSM_READ; type <= MSG_DSM_ADOPT; type++)
		net_on(node->net, type, pagestore_on_message);
}

/* --- children ------------------------------------------------------------------------------------------------------- */

static void on_hello(struct node *node, struct child *child, const void *body, enum peer_role role)
{
	struct msg_hello hello;

	memcpy(&hello, body, sizeof hello);
	if (hello.wire_version != WIRE_VERSION || hello.role != role) {
		node_end(node, END_FAILURE, 0, "the %s is not of this build; build it again with make", child->name);
		return;
	}
	child->ready = true;
	log_debug("%s is ready", child->name);
	if (child->part == PART_SPARE)
		handover_spare_ready(node, child);
	else
		node_check_ready(node);
}

static void on_page_want(struct node *node, unsigned cpu, const void *body)
{
	struct msg_page_want want;

	memcpy(&want, body, sizeof want);
	want.cpu = cpu; /* whatever it says: this is its socket */
	pagestore_want(node, &want);
}

static void on_monitor_message(struct conn *conn, const struct msg_header *header, const void *body)
{
	struct node *node = conn_owner(conn);
	unsigned cpu = conn_index(conn);

	switch (header->type) {
	case MSG_HELLO:
		on_hello(node, &node->monitor[cpu], body, PEER_MONITOR);
		break;
	case MSG_PAGE_WANT:
		on_page_want(node, cpu, body);
		break;
	case MSG_IO_REQUEST:
		resend(node, VNODE_IOSRV, header, body);
		break;
	case MSG_INTERRUPT:
		on_interrupt(node, header, body);
		break;
	case MSG_CPU_START: {
		struct msg_cpu_start start;

		memcpy(&start, body, sizeof start);
		if (start.cpu < node->o.machine.cpus)
			resend(node, VNODE_CPU(start.cpu), header, body);
		break;
	}
	case MSG_MACHINE_END:
		if (node->monitor[cpu].part == PART_SPARE) /* its end is that of a move */
			supervise_last_words(&node->monitor[cpu], (const char *)body + sizeof(struct msg_machine_end),
					     header->bytes - sizeof(struct msg_machine_end));
		else
			end_by_message(node, header, body);
		break;
	case MSG_SNAPSHOT:
		freeze_on_monitor(node, cpu, body);
		break;
	case MSG_SNAPSHOT_ITEM:
		freeze_on_cpu_state(node, cpu, (const char *)body + sizeof(struct msg_snapshot_item),
				    header->bytes - sizeof(struct msg_snapshot_item));
		break;
	case MSG_CPU_STATE:
		handover_on_state(node, &node->monitor[cpu], header, body);
		break;
	case MSG_CPU_STEP:
		handover_on_step(node, &node->monitor[cpu], header, body);
		break;
	case MSG_LOG:
	case MSG_DUMP:
	case MSG_DEBUG_ANSWER:
		resend(node, VNODE_CLI, header, body);
		break;
	default:
		log_error("unexpected message %s from the %s: dropped", wire_type_name(header->type), conn_name(conn));
	}
}

static void on_iosrv_message(struct conn *conn, const struct msg_header *header, const void *body)
{
	struct node *node = conn_owner(conn);
	struct msg_io_reply reply;

	switch (header->type) {
	case MSG_HELLO:
		on_hello(node, &node->iosrv, body, PEER_IOSRV);
		break;
	case MSG_IO_REPLY:
		memcpy(&reply, body, sizeof reply);
		if (reply.cpu < node->o.machine.cpus)
			resend(node, VNODE_CPU(reply.cpu), header, body);
		break;
	case MSG_INTERRUPT:
		on_interrupt(node, header, body);
		break;
	case MSG_MACHINE_END:
		end_by_message(node, header, body);
		break;
	case MSG_SNAPSHOT:
		freeze_on_message(node, header, body);
		break;
	case MSG_LOG:
	case MSG_STREAM:
	case MSG_STREAM_ROOM:
	case MSG_CONSOLE:
	case MSG_COMMAND_EXIT:
	case MSG_SNAPSHOT_ITEM:
		resend(node, VNODE_CLI, header, body);
		break;
	default:
		log_error("unexpected message %s from the %s: dropped", wire_type_name(header->type), conn_name(conn));
	}
}

/* A closed socket is not yet a death: the child's exit status names the cause, and comes by SIGCHLD. A child that only
 * closed its socket is told to go. */
static void on_child_closed(struct node *node, struct child *child, int reason)
{
	child->conn = NULL;
	if (reason == -EPROTO)
		node_end(node, END_FAILURE, 0, "the %s sent nonsense; this is a bug in vmp", child->name);
	else if (!node->ending && child->pid > 0)
		log_debug("the %s closed its socket", child->name);
}

static void on_monitor_closed(struct conn *conn, int reason)
{
	struct node *node = conn_owner(conn);

	on_child_closed(node, &node->monitor[conn_index(conn)], reason);
}

/* What was announced before it was there. */
static void on_monitor_written(struct conn *conn)
{
	struct node *node = conn_owner(conn);

	hostshm_post(node->shm, conn_index(conn), POST_MESSAGE);
}

static void on_iosrv_closed(struct conn *conn, int reason)
{
	struct node *node = conn_owner(conn);

	on_child_closed(node, &node->iosrv, reason);
}

const struct conn_handler route_monitor_handler = { on_monitor_message, on_monitor_closed, on_monitor_written };
const struct conn_handler route_iosrv_handler = { on_iosrv_message, on_iosrv_closed, NULL };
