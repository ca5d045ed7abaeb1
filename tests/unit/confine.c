/* confine.c - tests of base/confine.h: each row does something in a process of its own that is
 * confined, and says how that ends: by exit status, or killed.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
enum { KILLED = 1000 /* + the signal */, FAILED = 99 };

/* The exit status of who does this, or KILLED + signal. */
static int outcome(int (*run)(void))
{
	int status = 0;
	pid_t child = fork();

	if (!child)
		_exit(run());
	CU_ASSERT_FATAL(child > 0 && waitpid(child, &status, 0) == child);
	return WIFSIGNALED(status) ? KILLED + WTERMSIG(status) : WEXITSTATUS(status);
}

static void confine(void)
{
	const struct confine_call calls[] = {
		CONFINE_CALL(exit_group), CONFINE_CALL(getppid), CONFINE_CALL(futex),
		CONFINE_CALL_IF(lseek, 1, 0xff00000000ull, 0x1200000000ull), CONFINE_CALL_IF(lseek, 2, ~0ull, SEEK_END),
		CONFINE_CALL_IF(mmap, 2, PROT_EXEC, 0), CONFINE_CALL_IF(dup, 0, 0xf, 3),
	};

	if (confine_privileges() || confine_calls(calls, ARRAY_LEN(calls)))
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
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

static int by_i386(void)
{
	long result;

	confine();
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(1 /* exit, there */), "b"(5)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
}

static int go[2];

static void *call_in_thread(void *context)
{
	char byte;

	(void)context;
	while (read(go[0], &byte, 1) != 1) /* allowed until the filter is there: it waits in this one */
		;
	return NULL;
}

/* A thread that was started before obeys too. */
static int other_thread(void)
{
	pthread_t thread;
	const struct confine_call calls[] = {
		CONFINE_CALL(write), CONFINE_CALL(futex), CONFINE_CALL(exit_group), CONFINE_CALL(read),
		CONFINE_CALL(rt_sigprocmask), CONFINE_CALL(madvise),
	};

	if (pipe(go) || pthread_create(&thread, NULL, call_in_thread, NULL) || confine_privileges() ||
	    confine_calls(calls, ARRAY_LEN(calls)) || write(go[1], "", 1) != 1)
		return FAILED;
	pthread_join(thread, NULL); /* its end is a call that is not in the table */
	return 1;
}

static int too_many(void)
{
	static const struct confine_call calls[CONFINE_MAX_CALLS + 1];

	return confine_calls(calls, ARRAY_LEN(calls)) == -E2BIG;
}

static int most(void)
{
	struct confine_call calls[CONFINE_MAX_CALLS];

	for (unsigned i = 0; i < CONFINE_MAX_CALLS; i++)
		calls[i] = (struct confine_call)CONFINE_CALL_IF(exit_group, 0, ~0ull, CONFINE_MAX_CALLS - i);
	return !confine_privileges() && !confine_calls(calls, CONFINE_MAX_CALLS) ? 1 : FAILED;
}

static void calls_are_confined(void)
{
	static const struct { int (*run)(void); int outcome; } rows[] = {
		{ allowed, 1 }, { forbidden, KILLED + SIGSYS }, { argument_fits, 1 }, { argument_fits_high, 1 },
		{ argument_differs, KILLED + SIGSYS }, { upper_half_fits, 1 }, { upper_half_differs, KILLED + SIGSYS },
		{ second_row_fits, 1 }, { not_executable, 1 }, { executable, KILLED + SIGSYS },
		{ by_i386, KILLED + SIGSYS }, { other_thread, KILLED + SIGSYS }, { most, 1 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows) && !SANITIZED; i++)
		CU_ASSERT_EQUAL(outcome(rows[i].run), rows[i].outcome);
	if (!SANITIZED)
		CU_ASSERT_EQUAL(outcome(too_many), 1);
}

/* What is open stays; what has a name is out of reach. 2: this kernel has no Landlock. */
static int files_by_name(void)
{
	int fd = open("/proc/self/status", O_RDONLY), error;
	char byte;

	if (confine_privileges())
		return FAILED;
	error = confine_files(NULL, 0, false);
	if (error == -EOPNOTSUPP || error == -ENOSYS)
		return 2;
	if (error || read(fd, &byte, 1) != 1)
		return FAILED;
	if (open("/proc/self/status", O_RDONLY) >= 0 || errno != EACCES || open("/", O_RDONLY) >= 0 || errno != EACCES)
		return FAILED;
	if (unlink("/tmp/vmp-nonesuch") == 0 || mkdir("/tmp/vmp-confine", 0700) == 0 || errno != EACCES)
		return FAILED;
	return 1;
}

/* Files that are named stay: one to be read, one to be executed; a signal goes out if it may. */
static int files_but_two(void)
{
	static const struct confine_file files[] = { { "/proc/vmstat", false }, { "/proc/self/exe", true } };
	int error, fd;

	if (confine_privileges())
		return FAILED;
	error = confine_files(files, ARRAY_LEN(files), true);
	if (error == -EOPNOTSUPP || error == -ENOSYS)
		return 2;
	fd = error ? -1 : open("/proc/vmstat", O_RDONLY);
	if (fd < 0 || open("/proc/self/status", O_RDONLY) >= 0 || kill(getppid(), 0))
		return FAILED;
	if (open("/proc/vmstat", O_WRONLY) >= 0 || execl("/bin/sh", "sh", "-c", "exit 1", NULL) != -1 || errno != EACCES)
		return FAILED;
	return 1;
}

static int no_such_file(void)
{
	int error = confine_privileges() ? -1 : confine_files(&(struct confine_file){ "/nowhere", false }, 1, true);

	return error == -ENOENT ? 1 : error == -EOPNOTSUPP || error == -ENOSYS ? 2 : FAILED;
}

static void files_are_confined(void)
{
	static int (*const rows[])(void) = { files_by_name, files_but_two, no_such_file };

	for (unsigned i = 0; i < ARRAY_LEN(rows) && !SANITIZED; i++) {
		int how = outcome(rows[i]);

		CU_ASSERT(how == 1 || how == 2);
	}
}

static int crash_without_a_dump(void)
{
	struct rlimit limit = { 0, RLIM_INFINITY };

	setrlimit(RLIMIT_CORE, &limit);
	if (confine_privileges() || getrlimit(RLIMIT_CORE, &limit))
		return FAILED;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && limit.rlim_cur <= 1 && limit.rlim_max <= 1;
}

static void privileges_are_confined(void)
{
	CU_ASSERT_EQUAL(outcome(crash_without_a_dump), 1);
}

int main(void)
{
	CU_pSuite suite;
	int failures;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	suite = CU_add_suite("confinement", NULL, NULL);
	CU_add_test(suite, "calls", calls_are_confined);
	CU_add_test(suite, "files", files_are_confined);
	CU_add_test(suite, "privileges", privileges_are_confined);
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures() != 0 || CU_get_number_of_tests_run() == 0;
	CU_cleanup_registry();
	return failures;
}
