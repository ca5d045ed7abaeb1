/* run_standby.c - another process has a copy of the last checkpoint, on another computer of the cluster, and goes on with the machine if this
 * computer is lost, or goes (vmm/cli/standby/sender.h).
 *
 * A machine of `vmp up --cluster --checkpoint` has one as soon as it is up and one of its hosts can; without checkpoints, when host 0 is to go
 * (yield.c).  What it is told next is decided in one place, next_step(), whenever something has changed.
 */
#include "vmm/cli/run/run_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/faultpoint.h"
#include "vmm/cli/standby/orders.h"

enum { AGAIN_S = 30 /* hosts that could not be one are asked again */, LINGER_S = 1 /* whoever asked reads where it is now */, END_MS = 5000, BELIEVED_MS = 1000,
       FORGOTTEN_MS = (STANDBY_SILENCE_S + 1) * 1000 /* one whose connection broke has given up, with the machine's processes before its eyes */ };

static char told[MAX_ORDERS]; /* the last orders */

static void say(const struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
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
	snprintf(name, MAX_NAME, "%s", to->state > SENDER_STARTS && run->standby.copied ? to->host.name : "");
}

static void write_info(const struct run *run, const char *elsewhere)
{
	struct machine_info info = run_info(run, run->plan.machine.hosts);

	snprintf(info.elsewhere, sizeof info.elsewhere, "%s", elsewhere);
	rundir_write_info(&run->rundir, &info);
}

const char *run_standby_why_not(const struct run *run)
{
	size_t ignored;

	if (!run->background)
		return "it is the computer where vmp was typed, whose terminal and streams are the machine's; vmp up starts one without";
	if (run->o->machine.disk && options_disk_mode(run->o->machine.disk, &ignored) == DISK_READ_WRITE)
		return "the machine writes to its disk's image there; one that was started with --disk IMAGE,snapshot can go elsewhere";
	return NULL;
}

/* --- what it shall know --------------------------------------------------------------------------------------------- */

static void print_orders(const struct run *run, const char *host, char text[MAX_ORDERS])
{
	static struct orders orders;
	const struct options *o = run->o;

	orders = (struct orders){ .machine = o->machine };
	snprintf(orders.name, sizeof orders.name, "%s", run->rundir.name);
	snprintf(orders.id, sizeof orders.id, "%s", run->cluster.id);
	snprintf(orders.host, sizeof orders.host, "%s", host);
	snprintf(orders.vendor, sizeof orders.vendor, "%s", run->cpu.vendor);
	_Static_assert((int)CPU_FEATURES_TEXT <= (int)MAX_ORDER, "room");
	cpufeatures_print(&run->cpu.features, orders.features);
	for (unsigned i = 0; i < MAX_NODES; i++)
		if (run->hosts >> i & 1)
			orders.hosts.host[orders.hosts.n++] = run->cluster.host[i];
	orders_print(&orders, text, MAX_ORDERS);
}

/* --- which host ----------------------------------------------------------------------------------------------------- */

static bool wants_one(const struct run *run)
{
	return run->background && !run->starter && run->o->cluster && !run->ended && run->yield < YIELD_LEFT &&
	       (run->o->machine.checkpoint_ms || run->yield);
}

/* The host of the one that there is, or was last; 0: it is none of the machine's any more. */
static unsigned host_of_it(const struct run *run)
{
	int host = names_find(&run->cluster.names, run->standby.to.host.name);

	return host > 0 && run->hosts >> host & 1 ? (unsigned)host : 0;
}

/* The first that runs, and has not refused. 0: there is none. */
static unsigned choose_host(const struct run *run)
{
	for (unsigned host = 1; host < MAX_NODES; host++)
		if (run->hosts >> host & 1 && !(run->standby.cannot >> host & 1) && run->cluster.far[host] &&
		    run->cluster.far[host]->state == FAR_RUNS)
			return host;
	return 0;
}

