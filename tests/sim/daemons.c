/* daemons.c - replaces hosts.c in daemon-sim: the daemons' own code leads the changes of hosts and
 * processors.
 *
 * Each node of the simulator has a `struct node` with the code of the daemon:
 * vmm/node/hosts/hosts.c, hostcomes.c, hostgoes.c, hostpart.c, moves.c, handover.c, stages.c,
 * route.c and net.c, and, of vmm/node/cut/, freeze.c, copy.c and restore.c, on the simulator's
 * network and clock.  The pages are those of vmm/node/pages/ (daemon_pages.c).  The I/O server has
 * its own serve.c and chips.  The process that owns the machine has the code that takes checkpoints
 * and goes back to them (daemon_owner.c), and the streams.  This file has the command lines, which
 * make random requests, several at a time: to move processors, to choose a policy that moves them
 * (daemon_policy.c), to add and remove hosts, to save and to load the machine, while the litmus
 * tests run and the guest uses its devices.  It also has the faults.  In most seeds one fault point
 * is on for a while, or daemons are killed or cut off at any moment, also while the machine goes
 * back.  Then:
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
#include "vmm/cli/snapshot/pull.h"
#include "vmm/cli/snapshot/savefile.h"
#include "vmm/node/hosts/hosts.h"

enum { REQUESTS = 64, LIMIT_NS = 2000000000, ENOUGH_SEEDS = 2000, SEED_LIMIT_S = 200 };
enum request_kind { ASK_MOVE, ASK_ADD, ASK_REMOVE, ASK_SAVE, ASK_POLICY, REQUEST_KINDS };

/* What may go wrong (tests/faults.table).  `most`: the kind of request that is made more often
 * then. */
static const struct fault {
	enum fault_point point;
	uint32_t n;
	enum request_kind most;
} faults[] = {
#define X(name, n, most) { FAULT_##name, n, most },
#include "tests/sim/faults.inc" /* made by scripts/fault-list */
#undef X
};
enum { FAULTS = ARRAY_LEN(faults), NO_FAULT = FAULTS, KILLED, SILENCED };

struct request { enum request_kind kind; bool open; unsigned what, to; uint64_t since_ns; };
/* A client that saves: where to (memory or a file), what that must be, and for which request. */
struct saver {
	struct client client;
	struct pull pull;
	struct kept *kept;
	bool to_file, has_file;
	struct savefile to;
	struct snapfile_writer *writer; /* what a death in the middle leaves behind */
	char path[IO_PATH];
	struct witness cut, file; /* cut: of what is arriving. file: of the file before. */
	struct request *request;
};

static struct {
	unsigned n, open, adds_open;
	struct request request[REQUESTS];
	struct saver saver[LAST_CLIENT + 1];
	struct saver *saved; /* the last one that has a complete machine */
	bool loaded;	     /* the machine was loaded from there */
	unsigned fault;	     /* an index of `faults`, or one of those above */
	bool met;	     /* the fault has had an effect in this seed */
	unsigned current; /* the daemon whose code runs */
	jmp_buf death, writer_death;
	bool writes; /* a client writes to a file: that client may die */
	pid_t pid;
	int log_fd;
} plan;

static struct { /* over all seeds */
	uint64_t done[REQUEST_KINDS], as_before[REQUEST_KINDS], lost, ended, met[FAULTS + 3], seeds;
} seen;

static struct node *first(void) { return &daemons[0].node; }

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
	plan.met = machine->ended = true;
}

/* The other daemons notice that this one is dead.  If it is only silent, it notices the same of
 * them. */
static void no_longer(unsigned number)
{
	daemons[number].unsaid_ns = machine->now_ns + (sim_chance(machine, 50)
							       ? sim_random(machine, 200000)
							       : SIM_MAX_DELAY_NS);
	machine->broken |= node_has_host(first(), number) || !daemons[number].loose;
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
	if (__builtin_popcount(first()->hosts) < 2) /* no other host could miss it */
		return;
	sim_trace(machine, "nobody hears of daemon %u any more", number);
	daemons[number].silent = true;
	no_longer(number);
}

