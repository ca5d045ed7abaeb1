/* litmus.c - does this machine's memory behave as an IA-32 multiprocessor's?
 *
 *   litmus [--test NAME] [--iterations N] [--together N] [--pages same|different] [--seed N]
 *          [--quiet] [--list]
 *
 * The classical litmus tests, each as written and with fences or locked operations in the place of
 * its writes.  What a test may show is not written down by hand: an exhaustive run of the x86-TSO
 * abstract machine (Owens, Sarkar, Sewell, "A better x86 memory model: x86-TSO": a store buffer per
 * processor that it reads from first, and a lock) over the same table computes the allowed
 * outcomes; every other one that the hardware shows is forbidden, is marked, and makes the exit
 * status 1.  The tests run on threads bound to processors in varied ways, with variables on one
 * page or on pages of their own (on a machine made of several hosts, pages are what travels), after
 * a random choice of processors has touched them, so that stale copies are there to be seen.
 *
 * A round of one test takes several fetches of pages, most of them for its barriers.  With
 * --together N each thread goes through N instances of the test in each round without waiting for
 * the others.  Each instance has its own words in the same pages, so that pages leave and arrive
 * between any two accesses.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

/* ---- The tests ---- */

enum { MAX_THREADS = 4, MAX_OPS = 4, VARIABLES = 2, MAX_REGISTERS = 4, PAGE = 4096 };

enum op_kind {
	OP_END,
	OP_READ,  /* register = variable */
	OP_WRITE, /* variable = value: what the variants strengthen */
};

struct op {
	enum op_kind kind;
	unsigned variable; /* 0: x, 1: y */
	unsigned what;	   /* the value, or the register's number */
};

#define R(variable, reg) { OP_READ, variable, reg }
#define W(variable, value) { OP_WRITE, variable, value }
enum { X, Y };

static const struct test {
	const char *name;
	unsigned registers;
	bool final; /* the variables' last values are part of the outcome */
	struct op thread[MAX_THREADS][MAX_OPS];
} tests[] = {
	{ "SB", 2, false, { { W(X, 1), R(Y, 0) }, { W(Y, 1), R(X, 1) } } },
	{ "MP", 2, false, { { W(X, 1), W(Y, 1) }, { R(Y, 0), R(X, 1) } } },
	{ "LB", 2, false, { { R(X, 0), W(Y, 1) }, { R(Y, 1), W(X, 1) } } },
	{ "WRC", 3, false, { { W(X, 1) }, { R(X, 0), W(Y, 1) }, { R(Y, 1), R(X, 2) } } },
	{ "IRIW", 4, false,
	  { { W(X, 1) }, { W(Y, 1) }, { R(X, 0), R(Y, 1) }, { R(Y, 2), R(X, 3) } } },
	{ "2+2W", 0, true, { { W(X, 1), W(Y, 2) }, { W(Y, 1), W(X, 2) } } },
	{ "S", 1, true, { { W(X, 2), W(Y, 1) }, { R(Y, 0), W(X, 1) } } },
	{ "R", 1, true, { { W(X, 1), W(Y, 1) }, { W(Y, 2), R(X, 0) } } },
};

/* What stands in the place of a write. */
static const struct variant {
	const char *name;
	bool fence;  /* mfence after it */
	bool locked; /* xchg instead of mov */
} variants[] = { { "", false, false }, { "+mfence", true, false }, { "+locked", false, true } };

enum { N_TESTS = sizeof tests / sizeof *tests, N_VARIANTS = sizeof variants / sizeof *variants };

static unsigned count_threads(const struct test *t)
{
	unsigned n = 0;

	while (n < MAX_THREADS && t->thread[n][0].kind != OP_END)
		n++;
	return n;
}

/* An outcome as a number: two bits for each register, then for each variable if they count. */
enum { OUTCOMES = 1 << 2 * (MAX_REGISTERS + VARIABLES) };

