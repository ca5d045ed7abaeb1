/* daemons.c - replaces hosts.c in daemon-sim: the daemons' own code leads the changes of hosts and
 * processors.
 *
 * Each node of the simulator has a `struct node` with the code of the daemon:
 * vmm/node/hosts/hosts.c, hostcomes.c, hostgoes.c, hostpart.c, moves.c, handover.c, stages.c,
 * route.c and net.c, and, of vmm/node/cut/, freeze.c, copy.c and restore.c, on the simulator's
 * network and clock.  The pages are those of vmm/node/pages/ (daemon_pages.c).  The I/O server has
 * its own serve.c and chips.  The process that owns the machine has the code that takes checkpoints
 * and goes back to them (daemon_owner.c), and the streams.  Command lines make random requests
 * (daemon_requests.c) while the litmus tests run and the guest uses its devices.  This file has the
 * seed and the faults.  In most seeds one fault point is on for a while, or daemons are killed or
 * cut off at any moment, also while the machine goes back.  Then:
 *   - each request has been answered, "done" or "as before", or the machine that was asked is lost,
 *     and everything is in order (world_check_idle()); or
 *   - the machine has ended, and it may: a host that was a part of it is lost, and there is no
 *     checkpoint, or no other host is left.
 * Never anything in between.  What was saved or kept is the machine as it stood still at the cut.
 * A machine that is loaded goes on from there: its processors must see the memory and the disk of
 * that moment, and each byte that is typed or printed comes once.  If no request has failed, and no
 * machine has ended or gone back, after some fault point in any seed, then that fault was not
 * tested: the run fails.
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
#include "dsm/dsm_private.h"
#include "tests/sim/daemons.h"
#include "vmm/node/hosts/hosts.h"

enum { ENOUGH_SEEDS = 2000, SEED_LIMIT_S = 200 };

/* What may go wrong (tests/faults.table). */
static const struct fault faults[] = {
#define X(name, n, most) { FAULT_##name, n, most },
#include "tests/sim/faults.inc" /* made by scripts/fault-list */
#undef X
};
enum { FAULTS = ARRAY_LEN(faults) };
_Static_assert((int)FAULTS <= (int)NO_TROUBLE, "their numbers");

struct trouble trouble;

static struct {
	unsigned current; /* the daemon whose code runs */
	jmp_buf death;
	pid_t pid;
	int log_fd;
} plan;

static struct { uint64_t ended, met[TROUBLES], seeds; } seen; /* over all seeds */

/* ---- the log: without a fault a daemon logs no warning and no error ---- */

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

/* Called when some call of the code under test blocks, which it must not. */
static void on_alarm(int number)
{
	(void)number;
	sim_fail(machine, "it hangs");
}

static void open_log(void)
{
	if (!plan.log_fd) {
		plan.log_fd = memfd_create("log", MFD_CLOEXEC);
		signal(SIGABRT, on_abort);
		signal(SIGALRM, on_alarm);
	}
	alarm(SEED_LIMIT_S);
	if (ftruncate(plan.log_fd, 0))
		die("no log");
	lseek(plan.log_fd, 0, SEEK_SET);
	log_open("daemon-sim", plan.log_fd, machine->verbose ? LOG_INFO : LOG_ERROR);
}

/* ---- deaths ---- */

void machine_ends(const char *why)
{
	sim_trace(machine, "the machine ends: %s", why);
	if (!machine->broken)
		sim_fail(machine, "the machine ends, though no host of it has died: %s", why);
	trouble.met = machine->ended = true;
}

/* The other daemons notice that this one is dead.  If it is only silent, it notices the same of
 * them. */
static void no_longer(unsigned number)
{
	daemons[number].unsaid_ns = machine->now_ns + (sim_chance(machine, 50)
							       ? sim_random(machine, 200000)
							       : SIM_MAX_DELAY_NS);
	if (!machine->broken && (node_has_host(daemon_first(), number) || !daemons[number].loose))
		machine->broken = daemons[number].breaks = true;
	for (unsigned peer = 0; peer < machine->n_nodes; peer++) {
		struct sim_event lost = { .kind = EVENT_HOST,
					  .type = WORLD_LOST,
					  .home.generation = daemons[number].life };

		if (peer == number || !daemons[peer].exists)
			continue;
		cluster_send(machine, number, peer, &lost, NULL, 0);
		lost.home.generation = daemons[peer].life;
		if (daemons[number].silent && !daemons[number].dead)
			cluster_send(machine, peer, number, &lost, NULL, 0);
	}
}

void daemon_dies(unsigned number)
{
	struct daemon *daemon = &daemons[number];

	bug_on(number >= MAX_NODES);
	sim_trace(machine, "daemon %u dies", number);
	daemon->dead = true;
	for (unsigned cpu = 0; cpu < machine->n_cpus; cpu++)
		if (machine->cpus[cpu].node == number)
			cpu_hold(machine, cpu);
	world_after(WORLD_REAPED, OWNER, PORT_OWNER, number, NULL, 0);
	if (!daemon->silent)
		no_longer(number);
}

