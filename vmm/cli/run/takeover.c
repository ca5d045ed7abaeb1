/* takeover.c - `vmp standby`, which a machine's owner starts by ssh on another host (run_standby.c;
 * vmm/cli/standby/sender.h describes the owner's side).  It keeps a copy of the last checkpoint,
 * and becomes the machine's owner when it is told to, or when the owner is lost.
 *
 * It is the keeper of `vmp up` with another start: the keeper's command line is replaced by orders,
 * and the machine comes as a checkpoint, which is loaded as in go_back.c.
 */
#include "vmm/cli/run/takeover_private.h"

#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "vmm/cli/run/quorum.h"

/* GONE_LOOKS: so many in a row, since a neighbour's message may be slower than the ends of
 * processes */
enum { LOOK_MS = 50, LOST_MS = 500, GONE_LOOKS = 6 };
/* CUT_GRACE_MS: an ssh to a host that can be reached logs in within that time, unless the host is
 * very busy */
enum { ASK_MS = 50, CUT_GRACE_MS = 5000 };

void takeover_say(struct takeover *t, const char *format, ...)
{
	va_list args;

	if (t->to < 0)
		return;
	va_start(args, format);
	vdprintf(t->to, format, args);
	va_end(args);
}

enum standby_action takeover_happens(struct run *run, enum standby_event event)
{
	struct takeover *t = run->takeover;
	enum standby_state before = t->life;
	enum standby_action action;

	if (run->ended)
		return STANDBY_DO_NOTHING;
	action = standby_life(&t->life, event);
	if (action == STANDBY_ACTION_COUNT)
		log_warn("the standby's event %s cannot come in state %s",
			 standby_event_name(event), standby_state_name(before));
	else if (t->life != before)
		log_debug("the standby: %s, %s, %s", standby_state_name(before),
			  standby_event_name(event), standby_state_name(t->life));
	return action;
}

/* ---- the other hosts ---- */

/* Prints the cluster file for this computer: its own line comes first, and the owner's last, since
 * it may come back one day. */
static int print_cluster(struct takeover *t, char text[MAX_CLUSTER_BYTES], struct problem *p)
{
	static struct cluster_file file;
	struct cluster_host owner;
	char line[CLUSTER_LINE];
	size_t n = 0;

	file = t->orders.hosts;
	if (cluster_file_make_first(&file, t->orders.host, t->owner))
		return problem(p, "the owner's computer has no name here that could be a host's: "
			       "%s",
			       t->owner);
	owner = file.host[1];
	memmove(&file.host[1], &file.host[2], (file.n - 2) * sizeof file.host[0]);
	file.host[file.n - 1] = owner;
	for (uint32_t i = 0; i < file.n && n < MAX_CLUSTER_BYTES; i++) {
		cluster_file_print_line(&file.host[i], line);
		n += (size_t)snprintf(text + n, MAX_CLUSTER_BYTES - n, "%s\n", line);
	}
	return n < MAX_CLUSTER_BYTES ? 0 : problem(p, "the hosts' lines are too long");
}

/* Opens the cluster of this computer's file; or of its text, if the hosts are peers. */
static int open_cluster(struct run *run, struct problem *p)
{
	static char text[MAX_CLUSTER_BYTES];
	struct takeover *t = run->takeover;
	FILE *out;

	if (print_cluster(t, text, p))
		return -1;
	if (*t->orders.peers)
		return peers_use_rsh_of_here(p) ||
		       cluster_open_peers(&run->cluster, text, -1, &run->cpu, true, p) ? -1 : 0;
	out = fopen(t->cluster, "we");
	if (out)
		fputs(text, out);
	return !out || fclose(out)
		? problem(p, "cannot write %s: %s", t->cluster, strerror(errno))
		: cluster_open(&run->cluster, t->cluster, &run->cpu, true, p);
}

void takeover_release(struct run *run)
{
	launch_end(&run->launch, 0, NULL);
	cluster_close(&run->cluster);
	memset(&run->cluster, 0, sizeof run->cluster);
	rundir_release(&run->rundir);
}

