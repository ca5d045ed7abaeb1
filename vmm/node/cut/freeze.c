/* freeze.c - see freeze.h. */
#include "vmm/node/cut/freeze.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/guest_abi.h"
#include "base/log.h"
#include "dsm/dsm.h"
#include "vmm/node/agenda.h"
#include "vmm/node/cut/copy.h"
#include "vmm/node/cut/restore.h"
#include "vmm/node/cut/turn.h"
#include "vmm/node/wire/conn.h"
#include "vmm/shared/snapshot_machine.h"
#include "vmm/shared/tsc.h"

enum { NO_CLIENT = -1, SETTLE_MS = 1, MARK_ROUNDS = 2 };

struct freeze {
	bool active;	/* between PREPARE and END; the fields below belong to this snapshot */
	bool frozen;		/* between PREPARE and THAW */
	bool last;		/* CHECKPOINT_LAST: it is pulled while the machine stands still */
	bool saving, all_sent;
	int error;		/* -errno: there is no memory for the snapshot */
	enum snapshot_mode mode;
	uint32_t frozen_cpus, saved_cpus, marks[MARK_ROUNDS];
	uint32_t sent; /* items */
	bool ended; /* at least one snapshot has been made */
	struct leader { /* node 0 alone */
		int client;	       /* the client's slot */
		uint32_t seq;	       /* the client's request number, with its slot */
		enum snapshot_mode mode;
		uint32_t prepared_nodes, frozen_nodes, done_nodes, result;
		/* when the pause began, when all CPUs stood, when the devices were copied */
		uint64_t began_ns, frozen_ns, saved_ns;
		bool stands;	/* CHECKPOINT_LAST: all is copied, and the machine stands still */
	} leader;
};

/* Resets the state of one snapshot.  Keeps what node 0 needs to lead the next one. */
static void forget(struct freeze *f)
{
	*f = (struct freeze){ .ended = f->ended, .leader = f->leader };
}

static uint32_t local_cpus(const struct node *node)
{
	uint32_t cpus = 0;

	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		cpus |= (uint32_t)node_has_cpu(node, cpu) << cpu;
	return cpus;
}

static void send_step(struct node *node, unsigned to, enum snapshot_step step, uint32_t result)
{
	struct msg_snapshot body = { .of = node->o.node, .step = step, .result = result };

	net_send(node->net, VNODE_DAEMON(to), MSG_SNAPSHOT, &body, sizeof body, NULL, 0);
}

static void send_step_to_all(struct node *node, enum snapshot_step step, uint32_t result)
{
	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		if (node_has_host(node, peer))
			send_step(node, peer, step, result);
}

void freeze_send_to_child(struct node *node, struct child *child, enum msg_type type,
			  const void *body, uint32_t body_bytes, const void *payload,
			  uint32_t payload_bytes)
{
	struct msg_header header = packet_header(type, 0, node->o.node, body_bytes + payload_bytes);

	if (child->conn &&
	    conn_send(child->conn, &header, body, body_bytes, payload, payload_bytes) == -ENOBUFS)
		node_end(node, END_FAILURE, 0, "the %s does not take its messages", child->name);
}

static void tell_monitors(struct node *node, enum snapshot_step step)
{
	struct msg_snapshot body = { .of = node->o.node, .step = step };

	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (node_has_cpu(node, cpu)) {
			freeze_send_to_child(node, &node->monitor[cpu], MSG_SNAPSHOT, &body,
					     sizeof body, NULL, 0);
			hostshm_post(node->shm, cpu, POST_MESSAGE);
		}
}

static void tell_iosrv(struct node *node, enum snapshot_step step, uint32_t result)
{
	struct msg_snapshot body = { .step = step, .result = result };

	freeze_send_to_child(node, &node->iosrv, MSG_SNAPSHOT, &body, sizeof body, NULL, 0);
}

/* ---- the cut ---- */

/* Copies when no page is in flight.  No CPU waits for a page, but a page may be in flight that
 * nobody waits for; it must arrive first.  (TRICKS: page-in-flight) */
