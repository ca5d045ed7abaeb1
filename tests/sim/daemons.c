/* daemons.c - in place of hosts.c (daemon-sim): what changes about hosts and processors is led by the daemons' own code.
 *
 * Each node of the simulator has a `struct node` with what the daemon runs: vmm/hosts.c, hostpart.c, moves.c, handover.c,
 * snapshot/freeze.c and net.c, on the simulator's network and clock (daemon_world.c plays all that they call).  Here are those who
 * ask: the command lines, which let processors move, hosts come and go, and the machine be saved, at random and several at once,
 * while the litmus tests run; the owner, which starts and reaps daemons; and what goes wrong.  In most seeds one fault point is on
 * for a while, or a daemon is killed at any moment.  Then:
 *   - each request has been answered, "done" or "as before", and all is in order (world_check_idle()); or
 *   - the machine has ended, and it may: a host that is a part of it has died.
 * Never anything in between.  A fault point after which nothing has ever failed, ended or gone back was not met: the run fails.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "dsm/internal.h"
#include "tests/sim/daemons.h"
#include "vmm/hosts.h"

enum { REQUESTS = 64, CLIENTS = 30, PULL_ITEMS = 3, LIMIT_NS = 2000000000, ENOUGH_SEEDS = 2000 };
enum request_kind { ASK_MOVE, ASK_ADD, ASK_REMOVE, ASK_SAVE, REQUEST_KINDS };

/* What may go wrong; `most`: what is asked for more often then. */
static const struct fault { enum fault_point point; uint32_t n; enum request_kind most; } faults[] = {
	{ FAULT_MOVE_NO_SPARE, 1, ASK_MOVE },	   { FAULT_MOVE_SPARE_DIES, 1, ASK_MOVE },  { FAULT_MOVE_TARGET_DIES, 1, ASK_MOVE },
	{ FAULT_MOVE_DAMAGE, 1, ASK_MOVE },	   { FAULT_MOVE_SOURCE_DIES, 1, ASK_MOVE }, { FAULT_MOVE_HOST_DIES, 1, ASK_MOVE },
	{ FAULT_MOVE_HOST_DIES, 2, ASK_MOVE },	   { FAULT_MOVE_HOST_DIES, 3, ASK_MOVE },   { FAULT_MOVE_HOST_DIES, 4, ASK_MOVE },
	{ FAULT_HOST_NO_DAEMON, 1, ASK_ADD },	   { FAULT_HOST_FULL, 1, ASK_REMOVE },	    { FAULT_HOST_JOIN_DIES, 1, ASK_ADD },
	{ FAULT_HOST_JOIN_DIES, 2, ASK_ADD },	   { FAULT_HOST_JOIN_DIES, 3, ASK_ADD },    { FAULT_HOST_JOIN_DIES, 4, ASK_ADD },
	{ FAULT_HOST_LEAVE_DIES, 1, ASK_REMOVE },  { FAULT_HOST_LEAVE_DIES, 2, ASK_REMOVE }, { FAULT_HOST_LEAVE_DIES, 3, ASK_REMOVE },
	{ FAULT_HOST_LEAVE_DIES, 4, ASK_REMOVE },  { FAULT_SNAPSHOT_NO_MEMORY, 2, ASK_SAVE }, { FAULT_CHECKPOINT_DIES, 1, ASK_SAVE },
	{ FAULT_CHECKPOINT_DIES, 2, ASK_SAVE },	   { FAULT_CHECKPOINT_DIES, 3, ASK_SAVE },  { FAULT_CHECKPOINT_DIES, 4, ASK_SAVE },
};
enum { FAULTS = ARRAY_LEN(faults), NO_FAULT = FAULTS, KILLED };

struct request { enum request_kind kind; bool open; unsigned what, to; uint64_t since_ns; };
/* A client that saves: from whom it pulls. */
struct saving { uint32_t hosts; unsigned from; };

static struct {
	unsigned n_start, n, adds_open;
	struct request request[REQUESTS];
	struct saving saving;
	unsigned fault; /* of `faults`, NO_FAULT or KILLED */
	bool met;	/* it has shown, in this seed */
	bool member_died; /* the machine may end */
	unsigned current; /* whose code runs */
	jmp_buf death;
	int log_fd;
} plan;