void daemon_ends(unsigned number)
{
	const struct dsm *dsm = daemons[number].node.dsm;

	if (!machine->broken && (node_has_host(first(), number) || dsm_pages_here(dsm)))
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
	longjmp(plan.writes ? plan.writer_death : plan.death, 1);
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
	plan.met |= machine->broken;
	machine->broken = false;
	events_forget(is_of_machine);
	cluster_watch(machine);
	for (unsigned i = 0; i < REQUESTS; i++)
		seen.lost += plan.request[i].open;
	memset(plan.request, 0, sizeof plan.request);
	plan.open = plan.adds_open = 0;
	policies_other_request();
	for (unsigned i = 1; i <= LAST_CLIENT; i++) {
		plan.saver[i].pull.active = false;
		savefile_abandon(&plan.saver[i].to);
	}
}

/* ---- clients ---- */

static enum request_kind choose_request(void)
{
	static const enum request_kind some[] = { ASK_MOVE, ASK_MOVE, ASK_ADD, ASK_REMOVE,
						  ASK_SAVE };

	enum request_kind kind = some[sim_random(machine, ARRAY_LEN(some))];

	if (sim_chance(machine, 12))
		kind = ASK_POLICY;
	if (plan.fault < FAULTS && sim_chance(machine, 60))
		kind = faults[plan.fault].most;
	/* Nobody is told of moves: a leaver forwards nothing, and after many moves in a row an
	 * interrupt would be forwarded more often than a cut waits for. */
	if ((kind == ASK_REMOVE || kind == ASK_POLICY) && fault_on(FAULT_MOVE_UNTOLD))
		kind = ASK_MOVE;
	return kind;
}

/* Without a fault only impossible requests are refused, and none because another change is being
 * made. */
static bool is_refusal(const char *why)
{
	static const char *const texts[] = { "already",	       "there is no",	"is the last one",
					     "may hold",       "is going down", "only starting",
					     "not started yet",
					     "are being placed" };

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
	plan.open--;
	plan.adds_open -= r->kind == ASK_ADD;
	if (r->kind == ASK_POLICY && !error)
		policies_chosen(r->what, !plan.open);
	/* host 0 cannot leave while all of the memory is zero: nothing could be loaded */
	if (error && !is_refusal(line) &&
	    (world_cut.written || !strstr(line, "lacks the machine's memory"))) {
		if (plan.fault == NO_FAULT)
			sim_fail(machine, "nothing is wrong, but %s", line);
		seen.as_before[r->kind]++;
		plan.met = true;
	}
	seen.done[r->kind] += !error;
}

/* ---- saving and loading ---- */

/* The saving client ends by Ctrl-C or is killed: its request ends neither with an error nor
 * done. */
static void saver_goes(struct saver *s)
{
	s->pull.active = false;
	world_after(WORLD_CLIENT_GONE, 0, PORT_CLIENT, (uint32_t)s->client.fd, NULL, 0);
	close_request(s->request, 0, "", 0);
}

/* Checks that the file is the old one, or the new one if that is possible. */
static void check_file(struct saver *s, bool may_be_new)
{
	savefile_abandon(&s->to);
	if (may_be_new && owner_file_is(s->path, &s->cut)) {
		s->file = s->cut;
		s->has_file = true;
		plan.saved = s;
	} else if (!owner_file_is(s->path, s->has_file ? &s->file : NULL)) {
		sim_fail(machine, "the machine's file is neither the one before nor the new one");
	}
}

/* If the writer dies at the last record or the commit, everything may have been written. */
static int write_to_file(struct saver *s, const struct snapfile_record *record, const void *data,
			 struct problem *p)
{
	int result;

	s->writer = s->to.file;
	if (setjmp(plan.writer_death)) {
		plan.writes = false;
		plan.met = true;
		s->to.file = s->writer;
		check_file(s, !record && fault_on(FAULT_FILE_DIES) == 4);
		saver_goes(s);
		return 0;
	}
	plan.writes = true;
	result = record ? savefile_add(&s->to, record, data, p) : savefile_commit(&s->to, p);
	plan.writes = false;
	return result;
}