static void copy_when_settled(void *context)
{
	struct node *node = context;
	const struct freeze *f = node->freeze;

	if (!node->dsm || dsm_settled(node->dsm))
		send_step(node, 0, SNAPSHOT_DONE,
			  (uint32_t) - (f->error ? f->error : copy_mark(node, f->mode)));
	else if (loop_once(&node->loop, SETTLE_MS * LOOP_MS, copy_when_settled, node))
		die("no memory for events");
}

static void send_marks(struct node *node, uint32_t round)
{
	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		if (node_has_host(node, peer) && peer != node->o.node)
			send_step(node, peer, SNAPSHOT_MARK, round);
	node->freeze->marks[round] |= 1u << node->o.node;
}

/* Continues when the marks of a round have come from all hosts.  Behind those of the first round,
 * nothing arrives that was sent to this host, except what another host forwards to a CPU that has
 * moved here; that arrives ahead of its mark of the second round.  Then the CPUs give their state.
 * (TRICKS: cpus-devices-cpus) */
static void check_marks(struct node *node)
{
	struct freeze *f = node->freeze;

	if (f->marks[0] != node->hosts || f->saving)
		return;
	if (!(f->marks[1] >> node->o.node & 1))
		send_marks(node, 1);
	if (f->marks[1] != node->hosts)
		return;
	f->saving = true;
	tell_monitors(node, SNAPSHOT_SAVE);
	if (!local_cpus(node))
		copy_when_settled(node);
}

void freeze_on_cpu_state(struct node *node, const struct message *m,
			 const struct msg_snapshot_item *item)
{
	(void)item;
	if (!node->freeze->error && !copy_cpu(node, m->from, m->payload, m->payload_bytes)) {
		log_error("CPU %u sent a state of %u bytes that nobody asked for", m->from,
			  m->payload_bytes);
		return;
	}
	node->freeze->saved_cpus |= 1u << m->from;
	if (node->freeze->saved_cpus == local_cpus(node))
		copy_when_settled(node);
}

/* Dies at a step if that fault point is on, from the second snapshot on. */
static void perhaps_die(const struct node *node, unsigned step)
{
	if (node->freeze->ended)
		restore_perhaps_die(node, step);
}

/* ---- what every daemon does ---- */

static void on_prepare(struct node *node)
{
	perhaps_die(node, 1);
	forget(node->freeze);
	node->freeze->active = node->freeze->frozen = true;
	node->freeze->error = copy_prepare(node);
	send_step(node, 0, SNAPSHOT_PREPARED, 0);
}

/* Stops the CPUs.  Only after this step the owner has a checkpoint, and a standby a copy of one.
 * So from now on a loss costs the way back alone. */
static void on_freeze(struct node *node)
{
	node->outside->be_prompt(node);
	tell_monitors(node, SNAPSHOT_FREEZE);
	if (!local_cpus(node)) /* perhaps all its CPUs have moved away */
		send_step(node, 0, SNAPSHOT_FROZEN, 0);
}

static void on_thaw(struct node *node)
{
	node->freeze->frozen = false;
	tell_monitors(node, SNAPSHOT_THAW);
}

static void on_monitor_frozen(struct node *node, unsigned cpu)
{
	node->freeze->frozen_cpus |= 1u << cpu;
	if (node->freeze->frozen_cpus == local_cpus(node))
		send_step(node, 0, SNAPSHOT_FROZEN, 0);
}

static void on_end(struct node *node)
{
	node->freeze->ended = true;
	copy_forget(node);
	forget(node->freeze);
}

static void on_cut(struct node *node, enum snapshot_mode mode)
{
	perhaps_die(node, 2);
	node->freeze->mode = mode;
	node->freeze->last = mode == CHECKPOINT_LAST;
	send_marks(node, 0);
	check_marks(node);
}

static void send_item(struct node *node, uint32_t seq, const struct copy_item *of)
{
	struct msg_snapshot_item item = {
		.of = node->o.node, .seq = seq, .kind = of->kind, .index = of->index
	};

	net_send(node->net, VNODE_CLI, MSG_SNAPSHOT_ITEM, &item, sizeof item, of->data, of->bytes);
	node->freeze->sent++;
}

