/* launch.c - see launch.h. */
#include "vmm/cli/run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/killed.h"
#include "base/log.h"
#include "vmm/cli/cluster/cluster.h"
#include "vmm/shared/reaper.h"

/* LAUNCH_TOLD: a loose daemon's end was reported; it is no status of waitpid() */
enum { MAX_ARGUMENTS = 64, LAUNCH_TOLD = -1 };

/* Runs in the child; nothing here may fail silently. */
static void become_node(const struct launch_plan *plan, char *program, char **arguments,
			pid_t parent)
{
	signal(SIGPIPE, SIG_DFL);
	/* The terminal's Ctrl-C is for `vmp` alone, which then ends the machine in order.  A
	 * process group, and not a session: if the host's scheduler divides the processors between
	 * sessions, no daemon would get priority over another host's VM processes. */
	setpgid(0, 0);
	/* The daemon arranges an orderly end instead as soon as it can. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_VMP_FAILURE);
	/* stdin and stdout are the command's streams.  A daemon must not keep a pipe open that
	 * others wait for.  What it writes to stderr, a sanitizer's report for example, belongs in
	 * the log. */
	int null = open("/dev/null", O_RDWR);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		_exit(EXIT_VMP_FAILURE);
	if (plan->log_fd > 2)
		dup2(plan->log_fd, 2);
	fcntl(plan->log_fd, F_SETFD, 0);
	beside_exec(program, arguments);
	dprintf(2, "vmp: cannot run %s: %s; build it with make\n", program, strerror(errno));
	_exit(EXIT_VMP_FAILURE);
}

/* ---- vmp-node's command line ---- */

struct words {
	char *word[MAX_ARGUMENTS + 1];
	int n;
	char text[2048];
	size_t bytes;
	struct machine machine; /* as this host's daemon gets it */
	struct machine_words described;
};

static void add(struct words *w, const char *word)
{
	bug_on(w->n == MAX_ARGUMENTS);
	w->word[w->n++] = (char *)word;
	w->word[w->n] = NULL;
}

