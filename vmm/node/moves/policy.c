/* policy.c - `vmp policy`: node 0 asks all hosts for samples, placement.c decides, moves.c moves.
 * Each decision is logged.
 *
 * spread and concentrate are applied when they are chosen and when a host was added; a host that is
 * removed gives its CPUs away by itself. auto samples every second, and fifty times a second while
 * some host's CPUs request many pages, or tasks wait for a CPU.  What they request while the guest
 * boots does not count.
 */
#include "vmm/node/moves/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "vmm/node/agenda.h"
#include "vmm/node/hosts/hosts.h"
#include "vmm/node/moves/processors.h"
#include "vmm/shared/placement.h"

enum {
	LOOK_MS = 1000,
	LOOK_SOON_MS = 20, /* the interval while CPUs request many pages, or tasks wait */
	BUSY_MS = 500,	    /* the short interval lasts so long after the last reason for it */
	BURST_WANTS = 16,   /* a burst: so many requests at a host within LOOK_SOON_MS */
	CROWDED_MS = 100,   /* for so long it counts that tasks have waited for a CPU */
	BOOT_MS = 5000,
	NS_PER_MS = 1000000,
	NOBODY = MAX_CLIENTS,
};

/* The policy's state on node 0.  The other nodes have one that stays as it is at the start: they
 * act on no sample. */
struct policy_state {
	enum policy policy;
	struct placement_look look;
	struct placement_auto automatic;
	uint32_t asked, answered; /* bit sets of hosts */
	/* applying: spread or concentrate has not been reached yet. came: a host has joined since
	 * the sample, and the policy has not been applied to it. moving: a CPU is moving. */
	bool applying, came, moving;
	uint64_t asked_ns, last_ns; /* when this sample was asked for, and the previous one */
	uint64_t busy_until_ns;	    /* until then the interval is LOOK_SOON_MS */
	unsigned moved, client;
	uint32_t seq;
	struct loop_event *timer;
};

enum policy policy_now(const struct node *node)
{
	return node->policy->policy;
}

/* ---- every host ---- */

/* Returns the load that FAULT_LOAD pretends, in percent. */
static uint32_t faked_load(const struct node *node)
{
	return fault_on(FAULT_LOAD) == node->o.node + 1 ? 2 * AUTO_LOADED_PERCENT : 0;
}

static uint64_t time_of(const struct node *node, unsigned cpu, enum time_kind kind)
{
	return atomic_load_explicit(&node->shm->slot[cpu].time_ns[kind], memory_order_relaxed);
}

/* The guest may write any number to the slot. */
static uint32_t percent_of(uint64_t ns, uint64_t window_ns)
{
	return ns >= window_ns ? 100 : (uint32_t)(ns * 100 / window_ns);
}

/* Sets for which shares of the time since the last sample this CPU waited for pages, and was
 * halted. */
static void sample_times(struct node *node, unsigned cpu, uint64_t window_ns,
			 struct cpu_fetches *answer)
{
	uint64_t waited = time_of(node, cpu, TIME_SHARED_MEMORY),
		 idle = time_of(node, cpu, TIME_IDLE), all = 0, passed, halted;
	enum slot_state state = (enum slot_state)atomic_load(&node->shm->doorbell[cpu].state);

	for (int kind = 0; kind < TIME_KIND_COUNT; kind++)
		all += time_of(node, cpu, (enum time_kind)kind);
	passed = all - node->sampled[cpu].all_ns;
	halted = idle - node->sampled[cpu].idle_ns;
	/* a CPU that is halted counts that time when it wakes */
	if ((state == SLOT_HALTED || state == SLOT_POLLING) && passed < window_ns)
		halted += window_ns - passed;
	answer->waited_percent = percent_of(waited - node->sampled[cpu].waited_ns, window_ns);
	answer->idle_percent = percent_of(halted, window_ns);
	node->sampled[cpu].waited_ns = waited;
	node->sampled[cpu].idle_ns = idle;
	node->sampled[cpu].all_ns = all;
}

static void tell_to_look_soon(struct node *node, uint64_t now)
{
	struct msg_look_soon soon = { .host = node->o.node };

	if (now - node->burst.told_ns < LOOK_SOON_MS * (uint64_t)NS_PER_MS)
		return;
	node->burst.told_ns = now;
	net_send(node->net, VNODE_DAEMON(0), MSG_LOOK_SOON, &soon, sizeof soon, NULL, 0);
}

void policy_on_crowded(struct node *node, unsigned cpu)
{
	if (!node_has_cpu(node, cpu))
		return;
	node->crowded_ns[cpu] = node_now_ns(node);
	tell_to_look_soon(node, node->crowded_ns[cpu]);
}

void policy_on_want(struct node *node)
{
	uint64_t now = node->page_event_ns;

	if (node->burst.wants++ == 0)
		node->burst.since_ns = now;
	if (node->burst.wants < BURST_WANTS)
		return;
	node->burst.wants = 0;
	if (now - node->burst.since_ns <= LOOK_SOON_MS * (uint64_t)NS_PER_MS)
		tell_to_look_soon(node, now);
}

