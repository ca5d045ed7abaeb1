/* daemon_children.c - monitors and interrupts; see daemons.h.
 *
 * A monitor is a model of monitor/cpu_handover.c and monitor/cpu_freeze.c: it stops its CPU when
 * the CPU waits for no page, and loads it.  A CPU's state on its way to a file or a checkpoint is
 * the simulator's whole processor, so that a loaded CPU continues from there.  The children's
 * messages go through vmm/node/wire/route.c.  Each interrupt has a vector of its own until it has
 * been collected.  So the simulator notices an interrupt that is lost or comes twice.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "tests/sim/daemons.h"
#include "vmm/node/cut/copy.h"
#include "vmm/node/cut/freeze.h"

enum { FIRST_VECTOR = 32, VECTORS = 256, BOUNDARY_NS = 20000, STATE_BYTES = 8 };
enum wish { WISH_NOTHING, WISH_GIVE, WISH_FREEZE };

static struct {
	enum wish wish[MAX_NODES][SIM_MAX_CPUS];
	/* the last pid that was killed and has yet to be reaped */
	uint32_t killed[MAX_NODES][SIM_MAX_CPUS];
	bool outstanding[SIM_MAX_CPUS][VECTORS];
	bool looks[SIM_MAX_CPUS]; /* it will soon read its posts */
	uint32_t to_load; /* bit set of CPUs */
	struct witness loaded;
} children;
_Static_assert(sizeof(struct cpu_state) <= CPU_STATE_LIMIT, "a state");

/* Writes a CPU's state while it stands still, on whichever host it is. */
static void state_of(unsigned cpu, struct cpu_state *state)
{
	memset(state, 0, sizeof *state);
	state->cpu = machine->cpus[cpu];
	state->guest = guests[cpu];
	state->cpu.node = 0;
	state->cpu.held = state->cpu.stepped = false;
	state->cpu.waits_since = 0;
}

void witness_take(struct witness *w)
{
	static const uint32_t zeroes[SIM_MAX_PAGES][SIM_WORDS];

	w->written = memcmp(machine->latest, zeroes, sizeof zeroes);
	w->run = machine->runs;
	w->cpus_running = machine->cpus_running;
	w->typed = guests[0].pos + io_input_waiting();
	memcpy(w->latest, machine->latest, sizeof w->latest);
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++) {
		if (!machine->cpus[cpu].held)
			sim_fail(machine, "the machine is cut, and CPU %u runs", cpu);
		state_of(cpu, &w->cpu[cpu]);
	}
	children_check_idle();
}

void children_load(const struct witness *from)
{
	children_forget();
	guests_forget();
	children.loaded = *from;
	children.to_load = (1u << machine->n_cpus) - 1;
	machine->cpus_running = from->cpus_running;
	memcpy(machine->latest, from->latest, sizeof machine->latest);
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		machine->cpus[cpu] = (struct sim_cpu){ .held = true, .node = MAX_NODES };
}

/* ---- interrupts ---- */

static void collect(unsigned number, unsigned cpu)
{
	struct host_shm *shm = daemons[number].node.shm;
	struct doorbell *bell = &shm->doorbell[cpu];

	atomic_exchange(&shm->slot[cpu].post, 0);
	for (unsigned word = 0; word < VECTORS / 32; word++)
		for (uint32_t bits = atomic_exchange(&bell->irr[word], 0); bits; bits &= bits - 1) {
			unsigned vector = word * 32 + (unsigned)__builtin_ctz(bits);
			bool *outstanding = &children.outstanding[cpu][vector];

			if (vector == GUEST_VECTOR) {
				guest_interrupt(cpu);
				continue;
			}
			if (!*outstanding)
				sim_fail(machine, "an interrupt has come twice to CPU %u", cpu);
			*outstanding = false;
		}
}

static bool has_interrupt(const struct doorbell *bell)
{
	bool has = false;

	for (unsigned word = 0; word < VECTORS / 32; word++)
		has |= atomic_load(&bell->irr[word]) != 0;
	return has;
}