void freeze_on_pull(struct node *node, const struct message *m,
		    const struct msg_snapshot_pull *pull)
{
	struct freeze *f = node->freeze;
	struct copy_item item;

	(void)m;
	for (uint32_t n = 0;
	     n < pull->count && f->active && (!f->frozen || f->last) && !f->all_sent; n++) {
		perhaps_die(node, 3);
		f->all_sent = !copy_next(node, &item);
		if (f->all_sent)
			item = (struct copy_item){ .kind = SNAPSHOT_LAST, .index = f->sent };
		send_item(node, pull->seq, &item);
	}
	if (f->all_sent)
		perhaps_die(node, 4);
}

/* ---- node 0 leads ---- */

void freeze_answer(struct node *node, uint32_t seq, enum snapshot_kind kind, uint32_t index,
		   const void *data, uint32_t bytes)
{
	struct msg_snapshot_item item = { .seq = seq, .kind = kind, .index = index };
	struct msg_header header = packet_header(MSG_SNAPSHOT_ITEM, VNODE_CLI, node->o.node,
						 sizeof item + bytes);
	uint8_t packet[sizeof item + MAX_MSG_PAYLOAD];

	memcpy(packet, &item, sizeof item);
	memcpy(packet + sizeof item, data, bytes);
	clients_send_answer(node, &header, packet);
}

static unsigned long long us_between(uint64_t from_ns, uint64_t to_ns)
{
	return (to_ns - from_ns) / 1000;
}

static void log_pause(const struct leader *l, uint64_t pause_ns)
{
	log_info("saved: stood still for %llu us: %llu until all processors did, %llu for the "
		 "devices, %llu for the cut", us_between(0, pause_ns),
		 us_between(l->began_ns, l->frozen_ns), us_between(l->frozen_ns, l->saved_ns),
		 us_between(l->saved_ns, l->began_ns + pause_ns));
}

static void describe_machine(struct node *node)
{
	struct snapshot_machine machine = {
		.saved_ns = loop_date_ns(&node->loop),
		.clock_ns = node_clock_ns(node),
		.pause_ns = node_now_ns(node) - node->freeze->leader.began_ns,
		.tsc_khz = node->shm->tsc_khz, .tsc = node->outside->tsc_mark().ticks,
		.features = node->o.features,
	};
	struct machine now = node->o.machine;
	uint8_t payload[sizeof machine + MAX_CMDLINE];
	size_t line = strlen(node->o.cmdline) + 1;

	now.hosts = (uint32_t)__builtin_popcount(node->hosts);
	machine_print(&now, MACHINE_SAVED, machine.machine, sizeof machine.machine);
	cpufeatures_vendor(machine.vendor);
	memcpy(payload, &machine, sizeof machine);
	memcpy(payload + sizeof machine, node->o.cmdline, line);
	log_pause(&node->freeze->leader, machine.pause_ns);
	freeze_answer(node, node->freeze->leader.seq, SNAPSHOT_MACHINE, 0, payload,
		      sizeof machine + line);
}

static void end_snapshot(struct node *node)
{
	node->freeze->leader.client = NO_CLIENT;
	tell_iosrv(node, SNAPSHOT_END, 0);
	send_step_to_all(node, SNAPSHOT_END, 0);
	agenda_done(node, AGENDA_SAVED);
}

void freeze_thaw_all(struct node *node)
{
	tell_iosrv(node, SNAPSHOT_THAW, 0);
	send_step_to_all(node, SNAPSHOT_THAW, 0);
}

/* Lets the machine run.  Moves continue only after the last THAW was sent, so that a monitor gets
 * no move before it. */
static void thaw(struct node *node)
{
	node->freeze->leader.stands = false;
	freeze_thaw_all(node);
	agenda_done(node, AGENDA_STILL);
}