static void add_text(struct words *w, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void add_text(struct words *w, const char *name, const char *format, ...)
{
	char *at = w->text + w->bytes;
	va_list args;

	va_start(args, format);
	w->bytes += (size_t)vsnprintf(at, sizeof w->text - w->bytes, format, args) + 1;
	va_end(args);
	bug_on(w->bytes >= sizeof w->text);
	add(w, name);
	add(w, at);
}

static void add_machine(struct words *w, const struct launch_plan *plan, uint32_t node)
{
	const struct cluster_host *line = plan->cluster ? &plan->cluster->host[node] : NULL;
	bool is_far = line && node;
	char features[CPU_FEATURES_TEXT];

	if (!is_far)
		add(w, "--dir"), add(w, plan->rundir);
	add_text(w, "--node", "%u", node);
	add_text(w, "--log-fd", "%d", is_far ? 2 : plan->log_fd);
	cpufeatures_print(plan->features, features);
	add_text(w, "--features", "%s", features);
	w->machine = plan->machine;
	if (line && line->memory_mib)
		w->machine.host_mem_mib = line->memory_mib;
	machine_words(&w->machine, MACHINE_NODE | (node ? 0 : MACHINE_NODE0), &w->described);
	for (unsigned i = 0; i < w->described.n; i++)
		add(w, w->described.word[i]);
}

static void add_cluster(struct words *w, const struct launch_plan *plan, uint32_t node)
{
	const struct cluster_host *line = &plan->cluster->host[node];
	char places[4 * MAX_CPUS] = "";
	size_t n = 0;

	for (uint32_t cpu = 0; cpu < plan->machine.cpus; cpu++)
		n += (size_t)snprintf(places + n, sizeof places - n, "%s%u", cpu ? "," : "",
				      plan->place[cpu]);
	add_text(w, "--place", "%s", places);
	add(w, "--cluster"), add(w, line->name);
	for (uint32_t i = 0; i < line->n_phoenix; i++)
		add(w, "--phoenix"), add(w, line->phoenix[i]);
}

/* Adds what node 0 alone needs, since it loads the guest and has the devices. */
static void add_guest(struct words *w, const struct launch_plan *plan)
{
	if (!plan->machine.restore) {
		add(w, "--kernel"), add(w, plan->kernel);
		add(w, "--initrd"), add(w, plan->image);
		add(w, "--initrd"), add(w, plan->appended);
	}
	add(w, "--cmdline"), add(w, plan->command_line);
}

/* ---- starting ---- */

static pid_t start_here(const struct launch_plan *plan, struct words *w, struct problem *p)
{
	pid_t parent = getpid(), pid;
	char program[4096];

	if (beside_path("vmp-node", program, sizeof program))
		return problem(p, "cannot find vmp-node beside this program");
	if (access(program, X_OK))
		return problem(p, "cannot run %s: %s; build it with make", program,
			       strerror(errno));
	w->word[0] = program;
	pid = fork();
	if (pid < 0)
		return problem(p, "cannot start a node daemon: %s; too many processes?",
			       strerror(errno));
	if (pid == 0)
		become_node(plan, program, w->word, parent);
	return pid;
}

/* `hosts`: the hosts of the machine that it joins, or 0. */
static pid_t start_node(const struct launch_plan *plan, uint32_t node, uint32_t hosts,
			struct problem *p)
{
	struct words w = { 0 };

	add(&w, "vmp-node");
	add_machine(&w, plan, node);
	if (hosts)
		add_text(&w, "--join", "%u", hosts);
	if (plan->cluster)
		add_cluster(&w, plan, node);
	if (node == 0)
		add_guest(&w, plan);
	if (plan->cluster && node)
		return cluster_go(plan->cluster, node, w.word + 1, p);
	return start_here(plan, &w, p);
}

int launch_start(struct launch *launch, const struct launch_plan *plan, struct problem *p)
{
	memset(launch, 0, sizeof *launch);
	launch->cluster = plan->cluster;
	killed_remember();
	if (reaper_become())
		return problem(p, "cannot become the reaper of the machine's processes: %s",
			       strerror(errno));
	for (uint32_t node = 0; node < plan->machine.hosts; node++) {
		pid_t pid = start_node(plan, node, 0, p);

		if (pid < 0) {
			launch_end(launch, 0, NULL);
			return -1;
		}
		launch->node[launch->n_nodes++] = pid;
	}
	return 0;
}

int launch_add(struct launch *launch, const struct launch_plan *plan, uint32_t node, uint32_t hosts,
	       struct problem *p)
{
	pid_t pid = start_node(plan, node, hosts, p);

	if (pid < 0)
		return -1;
	launch->node[node] = pid;
	launch->loose |= 1u << node;
	if (node >= launch->n_nodes)
		launch->n_nodes = node + 1;
	return 0;
}

static bool is_missing(const struct launch *launch, uint32_t node)
{
	return !launch->node[node] && !(launch->loose >> node & 1);
}

void launch_let_go(struct launch *launch, uint32_t node, bool end)
{
	launch->loose |= 1u << node;
	if (end && launch->node[node])
		kill(launch->node[node], SIGKILL);
}

static bool was_killed(const struct launch *launch, uint32_t node)
{
	return launch->cluster && node ? cluster_is_lost(launch->cluster, node)
				       : WIFSIGNALED(launch->status[node]);
}

static const char *why_far(const struct launch *launch, uint32_t node)
{
	return launch->cluster && node ? cluster_why(launch->cluster, node) : NULL;
}

static void describe_end(const struct launch *launch, uint32_t node, struct problem *p)
{
	int status = launch->status[node];

	if (why_far(launch, node))
		problem(p, "%s", why_far(launch, node));
	else if (WIFSIGNALED(status))
		problem(p, "died of signal %d (%s)%s", WTERMSIG(status),
			strsignal(WTERMSIG(status)), killed_why(WTERMSIG(status)));
	else
		problem(p, "status %d; try --log FILE", WEXITSTATUS(status));
}

int launch_take_loose(struct launch *launch, struct problem *p)
{
	for (uint32_t i = 0; i < launch->n_nodes; i++)
		if (launch->loose >> i & 1 && !launch->node[i] &&
		    launch->status[i] != LAUNCH_TOLD) {
			describe_end(launch, i, p);
			launch->status[i] = LAUNCH_TOLD;
			return (int)i;
		}
	return -1;
}

bool launch_reap(struct launch *launch)
{
	bool found = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (launch->cluster)
			cluster_reaped(launch->cluster, pid, status);
		for (uint32_t i = 0; i < launch->n_nodes; i++)
			if (launch->node[i] == pid) {
				launch->node[i] = 0;
				launch->status[i] = status;
			}
	}
	for (uint32_t i = 0; i < launch->n_nodes; i++)
		found |= is_missing(launch, i);
	return found;
}