void children_look_at_posts(void)
{
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++) {
		unsigned number = machine->cpus[cpu].node;
		bool lives = number < MAX_NODES && daemons[number].exists && !daemons[number].dead;

		if (!lives || machine->cpus[cpu].held || children.looks[cpu] ||
		    !has_interrupt(&daemons[number].node.shm->doorbell[cpu]))
			continue;
		children.looks[cpu] = true;
		world_after(WORLD_COLLECT, number, cpu, 0, NULL, 0);
	}
}

void children_post(void)
{
	const struct sim_cpu *from = &machine->cpus[sim_random(machine, machine->n_cpus)];
	unsigned to = sim_random(machine, machine->n_cpus),
		 vector = FIRST_VECTOR + sim_random(machine, VECTORS - FIRST_VECTOR);
	struct msg_interrupt interrupt = { .cpu_mask = 1u << to, .vector = vector };

	if (from->held || daemons[from->node].dead || children.outstanding[to][vector])
		return;
	children.outstanding[to][vector] = true;
	route_interrupt(&daemons[from->node].node, &interrupt);
}

void children_check_idle(void)
{
	static const bool none[VECTORS];

	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		if (memcmp(children.outstanding[cpu], none, sizeof none))
			sim_fail(machine, "an interrupt for CPU %u is lost, or in no saved CPU",
				 cpu);
}

/* ---- monitors ---- */

void children_kill(unsigned node, unsigned port, uint32_t pid)
{
	if (port < SIM_MAX_CPUS)
		children.killed[node][port] = pid;
	world_after(WORLD_CHILD_DIED, node, port, pid, NULL, 0);
}

void children_say(unsigned node, unsigned port, uint32_t pid, enum msg_type type, const void *body,
		  uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	struct msg_header header = packet_header(type, 0, node, 0);
	static struct packet packet;

	world_after(WORLD_FROM_CHILD, node, port, pid, &packet,
		    world_pack(&packet, &header, body, body_bytes, payload, payload_bytes));
}

/* Stops a CPU at an instruction boundary, when it waits for no page. */
static void stop(unsigned number, unsigned cpu, uint32_t pid)
{
	struct msg_cpu_state state = { .cpu = cpu, .state_bytes = STATE_BYTES };
	struct msg_snapshot frozen = { .of = cpu, .step = SNAPSHOT_FROZEN };
	uint8_t bytes[STATE_BYTES] = { [STATE_BYTES / 2] = fault_on(FAULT_MOVE_DAMAGE) ? 1 : 0 };
	enum wish wish = children.wish[number][cpu];

	if (machine->cpus[cpu].waits_for || machine->cpus[cpu].granted || guest_waits(cpu))
		return world_after_ns(BOUNDARY_NS, WORLD_BOUNDARY, number, cpu, pid, NULL, 0);
	cpu_hold(machine, cpu);
	collect(number, cpu);
	if (wish == WISH_GIVE)
		children_say(number, cpu, pid, MSG_CPU_STATE, &state, sizeof state, bytes,
			     sizeof bytes);
	else
		children_say(number, cpu, pid, MSG_SNAPSHOT, &frozen, sizeof frozen, NULL, 0);
	if (wish == WISH_GIVE && fault_on(FAULT_MOVE_SOURCE_DIES))
		children_kill(number, cpu, pid);
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
	guest_go(cpu);
}

static void take_in(unsigned number, unsigned cpu, uint32_t pid, const uint8_t *state)
{
	struct msg_cpu_step step = { .cpu = cpu,
				     .step = STEP_TAKEN,
				     .error = state[STATE_BYTES / 2] ? EBADMSG : 0 };
	const char *why = step.error ? "is damaged" : "";

	if (fault_on(FAULT_MOVE_TARGET_DIES))
		return children_kill(number, cpu, pid);
	if (!step.error) {
		go_on(number, cpu);
		machine->moves++;
	}
	children_say(number, cpu, pid, MSG_CPU_STEP, &step, sizeof step, why,
		     (uint32_t)strlen(why));
}

