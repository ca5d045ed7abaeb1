/* contended.c - a CPU that is interrupted all the time must get a page that another CPU writes all
 * the time.
 *
 * One thread keeps writing a word.  The other one, on another CPU and under a timer of 50 us, waits
 * to see it change, a given number of times.  Over two hosts, each change is a page that comes and
 * goes, and takes longer to arrive than the time from one timer interrupt to the next.  A CPU that
 * takes the interrupt first, and reads the word then, mostly finds the page gone.  A failure shows
 * as a program that does not end.
 *
 *   contended [TIMES]      default: 300
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include "tests/guest/check.h"

static struct {
	_Alignas(4096) volatile uint32_t word; /* the only word in its page */
	_Alignas(4096) _Atomic bool over;
} shared;
static volatile sig_atomic_t ticks;

static void on_tick(int signal) { (void)signal, ticks++; }

static int go_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof set, &set);
}

static void *writer(void *arg)
{
	(void)arg;
	if (go_to(0))
		return "no CPU";
	while (!atomic_load_explicit(&shared.over, memory_order_relaxed))
		shared.word++;
	return NULL;
}

static bool start_timer(void)
{
	struct sigaction action = { .sa_handler = on_tick };
	struct itimerspec often = { { 0, 50000 }, { 0, 50000 } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
	timer_t timer;

	event._sigev_un._tid = gettid();
	return !sigaction(SIGRTMIN, &action, NULL) &&
	       !timer_create(CLOCK_MONOTONIC, &event, &timer) &&
	       !timer_settime(timer, 0, &often, NULL);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *result;

	expect("a writer", !pthread_create(&thread, NULL, writer, NULL));
	expect("a CPU with a timer", !go_to(1) && start_timer());
	for (int times = argc > 1 ? atoi(argv[1]) : 300; times > 0; times--)
		for (uint32_t before = shared.word; shared.word == before;)
			;
	atomic_store(&shared.over, true);
	expect("it was interrupted", ticks > 0);
	expect("the writer ends", !pthread_join(thread, &result) && !result);
	return check_result();
}