void policy_on_look(struct node *node, const struct message *m, const struct msg_look *look)
{
	uint64_t now = node_now_ns(node), window_ns = now - node->looked_ns + 1;

	struct { struct msg_look look; struct cpu_fetches cpu[MAX_CPUS]; } answer;

	(void)m;
	answer.look = *look;
	answer.look.host = node->o.node;
	answer.look.processors = processors_count(node);
	answer.look.load_percent = fault_on(FAULT_LOAD) ? faked_load(node)
							: node->outside->load_percent();
	answer.look.cpus = 0;
	node->looked_ns = now;
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (node_has_cpu(node, cpu)) {
			struct cpu_fetches *fetches = &answer.cpu[answer.look.cpus++];

			fetches->cpu = cpu;
			sample_times(node, cpu, window_ns, fetches);
			fetches->crowded = node->crowded_ns[cpu] &&
				now - node->crowded_ns[cpu] < CROWDED_MS * (uint64_t)NS_PER_MS;
			memcpy(fetches->from, node->fetched[cpu], sizeof node->fetched[cpu]);
			memset(node->fetched[cpu], 0, sizeof node->fetched[cpu]);
		}
	net_send(node->net, VNODE_DAEMON(0), MSG_LOOKED, &answer.look, sizeof answer.look,
		 answer.cpu, answer.look.cpus * sizeof *answer.cpu);
}

/* ---- node 0 ---- */

static void answer_to(struct node *node, uint32_t seq, int error, const char *line)
{
	struct { struct msg_policy body; char line[200]; } packet = {
		.body = { .policy = node->policy->policy, .seq = seq, .error = error },
	};
	struct msg_header header = packet_header(MSG_POLICY, VNODE_CLI, node->o.node,
						 sizeof packet.body +
							 strnlen(line, sizeof packet.line));

	memcpy(packet.line, line, header.bytes - sizeof packet.body);
	clients_send_answer(node, &header, &packet);
}

static void answer_client(struct node *node, int error, const char *line)
{
	struct policy_state *state = node->policy;

	if (state->client != NOBODY)
		answer_to(node, state->seq, error, line);
	state->client = NOBODY;
}

/* Page requests from before the guest's first program runs do not count.  A guest with another init
 * than ours has BOOT_MS. */
static bool guest_runs(const struct node *node)
{
	return node->user_ns || node->o.machine.restore ||
	       node_now_ns(node) - node->boot_ns > BOOT_MS * (uint64_t)NS_PER_MS;
}

static void ask_all(struct node *node)
{
	struct policy_state *state = node->policy;
	struct msg_look look = { .sent_ns = node_now_ns(node) };

	state->last_ns = state->asked_ns;
	state->asked_ns = look.sent_ns;
	state->asked = hosts_that_stay(node);
	state->answered = 0;
	memset(&state->look, 0, sizeof state->look);
	for (unsigned host = 0; host < MAX_NODES; host++)
		if (state->asked >> host & 1)
			net_send(node->net, VNODE_DAEMON(host), MSG_LOOK, &look, sizeof look, NULL,
				 0);
}

static void move(struct node *node, const struct placement_move *move)
{
	struct msg_cpu_move request = { .cpu = move->cpu, .host = move->to };

	log_info("CPU %u shall move from host %u to host %u; %s", move->cpu, move->from, move->to,
		 move->why);
	node->policy->moving = true;
	moves_request(node, MOVE_CLIENT_POLICY, &request, move->why);
}

static void apply(struct node *node)
{
	struct policy_state *state = node->policy;
	struct placement_move next;
	char line[100];

	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		state->look.cpu[cpu].host = moves_place(node, cpu);
	if (placement_step(state->policy, &state->look, &next))
		return move(node, &next);
	if (state->came) {
		state->came = false;
		loop_after(state->timer, 0);
		return;
	}
	state->applying = false;
	snprintf(line, sizeof line, "%s: %u processor%s moved",
		 placement_policy_name(state->policy), state->moved, state->moved == 1 ? "" : "s");
	log_info("%s", line);
	answer_client(node, 0, line);
}

/* Decides when all hosts have answered. */
static void decide(struct node *node)
{
	struct policy_state *state = node->policy;
	struct placement_move next;

	state->look.hosts = state->asked;
	state->look.n_cpus = node->o.machine.cpus;
	if (state->applying)
		return apply(node);
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		state->look.cpu[cpu].host = moves_place(node, cpu);
	state->look.window_ms = (uint32_t)((state->asked_ns - state->last_ns) / NS_PER_MS);
	if (state->policy == POLICY_AUTO && guest_runs(node) && agenda_may(node, AGENDA_DECISION) &&
	    placement_auto(&state->automatic, &state->look, &next))
		move(node, &next);
}

