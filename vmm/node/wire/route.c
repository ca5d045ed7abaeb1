/* route.c - messages that pass through this daemon: from its children to other roles, and those
 * that have arrived for the roles of this node (its CPUs; on node 0 also the I/O server and the
 * command lines).
 *
 * A child is trusted no further than its part goes: a message's type and body decide where it goes,
 * not the address that the child wrote.
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
#include "vmm/node/pages/starts.h"
#include "vmm/node/wire/conn.h"

static void end_by_message(struct node *node, const struct message *m,
			   const struct msg_machine_end *end)
{
	node_end_message(node, end, m->payload, m->payload_bytes);
}

/* Sends a message to a child.  Children read little and often, so a full queue means that it has
 * stopped. */
void route_to_child(struct node *node, struct child *child, const struct message *m)
{
	if (!child->conn)
		return;
	if (conn_send(child->conn, &m->header, m->body, m->header.bytes, NULL, 0) == -ENOBUFS)
		node_end(node, END_FAILURE, 0, "the %s does not take its messages", child->name);
}

void route_to_cpu(struct node *node, unsigned cpu, const struct message *m)
{
	if (!node_has_cpu(node, cpu)) {
		log_error("%s for CPU %u, which is not here", wire_type_name(m->header.type), cpu);
		return;
	}
	route_to_child(node, &node->monitor[cpu], m);
	hostshm_post(node->shm, cpu, POST_MESSAGE);
}

static void resend(struct node *node, vnode_t to, const struct message *m)
{
	struct message readdressed = *m;

	readdressed.header.to = to;
	readdressed.header.from_node = readdressed.from = node->o.node;
	net_forward(node->net, &readdressed);
}

void route_to_iosrv(struct node *node, const struct message *m)
{
	resend(node, VNODE_IOSRV, m);
}

void route_to_clients(struct node *node, const struct message *m)
{
	resend(node, VNODE_CLI, m);
}

void route_reply_to_cpu(struct node *node, const struct message *m,
			const struct msg_io_reply *reply)
{
	if (reply->cpu < node->o.machine.cpus)
		resend(node, VNODE_CPU(reply->cpu), m);
}

void route_virtio_to_cpu(struct node *node, const struct message *m,
			 const struct msg_virtio *virtio)
{
	if (virtio->cpu < node->o.machine.cpus)
		resend(node, VNODE_CPU(virtio->cpu), m);
}

void route_grant_to_cpu(struct node *node, const struct message *m,
			const struct msg_virtio_grant *grant)
{
	if (grant->cpu < node->o.machine.cpus)
		resend(node, VNODE_CPU(grant->cpu), m);
}

void route_dma_to_cpu(struct node *node, const struct message *m, const struct msg_dma *dma)
{
	if (dma->cpu < node->o.machine.cpus)
		resend(node, VNODE_CPU(dma->cpu), m);
}

void route_start_to_cpu(struct node *node, const struct message *m,
			const struct msg_cpu_start *start)
{
	int host;

	if (start->cpu >= node->o.machine.cpus)
		return;
	host = net_node_of(node->net, VNODE_CPU(start->cpu));
	if (host >= 0)
		starts_name(node, (unsigned)host);
	resend(node, VNODE_CPU(start->cpu), m);
}

/* ---- interrupts and CPU starts ---- */

static void post_here(struct node *node, unsigned cpu, const struct msg_interrupt *interrupt)
{
	if (interrupt->kind == INTERRUPT_NMI)
		hostshm_post(node->shm, cpu, POST_NMI);
	else
		hostshm_post_interrupt(node->shm, cpu, (uint8_t)interrupt->vector);
}