/* Called when all hosts have copied their parts, or one cannot. */
static void finish(struct node *node)
{
	static const char no_memory[] = "a host has not got the memory for a copy of the machine; "
					"close something, or use more hosts";
	struct leader *leader = &node->freeze->leader;
	uint32_t result = leader->result;

	/* Read the clock before a CPU can read it again. */
	if (!result && leader->client != NO_CLIENT)
		describe_machine(node);
	leader->stands = !result && leader->client != NO_CLIENT && leader->mode == CHECKPOINT_LAST;
	if (leader->stands)
		return;
	if (result)
		freeze_answer(node, leader->seq, SNAPSHOT_REFUSED, 0, no_memory,
			      sizeof no_memory - 1);
	thaw(node);
	if (result || leader->client == NO_CLIENT)
		end_snapshot(node);
}

void freeze_begin(struct node *node, unsigned number, uint32_t seq, enum snapshot_mode mode)
{
	/* Only the owner may ask for what has changed since the last checkpoint. */
	if (node->client[number].kind != CLIENT_KIND_RUN)
		mode = SNAPSHOT_APART;
	node->freeze->leader = (struct leader){ .client = (int)number, .seq = seq, .mode = mode };
	send_step_to_all(node, SNAPSHOT_PREPARE, 0);
}

bool freeze_is_led(const struct node *node)
{
	return node->freeze->leader.client != NO_CLIENT || node->freeze->active;
}

static void on_iosrv_saved(struct node *node, uint32_t result)
{
	node->freeze->leader.result |= result;
	node->freeze->leader.saved_ns = node_now_ns(node);
	send_step_to_all(node, SNAPSHOT_CUT, node->freeze->leader.mode);
}

static void on_node_prepared(struct node *node, unsigned of)
{
	node->freeze->leader.prepared_nodes |= 1u << of;
	if (node->freeze->leader.prepared_nodes != node->hosts)
		return;
	node->freeze->leader.began_ns = node_now_ns(node);
	send_step_to_all(node, SNAPSHOT_FREEZE, 0);
}

static void on_node_frozen(struct node *node, unsigned of)
{
	node->freeze->leader.frozen_nodes |= 1u << of;
	if (node->freeze->leader.frozen_nodes != node->hosts)
		return;
	node->freeze->leader.frozen_ns = node_now_ns(node);
	tell_iosrv(node, SNAPSHOT_SAVE, node->freeze->leader.mode);
}

static void on_node_done(struct node *node, unsigned of, uint32_t result)
{
	node->freeze->leader.result |= result;
	node->freeze->leader.done_nodes |= 1u << of;
	if (node->freeze->leader.done_nodes == node->hosts)
		finish(node);
}

bool freeze_holds(const struct node *node)
{
	return node->freeze->frozen;
}

static void on_bad_step(const struct msg_snapshot *body, const char *from, unsigned number)
{
	log_error("unexpected step %u of a snapshot, of %u, from %s %u", body->step, body->of, from,
		  number);
}

void freeze_on_node(struct node *node, const struct message *m, const struct msg_snapshot *body)
{
	bool of_host = node_has_host(node, body->of), to_leader = of_host && node->o.node == 0;

	switch (body->step) {
	case SNAPSHOT_PREPARE: on_prepare(node); return;
	case SNAPSHOT_FREEZE: on_freeze(node); return;
	case SNAPSHOT_CUT: on_cut(node, body->result); return;
	case SNAPSHOT_THAW: on_thaw(node); return;
	case SNAPSHOT_END: on_end(node); return;
	case SNAPSHOT_MARK:
		if (!of_host || body->result >= MARK_ROUNDS)
			break;
		node->freeze->marks[body->result] |= 1u << body->of;
		check_marks(node);
		return;
	case SNAPSHOT_TAKEN: clients_send_run(node, &m->header, m->body); return;
	case SNAPSHOT_SYNC: restore_on_sync(node); return;
	case SNAPSHOT_PREPARED:
		if (!to_leader)
			break;
		on_node_prepared(node, body->of);
		return;
	case SNAPSHOT_FROZEN:
		if (!to_leader)
			break;
		on_node_frozen(node, body->of);
		return;
	case SNAPSHOT_DONE:
		if (!to_leader)
			break;
		on_node_done(node, body->of, body->result);
		return;
	}
	on_bad_step(body, "host", m->from);
}