static unsigned encode(const struct test *t, const uint32_t *registers, const uint32_t *variables)
{
	unsigned code = 0;

	for (unsigned i = 0; i < t->registers; i++)
		code |= registers[i] << 2 * i;
	for (unsigned i = 0; t->final && i < VARIABLES; i++)
		code |= variables[i] << 2 * (MAX_REGISTERS + i);
	return code;
}

static void print_outcome(const struct test *t, unsigned code)
{
	for (unsigned i = 0; i < t->registers; i++)
		printf("r%u=%u ", i, code >> 2 * i & 3);
	for (unsigned i = 0; t->final && i < VARIABLES; i++)
		printf("%c=%u ", "xy"[i], code >> 2 * (MAX_REGISTERS + i) & 3);
}

/* ---- What x86-TSO allows: every step of every processor, tried in every order ---- */

struct tso_cpu {
	unsigned next;	   /* operation */
	bool fence_due;	   /* the fence after the last write has not been passed */
	unsigned buffered; /* writes in the store buffer, oldest first */
	struct op buffer[MAX_OPS];
};

struct tso {
	struct tso_cpu cpu[MAX_THREADS];
	uint32_t variable[VARIABLES], reg[MAX_REGISTERS];
};

static uint32_t tso_read(const struct tso *s, const struct tso_cpu *c, unsigned variable)
{
	for (unsigned i = c->buffered; i-- > 0;)
		if (c->buffer[i].variable == variable)
			return c->buffer[i].what;
	return s->variable[variable];
}

/* The oldest buffered write reaches memory. */
static void tso_drain_one(struct tso *s, struct tso_cpu *c)
{
	s->variable[c->buffer[0].variable] = c->buffer[0].what;
	memmove(c->buffer, c->buffer + 1, --c->buffered * sizeof *c->buffer);
}

/* Processor c does its next operation; false if it cannot now (a fence or a lock waits for the
 * buffer) or has none. */
static bool tso_execute(struct tso *s, struct tso_cpu *c, const struct op *ops,
			const struct variant *v)
{
	const struct op *op = &ops[c->next];

	if (c->next == MAX_OPS || op->kind == OP_END)
		return false;
	if ((c->fence_due || (v->locked && op->kind == OP_WRITE)) && c->buffered)
		return false;
	c->fence_due = false;
	if (op->kind == OP_READ) {
		s->reg[op->what] = tso_read(s, c, op->variable);
	} else if (v->locked) {
		s->variable[op->variable] = op->what;
	} else {
		c->buffer[c->buffered++] = *op;
		c->fence_due = v->fence;
	}
	c->next++;
	return true;
}

/* At most some ten thousand paths for the largest test: no need to remember states. */
static void tso_explore(const struct test *t, const struct variant *v, const struct tso *s,
			bool *allowed)
{
	bool moved = false;

	for (unsigned i = 0; i < MAX_THREADS; i++) {
		struct tso next = *s;

		if (tso_execute(&next, &next.cpu[i], t->thread[i], v)) {
			tso_explore(t, v, &next, allowed);
			moved = true;
		}
		if (s->cpu[i].buffered) {
			next = *s;
			tso_drain_one(&next, &next.cpu[i]);
			tso_explore(t, v, &next, allowed);
			moved = true;
		}
	}
	if (!moved)
		allowed[encode(t, s->reg, s->variable)] = true;
}

/* ---- The real machine ---- */

/* Pairs of variables, each on pages of its own, so that one round's pages are not the next
 * one's. */
enum { POOL = 16, MAX_TOGETHER = 400 };

struct arena {
	/* In the first two pages what all share: the barrier and the plan of a round. */
	_Alignas(PAGE) _Atomic uint32_t arrived, round;
	volatile uint64_t meeting; /* time-stamp counter at which the threads may start together */
	_Alignas(PAGE) struct {
		uint32_t slot, meet, touch[MAX_THREADS], delay[MAX_THREADS];
	} plan;
	_Alignas(PAGE) struct {
		_Alignas(64) uint32_t reg[MAX_TOGETHER][MAX_REGISTERS];
	} result[MAX_THREADS];
	_Alignas(PAGE) uint32_t variables[POOL * VARIABLES * PAGE / sizeof(uint32_t)];
};

