/* openmp.c - what OpenMP promises, with teams of several sizes, more threads than processors among
 * them, and regions that change from barriers to tasks and back.  It is linked with this computer's
 * libgomp, so on several hosts it runs with the one that knows them (libgomp-patches/).
 *
 *   openmp [ROUNDS [THREADS]]     default: one round with teams of 2, 3 and 6 threads
 */
#include <omp.h>
#include <pthread.h>
#include "tests/guest/check.h"

enum { MOST = 6, STEPS = 20, LOCKED = 20, ITEMS = 300 };

/* Between two barriers each thread writes its own word, then reads all others' of this step. */
static bool barriers(int threads)
{
	static int step_of[MOST * 1024]; /* a page each */
	int wrong = 0;

	memset(step_of, 0, sizeof step_of);
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
	for (int step = 1; step <= STEPS; step++) {
		step_of[omp_get_thread_num() * 1024] = step;
#pragma omp barrier
		for (int i = 0; i < threads; i++)
			wrong += step_of[i * 1024] != step;
#pragma omp barrier
	}
	return !wrong;
}

static bool many_regions(void)
{
	int sum = 0, wanted = 0;

	for (int i = 0; i < STEPS; i++) {
		int threads = 1 + i % MOST;

		wanted += threads;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
		sum++;
	}
	return sum == wanted;
}

static bool nested(void)
{
	int inner = 0;

	omp_set_max_active_levels(2);
	for (int i = 0; i < 3; i++)
#pragma omp parallel num_threads(2)
	{
#pragma omp parallel num_threads(3)
		{
#pragma omp barrier
#pragma omp atomic
			inner++;
		}
#pragma omp barrier
	}
	return inner == 3 * 2 * 3;
}

static int fib(int n)
{
	int a, b;

	if (n < 2)
		return n;
#pragma omp task shared(a) if (n > 4)
	a = fib(n - 1);
#pragma omp task shared(b) if (n > 4)
	b = fib(n - 2);
#pragma omp taskwait
	return a + b;
}

/* In one region: barriers alone, then tasks that wait at a barrier, then barriers alone. */
static bool tasks(int threads)
{
	int done = 0, early = 0, result = 0, ordered = 0, looped = 0;

#pragma omp parallel num_threads(threads)
	{
		for (int i = 0; i < 5; i++) {
#pragma omp barrier
		}
		for (int i = 0; i < 10; i++) {
#pragma omp task
#pragma omp atomic
			done++;
		}
#pragma omp barrier
		if (__atomic_load_n(&done, __ATOMIC_SEQ_CST) != 10 * threads)
#pragma omp atomic
			early++;
		for (int i = 0; i < 5; i++) {
#pragma omp barrier
		}
#pragma omp single
		{
			result = fib(12);
#pragma omp task depend(out : ordered)
			ordered = 1;
#pragma omp task depend(inout : ordered)
			ordered = ordered * 10 + 2;
#pragma omp task depend(in : ordered)
			early += ordered != 12;
		}
#pragma omp single
#pragma omp taskloop grainsize(7)
		for (int i = 0; i < 100; i++)
#pragma omp atomic
			looped += i;
	}
	return done == 10 * threads && !early && result == 144 && ordered == 12 && looped == 4950;
}

static bool sections_and_singles(int threads)
{
	int seen[4] = { 0 }, singles = 0, copied = 0, wrong = 0;

#pragma omp parallel num_threads(threads) firstprivate(copied)
	for (int i = 0; i < STEPS; i++) {
#pragma omp sections
		{
#pragma omp section
			seen[0]++;
#pragma omp section
			seen[1]++;
#pragma omp section
			seen[2]++;
		}
#pragma omp single nowait
#pragma omp atomic
		singles++;
#pragma omp single copyprivate(copied)
		copied = i + 7;
		if (copied != i + 7)
#pragma omp atomic
			wrong++;
#pragma omp master
		seen[3]++;
	}
	return seen[0] == STEPS && seen[1] == STEPS && seen[2] == STEPS && seen[3] == STEPS &&
	       singles == STEPS && !wrong;
}

