/* confine.c - tests of base/confine.h: each row does something in a process of its own that is
 * confined, and says how that ends: by exit status, or killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

static void confine(void)
{
	const struct confine_call calls[] = {
		CONFINE_CALL(exit_group),
		CONFINE_CALL(getppid),
		CONFINE_CALL(futex),
		CONFINE_CALL_IF(lseek, 1, 0xff00000000ull, 0x1200000000ull),
		CONFINE_CALL_IF(lseek, 2, ~0ull, SEEK_END),
		CONFINE_CALL_IF(mmap, 2, PROT_EXEC, 0),
		CONFINE_CALL_IF(dup, 0, 0xf, 3),
	};

	if (confine_privileges() || confine_calls(calls, ARRAY_LEN(calls), CONFINE_IOSRV, false))
		_exit(FAILED);
}

static int allowed(void)
{
	confine();
	syscall(SYS_getppid);
	return 1;
}

static int forbidden(void)
{
	confine();
	syscall(SYS_getuid);
	return 1;
}

static int with_argument(unsigned long argument)
{
	confine();
	syscall(SYS_dup, argument);
	return 1;
}

static int argument_fits(void) { return with_argument(0x13); }
static int argument_fits_high(void) { return with_argument(0xf00000003); }
static int argument_differs(void) { return with_argument(4); }

static int with_offset(unsigned long offset, int whence)
{
	confine();
	syscall(SYS_lseek, 0, offset, whence);
	return 1;
}

static int upper_half_fits(void) { return with_offset(0x3412abcdef01, SEEK_SET); }
static int upper_half_differs(void) { return with_offset(0x1300000012, SEEK_SET); }
static int second_row_fits(void) { return with_offset(0, SEEK_END); }

static int not_executable(void)
{
	confine();
	return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

static int executable(void)
{
	confine();
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED;
}

/* exit(5) by the system calls of i386 */
static int exit_i386(void)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(1), "b"(5)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
}
static int by_i386(void)
{
	confine();
	return exit_i386();
}

static int go[2];

static void *call_in_thread(void *context)
{
	char byte;

	(void)context;
	/* allowed until the filter is there: it waits in this call */
	while (read(go[0], &byte, 1) != 1)
		;
	return NULL;
}

/* A thread that was started before obeys the filter too. */
static int other_thread(void)
{
	pthread_t thread;
	const struct confine_call calls[] = {
		CONFINE_CALL(write), CONFINE_CALL(futex),	   CONFINE_CALL(exit_group),
		CONFINE_CALL(read),  CONFINE_CALL(rt_sigprocmask), CONFINE_CALL(madvise),
	};

	if (pipe(go) || pthread_create(&thread, NULL, call_in_thread, NULL) ||
	    confine_privileges() || confine_calls(calls, ARRAY_LEN(calls), CONFINE_IOSRV, false) ||
	    write(go[1], "", 1) != 1)
		return FAILED;
	pthread_join(thread, NULL); /* its end is a call that is not in the table */
	return 1;
}

static int too_many(void)
{
	static const struct confine_call calls[CONFINE_MAX_CALLS + 1];

	return confine_calls(calls, ARRAY_LEN(calls), CONFINE_IOSRV, false) == -E2BIG;
}

static int most(void)
{
	struct confine_call calls[CONFINE_MAX_CALLS];

	for (unsigned i = 0; i < CONFINE_MAX_CALLS; i++)
		calls[i] = (struct confine_call)CONFINE_CALL_IF(exit_group, 0, ~0ull,
								CONFINE_MAX_CALLS - i);
	return !confine_privileges() &&
			       !confine_calls(calls, CONFINE_MAX_CALLS, CONFINE_IOSRV, false)
		       ? 1
		       : FAILED;
}

/* A table of many rows: each is found, and nothing between them. */
static int among_many(unsigned wanted)
{
	struct confine_call calls[128];

	for (unsigned i = 0; i < ARRAY_LEN(calls); i++) /* every third number, none in its place */
		calls[i] = (struct confine_call){ .number = i * 37 % 128 * 3 };
	if (confine_privileges() || confine_calls(calls, ARRAY_LEN(calls), CONFINE_IOSRV, false))
		return FAILED;
	syscall(wanted);
	syscall(SYS_exit_group, 1); /* this call is in the table */
	return FAILED;
}

