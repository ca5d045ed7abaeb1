/* daemon_world.c - what the daemons of daemon-sim call: loop, sockets, children, clients, copies of the machine; see daemons.c.
 *
 * A monitor is a model of monitor/handover.c and monitor/freeze.c: it stops its CPU where that waits for no page, and takes it in.
 * Interrupts go as in vmm/route.c: to the slot of a CPU that is here, else to where it is believed to be.  Each that is sent has a
 * vector of its own until it has been collected, so that one which is lost, or comes twice, shows.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "dsm/internal.h"
#include "tests/sim/daemons.h"
#include "vmm/conn.h"
#include "vmm/debug.h"
#include "vmm/hosts.h"
#include "vmm/policy.h"
#include "vmm/snapshot/copy.h"
#include "vmm/snapshot/freeze.h"
#include "vmm/snapshot/restore.h"
#include "vmm/tsc.h"

enum { FIRST_VECTOR = 32, VECTORS = 256, BOUNDARY_NS = 20000, STATE_BYTES = 8 };

struct daemon daemons[MAX_NODES];
struct sim *machine;

struct conn { unsigned node, port; };
struct event_base { unsigned node; };
struct event { unsigned node; event_callback_fn callback; void *context; uint64_t armed; /* 0: not */ };
struct timer { struct event *event; event_callback_fn once; void *context; uint64_t armed; uint32_t life; };
struct packet { struct msg_header header; uint8_t body[CONN_MAX_PACKET]; };
enum wish { WISH_NOTHING, WISH_GIVE, WISH_FREEZE };

static struct world {
	struct conn conn[MAX_NODES][PORTS];
	struct event_base base[MAX_NODES];
	struct event progress; /* node 0 has the only event that is kept */
	uint64_t arms, last_local[WORLD_KILL + 1][MAX_NODES][PORTS];
	uint32_t next_pid;
	enum wish wish[MAX_NODES][SIM_MAX_CPUS];
	uint32_t killed[MAX_NODES][SIM_MAX_CPUS]; /* the last pid that does nothing any more, and will be reaped */
	bool outstanding[SIM_MAX_CPUS][VECTORS];
	bool copied_page[SIM_MAX_PAGES];
	uint32_t copied_cpus;
	unsigned items_left[MAX_NODES]; /* of a copy */
} world;
static _Alignas(4096) uint8_t shm[SIM_MAX_CPUS][sizeof(struct host_shm)]; /* one for each daemon; there are no more */

uint64_t node_now_ns(void) { return machine->now_ns; }

/* --- events ----------------------------------------------------------------------------------------------------------- */

static void add_local(enum world_event kind, unsigned node, unsigned port, uint32_t id, uint64_t delay_ns, const void *payload,
		      uint32_t bytes)
{
	struct sim_event event = { .kind = EVENT_HOST, .type = (uint16_t)kind, .node = (uint8_t)node, .from = (uint8_t)node,
				   .home = { .interval = port, .generation = id }, .payload_bytes = bytes };
	/* What a child has said is heard before its death. */
	enum world_event order = kind == WORLD_CHILD_READY || kind == WORLD_CHILD_DIED ? WORLD_FROM_CHILD : kind;
	uint64_t *last = &world.last_local[order][node][port];

	event.at_ns = machine->now_ns + delay_ns;
	if (kind != WORLD_TIMER && event.at_ns <= *last)
		event.at_ns = *last + 1;
	if (kind != WORLD_TIMER)
		*last = event.at_ns;
	if (bytes) {
		event.payload = malloc(bytes);
		memcpy(event.payload, payload, bytes);
	}
	events_add(&event);
}

void world_after(enum world_event kind, unsigned node, unsigned port, uint32_t id, const void *payload, uint32_t bytes)
{
	uint32_t most = sim_chance(machine, 3) ? SIM_MAX_DELAY_NS : 30000;

	add_local(kind, node, port, id, 1000 + sim_random(machine, most), payload, bytes);
}

static uint32_t pack(struct packet *packet, const struct msg_header *header, const void *body, uint32_t body_bytes,
		     const void *payload, uint32_t payload_bytes)
{
	bug_on(body_bytes + payload_bytes > sizeof packet->body);
	packet->header = *header;
	packet->header.bytes = body_bytes + payload_bytes;
	memcpy(packet->body, body, body_bytes);
	if (payload_bytes)
		memcpy(packet->body + body_bytes, payload, payload_bytes);
	return (uint32_t)sizeof packet->header + packet->header.bytes;
}