/* Each iteration is done once, whatever deals them out, and those of one thread come in order. */
static uint8_t times[2 * ITEMS];
#define EACH_ONCE(start, end, step, pragma) do { \
	int wrong = 0; \
	memset(times, 0, sizeof times); \
	_Pragma("omp parallel num_threads(threads) reduction(+ : wrong)") { \
		long last = -1000000; \
		_Pragma(pragma) \
		for (long i = (start); i < (end); i += (step)) { \
			times[i + ITEMS]++; \
			wrong += i <= last; \
			last = i; \
		} \
	} \
	for (long i = -ITEMS; i < ITEMS; i++) \
		wrong += times[i + ITEMS] != \
			 (i >= (start) && i < (end) && !((i - (start)) % (step))); \
	good = good && !wrong; \
} while (0)

static bool loops(int threads)
{
	bool good = true;

	for (int size = 0; size < 5; size++) {
		long n = size * size * 18; /* none, and up to 288 */

		EACH_ONCE(0, n, 1, "omp for schedule(static, 3)");
		EACH_ONCE(0, n, 1, "omp for schedule(monotonic: dynamic)");
		EACH_ONCE(-5, n, 1, "omp for schedule(monotonic: dynamic, 4) nowait");
		EACH_ONCE(-n, n, 1, "omp for schedule(monotonic: guided, 2)");
	}
	EACH_ONCE(-299, 299, 7, "omp for schedule(monotonic: dynamic, 2)");
	return good;
}

static bool ordered_loop(int threads)
{
	int next = 0, wrong = 0;

#pragma omp parallel for num_threads(threads) schedule(dynamic, 3) ordered
	for (int i = 0; i < 40; i++)
#pragma omp ordered
		wrong += next++ != i;
	return !wrong && next == 40;
}

static bool loops_downwards(int threads)
{
	int wrong = 0;

	memset(times, 0, sizeof times);
#pragma omp parallel num_threads(threads)
	{
#pragma omp for schedule(dynamic, 2) nowait
		for (long i = ITEMS - 1; i >= 0; i -= 3)
			times[i]++;
#pragma omp for schedule(guided)
		for (unsigned long long i = ITEMS; i < 2 * ITEMS; i += 3)
			times[i]++;
#pragma omp for schedule(dynamic, 5)
		for (long long i = ITEMS - 2; i >= 0; i -= 3)
			times[i]++;
	}
	for (int i = 0; i < ITEMS; i++)
		wrong += times[i] != (i % 3 != 0);
	for (int i = 0; i < ITEMS; i++)
		wrong += times[ITEMS + i] != (i % 3 == 0);
	return !wrong;
}

/* Iterations that take very different times. */
static volatile int sink;

static bool uneven_loops(int threads)
{
	int sum = 0;

#pragma omp parallel for num_threads(threads) schedule(dynamic) reduction(+ : sum)
	for (int i = 0; i < 200; i++) {
		for (int k = 0; k < (i < 4 ? 200000 : 10); k++)
			sink = k;
		sum += i;
	}
	return sum == 19900;
}

static bool locks(int threads)
{
	static int counts[5];
	omp_lock_t lock;
	omp_nest_lock_t nest;
	double real = 0;

	memset(counts, 0, sizeof counts);
	omp_init_lock(&lock);
	omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(threads) reduction(+ : real)
	for (int i = 0; i < LOCKED; i++) {
		omp_set_lock(&lock);
		counts[0]++;
		omp_unset_lock(&lock);
		omp_set_nest_lock(&nest);
		omp_set_nest_lock(&nest);
		counts[1]++;
		omp_unset_nest_lock(&nest);
		omp_unset_nest_lock(&nest);
#pragma omp critical
		counts[2]++;
#pragma omp critical(named)
		counts[3]++;
#pragma omp atomic
		counts[4]++;
		real += 0.5;
	}
	for (int i = 0; i < 5; i++)
		if (counts[i] != threads * LOCKED)
			return false;
	if (!omp_test_lock(&lock) || omp_test_lock(&lock))
		return false;
	omp_unset_lock(&lock);
	omp_destroy_lock(&lock);
	omp_destroy_nest_lock(&nest);
	return real == threads * LOCKED * 0.5;
}

