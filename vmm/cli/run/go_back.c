/* go_back.c - with --checkpoint: what is kept of the streams at each checkpoint, and how the
 * machine goes back to the last one when a host is lost. */
#include "vmm/cli/run/run_private.h"

#include <errno.h>
#include <stdio.h>
#include "base/log.h"
#include "vmm/cli/run/gather.h"
#include "vmm/cli/run/quorum.h"

/* GRACE_MS: an ssh to a host that can be reached logs in within that time, unless the host is
 * overloaded */
enum { REGROUP_LIMIT_S = 30, GRACE_MS = 1000, WORD_STEP_MS = 100 };

enum owner_action run_happens(struct run *run, enum owner_event event)
{
	enum owner_state before = run->life;
	enum owner_action action;

	if (run->ended)
		return OWNER_DO_NOTHING;
	action = owner_life(&run->life, event);
	if (action == OWNER_ACTION_COUNT) {
		log_warn("the owner's event %s cannot come in state %s; this is a bug in vmp",
			 owner_event_name(event), owner_state_name(before));
		return OWNER_DO_NOTHING;
	}
	if (run->life != before)
		log_debug("the owner: %s, %s, %s", owner_state_name(before),
			  owner_event_name(event), owner_state_name(run->life));
	return action;
}

/* Prints one line on the machine's terminal or in its log. */
void run_report_back(struct run *run)
{
	run_hide_progress(run);
	dprintf(2, "%svmp: %s: the machine went back %.1f s, to its last checkpoint, and goes on "
		"on %u host%s after %.1f s%s\n", run->raw ? "\r\n" : "", run->back.why.line,
		(run->back.since_ns - run->checkpoint.kept_cut_ns) / 1e9, run->plan.machine.hosts,
		run->plan.machine.hosts > 1 ? "s" : "",
		(run_now_ns() - run->back.since_ns) / 1e9, run->raw ? "\r" : "");
}

static void on_checkpoint_begins(void *context)
{
	struct run *run = context;

	if (run->checkpoint.last == LAST_UNDER_WAY)
		run_yield_begins(run);
	stream_in_mark(&run->in);
}

static void on_checkpoint_cut(void *context)
{
	struct run *run = context;

	stream_out_mark(&run->out);
	stream_out_mark(&run->err);
}

static void on_checkpoint_kept(void *context)
{
	struct run *run = context;

	stream_in_kept(&run->in);
	stream_out_kept(&run->out);
	stream_out_kept(&run->err);
	keptfile_write(&run->keptfile, run->checkpoint.kept);
	run_standby_look(run);
}

static void on_checkpoint_trouble(void *context, const char *line)
{
	struct run *run = context;

	if (run->log_fd >= 0)
		dprintf(run->log_fd, "vmp: no checkpoint: %s\n", line);
	run_stays(run, run_happens(run, OWNER_ON_TROUBLE), line);
}

static void on_file_trouble(void *context, const char *line)
{
	struct run *run = context;

	if (run->log_fd >= 0)
		dprintf(run->log_fd, "vmp: no file of the last checkpoint: %s\n", line);
}

static void on_much_output(void *context)
{
	struct run *run = context;

	checkpoint_soon(&run->checkpoint);
}

void run_leave_machine(struct run *run, uint32_t lost)
{
	pid_t but[MAX_HOLDERS + 2];

	run->adding = 0;
	checkpoint_stop(&run->checkpoint);
	run_parts_lose(run, lost | run->back.silent);
	keptfile_stop(&run->keptfile);
	load_close(&run->load);
	stream_in_lost(&run->in);
	stream_out_lost(&run->out);
	stream_out_lost(&run->err);
	if (run->typed)
		loop_disarm(run->typed);
	loop_disarm(run->death);
	loop_disarm(run->retry);
	launch_kill(&run->launch, lost); /* they may not notice that the machine ends */
	run_tell_over(run);
	run->launch.silent = run->back.silent;
	/* before node 0 can tell anybody that its owner has gone */
	run_but_processes(run, but);
	launch_end(&run->launch, 0, but);
	log_debug("the way back: all processes of the machine have ended");
	client_close(&run->client);
	run->connected = false;
	run->input_room = run->input_taken = 0;
}

