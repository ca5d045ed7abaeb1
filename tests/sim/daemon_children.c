/* daemon_children.c - monitors, the I/O server, and interrupts; see daemons.h.
 *
 * A monitor is a model of monitor/handover.c and monitor/freeze.c: it stops its CPU where that waits for no page, and takes it
 * in.  A CPU's state on its way to a file or a checkpoint is the simulator's whole processor, so that one that is loaded goes on
 * from there. Interrupts go as in vmm/route.c: to the slot of a CPU that is here, else to where it is believed to be.  Each that
 * is sent has a vector of its own until it has been collected, so that one which is lost, or comes twice, shows.  The one device
 * counts how often it was written to.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "tests/sim/daemons.h"
#include "vmm/snapshot/copy.h"
#include "vmm/snapshot/freeze.h"

enum { FIRST_VECTOR = 32, VECTORS = 256, BOUNDARY_NS = 20000, STATE_BYTES = 8 };
enum wish { WISH_NOTHING, WISH_GIVE, WISH_FREEZE };

static struct {
	struct conn conn[MAX_NODES][PORTS];
	uint32_t next_pid;
	enum wish wish[MAX_NODES][SIM_MAX_CPUS];
	uint32_t killed[MAX_NODES][SIM_MAX_CPUS]; /* the last pid that does nothing any more, and will be reaped */
	bool outstanding[SIM_MAX_CPUS][VECTORS];
	struct { uint32_t writes, copy, items; bool taken; } device;
	uint32_t to_load; /* bit set of CPUs */
	struct witness loaded;
} children;
_Static_assert(sizeof(struct sim_cpu) <= CPU_STATE_LIMIT, "a state");

/* As it stands still, wherever. */
static struct sim_cpu state_of(unsigned cpu)
{
	struct sim_cpu state = machine->cpus[cpu];

	state.node = 0;
	state.held = state.stepped = false;
	state.waits_since = 0;
	return state;
}

void witness_take(struct witness *w)
{
	static const uint32_t zeroes[SIM_MAX_PAGES][SIM_WORDS];

	w->written = memcmp(machine->latest, zeroes, sizeof zeroes);
	w->run = machine->runs;
	w->cpus_running = machine->cpus_running;
	w->devices = children.device.writes;
	memcpy(w->latest, machine->latest, sizeof w->latest);
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++) {
		if (!machine->cpus[cpu].held)
			sim_fail(machine, "the machine is cut, and CPU %u runs", cpu);
		w->cpu[cpu] = state_of(cpu);
	}
	children_check_idle();
}

void children_load(const struct witness *from)
{
	uint32_t pid = children.next_pid;

	children_forget();
	children.next_pid = pid;
	children.loaded = *from;
	children.to_load = (1u << machine->n_cpus) - 1;
	machine->cpus_running = from->cpus_running;
	memcpy(machine->latest, from->latest, sizeof machine->latest);
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		machine->cpus[cpu] = (struct sim_cpu){ .held = true, .node = MAX_NODES };
}

/* All devices have been loaded; the CPUs are before they go on. */
void children_check_loaded(void)
{
	if (children.device.writes != children.loaded.devices)
		sim_fail(machine, "the device has been written to %u times, but %u were loaded", children.loaded.devices,
			 children.device.writes);
}

/* --- interrupts ------------------------------------------------------------------------------------------------------- */

