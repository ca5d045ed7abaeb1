/* confine_others.c - what a confined daemon or monitor cannot do to other processes: tests of
 * base/confine.h, each in a process of its own.
 */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/confine.h"
#include "base/types.h"
#include "tests/unit/outcome.h"
#include "tests/unit/unit.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
enum { DONE = 1, REFUSED, UNKNOWN_HERE };

static void confine_as(enum confine_kind kind)
{
	if (confine_privileges() || confine_calls_of(kind, false))
		_exit(FAILED);
}

/* --- the network ------------------------------------------------------------------------------ */

static int sends_datagrams(enum confine_kind kind)
{
	confine_as(kind);
	return socket(AF_INET, SOCK_DGRAM, 0) >= 0 ? DONE : REFUSED;
}
static int near_daemon_sends(void) { return sends_datagrams(CONFINE_NODE); }
static int far_daemon_sends(void) { return sends_datagrams(CONFINE_FAR_NODE); }

/* --- limits and schedules --------------------------------------------------------------------- */

static int monitor_limits(pid_t pid)
{
	struct rlimit limit;

	confine_as(CONFINE_MONITOR);
	return prlimit(pid, RLIMIT_FSIZE, NULL, &limit) ? REFUSED : DONE;
}
static int monitor_limits_itself(void) { return monitor_limits(0); }
static int monitor_limits_another(void) { return monitor_limits(getppid()); }

static int monitor_schedules(pid_t pid)
{
	confine_as(CONFINE_MONITOR);
	return syscall(SYS_sched_setattr, pid, NULL, 0) && errno == EINVAL ? DONE : REFUSED;
}
static int monitor_schedules_itself(void) { return monitor_schedules(0); }
static int monitor_schedules_another(void) { return monitor_schedules(getppid()); }

static int monitor_is_nice(void)
{
	confine_as(CONFINE_MONITOR);
	return setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)) ? REFUSED : DONE;
}
static int monitor_is_nice_to_all(void)
{
	confine_as(CONFINE_MONITOR);
	return setpriority(PRIO_USER, 1 << 30, 0) ? REFUSED : DONE;
}

static void calls(void)
{
	static const struct { int (*run)(void); int outcome; } rows[] = {
		{ near_daemon_sends, KILLED + SIGSYS },
		{ far_daemon_sends, DONE },
		{ monitor_limits_itself, DONE },
		{ monitor_limits_another, KILLED + SIGSYS },
		{ monitor_schedules_itself, DONE },
		{ monitor_schedules_another, KILLED + SIGSYS },
		{ monitor_is_nice, DONE },
		{ monitor_is_nice_to_all, KILLED + SIGSYS },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows) && !SANITIZED; i++)
		CU_ASSERT_EQUAL(outcome(rows[i].run), rows[i].outcome);
}

/* --- sockets in the file system ----------------------------------------------------- */

static char folder[] = "/tmp/vmp-confine-XXXXXX";
static struct sockaddr_un place = { .sun_family = AF_UNIX };

/* Landlock knows them from its ninth version on. */
static int reaches_socket(unsigned files)
{
	const struct confine_file own = { folder, CONFINE_OWN_FOLDER };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	long version = syscall(444, NULL, 0, 1);

	if (confine_privileges())
		return FAILED;
	if (confine_files(&own, files, CONFINE_KEEP_SIGNALS) && version > 0)
		return FAILED;
	if (!connect(fd, (void *)&place, sizeof place))
		return files || version >= 9 ? DONE : UNKNOWN_HERE;
	return errno == EACCES ? REFUSED : FAILED;
}
static int reaches_its_own(void) { return reaches_socket(1); }
static int reaches_others(void) { return reaches_socket(0); }

static void sockets(void)
{
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), how;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(place.sun_path, sizeof place.sun_path, "%s/socket", folder);
	CU_ASSERT_FATAL(!bind(listener, (void *)&place, sizeof place) && !listen(listener, 4));
	CU_ASSERT_EQUAL(outcome(reaches_its_own), DONE);
	how = outcome(reaches_others);
	CU_ASSERT(how == REFUSED || how == UNKNOWN_HERE || SANITIZED);
	close(listener);
	unlink(place.sun_path);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

int main(void)
{
	static const struct unit_test tests[] = { UNIT_TEST(calls), UNIT_TEST(sockets), UNIT_END };

	return UNIT_RUN("confinement from other processes", tests);
}
