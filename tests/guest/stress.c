/* stress.c - everything at once for some seconds; each part proves that nothing was lost or mixed
 * up:
 *
 *   spaces    more processes than a CPU keeps address spaces, with different contents at the same
 *             addresses, also in TLS, in vector registers and behind pages that are copied on
 *             write; they take turns by pipes
 *   mappings  threads map, protect and unmap pages under each other. A thread that knows of a
 *             page's new contents must never see older ones; one that knows that a page is read
 *             only must not be able to write to it
 *   forks     processes that fork and execute up to a limit, and report by their exit status
 *   signals   processes that send each other real-time signals, none of which may be lost, besides
 *             an interval timer
 *   futexes   threads at a mutex, a condition and a barrier, counting
 *
 *   stress [SECONDS [PART...]]      default: 10, all parts
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "tests/guest/check.h"

static int64_t end_ns;
static bool time_is_up(void) { return check_now_ns() >= end_ns; }

/* Runs f(n) in `count` processes.  Returns how many ended with 0; says how the others ended. */
static int in_processes(int count, int (*f)(int))
{
	int good = 0, ended = 0, status;

	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(f(i));
		if (pid < 0)
			return -1;
	}
	while (count--) {
		pid_t pid = wait(&status);

		good += pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
		if (pid <= 0 || status)
			printf("process %d, the %dth of its part to end: status %#x, %lld ms after "
			       "the time\n",
			       pid, ended, status, (check_now_ns() - end_ns) / 1000000);
		ended++;
	}
	fflush(stdout); /* the part ends by _exit() */
	return good;
}

static int in_threads(int count, void *(*f)(void *))
{
	pthread_t thread[16];
	int good = 0;
	void *result;

	for (int i = 0; i < count; i++)
		if (pthread_create(&thread[i], NULL, f, (void *)(intptr_t)i))
			return -1;
	for (int i = 0; i < count; i++)
		good += !pthread_join(thread[i], &result) && !result;
	return good;
}

/* ---- spaces ---- */

enum { RING = 9, OWN_PAGES = 24 };
static uint8_t own[OWN_PAGES * 4096] __attribute__((aligned(4096)));
static __thread uint32_t own_tls;
static int ring[RING][2];

static uint32_t pattern(int who, int page, uint32_t round)
{
	return (uint32_t)who << 24 ^ (uint32_t)page << 16 ^ round * 2654435761u;
}

/* Takes a token and passes it on, with values in vector and x87 registers throughout. */
static bool registers_survive(int who, int from, int to)
{
	uint32_t in[4] = { who, ~who, who * 0x01010101u, 0x5a5a5a5a ^ who }, out[4];
	int32_t integer = 1000 + who, back = 0;
	int got, put;
	char token;

	__asm__ volatile("movups %[in], %%xmm6; fninit; fildl %[integer]\n"
			 "	mov $3, %%eax; mov %[from], %%ebx; int $0x80; mov %%eax, %[got]\n"
			 "	mov $4, %%eax; mov %[to], %%ebx; int $0x80; mov %%eax, %[put]\n"
			 "	movups %%xmm6, %[out]; fistpl %[back]"
			 : [out] "=m"(out), [back] "=m"(back), [got] "=m"(got), [put] "=m"(put)
			 : [in] "m"(in), [integer] "m"(integer), [from] "m"(from), [to] "m"(to),
			   "c"(&token), "d"(1)
			 : "eax", "ebx", "memory");
	return got == 1 && put == 1 && back == integer && !memcmp(in, out, sizeof in);
}

static int space(int who)
{
	int from = ring[who][0], to = ring[(who + 1) % RING][1];
	char token;

	own_tls = 77 + who;
	for (uint32_t round = 1; !time_is_up(); round++) {
		for (int page = round % 3; page < OWN_PAGES; page += 3)
			*(uint32_t *)(own + page * 4096) = pattern(who, page, round);
		if (!registers_survive(who, from, to))
			return 1;
		for (int page = round % 3; page < OWN_PAGES; page += 3)
			if (*(uint32_t *)(own + page * 4096) != pattern(who, page, round))
				return 2;
		if (own_tls != 77u + who)
			return 3;
	}
	/* each process that still waits gets a token */
	token = 0;
	for (int i = 0; i < RING; i++)
		if (write(ring[i][1], &token, 1) != 1)
			return 4;
	return 0;
}

static bool spaces(void)
{
	char token = 0;

	for (int i = 0; i < RING; i++)
		if (pipe(ring[i]))
			return false;
	/* three tokens are passed around */
	for (int i = 0; i < RING; i += 3)
		if (write(ring[i][1], &token, 1) != 1)
			return false;
	return in_processes(RING, space) == RING;
}

/* ---- mappings ---- */

