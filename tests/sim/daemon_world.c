/* daemon_world.c - what the daemons of daemon-sim, and the process that owns them, call: 
 * sockets, clients; and the daemons' start and end.  See daemons.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "dsm/dsm_private.h"
#include "tests/sim/daemons.h"
#include "vmm/cli/client.h"
#include "vmm/node/clock/clock_sync.h"
#include "vmm/node/cut/copy.h"
#include "vmm/node/cut/freeze.h"
#include "vmm/node/cut/restore.h"
#include "vmm/node/cut/turn.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/node/moves/policy.h"
#include "vmm/node/moves/processors.h"
#include "vmm/node/pages/pagetrace.h"
#include "vmm/node/pages/wants.h"
#include "vmm/shared/hostcpu.h"
#include "vmm/shared/ram.h"

enum { PULLS = 4 };

struct daemon daemons[MAX_NODES];
struct sim *machine;
struct witness world_cut;

static struct world {
	struct hostcpu computer;
	uint64_t last_local[WORLD_EVENTS][MAX_NODES][PORTS];
} world;
/* ---- the clock ---- */

bool clock_known(struct node *node) { (void)node; return true; }
void clock_begin(struct node *node, uint64_t start_ns) { (void)node, (void)start_ns; }

/* ---- events ---- */

