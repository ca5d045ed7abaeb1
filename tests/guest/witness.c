/* witness.c - notices an interrupt that is lost or comes twice, or a clock that jumps or stops,
 * while the machine beneath is changed (tests/machine/hosts, moves):
 *
 *   ping-pong   a number passes back and forth through pipes between threads on neighbouring
 *               processors, each of which sleeps meanwhile
 *   timers      a timer of 10 ms on each processor, whose expirations the kernel counts: neither
 *               too many nor too few
 *   ticks       jiffies keep up with the clock; a processor never has more timer interrupts than
 *               the timers explain
 *   clock       it never goes back, on one processor or from one to the next
 *
 *   witness SECONDS
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include "check.h"

enum {
	MAX_CPUS = 32,
	MS = 1000000,
	PERIOD_MS = 10,
	TICK_MS = 10,
	TICKS_APART = 10,
	PATIENCE = 20,
	LINE_BYTES = 1024
};

static int64_t end_ns;
static int n_cpus;
static _Atomic int64_t latest; /* the last time that any processor has read */
static _Atomic int went_back, wrong_counts;

static struct post {
	int ping[2], pong[2]; /* pipes from and to the next processor */
	long expirations;
	int64_t since_ns, until_ns; /* sure bounds of the timer's life */
	int64_t most_since_ns, most_until_ns;
} post[MAX_CPUS];

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)(cpu % n_cpus), &set);
	sched_setaffinity(0, sizeof set, &set);
}

static void look_at_clock(void)
{
	int64_t before = latest, now = check_now_ns();

	if (now < before)
		went_back++;
	while (before < now && !atomic_compare_exchange_weak(&latest, &before, now))
		;
}

static void *play_ping(void *arg)
{
	struct post *p = arg;
	long n = 0, back = 0;

	pin((int)(p - post));
	do { /* once at least, however late this thread runs */
		n++;
		if (write(p->ping[1], &n, sizeof n) != sizeof n ||
		    read(p->pong[0], &back, sizeof back) != sizeof back || back != n) {
			fprintf(stderr, "CPU %d: %ld went round, %ld came back, errno %d\n",
				(int)(p - post), n, back, errno);
			wrong_counts++;
		}
		look_at_clock();
	} while (check_now_ns() < end_ns);
	close(p->ping[1]);
	return NULL;
}

static void *play_pong(void *arg)
{
	struct post *p = arg;
	long n;

	pin((int)(p - post) + 1);
	while (read(p->ping[0], &n, sizeof n) == sizeof n) {
		look_at_clock();
		if (write(p->pong[1], &n, sizeof n) != sizeof n)
			wrong_counts++;
	}
	return NULL;
}

/* The kernel counts expirations that nobody reads, so the sum covers the timer's whole life,
 * whenever this thread runs. */
static void *count_expirations(void *arg)
{
	struct itimerspec every = { { 0, PERIOD_MS * MS }, { 0, PERIOD_MS * MS } };
	struct post *p = arg;
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	uint64_t n = 0;

	pin((int)(p - post));
	p->most_since_ns = check_now_ns();
	timerfd_settime(fd, 0, &every, NULL);
	p->since_ns = check_now_ns();
	do {
		p->until_ns = check_now_ns();
		if (read(fd, &n, sizeof n) != sizeof n) {
			fprintf(stderr, "CPU %d: no expirations, errno %d\n", (int)(p - post),
				errno);
			wrong_counts++;
		}
		p->expirations += (long)n;
		p->most_until_ns = check_now_ns();
	} while (p->most_until_ns < end_ns);
	close(fd);
	return NULL;
}

/* Returns how far jiffies are ahead of the clock, in ticks, except for a constant.  They are never
 * early.  They are late as long as the processor that counts them waits for its host or for pages.
 * So the least late of some samples counts, and there may be none for a while. */