_Static_assert(SYS_getuid % 3 == 0 && SYS_getpid % 3 == 0 && SYS_sched_yield % 3 == 0 &&
		       SYS_getgid % 3,
	       "as among_many() chooses");
static int first_of_many(void) { return among_many(SYS_getpid); }
static int another_of_many(void) { return among_many(SYS_sched_yield); }
static int beside_many(void) { return among_many(SYS_getgid); }

/* A process that starts VM processes is killed as well; a call is refused if the VM processes are
 * traced.  An outer filter hides nothing that an inner one stops. */
static int as_kind(enum confine_kind kind, bool traced, unsigned number)
{
	if (confine_privileges() || confine_calls_of(kind, traced))
		return FAILED;
	return syscall(number, 0, 0, 0) < 0 && errno == ENOSYS ? 1 : 2;
}

static int monitor_is_killed(void) { return as_kind(CONFINE_MONITOR, false, SYS_unshare); }
static int node_is_killed(void) { return as_kind(CONFINE_NODE, false, SYS_mount); }
static int traced_is_refused(void) { return as_kind(CONFINE_NODE, true, SYS_mount); }
static int monitor_has_no_socket(void) { return as_kind(CONFINE_MONITOR, false, SYS_socket); }
static int node_has_sockets(void)
{
	return as_kind(CONFINE_NODE, false, SYS_getppid) == 2 &&
			       socket(AF_UNIX, SOCK_STREAM, 0) >= 0
		       ? 1
		       : FAILED;
}
static int node_has_no_packets(void)
{
	return as_kind(CONFINE_NODE, false, SYS_getppid) == 2 && socket(AF_PACKET, SOCK_RAW, 0) >= 0
		       ? 1
		       : FAILED;
}

static int net_opens_to_read(void)
{
	return as_kind(CONFINE_VMP_NET, false, SYS_getpid) == 2 &&
			       open("/dev/null", O_RDONLY) >= 0 &&
			       socket(AF_INET6, SOCK_DGRAM, 0) >= 0
		       ? 1
		       : FAILED;
}
static int net_writes_no_file(void)
{
	return as_kind(CONFINE_VMP_NET, false, SYS_getpid) == 2 && open("/dev/null", O_WRONLY) >= 0
		       ? 1
		       : FAILED;
}
static int net_truncates_no_file(void)
{
	return as_kind(CONFINE_VMP_NET, false, SYS_getpid) == 2 &&
			       open("/dev/null", O_RDONLY | O_TRUNC) >= 0
		       ? 1
		       : FAILED;
}
static int net_asks_its_sockets(void)
{
	int pair[2], waiting;

	return !socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && write(pair[0], "x", 1) == 1 &&
			       as_kind(CONFINE_VMP_NET, false, SYS_getpid) == 2 &&
			       !ioctl(pair[1], FIONREAD, &waiting) && waiting == 1
		       ? 1
		       : FAILED;
}
static int net_has_no_local_socket(void)
{
	return as_kind(CONFINE_VMP_NET, false, SYS_getpid) == 2 &&
			       socket(AF_UNIX, SOCK_STREAM, 0) >= 0
		       ? 1
		       : FAILED;
}
static int net_starts_nothing(void) { return as_kind(CONFINE_VMP_NET, false, SYS_execve); }
static int share_has_no_socket(void) { return as_kind(CONFINE_VMP_SHARE, false, SYS_socket); }
static int share_starts_nothing(void) { return as_kind(CONFINE_VMP_SHARE, false, SYS_execve); }
static int holder_starts_nothing(void) { return as_kind(CONFINE_HOLDER, false, SYS_execve); }
static int holder_has_no_socket(void) { return as_kind(CONFINE_HOLDER, false, SYS_socket); }
static int host_starts_nothing(void) { return as_kind(CONFINE_VMP_HOST, false, SYS_execve); }
static int host_has_no_network(void)
{
	return as_kind(CONFINE_VMP_HOST, false, SYS_getpid) == 2 &&
			       socket(AF_UNIX, SOCK_DGRAM, 0) >= 0 &&
			       socket(AF_INET, SOCK_STREAM, 0) >= 0
		       ? 1
		       : FAILED;
}
static int host_sends_no_other_signal(void)
{
	return as_kind(CONFINE_VMP_HOST, false, SYS_getpid) == 2 &&
			       kill(1 << 30, SIGTERM) && errno == ESRCH &&
			       !kill(getpid(), SIGUSR1)
		       ? 1
		       : FAILED;
}
/* A folder whose content may be removed, and neither read nor written. */
static int removes_only(void)
{
	char folder[] = "/tmp/confine.XXXXXX", file[64];
	const struct confine_file files[] = { { "/tmp", CONFINE_REMOVE } };
	int fd, error;

	if (!mkdtemp(folder))
		return FAILED;
	snprintf(file, sizeof file, "%s/file", folder);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	error = confine_privileges() ? -1 : confine_files(files, ARRAY_LEN(files), 0);
	if (fd < 0 || (error && error != -EOPNOTSUPP && error != -ENOSYS))
		return FAILED;
	if (!error && (open(file, O_RDONLY) >= 0 || open(file, O_WRONLY) >= 0))
		return FAILED;
	return unlink(file) || rmdir(folder) ? FAILED : 1;
}
static int share_opens(void)
{
	return as_kind(CONFINE_VMP_SHARE, false, SYS_getpid) == 2 &&
			       open("/dev/null", O_WRONLY) >= 0
		       ? 1
		       : FAILED;
}