static int carry(void *context, unsigned peer, const struct msg_header *header, const void *body, uint32_t body_bytes,
		 const void *payload, uint32_t payload_bytes)
{
	const struct node *node = context;
	struct sim_event event = { .kind = EVENT_HOST, .type = WORLD_MESSAGE, .home.generation = daemons[peer].life };
	static struct packet packet;
	uint32_t bytes = pack(&packet, header, body, body_bytes, payload, payload_bytes);

	if (!daemons[peer].exists && (!daemons[peer].dead || daemons[peer].in_order))
		sim_fail(machine, "%s from node %u for node %u, which is gone", wire_type_name(header->type), node->o.node, peer);
	sim_trace(machine, "node %u -> %u %s", node->o.node, peer, wire_type_name(header->type));
	cluster_send(machine, node->o.node, peer, &event, &packet, bytes);
	return 0;
}

static void on_overflow(void *context, unsigned peer)
{
	(void)context;
	sim_fail(machine, "node %u takes no messages", peer);
}

void world_send_client(unsigned number, enum msg_type type, const void *body, uint32_t bytes)
{
	struct msg_header header = { .type = type, .version = WIRE_VERSION };
	static struct packet packet;

	world_after(WORLD_FROM_CLIENT, 0, number ? PORT_CLIENT : PORT_OWNER, number, &packet,
		    pack(&packet, &header, body, bytes, NULL, 0));
}

/* libevent's */
struct event *event_new(struct event_base *base, evutil_socket_t fd, short what, event_callback_fn callback, void *context)
{
	(void)fd, (void)what;
	world.progress = (struct event){ base->node, callback, context, 0 };
	return &world.progress;
}

static void arm(unsigned node, struct timer *timer, const struct timeval *after)
{
	timer->armed = ++world.arms;
	timer->life = daemons[node].life;
	add_local(WORLD_TIMER, node, 0, 0, (uint64_t)after->tv_sec * 1000000000 + (uint64_t)after->tv_usec * 1000, timer, sizeof *timer);
}

int event_add(struct event *event, const struct timeval *after)
{
	struct timer timer = { .event = event };

	arm(event->node, &timer, after);
	event->armed = world.arms;
	return 0;
}

int event_del(struct event *event)
{
	event->armed = 0;
	return 0;
}

int event_base_once(struct event_base *base, evutil_socket_t fd, short what, event_callback_fn callback, void *context,
		    const struct timeval *after)
{
	struct timer timer = { .once = callback, .context = context };

	(void)fd, (void)what;
	arm(base->node, &timer, after);
	return 0;
}

static void on_timer(const struct sim_event *event)
{
	struct timer timer;

	memcpy(&timer, event->payload, sizeof timer);
	if (timer.life != daemons[event->node].life)
		return;
	if (timer.once)
		timer.once(-1, EV_TIMEOUT, timer.context);
	else if (timer.event->armed == timer.armed)
		timer.event->callback(-1, EV_TIMEOUT, timer.event->context);
}

/* --- interrupts ------------------------------------------------------------------------------------------------------- */

static void collect(unsigned number, unsigned cpu)
{
	struct vcpu_slot *slot = &daemons[number].node.shm->slot[cpu];

	atomic_exchange(&slot->post, 0);
	for (unsigned word = 0; word < VECTORS / 32; word++)
		for (uint32_t bits = atomic_exchange(&slot->irr[word], 0); bits; bits &= bits - 1) {
			bool *outstanding = &world.outstanding[cpu][word * 32 + (unsigned)__builtin_ctz(bits)];

			if (!*outstanding)
				sim_fail(machine, "an interrupt has come twice to CPU %u", cpu);
			*outstanding = false;
		}
}

void route_interrupt(struct node *node, const struct msg_interrupt *interrupt)
{
	unsigned cpu = (unsigned)__builtin_ctz(interrupt->cpu_mask);

	if (node_has_cpu(node, cpu)) {
		hostshm_post_interrupt(node->shm, cpu, (uint8_t)interrupt->vector);
		world_after(WORLD_COLLECT, node->o.node, cpu, 0, NULL, 0);
	} else if (net_node_of(node->net, VNODE_CPU(cpu)) != (int)node->o.node) {
		net_send(node->net, VNODE_CPU(cpu), MSG_INTERRUPT, interrupt, sizeof *interrupt, NULL, 0);
	} else {
		sim_fail(machine, "node %u: an interrupt for CPU %u, which is nowhere", node->o.node, cpu);
	}
}