void freeze_on_iosrv(struct node *node, const struct message *m, const struct msg_snapshot *body)
{
	if (body->step == SNAPSHOT_SAVED)
		on_iosrv_saved(node, body->result);
	else if (body->step == SNAPSHOT_TAKEN)
		clients_send_run(node, &m->header, m->body);
	else
		on_bad_step(body, "I/O server", 0);
}

void freeze_on_monitor(struct node *node, const struct message *m, const struct msg_snapshot *body)
{
	if (body->step == SNAPSHOT_FROZEN && node->freeze->active)
		on_monitor_frozen(node, m->from);
	else
		on_bad_step(body, "CPU", m->from);
}

void freeze_client_gone(struct node *node, unsigned number)
{
	turn_forget_client(node, number);
	if (node->freeze->leader.client != (int)number)
		return;
	if (node->freeze->leader.stands)
		thaw(node); /* the machine continues here after all */
	else if (node->freeze->frozen || !node->freeze->active) {
		node->freeze->leader.client = NO_CLIENT; /* finish() checks it */
		return;
	}
	end_snapshot(node);
}

void freeze_on_item(struct node *node, const struct message *m,
		    const struct msg_snapshot_item *item)
{
	if (m->header.to == VNODE_CLI)
		clients_send_answer(node, &m->header, m->body);
	else
		restore_on_item(node, item, m->payload, m->payload_bytes);
}

/* ---- what a client sends ---- */

/* Returns whether the machine is being loaded (between READY and LOADED) by this client. */
static bool is_loading(const struct node *node, unsigned number)
{
	return node->o.machine.restore && node->preloaded.count && !node->started &&
	       node->client[number].kind == CLIENT_KIND_RUN;
}

void freeze_on_client(struct node *node, const struct message *m, const struct msg_snapshot *body)
{
	uint32_t seq = clients_tag(node, m->from, body->seq);

	if (body->step == SNAPSHOT_SAVE)
		turn_ask(node, m->from, seq, body->result);
	else if (body->step == SNAPSHOT_END)
		freeze_client_gone(node, m->from);
	else if (body->step == SNAPSHOT_SYNC && is_loading(node, m->from))
		restore_sync(node);
	else if (body->step == SNAPSHOT_LOADED && is_loading(node, m->from))
		node_start_loaded(node, body->clock_ns);
	else
		log_warn("a command line sent step %u of a snapshot: dropped", body->step);
}

void freeze_on_client_pull(struct node *node, const struct message *m,
			   const struct msg_snapshot_pull *body)
{
	struct msg_snapshot_pull pull = *body;

	pull.seq = clients_tag(node, m->from, pull.seq);
	if (node->freeze->leader.client != (int)m->from)
		log_warn("a command line pulls a snapshot that it does not save: dropped");
	else if (pull.of == SNAPSHOT_OF_IOSRV)
		freeze_send_to_child(node, &node->iosrv, MSG_SNAPSHOT_PULL, &pull, sizeof pull,
				     NULL, 0);
	else if (node_has_host(node, pull.of))
		net_send(node->net, VNODE_DAEMON(pull.of), MSG_SNAPSHOT_PULL, &pull, sizeof pull,
			 NULL, 0);
}

void freeze_on_client_item(struct node *node, const struct message *m,
			   const struct msg_snapshot_item *item)
{
	if (is_loading(node, m->from))
		restore_item(node, item, m->payload, m->payload_bytes);
	else
		log_warn("a command line sent a part of a machine that is not being loaded: "
			 "dropped");
}

void freeze_start(struct node *node)
{
	node->freeze = calloc(1, sizeof *node->freeze);
	if (!node->freeze)
		die("out of memory");
	node->freeze->leader.client = NO_CLIENT;
}
