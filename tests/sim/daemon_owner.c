/* daemon_owner.c - the process that owns the daemons' machine, in daemon-sim: it starts and reaps
 * them, takes checkpoints, and lets the machine go back to the last one when a host is lost.
 *
 * It runs the code of `vmp run` with a `struct run`: vmm/cli/run/go_back.c, yield.c and
 * load_flow.c, vmm/cli/streams.c, and, of vmm/cli/snapshot/, checkpoint.c, pull.c, kept.c and
 * load.c.  This file has what these call, and what vmm/cli/run/run_messages.c and run_hosts.c do
 * with node 0's messages.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "tests/sim/daemons.h"
#include "vmm/cli/run/run_private.h"
#include "vmm/node/hosts/hosts.h"

enum { DEATH_NS = 1000000 };

struct owner_count owner_count;

static struct {
	struct run run;
	struct options options;
	bool here; /* node 0 knows its owner */
	uint32_t said_lost; /* hosts whose loss was reported */
	/* of the checkpoint that is being taken; of the kept one; of what is being loaded */
	struct witness cut, kept, loads;
	void (*on_kept)(void *context);	 /* what go_back.c does then */
	char path[IO_PATH];		 /* of the checkpoint's file, if there is one */
	bool has_file;
	struct witness file;
	int gate; /* its writer begins when this is closed */
} owner;

bool owner_is_here(void) { return owner.here; }
/* Returns whether an event is the timer of regular checkpoints. */
bool owner_is_checkpoint(const void *event)
{
	return event == owner.run.checkpoint.timer && !owner.run.checkpoint.last;
}

/* ---- what is kept equals the witness ---- */

/* A source of records: kept_next() or snapfile_read(). */
struct source { const struct kept *kept; struct kept_cursor cursor; struct snapfile_reader *file; };

static int next_record(struct source *from, struct snapfile_record *record, void *data)
{
	struct problem p;

	return from->kept ? kept_next(from->kept, &from->cursor, record, data)
			  : snapfile_read(from->file, record, data, &p);
}

static bool record_is(const struct snapfile_record *record, const void *data,
		      const struct witness *w, uint32_t *pages)
{
	if (record->kind == SNAPSHOT_CPU)
		return !memcmp(data, &w->cpu[record->index], sizeof w->cpu[0]);
	if (record->kind != SNAPSHOT_PAGE)
		return true;
	*pages |= 1u << record->index;
	return record->index < machine->n_pages &&
	       !memcmp(data, w->latest[record->index], sizeof w->latest[0]);
}

/* Returns whether a source has all of the machine, as it was. */
static bool source_is(struct source *from, const struct witness *w)
{
	static const uint32_t zeroes[SIM_WORDS];
	static uint8_t data[MAX_MSG_PAYLOAD];
	struct snapfile_record record;
	uint32_t pages = 0;
	int got;

	while ((got = next_record(from, &record, data)) == 1)
		if (!record_is(&record, data, w, &pages))
			return false;
	for (unsigned page = 0; page < machine->n_pages; page++)
		if (!(pages >> page & 1) && memcmp(w->latest[page], zeroes, sizeof zeroes))
			return false;
	return !got;
}

void owner_check_kept(const struct kept *kept, const struct witness *w)
{
	struct source from = { .kept = kept };

	if (!source_is(&from, w))
		sim_fail(machine, "the machine is saved, but not as it was");
}

bool owner_file_is(const char *path, const struct witness *w)
{
	struct problem p;
	struct source from = { .file = w ? snapfile_open(path, &p) : NULL };
	bool is = w ? from.file && source_is(&from, w) : access(path, F_OK) != 0;

	snapfile_close(from.file);
	return is;
}

/* ---- functions that go_back.c calls ---- */

uint64_t run_now_ns(void) { return machine->now_ns; }
void run_hide_progress(struct run *run) { (void)run; }