/* No confined process types into a terminal, by which it could command the shell behind it. */
static enum confine_kind typing;
static unsigned long type_by;
static int types(void)
{
	if (confine_privileges() || confine_calls_of(typing, false))
		return FAILED;
	ioctl(0, type_by, "\2");
	return 1;
}
static void nobody_types(void)
{
	enum { TYPE_BY_SELECTION = 0x541c /* TIOCLINUX */ };
	static const unsigned long requests[] = { TIOCSTI, TYPE_BY_SELECTION,
						  TIOCSTI | 1ul << 32 };

	for (typing = CONFINE_IOSRV; typing <= CONFINE_FAR_NODE && !SANITIZED; typing++)
		for (unsigned i = 0; i < ARRAY_LEN(requests); i++) {
			type_by = requests[i];
			CU_ASSERT_EQUAL(outcome(types), KILLED + SIGSYS);
		}
}

static volatile int trapped;
static void on_trap(int signal_number) { (void)signal_number; trapped++; }

static int inner_trap_comes(void)
{
	struct sigaction action = { .sa_handler = on_trap };
	const struct confine_call inner[] = { CONFINE_CALL(rt_sigreturn),
					      CONFINE_CALL(exit_group) };

	if (confine_privileges() || confine_calls_of(CONFINE_NODE, false) ||
	    confine_calls_of(CONFINE_MONITOR, false) || sigaction(SIGSYS, &action, NULL) ||
	    confine_calls(inner, ARRAY_LEN(inner), CONFINE_MONITOR, false))
		return FAILED;
	syscall(SYS_getuid); /* its own filter, and the two outer ones: a trap, and it goes on */
	syscall(SYS_getpid);
	return trapped == 2 ? 1 : FAILED;
}