static int64_t ticks_ahead(void)
{
	int64_t most = INT64_MIN;

	for (int i = 0; i < 50; i++) {
		int64_t ahead = (int64_t)times(&(struct tms){ 0 }) -
				check_now_ns() / (TICK_MS * MS);

		if (ahead > most)
			most = ahead;
		usleep(20000);
	}
	return most;
}

/* Checks, with some patience, that jiffies are where they should be; ticks that are lost stay
 * lost. */
static bool jiffies_keep_up(int64_t before)
{
	int64_t apart = 0;

	for (int i = 0; i < PATIENCE; i++) {
		apart = ticks_ahead() - before;
		if (llabs(apart) <= TICKS_APART)
			return true;
		fprintf(stderr, "jiffies are %lld ticks ahead of where they were\n",
			(long long)apart);
	}
	return false;
}

/* Reads the local timers' interrupts so far, by processor. */
static bool read_interrupts(long counts[MAX_CPUS])
{
	char line[LINE_BYTES];
	FILE *f = fopen("/proc/interrupts", "r");
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f)) {
		char *at = strstr(line, "LOC:");

		found = at;
		at += at ? 4 : 0;
		for (int cpu = 0; found && cpu < n_cpus; cpu++)
			counts[cpu] = strtol(at, &at, 10);
	}
	if (f)
		fclose(f);
	return found;
}

int main(int argc, char **argv)
{
	int64_t ahead = ticks_ahead(), start = check_now_ns();
	long before[MAX_CPUS], after[MAX_CPUS];
	bool counted = true, explained = true;
	pthread_t thread[MAX_CPUS][3];

	n_cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (n_cpus > MAX_CPUS)
		n_cpus = MAX_CPUS;
	end_ns = start + (argc > 1 ? atoi(argv[1]) : 5) * 1000LL * MS;
	if (!expect("the interrupts are counted", read_interrupts(before)))
		return check_result();
	for (int cpu = 0; cpu < n_cpus; cpu++) {
		struct post *p = &post[cpu];

		if (pipe(p->ping) || pipe(p->pong) ||
		    pthread_create(&thread[cpu][0], NULL, play_ping, p) ||
		    pthread_create(&thread[cpu][1], NULL, play_pong, p) ||
		    pthread_create(&thread[cpu][2], NULL, count_expirations, p))
			return 2;
	}
	for (int cpu = 0; cpu < n_cpus; cpu++)
		for (int i = 0; i < 3; i++)
			pthread_join(thread[cpu][i], NULL);
	read_interrupts(after);
	for (int cpu = 0; cpu < n_cpus; cpu++) {
		const struct post *p = &post[cpu];
		int64_t sure = (p->until_ns - p->since_ns) / (PERIOD_MS * MS),
			most = (p->most_until_ns - p->most_since_ns) / (PERIOD_MS * MS);

		if (p->expirations < sure - 1 || p->expirations > most + 1) {
			fprintf(stderr, "CPU %d: %ld expirations, not %lld to %lld\n", cpu,
				p->expirations, (long long)sure - 1, (long long)most + 1);
			counted = false;
		}
	}
	/* Each interrupt comes from the tick, or from a sleeper's timer.  This program has one
	 * sleeper for each processor, which may sleep on any of them.  Other programs may add a few
	 * interrupts, but not a second one for each. */
	int64_t ms = (check_now_ns() - start) / MS;

	for (int cpu = 0; cpu < n_cpus; cpu++)
		if (after[cpu] - before[cpu] > 3 * (ms / TICK_MS) + 200) {
			fprintf(stderr, "CPU %d: %ld timer interrupts in %lld ms\n", cpu,
				after[cpu] - before[cpu], (long long)ms);
			explained = false;
		}
	expect("what went round came back", !wrong_counts);
	expect("each timer expired as often as time says", counted);
	expect("no timer interrupt too many", explained);
	expect("jiffies keep up with the clock", jiffies_keep_up(ahead));
	expect("the clock never goes back", !went_back);
	return check_result();
}