void world_post(void)
{
	const struct sim_cpu *from = &machine->cpus[sim_random(machine, machine->n_cpus)];
	unsigned to = sim_random(machine, machine->n_cpus), vector = FIRST_VECTOR + sim_random(machine, VECTORS - FIRST_VECTOR);
	struct msg_interrupt interrupt = { .cpu_mask = 1u << to, .vector = vector };

	if (from->held || daemons[from->node].dead || world.outstanding[to][vector])
		return;
	world.outstanding[to][vector] = true;
	route_interrupt(&daemons[from->node].node, &interrupt);
}

/* --- monitors, and the I/O server --------------------------------------------------------------------------------------- */

static void kill_child(unsigned node, unsigned cpu, uint32_t pid)
{
	world.killed[node][cpu] = pid;
	world_after(WORLD_CHILD_DIED, node, cpu, pid, NULL, 0);
}

static void from_child(unsigned node, unsigned port, uint32_t pid, enum msg_type type, const void *body, uint32_t body_bytes,
		       const void *payload, uint32_t payload_bytes)
{
	struct msg_header header = { .type = type, .version = WIRE_VERSION, .from_node = node };
	static struct packet packet;

	world_after(WORLD_FROM_CHILD, node, port, pid, &packet, pack(&packet, &header, body, body_bytes, payload, payload_bytes));
}

int conn_send(struct conn *conn, const struct msg_header *header, const void *body, uint32_t body_bytes, const void *payload,
	      uint32_t payload_bytes)
{
	const struct node *node = &daemons[conn->node].node;
	static struct packet packet;

	world_after(WORLD_TO_CHILD, conn->node, conn->port, conn->port == PORT_IOSRV ? 0 : (uint32_t)node->monitor[conn->port].pid,
		    &packet, pack(&packet, header, body, body_bytes, payload, payload_bytes));
	return 0;
}

void route_to_child(struct node *node, struct child *child, const struct msg_header *header, const void *body)
{
	(void)node;
	if (child->conn)
		conn_send(child->conn, header, body, header->bytes, NULL, 0);
}

int supervise_start_monitor(struct node *node, unsigned cpu, char *why, size_t why_bytes)
{
	struct child *child = &node->monitor[cpu];

	(void)why, (void)why_bytes;
	bug_on(child->pid);
	child->role = CHILD_MONITOR;
	child->cpu = cpu;
	child->pid = (pid_t)++world.next_pid;
	child->conn = &world.conn[node->o.node][cpu];
	snprintf(child->name, sizeof child->name, "monitor of CPU %u on host %u", cpu, node->o.node);
	world_after(WORLD_CHILD_READY, node->o.node, cpu, (uint32_t)child->pid, NULL, 0);
	return 0;
}

void supervise_kill(struct child *child)
{
	if (child->pid)
		kill_child(child->conn->node, child->cpu, (uint32_t)child->pid);
}

void supervise_release(struct child *child)
{
	child->pid = 0;
	child->conn = NULL;
	child->part = PART_RUNS;
	child->ready = false;
}

static void on_child_ready(struct node *node, struct child *child)
{
	child->ready = true;
	if (child->part == PART_SPARE)
		handover_spare_ready(node, child);
}

static void on_child_died(struct node *node, struct child *child)
{
	child->pid = 0;
	if (child->part == PART_RUNS)
		sim_fail(machine, "node %u: the %s was killed while it ran", node->o.node, child->name);
	handover_child_died(node, child, "was killed");
}

