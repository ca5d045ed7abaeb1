/* yield.c - host 0 leaves: the machine goes on on the others, with its I/O server and everything
 * else that only host 0 has.
 *
 * There is too much on host 0 to hand it over piece by piece: the devices, the control socket, the
 * leadership.  So everything moves at once, in the way in which the machine goes back after a loss
 * (go_back.c), except that nothing is lost: after the last checkpoint the machine stands still
 * until it goes on elsewhere.  If there is no checkpoint yet, a first one is taken while the
 * machine runs, so that little is left to save then.  Until the last one is complete, any failure
 * leaves the machine as it was.
 *
 * Host 0 of a cluster is this computer, with this process.  So a standby (run_standby.c) on one of
 * the others prepares the hosts before the machine stands still, and takes it over as their owner
 * when it has the last checkpoint.
 */
#include "vmm/cli/run/run_private.h"

#include <stdio.h>
#include <string.h>

static void set_asked(struct run *run, bool asked)
{
	struct machine_info info;

	run->leave_asked = asked;
	info = run_info(run, run->plan.machine.hosts);
	rundir_write_info(&run->rundir, &info);
}

static void hold_streams(struct run *run, bool hold)
{
	run->in.keeps = hold;
	stream_out_hold(&run->out, hold);
	stream_out_hold(&run->err, hold);
}

static void answer_stays(struct run *run, const char *why)
{
	struct msg_host answer = { .op = HOST_STAYS };

	client_send(&run->client, MSG_HOST, VNODE_CLI, &answer, sizeof answer, why, strlen(why));
}

void run_yield(struct run *run)
{
	const char *why = run->o->cluster ? run_standby_why_not(run) : NULL;
	enum owner_action action = why ? OWNER_DO_NOTHING : run_happens(run, OWNER_ON_ASKED);

	if (action == OWNER_DO_REFUSE)
		why = "the machine is only starting";
	if (why)
		answer_stays(run, why);
	if (action != OWNER_DO_LEAVE)
		return;
	set_asked(run, true);
	run->standby.cannot = 0; /* they may be able to now */
	if (run->o->cluster)
		run_standby_look(run);
	else
		checkpoint_last(&run->checkpoint);
}

/* From here on, input and output belong to the machine that goes on. */
void run_yield_begins(struct run *run)
{
	if (run->life == OWNER_LEAVES && !run->o->machine.checkpoint_ms)
		hold_streams(run, true);
}

static void end_yield(struct run *run)
{
	set_asked(run, false);
	if (!run->o->machine.checkpoint_ms)
		hold_streams(run, false);
}

/* Host 0 stays; everything is as before. */
void run_stays(struct run *run, enum owner_action action, const char *why)
{
	if (action == OWNER_DO_STAY_THAW)
		checkpoint_stays(&run->checkpoint);
	else if (action == OWNER_DO_STAY)
		checkpoint_not_last(&run->checkpoint);
	else
		return;
	end_yield(run);
	answer_stays(run, why);
}

void run_on_stands_still(void *context)
{
	struct run *run = context;
	enum owner_action action = run_happens(run, OWNER_ON_STILL);

	if (action == OWNER_DO_THAW)
		checkpoint_stays(&run->checkpoint);
	if (action != OWNER_DO_HAND_OVER)
		return;
	if (run->o->cluster) {
		run_standby_look(run);
		return;
	}
	if (run_happens(run, OWNER_ON_MOVE) != OWNER_DO_RELOAD)
		return;
	run->back.since_ns = run_now_ns();
	run_start_elsewhere(run, (uint32_t)__builtin_popcount(run->hosts) - 1);
}

void run_say_gone(const struct run *run)
{
	if (run->log_fd >= 0)
		dprintf(run->log_fd, "vmp: host 0 has gone: the machine stood still for %.3f s, "
			"and goes on on %u host%s\n",
			(run_now_ns() - run->checkpoint.kept_cut_ns) / 1e9, run->plan.machine.hosts,
			run->plan.machine.hosts > 1 ? "s" : "");
}

void run_yield_ends(struct run *run, enum owner_action action)
{
	if (action == OWNER_DO_SAY_GONE)
		run_say_gone(run);
	run->yielded += action == OWNER_DO_SAY_GONE;
	if (run->leave_asked)
		end_yield(run);
}