static struct { /* over all seeds */
	uint64_t done[REQUEST_KINDS], as_before[REQUEST_KINDS], ended, met[FAULTS + 2], seeds;
} seen;

static struct node *first(void) { return &daemons[0].node; }

/* --- the log: without a fault a daemon has nothing to complain of ------------------------------------------------------- */

static void copy_log(void)
{
	char text[4096];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(plan.log_fd, text, sizeof text, at)) > 0) {
		fwrite(text, 1, (size_t)n, stderr);
		at += n;
	}
}

static void on_abort(int number)
{
	signal(number, SIG_DFL);
	copy_log();
	sim_fail(machine, "aborted");
}

static void open_log(void)
{
	if (!plan.log_fd) {
		plan.log_fd = memfd_create("log", MFD_CLOEXEC);
		signal(SIGABRT, on_abort);
	}
	if (ftruncate(plan.log_fd, 0))
		die("no log");
	lseek(plan.log_fd, 0, SEEK_SET);
	log_open("daemon-sim", plan.log_fd, machine->verbose ? LOG_INFO : LOG_ERROR);
}

/* --- deaths ------------------------------------------------------------------------------------------------------------- */

void machine_ends(unsigned from, const char *why)
{
	sim_trace(machine, "the machine ends: node %u: %s", from, why);
	if (!plan.member_died)
		sim_fail(machine, "node %u ends the machine, though no host of it has died: %s", from, why);
	plan.met = machine->ended = true;
}

static void no_longer(unsigned number)
{
	world_after(WORLD_REAPED, 0, PORT_OWNER, number, NULL, 0);
	for (unsigned peer = 0; peer < machine->n_nodes; peer++) {
		struct sim_event lost = { .kind = EVENT_HOST, .type = WORLD_LOST, .home.generation = daemons[number].life };

		if (peer != number && daemons[peer].exists)
			cluster_send(machine, number, peer, &lost, NULL, 0);
	}
}

void daemon_dies(unsigned number)
{
	struct daemon *daemon = &daemons[number];

	bug_on(number >= MAX_NODES);
	sim_trace(machine, "daemon %u dies", number);
	daemon->dead = true;
	daemon->unsaid_ns = machine->now_ns + (sim_chance(machine, 50) ? sim_random(machine, 200000) : SIM_MAX_DELAY_NS);
	plan.member_died |= node_has_host(first(), number) || !daemon->loose;
	if (number == 0)
		return machine_ends(0, "host 0 is lost");
	no_longer(number);
}

/* In order, as one that leaves. */
void daemon_ends(unsigned number)
{
	if (node_has_host(first(), number) || dsm_pages_here(daemons[number].node.dsm))
		sim_fail(machine, "daemon %u ends with %u pages", number, dsm_pages_here(daemons[number].node.dsm));
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		if (machine->cpus[cpu].node == number)
			sim_fail(machine, "daemon %u ends, and CPU %u is there", number, cpu);
	machine->leaves++;
	daemons[number].dead = daemons[number].in_order = true;
	daemons[number].unsaid_ns = ~0ull;
	no_longer(number);
}

static void die_here(void) { longjmp(plan.death, 1); }

bool hosts_lost(struct sim *sim, const struct sim_event *event)
{
	const struct daemon *from = &daemons[event->from];

	if (daemons[event->node].in_order && (event->kind == EVENT_DELIVER || event->type == WORLD_MESSAGE))
		sim_fail(sim, "a message from node %u comes to node %u, which has left", event->from, event->node);
	return daemons[event->node].dead || (from->dead && event->at_ns > from->unsaid_ns && event->type != WORLD_LOST);
}

/* --- the owner ------------------------------------------------------------------------------------------------------------ */

static void answer_host(unsigned host, enum host_op op)
{
	struct msg_host answer = { .host = host, .op = op };

	world_send_client(0, MSG_HOST, &answer, sizeof answer);
}

static void launch(const struct msg_host *host)
{
	plan.current = host->host;
	cluster_new_node(machine, host->host, 0);
	answer_host(host->host, HOST_LAUNCHED);
	machine->joins++;
	world_new_daemon(host->host, plan.n_start, host->nodes);
	world_after(WORLD_CONNECTED, host->host, PORT_OWNER, daemons[host->host].life, NULL, 0);
}

