/* wakes.c - two threads on two processors wake each other in turns, and each sleeps meanwhile.
 *
 *   wakes ROUNDS [CPU CPU]
 *
 * By two pipes, by a condition variable, and by signals.  Prints "KIND NS ns" for each, the time of
 * one wake-up, on standard error, and "all well" if each thread was woken as often as it should.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include "tests/guest/check.h"

static unsigned rounds;
static int cpu[2] = { 0, 1 };
static unsigned woken[2];

static void bind_to(int which)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(which, &set);
	if (sched_setaffinity(0, sizeof set, &set)) {
		perror("wakes: sched_setaffinity");
		exit(2);
	}
}

/* ---- by pipes ---- */

static int to[2][2]; /* pipes to either thread */

static void pass_byte(int me)
{
	char byte = 0;

	woken[me] += read(to[me][0], &byte, 1) == 1;
	if (write(to[!me][1], &byte, 1) != 1)
		exit(2);
}

static void start_pipes(void)
{
	if (write(to[0][1], "", 1) != 1)
		exit(2);
}

/* ---- by a condition variable ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;

static void pass_turn(int me)
{
	pthread_mutex_lock(&mutex);
	while (turn != me)
		pthread_cond_wait(&changed, &mutex);
	turn = !me;
	woken[me]++;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
}

static void start_turns(void) { turn = 0; }

/* ---- by signals ---- */

static pthread_t thread[2];
static pthread_barrier_t begun;

static void pass_signal(int me)
{
	sigset_t set;
	int which;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	woken[me] += !sigwait(&set, &which);
	pthread_kill(thread[!me], SIGUSR1);
}

static void start_signals(void) { pthread_kill(thread[0], SIGUSR1); }

/* ---- all of them ---- */

static const struct kind {
	const char *name;
	void (*start)(void), (*pass)(int me);
} kinds[] = {
	{ "pipe", start_pipes, pass_byte },
	{ "condition", start_turns, pass_turn },
	{ "signal", start_signals, pass_signal },
};
static const struct kind *kind;

static void *take_turns(void *arg)
{
	int me = (int)(intptr_t)arg;

	bind_to(cpu[me]);
	thread[me] = pthread_self();
	pthread_barrier_wait(&begun);
	if (me == 0)
		kind->start();
	for (unsigned i = 0; i < rounds; i++)
		kind->pass(me);
	pthread_barrier_wait(&begun); /* the last signal is for a thread that is there */
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t other;
	sigset_t set;

	rounds = argc == 2 || argc == 4 ? (unsigned)atoi(argv[1]) : 0;
	if (argc == 4)
		cpu[0] = atoi(argv[2]), cpu[1] = atoi(argv[3]);
	if (!rounds || pipe(to[0]) || pipe(to[1])) {
		fprintf(stderr, "usage: wakes ROUNDS [CPU CPU]\n");
		return 2;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_barrier_init(&begun, NULL, 2);
	for (kind = kinds; kind < kinds + sizeof kinds / sizeof *kinds; kind++) {
		int64_t begin = check_now_ns();

		woken[0] = woken[1] = 0;
		if (pthread_create(&other, NULL, take_turns, (void *)1))
			return 2;
		take_turns(NULL);
		pthread_join(other, NULL);
		fprintf(stderr, "%-10s %lld ns\n", kind->name,
			(long long)(check_now_ns() - begin) / (2 * rounds));
		expect(kind->name, woken[0] == rounds && woken[1] == rounds);
	}
	return check_result();
}