/* Called at any moment, also before the client's turn. */
static void give_up(struct saver *s)
{
	saver_goes(s);
	if (s->to_file)
		check_file(s, false);
}

static void on_impatience(void *context)
{
	struct saver *s = context;

	if (s->pull.active)
		give_up(s);
}

static int keep(void *context, const struct snapfile_record *record, const void *data,
		struct problem *p)
{
	struct saver *s = context;

	if (sim_chance(machine, 1))
		give_up(s);
	if (!s->pull.active)
		return 0;
	return s->to_file ? write_to_file(s, record, data, p) : kept_add(s->kept, record, data, p);
}

static void on_cut(void *context) { ((struct saver *)context)->cut = world_cut; }

static void on_file_saved(struct saver *s)
{
	static const char nothing[] = "there is no memory in it yet";
	struct problem p;

	if (write_to_file(s, NULL, NULL, &p)) {
		check_file(s, false);
		close_request(s->request, 1, s->cut.written ? p.line : nothing,
			      (uint32_t)strlen(s->cut.written ? p.line : nothing));
	} else if (s->request->open) { /* otherwise it has died */
		check_file(s, true);
		if (plan.saved != s)
			sim_fail(machine, "the machine's file is not what was saved");
		close_request(s->request, 0, "", 0);
	}
}

static void on_saved(void *context)
{
	struct saver *s = context;
	struct problem p;

	if (s->to_file)
		return on_file_saved(s);
	if (!kept_commit(s->kept, &p)) {
		owner_check_kept(s->kept, &s->cut);
		plan.saved = s;
	} else if (s->cut.written) { /* a machine without any memory cannot be loaded */
		sim_fail(machine, "what was saved %s", p.line);
	}
	close_request(s->request, 0, "", 0);
}

static void on_not_saved(void *context, const char *line, bool nothing_happened)
{
	struct saver *s = context;

	(void)nothing_happened;
	if (s->to_file)
		check_file(s, false);
	else
		kept_abandon(s->kept);
	close_request(s->request, 1, line, (uint32_t)strlen(line));
}

static bool fault_of_files(void)
{
	enum fault_point point = plan.fault < FAULTS ? faults[plan.fault].point : FAULT_POINT_COUNT;

	return point == FAULT_FILE_DIES ||
	       (point == FAULT_SNAPSHOT_FULL && faults[plan.fault].n >= 3);
}

/* Begins to save into memory, or into a file. */
static void begin_to_save(struct saver *s, unsigned number)
{
	char name[16];
	struct problem p;

	s->to_file = sim_chance(machine, fault_of_files() ? 80 : 15);
	if (!s->kept)
		s->kept = kept_new();
	if (!s->to_file)
		return kept_begin(s->kept, false);
	snprintf(name, sizeof name, "saved.%u", number);
	io_path(s->path, name);
	if (!s->has_file)
		unlink(s->path); /* left by another seed */
	if (savefile_begin(&s->to, s->path, &p))
		die("%s", p.line);
}

static void save(struct saver *s, unsigned number, struct request *request)
{
	uint64_t patience_ns = sim_random(machine, 3000) * 1000;
	struct loop loop = world_loop(OWNER);

	if (plan.saved == s)
		plan.saved = NULL;
	begin_to_save(s, number);
	s->client.fd = (int)number;
	s->request = request;
	s->pull.client = &s->client;
	s->pull.kernel = "kernel";
	s->pull.hosts = first()->hosts;
	s->pull.context = s;
	s->pull.cut = on_cut;
	s->pull.keep = keep;
	s->pull.done = on_saved;
	s->pull.failed = on_not_saved;
	pull_start(&s->pull, SNAPSHOT_APART);
	if (sim_chance(machine, 5))
		loop_once(&loop, patience_ns, on_impatience, s);
}

void client_on_hosts(unsigned client, uint32_t hosts)
{
	plan.saver[client].pull.hosts = hosts;
}