/* Sends one message to `home` for all CPUs of `mask` that are there.  Returns which these are. */
static uint32_t send_interrupt(struct node *node, int home, uint32_t mask,
			       const struct msg_interrupt *interrupt)
{
	struct msg_interrupt part = *interrupt;

	part.cpu_mask = 0;
	for (uint32_t left = mask; left; left &= left - 1)
		if (net_node_of(node->net, VNODE_CPU(__builtin_ctz(left))) == home)
			part.cpu_mask |= left & -left;
	net_send(node->net, VNODE_CPU(__builtin_ctz(part.cpu_mask)), MSG_INTERRUPT, &part,
		 sizeof part, NULL, 0);
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

void route_on_interrupt(struct node *node, const struct message *m,
			const struct msg_interrupt *interrupt)
{
	(void)m;
	route_interrupt(node, interrupt);
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

void route_on_cpu_start(struct node *node, const struct message *m,
			const struct msg_cpu_start *start)
{
	(void)m;
	route_start_cpu(node, start->cpu, start->eip);
}

/* ---- CPUs that halt for good ---- */

/* A spare monitor has no CPU yet: its CPU is still on another host. */
void route_on_monitor_halted(struct node *node, const struct message *m,
			     const struct msg_cpu_halted *said)
{
	const struct child *child = &node->monitor[m->from];
	const struct msg_cpu_halted body = { .cpu = child->cpu, .started = said->started };

	if (child->part == PART_RUNS)
		net_send(node->net, VNODE_DAEMON(0), MSG_CPU_HALTED, &body, sizeof body, NULL, 0);
}

void route_on_cpu_halted(struct node *node, const struct message *m,
			 const struct msg_cpu_halted *said)
{
	(void)m;
	if (halted_take(&node->halted, node->o.machine.cpus, said, node_now_ns(node)) &&
	    !node->debugged)
		node_end(node, END_GUEST_FAULT, 0,
			 "all the guest's processors have halted with interrupts disabled: "
			 "nothing can wake them");
}

/* ---- messages for this node's other roles ---- */

static void userland_is_there(struct node *node)
{
	struct msg_machine_up up = { .boot_ns = node_now_ns(node) - node->boot_ns };
	struct msg_header header = packet_header(MSG_MACHINE_UP, VNODE_CLI, node->o.node,
						 sizeof up);

	node->user_ns = node_now_ns(node);
	clients_send_run(node, &header, &up);
}

void route_on_io_request(struct node *node, const struct message *m,
			 const struct msg_io_request *request)
{
	/* The guest's init is the first to use a stream register: the boot is over. */
	if (!node->user_ns && request->kind <= IO_PORT_OUT && request->address >= VMP_STREAM_PORT &&
	    request->address <= VMP_STREAM_COLS_ROWS_PORT)
		userland_is_there(node);
	route_to_child(node, &node->iosrv, m);
}

void route_on_io_reply(struct node *node, const struct message *m, const struct msg_io_reply *reply)
{
	if (node_has_cpu(node, reply->cpu))
		route_to_child(node, &node->monitor[reply->cpu], m);
	else
		log_error("an I/O reply for CPU %u, which is not here", reply->cpu);
}

void route_on_virtio_ask(struct node *node, const struct message *m)
{
	route_to_child(node, &node->iosrv, m);
}

void route_on_virtio_tell(struct node *node, const struct message *m,
			  const struct msg_virtio *virtio)
{
	route_to_cpu(node, virtio->cpu, m);
}

void route_on_virtio_grant(struct node *node, const struct message *m,
			   const struct msg_virtio_grant *grant)
{
	route_to_cpu(node, grant->cpu, m);
}

void route_on_dma_ask(struct node *node, const struct message *m)
{
	route_to_child(node, &node->iosrv, m);
}

void route_on_dma_tell(struct node *node, const struct message *m, const struct msg_dma *dma)
{
	route_to_cpu(node, dma->cpu, m);
}

void route_on_machine_end(struct node *node, const struct message *m,
			  const struct msg_machine_end *end)
{
	if (node->o.node)
		node_end_ordered(node, end);
	else if (node_has_host(node, m->from))
		end_by_message(node, m, end);
	else
		hosts_join_failed(node, m->from, m->payload, m->payload_bytes);
}

void route_on_log(struct node *node, const struct message *m, const struct msg_log *line)
{
	if (!clients_send_run(node, &m->header, m->body))
		log_at(line->level <= LOG_TRACE ? line->level : LOG_INFO, "host %u CPU %d: %.*s",
		       line->node, (int)line->cpu, (int)m->payload_bytes, (const char *)m->payload);
}

void route_on_dump_request(struct node *node, const struct message *m, const struct msg_dump *dump)
{
	route_to_cpu(node, dump->cpu, m);
}

void route_on_frame_request(struct node *node, const struct message *m,
			    const struct msg_frame *frame)
{
	route_to_cpu(node, frame->cpu, m);
}

/* Streams, console and traces: to the I/O server or to the command line, as the address says. */
void route_on_stream(struct node *node, const struct message *m)
{
	if (m->header.to == VNODE_IOSRV)
		route_to_child(node, &node->iosrv, m);
	else if (m->header.type == MSG_CONSOLE)
		clients_send_console(node, &m->header, m->body);
	else if (m->header.type == MSG_EXEC)
		clients_send_exec(node, &m->header, m->body);
	else if (!clients_send_run(node, &m->header, m->body))
		log_warn("%s for a run client that is not there", wire_type_name(m->header.type));
}

void route_on_answer(struct node *node, const struct message *m)
{
	clients_send_answer(node, &m->header, m->body);
}

void route_on_stats_request(struct node *node, const struct message *m,
			    const struct msg_stats *request)
{
	(void)m;
	node_stats_send(node, request->seq);
}

void route_on_pages_request(struct node *node, const struct message *m,
			    const struct msg_pages *request)
{
	(void)m;
	node_pages_send(node, request->seq);
}

void route_on_node_ready(struct node *node, const struct message *m,
			 const struct msg_node_ready *ready)
{
	(void)m;
	node_on_ready(node, ready);
}

void route_on_machine_start(struct node *node, const struct message *m,
			    const struct msg_machine_start *start)
{
	struct page_range ranges[MAX_PRELOADED];

	if (start->ranges > MAX_PRELOADED || m->payload_bytes != start->ranges * sizeof *ranges) {
		node_end(node, END_FAILURE, 0, "MACHINE_START of %u bytes names %u page ranges",
			 m->header.bytes, start->ranges);
		return;
	}
	memcpy(ranges, m->payload, m->payload_bytes);
	node_on_start(node, start, ranges);
}

void route_peer_is_wrong(struct node *node, unsigned peer, const char *why)
{
	char line[240];

	snprintf(line, sizeof line, "host %u and host %u do not understand each other: %s", peer,
		 node->o.node, why);
	if (node_has_host(node, peer))
		node_end(node, END_FAILURE, 0, "%s", line);
	else if (node->o.node == 0)
		hosts_join_failed(node, peer, line, strlen(line));
	else
		log_error("%s", line);
}

void route_deliver(void *ctx, const struct message *m)
{
	struct node *node = ctx;
	char why[80];

	if (dispatch_from_node(node, m))
		return;
	snprintf(why, sizeof why, "%s is no message from there; this is a bug in vmp",
		 wire_type_name(m->header.type));
	route_peer_is_wrong(node, m->from, why);
}

/* ---- children ---- */

static void on_child_hello(struct node *node, struct child *child, const struct msg_hello *hello,
			   enum peer_role role)
{
	if (hello->wire_version != wire_version || hello->role != role) {
		node_end(node, END_FAILURE, 0, "the %s is of another version of vmp: build it "
			 "again with make",
			 child->name);
		return;
	}
	child->ready = true;
	log_debug("%s is ready", child->name);
	if (child->part == PART_SPARE)
		handover_spare_ready(node, child);
	else
		node_check_ready(node);
}

void route_on_monitor_hello(struct node *node, const struct message *m,
			    const struct msg_hello *hello)
{
	on_child_hello(node, &node->monitor[m->from], hello, PEER_MONITOR);
}

void route_on_iosrv_hello(struct node *node, const struct message *m, const struct msg_hello *hello)
{
	(void)m;
	on_child_hello(node, &node->iosrv, hello, PEER_IOSRV);
	if (!node->ending)
		supervise_iosrv_ready(node);
}

void route_on_monitor_end(struct node *node, const struct message *m,
			  const struct msg_machine_end *end)
{
	if (node->monitor[m->from].part == PART_SPARE) /* a spare's end is the end of a move */
		supervise_last_words(&node->monitor[m->from], m->payload, m->payload_bytes);
	else
		end_by_message(node, m, end);
}

void route_on_iosrv_end(struct node *node, const struct message *m,
			const struct msg_machine_end *end)
{
	end_by_message(node, m, end);
}

/* The link's check has refused messages that have no handler. */
static void on_monitor_message(struct conn *conn, const struct message *m)
{
	bug_on(!dispatch_from_monitor(conn_owner(conn), m));
}

static void on_iosrv_message(struct conn *conn, const struct message *m)
{
	bug_on(!dispatch_from_iosrv(conn_owner(conn), m));
}

/* A child has closed its socket.  That is not a death yet: the child's exit status names the cause,
 * and SIGCHLD brings it. */
static void on_child_closed(struct node *node, struct child *child, int reason)
{
	child->conn = NULL;
	if (reason == -EPROTO)
		node_end(node, END_FAILURE, 0, "the %s sent nonsense; this is a bug in vmp",
			 child->name);
	else if (reason == -EPROTONOSUPPORT)
		node_end(node, END_FAILURE, 0, "the %s is of another version of vmp: build it "
			 "again with make",
			 child->name);
	else if (!node->ending && child->pid > 0)
		log_debug("the %s closed its socket", child->name);
}

static void on_monitor_closed(struct conn *conn, int reason)
{
	struct node *node = conn_owner(conn);

	on_child_closed(node, &node->monitor[conn_index(conn)], reason);
}

/* A message that was announced while it was still queued is in the socket now: announces it
 * again. */
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

const struct conn_handler route_monitor_handler = {
	LINK_MONITOR_TO_NODE, on_monitor_message, on_monitor_closed, on_monitor_written,
};
const struct conn_handler route_iosrv_handler = {
	LINK_IOSRV_TO_NODE, on_iosrv_message, on_iosrv_closed, NULL,
};
