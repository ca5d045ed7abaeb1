/* run_standby.c - the standby: another process, on another computer of the cluster, has a copy of
 * the last checkpoint.  It takes over the machine if this computer is lost, or leaves
 * (vmm/cli/standby/sender.h).
 *
 * A machine of `vmp up --cluster --checkpoint` has a standby as soon as it is up and one of its
 * hosts can be one; without checkpoints, while host 0 is about to leave (yield.c).  Two tables
 * decide: standby_step.def what the standby is told next, whenever something has changed; and
 * owner_life.def what becomes of the machine when the standby has answered, or cannot.
 */
#include "vmm/cli/run/run_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/faultpoint.h"
#include "vmm/cli/standby/orders.h"

enum {
	AGAIN_S = 30, /* hosts that could not be a standby are asked again */
	LINGER_S = 1, /* so that clients can read where the machine is now */
	END_MS = 5000,
	ALONE_MS = 3000, /* of which it does not believe the first 500 */
};

static char told[MAX_ORDERS]; /* the last orders */

/* After this a standby whose connection broke has given up, while it sees the machine's processes:
 * it may have noticed last, by the silence, and may have run late for half of that time. */
static uint64_t forgotten_after_ns(const struct silence *silence)
{
	return (2 * silence->standby_ms + silence->looks_ms + SILENCE_LATE_MS) * 1000000ull;
}

