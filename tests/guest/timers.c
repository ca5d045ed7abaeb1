/* timers.c - sleeps last long enough and end, timers fire, clocks never go back, on any
 * processor. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <poll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include "tests/guest/check.h"

enum { MS = 1000000 };

/* Returns whether the time since start_ns is at least `ms`, and not absurdly longer.  This is no
 * measurement. */
static bool lasted(int64_t start_ns, int64_t ms)
{
	int64_t took = check_now_ns() - start_ns;
	bool right = took >= ms * MS && took < ms * MS + 120000LL * MS;

	if (!right)
		printf("        took %lld ns, not %lld ms\n", (long long)took, (long long)ms);
	return right;
}

static void test_sleeps(void)
{
	struct timespec t = { 0, 30 * MS };
	int64_t start = check_now_ns();

	expect("nanosleep", nanosleep(&t, NULL) == 0 && lasted(start, 30));
	start = check_now_ns();
	expect("usleep", usleep(20000) == 0 && lasted(start, 20));
	start = check_now_ns();
	expect("sleep", sleep(1) == 0 && lasted(start, 1000));
	start = check_now_ns();
	expect("poll with a time-out", poll(NULL, 0, 25) == 0 && lasted(start, 25));
	start = check_now_ns();
	for (int i = 0; i < 20; i++) {
		t.tv_nsec = MS;
		nanosleep(&t, NULL);
	}
	expect("twenty sleeps of a millisecond", lasted(start, 20));
}

static volatile sig_atomic_t alarms;
static void on_alarm(int signal) { (void)signal, alarms++; }

static void test_alarms(void)
{
	struct itimerval every = { { 0, 10000 }, { 0, 10000 } }, never = { 0 };
	int64_t start = check_now_ns();
	uint64_t expirations = 0;
	struct itimerspec soon = { { 0, 5 * MS }, { 0, 5 * MS } };
	int fd;

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &every, NULL);
	while (alarms < 5)
		pause();
	setitimer(ITIMER_REAL, &never, NULL);
	expect("an interval timer fires five times", lasted(start, 50));
	alarms = 0;
	start = check_now_ns();
	every = (struct itimerval){ { 0, 20000 }, { 0, 20000 } };
	setitimer(ITIMER_REAL, &every, NULL);
	while (alarms < 3)
		;
	setitimer(ITIMER_REAL, &never, NULL);
	expect("and interrupts a busy loop", lasted(start, 60));
	fd = timerfd_create(CLOCK_MONOTONIC, 0);
	timerfd_settime(fd, 0, &soon, NULL);
	/* Long enough for a coarse clock.  A single sleep would not do, since one more alarm may be
	 * pending and would cut it short. */
	for (int64_t until = check_now_ns() + 100 * MS; check_now_ns() < until;)
		usleep(1000);
	expect("a timer descriptor counts",
	       read(fd, &expirations, sizeof expirations) == sizeof expirations &&
		       expirations >= 5);
}

/* Two threads on different processors show each other their clocks: after one has read its clock,
 * the other must not read an earlier time. */
static _Atomic int64_t latest;
static _Atomic int went_back;

static void *compare_clocks(void *number)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)((intptr_t)number % cpus), &set);
	sched_setaffinity(0, sizeof set, &set);
	for (int i = 0; i < 3000; i++) {
		int64_t before = latest, now = check_now_ns();

		if (now < before)
			went_back++;
		while (before < now &&
		       !__atomic_compare_exchange_n(&latest, &before, now, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST))
			;
		if (i % 100 == 0)
			sched_yield();
	}
	return NULL;
}

static void test_clocks(void)
{
	pthread_t id[4];
	int64_t last = check_now_ns();
	bool forward = true;
	struct timespec wall;

	for (int i = 0; i < 10000; i++) {
		int64_t now = check_now_ns();

		forward = forward && now >= last;
		last = now;
	}
	expect("the clock never goes back", forward);
	for (intptr_t i = 0; i < 4; i++)
		pthread_create(&id[i], NULL, compare_clocks, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(id[i], NULL);
	expect("nor from one processor to another", went_back == 0);
	clock_gettime(CLOCK_REALTIME, &wall);
	expect("it is later than 2024", wall.tv_sec > 1704067200);
}

int main(void)
{
	test_sleeps();
	test_alarms();
	test_clocks();
	return check_result();
}