/* The writer of the checkpoint's file is a process of its own, whose pace is not the simulator's.
 * So it waits until check_file() lets it begin, and check_file() waits for its end: what happens
 * then, and whether it finds that nobody waits for it, follows from the seed alone. */
static pid_t fork_gated(void)
{
	int gate[2];
	char none;
	pid_t pid;

	if (pipe2(gate, O_CLOEXEC))
		return -1;
	pid = fork();
	close(gate[pid ? 0 : 1]);
	if (pid)
		owner.gate = gate[1];
	while (!pid && read(gate[0], &none, 1) < 0)
		;
	return pid;
}

/* Checks that the checkpoint's file is the old one or the new one; the new one if no fault is on.
 * Its writer has ended. */
static void check_file(const struct witness *before)
{
	bool wrong = fault_on(FAULT_SNAPSHOT_FULL) >= 3 ||
		     (fault_on(FAULT_FILE_DIES) && fault_on(FAULT_FILE_DIES) < 4) ||
		     !owner.cut.written;

	close(owner.gate);
	while (waitpid(-1, NULL, 0) > 0)
		;
	if (!wrong && owner.run.keptfile.heard && !owner_file_is(owner.path, &owner.cut))
		sim_fail(machine, "the checkpoint's file is not written");
	if (owner_file_is(owner.path, &owner.cut)) {
		owner.file = owner.cut;
		owner.has_file = true;
		owner_count.files++;
	} else if (!owner_file_is(owner.path, before)) {
		sim_fail(machine,
			 "the checkpoint's file is neither the one before nor the new one");
	}
}

/* The checkpoint is complete. */
static void on_kept(void *context)
{
	bool begun = owner.run.keptfile.heard;

	owner_check_kept(owner.run.checkpoint.kept, &owner.cut);
	owner.kept = owner.cut;
	owner_count.checkpoints++;
	owner.on_kept(context);
	user_look();
	if (begun || !owner.run.keptfile.heard)
		return;
	if (sim_chance(machine, 10)) /* as if a host were lost */
		keptfile_stop(&owner.run.keptfile);
	check_file(owner.has_file ? &owner.file : NULL);
}

/* Returns the living hosts that were a part of the machine until now. */
static uint32_t left(void)
{
	uint32_t hosts = 0;

	for (unsigned number = 0; number < machine->n_nodes; number++)
		if (daemons[number].exists && !daemons[number].loose && !daemons[number].dead &&
		    !daemons[number].silent && !(owner.said_lost >> number & 1))
			hosts |= 1u << number;
	return hosts;
}

void run_end(struct run *run, int status, const char *line)
{
	(void)status;
	if (!strstr(line, "no other host is left") && !strstr(line, "there is no checkpoint yet"))
		sim_fail(machine, "the machine cannot go back: %s", line);
	if (strstr(line, "no other host is left") && left())
		sim_fail(machine, "%s, but there are %#x", line, left());
	if (strstr(line, "there is no checkpoint yet") && run->checkpoint.kept_cut_ns)
		sim_fail(machine, "%s, but one stands", line);
	run->ended = true;
	user_check(run, false);
	machine_ends(line);
}

/* Kills nothing here: launch_end() ends everything at once. */
void launch_kill(const struct launch *launch, uint32_t nodes) { (void)launch, (void)nodes; }

void launch_end(struct launch *launch, unsigned grace_ms, const pid_t *but)
{
	(void)launch, (void)grace_ms, (void)but;
	owner.here = false;
	for (unsigned number = 0; number < machine->n_nodes; number++) {
		memset((void *)machine->nodes[number].right, PAGE_NONE, machine->n_pages);
		world_forget_daemon(number);
	}
}

uint32_t launch_killed(const struct launch *launch)
{
	uint32_t killed = 0;

	(void)launch;
	for (unsigned number = 0; number < machine->n_nodes; number++)
		killed |= (uint32_t)(daemons[number].dead && !daemons[number].in_order &&
				     !daemons[number].gave_up &&
				     !daemons[number].loose)
			  << number;
	return killed;
}