void world_after_ns(uint64_t delay_ns, enum world_event kind, unsigned node, unsigned port,
		    uint32_t id, const void *payload, uint32_t bytes)
{
	struct sim_event event = { .kind = EVENT_HOST,
				   .type = (uint16_t)kind,
				   .node = (uint8_t)node,
				   .from = (uint8_t)node,
				   .home = { .interval = port, .generation = id },
				   .payload_bytes = bytes };
	/* Messages of a child or a client arrive before the report of its death. */
	enum world_event order = kind == WORLD_CHILD_READY || kind == WORLD_CHILD_DIED
					 ? WORLD_FROM_CHILD
				 : kind == WORLD_CLIENT_GONE ? WORLD_FROM_CLIENT
							     : kind;
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

void world_after(enum world_event kind, unsigned node, unsigned port, uint32_t id,
		 const void *payload, uint32_t bytes)
{
	uint32_t most = sim_chance(machine, 3) ? SIM_MAX_DELAY_NS : 30000;

	world_after_ns(1000 + sim_random(machine, most), kind, node, port, id, payload, bytes);
}

/* ---- messages between daemons ---- */

uint32_t world_pack(struct packet *packet, const struct msg_header *header, const void *body,
		    uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	bug_on(body_bytes + payload_bytes > sizeof packet->body);
	packet->header = *header;
	packet->header.bytes = body_bytes + payload_bytes;
	memcpy(packet->body, body, body_bytes);
	if (payload_bytes)
		memcpy(packet->body + body_bytes, payload, payload_bytes);
	return (uint32_t)sizeof packet->header + packet->header.bytes;
}

static int carry(void *context, unsigned peer, const struct msg_header *header, const void *body,
		 uint32_t body_bytes, const void *payload, uint32_t payload_bytes)
{
	const struct node *node = context;
	struct sim_event event = { .kind = EVENT_HOST,
				   .type = WORLD_MESSAGE,
				   .home.generation = daemons[peer].life };
	static struct packet packet;
	uint32_t bytes = world_pack(&packet, header, body, body_bytes, payload, payload_bytes);

	outside_check_end(&packet);
	if (!machine->broken && !daemons[peer].exists &&
	    (!daemons[peer].dead || daemons[peer].in_order))
		sim_fail(machine, "%s from node %u for node %u, which is gone",
			 wire_type_name(header->type), node->o.node, peer);
	sim_trace(machine, "node %u -> %u %s", node->o.node, peer, wire_type_name(header->type));
	cluster_send(machine, node->o.node, peer, &event, &packet, bytes);
	return 0;
}

static void on_overflow(void *context, unsigned peer)
{
	(void)context;
	sim_fail(machine, "node %u takes no messages", peer);
}

/* ---- clients, and the owner, which is client 0 ---- */

static void send_client(unsigned number, const struct msg_header *header, const void *body,
			uint32_t bytes, const void *payload, uint32_t payload_bytes)
{
	static struct packet packet;

	world_after(WORLD_FROM_CLIENT, 0, number ? PORT_CLIENT : PORT_OWNER, number, &packet,
		    world_pack(&packet, header, body, bytes, payload, payload_bytes));
}

void world_send_client(unsigned number, enum msg_type type, const void *body, uint32_t bytes)
{
	struct msg_header header = packet_header(type, VNODE_CLI, 0, 0);

	send_client(number, &header, body, bytes, NULL, 0);
}

/* A client may ask for as few items at a time as it likes. */
static void send_pull(unsigned number, const struct msg_header *header,
		      const struct msg_snapshot_pull *body)
{
	struct msg_snapshot_pull part = *body;
	uint32_t left = body->count;

	for (unsigned i = 0; i < PULLS; i++, left -= part.count) {
		part.count = i + 1 < PULLS ? 1 + sim_random(machine, 3) : left;
		send_client(number, header, &part, sizeof part, NULL, 0);
	}
}

void client_send(struct client *c, enum msg_type type, vnode_t to, const void *body,
		 size_t body_bytes, const void *payload, size_t payload_bytes)
{
	struct msg_header header = packet_header(type, to, 0, 0);

	if (c->fd < 0)
		return;
	if (type == MSG_SNAPSHOT_PULL)
		send_pull((unsigned)c->fd, &header, body);
	else
		send_client((unsigned)c->fd, &header, body, (uint32_t)body_bytes, payload,
			    (uint32_t)payload_bytes);
}

bool client_has_room(const struct client *c) { (void)c; return !sim_chance(machine, 10); }
void client_close(struct client *c) { c->fd = -1; }

/* ---- a file that is not linked: node_stats.c ---- */

void node_stats_send(struct node *node, uint32_t seq) { (void)node, (void)seq; }
void node_pages_send(struct node *node, uint32_t seq) { (void)node, (void)seq; }

/* ---- daemons ---- */

void world_forget_daemon(unsigned number)
{
	struct daemon *daemon = &daemons[number];
	struct node *node = &daemon->node;

	net_free(node->net);
	free(node->moves);
	free(node->hosts_state);
	free(node->hostpart);
	free(node->freeze);
	free(node->turn);
	free(node->policy);
	free(node->processors);
	outside_forget(number);
	pages_end_node(machine, number);
	*daemon = (struct daemon){ .life = daemon->life + 1 };
}

const char *world_rundir(void)
{
	static char path[IO_PATH];

	io_path(path, "");
	return path;
}

/* Offers the memory, as a daemon does at its start; half of the hosts pretend to be other
 * computers. */
static void offer_ram(struct node *node)
{
	char link[IO_PATH + 16];

	snprintf(link, sizeof link, RAM_LINK_FORMAT, world_rundir(), node->o.node);
	unlink(link);
	node->o.dir = sim_chance(machine, 50) ? world_rundir() : NULL;
	restore_offer_ram(node);
}

/* Starts a daemon as vmm/node/node.c does.  One that neither joins nor is loaded runs already. */
void world_new_daemon(unsigned number, unsigned n_start, uint32_t join, bool restore)
{
	struct daemon *daemon = &daemons[number];
	struct sim_node *at = &machine->nodes[number];
	struct node *node = &daemon->node;

	world_forget_daemon(number);
	daemon->exists = true;
	daemon->loose = join;
	node->o = (struct node_options){
		.node = number, .join = join, .cmdline = "", .features = world.computer.features
	};
	node->o.machine = (struct machine){ .hosts = n_start,
					    .cpus = machine->n_cpus,
					    .mem_mib = 64,
					    .grows = true,
					    .policy = POLICY_FIXED,
					    .engine = ENGINE_DIRECT,
					    .without = pages_without(),
					    .restore = restore };
	node->loop = world_loop(number);
	node->outside = &outside_sim;
	supervise_start(node);
	processors_start(node);
	node->shm = pages_shm(number);
	memset(node->shm->slot, 0, machine->n_cpus * sizeof node->shm->slot[0]);
	memset(node->shm->doorbell, 0, sizeof node->shm->doorbell);
	node->shm->many_hosts = true;
	node->shm->ram_pages = machine->n_pages;
	node->ram = at->ram;
	node->ram_fd = at->ram_fd;
	node->ram_pages = machine->n_pages;
	if (restore) {
		memset(node->ram, 0, (size_t)machine->n_pages * PAGE_BYTES);
		offer_ram(node);
	}
	node->net = net_new(number, n_start, route_deliver, node);
	net_carry(node->net, carry, on_overflow);
	pages_start(node);
	if (!restore && !join)
		for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
			net_cpu_at(node->net, cpu, machine->cpus[cpu].node, 0);
	handover_start(node);
	node->hosts = join ? join : (1u << n_start) - 1;
	freeze_start(node);
	policy_start(node);
	if (number == 0) {
		moves_start(node);
		hosts_start(node);
		turn_start(node);
	}
	node->running = node->started = !restore;
	node->user_ns = 1; /* the guest has booted: its fetches count for the policy */
	node->told_ready = !restore && !join;
	supervise_start_children(node);
	if (restore || join)
		world_after(WORLD_CONNECTED, number, PORT_OWNER, daemon->life, NULL, 0);
	hostpart_start(node); /* last, since the daemon may die here */
}

/* Does what on_gone() in vmm/node/wire/overlay.c does. */
static void on_lost(struct node *node, unsigned peer)
{
	daemons[node->o.node].lost |= 1u << peer;
	if (node->ending || hostpart_peer_lost(node, peer))
		return;
	if (peer == 0) {
		node->failed = true;
		node_end_here(node);
	} else {
		node_end_lost(node, peer, "its connection was lost");
	}
}

void world_on_event(struct sim_event *event)
{
	struct daemon *daemon = &daemons[event->node];
	const struct packet *packet = event->payload;
	bool same_life = daemon->exists && event->home.generation == daemon->life;

	switch (event->type) {
	case WORLD_MESSAGE:
		if (same_life) {
			struct message m = packet_message(&packet->header, packet->body);

			pages_on_message(&daemon->node, event->from, &m);
		}
		break;
	case WORLD_TIMER:
		loops_on_timer(event);
		break;
	case WORLD_LOOK:
		if (daemon->exists)
			pages_on_look(event->node);
		break;
	case WORLD_SLEEP:
		if (daemon->exists)
			pages_on_sleep(event->node);
		break;
	case WORLD_FROM_CLIENT:
		outside_from_client(event->home.generation, packet);
		break;
	case WORLD_CLIENT_GONE:
		outside_client_goes(event->home.generation);
		break;
	case WORLD_OWNER_CAME:
		outside_client_comes(0);
		break;
	case WORLD_CONNECTED:
		daemon->connected |= same_life;
		if (same_life)
			node_check_ready(&daemon->node);
		break;
	case WORLD_LOST:
		if (event->home.generation == daemons[event->from].life)
			on_lost(&daemon->node, event->from);
		break;
	default:
		children_on_event(event);
	}
}

void world_open(void)
{
	for (unsigned number = 0; number < machine->n_nodes; number++)
		world_forget_daemon(number);
	guests_open();
	memset(&world, 0, sizeof world);
	hostcpu_look(&world.computer);
	children_forget();
}

void world_close(void) { loops_close(); }

void world_check_idle(void)
{
	const struct node *first = &daemons[0].node;

	children_check_idle();
	for (unsigned number = 0; number < machine->n_nodes; number++) {
		const struct node *node = &daemons[number].node;

		if (daemons[number].exists != node_has_host(first, number))
			sim_fail(machine, "node %u: a daemon or a host, not both", number);
		if (!daemons[number].exists)
			continue;
		if (node->hosts != first->hosts || node->dsm->nodes != first->hosts)
			sim_fail(machine, "node %u knows hosts %#x, of which %#x stay; there are "
				 "%#x",
				 number, node->hosts, node->dsm->nodes, first->hosts);
		for (unsigned cpu = 0; cpu < machine->n_cpus && cpu < SIM_MAX_CPUS; cpu++) {
			bool here = machine->cpus[cpu].node == number;
			const struct child *monitor = &node->monitor[cpu];

			if (node_has_cpu(node, cpu) != here || !monitor->pid == here ||
			    monitor->part != PART_RUNS)
				sim_fail(machine, "node %u: CPU %u is %shere; monitor %d, part %d",
					 number, cpu, here ? "" : "not ", monitor->pid,
					 monitor->part);
		}
	}
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		if (machine->cpus[cpu].held || moves_place(first, cpu) != machine->cpus[cpu].node)
			sim_fail(machine, "CPU %u is %s node %u, but was moved to node %u", cpu,
				 machine->cpus[cpu].held ? "held at" : "at",
				 machine->cpus[cpu].node, moves_place(first, cpu));
}
