/* yield.c - host 0 goes: the machine goes on on the others, with its I/O server and what else only host 0 has.
 *
 * Too much is only there to be handed over piece by piece: the devices, the control socket, who leads.  So all goes over at once, on
 * the way that the machine would go back by (go_back.c), but that nothing is lost on it: the last checkpoint is taken at a standstill
 * which ends elsewhere.  A first one, if none stands, is taken while the machine runs, so that little is left to be saved then.
 * Until all is kept, whatever fails leaves the machine as it was.
 *
 * Of a cluster host 0 is this computer, with this process.  So a standby (standby.c) on one of the others has got the hosts ready before
 * the machine stands still, and goes on with it as their owner when it has the last checkpoint.
 */
#include "vmm/cli/run/run_private.h"

#include <stdio.h>
#include <string.h>

static void set_yield(struct run *run, int yield)
{
	struct machine_info info;

	run->yield = yield;
	info = run_info(run, run->plan.machine.hosts);
	rundir_write_info(&run->rundir, &info);
}

static void hold_streams(struct run *run, bool hold)
{
	run->in.keeps = hold;
	stream_out_hold(&run->out, hold);
	stream_out_hold(&run->err, hold);
}

void run_yield(struct run *run)
{
	const char *why = run->o->cluster ? run_standby_why_not(run) : NULL;

	if (why) {
		run_stays(run, why);
		return;
	}
	set_yield(run, YIELD_WANTED);
	run->standby.cannot = 0; /* what they lacked may be there now */
	if (run->o->cluster)
		run_standby_look(run);
	else
		checkpoint_last(&run->checkpoint);
}

/* From here on what goes in and out belongs to the machine that goes on. */
void run_yield_begins(struct run *run)
{
	if (run->yield == YIELD_WANTED && !run->o->machine.checkpoint_ms)
		hold_streams(run, true);
}

static void end_yield(struct run *run)
{
	run->yielded += run->yield == YIELD_LEFT;
	set_yield(run, YIELD_NOT);
	if (!run->o->machine.checkpoint_ms)
		hold_streams(run, false);
}

/* All is as before. */
void run_stays(struct run *run, const char *why)
{
	struct msg_host answer = { .op = HOST_STAYS };

	if (run->yield == YIELD_STANDS)
		checkpoint_stays(&run->checkpoint);
	if (run->yield)
		end_yield(run);
	client_send(&run->client, MSG_HOST, VNODE_CLI, &answer, sizeof answer, why, strlen(why));
}

void run_on_stands_still(void *context)
{
	struct run *run = context;

	if (run->yield != YIELD_WANTED || run->ended)
		return;
	run->yield = YIELD_STANDS;
	if (run->o->cluster) {
		run_standby_look(run);
		return;
	}
	run->yield = YIELD_LEFT;
	run->back.since_ns = run_now_ns();
	run_start_elsewhere(run, (uint32_t)__builtin_popcount(run->hosts) - 1);
}

void run_say_gone(const struct run *run)
{
	if (run->log_fd >= 0)
		dprintf(run->log_fd, "vmp: host 0 has gone: the machine stood still for %.3f s, and goes on on %u host%s\n",
			(run_now_ns() - run->checkpoint.kept_cut_ns) / 1e9, run->plan.machine.hosts, run->plan.machine.hosts > 1 ? "s" : "");
}

void run_yield_ends(struct run *run)
{
	if (run->yield == YIELD_LEFT)
		run_say_gone(run);
	if (run->yield)
		end_yield(run);
}