/* At an instruction boundary, with no page outstanding. */
static void stop(unsigned number, unsigned cpu, uint32_t pid)
{
	struct msg_cpu_state state = { .cpu = cpu, .state_bytes = STATE_BYTES };
	struct msg_snapshot frozen = { .of = cpu, .step = SNAPSHOT_FROZEN };
	uint8_t bytes[STATE_BYTES] = { [STATE_BYTES / 2] = fault_on(FAULT_MOVE_DAMAGE) ? 1 : 0 };
	enum wish wish = world.wish[number][cpu];

	if (machine->cpus[cpu].waits_for || machine->cpus[cpu].granted)
		return add_local(WORLD_BOUNDARY, number, cpu, pid, BOUNDARY_NS, NULL, 0);
	cpu_hold(machine, cpu);
	collect(number, cpu);
	if (wish == WISH_GIVE)
		from_child(number, cpu, pid, MSG_CPU_STATE, &state, sizeof state, bytes, sizeof bytes);
	else
		from_child(number, cpu, pid, MSG_SNAPSHOT, &frozen, sizeof frozen, NULL, 0);
	if (wish == WISH_GIVE && fault_on(FAULT_MOVE_SOURCE_DIES))
		kill_child(number, cpu, pid);
}

static void go_on(unsigned number, unsigned cpu)
{
	if (!machine->cpus[cpu].held)
		sim_fail(machine, "CPU %u goes on at node %u, and runs already", cpu, number);
	machine->cpus[cpu].node = number;
	collect(number, cpu);
	cpu_go(machine, cpu);
}

static void take_in(unsigned number, unsigned cpu, uint32_t pid, const uint8_t *state)
{
	struct msg_cpu_step step = { .cpu = cpu, .step = STEP_TAKEN, .error = state[STATE_BYTES / 2] ? EBADMSG : 0 };
	const char *why = step.error ? "is damaged" : "";

	if (fault_on(FAULT_MOVE_TARGET_DIES))
		return kill_child(number, cpu, pid);
	if (!step.error) {
		go_on(number, cpu);
		machine->moves++;
	}
	from_child(number, cpu, pid, MSG_CPU_STEP, &step, sizeof step, why, (uint32_t)strlen(why));
}

static void monitor_on_message(unsigned number, unsigned cpu, uint32_t pid, const struct packet *packet)
{
	struct msg_snapshot snapshot;

	switch (packet->header.type) {
	case MSG_CPU_GIVE:
		world.wish[number][cpu] = WISH_GIVE;
		stop(number, cpu, pid);
		break;
	case MSG_CPU_STATE:
		take_in(number, cpu, pid, packet->body + sizeof(struct msg_cpu_state));
		break;
	case MSG_CPU_BACK:
		go_on(number, cpu);
		break;
	case MSG_SNAPSHOT:
		memcpy(&snapshot, packet->body, sizeof snapshot);
		world.wish[number][cpu] = WISH_FREEZE;
		if (snapshot.step == SNAPSHOT_FREEZE) {
			stop(number, cpu, pid);
		} else if (snapshot.step == SNAPSHOT_SAVE) {
			collect(number, cpu);
			from_child(number, cpu, pid, MSG_SNAPSHOT_ITEM, "state", STATE_BYTES - 2, NULL, 0);
		} else {
			go_on(number, cpu);
		}
		break;
	default:
		sim_fail(machine, "a monitor gets %s", wire_type_name(packet->header.type));
	}
}

static void iosrv_on_message(const struct packet *packet)
{
	struct msg_snapshot snapshot;

	memcpy(&snapshot, packet->body, sizeof snapshot);
	if (packet->header.type != MSG_SNAPSHOT || snapshot.step != SNAPSHOT_SAVE)
		return;
	snapshot = (struct msg_snapshot){ .step = SNAPSHOT_SAVED };
	from_child(0, PORT_IOSRV, 0, MSG_SNAPSHOT, &snapshot, sizeof snapshot, NULL, 0);
}

static void on_from_child(struct node *node, unsigned port, const struct packet *packet)
{
	struct child *child = &node->monitor[port % MAX_CPUS];

	if (port == PORT_IOSRV)
		freeze_on_message(node, &packet->header, packet->body);
	else if (packet->header.type == MSG_CPU_STATE)
		handover_on_state(node, child, &packet->header, packet->body);
	else if (packet->header.type == MSG_CPU_STEP)
		handover_on_step(node, child, &packet->header, packet->body);
	else if (packet->header.type == MSG_SNAPSHOT_ITEM)
		freeze_on_cpu_state(node, port, packet->body, packet->header.bytes);
	else
		freeze_on_monitor(node, port, packet->body);
}

