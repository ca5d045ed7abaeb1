/* fib.c - a Fibonacci number by the naive recursion, dealt out to processes.
 *
 *   fib N [PROCESSES]
 *
 * fib(N) is the sum of the calls at one depth of its recursion tree; these subtrees are dealt to
 * the processes through a shared counter, largest first, and each process adds up its own.  Between
 * fork and exit a process touches shared memory once per subtree, so what this shows is how far
 * processors that do not talk to each other run undisturbed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MAX_N = 60, MAX_PROCESSES = 64, PAGE = 4096, MAX_CUTS = 10, MAX_TASKS = 1 << MAX_CUTS };

/* Each process's sum has a page of its own. */
struct shared {
	_Alignas(PAGE) volatile uint32_t next;
	struct {
		_Alignas(PAGE) uint64_t sum;
	} of[MAX_PROCESSES];
};

static uint64_t __attribute__((noinline)) fib(unsigned n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

/* The arguments of all calls `cuts` levels down (fewer where the recursion ends sooner). */
static unsigned cut(unsigned n, unsigned cuts, unsigned *tasks)
{
	unsigned count;

	if (cuts == 0 || n < 2) {
		*tasks = n;
		return 1;
	}
	count = cut(n - 1, cuts - 1, tasks);
	return count + cut(n - 2, cuts - 1, tasks + count);
}

static int larger_first(const void *a, const void *b)
{
	return (int)*(const unsigned *)b - (int)*(const unsigned *)a;
}

static void work(struct shared *shared, unsigned me, const unsigned *tasks, unsigned n_tasks)
{
	uint64_t sum = 0;
	uint32_t task;

	while ((task = __sync_fetch_and_add(&shared->next, 1)) < n_tasks)
		sum += fib(tasks[task]);
	shared->of[me].sum = sum;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Forks the workers and waits for all; -1 if one could not be made or died. */
static int run(struct shared *shared, unsigned processes, const unsigned *tasks, unsigned n_tasks)
{
	int failed = 0, status;

	for (unsigned i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("fib: fork");
			failed = -1;
			break;
		}
		if (pid == 0) {
			work(shared, i, tasks, n_tasks);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		if (status)
			failed = -1;
	return failed;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned processes = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	unsigned tasks[MAX_TASKS], n_tasks, cuts = 0;
	struct shared *shared;
	uint64_t sum = 0;
	double start;

	if (argc < 2 || argc > 3 || n > MAX_N || processes < 1 || processes > MAX_PROCESSES) {
		fprintf(stderr, "usage: fib N [PROCESSES]    N up to %d, PROCESSES up to %d\n",
			MAX_N, MAX_PROCESSES);
		return 2;
	}
	/* At least 16 tasks each, so that the last one to end is not far behind. */
	while (processes > 1 && cuts < MAX_CUTS && (1u << cuts) < 16 * processes)
		cuts++;
	n_tasks = cut(n, cuts, tasks);
	qsort(tasks, n_tasks, sizeof *tasks, larger_first);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED) {
		perror("fib: mmap");
		return 1;
	}
	start = now();
	if (run(shared, processes, tasks, n_tasks) < 0) {
		fprintf(stderr, "fib: a process failed\n");
		return 1;
	}
	for (unsigned i = 0; i < processes; i++)
		sum += shared->of[i].sum;
	printf("fib(%u) = %llu\n", n, (unsigned long long)sum);
	printf("time %.3f s, %u processes\n", now() - start, processes);
	return 0;
}