static void say(const struct run *run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void say(const struct run *run, const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (run->log_fd >= 0)
		dprintf(run->log_fd, "vmp: %s\n", line);
}

void run_standby_name(const struct run *run, char name[MAX_NAME])
{
	const struct sender *to = &run->standby.to;

	_Static_assert((int)MAX_HOST_NAME <= (int)MAX_NAME, "room");
	snprintf(name, MAX_NAME, "%s",
		 to->state > SENDER_STARTS && run->standby.copied ? to->host.name : "");
}

static void write_info(const struct run *run, const char *elsewhere)
{
	struct machine_info info = run_info(run, run->plan.machine.hosts);

	snprintf(info.elsewhere, sizeof info.elsewhere, "%s", elsewhere);
	rundir_write_info(&run->rundir, &info);
}

const char *run_standby_why_not(const struct run *run)
{
	if (!run->background)
		return "it is the computer where vmp was typed, whose terminal and streams are the "
		       "machine's; vmp up starts one without";
	if (run->o->machine.net && strlen(run->o->machine.net) >= MAX_NET_ORDER)
		return "its --net is too long for another computer to be told";
	if (options_disk_written(&run->o->machine))
		return "the machine writes to its disk's image there; one that was started with "
		       "--disk IMAGE,snapshot can go elsewhere";
	return NULL;
}

/* ---- orders ---- */

static void print_orders(const struct run *run, const char *host, char text[MAX_ORDERS])
{
	static struct orders orders;
	const struct options *o = run->o;

	orders = (struct orders){ .machine = o->machine };
	snprintf(orders.name, sizeof orders.name, "%s", run->rundir.name);
	snprintf(orders.id, sizeof orders.id, "%s", run->cluster.id);
	snprintf(orders.votes, sizeof orders.votes, "%s", run->cluster.votes);
	snprintf(orders.host, sizeof orders.host, "%s", host);
	snprintf(orders.vendor, sizeof orders.vendor, "%s", run->cpu.vendor);
	snprintf(orders.net, sizeof orders.net, "%s", o->machine.net ? o->machine.net : "");
	snprintf(orders.parts, sizeof orders.parts, "%s", run->checkpoint.parts ? "yes" : "");
	snprintf(orders.peers, sizeof orders.peers, "%s", run->cluster.given ? "yes" : "");
	_Static_assert((int)CPU_FEATURES_TEXT <= (int)MAX_ORDER, "room");
	cpufeatures_print(&run->cpu.features, orders.features);
	for (unsigned i = 0; i < MAX_NODES; i++)
		if (run->hosts >> i & 1)
			orders.hosts.host[orders.hosts.n++] = run->cluster.host[i];
	orders_print(&orders, text, MAX_ORDERS);
}

/* ---- which host ---- */

/* What the machine writes to a disk's image is on this computer alone. */
static bool wants_one(const struct run *run)
{
	return run->background && !options_disk_written(&run->o->machine) && !run->starter &&
	       run->o->cluster && !run->ended && run->life != OWNER_AWAY &&
	       (run->o->machine.checkpoint_ms || owner_leaves(run->life) ||
		run->life == OWNER_HANDED);
}

/* Returns the host of the standby that there is, or was last; 0 if the machine does not have that
 * host any more. */
static unsigned host_of_it(const struct run *run)
{
	int host = names_find(&run->cluster.names, run->standby.to.host.name);

	return host > 0 && run->hosts >> host & 1 ? (unsigned)host : 0;
}

/* Returns the first host that runs and has not refused; 0 if there is none. */
static unsigned choose_host(const struct run *run)
{
	for (unsigned host = 1; host < MAX_NODES; host++)
		if (run->hosts >> host & 1 && !(run->standby.cannot >> host & 1) &&
		    run->cluster.far[host] && run->cluster.far[host]->state == FAR_RUNS)
			return host;
	return 0;
}

/* Returns whether a standby may be alive whose connection has broken, on a host of the machine. */
bool run_standby_may_be_there(const struct run *run)
{
	return run_now_ns() < run->standby.forgotten_ns && host_of_it(run);
}

static void start_one(struct run *run)
{
	static char orders[MAX_ORDERS];
	struct sender *to = &run->standby.to;
	struct problem p;
	unsigned host;

	if (run_standby_may_be_there(run)) {
		loop_after(run->standby.again, LOOP_S);
		return;
	}
	to->silence = silence_for(run->o->machine.checkpoint_ms);
	while ((host = choose_host(run))) {
		print_orders(run, run->cluster.names.name[host], orders);
		run->standby.copied = run->standby.copies = 0;
		if (run->checkpoint.kept)
			kept_copied(run->checkpoint.kept, false);
		if (!sender_start(to, &run->cluster.host[host], run->cluster.bundle.hash, orders)) {
			strcpy(told, orders);
			return;
		}
		say(run, "%s cannot stand by: %s", run->cluster.names.name[host], to->why);
		run->standby.cannot |= 1u << host;
	}
	loop_after(run->standby.again, AGAIN_S * (uint64_t)LOOP_S);
	problem(&p, "no other host can go on with the machine%s%s", to->why[0] ? ": " : "",
		to->why);
	run_stays(run, run_happens(run, OWNER_ON_TROUBLE), p.line);
}

/* ---- what next ---- */

static struct standby_facts facts(const struct run *run, const char *orders)
{
	const struct sender *to = &run->standby.to;

	return (struct standby_facts){
		.is_wanted = host_of_it(run) && wants_one(run),
		.is_idle = to->state == SENDER_IDLE,
		.is_there = run_is_there(run),
		.leaves = owner_leaves(run->life),
		.stands = run->life == OWNER_STANDS,
		.has_orders = !strcmp(orders, told),
		.has_copy = run->checkpoint.taken == run->standby.copied,
		.replaces = run->checkpoint.pull.active,
		.is_prepared = to->prepared,
		.stops = run->checkpoint.last,
	};
}

static void go(struct run *run)
{
	if (run_happens(run, OWNER_ON_GO) != OWNER_DO_HAND)
		return;
	loop_disarm(run->standby.again);
	run_leave_machine(run, 0);
	sender_go(&run->standby.to);
	fault_die_at(FAULT_OWNER_DIES, 3);
}

static void do_step(struct run *run)
{
	static char orders[MAX_ORDERS];
	struct sender *to = &run->standby.to;
	struct standby_facts now;

	print_orders(run, to->host.name, orders);
	now = facts(run, orders);
	switch (standby_step(&now)) {
	case STEP_NONE:
		break;
	case STEP_END:
		sender_end(to);
		break;
	case STEP_ORDER:
		strcpy(told, orders);
		sender_order(to, orders);
		break;
	case STEP_COPY:
		if (run->life == OWNER_STANDS)
			fault_die_at(FAULT_OWNER_DIES, 2);
		run->standby.copies = run->checkpoint.taken;
		sender_copy(to, run->checkpoint.kept, run->checkpoint.kept_cut_ns,
			    run->checkpoint.parts);
		break;
	case STEP_PREPARE:
		sender_prepare(to);
		break;
	case STEP_RELEASE:
		sender_release(to);
		break;
	case STEP_LAST:
		checkpoint_last(&run->checkpoint);
		break;
	case STEP_GO:
		go(run);
		break;
	}
}

void run_standby_look(struct run *run)
{
	if (run->standby.to.state != SENDER_OFF)
		do_step(run);
	else if (wants_one(run) && run_is_there(run))
		start_one(run);
}

/* Whether the standby has a copy of a checkpoint that is not the last one. */
static bool lags(const struct run *run)
{
	return run->standby.to.state != SENDER_OFF && run->standby.copied &&
	       run->standby.copied != run->checkpoint.taken;
}

bool run_standby_is_busy(void *context)
{
	struct run *run = context;

	run_parts_settle(run, lags(run));
	return run->standby.to.state == SENDER_COPIES;
}

/* Returns whether the standby may have a copy, and is silent. */
bool run_standby_may_live(const struct run *run)
{
	const struct sender *to = &run->standby.to;

	return to->state != SENDER_OFF && run->standby.copied &&
	       sender_is_silent(to, to->silence->doubt_ms);
}

bool run_standby_has_orders(const struct run *run)
{
	static char orders[MAX_ORDERS];

	print_orders(run, run->standby.to.host.name, orders);
	return run->standby.to.state != SENDER_STARTS && !strcmp(orders, told);
}

uint64_t run_standby_may_have_gone_on(const struct run *run)
{
	const struct sender *to = &run->standby.to;
	bool may_live = to->state != SENDER_OFF || run_standby_may_be_there(run);

	return may_live && run->standby.copied && sender_may_have_gone_on(to)
		       ? sender_unproved_ns(to)
		       : 0;
}

void run_standby_leave(struct run *run)
{
	run->holders.left = true;
	sender_close(&run->standby.to);
}

/* Whether vmp-host may be told that the machine is over.  Not while the standby may be alive and
 * cannot be reached: it would read the message when it has taken over already, and other hosts
 * would not have it.  (TRICKS: no-late-farewell) */
static bool may_tell_over(const struct run *run) { return !run->back.since_ns || !run->back.doubt; }

void run_tell_over(struct run *run)
{
	if (may_tell_over(run))
		cluster_tell_over(&run->cluster);
}

/* ---- answers ---- */

static void on_up_there(struct run *run)
{
	const char *host = run->standby.to.host.name;
	char where[sizeof ((struct machine_info *)0)->elsewhere];

	snprintf(where, sizeof where,
		 "%s, with that computer as its first: ssh %s .cache/vmp/bin-%s/run-vmp status",
		 host, host, run->cluster.bundle.hash);
	say(run, "the machine goes on on %s", where);
	write_info(run, where);
	loop_after(run->standby.again, LINGER_S * (uint64_t)LOOP_S);
}

static void on_done(void *context, enum sender_state before)
{
	struct run *run = context;

	if (before == SENDER_GOES) {
		if (run_happens(run, OWNER_ON_UP) == OWNER_DO_LINGER)
			on_up_there(run);
		return;
	}
	if (before == SENDER_COPIES) {
		kept_copied(run->checkpoint.kept, true);
		run->standby.copied = run->standby.copies;
	}
	if (run_is_there(run))
		write_info(run, "");
	run_standby_look(run);
}

/* The standby has refused, or there is none any more.  Remembers what of that concerns the next
 * one. */
static void remember_failure(struct run *run)
{
	struct sender *to = &run->standby.to;

	say(run, "%s does not stand by: %s", to->host.name, to->why);
	if (run_is_there(run))
		write_info(run, "");
	run->standby.cannot |= 1u << host_of_it(run);
	if (to->broke && run->standby.copies)
		run->standby.forgotten_ns = run_now_ns() + forgotten_after_ns(to->silence);
}

static void on_failed(void *context, enum sender_state before)
{
	struct run *run = context;
	struct sender *to = &run->standby.to;
	const struct standby_failure failure = {
		.was_told = before == SENDER_GOES,
		.is_over = to->is_over,
		/* A standby that is starting the machine may be late with its words. */
		.may_go_on = to->broke &&
			     sender_is_silent(to, silence_of(SILENCE_PATIENT)->doubt_ms),
		.is_there = to->state == SENDER_IDLE,
	};
	enum owner_action action;
	struct problem p;

	if (run->ended)
		return;
	if (!to->is_over)
		remember_failure(run);
	problem(&p, "host %s %s the machine: %s", to->host.name,
		to->is_over ? "has gone on with" : "cannot go on with", to->why);
	action = run_happens(run, owner_event_of(&failure));
	switch (action) {
	case OWNER_DO_END: run_end(run, EXIT_VMP_FAILURE, p.line); break;
	case OWNER_DO_START_AGAIN: run_start_again(run, p.line); break;
	case OWNER_DO_LOOK: run_standby_look(run); break;
	default: run_stays(run, action, p.line); break;
	}
}

/* ---- start and end ---- */

static void on_again(void *context)
{
	struct run *run = context;

	if (run->life == OWNER_AWAY) {
		run_end(run, 0, "");
		return;
	}
	if (!choose_host(run))
		run->standby.cannot = 0;
	run_standby_look(run);
}

int run_standby_open(struct run *run)
{
	run->standby.to = (struct sender){ .base = run->base,
					   .log_fd = run->log_fd,
					   .context = run,
					   .done = on_done,
					   .failed = on_failed };
	run->standby.again = loop_timer(&run->loop, on_again, run);
	return run->standby.again ? 0 : -ENOMEM;
}

static void on_end_limit(void *context)
{
	struct run *run = context;

	say(run, "%s was not told of the machine's end, and may go on with it",
	    run->standby.to.host.name);
	sender_close(&run->standby.to);
}

static void on_moment(void *context)
{
	(void)context;
}

static bool is_alone(const struct far *far) { return far->state != FAR_RUNS || far->alone; }

/* A standby whose connection has broken takes over when the machine's processes on its computer
 * have ended.  Therefore the machine ends only after that standby has believed that this owner is
 * alive, and has ended.  (TRICKS: neighbour-tells) */
static void tell_until_alone(struct run *run)
{
	unsigned host = run_standby_may_be_there(run) && may_tell_over(run) ? host_of_it(run) : 0;
	const struct far *far = host ? run->cluster.far[host] : NULL;
	uint64_t until = run_now_ns() + ALONE_MS * 1000000ull;

	while (far && !is_alone(far) && run_now_ns() < until) {
		run_tell_over(run);
		if (loop_once(&run->loop, 50 * LOOP_MS, on_moment, NULL))
			break;
		event_base_loop(run->base, EVLOOP_ONCE);
	}
	if (far && !is_alone(far))
		say(run, "%s was not told of the machine's end, and may go on with it",
		    run->standby.to.host.name);
}

void run_standby_end(struct run *run)
{
	struct sender *to = &run->standby.to;

	if (!run->standby.again)
		return;
	loop_remove(run->standby.again);
	run->standby.again = NULL;
	sender_end(to);
	if (to->state != SENDER_OFF)
		loop_once(&run->loop, END_MS * (uint64_t)LOOP_MS, on_end_limit, run);
	while (to->state != SENDER_OFF)
		event_base_loop(run->base, EVLOOP_ONCE);
	tell_until_alone(run);
}
