/* micro.c - what single operations cost, in nanoseconds; for the benchmark, not for comparison.
 *
 *   micro [NAME]
 */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "tests/guest/check.h"

static int pipe_there[2], pipe_back[2];

static void run_nothing(int n)
{
	for (int i = 0; i < n; i++)
		__asm__ volatile("");
}

static void run_getpid(int n)
{
	for (int i = 0; i < n; i++)
		syscall(SYS_getpid);
}

static void run_int80(int n)
{
	for (int i = 0; i < n; i++) {
		long result;

		__asm__ volatile("int $0x80" : "=a"(result) : "a"(SYS_getpid) : "memory");
	}
}

static void run_clock(int n)
{
	for (int i = 0; i < n; i++)
		check_now_ns();
}

static void run_touch(int n)
{
	size_t bytes = (size_t)n * 4096;
	volatile char *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

	for (int i = 0; i < n; i++)
		m[i * 4096] = 1;
	munmap((void *)m, bytes);
}

static void run_pipe(int n)
{
	char byte = 0;

	if (pipe(pipe_there) < 0 || pipe(pipe_back) < 0)
		return;
	if (fork() == 0) {
		for (int i = 0; i < n; i++)
			if (read(pipe_there[0], &byte, 1) != 1 ||
			    write(pipe_back[1], &byte, 1) != 1)
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < n; i++)
		if (write(pipe_there[1], &byte, 1) != 1 || read(pipe_back[0], &byte, 1) != 1)
			return;
	wait(NULL);
	for (int i = 0; i < 2; i++) {
		close(pipe_there[i]);
		close(pipe_back[i]);
	}
}

static void run_fork(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

static void run_exec(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			execl("/proc/self/exe", "micro", "exit", NULL);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
	}
}

static void run_yield(int n)
{
	for (int i = 0; i < n; i++)
		sched_yield();
}

static void on_signal(int signal) { (void)signal; }

static void run_signal(int n)
{
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < n; i++)
		raise(SIGUSR1);
}

static const struct {
	const char *name;
	void (*run)(int n);
	int most; /* at once */
} operations[] = {
	{ "nothing", run_nothing, 1 << 28 }, { "getpid", run_getpid, 1 << 24 },
	{ "int80", run_int80, 1 << 24 }, { "clock", run_clock, 1 << 24 },
	{ "touch", run_touch, 1 << 12 }, { "pipe", run_pipe, 1 << 20 },
	{ "fork", run_fork, 1 << 16 }, { "exec", run_exec, 1 << 16 },
	{ "yield", run_yield, 1 << 24 }, { "signal", run_signal, 1 << 20 },
};

enum { LONG_ENOUGH_NS = 100000000, BEST_OF = 3 };

/* Returns the ns for `times` runs of n operations. */
static int64_t time_runs(unsigned operation, int n, int times)
{
	int64_t start = check_now_ns();

	for (int i = 0; i < times; i++)
		operations[operation].run(n);
	return check_now_ns() - start;
}

/* Returns the best of several measurements, since the machine is shared.  Each is so long that a
 * coarse clock does not matter. */
static double measure(unsigned operation)
{
	int64_t took, best = INT64_MAX;
	int n = 1, times = 1;

	while ((took = time_runs(operation, n, times)) < LONG_ENOUGH_NS)
		if (n < operations[operation].most)
			n *= 2;
		else
			times *= 2;
	for (int i = 0; i < BEST_OF; i++) {
		if (took < best)
			best = took;
		took = time_runs(operation, n, times);
	}
	return (double)best / n / times;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "exit"))
		return 0;
	for (unsigned i = 0; i < sizeof operations / sizeof *operations; i++)
		if (argc < 2 || !strcmp(argv[1], operations[i].name)) {
			printf("%-8s %12.1f ns\n", operations[i].name, measure(i));
			fflush(stdout);
		}
	return 0;
}