int run_hosts_hold(const struct run *run, const struct cluster_host *lines, uint32_t hosts,
		   struct problem *p)
{
	(void)run, (void)lines, (void)hosts, (void)p;
	return 0;
}

struct machine_info run_info(const struct run *run, uint32_t hosts)
{
	(void)run;
	return (struct machine_info){ .machine.hosts = hosts };
}

void rundir_write_info(const struct rundir *rundir, const struct machine_info *info)
{
	(void)rundir, (void)info;
}

int run_start_saved(struct run *run, uint32_t hosts, struct problem *p)
{
	(void)p;
	if (run->load.kept && run->load.kept == run->checkpoint.kept)
		owner.loads = owner.kept;
	machine_is_lost();
	machine->went_back |= owner.loads.run != machine->runs;
	machine->present = (1u << hosts) - 1;
	owner.said_lost = 0;
	run->plan.machine.hosts = hosts;
	for (unsigned number = 0; number < hosts; number++)
		pages_new_node(machine, number, hosts);
	children_load(&owner.loads);
	for (unsigned number = 0; number < hosts; number++)
		world_new_daemon(number, hosts, 0, true);
	return 0;
}

static void on_retry(void *context)
{
	struct run *run = context;

	run->client.fd = 0;
	run->connected = owner.here = true;
	world_after(WORLD_OWNER_CAME, 0, PORT_OWNER, 0, NULL, 0);
}

void run_connect(struct run *run)
{
	loop_after(run->retry, (1 + sim_random(machine, 500)) * 1000);
}

static void attach(struct run *run)
{
	run_attach_streams(run);
	checkpoint_go(&run->checkpoint, &run->client, "kernel");
}

/* The machine goes on. */
void run_on_loaded(void *context)
{
	struct run *run = context;
	bool yields = run->life == OWNER_MOVES;
	enum owner_action action = run_happens(run, OWNER_ON_THERE);

	owner_count.yields += yields;
	owner_count.back += run->back.since_ns && !yields;
	owner_count.loads += !run->back.since_ns;
	attach(run);
	run_yield_ends(run, action);
	run->back.since_ns = 0;
}

void run_on_load_failed(void *context, const char *line)
{
	(void)context;
	sim_fail(machine, "loading fails: %s", line);
}

void run_look_for_deaths(struct run *run)
{
	loop_after(run->death, (1 + sim_random(machine, DEATH_NS / 1000)) * 1000);
}

static void on_death(void *context)
{
	struct run *run = context;

	if (!run_go_back(run, "it died") && !machine->ended)
		machine_ends("a host is lost");
}

/* There is no cluster, and no standby. */
void names_explain(const struct host_names *names, const char *line, char *to, size_t bytes)
{
	(void)names;
	snprintf(to, bytes, "%s", line);
}

bool cluster_waits_for(const struct cluster *c, bool silent)
{
	(void)c, (void)silent;
	return false;
}
uint32_t cluster_count_ready(struct cluster *c, bool may_lack, struct cluster_host lines[MAX_NODES])
{
	(void)c, (void)may_lack, (void)lines;
	return 0;
}
struct cluster_votes cluster_count_votes(struct cluster *c)
{
	(void)c;
	return (struct cluster_votes){ false, false, false };
}
uint32_t cluster_keep_ready(struct cluster *c, bool may_lack, struct problem *missing)
{
	(void)c, (void)may_lack, (void)missing;
	return 0;
}
int cluster_regroup(struct cluster *c, uint32_t hosts, uint32_t silent, struct problem *p)
{
	(void)c, (void)hosts, (void)silent, (void)p;
	return -1;
}
void run_standby_look(struct run *run) { (void)run; }
bool run_standby_may_live(const struct run *run) { (void)run; return false; }
bool run_standby_may_be_there(const struct run *run) { (void)run; return false; }
bool run_standby_has_orders(const struct run *run) { (void)run; return true; }
uint64_t run_standby_may_have_gone_on(const struct run *run) { (void)run; return 0; }
void run_standby_leave(struct run *run) { (void)run; }
void run_tell_over(struct run *run) { (void)run; }
const char *run_standby_why_not(const struct run *run) { (void)run; return NULL; }
bool run_standby_is_busy(void *context) { (void)context; return false; }
int rundir_make_secret(const struct rundir *rundir, struct problem *p)
{
	(void)rundir, (void)p;
	return -1;
}