enum { SLOTS = 8, MAPPERS = 3, READERS = 3 };
static uint8_t *area;
static _Atomic uint32_t known[SLOTS];	 /* the generation in the slot's page */
/* the last generation after which the page was made read only */
static _Atomic uint32_t read_only[SLOTS];
static pthread_mutex_t slot_lock[SLOTS];
static __thread sigjmp_buf fault_back;
static __thread volatile bool fault_expected;

static void on_fault(int signal)
{
	if (!fault_expected)
		_exit(100 + signal);
	siglongjmp(fault_back, 1);
}

/* Replaces a page by a new one with the next generation; then it is read only for a while. */
static void *mapper(void *arg)
{
	unsigned seed = (intptr_t)arg + 1;

	while (!time_is_up()) {
		int slot = rand_r(&seed) % SLOTS;
		uint8_t *page = area + slot * 4096;
		uint32_t generation;

		pthread_mutex_lock(&slot_lock[slot]);
		generation = atomic_load(&known[slot]) + 1;
		if (rand_r(&seed) % 2)
			munmap(page, 4096);
		if (mmap(page, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page)
			return "mmap";
		*(volatile uint32_t *)page = generation;
		atomic_store(&known[slot], generation);
		if (rand_r(&seed) % 2) {
			mprotect(page, 4096, PROT_READ);
			atomic_store(&read_only[slot], generation);
		}
		pthread_mutex_unlock(&slot_lock[slot]);
	}
	return NULL;
}

static void *reader(void *arg)
{
	unsigned seed = (intptr_t)arg + 100;

	while (!time_is_up()) {
		int slot = rand_r(&seed) % SLOTS;
		volatile uint32_t *page = (volatile uint32_t *)(area + slot * 4096);
		uint32_t before = atomic_load(&known[slot]), seen = 0;

		fault_expected = true;
		if (!sigsetjmp(fault_back, 1)) {
			seen = *page;
			fault_expected = false;
			/* 0: a fresh page before its generation was written */
			if (seen && seen < before)
				return "an old page";
		}
		fault_expected = false;
	}
	return NULL;
}

/* Holds the slot, so that nothing else changes it: a page that is known to be read only must
 * fault. */
static void *writer(void *arg)
{
	unsigned seed = (intptr_t)arg + 200;

	while (!time_is_up()) {
		int slot = rand_r(&seed) % SLOTS;
		volatile bool wrote = false;

		pthread_mutex_lock(&slot_lock[slot]);
		if (atomic_load(&known[slot]) &&
		    atomic_load(&read_only[slot]) == atomic_load(&known[slot])) {
			fault_expected = true;
			if (!sigsetjmp(fault_back, 1)) {
				((volatile uint32_t *)(area + slot * 4096))[1] = 1;
				wrote = true;
			}
			fault_expected = false;
		}
		pthread_mutex_unlock(&slot_lock[slot]);
		if (wrote)
			return "a write to a read-only page";
	}
	return NULL;
}

static void *mapping_thread(void *arg)
{
	intptr_t n = (intptr_t)arg;

	return n < MAPPERS ? mapper(arg) : n < MAPPERS + READERS ? reader(arg) : writer(arg);
}

static int mappings_alone(int who)
{
	struct sigaction action = { .sa_handler = on_fault };

	(void)who;
	sigaction(SIGSEGV, &action, NULL);
	area = mmap(NULL, SLOTS * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < SLOTS; i++)
		pthread_mutex_init(&slot_lock[i], NULL);
	return in_threads(MAPPERS + READERS + 1, mapping_thread) == MAPPERS + READERS + 1 ? 0 : 1;
}

static bool mappings(void) { return in_processes(2, mappings_alone) == 2; }

/* ---- forks ---- */

enum { FORKERS = 3, DEPTH = 3 };

/* A tree of processes; each adds up its children's statuses. */
static int grow(int depth)
{
	int sum = 1, status;
	pid_t child[2];

	own[depth * 4096] = depth; /* a copy of its own */
	if (depth == 0)
		return 1;
	for (int i = 0; i < 2; i++)
		if ((child[i] = fork()) == 0)
			_exit(grow(depth - 1));
	for (int i = 0; i < 2; i++) {
		if (waitpid(child[i], &status, 0) != child[i] || !WIFEXITED(status))
			return 200;
		sum += WEXITSTATUS(status);
	}
	return own[depth * 4096] == depth ? sum : 201;
}

static int forker(int who)
{
	int status;

	while (!time_is_up()) {
		pid_t pid;

		if (grow(DEPTH) != (1 << (DEPTH + 1)) - 1)
			return 1;
		if ((pid = fork()) == 0) {
			execl("/proc/self/exe", "stress", "exit", who & 1 ? "41" : "42", NULL);
			_exit(1);
		}
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
		    WEXITSTATUS(status) != (who & 1 ? 41 : 42))
			return 2;
	}
	return 0;
}