void owner_on_message(const struct msg_header *header, const void *body)
{
	struct msg_host host;

	if (header->type != MSG_HOST)
		return;
	memcpy(&host, body, sizeof host);
	if (host.op == HOST_LAUNCH)
		return launch(&host);
	daemons[host.host].loose = host.op == HOST_RETIRE;
	if (host.op == HOST_RETIRE && host.error && daemons[host.host].exists && !daemons[host.host].dead)
		daemon_dies(host.host);
	if (host.op == HOST_RETIRE)
		answer_host(host.host, HOST_RETIRED);
}

static void on_reaped(unsigned number)
{
	struct daemon *daemon = &daemons[number];

	if (!daemon->loose)
		return machine_ends(0, "the owner has lost a host");
	if (!plan.member_died) { /* else what is left of its pages is of no matter: the machine ends */
		daemon->exists = false;
		daemon->life++;
		dsm_free(machine->nodes[number].dsm);
		machine->nodes[number].dsm = NULL;
		daemon->node.dsm = NULL;
	}
	answer_host(number, HOST_ENDED);
}

/* --- those who ask ------------------------------------------------------------------------------------------------------- */

static enum request_kind choose_request(void)
{
	static const enum request_kind some[] = { ASK_MOVE, ASK_MOVE, ASK_ADD, ASK_REMOVE, ASK_SAVE };

	if (plan.fault < FAULTS && sim_chance(machine, 60))
		return faults[plan.fault].most;
	return some[sim_random(machine, ARRAY_LEN(some))];
}

void hosts_change(struct sim *sim, struct sim_event *event)
{
	unsigned seq = plan.n++ % REQUESTS, client = 1 + seq % CLIENTS;
	struct request *r = &plan.request[seq];
	enum request_kind kind = choose_request();
	struct msg_cpu_move move = { .cpu = sim_random(sim, sim->n_cpus), .seq = seq, .host = sim_random(sim, sim->n_nodes) };
	struct msg_host host = { .seq = seq, .op = kind == ASK_ADD ? HOST_ADD : HOST_REMOVE, .host = 1 + sim_random(sim, sim->n_nodes) };
	struct msg_snapshot save = { .seq = seq, .step = SNAPSHOT_SAVE };

	(void)event;
	if (r->open || (kind == ASK_ADD && (unsigned)__builtin_popcount(first()->hosts) + plan.adds_open >= sim->n_nodes))
		return;
	*r = (struct request){ .kind = kind, .open = true, .what = kind == ASK_MOVE ? move.cpu : host.host, .to = move.host,
			       .since_ns = sim->now_ns };
	plan.adds_open += kind == ASK_ADD;
	if (kind == ASK_MOVE)
		world_send_client(client, MSG_CPU_MOVE, &move, sizeof move);
	else if (kind == ASK_SAVE)
		world_send_client(client, MSG_SNAPSHOT, &save, sizeof save);
	else
		world_send_client(client, MSG_HOST, &host, sizeof host);
}

/* Nothing was wrong, and so only what cannot be, or must wait, is refused. */
static bool is_refusal(const char *why)
{
	static const char *const texts[] = { "already", "there is no", "try again", "host 0 stays", "may hold", "is going down" };

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		if (strstr(why, texts[i]))
			return true;
	return false;
}

static void close_request(struct request *r, uint32_t error, const char *why, uint32_t bytes)
{
	char line[256];

	snprintf(line, sizeof line, "%.*s", (int)bytes, why);
	if (!r->open)
		sim_fail(machine, "a request is answered twice: %s", line);
	sim_trace(machine, "request %zd: %s", r - plan.request, error ? line : "done");
	r->open = false;
	plan.adds_open -= r->kind == ASK_ADD;
	if (error && !is_refusal(line)) {
		if (plan.fault == NO_FAULT)
			sim_fail(machine, "nothing is wrong, but %s", line);
		seen.as_before[r->kind]++;
		plan.met = true;
	}
	seen.done[r->kind] += !error;
}