static void daemon_falls_silent(unsigned number)
{
	if (__builtin_popcount(daemon_first()->hosts) < 2) /* no other host could miss it */
		return;
	sim_trace(machine, "nobody hears of daemon %u any more", number);
	daemons[number].silent = true;
	no_longer(number);
}

void daemon_ends(unsigned number)
{
	const struct dsm *dsm = daemons[number].node.dsm;

	if (!machine->broken && (node_has_host(daemon_first(), number) || dsm_pages_here(dsm)))
		sim_fail(machine, "daemon %u ends with %u pages", number, dsm_pages_here(dsm));
	for (unsigned cpu = 0; cpu < machine->n_cpus && !machine->broken; cpu++)
		if (machine->cpus[cpu].node == number)
			sim_fail(machine, "daemon %u ends, and CPU %u is there", number, cpu);
	machine->leaves += !machine->broken;
	world_after(WORLD_REAPED, OWNER, PORT_OWNER, number, NULL, 0);
	daemons[number].dead = daemons[number].in_order = true;
	no_longer(number);
	daemons[number].unsaid_ns = ~0ull;
}

static void die_here(void)
{
	if (getpid() != plan.pid) /* the writer of a checkpoint's file */
		kill(getpid(), SIGKILL);
	requests_writer_dies();
	longjmp(plan.death, 1);
}

void daemon_runs(unsigned number) { plan.current = number; }

bool hosts_lost(struct sim *sim, const struct sim_event *event)
{
	const struct daemon *from = &daemons[event->from], *to = &daemons[event->node];
	bool between = event->kind == EVENT_DELIVER || event->type == WORLD_MESSAGE;

	if (between && to->in_order && !sim->broken)
		sim_fail(sim, "a message from node %u comes to node %u, which has left",
			 event->from, event->node);
	if (to->dead || event->type == WORLD_LOST)
		return to->dead;
	if (between && to->silent && event->at_ns > to->unsaid_ns)
		return true;
	return (from->dead || (between && from->silent)) && event->at_ns > from->unsaid_ns;
}

static bool is_of_machine(const struct sim_event *event)
{
	if (event->kind != EVENT_HOST)
		return event->kind != EVENT_CHANGE && event->kind != EVENT_POKE;
	return event->type < WORLD_POST && !(event->node == OWNER && event->type == WORLD_TIMER);
}

void machine_is_lost(void)
{
	sim_trace(machine, "all of the machine is gone; it is loaded");
	trouble.met |= machine->broken;
	machine->broken = false;
	events_forget(is_of_machine);
	cluster_watch(machine);
	requests_lose();
}

/* ---- a seed ---- */

void hosts_open(struct sim *sim)
{
	unsigned n_start = (unsigned)__builtin_popcount(sim->present);
	int log_fd = plan.log_fd;

	machine = sim;
	fault_death = die_here;
	memset(&plan, 0, sizeof plan);
	memset(&trouble, 0, sizeof trouble);
	requests_open();
	policies_open();
	plan.log_fd = log_fd;
	plan.pid = getpid();
	open_log();
	sim->lowers = true;
	trouble.fault = sim_chance(sim, 70) ? &faults[sim_random(sim, FAULTS)] : NULL;
	trouble.number = trouble.fault ? (unsigned)(trouble.fault - faults)
				       : NO_TROUBLE + sim_random(sim, 3);
	world_open();
	pages_open();
	for (unsigned i = 0; i < FAULTS; i++)
		fault_set(faults[i].point, 0);
	/* this fault breaks nothing, but causes much forwarding */
	fault_set(FAULT_MOVE_UNTOLD, sim_chance(sim, 10));
	fault_set(FAULT_FILE_SHORT, sim_chance(sim, 20) ? 500 + sim_random(sim, 5000) : 0);
	for (unsigned number = 0; number < n_start; number++)
		world_new_daemon(number, n_start, 0, false);
	owner_open(n_start, sim->changes && sim_chance(sim, 60) ? 1 + sim_random(sim, 3) : 0);
}

void hosts_homes(struct sim *sim)
{
	(void)sim;
	hosts_on_homes(&daemons[0].node);
}

static void later(enum world_event kind, enum sim_event_kind event_kind, uint32_t most_ns)
{
	struct sim_event event = { .kind = (uint8_t)event_kind, .type = (uint16_t)kind,
				   .at_ns = machine->now_ns + sim_random(machine, most_ns) };

	events_add(&event);
}

/* these faults have an effect only when a machine goes back */
static bool faults_at_load(void)
{
	return trouble.fault && trouble.fault->point == FAULT_CHECKPOINT_DIES &&
	       trouble.fault->n == 5;
}