/* More locks than get a page of their own, one lying behind the other. */
static bool many_locks(int threads)
{
	enum { LOCKS = 400 };
	static omp_lock_t lock[LOCKS];
	static int count[LOCKS];
	bool good = true;

	memset(count, 0, sizeof count);
	for (int i = 0; i < LOCKS; i++)
		omp_init_lock(&lock[i]);
#pragma omp parallel num_threads(threads)
	for (int i = 0; i < LOCKS; i++) {
		omp_set_lock(&lock[i]);
		count[i]++;
		omp_unset_lock(&lock[i]);
	}
	for (int i = 0; i < LOCKS; i++) {
		good = good && count[i] == threads;
		omp_destroy_lock(&lock[i]);
	}
	return good;
}

/* With OMP_CANCELLATION=true the loop ends early, and all threads meet behind it. */
static bool cancellation(int threads)
{
	int done = 0, met = 0, cancelled = 0;

#pragma omp parallel num_threads(threads)
	{
#pragma omp for schedule(dynamic)
		for (int i = 0; i < ITEMS; i++) {
#pragma omp atomic
			done++;
			if (i == 10) {
#pragma omp cancel for
			}
#pragma omp cancellation point for
		}
#pragma omp atomic
		met++;
#pragma omp barrier
#pragma omp cancel parallel
#pragma omp atomic
		cancelled++;
	}
	return met == threads && (omp_get_cancellation() ? !cancelled && done < ITEMS
							 : cancelled == threads && done == ITEMS);
}

/* Threads that OpenMP did not make have teams of their own at the same time. */
static void *own_team(void *good)
{
	*(bool *)good = barriers(2) && many_regions();
	return NULL;
}

static bool teams_beside_teams(void)
{
	bool good[2] = { false, false };
	pthread_t other;

	if (pthread_create(&other, NULL, own_team, &good[0]))
		return false;
	for (int i = 0; i < 10; i++)
		good[1] = many_regions();
	pthread_join(other, NULL);
	return good[0] && good[1];
}

static bool good[10] = { true, true, true, true, true, true, true, true, true, true };

static void round_of(int n)
{
	good[0] = barriers(n) && good[0];
	good[1] = tasks(n) && barriers(n) && good[1];
	good[2] = sections_and_singles(n) && good[2];
	good[3] = loops(n) && ordered_loop(n) && good[3];
	good[4] = loops_downwards(n) && uneven_loops(n) && good[4];
	good[5] = locks(n) && many_locks(n) && good[5];
	good[6] = cancellation(n) && good[6];
	good[7] = many_regions() && good[7];
	good[8] = nested() && good[8];
	good[9] = teams_beside_teams() && good[9];
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;

	for (int k = 0; k < rounds; k++) {
		if (argc > 2) {
			round_of(atoi(argv[2]) % (MOST + 1));
			continue;
		}
		round_of(2);
		round_of(3);
		round_of(MOST);
	}
	expect("a barrier lets nobody pass before all are there", good[0]);
	expect("tasks are done at the barrier, and barriers without tasks come after", good[1]);
	expect("sections, singles, copied values", good[2]);
	expect("each iteration once and in order, whatever deals them out", good[3]);
	expect("downwards, in steps, with 64 bits, and uneven", good[4]);
	expect("locks, critical and atomic sections, reductions", good[5]);
	expect("cancellation, if it is on", good[6]);
	expect("teams of changing sizes", good[7]);
	expect("teams within teams", good[8]);
	expect("teams beside teams", good[9]);
	return check_result();
}