/* One whose connection has broken, on a host that is there. */
static bool one_may_be_there(const struct run *run) { return run_now_ns() < run->standby.forgotten_ns && host_of_it(run); }

static void start_one(struct run *run)
{
	static const struct timeval later = { AGAIN_S, 0 }, soon = { 1, 0 };
	static char orders[MAX_ORDERS];
	struct sender *to = &run->standby.to;
	struct problem p;
	unsigned host;

	if (one_may_be_there(run)) {
		event_add(run->standby.again, &soon);
		return;
	}
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
	event_add(run->standby.again, &later);
	problem(&p, "no other host can go on with the machine%s%s", to->why[0] ? ": " : "", to->why);
	if (run->yield)
		run_stays(run, p.line);
}

/* --- what next ------------------------------------------------------------------------------------------------------ */

enum step { STEP_NONE, STEP_END, STEP_ORDER, STEP_COPY, STEP_PREPARE, STEP_RELEASE, STEP_LAST, STEP_GO };

static enum step next_step(const struct run *run, const char *orders)
{
	const struct sender *to = &run->standby.to;

	if (!host_of_it(run) || !wants_one(run))
		return STEP_END;
	if (to->state != SENDER_IDLE || !run->attached) /* or the machine is on its way back */
		return STEP_NONE;
	if (run->yield == YIELD_NOT && to->prepared)
		return STEP_RELEASE;
	if (strcmp(orders, told))
		return STEP_ORDER;
	if (run->checkpoint.taken != run->standby.copied) /* what stands must not be replaced meanwhile */
		return run->checkpoint.pull.active ? STEP_NONE : STEP_COPY;
	if (run->yield && !to->prepared)
		return STEP_PREPARE;
	return run->yield == YIELD_STANDS ? STEP_GO : run->yield && !run->checkpoint.last ? STEP_LAST : STEP_NONE;
}

static void go(struct run *run)
{
	run->yield = YIELD_LEFT;
	event_del(run->standby.again);
	run_leave_machine(run, 0);
	sender_go(&run->standby.to);
	fault_die_at(FAULT_OWNER_DIES, 3);
}