/* Loads on any number of hosts.  While the machine is loaded from there, or may have to be again,
 * nobody writes to that file. */
static void load_saved(void)
{
	if (!plan.saved || plan.loaded)
		return;
	plan.loaded = true;
	owner_load(plan.saved->to_file ? NULL : plan.saved->kept, plan.saved->path,
		   &plan.saved->cut, 1 + sim_random(machine, machine->n_nodes));
}

/* ---- all requests ---- */

/* Sends a request of that kind.  `fixed`: if it is a policy, then this one.  Returns false if it
 * cannot be asked for now. */
static bool ask(enum request_kind kind, bool fixed)
{
	unsigned seq = plan.n++ % REQUESTS, client = 1 + seq % LAST_CLIENT;
	struct request *r = &plan.request[seq];
	struct msg_cpu_move move = { .cpu = sim_random(machine, machine->n_cpus),
				     .seq = seq,
				     .host = sim_random(machine, machine->n_nodes) };
	struct msg_host host = { .seq = seq, .op = kind == ASK_ADD ? HOST_ADD : HOST_REMOVE,
				 .host = sim_random(machine, machine->n_nodes + 1) };
	bool no_more = (unsigned)__builtin_popcount(first()->hosts) + plan.adds_open >=
		       machine->n_nodes;

	if (r->open || (kind == ASK_SAVE && plan.saver[client].pull.active) ||
	    (kind == ASK_ADD && no_more))
		return false;
	policies_other_request();
	*r = (struct request){ .kind = kind,
			       .open = true,
			       .what = kind == ASK_MOVE ? move.cpu : host.host,
			       .to = move.host,
			       .since_ns = machine->now_ns };
	plan.adds_open += kind == ASK_ADD;
	plan.open++;
	if (kind == ASK_MOVE)
		world_send_client(client, MSG_CPU_MOVE, &move, sizeof move);
	else if (kind == ASK_SAVE)
		save(&plan.saver[client], client, r);
	else if (kind == ASK_POLICY)
		r->what = policies_ask(client, seq, fixed);
	else
		world_send_client(client, MSG_HOST, &host, sizeof host);
	return true;
}

void hosts_change(struct sim *sim, struct sim_event *event)
{
	(void)sim, (void)event;
	ask(choose_request(), false);
}

void client_on_answer(unsigned client, const struct msg_header *header, const void *body)
{
	struct { uint32_t first, tag, third, fourth; } words; /* the first words of all answers */
	uint32_t seq;

	memcpy(&words, body, sizeof words);
	seq = words.tag;
	if (header->type == MSG_SNAPSHOT_ITEM) {
		pull_on_item(&plan.saver[client].pull, body, header->bytes);
	} else if (header->type == MSG_CPU_MOVED) {
		close_request(&plan.request[seq], words.third,
			      (const char *)body + sizeof(struct msg_cpu_moved),
			      header->bytes - sizeof(struct msg_cpu_moved));
	} else if (header->type == MSG_POLICY) {
		close_request(&plan.request[seq], words.third,
			      (const char *)body + sizeof(struct msg_policy),
			      header->bytes - sizeof(struct msg_policy));
	} else if (words.third == HOST_DONE) {
		close_request(&plan.request[seq], words.fourth,
			      (const char *)body + sizeof(struct msg_host),
			      header->bytes - sizeof(struct msg_host));
	}
}

/* ---- a seed ---- */