static void calls_are_confined(void)
{
	static const struct { int (*run)(void); int outcome;
	} rows[] = {
		{ allowed, 1 },
		{ forbidden, KILLED + SIGSYS },
		{ argument_fits, 1 },
		{ argument_fits_high, 1 },
		{ argument_differs, KILLED + SIGSYS },
		{ upper_half_fits, 1 },
		{ upper_half_differs, KILLED + SIGSYS },
		{ second_row_fits, 1 },
		{ not_executable, 1 },
		{ executable, KILLED + SIGSYS },
		{ other_thread, KILLED + SIGSYS },
		{ most, 1 },
		{ first_of_many, 1 },
		{ another_of_many, 1 },
		{ beside_many, KILLED + SIGSYS },
		{ monitor_is_killed, KILLED + SIGSYS },
		{ node_is_killed, KILLED + SIGSYS },
		{ traced_is_refused, 1 },
		{ monitor_has_no_socket, KILLED + SIGSYS },
		{ node_has_sockets, 1 },
		{ node_has_no_packets, KILLED + SIGSYS },
		{ net_opens_to_read, 1 },
		{ net_writes_no_file, KILLED + SIGSYS },
		{ net_truncates_no_file, KILLED + SIGSYS },
		{ net_asks_its_sockets, 1 },
		{ net_has_no_local_socket, KILLED + SIGSYS },
		{ net_starts_nothing, KILLED + SIGSYS },
		{ share_opens, 1 },
		{ share_has_no_socket, KILLED + SIGSYS },
		{ share_starts_nothing, KILLED + SIGSYS },
		{ holder_starts_nothing, KILLED + SIGSYS },
		{ holder_has_no_socket, KILLED + SIGSYS },
		{ host_starts_nothing, KILLED + SIGSYS },
		{ host_has_no_network, KILLED + SIGSYS },
		{ host_sends_no_other_signal, KILLED + SIGSYS },
		{ removes_only, 1 },
		{ inner_trap_comes, 1 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows) && !SANITIZED; i++)
		CU_ASSERT_EQUAL(outcome(rows[i].run), rows[i].outcome);
	if (!SANITIZED) {
		/* some hosts have no such calls */
		CU_ASSERT_EQUAL(outcome(by_i386),
				KILLED + (outcome(exit_i386) == 5 ? SIGSYS : SIGSEGV));
		CU_ASSERT_EQUAL(outcome(too_many), 1);
	}
}

/* Open files stay open; files with names cannot be reached.  Returns 2 if this kernel has no
 * Landlock. */
static int files_by_name(void)
{
	int fd = open("/proc/self/status", O_RDONLY), error;
	char byte;

	if (confine_privileges())
		return FAILED;
	error = confine_files(NULL, 0, 0);
	if (error == -EOPNOTSUPP || error == -ENOSYS)
		return 2;
	if (error || read(fd, &byte, 1) != 1)
		return FAILED;
	if (open("/proc/self/status", O_RDONLY) >= 0 || errno != EACCES ||
	    open("/", O_RDONLY) >= 0 || errno != EACCES)
		return FAILED;
	if (unlink("/tmp/vmp-nonesuch") == 0 || mkdir("/tmp/vmp-confine", 0700) == 0 ||
	    errno != EACCES)
		return FAILED;
	return 1;
}

/* Named files can be reached: one to read, one to execute.  A signal is sent if that is allowed. */
static int files_but_two(void)
{
	static const struct confine_file files[] = { { "/proc/vmstat", CONFINE_READ },
						     { "/proc/self/exe", CONFINE_EXECUTE } };
	int error, fd;

	if (confine_privileges())
		return FAILED;
	error = confine_files(files, ARRAY_LEN(files), CONFINE_KEEP_SIGNALS);
	if (error == -EOPNOTSUPP || error == -ENOSYS)
		return 2;
	fd = error ? -1 : open("/proc/vmstat", O_RDONLY);
	if (fd < 0 || open("/proc/self/status", O_RDONLY) >= 0 || kill(getppid(), 0))
		return FAILED;
	if (open("/proc/vmstat", O_WRONLY) >= 0 ||
	    execl("/bin/sh", "sh", "-c", "exit 1", NULL) != -1 || errno != EACCES)
		return FAILED;
	return 1;
}

/* With `keep`, returns what bind() and connect() of a TCP port fail with: 0, or an error number. */
static int port_errors(unsigned keep, int *bound, int *connected)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = socket(AF_INET, SOCK_STREAM, 0),
	    two = socket(AF_INET, SOCK_STREAM, 0), error;
	socklen_t bytes = sizeof at;

	if (bind(listener, (void *)&at, sizeof at) || listen(listener, 1) ||
	    getsockname(listener, (void *)&at, &bytes) || confine_privileges())
		return -1;
	error = confine_files(NULL, 0, keep);
	*connected = connect(one, (void *)&at, sizeof at) ? errno : 0;
	at.sin_port = 0;
	*bound = bind(two, (void *)&at, sizeof at) ? errno : 0;
	return error;
}