static void do_step(struct run *run)
{
	static char orders[MAX_ORDERS];
	struct sender *to = &run->standby.to;

	print_orders(run, to->host.name, orders);
	switch (next_step(run, orders)) {
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
		if (run->yield == YIELD_STANDS)
			fault_die_at(FAULT_OWNER_DIES, 2);
		run->standby.copies = run->checkpoint.taken;
		sender_copy(to, run->checkpoint.kept, run->checkpoint.kept_cut_ns);
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
	else if (wants_one(run) && run->attached)
		start_one(run);
}

bool run_standby_is_busy(void *context)
{
	const struct run *run = context;

	return run->standby.to.state == SENDER_COPIES;
}

/* It may have a copy, and nothing is heard of it. */
bool run_standby_may_live(const struct run *run)
{
	const struct sender *to = &run->standby.to;

	return to->state != SENDER_OFF && run->standby.copied && sender_is_silent(to);
}

void run_standby_leave(struct run *run) { sender_close(&run->standby.to); }

/* Not if it may live and nobody reaches it: what is said to it now it would hear when it has gone on, and others have not.
 * (TRICKS: no-late-farewell) */
void run_tell_over(struct run *run)
{
	if (!run->back.since_ns || !run->back.doubt)
		cluster_tell_over(&run->cluster);
}

/* --- what it answers ------------------------------------------------------------------------------------------------ */

static void on_up_there(struct run *run)
{
	static const struct timeval linger = { LINGER_S, 0 };
	const char *host = run->standby.to.host.name;
	char where[sizeof ((struct machine_info *)0)->elsewhere];

	snprintf(where, sizeof where, "%s, with that computer as its first: ssh %s .cache/vmp/bin-%s/run-vmp status", host, host,
		 run->cluster.bundle.hash);
	say(run, "the machine goes on on %s", where);
	write_info(run, where);
	event_add(run->standby.again, &linger);
}

static void on_done(void *context, enum sender_state before)
{
	struct run *run = context;

	if (before == SENDER_GOES) {
		on_up_there(run);
		return;
	}
	if (before == SENDER_COPIES) {
		kept_copied(run->checkpoint.kept, true);
		run->standby.copied = run->standby.copies;
	}
	if (run->attached)
		write_info(run, "");
	run_standby_look(run);
}

static void on_over(struct run *run)
{
	struct problem p;

	problem(&p, "host %s has gone on with the machine: %s", run->standby.to.host.name, run->standby.to.why);
	run_end(run, EXIT_VMP_FAILURE, p.line);
}

static void on_failed(void *context, enum sender_state before)
{
	struct run *run = context;
	struct sender *to = &run->standby.to;
	struct problem p;

	if (run->ended)
		return;
	if (to->is_over) {
		on_over(run);
		return;
	}
	say(run, "%s does not stand by: %s", to->host.name, to->why);
	if (run->attached)
		write_info(run, "");
	run->standby.cannot |= 1u << host_of_it(run);
	problem(&p, "host %s cannot go on with the machine: %s", to->host.name, to->why);
	if (to->broke && run->standby.copies)
		run->standby.forgotten_ns = run_now_ns() + FORGOTTEN_MS * 1000000ull;
	if (before == SENDER_GOES && to->broke && sender_is_silent(to))
		run_end(run, EXIT_VMP_FAILURE, p.line); /* what it was told it may have done */
	else if (before == SENDER_GOES)
		run_start_again(run, p.line);
	else if (run->yield == YIELD_STANDS || to->state == SENDER_IDLE)
		run_stays(run, p.line);
	else
		run_standby_look(run);
}

/* --- beginning and end ---------------------------------------------------------------------------------------------- */

static void on_again(evutil_socket_t fd, short what, void *context)
{
	struct run *run = context;

	(void)fd, (void)what;
	if (run->yield == YIELD_LEFT) {
		run_end(run, 0, "");
		return;
	}
	if (!choose_host(run))
		run->standby.cannot = 0;
	run_standby_look(run);
}

int run_standby_open(struct run *run)
{
	run->standby.to = (struct sender){ .base = run->base, .log_fd = run->log_fd, .context = run, .done = on_done, .failed = on_failed };
	run->standby.again = evtimer_new(run->base, on_again, run);
	return run->standby.again ? 0 : -ENOMEM;
}

static void on_end_limit(evutil_socket_t fd, short what, void *context)
{
	struct run *run = context;

	(void)fd, (void)what;
	say(run, "%s was not told of the machine's end, and may go on with it", run->standby.to.host.name);
	sender_close(&run->standby.to);
}

static void on_moment(evutil_socket_t fd, short what, void *context) { (void)fd, (void)what, (void)context; }

/* One whose connection has just broken did not believe yet that this owner lives. */
static void tell_again(struct run *run)
{
	static const struct timeval moment = { 0, 100000 };
	uint64_t until = run_now_ns() + BELIEVED_MS * 1000000ull;

	while (one_may_be_there(run) && run_now_ns() < until && !event_base_once(run->base, -1, EV_TIMEOUT, on_moment, NULL, &moment))
		event_base_loop(run->base, EVLOOP_ONCE);
	run_tell_over(run);
}

void run_standby_end(struct run *run)
{
	static const struct timeval limit = { END_MS / 1000, 0 };
	struct sender *to = &run->standby.to;

	if (!run->standby.again)
		return;
	event_free(run->standby.again);
	run->standby.again = NULL;
	sender_end(to);
	if (to->state != SENDER_OFF)
		event_base_once(run->base, -1, EV_TIMEOUT, on_end_limit, run, &limit);
	while (to->state != SENDER_OFF)
		event_base_loop(run->base, EVLOOP_ONCE);
	tell_again(run);
}