/* The next items, of the next host that has any; after all, the end. */
static void pull(unsigned client, uint32_t seq)
{
	struct msg_snapshot end = { .seq = seq, .step = SNAPSHOT_END };
	struct msg_snapshot_pull next = { .seq = seq, .count = PULL_ITEMS };

	if (plan.saving.hosts && sim_chance(machine, 3)) {
		world_after(WORLD_CLIENT_GONE, 0, PORT_CLIENT, client, NULL, 0);
	} else if (plan.saving.hosts) {
		next.of = plan.saving.from = (unsigned)__builtin_ctz(plan.saving.hosts);
		return world_send_client(client, MSG_SNAPSHOT_PULL, &next, sizeof next);
	} else {
		world_send_client(client, MSG_SNAPSHOT, &end, sizeof end);
	}
	close_request(&plan.request[seq], 0, "", 0);
}

static void on_item(const struct msg_snapshot_item *item, uint32_t seq, unsigned client, const char *line, uint32_t bytes)
{
	static unsigned items;

	if (!plan.request[seq].open) /* it has gone */
		return;
	switch (item->kind) {
	case SNAPSHOT_REFUSED:
		return close_request(&plan.request[seq], 1, item->index ? "try again" : line, item->index ? 9 : bytes);
	case SNAPSHOT_MACHINE:
		world_check_cut();
		plan.saving.hosts = first()->hosts;
		items = 0;
		return pull(client, seq);
	case SNAPSHOT_LAST:
		plan.saving.hosts &= plan.saving.hosts - 1;
		items = 0;
		return pull(client, seq);
	default:
		if (++items % PULL_ITEMS == 0)
			pull(client, seq);
	}
}

void client_on_answer(const struct msg_header *header, const void *body)
{
	struct { uint32_t first, tag, third, fourth; } words; /* of all answers */
	unsigned client;
	uint32_t seq;

	memcpy(&words, body, sizeof words);
	client = words.tag >> 24;
	seq = words.tag & 0xffffff;
	if (header->type == MSG_SNAPSHOT_ITEM)
		on_item(&(struct msg_snapshot_item){ .kind = words.third, .index = words.fourth }, seq, client,
			(const char *)body + sizeof(struct msg_snapshot_item), header->bytes - sizeof(struct msg_snapshot_item));
	else if (header->type == MSG_CPU_MOVED)
		close_request(&plan.request[seq], words.third, (const char *)body + sizeof(struct msg_cpu_moved),
			      header->bytes - sizeof(struct msg_cpu_moved));
	else if (words.third == HOST_DONE)
		close_request(&plan.request[seq], words.fourth, (const char *)body + sizeof(struct msg_host),
			      header->bytes - sizeof(struct msg_host));
}

/* --- a seed ------------------------------------------------------------------------------------------------------------- */

void hosts_open(struct sim *sim)
{
	int log_fd = plan.log_fd;

	machine = sim;
	fault_death = die_here;
	memset(&plan, 0, sizeof plan);
	plan.log_fd = log_fd;
	open_log();
	plan.n_start = (unsigned)__builtin_popcount(sim->present);
	plan.fault = sim_chance(sim, 70) ? sim_random(sim, FAULTS) : sim_chance(sim, 50) ? KILLED : NO_FAULT;
	world_open();
	for (unsigned i = 0; i < FAULTS; i++)
		fault_set(faults[i].point, 0);
	for (unsigned number = 0; number < plan.n_start; number++)
		world_new_daemon(number, plan.n_start, 0);
}

static void later(enum world_event kind, enum sim_event_kind event_kind, uint32_t most_ns)
{
	struct sim_event event = { .kind = (uint8_t)event_kind, .type = (uint16_t)kind,
				   .at_ns = machine->now_ns + sim_random(machine, most_ns) };

	events_add(&event);
}

void hosts_plan(struct sim *sim)
{
	for (unsigned i = sim->changes ? sim_random(sim, sim->changes + 1) : 0; i; i--)
		later(0, EVENT_CHANGE, 3000000);
	for (unsigned i = sim_random(sim, 20); i; i--)
		later(WORLD_POST, EVENT_HOST, 3000000);
	if (plan.fault == KILLED && sim_chance(sim, 20))
		later(WORLD_KILL, EVENT_HOST, 6000000);
	for (unsigned i = plan.fault < FAULTS ? 2 : 0; i; i--)
		later(WORLD_FAULT, EVENT_HOST, 10000000);
}

