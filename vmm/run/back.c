/* back.c - with --checkpoint: what is kept of the streams at each checkpoint, and the way back to the last one when a host is lost. */
#include "vmm/run/internal.h"

#include <stdio.h>

/* One line, on the terminal of the machine or in its log. */
void run_report_back(struct run *run)
{
	run_hide_progress(run);
	dprintf(2, "%svmp: %s: the machine went back %.1f s, to its last checkpoint, and goes on on %u host%s after %.1f s%s\n",
		run->raw ? "\r\n" : "", run->back.why.line, (run->back.since_ns - run->checkpoint.kept_cut_ns) / 1e9, run->plan.hosts,
		run->plan.hosts > 1 ? "s" : "", (run_now_ns() - run->back.since_ns) / 1e9, run->raw ? "\r" : "");
}

static void on_checkpoint_begins(void *context)
{
	struct run *run = context;

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
}

static void on_checkpoint_trouble(void *context, const char *line)
{
	struct run *run = context;

	if (run->log_fd >= 0)
		dprintf(run->log_fd, "vmp: no checkpoint: %s\n", line);
}

static void on_much_output(void *context)
{
	struct run *run = context;

	checkpoint_soon(&run->checkpoint);
}

int run_make_checkpoints(struct run *run)
{
	struct checkpoint *c = &run->checkpoint;

	if (!run->o->checkpoint_ms)
		return 0;
	c->context = run;
	c->on_begin = on_checkpoint_begins;
	c->on_cut = on_checkpoint_cut;
	c->on_kept = on_checkpoint_kept;
	c->on_trouble = on_checkpoint_trouble;
	run->in.keeps = run->out.holds = run->err.holds = true;
	run->out.on_much = run->err.on_much = on_much_output;
	run->load.context = run;
	run->load.on_loaded = run_on_loaded;
	run->load.on_failed = run_on_load_failed;
	return checkpoint_start(c, run->base, run->o->checkpoint_ms);
}

/* Nothing is left of the machine but its checkpoint, its console and its streams. */
static void leave_machine(struct run *run)
{
	checkpoint_stop(&run->checkpoint);
	stream_in_lost(&run->in);
	stream_out_lost(&run->out);
	stream_out_lost(&run->err);
	if (run->typed)
		event_del(run->typed);
	event_del(run->death);
	event_del(run->retry);
	launch_end(&run->launch, 0); /* before node 0 can tell anybody that its owner has gone */
	client_close(&run->client);
	run->connected = run->attached = false;
	run->input_room = run->input_taken = 0;
}

/* The same path as that of `vmp snapshot load`, with another source. */
static int start_again(struct run *run, uint32_t hosts, struct problem *p)
{
	load_kept(&run->load, run->checkpoint.kept);
	run->loads = true;
	run->held = false;
	run->hosts = hosts < MAX_NODES ? (1u << hosts) - 1 : ~0u;
	if (run_start_saved(run, hosts, p))
		return -1;
	run_connect(run);
	return 0;
}

/* True: the machine is on its way back. Otherwise it ends; with checkpoints, a line says why it cannot go back. */
bool run_go_back(struct run *run, const char *died)
{
	uint32_t lost = run->back.lost | launch_killed(&run->launch), left;
	struct problem p, why;

	if (!run->o->checkpoint_ms || run->ended)
		return false;
	if (!lost) { /* the others have ended by themselves: they hear nothing of it, and nobody else could have told us */
		lost = 1;
		died = "nothing is heard from its daemon";
	}
	left = run->hosts & ~lost;
	if (!run->back.since_ns)
		run->back.since_ns = run_now_ns();
	problem(&run->back.why, "host %d is lost (%.300s)", __builtin_ctz(lost), run->back.said.line[0] ? run->back.said.line : died);
	run->back.said.line[0] = 0;
	run->back.lost = 0;
	if (left && checkpoint_machine(&run->checkpoint)) {
		leave_machine(run);
		if (!start_again(run, (uint32_t)__builtin_popcount(left), &p))
			return true;
	} else {
		problem(&p, "%s", left ? "there is no checkpoint yet to go back to" : "no other host is left");
	}
	problem(&why, "%.400s; %.200s", run->back.why.line, p.line);
	run_end(run, EXIT_VMP_FAILURE, why.line);
	return true;
}
