/* launch.c - see launch.h. */
#include "vmm/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/log.h"

enum { MAX_ARGUMENTS = 32, LAUNCH_TOLD = -1 /* a loose daemon's end was taken: no status of waitpid() */ };

int launch_path_beside(const char *name, char *path, size_t bytes)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;

	if (n <= 0)
		return -1;
	self[n] = 0;
	slash = strrchr(self, '/');
	if (!slash)
		return -1;
	*slash = 0;
	return snprintf(path, bytes, "%s/%s", self, name) < (int)bytes ? 0 : -1;
}

/* In the child: nothing that may fail quietly. */
static void become_node(const struct launch_plan *plan, char *program, char **arguments, pid_t parent)
{
	signal(SIGPIPE, SIG_DFL);
	/* The terminal's Ctrl-C is for `vmp` alone, which then ends the machine in order. Not a session of its own: where the
	 * host's scheduler shares the processors between sessions, no daemon would outrank another host's VM processes. */
	setpgid(0, 0);
	/* The daemon replaces this by an orderly end as soon as it can. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_VMP_FAILURE);
	/* stdin and stdout are the command's streams; a daemon must not keep a pipe open that others wait on. What it writes to
	 * stderr (a sanitizer's report, say) belongs in the log. */
	int null = open("/dev/null", O_RDWR);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		_exit(EXIT_VMP_FAILURE);
	if (plan->log_fd > 2)
		dup2(plan->log_fd, 2);
	fcntl(plan->log_fd, F_SETFD, 0);
	execv(program, arguments);
	dprintf(2, "vmp: cannot run %s: %s; build it with make\n", program, strerror(errno));
	_exit(EXIT_VMP_FAILURE);
}

/* hosts: those that it joins, or 0. */
static pid_t start_node(const struct launch_plan *plan, uint32_t node, uint32_t hosts, struct problem *p)
{
	char program[4096], numbers[6][16], join[16], policy[16];
	char *arguments[MAX_ARGUMENTS];
	const uint32_t values[6] = { node, plan->hosts, plan->cpus, plan->mem_mib, plan->log_fd, plan->host_mem_mib };
	static const char *const names[6] = { "--node", "--nodes", "--cpus", "--mem", "--log-fd", "--host-mem" };
	int n = 0;
	pid_t parent = getpid(), pid;

	if (launch_path_beside("vmp-node", program, sizeof program))
		return problem(p, "cannot find vmp-node beside this program");
	arguments[n++] = program;
	arguments[n++] = "--dir", arguments[n++] = (char *)plan->rundir;
	for (int i = 0; i < 6; i++) {
		snprintf(numbers[i], sizeof numbers[i], "%u", values[i]);
		arguments[n++] = (char *)names[i], arguments[n++] = numbers[i];
	}
	if (plan->verbose)
		arguments[n++] = "--verbose";
	if (plan->direct)
		arguments[n++] = "--direct";
	if (plan->strict)
		arguments[n++] = "--strict";
	if (plan->grows)
		arguments[n++] = "--grows";
	if (hosts) {
		snprintf(join, sizeof join, "%u", hosts);
		arguments[n++] = "--join", arguments[n++] = join;
	}
	if (node == 0 && plan->policy) {
		snprintf(policy, sizeof policy, "%u", (unsigned)plan->policy);
		arguments[n++] = "--policy", arguments[n++] = policy;
	}
	if (node == 0) {
		if (plan->restore) {
			arguments[n++] = "--restore";
		} else {
			arguments[n++] = "--kernel", arguments[n++] = (char *)plan->kernel;
			arguments[n++] = "--initrd", arguments[n++] = (char *)plan->image;
			arguments[n++] = "--initrd", arguments[n++] = (char *)plan->appended;
		}
		arguments[n++] = "--cmdline", arguments[n++] = (char *)plan->command_line;
		if (plan->disk)
			arguments[n++] = "--disk", arguments[n++] = (char *)plan->disk;
		if (plan->hold)
			arguments[n++] = "--hold";
	}
	arguments[n] = NULL;
	if (access(program, X_OK))
		return problem(p, "cannot run %s: %s; build it with make", program, strerror(errno));
	pid = fork();
	if (pid < 0)
		return problem(p, "cannot start a node daemon: %s; too many processes?", strerror(errno));
	if (pid == 0)
		become_node(plan, program, arguments, parent);
	return pid;
}