static struct arena *arena;
static const struct test *test;
static const struct variant *variant;
static unsigned n_threads, placement, n_cpus;
static uint32_t iterations = 1000, seed = 1, together = 1;
static bool different_pages = true;
static uint64_t histogram[OUTCOMES];

static volatile uint32_t *variable_of(unsigned slot, unsigned variable, uint32_t instance)
{
	enum { PAGE_WORDS = PAGE / sizeof(uint32_t), FIRST = 16 };
	size_t stride = different_pages ? PAGE_WORDS : PAGE_WORDS / 2;

	_Static_assert(FIRST + POOL + MAX_TOGETHER <= PAGE_WORDS / 2, "half a page");
	/* Never at a page's start, so that a wrong offset is not hidden. */
	return &arena->variables[slot * VARIABLES * PAGE_WORDS + variable * stride + FIRST + slot +
				 instance];
}

static uint32_t random32(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	return seed ^= seed << 5;
}

/* Who leaves the barrier learns of it from a page that has to be fetched: on several hosts the
 * threads then start some 300 us apart, more than most windows are wide.  So in half of the rounds
 * they meet at a time named in that page.  On hosts with counters of their own the named time may
 * be long past or far away: nobody waits longer than twice the time. */
enum { MEETING_CYCLES = 5000000 };

static void wait_until(uint64_t at)
{
	uint64_t here = __builtin_ia32_rdtsc(), now;

	while ((now = __builtin_ia32_rdtsc()) < at && now - here < 2 * MEETING_CYCLES)
		__builtin_ia32_pause();
}

static void barrier(void)
{
	uint32_t round = arena->round;

	if (__sync_add_and_fetch(&arena->arrived, 1) == n_threads) {
		arena->arrived = 0;
		arena->meeting = __builtin_ia32_rdtsc() + MEETING_CYCLES;
		arena->round = round + 1;
		return;
	}
	/* Spin for the others' sake of meeting at one moment, then let threads of this processor
	 * run, then sleep: a processor that waits may be one that another one's host needs. */
	for (unsigned spins = 1; arena->round == round; spins++)
		if (spins % 20000 == 0)
			usleep(20);
		else if (spins % 500 == 0)
			sched_yield();
		else
			__builtin_ia32_pause();
}

static void execute(const struct op *ops, volatile uint32_t *const v[VARIABLES], uint32_t *reg)
{
	const bool fence = variant->fence, locked = variant->locked;

	for (const struct op *op = ops; op < ops + MAX_OPS && op->kind != OP_END; op++) {
		volatile uint32_t *at = v[op->variable];

		if (op->kind == OP_READ) {
			reg[op->what] = *at;
		} else if (locked) {
			uint32_t value = op->what;

			__asm__ volatile("xchgl %0, %1" : "+r"(value), "+m"(*at) : : "memory");
		} else {
			*at = op->what;
			if (fence)
				__asm__ volatile("mfence" : : : "memory");
		}
	}
}

/* A thread starts up to 2^k turns of an empty loop late, k random: from what a cache line takes on
 * its way (some ns) to what a page takes (some 100 us). */
enum { MAX_DELAY_BITS = 21 };

/* A new round: clean variables, and a random choice of who holds copies of what and who starts how
 * late. */
static void plan_round(uint32_t number)
{
	arena->plan.slot = number % POOL;
	arena->plan.meet = random32() & 1;
	for (unsigned i = 0; i < n_threads; i++) {
		uint32_t r = random32();

		arena->plan.touch[i] = r & 3;
		arena->plan.delay[i] = random32() & ((1u << (r >> 8) % MAX_DELAY_BITS) - 1);
	}
	for (unsigned i = 0; i < VARIABLES; i++)
		for (uint32_t k = 0; k < together; k++)
			*variable_of(arena->plan.slot, i, k) = 0;
}