void policy_on_looked(struct node *node, const struct message *m, const struct msg_look *look)
{
	struct policy_state *state = node->policy;
	struct cpu_fetches fetches;

	if (look->host >= MAX_NODES || !(state->asked & ~state->answered & 1u << look->host) ||
	    m->payload_bytes != look->cpus * sizeof fetches)
		return;
	state->answered |= 1u << look->host;
	if (look->host)
		state->look.host[look->host].rtt_us =
			(uint32_t)((node_now_ns(node) - look->sent_ns) / 1000);
	state->look.host[look->host].processors = look->processors;
	state->look.host[look->host].load_percent = look->load_percent;
	for (uint32_t i = 0; i < look->cpus; i++) {
		memcpy(&fetches, (const char *)m->payload + i * sizeof fetches, sizeof fetches);
		if (fetches.cpu >= node->o.machine.cpus)
			continue;
		state->look.cpu[fetches.cpu].waited_percent = fetches.waited_percent;
		state->look.cpu[fetches.cpu].idle_percent = fetches.idle_percent;
		state->look.cpu[fetches.cpu].crowded = fetches.crowded == 1;
		memcpy(state->look.cpu[fetches.cpu].fetched, fetches.from, sizeof fetches.from);
	}
	if (state->answered == state->asked)
		decide(node);
}

static void look_in(struct node *node, unsigned ms)
{
	loop_after(node->policy->timer, ms * (uint64_t)LOOP_MS);
}

/* Begins the next sample.  A sample that is not complete is dropped: a host has left meanwhile. */
static void on_timer(void *ctx)
{
	struct node *node = ctx;
	const struct policy_state *state = node->policy;
	bool soon = state->applying ||
		    (state->policy == POLICY_AUTO && node_now_ns(node) < state->busy_until_ns);

	if (node->ending || (state->policy != POLICY_AUTO && !state->applying))
		return;
	if (!state->moving && agenda_may(node, AGENDA_SAMPLE))
		ask_all(node);
	look_in(node, soon ? LOOK_SOON_MS : LOOK_MS);
}

void policy_on_look_soon(struct node *node, const struct message *m,
			 const struct msg_look_soon *soon)
{
	struct policy_state *state = node->policy;
	uint64_t now = node_now_ns(node);
	bool begins = now >= state->busy_until_ns;

	(void)m, (void)soon;
	if (state->policy != POLICY_AUTO || !guest_runs(node))
		return;
	state->busy_until_ns = now + BUSY_MS * (uint64_t)NS_PER_MS;
	if (begins)
		look_in(node, LOOK_SOON_MS);
}

void policy_on_moved(struct node *node, unsigned cpu, int error, const char *why)
{
	struct policy_state *state = node->policy;

	state->moving = false;
	if (error)
		log_warn("%s: CPU %u does not move: %s", placement_policy_name(state->policy), cpu,
			 why);
	else
		state->moved++;
	if (state->applying && error) {
		state->applying = false;
		answer_client(node, error, why);
	} else if (state->applying) {
		apply(node);
	}
}

static void begin(struct node *node)
{
	struct policy_state *state = node->policy;

	state->applying = state->policy == POLICY_SPREAD || state->policy == POLICY_CONCENTRATE;
	state->came = false;
	state->automatic = (struct placement_auto){ 0 };
	state->moved = 0;
	loop_after(state->timer, 0);
}

void policy_on_client(struct node *node, const struct message *m, const struct msg_policy *body)
{
	struct policy_state *state = node->policy;
	uint32_t seq = clients_tag(node, m->from, body->seq);
	const char *why = NULL;

	if (state->client != NOBODY || state->moving)
		why = "processors are being placed: try again";
	else if (body->policy >= POLICIES)
		why = "there is no such policy";
	else if (!node->dsm && body->policy != POLICY_FIXED)
		why = "this machine was started for one host: there is nothing to place";
	if (why) {
		answer_to(node, seq, EAGAIN, why);
		return;
	}
	state->client = m->from;
	state->seq = seq;
	log_info("policy %s", placement_policy_name(body->policy));
	state->policy = body->policy;
	hosts_tell_clients(node);
	begin(node);
	if (!state->applying)
		answer_client(node, 0, placement_policy_name(state->policy));
}

void policy_host_came(struct node *node)
{
	struct policy_state *state = node->policy;

	state->came = state->applying;
	if ((state->policy == POLICY_SPREAD || state->policy == POLICY_CONCENTRATE) &&
	    !state->applying)
		begin(node);
}

void policy_forget_client(struct node *node, unsigned client)
{
	struct policy_state *state = node->policy;

	if (state->client == client)
		state->client = NOBODY;
}

void policy_start(struct node *node)
{
	struct policy_state *state = calloc(1, sizeof *state);

	if (!state)
		die("out of memory");
	node->policy = state;
	state->client = NOBODY;
	if (node->o.node)
		return;
	state->policy = node->o.machine.policy;
	state->timer = loop_timer(&node->loop, on_timer, node);
	if (!state->timer)
		die("no memory for events");
	if (state->policy != POLICY_FIXED && node_shares_memory(node))
		begin(node);
}