/* Loads the checkpoint in the way of `vmp snapshot load`. */
int run_load_kept(struct run *run, uint32_t hosts, struct problem *p)
{
	if (run_parts_check(run, p))
		return -1;
	load_kept(&run->load, run->checkpoint.kept, run->checkpoint.parts);
	run->loads = true;
	run->held = false;
	run->hosts = hosts < MAX_NODES ? (1u << hosts) - 1 : ~0u;
	return run_start_saved(run, hosts, p);
}

static int start_again(struct run *run, uint32_t hosts, struct problem *p)
{
	if (run_load_kept(run, hosts, p))
		return -1;
	log_debug("the way back: %u daemons start", hosts);
	run_connect(run);
	return 0;
}

void run_start_elsewhere(struct run *run, uint32_t hosts)
{
	struct problem p;

	run->back.why.line[0] = 0; /* nothing is lost */
	run_leave_machine(run, 0);
	if (start_again(run, hosts, &p))
		run_end(run, EXIT_VMP_FAILURE, p.line);
}

static void end_without_going_back(struct run *run, const struct problem *p)
{
	struct problem why;

	problem(&why, "%.400s; %.200s", run->back.why.line, p->line);
	run_end(run, EXIT_VMP_FAILURE, why.line);
}

/* ---- the remaining hosts of a cluster ---- */

/* Prepares the remaining hosts as before the machine's start: an ssh to each.  A host that cannot
 * be reached any more is lost too. */
static int regroup(struct run *run, uint32_t hosts, struct problem *p)
{
	uint32_t silent = run->back.silent;

	run->launch.cluster = &run->cluster;
	run->back.silent = 0;
	if (rundir_make_secret(&run->rundir, p) || cluster_regroup(&run->cluster, hosts, silent, p))
		return -1;
	log_debug("the way back: hosts %#x are prepared, of which %#x were silent", hosts, silent);
	loop_after(run->back.regrouped, REGROUP_LIMIT_S * (uint64_t)LOOP_S);
	loop_after(run->back.grace, GRACE_MS * (uint64_t)LOOP_MS);
	run_look_at_regrouped(run);
	return 0;
}

/* Returns whether the machine can go on with the hosts that are ready now, whoever has the votes of
 * the others.  Votes count here without a doubt, too: a slow host may have given its own to a
 * standby of before.  Of two hosts the other one has to be heard; so has one with a standby whose
 * connection broke.  (TRICKS: silent-hosts) */
static bool is_enough(struct run *run, bool held)
{
	static struct cluster_host lines[MAX_NODES];
	uint32_t ready = cluster_count_ready(&run->cluster, true, lines);
	struct problem p;

	return run->back.before > 2 && !run_standby_may_be_there(run) &&
	       quorum_owner(true, ready, held, run->back.before, run->back.agreed) &&
	       !run_hosts_hold(run, lines, ready, &p);
}

void run_look_at_regrouped(struct run *run)
{
	struct cluster_votes votes;
	struct gather_facts facts;

	if (!loop_is_armed(run->back.regrouped))
		return;
	votes = cluster_count_votes(&run->cluster);
	facts = (struct gather_facts){
		.is_taken = votes.taken,
		.is_undecided = votes.wait,
		.comes = cluster_waits_for(&run->cluster, false),
		.silent_comes = cluster_waits_for(&run->cluster, true),
		.is_enough = is_enough(run, votes.held),
		.is_late = !loop_is_armed(run->back.grace),
	};
	if (gather_decides(&facts))
		loop_after(run->back.regrouped, 0);
}

static void on_grace(void *context) { run_look_at_regrouped(context); }

/* Whether the standby may be alive, and take over, behind a connection that has ended.
 * (TRICKS: reset-by-cut) */
static bool standby_broke(const struct run *run)
{
	return run->standby.copied && run_standby_may_be_there(run);
}

/* Prevents that one machine becomes two.  (TRICKS: even-cut, one-vote) */
static int too_few(struct run *run, uint32_t hosts, bool held, struct problem *p)
{
	bool doubt = run->back.doubt || run->back.broke || standby_broke(run);

	if (quorum_owner(doubt, hosts, held, run->back.before, run->back.agreed))
		return 0;
	run_standby_leave(run);
	return problem(p, "only %u of its %u hosts are for this owner, so it may go on on host %s, "
		       "which stood by",
		       hosts, run->back.before, run->standby.to.host.name);
}