static void count_outcome(uint32_t instance)
{
	uint32_t reg[MAX_REGISTERS] = { 0 }, variables[VARIABLES];

	for (unsigned i = 0; i < n_threads; i++)
		for (const struct op *op = test->thread[i]; op < test->thread[i] + MAX_OPS; op++)
			if (op->kind == OP_READ)
				reg[op->what] = arena->result[i].reg[instance][op->what];
	for (unsigned i = 0; i < VARIABLES; i++)
		variables[i] = *variable_of(arena->plan.slot, i, instance);
	histogram[encode(test, reg, variables)]++;
}

/* placement p puts thread i on processor (i * stride + shift): neighbours together, apart, and in
 * other orders. */
static void bind_thread(unsigned i)
{
	static const unsigned strides[] = { 1, 3, 1, 5 };
	unsigned stride = strides[placement % 4], shift = placement;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((i * stride + shift) % n_cpus, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static void wait_turns(uint32_t turns)
{
	for (uint32_t k = 0; k < turns; k++)
		__asm__ volatile("");
}

/* The first instance starts as the plan of the round says.  In rounds with a meeting, each further
 * one has a time of its own, about as far from the one before as a page's way is long; a thread
 * starts up to twice that late, so that it meets the others in many ways.  In other rounds a thread
 * that has both pages runs on until it loses one. */
enum { BETWEEN_CYCLES = 50000, LATE_BITS = 16, TURNS_BITS = 11 };

static uint32_t of_bits(uint32_t random, unsigned most)
{
	return (random >> 8) & ((1u << (random >> 4) % most) - 1);
}

static void wait_before(uint32_t instance, uint32_t random, bool meets)
{
	if (meets)
		wait_until(arena->meeting + (uint64_t)instance * BETWEEN_CYCLES +
			   of_bits(random, LATE_BITS + 1));
	else if (random >> 31)
		wait_turns(of_bits(random, TURNS_BITS));
}

static void execute_all(unsigned me, uint32_t round, bool meets)
{
	uint32_t random = round * 2654435761u + me * 40503u + 1;

	for (uint32_t instance = 0; instance < together; instance++) {
		volatile uint32_t *v[VARIABLES];

		for (unsigned k = 0; k < VARIABLES; k++)
			v[k] = variable_of(arena->plan.slot, k, instance);
		random = random * 1664525u + 1013904223u;
		if (instance)
			wait_before(instance, random, meets);
		execute(test->thread[me], v, arena->result[me].reg[instance]);
	}
}

static void *run_thread(void *number)
{
	unsigned me = (unsigned)(uintptr_t)number;

	bind_thread(me);
	for (uint32_t i = 0; i < iterations; i++) {
		if (me == i % n_threads)
			plan_round(i);
		barrier();
		for (unsigned k = 0; k < VARIABLES; k++)
			if (arena->plan.touch[me] & 1u << k)
				(void)*variable_of(arena->plan.slot, k, 0);
		uint32_t delay = arena->plan.delay[me], meets = arena->plan.meet;
		barrier();
		if (meets)
			wait_until(arena->meeting);
		wait_turns(delay);
		execute_all(me, i, meets);
		barrier();
		for (uint32_t k = 0; me == i % n_threads && k < together; k++)
			count_outcome(k);
		barrier();
	}
	return NULL;
}

static void run_threads(void)
{
	pthread_t id[MAX_THREADS];

	n_threads = count_threads(test);
	arena->arrived = 0;
	for (unsigned i = 0; i < n_threads; i++)
		if (pthread_create(&id[i], NULL, run_thread, (void *)(uintptr_t)i)) {
			fprintf(stderr, "litmus: cannot create a thread\n");
			exit(2);
		}
	for (unsigned i = 0; i < n_threads; i++)
		pthread_join(id[i], NULL);
}

/* ---- Reports ---- */

/* Runs one test in one variant, a quarter of the rounds under each placement; returns how often it
 * went wrong. */
static uint64_t run_test(bool quiet)
{
	static bool allowed[OUTCOMES];
	static const struct tso start;
	uint64_t forbidden = 0, rounds = iterations;

	memset(allowed, 0, sizeof allowed);
	memset(histogram, 0, sizeof histogram);
	tso_explore(test, variant, &start, allowed);
	iterations = (uint32_t)(rounds + 3) / 4;
	for (placement = 0; placement < 4; placement++)
		run_threads();
	iterations = (uint32_t)rounds;
	for (unsigned i = 0; i < OUTCOMES; i++)
		if (!allowed[i])
			forbidden += histogram[i];
	printf("%s%s: %s\n", test->name, variant->name, forbidden ? "FORBIDDEN" : "ok");
	for (unsigned i = 0; i < OUTCOMES && (!quiet || forbidden); i++)
		if (histogram[i] || allowed[i]) {
			printf("  %8llu  ", (unsigned long long)histogram[i]);
			print_outcome(test, i);
			printf("%s\n", allowed[i] ? "" : " FORBIDDEN");
		}
	fflush(stdout);
	return forbidden;
}

static void list_allowed(void)
{
	static bool allowed[OUTCOMES];
	static const struct tso start;

	memset(allowed, 0, sizeof allowed);
	tso_explore(test, variant, &start, allowed);
	printf("%s%s allows:", test->name, variant->name);
	for (unsigned i = 0; i < OUTCOMES; i++)
		if (allowed[i]) {
			printf("  ");
			print_outcome(test, i);
		}
	printf("\n");
}

static int usage(void)
{
	fprintf(stderr, "usage: litmus [--test NAME] [--iterations N] [--together N] "
			"[--pages same|different] [--seed N] [--quiet] [--list]\nNAME:");
	for (unsigned i = 0; i < N_TESTS; i++)
		fprintf(stderr, " %s", tests[i].name);
	fprintf(stderr, ", each also with +mfence or +locked after it\n");
	return 2;
}

/* "SB" names all three variants, "SB+mfence" one, NULL everything. */
static bool is_chosen(const char *name)
{
	size_t n = strlen(test->name);

	return !name ||
	       (!strncmp(name, test->name, n) && (!name[n] || !strcmp(name + n, variant->name)));
}

int main(int argc, char **argv)
{
	const char *chosen = NULL;
	bool quiet = false, list = false;
	uint64_t forbidden = 0, run = 0;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!strcmp(argv[i], "--quiet"))
			quiet = true;
		else if (!strcmp(argv[i], "--list"))
			list = true;
		else if (value && !strcmp(argv[i], "--test"))
			chosen = argv[++i];
		else if (value && !strcmp(argv[i], "--iterations") && atoi(value) > 0)
			iterations = (uint32_t)atoi(argv[++i]);
		else if (value && !strcmp(argv[i], "--together") && atoi(value) > 0 &&
			 atoi(value) <= MAX_TOGETHER)
			together = (uint32_t)atoi(argv[++i]);
		else if (value && !strcmp(argv[i], "--seed") && atoi(value) > 0)
			seed = (uint32_t)atoi(argv[++i]);
		else if (value && !strcmp(argv[i], "--pages") &&
			 (!strcmp(value, "same") || !strcmp(value, "different")))
			different_pages = !strcmp(argv[++i], "different");
		else
			return usage();
	}
	n_cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	arena = mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (arena == MAP_FAILED) {
		perror("litmus: mmap");
		return 2;
	}
	for (test = tests; test < tests + N_TESTS; test++)
		for (variant = variants; variant < variants + N_VARIANTS; variant++) {
			if (!is_chosen(chosen))
				continue;
			run++;
			if (list)
				list_allowed();
			else
				forbidden += run_test(quiet);
		}
	if (!run)
		return usage();
	if (!list)
		printf("litmus: %llu tests, %llu forbidden outcomes\n", (unsigned long long)run,
		       (unsigned long long)forbidden);
	return forbidden ? 1 : 0;
}