void hosts_open(struct sim *sim)
{
	unsigned n_start = (unsigned)__builtin_popcount(sim->present);
	int log_fd = plan.log_fd;

	machine = sim;
	fault_death = die_here;
	memset(&plan, 0, sizeof plan);
	policies_open();
	plan.log_fd = log_fd;
	plan.pid = getpid();
	open_log();
	sim->lowers = true;
	plan.fault = sim_chance(sim, 70) ? sim_random(sim, FAULTS) : NO_FAULT + sim_random(sim, 3);
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

static void later(enum world_event kind, enum sim_event_kind event_kind, uint32_t most_ns)
{
	struct sim_event event = { .kind = (uint8_t)event_kind, .type = (uint16_t)kind,
				   .at_ns = machine->now_ns + sim_random(machine, most_ns) };

	events_add(&event);
}

/* these faults have an effect only when a machine goes back */
static bool faults_at_load(void)
{
	return plan.fault < FAULTS && faults[plan.fault].point == FAULT_CHECKPOINT_DIES &&
	       faults[plan.fault].n == 5;
}

void hosts_plan(struct sim *sim)
{
	for (unsigned i = sim->changes ? sim_random(sim, sim->changes + 1) : 0; i; i--)
		later(0, EVENT_CHANGE, 3000000);
	for (unsigned i = sim_random(sim, 20); i; i--)
		later(WORLD_POST, EVENT_HOST, 3000000);
	if ((plan.fault == KILLED || faults_at_load()) && sim_chance(sim, 20))
		later(WORLD_KILL, EVENT_HOST, 6000000);
	if (plan.fault == SILENCED && sim_chance(sim, 20))
		later(WORLD_SILENCE, EVENT_HOST, 6000000);
	if (sim_chance(sim, 10))
		later(WORLD_LOAD, EVENT_HOST, 6000000);
	owner_plan();
	for (unsigned i = plan.fault < FAULTS ? 2 : 0; i; i--)
		later(WORLD_FAULT, EVENT_HOST, 10000000);
}

void hosts_watch(struct sim *sim)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		if (plan.request[i].open && sim->now_ns - plan.request[i].since_ns > LIMIT_NS)
			sim_fail(sim, "request %u of kind %u for %u comes to no end; fault %u", i,
				 plan.request[i].kind, plan.request[i].what, plan.fault);
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
	case WORLD_LOAD: load_saved(); break;
	case WORLD_FIXED:
		if (policies_auto_must_end())
			ask(ASK_POLICY, true);
		break;
	case WORLD_USER: user_on_event(event->home.generation); break;
	case WORLD_FAULT:
		fault_set(faults[plan.fault].point,
			  fault_on(faults[plan.fault].point) ? 0 : faults[plan.fault].n);
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
	machine->present = first()->hosts;
	machine->leaving = frozen ? ~0u : ~hosts_that_stay(first());
}

void hosts_on_event(struct sim *sim, struct sim_event *event)
{
	plan.current = event->node;
	if (hosts_lost(sim, event)) {
		/* the message is dropped */
	} else if (setjmp(plan.death)) {
		plan.met = true;
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
	for (unsigned i = 0; i < REQUESTS; i++)
		if (plan.request[i].open)
			sim_fail(sim, "request %u of kind %u for %u is not answered", i,
				 plan.request[i].kind, plan.request[i].what);
	world_check_idle();
	policies_check_idle();
	owner_check_idle();
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
	owner_close();
	for (unsigned i = 1; i <= LAST_CLIENT; i++) {
		kept_free(plan.saver[i].kept);
		savefile_abandon(&plan.saver[i].to);
	}
	for (unsigned number = 0; number < sim->n_nodes; number++)
		world_forget_daemon(number);
	world_close();
}

int hosts_report(void)
{
	static const char *const kinds[] = { "moves of processors", "hosts that come",
					     "hosts that go", "snapshots", "policies" };
	int status = 0;

	for (unsigned i = 0; i < REQUEST_KINDS; i++)
		printf("%s%llu %s done, %llu as before", i ? "; " : "  ",
		       (unsigned long long)seen.done[i], kinds[i],
		       (unsigned long long)seen.as_before[i]);
	printf("\n  %llu checkpoints, %llu files of one, %llu machines went back to one, %llu went "
	       "on "
	       "without host 0, %llu were loaded, %llu requests lost with a machine; %llu ended\n",
	       (unsigned long long)owner_count.checkpoints, (unsigned long long)owner_count.files,
	       (unsigned long long)owner_count.back, (unsigned long long)owner_count.yields,
	       (unsigned long long)owner_count.loads, (unsigned long long)seen.lost,
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