/* ---- daemons ---- */

static void answer_host(unsigned host, enum host_op op)
{
	struct msg_host answer = { .host = host, .op = op };

	world_send_client(0, MSG_HOST, &answer, sizeof answer);
}

static void launch(const struct msg_host *host)
{
	daemon_runs(host->host);
	world_forget_daemon(host->host);
	pages_new_node(machine, host->host, 0);
	answer_host(host->host, HOST_LAUNCHED);
	machine->joins++;
	world_new_daemon(host->host, owner.run.plan.machine.hosts, host->nodes, false);
}

static void on_host(const struct msg_host *host)
{
	struct daemon *daemon = &daemons[host->host];

	if (host->op == HOST_LAUNCH)
		return launch(host);
	if (host->op == HOST_YIELD)
		return run_yield(&owner.run);
	daemon->loose = host->op == HOST_RETIRE;
	owner.run.hosts = (owner.run.hosts & ~(1u << host->host)) | (uint32_t)!daemon->loose
									    << host->host;
	if (!daemon->loose)
		return;
	if (host->error && daemon->exists && !daemon->dead)
		daemon_dies(host->host);
	if (!host->error && daemon->breaks) /* the last that it said sufficed for its leave */
		machine->broken = daemon->breaks = false;
	answer_host(host->host, HOST_RETIRED);
}

static void on_reaped(unsigned number)
{
	struct daemon *daemon = &daemons[number];

	if (!daemon->loose)
		return run_look_for_deaths(&owner.run);
	/* otherwise its pages do not matter: the machine ends, or goes back */
	if (!machine->broken) {
		daemon->exists = false;
		daemon->life++;
		pages_end_node(machine, number);
	}
	answer_host(number, HOST_ENDED);
}

/* ---- node 0's messages ---- */

static void on_snapshot_step(enum snapshot_step step)
{
	if (step == SNAPSHOT_READY)
		load_start(&owner.run.load, &owner.run.client, owner.run.plan.machine.hosts,
			   world_rundir());
	else if (step == SNAPSHOT_TAKEN)
		load_taken(&owner.run.load);
}

static void on_machine_end(const struct msg_machine_end *end)
{
	owner.run.back.lost |= 1u << (end->lost ? end->lost - 1 : end->node);
	owner.said_lost |= owner.run.back.lost;
	run_look_for_deaths(&owner.run);
}

static void on_message(const struct packet *packet)
{
	struct message m = packet_message(&packet->header, packet->body);
	struct run *run = &owner.run;
	union {
		struct msg_host host;
		struct msg_hosts hosts;
		struct msg_snapshot snapshot;
		struct msg_snapshot_item item;
		struct msg_machine_end end;
		struct msg_stream stream;
		struct msg_stream_room room;
	} body;

	memcpy(&body, packet->body,
	       packet->header.bytes < sizeof body ? packet->header.bytes : sizeof body);
	switch (packet->header.type) {
	case MSG_HOST:
		return on_host(&body.host);
	case MSG_HOSTS:
		run->hosts = body.hosts.present;
		return checkpoint_hosts(&run->checkpoint, run->hosts);
	case MSG_SNAPSHOT_ITEM:
		/* the checkpoint that is arriving was cut */
		if (body.item.kind == SNAPSHOT_MACHINE)
			owner.cut = world_cut;
		return checkpoint_on_item(&run->checkpoint, packet->body, packet->header.bytes);
	case MSG_SNAPSHOT:
		return on_snapshot_step(body.snapshot.step);
	case MSG_MACHINE_END:
		return on_machine_end(&body.end);
	case MSG_STREAM:
		run_on_stream(run, &m, &body.stream);
		return user_look();
	case MSG_MACHINE_UP: /* the guest has used a stream for the first time */
		return;
	case MSG_STREAM_ROOM:
		return run_on_stream_room(run, &m, &body.room);
	default:
		sim_fail(machine, "the owner gets %s", wire_type_name(packet->header.type));
	}
}