/* A child that has ended since neither says nor hears anything. */
static void on_child_event(struct sim_event *event)
{
	struct node *node = &daemons[event->node].node;
	unsigned port = event->home.interval;
	uint32_t pid = event->home.generation;
	struct child *child = &node->monitor[port % MAX_CPUS];
	bool to = event->type == WORLD_TO_CHILD;

	if (port == PORT_IOSRV)
		to ? iosrv_on_message(event->payload) : on_from_child(node, port, event->payload);
	else if ((uint32_t)child->pid != pid)
		return;
	else if (world.killed[event->node][port] == pid && event->type != WORLD_CHILD_DIED && event->type != WORLD_FROM_CHILD)
		return;
	else if (event->type == WORLD_CHILD_READY)
		on_child_ready(node, child);
	else if (event->type == WORLD_CHILD_DIED)
		on_child_died(node, child);
	else if (event->type == WORLD_BOUNDARY)
		stop(event->node, port, pid);
	else if (to)
		monitor_on_message(event->node, port, pid, event->payload);
	else
		on_from_child(node, port, event->payload);
}

/* --- copies of the machine ------------------------------------------------------------------------------------------- */

int copy_prepare(const struct node *node)
{
	if (node->o.node == 0) {
		memset(world.copied_page, 0, sizeof world.copied_page);
		world.copied_cpus = 0;
	}
	return fault_on(FAULT_SNAPSHOT_NO_MEMORY) == node->o.node + 1 ? -ENOMEM : 0;
}

bool copy_cpu(unsigned cpu, const void *state, uint32_t bytes)
{
	(void)state, (void)bytes;
	if (world.copied_cpus >> cpu & 1)
		sim_fail(machine, "CPU %u is saved twice", cpu);
	world.copied_cpus |= 1u << cpu;
	return true;
}

int copy_mark(struct node *node, enum snapshot_mode mode)
{
	const struct sim_node *at = &machine->nodes[node->o.node];

	(void)mode;
	world.items_left[node->o.node] = 2 + sim_random(machine, 4);
	for (gfn_t gfn = 0; gfn < machine->n_pages; gfn++) {
		if (!dsm_is_owner(node->dsm, gfn))
			continue;
		/* Twice does no harm: what was asked for before may still go from one that has marked it to one that has not. */
		if (memcmp(at->memory[gfn], machine->latest[gfn], sizeof machine->latest[gfn]))
			sim_fail(machine, "node %u: page %u is saved, but not as it is", node->o.node, gfn);
		world.copied_page[gfn] = true;
	}
	return 0;
}

void copy_forget(const struct node *node) { (void)node; }

bool copy_next(const struct node *node, struct copy_item *item)
{
	*item = (struct copy_item){ .kind = SNAPSHOT_PAGE };
	return world.items_left[node->o.node] && world.items_left[node->o.node]--;
}

static bool nothing_outstanding(void)
{
	static const bool none[VECTORS];

	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		if (memcmp(world.outstanding[cpu], none, sizeof none))
			return false;
	return true;
}

void world_check_cut(void)
{
	if (world.copied_cpus != (1u << machine->n_cpus) - 1)
		sim_fail(machine, "saved are CPUs %#x alone", world.copied_cpus);
	if (!nothing_outstanding())
		sim_fail(machine, "an interrupt is in no saved CPU");
	for (gfn_t gfn = 0; gfn < machine->n_pages; gfn++)
		if (!world.copied_page[gfn] && machine->nodes[cluster_home_of(machine, gfn)].dsm->homes[gfn].state != HOME_UNTOUCHED)
			sim_fail(machine, "page %u is not saved", gfn);
}

/* --- clients, the end, and what has no part in this -------------------------------------------------------------------- */

bool clients_send_run(struct node *node, const struct msg_header *header, const void *body)
{
	static struct packet packet;

	(void)node;
	world_after(WORLD_TO_OWNER, 0, PORT_OWNER, 0, &packet, pack(&packet, header, body, header->bytes, NULL, 0));
	return true;
}

void clients_send_answer(struct node *node, const struct msg_header *header, const void *body)
{
	(void)node;
	client_on_answer(header, body);
}

void clients_send_all(struct node *node, enum msg_type type, const void *body, uint32_t body_bytes, const void *payload,
		      uint32_t payload_bytes)
{
	(void)node, (void)type, (void)body, (void)body_bytes, (void)payload, (void)payload_bytes;
}

uint32_t clients_tag(unsigned client, uint32_t seq) { return seq | client << 24; }