static int prepare(struct run *run, struct problem *p)
{
	struct takeover *t = run->takeover;
	/* An owner that was killed keeps the name until it has died, if it is on this computer. */
	unsigned wait_ms = standby_has_lost(t->life) ? RUNDIR_DIES_MS : RUNDIR_TESTED_MS;

	run->loaded = t->options;
	run->loaded.machine.hosts = t->orders.hosts.n - 1;
	run->loaded.cluster = *t->orders.peers ? run->cluster.path : t->cluster;
	if (rundir_claim(&run->rundir, t->orders.name, wait_ms, p) &&
	    rundir_claim(&run->rundir, NULL, wait_ms, p))
		return -1;
	run->loaded.name = run->rundir.name;
	snprintf(t->cluster, sizeof t->cluster, "%s/cluster", run->rundir.path);
	strcpy(run->cluster.votes, t->orders.votes); /* which the owner still has */
	if (open_cluster(run, p) || run_begin_cluster(run, p)) {
		takeover_release(run);
		return -1;
	}
	return 0;
}

/* All hosts are ready, or have failed, or are not waited for any more. */
static void on_settled(struct run *run)
{
	struct takeover *t = run->takeover;
	uint32_t wanted = run->loaded.machine.hosts;
	struct problem missing, p;

	run->cluster.preparing = false;
	run->loaded.machine.hosts = cluster_keep_ready(&run->cluster, false, &missing);
	switch (takeover_happens(run, run->loaded.machine.hosts < wanted ? STANDBY_ON_SOME :
							   STANDBY_ON_ALL)) {
	case STANDBY_DO_COUNT:
		problem(&p, "%.400s%.230s", run->back.why.line, missing.line);
		run->back.why = p;
		break;
	case STANDBY_DO_SAY_MISSING:
		takeover_say(t, "unprepared it cannot reach %s\n",
			     missing.line + strlen(", and so is "));
		takeover_release(run);
		break;
	case STANDBY_DO_SAY_PREPARED:
		takeover_say(t, "prepared\n");
		break;
	default:
		break;
	}
}

/* Begins to prepare the other hosts.  Returns 0, or -1 if it cannot.  Then the owner has its
 * answer, or, without an owner, this standby has ended. */
int takeover_prepare(struct run *run)
{
	struct problem p;

	if (!prepare(run, &p))
		return 0;
	if (takeover_happens(run, STANDBY_ON_CANNOT) == STANDBY_DO_REFUSE)
		takeover_say(run->takeover, "unprepared %s\n", p.line);
	else
		run_end(run, EXIT_VMP_FAILURE, p.line);
	return -1;
}

/* ---- the owner is lost ---- */

/* A neighbour says that the owner is alive, and has ended the machine here; so nobody has to take
 * over.  Two cases are not meant: an owner that can say so itself, and one that was lost just then,
 * perhaps while it ended everything to start it again.  (TRICKS: neighbour-tells) */
void takeover_on_word(evutil_socket_t fd, short what, void *context)
{
	struct run *run = context;
	struct takeover *t = run->takeover;
	uint64_t now = run_now_ns();

	(void)what;
	if (!presence_heard(fd))
		return;
	bool late = standby_has_lost(t->life)
			    ? now - run->back.since_ns > LOST_MS * 1000000ull
			    : now - t->hearing.heard_ns > t->times->doubt_ms * 1000000ull;
	if (late && takeover_happens(run, STANDBY_ON_WORD) == STANDBY_DO_END)
		run_end(run, 0, "");
}

/* Checks whether the machine's processes on this computer have ended.  They do when their owner
 * does, or when they have heard nothing from the others for a while.  (TRICKS: ask-presence) */
static void on_look(evutil_socket_t fd, short what, void *context)
{
	static const struct timeval moment = { 0, LOOK_MS * 1000 };
	struct run *run = context;
	struct takeover *t = run->takeover;
	char present[MAX_PRESENCE];
	struct problem p;

	(void)fd, (void)what;
	presence_name(present, t->orders.id, t->orders.host);
	t->gone_looks = presence_is_held(present) ? 0 : t->gone_looks + 1;
	bool gone = t->gone_looks >= GONE_LOOKS;
	if (gone && t->word) /* read messages from before their end */
		takeover_on_word(event_get_fd(t->word), 0, run);
	if (run->ended)
		return;
	if (gone) {
		takeover_happens(run, STANDBY_ON_GONE);
	} else if (run_now_ns() - run->back.since_ns > t->times->looks_ms * 1000000ull) {
		problem(&p, "%s, but its machine runs on here: another one shall stand by",
			run->back.why.line);
		if (takeover_happens(run, STANDBY_ON_HELD) == STANDBY_DO_FAIL)
			run_end(run, EXIT_VMP_FAILURE, p.line);
	} else {
		event_add(t->look, &moment);
	}
}