static void collect(unsigned number, unsigned cpu)
{
	struct vcpu_slot *slot = &daemons[number].node.shm->slot[cpu];

	atomic_exchange(&slot->post, 0);
	for (unsigned word = 0; word < VECTORS / 32; word++)
		for (uint32_t bits = atomic_exchange(&slot->irr[word], 0); bits; bits &= bits - 1) {
			bool *outstanding = &children.outstanding[cpu][word * 32 + (unsigned)__builtin_ctz(bits)];

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

void children_post(void)
{
	const struct sim_cpu *from = &machine->cpus[sim_random(machine, machine->n_cpus)];
	unsigned to = sim_random(machine, machine->n_cpus), vector = FIRST_VECTOR + sim_random(machine, VECTORS - FIRST_VECTOR);
	struct msg_interrupt interrupt = { .cpu_mask = 1u << to, .vector = vector };

	if (from->held || daemons[from->node].dead || children.outstanding[to][vector])
		return;
	children.device.writes++;
	children.outstanding[to][vector] = true;
	route_interrupt(&daemons[from->node].node, &interrupt);
}

void children_check_idle(void)
{
	static const bool none[VECTORS];

	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		if (memcmp(children.outstanding[cpu], none, sizeof none))
			sim_fail(machine, "an interrupt for CPU %u is lost, or in no saved CPU", cpu);
}

/* --- monitors --------------------------------------------------------------------------------------------------------- */

static void kill_child(unsigned node, unsigned cpu, uint32_t pid)
{
	children.killed[node][cpu] = pid;
	world_after(WORLD_CHILD_DIED, node, cpu, pid, NULL, 0);
}

static void from_child(unsigned node, unsigned port, uint32_t pid, enum msg_type type, const void *body, uint32_t body_bytes,
		       const void *payload, uint32_t payload_bytes)
{
	struct msg_header header = { .type = type, .version = WIRE_VERSION, .from_node = node };
	static struct packet packet;

	world_after(WORLD_FROM_CHILD, node, port, pid, &packet,
		    world_pack(&packet, &header, body, body_bytes, payload, payload_bytes));
}

int conn_send(struct conn *conn, const struct msg_header *header, const void *body, uint32_t body_bytes, const void *payload,
	      uint32_t payload_bytes)
{
	const struct node *node = &daemons[conn->node].node;
	static struct packet packet;

	world_after(WORLD_TO_CHILD, conn->node, conn->port, conn->port == PORT_IOSRV ? 0 : (uint32_t)node->monitor[conn->port].pid,
		    &packet, world_pack(&packet, header, body, body_bytes, payload, payload_bytes));
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
	child->pid = (pid_t)++children.next_pid;
	child->conn = &children.conn[node->o.node][cpu];
	snprintf(child->name, sizeof child->name, "monitor of CPU %u on host %u", cpu, node->o.node);
	world_after(WORLD_CHILD_READY, node->o.node, cpu, (uint32_t)child->pid, NULL, 0);
	return 0;
}

void supervise_start_children(struct node *node)
{
	char why[1];

	if (node->o.node == 0) {
		node->iosrv.conn = &children.conn[0][PORT_IOSRV];
		world_after(WORLD_CHILD_READY, 0, PORT_IOSRV, 0, NULL, 0);
	}
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		if (node_has_cpu(node, cpu))
			supervise_start_monitor(node, cpu, why, sizeof why);
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
	else
		node_check_ready(node);
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
	enum wish wish = children.wish[number][cpu];

	if (machine->cpus[cpu].waits_for || machine->cpus[cpu].granted)
		return world_after_ns(BOUNDARY_NS, WORLD_BOUNDARY, number, cpu, pid, NULL, 0);
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
	if (children.to_load >> cpu & 1)
		sim_fail(machine, "CPU %u goes on at node %u, and was not loaded", cpu, number);
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

static void load(unsigned number, unsigned cpu, const struct msg_snapshot_item *item, const void *state, uint32_t bytes)
{
	const struct sim_cpu *was = &children.loaded.cpu[cpu];

	if (item->kind != SNAPSHOT_CPU || item->index != cpu || !(children.to_load >> cpu & 1))
		sim_fail(machine, "CPU %u is not to be loaded with item %u of kind %u", cpu, item->index, item->kind);
	if (bytes != sizeof *was || memcmp(state, was, sizeof *was))
		sim_fail(machine, "CPU %u is not as it was", cpu);
	children.to_load &= ~(1u << cpu);
	memcpy(&machine->cpus[cpu], state, sizeof *was);
	machine->cpus[cpu].node = number;
	machine->cpus[cpu].held = true;
	machine->cpus[cpu].stepped = !was->done;
}

static void on_snapshot_step(unsigned number, unsigned cpu, uint32_t pid, uint32_t step)
{
	struct sim_cpu state;

	children.wish[number][cpu] = WISH_FREEZE;
	if (step == SNAPSHOT_FREEZE) {
		stop(number, cpu, pid);
	} else if (step == SNAPSHOT_SAVE) {
		collect(number, cpu);
		state = state_of(cpu);
		from_child(number, cpu, pid, MSG_SNAPSHOT_ITEM, &state, sizeof state, NULL, 0);
	} else {
		go_on(number, cpu);
	}
}

static void monitor_on_message(unsigned number, unsigned cpu, uint32_t pid, const struct packet *packet)
{
	struct msg_snapshot snapshot;
	struct msg_snapshot_item item;

	switch (packet->header.type) {
	case MSG_CPU_GIVE:
		children.wish[number][cpu] = WISH_GIVE;
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
		on_snapshot_step(number, cpu, pid, snapshot.step);
		break;
	case MSG_SNAPSHOT_ITEM:
		memcpy(&item, packet->body, sizeof item);
		load(number, cpu, &item, packet->body + sizeof item, packet->header.bytes - (uint32_t)sizeof item);
		break;
	default:
		sim_fail(machine, "a monitor gets %s", wire_type_name(packet->header.type));
	}
}

/* --- the I/O server ----------------------------------------------------------------------------------------------------- */

static void iosrv_answer(enum snapshot_step step)
{
	struct msg_snapshot answer = { .step = step };

	from_child(0, PORT_IOSRV, 0, MSG_SNAPSHOT, &answer, sizeof answer, NULL, 0);
}

static void iosrv_on_pull(const struct msg_snapshot_pull *pull)
{
	struct msg_snapshot_item chip = { .of = SNAPSHOT_OF_IOSRV, .seq = pull->seq, .kind = SNAPSHOT_CHIP };
	struct msg_snapshot_item last = { .of = SNAPSHOT_OF_IOSRV, .seq = pull->seq, .kind = SNAPSHOT_LAST, .index = 1 };

	for (uint32_t n = 0; n < pull->count && children.device.taken; n++)
		if (!children.device.items++) {
			from_child(0, PORT_IOSRV, 0, MSG_SNAPSHOT_ITEM, &chip, sizeof chip, &children.device.copy,
				   sizeof children.device.copy);
		} else {
			from_child(0, PORT_IOSRV, 0, MSG_SNAPSHOT_ITEM, &last, sizeof last, NULL, 0);
			children.device.taken = false;
		}
}

static void iosrv_on_message(const struct packet *packet)
{
	struct msg_snapshot step;
	struct msg_snapshot_item item;
	struct msg_snapshot_pull pull;

	if (packet->header.type == MSG_SNAPSHOT_PULL) {
		memcpy(&pull, packet->body, sizeof pull);
		iosrv_on_pull(&pull);
	} else if (packet->header.type == MSG_SNAPSHOT_ITEM) {
		memcpy(&item, packet->body, sizeof item);
		if (item.kind == SNAPSHOT_CHIP)
			memcpy(&children.device.writes, packet->body + sizeof item, sizeof children.device.writes);
		iosrv_answer(SNAPSHOT_TAKEN);
	} else {
		memcpy(&step, packet->body, sizeof step);
		children.device.taken &= step.step != SNAPSHOT_END;
		if (step.step != SNAPSHOT_SAVE)
			return;
		children.device.copy = children.device.writes;
		children.device.items = 0;
		children.device.taken = true;
		iosrv_answer(SNAPSHOT_SAVED);
	}
}

/* --- what they say -------------------------------------------------------------------------------------------------------- */

static void on_from_child(struct node *node, unsigned port, const struct packet *packet)
{
	struct child *child = &node->monitor[port % MAX_CPUS];

	if (port == PORT_IOSRV && packet->header.type == MSG_SNAPSHOT_ITEM)
		clients_send_answer(node, &packet->header, packet->body);
	else if (port == PORT_IOSRV)
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

static void on_iosrv_event(struct node *node, const struct sim_event *event)
{
	if (event->type == WORLD_CHILD_READY) {
		node->iosrv.ready = true;
		node_check_ready(node);
	} else if (event->type == WORLD_TO_CHILD) {
		iosrv_on_message(event->payload);
	} else {
		on_from_child(node, PORT_IOSRV, event->payload);
	}
}

/* A child that has ended since neither says nor hears anything. */
void children_on_event(struct sim_event *event)
{
	struct node *node = &daemons[event->node].node;
	unsigned port = event->home.interval;
	uint32_t pid = event->home.generation;
	struct child *child = &node->monitor[port % MAX_CPUS];

	if (event->type == WORLD_COLLECT) {
		if (machine->cpus[port].node == event->node && !machine->cpus[port].held)
			collect(event->node, port);
	} else if (port == PORT_IOSRV) {
		on_iosrv_event(node, event);
	} else if ((uint32_t)child->pid != pid) {
		return;
	} else if (children.killed[event->node][port] == pid && event->type != WORLD_CHILD_DIED && event->type != WORLD_FROM_CHILD) {
		return;
	} else if (event->type == WORLD_CHILD_READY) {
		on_child_ready(node, child);
	} else if (event->type == WORLD_CHILD_DIED) {
		on_child_died(node, child);
	} else if (event->type == WORLD_BOUNDARY) {
		stop(event->node, port, pid);
	} else if (event->type == WORLD_TO_CHILD) {
		monitor_on_message(event->node, port, pid, event->payload);
	} else {
		on_from_child(node, port, event->payload);
	}
}

void children_forget(void)
{
	memset(&children, 0, sizeof children);
	for (unsigned node = 0; node < MAX_NODES; node++)
		for (unsigned port = 0; port < PORTS; port++)
			children.conn[node][port] = (struct conn){ node, port };
}