void hosts_plan(struct sim *sim)
{
	for (unsigned i = sim->changes ? sim_random(sim, sim->changes + 1) : 0; i; i--)
		later(0, EVENT_CHANGE, 3000000);
	for (unsigned i = sim_random(sim, 20); i; i--)
		later(WORLD_POST, EVENT_HOST, 3000000);
	if ((trouble.number == KILLED || faults_at_load()) && sim_chance(sim, 20))
		later(WORLD_KILL, EVENT_HOST, 6000000);
	if (trouble.number == SILENCED && sim_chance(sim, 20))
		later(WORLD_SILENCE, EVENT_HOST, 6000000);
	if (sim_chance(sim, 10))
		later(WORLD_LOAD, EVENT_HOST, 6000000);
	owner_plan();
	for (unsigned i = trouble.fault ? 2 : 0; i; i--)
		later(WORLD_FAULT, EVENT_HOST, 10000000);
}

void hosts_send_home(struct sim *sim, unsigned from, const struct msg_home *body,
		     const void *payload, uint32_t bytes)
{
	(void)sim;
	net_send(daemons[from].node.net, VNODE_DAEMON(body->to), MSG_HOME_STATE, body, sizeof *body,
		 payload, bytes);
}

static void lose_one(void (*how)(unsigned number))
{
	unsigned number = sim_random(machine, machine->n_nodes);

	if (daemons[number].exists && !daemons[number].dead && !daemons[number].silent)
		how(number);
}

static void on_event(struct sim_event *event)
{
	switch (event->type) {
	case WORLD_TO_OWNER:
	case WORLD_REAPED: owner_on_event(event); break;
	case WORLD_POST: children_post(); break;
	case WORLD_KILL: lose_one(daemon_dies); break;
	case WORLD_SILENCE: lose_one(daemon_falls_silent); break;
	case WORLD_LOAD: requests_load_saved(); break;
	case WORLD_FIXED:
		if (policies_auto_must_end())
			requests_ask_fixed();
		break;
	case WORLD_USER: user_on_event(event->home.generation); break;
	case WORLD_FAULT:
		fault_set(trouble.fault->point,
			  fault_on(trouble.fault->point) ? 0 : trouble.fault->n);
		break;
	default: world_on_event(event);
	}
}

/* A page is only touched by random operations while the machine runs, and on hosts that are not to
 * leave. */
static void see_who_is_free(void)
{
	bool frozen = false;

	for (unsigned i = 0; i < machine->n_cpus; i++)
		frozen |= machine->cpus[i].held;
	machine->present = daemon_first()->hosts;
	machine->leaving = frozen ? ~0u : ~hosts_that_stay(daemon_first());
}

void hosts_on_event(struct sim *sim, struct sim_event *event)
{
	plan.current = event->node;
	if (hosts_lost(sim, event)) {
		/* the message is dropped */
	} else if (setjmp(plan.death)) {
		trouble.met = true;
		daemon_dies(plan.current);
	} else {
		on_event(event);
	}
	free(event->payload);
	children_look_at_posts();
	if (event->type == WORLD_TIMER) /* also when no processor has anything more to do */
		hosts_watch(sim);
	if (!sim->ended)
		see_who_is_free();
}

void hosts_check_idle(struct sim *sim)
{
	if (sim->broken)
		sim_fail(sim, "a host is lost, and the machine neither ends nor goes back");
	requests_check_idle();
	world_check_idle();
	policies_check_idle();
	owner_check_idle();
	if (trouble.number == NO_TROUBLE && lseek(plan.log_fd, 0, SEEK_CUR) > 0 && !sim->verbose) {
		copy_log();
		sim_fail(sim, "nothing is wrong, but the log has a line");
	}
}

void hosts_close(struct sim *sim)
{
	seen.met[trouble.number] += trouble.met;
	seen.ended += sim->ended;
	seen.seeds++;
	owner_close();
	requests_close();
	for (unsigned number = 0; number < sim->n_nodes; number++)
		world_forget_daemon(number);
	world_close();
}

int hosts_report(void)
{
	uint64_t lost = requests_report();
	int status = 0;

	printf("\n  %llu checkpoints, %llu files of one, %llu machines went back to one, %llu went "
	       "on "
	       "without host 0, %llu were loaded, %llu requests lost with a machine; %llu ended\n",
	       (unsigned long long)owner_count.checkpoints, (unsigned long long)owner_count.files,
	       (unsigned long long)owner_count.back, (unsigned long long)owner_count.yields,
	       (unsigned long long)owner_count.loads, (unsigned long long)lost,
	       (unsigned long long)seen.ended);
	printf("  of faults were met");
	for (unsigned i = 0; i < FAULTS; i++)
		printf(" %s:%u %llu", fault_names[faults[i].point], faults[i].n,
		       (unsigned long long)seen.met[i]);
	printf(", killed %llu, silent %llu\n", (unsigned long long)seen.met[KILLED],
	       (unsigned long long)seen.met[SILENCED]);
	for (unsigned i = 0; i < FAULTS && seen.seeds >= ENOUGH_SEEDS; i++)
		/* this one ends in "done" */
		if (!seen.met[i] && faults[i].point != FAULT_MOVE_SOURCE_DIES) {
			printf("  fault point %s:%u has never shown\n",
			       fault_names[faults[i].point], faults[i].n);
			status = 1;
		}
	return status;
}