static bool forks(void) { return in_processes(FORKERS, forker) == FORKERS; }

/* ---- signals ---- */

static volatile sig_atomic_t alarms;
static volatile uint32_t next_value;
static volatile bool wrong_order;

static void on_alarm(int signal) { (void)signal, alarms++; }

static void on_queued(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	if ((uint32_t)info->si_value.sival_int != next_value)
		wrong_order = true;
	next_value++;
}

/* A pair: the parent queues numbered signals, the child counts them and answers each hundred by a
 * byte. */
static int signal_pair(int who)
{
	struct sigaction queued = { .sa_sigaction = on_queued,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction alarm = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 3000 }, { 0, 3000 } };
	int answer[2], status;
	sigset_t mask, before;
	uint32_t sent = 0;
	pid_t child;

	(void)who;
	sigaction(SIGRTMIN, &queued, NULL);
	sigaction(SIGALRM, &alarm, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &mask, &before);
	if (pipe(answer))
		return 1;
	child = fork();
	if (child == 0) {
		for (uint32_t told = 0; !wrong_order;) {
			sigsuspend(&before);
			for (; told + 100 <= next_value; told += 100)
				if (write(answer[1], "", 1) != 1)
					_exit(1);
		}
		_exit(2);
	}
	setitimer(ITIMER_REAL, &often, NULL);
	while (!time_is_up()) {
		char byte;

		for (int i = 0; i < 100; i++)
			if (sigqueue(child, SIGRTMIN, (union sigval){ .sival_int = (int)sent++ }))
				return 3;
		if (read(answer[0], &byte, 1) != 1)
			return 4;
		if (waitpid(child, &status, WNOHANG))
			return 5;
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	/* on a loaded computer all of the time may have passed before this process began */
	if (!alarms && sent)
		printf("no alarm yet when %u signals had been sent, %lld ms after the time\n", sent,
		       (check_now_ns() - end_ns) / 1000000);
	fflush(stdout);
	while (!alarms)
		sched_yield();
	return 0;
}

static bool signals(void) { return in_processes(2, signal_pair) == 2; }

/* ---- futexes ---- */

enum { WORKERS = 5 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static uint32_t turns, lap;
static _Atomic bool last_lap;

static void *worker(void *arg)
{
	intptr_t me = (intptr_t)arg;

	for (uint32_t mine = 0;; mine++) {
		for (int i = 0; i < 50; i++) { /* in turn */
			pthread_mutex_lock(&mutex);
			while (turns % WORKERS != (uint32_t)me)
				pthread_cond_wait(&condition, &mutex);
			turns++;
			pthread_cond_broadcast(&condition);
			pthread_mutex_unlock(&mutex);
		}
		if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
			lap++;
			atomic_store(&last_lap, time_is_up());
		}
		pthread_barrier_wait(&barrier);
		if (lap != mine + 1 || turns != lap * 50 * WORKERS)
			return "a lap is lost";
		if (atomic_load(&last_lap))
			return NULL;
		pthread_barrier_wait(&barrier);
	}
}

static int futexes_alone(int who)
{
	(void)who;
	pthread_barrier_init(&barrier, NULL, WORKERS);
	return in_threads(WORKERS, worker) == WORKERS ? 0 : 1;
}

static bool futexes(void) { return in_processes(1, futexes_alone) == 1; }

/* ---- all parts ---- */

static const struct part {
	const char *name;
	bool (*run)(void);
} parts[] = { { "spaces", spaces },
	      { "mappings", mappings },
	      { "forks", forks },
	      { "signals", signals },
	      { "futexes", futexes } };

int main(int argc, char **argv)
{
	enum { PARTS = sizeof parts / sizeof *parts };
	pid_t pid[PARTS];
	int status;

	if (argc == 3 && !strcmp(argv[1], "exit"))
		return atoi(argv[2]);
	end_ns = check_now_ns() + (argc > 1 ? atoi(argv[1]) : 10) * 1000000000LL;
	for (int i = 0; i < PARTS; i++) {
		bool wanted = argc < 3;

		for (int k = 2; k < argc; k++)
			wanted |= !strcmp(argv[k], parts[i].name);
		pid[i] = wanted ? fork() : -1;
		if (wanted && pid[i] == 0)
			_exit(parts[i].run() ? 0 : 1);
	}
	for (int i = 0; i < PARTS; i++)
		if (pid[i] > 0)
			expect(parts[i].name, waitpid(pid[i], &status, 0) == pid[i] &&
						      WIFEXITED(status) && !WEXITSTATUS(status));
	return check_result();
}