static void on_lost(struct run *run, enum standby_event event, const char *why)
{
	struct takeover *t = run->takeover;
	struct problem p;

	if (run->ended || !standby_has_owner(t->life))
		return;
	bufferevent_disable(t->from, EV_READ);
	event_del(t->silence);
	run->back.since_ns = run_now_ns();
	problem(&run->back.why, "host 0 (%s) is lost (%s)", t->owner, why);
	switch (takeover_happens(run,
				 checkpoint_machine(&run->checkpoint) ? event : STANDBY_ON_BARE)) {
	case STANDBY_DO_FAIL:
		problem(&p, "%s, and no checkpoint had come yet", run->back.why.line);
		run_end(run, EXIT_VMP_FAILURE, p.line);
		break;
	case STANDBY_DO_RELEASE_PREPARE_LOOK:
		takeover_release(run);
		/* fall through */
	case STANDBY_DO_PREPARE_LOOK:
		if (takeover_prepare(run))
			break;
		/* fall through */
	case STANDBY_DO_LOOK:
		on_look(-1, 0, run);
		break;
	default:
		break;
	}
}

static struct timeval timeval_of(uint64_t us)
{
	return (struct timeval){ (time_t)(us / 1000000), (suseconds_t)(us % 1000000) };
}

static void on_silence(evutil_socket_t fd, short what, void *context)
{
	struct run *run = context;
	struct takeover *t = run->takeover;
	uint64_t silent_us = hearing_silent_ns(&t->hearing, run_now_ns()) / 1000;

	(void)fd, (void)what;
	if (silent_us < t->times->standby_ms * 1000ull) { /* (TRICKS: own-lateness) */
		const struct timeval rest = timeval_of(t->times->standby_ms * 1000ull - silent_us);

		event_add(t->silence, &rest);
		return;
	}
	t->silent = true;
	on_lost(run, STANDBY_ON_SILENT, "nothing was heard of it for a while");
}

static void on_alive(evutil_socket_t fd, short what, void *context)
{
	struct takeover *t = context;

	(void)fd, (void)what;
	hearing_ticks(&t->hearing, run_now_ns());
	takeover_say(t, "alive\n");
}

/* A connection that ends after a silence may have been ended by this computer's sshd, which heard
 * nothing either (its ClientAliveInterval). */
static void on_end(struct bufferevent *from, short what, void *context)
{
	struct run *run = context;
	struct takeover *t = run->takeover;

	(void)from, (void)what;
	if (!standby_has_owner(t->life))
		return;
	t->silent = run_now_ns() - t->hearing.heard_ns > t->times->doubt_ms * 1000000ull;
	on_lost(run, t->silent ? STANDBY_ON_SILENT : STANDBY_ON_LOST,
		"its connection to the standby ended");
}

/* ---- standing by ---- */

/* Finds the address from which ssh has connected. */
static void find_owner(struct takeover *t)
{
	const char *connection = getenv("SSH_CONNECTION");

	if (!connection || sscanf(connection, "%63s", t->owner) != 1)
		strcpy(t->owner, "owner");
}

void takeover_hears(struct run *run)
{
	const struct timeval limit = timeval_of(run->takeover->times->standby_ms * 1000ull);

	event_add(run->takeover->silence, &limit);
	hearing_hears(&run->takeover->hearing, run_now_ns());
}

int takeover_keep_times(struct run *run, const struct silence *times)
{
	const struct timeval often = timeval_of(times->alive_ms * 1000ull);

	run->takeover->times = times;
	hearing_begin(&run->takeover->hearing, times->alive_ms * 1000000ull, run_now_ns());
	takeover_hears(run);
	return event_add(run->takeover->alive, &often);
}

static void on_ask(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what, (void)context; /* look_at_votes() follows */
}