int launch_start(struct launch *launch, const struct launch_plan *plan, struct problem *p)
{
	memset(launch, 0, sizeof *launch);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return problem(p, "cannot become the reaper of the machine's processes: %s", strerror(errno));
	for (uint32_t node = 0; node < plan->hosts; node++) {
		pid_t pid = start_node(plan, node, 0, p);

		if (pid < 0) {
			launch_end(launch, 0);
			return -1;
		}
		launch->node[launch->n_nodes++] = pid;
	}
	return 0;
}

int launch_add(struct launch *launch, const struct launch_plan *plan, uint32_t node, uint32_t hosts, struct problem *p)
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

static void describe_end(int status, struct problem *p)
{
	if (WIFSIGNALED(status))
		problem(p, "died of signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		problem(p, "status %d; try --log FILE", WEXITSTATUS(status));
}

int launch_take_loose(struct launch *launch, struct problem *p)
{
	for (uint32_t i = 0; i < launch->n_nodes; i++)
		if (launch->loose >> i & 1 && !launch->node[i] && launch->status[i] != LAUNCH_TOLD) {
			describe_end(launch->status[i], p);
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

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (uint32_t i = 0; i < launch->n_nodes; i++)
			if (launch->node[i] == pid) {
				launch->node[i] = 0;
				launch->status[i] = status;
			}
	for (uint32_t i = 0; i < launch->n_nodes; i++)
		found |= is_missing(launch, i);
	return found;
}

void launch_describe(const struct launch *launch, struct problem *p)
{
	problem(p, "node daemon 0 closed the connection; try --log FILE");
	for (uint32_t i = launch->n_nodes; i-- > 0;)
		if (is_missing(launch, i) && WIFEXITED(launch->status[i]))
			problem(p, "node daemon %u ended with status %d; try --log FILE", i, WEXITSTATUS(launch->status[i]));
	for (uint32_t i = launch->n_nodes; i-- > 0;)
		if (is_missing(launch, i) && WIFSIGNALED(launch->status[i]))
			problem(p, "node daemon %u died of signal %d (%s)", i, WTERMSIG(launch->status[i]),
				strsignal(WTERMSIG(launch->status[i])));
}

uint32_t launch_lost(const struct launch *launch)
{
	uint32_t killed = 0, missing = 0;

	for (uint32_t i = 0; i < launch->n_nodes; i++) {
		missing |= (uint32_t)is_missing(launch, i) << i;
		killed |= (uint32_t)(is_missing(launch, i) && WIFSIGNALED(launch->status[i])) << i;
	}
	return killed ? killed : missing ? 1 : 0;
}

static bool node_is_left(const struct launch *launch)
{
	for (uint32_t i = 0; i < launch->n_nodes; i++)
		if (launch->node[i])
			return true;
	return false;
}

/* Kill our children by /proc's list of them. */
static void kill_children(void)
{
	char path[64];
	FILE *list;
	int pid;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
	list = fopen(path, "re");
	if (!list)
		return;
	while (fscanf(list, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	fclose(list);
}

static void sleep_ms(unsigned ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&time, NULL);
}

void launch_end(struct launch *launch, unsigned grace_ms)
{
	enum { STEP_MS = 2, LAST_MS = 5000 };

	for (unsigned waited = 0; waited < grace_ms; waited += STEP_MS) {
		launch_reap(launch);
		if (!node_is_left(launch))
			break;
		sleep_ms(STEP_MS);
	}
	for (uint32_t i = 0; i < launch->n_nodes; i++)
		if (launch->node[i])
			kill(launch->node[i], SIGKILL);
	/* Orphans come to us as their parents die: as long as there are children, kill and reap. */
	for (unsigned waited = 0; waited < LAST_MS; waited += STEP_MS) {
		pid_t pid;

		do
			pid = waitpid(-1, NULL, WNOHANG);
		while (pid > 0);
		if (pid < 0)
			break;
		kill_children();
		sleep_ms(STEP_MS);
	}
	memset(launch, 0, sizeof *launch);
}