/* After this computer stood still, or heard nothing of its standby for as long: of more than two
 * hosts, their votes decide.  Of two, waits for a word of the standby.  If that has taken over, its
 * word ends this owner; if it still follows, the machine goes on here.  (TRICKS: proof-by-echo) */
static bool waits_for_word(struct run *run)
{
	uint64_t still_ns = run->back.still_ns;
	struct problem p;

	if (!still_ns || run->back.before > 2)
		return false;
	run->back.still_ns = run_standby_may_have_gone_on(run);
	if (!run->back.still_ns && run->standby.to.state != SENDER_OFF) {
		run->back.doubt = false;
		return false;
	}
	if (run->standby.to.state != SENDER_OFF &&
	    run_now_ns() - run->back.since_ns < REGROUP_LIMIT_S * 1000000000ull) {
		loop_after(run->back.regrouped, WORD_STEP_MS * (uint64_t)LOOP_MS);
		return true;
	}
	problem(&p, "for %.0f s nothing was heard of host %s, which stood by, so the machine may "
		"go on there",
		still_ns / 1e9, run->standby.to.host.name);
	run_standby_leave(run);
	end_without_going_back(run, &p);
	return true;
}

/* Ends this owner if a host belongs to another one, which runs the machine.  (TRICKS: one-vote) */
static bool is_taken(struct run *run)
{
	struct problem p;

	if (!cluster_count_votes(&run->cluster).taken ||
	    run_happens(run, OWNER_ON_TAKEN) != OWNER_DO_END)
		return false;
	problem(&p, "a host of the machine serves another owner, so the machine goes on there");
	run_standby_leave(run);
	end_without_going_back(run, &p);
	return true;
}

static void on_regrouped(void *context)
{
	struct run *run = context;
	struct problem missing, why, p;
	uint32_t hosts;
	bool held;

	if (run->ended || is_taken(run) || waits_for_word(run))
		return;
	run_parts_regain(run);
	if (run_parts_come(run)) {
		loop_after(run->back.regrouped, WORD_STEP_MS * (uint64_t)LOOP_MS);
		return;
	}
	if (run_happens(run, OWNER_ON_GATHERED) != OWNER_DO_LOAD)
		return;
	run->standby.cannot = 0; /* the hosts have other numbers now */
	held = cluster_count_votes(&run->cluster).held;
	hosts = cluster_keep_ready(&run->cluster, true, &missing);
	problem(&why, "%.400s%.230s", run->back.why.line, missing.line);
	run->back.why = why;
	if (too_few(run, hosts, held, &p) || run_hosts_hold(run, run->cluster.host, hosts, &p) ||
	    start_again(run, hosts, &p))
		end_without_going_back(run, &p);
}

/* This computer always remains, as long as this process lives: if host 0 is lost, another daemon
 * takes its place.  But that happens only once before the next checkpoint, since whatever ended the
 * first daemon would end each of its successors. */
static int left_of_cluster(struct run *run, uint32_t lost, uint32_t *left, struct problem *p)
{
	*left = (run->hosts & ~lost) | 1;
	if (!(lost & 1))
		return 0;
	if (run->back.first_at == run->checkpoint.taken + 1)
		return problem(p, "and it was lost before, since the last checkpoint");
	run->back.first_at = run->checkpoint.taken + 1;
	return 0;
}

/* ---- going back ---- */

static int find_left(struct run *run, uint32_t lost, uint32_t *left, struct problem *p)
{
	*left = run->hosts & ~lost;
	if (run->o->cluster && left_of_cluster(run, lost, left, p))
		return -1;
	if (!*left)
		return problem(p, "no other host is left");
	if (!checkpoint_machine(&run->checkpoint))
		return problem(p, "there is no checkpoint yet to go back to");
	if (run->o->cluster)
		return 0; /* which of them remain is not known yet */
	return run_hosts_hold(run, NULL, (uint32_t)__builtin_popcount(*left), p);
}