void node_end(struct node *node, enum end_reason reason, uint32_t status, const char *format, ...)
{
	char why[END_LINE];
	va_list args;

	(void)status;
	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	if (reason != END_PART_DIED)
		sim_fail(machine, "node %u ends the machine: %s", node->o.node, why);
	machine_ends(node->o.node, why);
}

void node_end_lost(struct node *node, unsigned host, const char *format, ...)
{
	(void)format;
	if (!daemons[host].dead)
		sim_fail(machine, "node %u takes node %u for dead", node->o.node, host);
	machine_ends(node->o.node, "a host is lost");
}

void node_end_here(struct node *node) { daemon_ends(node->o.node); }

void overlay_dial(struct node *node, unsigned peer, const char *where, size_t n) { (void)node, (void)peer, (void)where, (void)n; }
void overlay_flush(struct node *node) { (void)node; }
enum policy policy_now(void) { return POLICY_FIXED; }
void policy_host_came(void) { }
void policy_on_moved(struct node *node, unsigned cpu, int error, const char *why) { (void)node, (void)cpu, (void)error, (void)why; }
bool debug_holds(void) { return false; }
void restore_on_sync(struct node *node) { (void)node; }
void restore_sync(struct node *node) { (void)node; }
void restore_on_item(struct node *node, const struct msg_header *header, const void *body) { (void)node, (void)header, (void)body; }
void restore_item(struct node *node, const struct msg_header *header, const void *body) { (void)node, (void)header, (void)body; }
void node_start_loaded(struct node *node, uint64_t clock_ns) { (void)node, (void)clock_ns; }
struct tsc_mark tsc_mark(void) { return (struct tsc_mark){ 0 }; }

void restore_perhaps_die(const struct node *node, unsigned step)
{
	if (node->o.node == 1)
		fault_die_at(FAULT_CHECKPOINT_DIES, step);
}

/* --- daemons ------------------------------------------------------------------------------------------------------------ */

static void on_interrupt(void *context, const struct msg_header *header, const void *body)
{
	struct msg_interrupt interrupt;

	(void)header;
	memcpy(&interrupt, body, sizeof interrupt);
	route_interrupt(context, &interrupt);
}

static void tell_ready(struct node *node, enum ready_stage stage)
{
	struct msg_node_ready ready = { .node = node->o.node, .stage = stage };

	net_send(node->net, VNODE_DAEMON(0), MSG_NODE_READY, &ready, sizeof ready, NULL, 0);
}

static void on_machine_start(void *context, const struct msg_header *header, const void *body)
{
	(void)header, (void)body;
	hostpart_on_start(context);
	tell_ready(context, READY_STARTED);
}

static void on_node_ready(void *context, const struct msg_header *header, const void *body)
{
	struct msg_node_ready ready;

	(void)header;
	memcpy(&ready, body, sizeof ready);
	hosts_on_ready(context, &ready);
}

static void forget_daemon(struct daemon *daemon)
{
	struct node *node = &daemon->node;

	net_free(node->net);
	free(node->moves);
	free(node->hosts_state);
	free(node->hostpart);
	free(node->freeze);
	*daemon = (struct daemon){ .life = daemon->life + 1 };
}

/* As vmm/node.c does it. */
void world_new_daemon(unsigned number, unsigned n_start, uint32_t join)
{
	struct daemon *daemon = &daemons[number];
	struct node *node = &daemon->node;
	char why[1];

	forget_daemon(daemon);
	daemon->exists = true;
	daemon->loose = join;
	node->o = (struct node_options){ .node = number, .n_nodes = n_start, .n_cpus = machine->n_cpus, .mem_mib = 64, .grows = true,
					 .join = join, .cmdline = "" };
	world.base[number].node = number;
	node->base = &world.base[number];
	node->shm = (struct host_shm *)shm[number];
	memset(node->shm->slot, 0, machine->n_cpus * sizeof node->shm->slot[0]);
	node->dsm = machine->nodes[number].dsm;
	node->net = net_new(number, n_start, node);
	for (unsigned port = 0; port < PORTS; port++)
		world.conn[number][port] = (struct conn){ number, port };
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		net_cpu_at(node->net, cpu, machine->cpus[cpu].node, 0);
	net_on(node->net, MSG_INTERRUPT, on_interrupt);
	net_on(node->net, MSG_MACHINE_START, on_machine_start);
	net_on(node->net, MSG_NODE_READY, on_node_ready);
	net_on(node->net, MSG_SNAPSHOT, freeze_on_message);
	net_on(node->net, MSG_SNAPSHOT_ITEM, freeze_on_item);
	net_on(node->net, MSG_SNAPSHOT_PULL, freeze_on_pull);
	net_carry(node->net, carry, on_overflow);
	handover_start(node);
	node->hosts = join ? join : (1u << n_start) - 1;
	freeze_start(node);
	if (number == 0) {
		moves_start(node);
		hosts_start(node);
		node->iosrv.conn = &world.conn[0][PORT_IOSRV];
		node->client[0].kind = CLIENT_KIND_RUN;
		for (unsigned i = 1; i < MAX_CLIENTS; i++)
			node->client[i].kind = CLIENT_KIND_QUERY;
	}
	node->running = true;
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		if (node_has_cpu(node, cpu))
			supervise_start_monitor(node, cpu, why, sizeof why);
	hostpart_start(node); /* the last: here it may die */
}

