/* storm.c - interrupts at the highest rate that the machine gives, for some seconds, besides
 * whatever else runs:
 *
 *   timers     on each CPU a thread that sleeps for 20 us at a time, and an interval timer of 50 us
 *              that signals it
 *   barriers   membarrier() with a thread of the process running on each CPU: an interrupt to each
 *   kicks      threads that signal each other across CPUs, in turns
 *   hops       a thread that moves from CPU to CPU, and must be where it was sent
 *   handovers  pairs of threads on two CPUs that wake each other by a futex, in turns
 *
 *   storm [SECONDS]      default: 10
 *
 * A wake-up that is lost shows as a part that never ends, since its threads wait for nothing else.
 */
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "tests/guest/check.h"

enum { MAX_THREADS = 32 };
static int cpus;
static int64_t end_ns;
static _Atomic bool over; /* for threads that wait for others */

static bool time_is_up(void) { return check_now_ns() >= end_ns; }
static bool answered(void) { return atomic_load(&over); }

static int go_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % cpus, &set);
	return sched_setaffinity(0, sizeof set, &set);
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}
static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Runs one thread for each n below `count`.  Returns whether all returned NULL. */
static bool in_threads(int count, void *(*f)(void *))
{
	pthread_t thread[MAX_THREADS];
	bool good = true;
	void *result;

	for (int i = 0; i < count; i++)
		if (pthread_create(&thread[i], NULL, f, (void *)(intptr_t)i))
			return false;
	for (int i = 0; i < count; i++)
		good &= !pthread_join(thread[i], &result) && !result;
	return good;
}

/* ---- timers ---- */

static __thread volatile sig_atomic_t ticks;
static void on_tick(int signal) { (void)signal, ticks++; }

static void *sleeper(void *arg)
{
	const struct timespec moment = { .tv_nsec = 20000 };
	struct itimerspec often = { { 0, 50000 }, { 0, 50000 } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
	timer_t timer;

	event._sigev_un._tid = gettid();
	if (go_to((intptr_t)arg) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &often, NULL))
		return "no timer";
	while (!time_is_up())
		nanosleep(&moment, NULL);
	while (!ticks)
		pause();
	timer_delete(timer);
	return NULL;
}

static bool timers(void)
{
	struct sigaction action = { .sa_handler = on_tick };

	sigaction(SIGRTMIN, &action, NULL);
	return in_threads(cpus, sleeper);
}

/* ---- barriers ---- */

static void *barrier_thread(void *arg)
{
	if (go_to((intptr_t)arg))
		return "no CPU";
	while (!time_is_up())
		if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
			return "membarrier";
	return NULL;
}

static bool barriers(void)
{
	return !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) &&
	       in_threads(cpus, barrier_thread);
}

/* ---- kicks: each thread signals the next one when it has been signalled ---- */

static pid_t kicked[MAX_THREADS];
static pthread_barrier_t kickers_ready;

static void *kicker(void *arg)
{
	int n = (intptr_t)arg, count = cpus + 1, signal;
	sigset_t set;
	bool last;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	kicked[n] = gettid();
	if (go_to(n))
		return "no CPU";
	pthread_barrier_wait(&kickers_ready);
	if (n == 0)
		syscall(SYS_tgkill, getpid(), kicked[1], SIGUSR1);
	for (;;) {
		if (sigwait(&set, &signal))
			return "sigwait";
		if (n == 0 && time_is_up())
			atomic_store(&over, true);
		/* of this round; later it may be the next round's, in which the others wait for
		 * this thread */
		last = answered();
		syscall(SYS_tgkill, getpid(), kicked[(n + 1) % count], SIGUSR1);
		if (last)
			return NULL;
	}
}

static bool kicks(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pthread_barrier_init(&kickers_ready, NULL, cpus + 1);
	return in_threads(cpus + 1, kicker);
}

/* ---- hops ---- */

static bool hops(void)
{
	for (int cpu = 0; !time_is_up(); cpu = (cpu + 1) % cpus)
		if (go_to(cpu) || sched_getcpu() != cpu)
			return false;
	return true;
}

/* ---- handovers ---- */

static _Atomic uint32_t turn[MAX_THREADS]; /* of each pair; an odd turn is the second thread's */

static void *partner(void *arg)
{
	int n = (intptr_t)arg;
	_Atomic uint32_t *mine = &turn[n / 2];
	uint32_t now;

	if (go_to(n))
		return "no CPU";
	for (;;) {
		while ((now = atomic_load(mine)) % 2 != (uint32_t)n % 2)
			futex_wait(mine, now);
		if (n % 2 == 0 && time_is_up())
			now |= 1u << 31; /* the last turn of both */
		atomic_store(mine, now + 1);
		futex_wake(mine);
		if (now >> 31)
			return NULL;
	}
}

static bool handovers(void) { return in_threads(cpus + cpus % 2, partner); }

/* ---- all parts, a process each ---- */

static const struct part {
	const char *name;
	bool (*run)(void);
} parts[] = { { "timers", timers },
	      { "barriers", barriers },
	      { "kicks", kicks },
	      { "hops", hops },
	      { "handovers", handovers } };

int main(int argc, char **argv)
{
	enum { PARTS = sizeof parts / sizeof *parts };
	pid_t pid[PARTS];
	int status;

	cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus > MAX_THREADS - 2)
		cpus = MAX_THREADS - 2;
	end_ns = check_now_ns() + (argc > 1 ? atoi(argv[1]) : 10) * 1000000000LL;
	for (int i = 0; i < PARTS; i++)
		if ((pid[i] = fork()) == 0)
			_exit(parts[i].run() ? 0 : 1);
	printf("storm\n");
	fflush(stdout);
	for (int i = 0; i < PARTS; i++)
		expect(parts[i].name, waitpid(pid[i], &status, 0) == pid[i] && WIFEXITED(status) &&
					      !WEXITSTATUS(status));
	return check_result();
}