/* Landlock knows TCP ports from its fourth version on. */
static int ports_keep(unsigned keep)
{
	int want_bind = keep & CONFINE_KEEP_BIND ? 0 : EACCES;
	int want_connect = keep & CONFINE_KEEP_CONNECT ? 0 : EACCES;
	long version = syscall(444, NULL, 0, 1);
	int bound, connected, error = port_errors(keep, &bound, &connected);

	if (version < 4)
		return error == 0 || error == -EOPNOTSUPP || error == -ENOSYS ? 2 : FAILED;
	return !error && bound == want_bind && connected == want_connect ? 1 : FAILED;
}

static int no_ports(void) { return ports_keep(0); }
static int connect_alone(void) { return ports_keep(CONFINE_KEEP_CONNECT); }
static int all_ports(void) { return ports_keep(CONFINE_KEEP_CONNECT | CONFINE_KEEP_BIND); }

/* It is left out; the others stay. */
static int no_such_file(void)
{
	static const struct confine_file files[] = { { "/nowhere", CONFINE_READ },
						     { "/proc/vmstat", CONFINE_READ } };
	int error = confine_privileges()
			    ? -1
			    : confine_files(files, ARRAY_LEN(files), CONFINE_KEEP_SIGNALS);

	if (error == -EOPNOTSUPP || error == -ENOSYS)
		return 2;
	return !error && open("/proc/vmstat", O_RDONLY) >= 0 ? 1 : FAILED;
}

/* Files can be made and removed in one's own folder, and nowhere else. */
static char folder[] = "/tmp/vmp-confine-XXXXXX";

static int own_folder(void)
{
	char file[64], outside[64];
	const struct confine_file files[] = { { folder, CONFINE_OWN_FOLDER },
					      { "/dev/null", CONFINE_WRITE } };
	int error = confine_privileges();

	snprintf(file, sizeof file, "%s/file", folder);
	snprintf(outside, sizeof outside, "%s-outside", folder);
	error = error ? error : confine_files(files, ARRAY_LEN(files), CONFINE_KEEP_SIGNALS);
	if (error)
		return error == -EOPNOTSUPP || error == -ENOSYS ? 2 : FAILED;
	if (open(file, O_CREAT | O_RDWR, 0600) < 0 || open("/dev/null", O_RDWR) < 0 ||
	    unlink(file) || symlink("x", file) || unlink(file))
		return FAILED;
	return open(outside, O_CREAT | O_RDWR, 0600) < 0 && symlink("x", outside) &&
			       open("/dev/zero", O_RDWR) < 0
		       ? 1
		       : FAILED;
}

static void files_are_confined(void)
{
	static int (*const rows[])(void) = { files_by_name, files_but_two, no_such_file,
					     own_folder,    no_ports,	   connect_alone,
					     all_ports };

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	for (unsigned i = 0; i < ARRAY_LEN(rows) && !SANITIZED; i++) {
		int how = outcome(rows[i]);

		CU_ASSERT(how == 1 || how == 2);
	}
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static int crash_without_a_dump(void)
{
	struct rlimit limit = { 0, RLIM_INFINITY };

	setrlimit(RLIMIT_CORE, &limit);
	if (confine_privileges() || getrlimit(RLIMIT_CORE, &limit))
		return FAILED;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && limit.rlim_cur <= 1 &&
	       limit.rlim_max <= 1;
}

static void privileges_are_confined(void)
{
	CU_ASSERT_EQUAL(outcome(crash_without_a_dump), 1);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "calls", calls_are_confined },
		{ "terminals", nobody_types },
		{ "files", files_are_confined },
		{ "privileges", privileges_are_confined },
		UNIT_END
	};

	return UNIT_RUN("confinement", tests);
}