static void on_lost(struct node *node, unsigned peer)
{
	if (!hostpart_peer_lost(node, peer))
		node_end_lost(node, peer, "its connection was lost");
}

static void on_client(struct node *node, unsigned number, const struct packet *packet)
{
	struct msg_cpu_move move;

	if (packet->header.type == MSG_CPU_MOVE) {
		memcpy(&move, packet->body, sizeof move);
		moves_request(node, number, &move);
	} else if (packet->header.type == MSG_HOST) {
		hosts_on_client(node, number, &packet->header, packet->body);
	} else {
		freeze_on_client(node, number, &packet->header, packet->body);
	}
}

void world_on_event(struct sim_event *event)
{
	struct daemon *daemon = &daemons[event->node];
	const struct packet *packet = event->payload;

	switch (event->type) {
	case WORLD_MESSAGE:
		if (event->home.generation == daemon->life)
			net_receive(daemon->node.net, event->from, &packet->header, packet->body);
		break;
	case WORLD_TIMER:
		on_timer(event);
		break;
	case WORLD_COLLECT:
		if (machine->cpus[event->home.interval].node == event->node && !machine->cpus[event->home.interval].held)
			collect(event->node, event->home.interval);
		break;
	case WORLD_FROM_CLIENT:
		on_client(&daemon->node, event->home.generation, packet);
		break;
	case WORLD_CLIENT_GONE:
		freeze_client_gone(&daemon->node, event->home.generation);
		break;
	case WORLD_CONNECTED:
		if (event->home.generation == daemon->life)
			tell_ready(&daemon->node, READY_CONNECTED);
		break;
	case WORLD_LOST:
		if (event->home.generation == daemons[event->from].life)
			on_lost(&daemon->node, event->from);
		break;
	default:
		on_child_event(event);
	}
}

void world_open(void)
{
	for (unsigned number = 0; number < MAX_NODES; number++)
		forget_daemon(&daemons[number]);
	memset(&world, 0, sizeof world);
}

void world_check_idle(void)
{
	const struct node *first = &daemons[0].node;

	if (!nothing_outstanding())
		sim_fail(machine, "an interrupt is lost");
	for (unsigned number = 0; number < machine->n_nodes; number++) {
		const struct node *node = &daemons[number].node;

		if (daemons[number].exists != node_has_host(first, number))
			sim_fail(machine, "node %u: a daemon or a host, not both", number);
		if (!daemons[number].exists)
			continue;
		if (node->hosts != first->hosts || node->dsm->nodes != first->hosts)
			sim_fail(machine, "node %u knows hosts %#x, of which %#x stay; there are %#x", number, node->hosts,
				 node->dsm->nodes, first->hosts);
		for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++) {
			bool here = machine->cpus[cpu].node == number;
			const struct child *monitor = &node->monitor[cpu];

			if (node_has_cpu(node, cpu) != here || !monitor->pid == here || monitor->part != PART_RUNS)
				sim_fail(machine, "node %u: CPU %u is %shere; monitor %d, part %d", number, cpu, here ? "" : "not ",
					 monitor->pid, monitor->part);
		}
	}
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		if (machine->cpus[cpu].held || moves_place(first, cpu) != machine->cpus[cpu].node)
			sim_fail(machine, "CPU %u is %s node %u, but was moved to node %u", cpu,
				 machine->cpus[cpu].held ? "held at" : "at", machine->cpus[cpu].node, moves_place(first, cpu));
}