static void say_what_is_lost(struct run *run, uint32_t lost, const char *died)
{
	struct problem line;

	problem(&line, "host %d is lost (%.300s)", __builtin_ctz(lost),
		run->back.said.line[0] ? run->back.said.line : died);
	names_explain(&run->cluster.names, line.line, run->back.why.line,
		      sizeof run->back.why.line);
	run->back.said.line[0] = 0;
}

/* Whether the machine goes back when a host is lost.  It does not go back to a checkpoint that was
 * only taken because host 0 leaves, once it runs again: its output since then has been written. */
bool run_can_go_back(const struct run *run)
{
	return run->o->machine.checkpoint_ms || owner_has_stopped(run->life);
}

/* Returns true if the machine is going back, or ends with a line that says why it cannot.  Returns
 * false if it has no checkpoints, or has ended. */
bool run_go_back(struct run *run, const char *died)
{
	uint32_t lost = run->back.lost | launch_killed(&run->launch), left;
	struct problem p;

	if (!run_can_go_back(run) || run->ended)
		return false;
	if (run_happens(run, OWNER_ON_LOST) != OWNER_DO_GO_BACK)
		return true;
	/* no daemon has reported it: the others have ended by themselves, and only node 0 could
	 * have told us */
	if (!lost) {
		lost = 1;
		died = "nothing is heard from its daemon";
	}
	if (!run->back.since_ns) {
		run->back.since_ns = run_now_ns();
		run->back.still_ns = run_standby_may_have_gone_on(run);
	}
	say_what_is_lost(run, lost, died);
	run->back.silent &= ~lost;
	run->back.lost = 0;
	run->back.before = (uint32_t)__builtin_popcount(run->hosts);
	run->back.doubt = run_standby_may_live(run);
	run->back.broke = standby_broke(run);
	run->back.agreed = run_standby_has_orders(run);
	if (run->back.still_ns)
		run->back.doubt = true;
	if (find_left(run, lost, &left, &p)) {
		end_without_going_back(run, &p);
		return true;
	}
	log_debug("the way back: %s", run->back.why.line);
	run_leave_machine(run, lost);
	if (run->o->cluster ? regroup(run, left, &p)
			    : run_happens(run, OWNER_ON_GATHERED) == OWNER_DO_LOAD &&
				      start_again(run, (uint32_t)__builtin_popcount(left), &p))
		end_without_going_back(run, &p);
	return true;
}

/* A standby was to take over the cluster's machine, and does not. */
void run_start_again(struct run *run, const char *why)
{
	struct problem p;

	problem(&run->back.why, "%s", why);
	run->back.since_ns = run_now_ns();
	run->back.doubt = run->back.broke = false; /* it does not take over, it said, or is dead */
	run->back.silent = 0;
	if (regroup(run, run->hosts, &p))
		end_without_going_back(run, &p);
}

void run_set_checkpoints(struct run *run)
{
	run->checkpoint.interval_ms = run->o->machine.checkpoint_ms;
	run->in.keeps = run->out.holds = run->err.holds = run->o->machine.checkpoint_ms;
}

int run_make_checkpoints(struct run *run)
{
	struct checkpoint *c = &run->checkpoint;

	run->back.regrouped = loop_timer(&run->loop, on_regrouped, run);
	run->back.grace = loop_timer(&run->loop, on_grace, run);
	c->context = run;
	c->on_begin = on_checkpoint_begins;
	c->on_cut = on_checkpoint_cut;
	c->on_kept = on_checkpoint_kept;
	c->on_last = run_on_stands_still;
	c->is_in_use = run_standby_is_busy;
	c->on_trouble = on_checkpoint_trouble;
	run->keptfile = (struct keptfile){ .path = run->o->checkpoint_file,
					   .loop = run->loop,
					   .context = run,
					   .on_trouble = on_file_trouble };
	run_set_checkpoints(run);
	run->out.on_much = run->err.on_much = on_much_output;
	run->load.context = run;
	run->load.on_loaded = run_on_loaded;
	run->load.on_failed = run_on_load_failed;
	return run->back.regrouped && run->back.grace
			       && !run_parts_open(run)
		       ? checkpoint_start(c, &run->loop, run->o->machine.checkpoint_ms,
					  run->o->checkpoint_parts ? &run->holders.parts : NULL)
		       : -ENOMEM;
}