/* Detaches the standard streams: the machine's own streams are as with `vmp up`. */
static int take_streams(struct run *run, struct problem *p)
{
	struct takeover *t = run->takeover;
	int in = fcntl(0, F_DUPFD_CLOEXEC, 3), null = open("/dev/null", O_RDWR | O_CLOEXEC);

	t->to = fcntl(1, F_DUPFD_CLOEXEC, 3);
	if (in < 0 || t->to < 0 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		return problem(p, "vmp starts its standby by itself, through ssh");
	close(null);
	fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
	t->from = bufferevent_socket_new(run->base, in, BEV_OPT_CLOSE_ON_FREE);
	t->silence = evtimer_new(run->base, on_silence, run);
	t->look = evtimer_new(run->base, on_look, run);
	t->alive = event_new(run->base, -1, EV_PERSIST, on_alive, t);
	t->ask = event_new(run->base, -1, EV_PERSIST, on_ask, t);
	if (!t->from || !t->silence || !t->look || !t->alive || !t->ask ||
	    takeover_keep_times(run, silence_of(SILENCE_PATIENT)))
		return problem(p, "no memory");
	bufferevent_setcb(t->from, takeover_on_bytes, NULL, on_end, run);
	return bufferevent_enable(t->from, EV_READ) ? problem(p, "cannot read what its owner says")
						    : 0;
}

/* ---- votes ---- */

/* All hosts have given their votes, or have had time to.  The owner may be alive: a network cut may
 * have ended the connection to it, too, and one that has told this standby to go on starts the
 * machine again if the network is cut before it hears "up".  (TRICKS: even-cut) */
static void count_votes(struct run *run, bool held)
{
	struct takeover *t = run->takeover;
	struct problem missing, p;
	uint32_t votes = cluster_keep_ready(&run->cluster, false, &missing);
	bool enough = run->cluster.vote_here == VOTE_GIVEN &&
		      quorum_standby(votes, held, t->orders.hosts.n);

	run->loaded.machine.hosts = votes;
	problem(&p, "%.400s%.230s", run->back.why.line, missing.line);
	run->back.why = p;
	switch (takeover_happens(run, enough ? STANDBY_ON_VOTES : STANDBY_ON_NO_VOTES)) {
	case STANDBY_DO_SAY_OVER:
		takeover_say(t, "over %s\n", run->back.why.line);
		break;
	case STANDBY_DO_FAIL:
		problem(&p, "%.600s; only %u of its %u hosts are for this one, so it may go on "
			"there",
			run->back.why.line, votes, t->orders.hosts.n);
		run_end(run, EXIT_VMP_FAILURE, p.line);
		break;
	default:
		break;
	}
	t->voted = enough;
	if (enough)
		cluster_runs(&run->cluster);
}

/* Whether an owner that is alive has noticed by now that it is cut off from this standby.  Of two
 * hosts, either one goes on, whatever it knows.  (TRICKS: reset-by-cut) */
static bool owner_must_know(const struct takeover *t)
{
	return t->life == STANDBY_IS_TOLD || t->orders.hosts.n <= 2 ||
	       run_now_ns() - t->hearing.heard_ns > silence_gone_on_ms(t->times) * 1000000ull;
}

/* Asks each host that is prepared whether it belongs to another owner.  A host whose owner is lost
 * does not any more when its processes have ended, which may be some time after those here.
 * (TRICKS: one-vote) */
static void look_at_votes(struct run *run)
{
	static const struct timeval often = { 0, ASK_MS * 1000 };
	struct takeover *t = run->takeover;
	struct cluster_votes votes;

	if (!t->asks_since_ns) {
		t->asks_since_ns = run_now_ns();
		cluster_ask_votes(&run->cluster);
		event_add(t->ask, &often);
	}
	if (!owner_must_know(t))
		return;
	votes = cluster_count_votes(&run->cluster);
	if (!votes.wait || run_now_ns() - t->asks_since_ns > t->times->looks_ms * 1000000ull)
		count_votes(run, votes.held);
}

/* Whether all hosts are ready or have failed.  An ssh to a host beyond a cut hangs for half a
 * minute: those that are not ready after a while are not waited for if the others are enough,
 * whoever has the votes of those. */
static bool has_gathered(struct run *run)
{
	static struct cluster_host ready[MAX_NODES];
	const struct takeover *t = run->takeover;

	if (cluster_settled(&run->cluster))
		return true;
	return standby_has_lost(t->life) && t->silent &&
	       run_now_ns() - run->back.since_ns > CUT_GRACE_MS * 1000000ull &&
	       quorum_standby(cluster_count_ready(&run->cluster, false, ready), false,
			      t->orders.hosts.n);
}

int run_stand_by(struct run *run, struct problem *p)
{
	struct takeover *t = run->takeover = calloc(1, sizeof *t);

	if (!t)
		return problem(p, "no memory");
	t->reader = (struct record_reader){ .context = run, .on_record = takeover_on_record };
	setsid();
	signal(SIGHUP, SIG_IGN);
	find_owner(t);
	if (take_streams(run, p))
		return -1;
	while (!run->ended && !t->voted) {
		event_base_loop(run->base, EVLOOP_ONCE);
		if (standby_is_preparing(t->life) && has_gathered(run))
			on_settled(run);
		if (standby_asks(t->life))
			look_at_votes(run);
	}
	event_del(t->silence);
	event_del(t->ask);
	bufferevent_disable(t->from, EV_READ);
	return 0;
}

/* ---- taking over ---- */

/* Returns the log's path, ${XDG_STATE_HOME:-~/.local/state}/vmp/NAME.log: nobody reads this
 * process's output any more. */
static const char *log_path(const struct run *run, char path[4096])
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	size_t n = (size_t)(state && *state == '/' ? snprintf(path, 4096, "%s/vmp", state)
						   : snprintf(path, 4096, "%s/.local/state/vmp",
							      home ? home : ""));

	for (char *slash = path; n < 4000 && (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	mkdir(path, 0700);
	snprintf(path + n, n < 4096 ? 4096 - n : 0, "/%s.log", run->rundir.name);
	return path;
}

static int open_log(struct run *run, struct problem *p)
{
	static char path[4096];

	run->loaded.log = log_path(run, path);
	if (!run_open_log(run, p))
		return dup2(run->log_fd, 2) < 0 ? problem(p, "cannot write the log %s", path) : 0;
	run->loaded.log = NULL; /* then without a log */
	run->loaded.machine.verbose = false;
	return run_open_log(run, p);
}

int run_take_over(struct run *run, struct problem *p)
{
	const struct saved_machine *machine = checkpoint_machine(&run->checkpoint);
	struct options *o = &run->loaded;

	o->machine.cpus = machine->was.cpus;
	for (unsigned i = 0; i < saved_disks(machine); i++)
		if (!saved_disk(&machine->disk[i], run->disk[i], sizeof run->disk[i]))
			return problem(p, "the path of its disk image is too long");
	if (machine->folder.path[0] &&
	    saved_choose_folder(machine, machine->folder.path, machine->folder.read_only, true,
				run->live, sizeof run->live, p))
		return -1;
	saved_devices(machine, &o->machine, run->disk, run->live);
	if (open_log(run, p) || checks_before_load(o, p) ||
	    run_hosts_hold(run, run->cluster.host, o->machine.hosts, p))
		return -1;
	if (run_parts_adopt(run, run->takeover->places.number, run->takeover->places.text, p))
		return -1;
	run->cluster.log_fd = run->standby.to.log_fd = run->log_fd;
	run_set_checkpoints(run);
	dprintf(run->log_fd, "vmp: %s: this computer takes over\n",
		standby_has_lost(run->takeover->life) ? run->back.why.line
						      : "the computer before goes");
	return run_load_kept(run, o->machine.hosts, p);
}

static void forget_owner(struct takeover *t)
{
	struct event *events[] = { t->silence, t->look, t->alive, t->ask };
	char present[MAX_PRESENCE];

	if (t->from)
		bufferevent_free(t->from);
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (events[i])
			event_free(events[i]);
	if (t->word) {
		presence_name(present, t->orders.id, t->orders.host);
		presence_unlisten(event_get_fd(t->word), present);
		event_free(t->word);
	}
	if (t->to >= 0)
		close(t->to);
	t->from = NULL;
	t->silence = t->look = t->alive = t->word = t->ask = NULL;
	t->to = -1;
}

void run_has_taken_over(struct run *run)
{
	if (!run->takeover || run->takeover->to < 0)
		return;
	if (run->takeover->life == STANDBY_IS_TOLD)
		run_say_gone(run);
	takeover_say(run->takeover, "up\n");
	forget_owner(run->takeover);
	run_reserve(run);
}

void run_takeover_ends(struct run *run, const char *why)
{
	if (!run->takeover)
		return;
	if (run->takeover->life == STANDBY_IS_TOLD && *why)
		takeover_say(run->takeover, "failed %s\n", why);
	forget_owner(run->takeover);
	free(run->takeover);
	run->takeover = NULL;
}
