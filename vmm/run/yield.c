/* yield.c - host 0 goes: the machine goes on on the others, with its I/O server and what else only host 0 has.
 *
 * Too much is only there to be handed over piece by piece: the devices, the control socket, who leads.  So all goes over at once, on
 * the way that the machine would go back by (back.c), but that nothing is lost on it: the last checkpoint is taken at a standstill
 * which ends elsewhere.  A first one, if none stands, is taken while the machine runs, so that little is left to be saved then.
 * Until all is in this process's memory, whatever fails leaves the machine as it was.
 */
#include "vmm/run/internal.h"

#include <stdio.h>
#include <string.h>

static void write_info(struct run *run, bool yields)
{
	struct machine_info info = run_info(run, run->plan.hosts);

	info.yields = yields;
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
	if (run->o->cluster) {
		run_stays(run, "it is the computer where vmp was typed, whose console and disk are the machine's; it ends by vmp down, and "
			       "vmp snapshot save and load take it to another");
		return;
	}
	run->yield.wanted = true;
	write_info(run, true);
	checkpoint_last(&run->checkpoint);
}

/* From here on what goes in and out belongs to the machine that goes on. */
void run_yield_begins(struct run *run)
{
	if (run->yield.wanted && !run->o->checkpoint_ms)
		hold_streams(run, true);
}

/* All is as before. */
void run_stays(struct run *run, const char *why)
{
	struct msg_host answer = { .op = HOST_STAYS };

	if (run->yield.wanted) {
		write_info(run, false);
		if (!run->o->checkpoint_ms)
			hold_streams(run, false);
	}
	run->yield.wanted = false;
	client_send(&run->client, MSG_HOST, VNODE_CLI, &answer, sizeof answer, why, strlen(why));
}

void run_on_stands_still(void *context)
{
	struct run *run = context;

	if (!run->yield.wanted || run->ended)
		return;
	run->yield.under_way = true;
	run->back.since_ns = run_now_ns();
	run_start_elsewhere(run, (uint32_t)__builtin_popcount(run->hosts) - 1);
}

void run_has_yielded(struct run *run)
{
	if (run->log_fd >= 0)
		dprintf(run->log_fd, "vmp: host 0 has gone: the machine stood still for %.3f s, and goes on on %u host%s\n",
			(run_now_ns() - run->checkpoint.kept_cut_ns) / 1e9, run->plan.hosts, run->plan.hosts > 1 ? "s" : "");
	run->yield.wanted = run->yield.under_way = false;
	write_info(run, false);
	if (!run->o->checkpoint_ms)
		hold_streams(run, false);
}