void owner_on_event(const struct sim_event *event)
{
	if (event->type == WORLD_REAPED)
		on_reaped(event->home.generation);
	else
		on_message(event->payload);
}

/* ---- its life ---- */

/* Begins a new machine, or one that is loaded as it was at `loaded`. */
static void begin(unsigned hosts, uint32_t checkpoint_ms, const struct witness *loaded)
{
	struct run *run = &owner.run;

	memset(&owner, 0, sizeof owner);
	run->loads = loaded;
	owner.options.machine.checkpoint_ms = checkpoint_ms;
	run->o = &owner.options;
	run->loop = run->client.loop = world_loop(OWNER);
	run->log_fd = -1;
	run->plan.machine.hosts = hosts;
	run->hosts = (1u << hosts) - 1;
	run->load.context = run;
	run->load.on_loaded = run_on_loaded;
	run->load.on_failed = run_on_load_failed;
	run->death = loop_timer(&run->loop, on_death, run);
	run->retry = loop_timer(&run->loop, on_retry, run);
	io_path(owner.path, "checkpoint");
	unlink(owner.path);
	if (checkpoint_ms && sim_chance(machine, 15))
		owner.options.checkpoint_file = owner.path;
	if (run_make_checkpoints(run))
		die("no memory");
	run->keptfile.fork = fork_gated;
	owner.on_kept = run->checkpoint.on_kept;
	run->checkpoint.on_kept = on_kept;
	checkpoint_hosts(&run->checkpoint, run->hosts);
	user_open(run, loaded);
}

void owner_open(unsigned hosts, uint32_t checkpoint_ms)
{
	begin(hosts, checkpoint_ms, NULL);
	run_happens(&owner.run, OWNER_ON_THERE);
	attach(&owner.run);
	owner.here = true;
	outside_client_comes(0);
}

void owner_close(void)
{
	keptfile_stop(&owner.run.keptfile);
	user_close(&owner.run);
	load_close(&owner.run.load);
	checkpoint_close(&owner.run.checkpoint);
	loop_remove(owner.run.death);
	loop_remove(owner.run.retry);
}

/* Everything is at rest and nothing more will come: checks that all output was printed. */
void owner_check_idle(void)
{
	guests_check();
	user_check(&owner.run, true);
}

void owner_plan(void)
{
	uint64_t soon_ns = sim_random(machine, 3000) * 1000ull;

	guests_plan();
	user_plan();

	if (owner.options.machine.checkpoint_ms && !owner.run.checkpoint.pull.active)
		loop_after(owner.run.checkpoint.timer, soon_ns);
}

/* Kills everything of the machine, and loads what was saved of it before. */
void owner_load(const struct kept *kept, const char *path, const struct witness *w, unsigned hosts)
{
	uint32_t checkpoint_ms = owner.options.machine.checkpoint_ms;
	struct problem p = { "" };
	struct hostcpu cpu;

	launch_end(&owner.run.launch, 0, NULL);
	owner_close();
	begin(hosts, checkpoint_ms, w);
	owner.loads = *w;
	if (kept)
		load_kept(&owner.run.load, kept, NULL);
	else if (load_open(&owner.run.load, path, &cpu, &p))
		sim_fail(machine, "what was saved cannot be loaded: %s", p.line);
	run_start_saved(&owner.run, hosts, &p);
	run_connect(&owner.run);
}