void hosts_watch(struct sim *sim)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		if (plan.request[i].open && sim->now_ns - plan.request[i].since_ns > LIMIT_NS)
			sim_fail(sim, "request %u of kind %u for %u comes to no end; fault %u", i, plan.request[i].kind,
				 plan.request[i].what, plan.fault);
}

void hosts_send_home(struct sim *sim, unsigned from, const struct msg_home *body, const void *payload, uint32_t bytes)
{
	(void)sim;
	net_send(daemons[from].node.net, VNODE_DAEMON(body->to), MSG_HOME_STATE, body, sizeof *body, payload, bytes);
}

static void kill_one(void)
{
	unsigned number = sim_random(machine, machine->n_nodes);

	if (daemons[number].exists && !daemons[number].dead)
		daemon_dies(number);
}

static void on_event(struct sim_event *event)
{
	const struct msg_header *header = event->payload;

	switch (event->type) {
	case WORLD_TO_OWNER: owner_on_message(header, header + 1); break;
	case WORLD_REAPED: on_reaped(event->home.generation); break;
	case WORLD_POST: world_post(); break;
	case WORLD_KILL: kill_one(); break;
	case WORLD_FAULT: fault_set(faults[plan.fault].point, fault_on(faults[plan.fault].point) ? 0 : faults[plan.fault].n); break;
	default: world_on_event(event);
	}
}

/* Nobody does to a page what it was not asked for while the machine stands still, nor at a host that is to leave. */
static void see_who_is_free(void)
{
	bool frozen = false;

	for (unsigned i = 0; i < machine->n_cpus; i++)
		frozen |= machine->cpus[i].held;
	machine->present = first()->hosts;
	machine->leaving = frozen ? ~0u : ~hosts_that_stay(first());
}

void hosts_on_event(struct sim *sim, struct sim_event *event)
{
	plan.current = event->node;
	if (hosts_lost(sim, event)) {
		/* it goes nowhere */
	} else if (setjmp(plan.death)) {
		plan.met = true;
		daemon_dies(plan.current);
	} else {
		on_event(event);
	}
	free(event->payload);
	if (event->type == WORLD_TIMER) /* also when no processor has anything more to do */
		hosts_watch(sim);
	if (!sim->ended)
		see_who_is_free();
}

void hosts_check_idle(struct sim *sim)
{
	if (plan.member_died)
		sim_fail(sim, "a host has died, and the machine goes on");
	for (unsigned i = 0; i < REQUESTS; i++)
		if (plan.request[i].open)
			sim_fail(sim, "request %u of kind %u for %u is not answered", i, plan.request[i].kind, plan.request[i].what);
	world_check_idle();
	if (plan.fault == NO_FAULT && lseek(plan.log_fd, 0, SEEK_CUR) > 0 && !sim->verbose) {
		copy_log();
		sim_fail(sim, "nothing is wrong, but the log has a line");
	}
}

void hosts_close(struct sim *sim)
{
	seen.met[plan.fault] += plan.met;
	seen.ended += sim->ended;
	seen.seeds++;
}

int hosts_report(void)
{
	static const char *const kinds[] = { "moves of processors", "hosts that come", "hosts that go", "snapshots" };
	int status = 0;

	for (unsigned i = 0; i < REQUEST_KINDS; i++)
		printf("%s%llu %s done, %llu as before", i ? "; " : "  ", (unsigned long long)seen.done[i], kinds[i],
		       (unsigned long long)seen.as_before[i]);
	printf("; %llu machines ended; of faults were met\n ", (unsigned long long)seen.ended);
	for (unsigned i = 0; i < FAULTS; i++)
		printf(" %s:%u %llu", fault_names[faults[i].point], faults[i].n, (unsigned long long)seen.met[i]);
	printf(", killed %llu\n", (unsigned long long)seen.met[KILLED]);
	for (unsigned i = 0; i < FAULTS && seen.seeds >= ENOUGH_SEEDS; i++)
		if (!seen.met[i] && faults[i].point != FAULT_MOVE_SOURCE_DIES) { /* which ends in "done" */
			printf("  fault point %s:%u has never shown\n", fault_names[faults[i].point], faults[i].n);
			status = 1;
		}
	return status;
}