static void load(unsigned number, unsigned cpu, const struct msg_snapshot_item *item,
		 const void *state, uint32_t bytes)
{
	const struct cpu_state *was = &children.loaded.cpu[cpu];

	if (item->kind != SNAPSHOT_CPU || item->index != cpu || !(children.to_load >> cpu & 1))
		sim_fail(machine, "CPU %u is not to be loaded with item %u of kind %u", cpu,
			 item->index, item->kind);
	if (bytes != sizeof *was || memcmp(state, was, sizeof *was))
		sim_fail(machine, "CPU %u is not as it was", cpu);
	children.to_load &= ~(1u << cpu);
	machine->cpus[cpu] = was->cpu;
	guests[cpu] = was->guest;
	machine->cpus[cpu].node = number;
	machine->cpus[cpu].held = true;
	machine->cpus[cpu].stepped = !was->cpu.done;
}

static void on_snapshot_step(unsigned number, unsigned cpu, uint32_t pid, uint32_t step)
{
	struct msg_snapshot_item item = { .of = number, .kind = SNAPSHOT_CPU, .index = cpu };
	struct cpu_state state;

	children.wish[number][cpu] = WISH_FREEZE;
	if (step == SNAPSHOT_FREEZE) {
		stop(number, cpu, pid);
	} else if (step == SNAPSHOT_SAVE) {
		collect(number, cpu);
		state_of(cpu, &state);
		children_say(number, cpu, pid, MSG_SNAPSHOT_ITEM, &item, sizeof item, &state,
			     sizeof state);
	} else {
		go_on(number, cpu);
	}
}

static void monitor_on_message(unsigned number, unsigned cpu, uint32_t pid,
			       const struct packet *packet)
{
	struct msg_snapshot snapshot;
	struct msg_snapshot_item item;
	struct msg_page_ready ready;

	switch (packet->header.type) {
	case MSG_IO_REPLY:
		guest_on_reply(cpu, packet);
		break;
	case MSG_PAGE_READY:
		memcpy(&ready, packet->body, sizeof ready);
		pages_on_ready(cpu, &ready);
		break;
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
		load(number, cpu, &item, packet->body + sizeof item,
		     packet->header.bytes - (uint32_t)sizeof item);
		break;
	default:
		sim_fail(machine, "a monitor gets %s", wire_type_name(packet->header.type));
	}
}

/* ---- their messages ---- */

static void on_iosrv_event(struct sim_event *event)
{
	const struct packet *packet = event->payload;

	if (event->type == WORLD_TO_CHILD)
		io_on_message(packet);
	else if (event->type == WORLD_IO)
		io_on_event(event->home.generation);
	else
		outside_from_child(event->node, PORT_IOSRV, packet);
}

static void on_monitor_event(struct sim_event *event)
{
	unsigned port = event->home.interval;
	uint32_t pid = event->home.generation;

	if ((uint32_t)daemons[event->node].node.monitor[port].pid != pid ||
	    (children.killed[event->node][port] == pid && event->type != WORLD_FROM_CHILD))
		return;
	if (event->type == WORLD_BOUNDARY)
		stop(event->node, port, pid);
	else if (event->type == WORLD_TO_CHILD)
		monitor_on_message(event->node, port, pid, event->payload);
	else
		outside_from_child(event->node, port, event->payload);
}

/* A child that has ended sends and receives nothing more. */
void children_on_event(struct sim_event *event)
{
	unsigned port = event->home.interval;
	uint32_t pid = event->home.generation;
	const struct node *node = &daemons[event->node].node;
	const struct child *child = port == PORT_IOSRV ? &node->iosrv
						       : &node->monitor[port % MAX_CPUS];

	if (event->type == WORLD_COLLECT) {
		children.looks[port] = false;
		if (machine->cpus[port].node == event->node && !machine->cpus[port].held)
			collect(event->node, port);
	} else if (event->type == WORLD_GUEST) {
		guest_step(port, pid);
	} else if (event->type == WORLD_CHILD_DIED) {
		outside_child_died(event->node, port, pid);
	} else if (event->type == WORLD_CHILD_READY) {
		if ((uint32_t)child->pid == pid &&
		    (port == PORT_IOSRV || children.killed[event->node][port] != pid))
			outside_child_ready(event->node, port);
	} else if (port == PORT_IOSRV) {
		on_iosrv_event(event);
	} else {
		on_monitor_event(event);
	}
}

void children_forget(void) { memset(&children, 0, sizeof children); }