static void name_end(const struct launch *launch, uint32_t node, struct problem *p)
{
	int status = launch->status[node];

	if (why_far(launch, node))
		problem(p, "%s", why_far(launch, node));
	else if (WIFSIGNALED(status))
		problem(p, "node daemon %u died of signal %d (%s)%s", node, WTERMSIG(status),
			strsignal(WTERMSIG(status)), killed_why(WTERMSIG(status)));
	else
		problem(p, "node daemon %u ended with status %d; try --log FILE", node,
			WEXITSTATUS(status));
}

void launch_describe(const struct launch *launch, struct problem *p)
{
	problem(p, "node daemon 0 closed the connection; try --log FILE");
	for (uint32_t i = launch->n_nodes; i-- > 0;)
		if (is_missing(launch, i) && !was_killed(launch, i))
			name_end(launch, i, p);
	for (uint32_t i = launch->n_nodes; i-- > 0;)
		if (is_missing(launch, i) && was_killed(launch, i))
			name_end(launch, i, p);
}

uint32_t launch_killed(const struct launch *launch)
{
	uint32_t killed = 0;

	for (uint32_t i = 0; i < launch->n_nodes; i++)
		killed |= (uint32_t)(is_missing(launch, i) && was_killed(launch, i)) << i;
	return killed;
}

static bool is_left(const struct launch *launch)
{
	for (uint32_t i = 0; i < launch->n_nodes; i++)
		if (launch->node[i])
			return true;
	return false;
}

void launch_kill(const struct launch *launch, uint32_t nodes)
{
	for (uint32_t i = 0; i < launch->n_nodes; i++)
		if (nodes >> i & 1 && launch->node[i])
			kill(launch->node[i], SIGKILL);
}

void launch_end(struct launch *launch, unsigned grace_ms, const pid_t *but)
{
	/* SILENT_GRACE_MS: in which an ssh sends what it has */
	enum { STEP_MS = 2, FAR_GRACE_MS = 5000, SILENT_GRACE_MS = 200 };
	unsigned far_grace_ms = launch->cluster ? grace_ms + FAR_GRACE_MS : 0;

	if (launch->cluster)
		cluster_hang_up(launch->cluster);
	for (unsigned waited = 0; waited < grace_ms || waited < far_grace_ms; waited += STEP_MS) {
		uint32_t but_far = waited < SILENT_GRACE_MS ? 0 : launch->silent;

		launch_reap(launch);
		if (!(waited < grace_ms && is_left(launch)) &&
		    !(waited < far_grace_ms && cluster_is_left(launch->cluster, but_far)))
			break;
		reaper_sleep_ms(STEP_MS);
	}
	launch_kill(launch, ~0u);
	reaper_end_all(but);
	if (launch->cluster)
		cluster_all_reaped(launch->cluster);
	memset(launch, 0, sizeof *launch);
}
