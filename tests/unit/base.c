/* base.c - tests of base/: message bounds, posts and kicks, pins against their draining. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cpufeatures.h"
#include "base/hostshm.h"
#include "base/killed.h"
#include "base/log.h"
#include "base/schedule.h"
#include "base/wire.h"
#include "tests/unit/unit.h"

static struct host_shm *new_shm(unsigned cpus, unsigned pages)
{
	struct host_shm *shm = aligned_alloc(4096, (hostshm_bytes(pages) + 4095) / 4096 * 4096);

	memset(shm, 0, hostshm_bytes(pages));
	shm->n_cpus = cpus;
	shm->ram_pages = pages;
	return shm;
}

static void page_faults_do_not_overlap_rights(void)
{
	for (unsigned pages = 1; pages < 40; pages++) {
		struct host_shm *shm = new_shm(1, pages);
		char *faults = (char *)hostshm_page_faults(shm);

		CU_ASSERT(faults >= (char *)&shm->page_right[pages]);
		CU_ASSERT(faults + pages * sizeof(uint32_t) <= (char *)shm + hostshm_bytes(pages));
		CU_ASSERT_EQUAL((uintptr_t)faults % sizeof(uint32_t), 0);
		free(shm);
	}
}

static void a_post_moves_the_futex_word_once(void)
{
	struct host_shm *shm = new_shm(2, 1);

	hostshm_post_interrupt(shm, 1, 0x31);
	CU_ASSERT_EQUAL(shm->doorbell[1].irr[1], 1u << 0x11);
	CU_ASSERT_EQUAL(shm->doorbell[1].wake, 1);
	hostshm_post_interrupt(shm, 1, 0x31); /* not yet collected: its poster kicks */
	CU_ASSERT_EQUAL(shm->doorbell[1].wake, 1);
	hostshm_post(shm, 1, POST_NMI);
	CU_ASSERT_EQUAL(shm->slot[1].post, POST_NMI);
	CU_ASSERT_EQUAL(shm->doorbell[1].wake, 2);
	CU_ASSERT_EQUAL(shm->doorbell[0].wake, 0);
	free(shm);
}

static volatile sig_atomic_t signals_got;

static void count_signal(int signal) { (void)signal, signals_got++; }

/* Returns how many signals `kicks` kicks are. */
static int signals_of(struct host_shm *shm, unsigned kicks)
{
	signals_got = 0;
	while (kicks--)
		hostshm_kick(shm, 0);
	return signals_got;
}

static void a_cpu_that_runs_gets_one_signal(void)
{
	struct host_shm *shm = new_shm(1, 1);
	struct vcpu_slot *slot = &shm->slot[0];
	struct doorbell *bell = &shm->doorbell[0];
	struct sigaction before, count = { .sa_handler = count_signal };

	sigaction(SIGUSR1, &count, &before);
	slot->space = 2;
	shm->vm_pid[0][2] = getpid();
	bell->state = SLOT_MONITOR;
	CU_ASSERT_EQUAL(signals_of(shm, 3), 0);
	bell->state = SLOT_RUNNING;
	CU_ASSERT_EQUAL(signals_of(shm, 3), 1);
	CU_ASSERT_EQUAL(signals_of(shm, 3), 0); /* it has not come to an end of its run yet */
	bell->state = SLOT_MONITOR;
	slot->kicked = 0;
	bell->state = SLOT_RUNNING;
	CU_ASSERT_EQUAL(signals_of(shm, 1), 1);
	CU_ASSERT_EQUAL(bell->wake, 10); /* each kick counts there */
	sigaction(SIGUSR1, &before, NULL);
	free(shm);
}

static void a_post_to_an_absent_cpu_is_refused(void)
{
	struct host_shm *shm = new_shm(1, 1);

	CU_ASSERT(!hostshm_try_interrupt(shm, 0, 0x31, false));
	CU_ASSERT(!hostshm_try_interrupt(shm, 0, 0, true));
	CU_ASSERT(shm->doorbell[0].irr[1] == 0 && shm->slot[0].post == 0);
	shm->doorbell[0].state = SLOT_MONITOR;
	CU_ASSERT(hostshm_try_interrupt(shm, 0, 0x31, false));
	CU_ASSERT(hostshm_try_interrupt(shm, 0, 0, true));
	CU_ASSERT(shm->doorbell[0].irr[1] == 1u << 0x11 && shm->slot[0].post == POST_NMI);
	free(shm);
}

struct passage { struct host_shm *shm; unsigned collected; _Atomic bool done; };

/* Who may not send signals interrupts a CPU that is halted, and leaves all others alone. */
static void a_halted_cpu_is_interrupted_without_a_signal(void)
{
	static const struct {
		enum slot_state state;
		bool posted; /* by somebody else, before */
		enum doorbell_rest rest;
	} cases[] = {
		{ SLOT_ABSENT, false, DOORBELL_ELSEWHERE },
		{ SLOT_MONITOR, false, DOORBELL_ELSEWHERE },
		{ SLOT_RUNNING, false, DOORBELL_ELSEWHERE },
		{ SLOT_POLLING, false, DOORBELL_NOTHING },
		{ SLOT_POLLING, true, DOORBELL_NOTHING },
		{ SLOT_HALTED, false, DOORBELL_WAKE },
		{ SLOT_HALTED, true, DOORBELL_NOTHING }, /* who has posted it wakes the CPU */
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct doorbell bell = { .state = cases[i].state };
		bool refused = cases[i].rest == DOORBELL_ELSEWHERE;

		if (cases[i].posted)
			CU_ASSERT(doorbell_post(&bell, 0x31));
		CU_ASSERT_EQUAL(doorbell_interrupt(&bell, 0x31), cases[i].rest);
		CU_ASSERT_EQUAL(bell.irr[1], refused ? 0 : 1u << 0x11);
		CU_ASSERT_EQUAL(bell.wake, !refused && !cases[i].posted);
	}
}

/* A CPU halts, polls, runs, leaves and comes back.  It collects what comes whenever it looks, as
 * engine/loop.c does.  An interrupt that doorbell_interrupt() took must be collected without any
 * other kick but the wake-up that it asked for. */
static void *sleeper(void *arg)
{
	struct passage *p = arg;
	struct doorbell *bell = &p->shm->doorbell[0];
	static const enum slot_state states[] = { SLOT_RUNNING, SLOT_POLLING, SLOT_HALTED,
						  SLOT_MONITOR, SLOT_ABSENT };

	for (unsigned n = 0; !atomic_load(&p->done); n++) {
		uint32_t wake = atomic_load(&bell->wake);
		enum slot_state state = states[n % ARRAY_LEN(states)];

		atomic_store(&bell->state, state);
		p->collected += !!atomic_exchange(&bell->irr[2], 0);
		/* asleep: nothing but a kick ends it */
		while (state == SLOT_HALTED && atomic_load(&bell->wake) == wake &&
		       !atomic_load(&p->done))
			sched_yield();
	}
	p->collected += !!atomic_exchange(&bell->irr[2], 0);
	return NULL;
}

static void no_interrupt_is_lost_when_a_cpu_halts(void)
{
	enum { POSTS = 100000 };
	struct passage p = { .shm = new_shm(1, 1) };
	struct doorbell *bell = &p.shm->doorbell[0];
	unsigned taken = 0;
	pthread_t thread;

	CU_ASSERT_FATAL(!pthread_create(&thread, NULL, sleeper, &p));
	for (unsigned i = 0; i < POSTS;) {
		if (doorbell_interrupt(bell, 64 + i % 32) == DOORBELL_ELSEWHERE) {
			sched_yield();
			continue;
		}
		i++, taken++;
		while (atomic_load(&bell->irr[2])) /* so that no two are collected as one */
			sched_yield();
	}
	atomic_store(&p.done, true);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(p.collected, taken);
	free(p.shm);
}

/* A CPU comes and goes.  Each interrupt is either collected by the CPU, or its poster knows that it
 * was not delivered; exactly one of the two. */
static void *commuter(void *arg)
{
	struct passage *p = arg;
	struct doorbell *bell = &p->shm->doorbell[0];
	bool last;

	do {
		last = atomic_load(&p->done);
		atomic_store(&bell->state, SLOT_MONITOR);
		p->collected += !!atomic_exchange(&bell->irr[2], 0);
		atomic_store(&bell->state, SLOT_ABSENT);
		p->collected += !!atomic_exchange(&bell->irr[2], 0);
	} while (!last);
	return NULL;
}

static void no_interrupt_is_lost_or_doubled_when_a_cpu_leaves(void)
{
	enum { POSTS = 300000 };
	struct passage p = { .shm = new_shm(1, 1) };
	_Atomic uint32_t *word = &p.shm->doorbell[0].irr[2];
	unsigned delivered = 0;
	pthread_t thread;

	CU_ASSERT_FATAL(!pthread_create(&thread, NULL, commuter, &p));
	for (unsigned i = 0; i < POSTS; i++)
		if (hostshm_try_interrupt(p.shm, 0, 64 + i % 32, false)) {
			delivered++;
			while (atomic_load(word)) /* so that no two are collected as one */
				sched_yield();
		}
	atomic_store(&p.done, true);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(p.collected, delivered);
	CU_ASSERT_EQUAL(*word, 0);
	free(p.shm);
}

/* One thread pins and increments as monitors do.  The other takes the page away as the daemon does,
 * and checks that nothing touches it meanwhile. */
enum { ROUNDS = 2000000 };
struct contest { struct host_shm *shm; volatile unsigned touched; _Atomic bool done; };

static void *pinner(void *arg)
{
	struct contest *c = arg;
	_Atomic uint32_t *pin = &c->shm->slot[0].pin[0];

	while (!atomic_load(&c->done)) {
		atomic_store(pin, 1);
		if (atomic_load(&c->shm->page_right[0]) >= PAGE_WRITE)
			c->touched++;
		atomic_store(pin, 0);
	}
	return NULL;
}

static bool nobody_is_gone(void *ctx, unsigned cpu) { (void)ctx, (void)cpu; return false; }

/* CPU 1 dies after it has been asked for a few times. */
static bool one_dies(void *ctx, unsigned cpu)
{
	unsigned *asked = ctx;

	return cpu == 1 && ++*asked == 3;
}

static void a_pin_of_the_dead(void)
{
	struct host_shm *shm = new_shm(3, 1);
	unsigned asked = 0;

	atomic_store(&shm->slot[0].pin[0], 7 + 1);
	atomic_store(&shm->slot[1].pin[PINS_PER_CPU - 1], 5 + 1);
	CU_ASSERT_EQUAL(hostshm_drain_pins(shm, 5, one_dies, &asked), -1);
	CU_ASSERT_EQUAL(asked, 3);
	CU_ASSERT_EQUAL(atomic_load(&shm->slot[1].pin[PINS_PER_CPU - 1]), 0);
	CU_ASSERT_EQUAL(atomic_load(&shm->slot[0].pin[0]), 7 + 1);
	hostshm_forget_pins(&shm->slot[0]);
	CU_ASSERT_EQUAL(hostshm_drain_pins(shm, 7, nobody_is_gone, NULL), -1);
	/* hostile code has left it there, and its monitor lives */
	atomic_store(&shm->slot[1].pin[1], 9 + 1);
	CU_ASSERT_EQUAL(hostshm_drain_pins(shm, 9, nobody_is_gone, NULL), 1);
	free(shm);
}

static void pins_and_draining_exclude_each_other(void)
{
	struct contest c = { .shm = new_shm(1, 1) };
	unsigned wrong = 0;
	pthread_t thread;

	atomic_store(&c.shm->page_right[0], PAGE_WRITE);
	pthread_create(&thread, NULL, pinner, &c);
	while (!c.touched)
		continue;
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned before;

		atomic_store(&c.shm->page_right[0], PAGE_WRITE);
		atomic_store(&c.shm->page_right[0], PAGE_NONE);
		hostshm_drain_pins(c.shm, 0, nobody_is_gone, NULL);
		before = c.touched;
		for (volatile int spin = 0; spin < 20; spin++)
			continue;
		wrong += c.touched != before;
	}
	atomic_store(&c.done, true);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(wrong, 0);
	free(c.shm);
}

/* In a child process, since this cannot be undone. */
static void who_computes_is_nicer(void)
{
	static const struct {
		int steps, nicer;
	} all[] = { { 1, NICE_BEHIND }, { 1, NICE_FAR_BEHIND }, { 5, 4 } };
	const int before = getpriority(PRIO_PROCESS, 0);
	int status;

	for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
		int expected = before + all[i].steps * all[i].nicer;
		pid_t pid = fork();

		if (pid == 0) {
			schedule_promptly();
			if (getpriority(PRIO_PROCESS, 0) != before)
				_exit(1);
			for (int step = 0; step < all[i].steps; step++)
				schedule_behind(all[i].nicer);
			_exit(getpriority(PRIO_PROCESS, 0) == (expected < 19 ? expected : 19) ? 0
											      : 2);
		}
		CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
		CU_ASSERT_EQUAL(status, 0);
	}
}

/* Each feature of this processor is shown if the machine has it, and hidden if not.  Registers that
 * do not describe features are unchanged. */
static void a_feature_that_the_machine_has_not_is_hidden(void)
{
	static const struct {
		uint32_t leaf, subleaf;
		uint8_t reg, word;
		uint32_t feature;
	} all[] = {
		{ 1, 0, 2, 0, 1u << 20 },	  { 1, 0, 3, 1, 1u << 26 },
		{ 7, 0, 1, 2, 1u << 5 },	  { 7, 0, 2, 3, 1u << 8 },
		{ 7, 0, 3, 4, 1u << 4 },	  { 0xd, 0, 0, CPU_FEATURE_STATE, 1u << 2 },
		{ 0x80000001, 0, 2, 6, 1u << 6 }, { 0x80000001, 0, 3, 7, 1u << 22 },
		{ 0xd, 1, 0, 8, 1u << 1 },
	};
	struct cpu_features features;

	for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
		uint32_t shown[4] = { ~0u, ~0u, ~0u, ~0u }, hidden[4] = { ~0u, ~0u, ~0u, ~0u },
			 other[4] = { ~0u, ~0u, ~0u, ~0u };

		memset(&features, 0xff, sizeof features);
		cpufeatures_hide(&features, all[i].leaf, all[i].subleaf, shown);
		features.word[all[i].word] &= ~all[i].feature;
		cpufeatures_hide(&features, all[i].leaf, all[i].subleaf, hidden);
		cpufeatures_hide(&features, all[i].leaf, 2, other);
		for (unsigned r = 0; r < 4; r++) {
			CU_ASSERT_EQUAL(shown[r], ~0u);
			CU_ASSERT_EQUAL(hidden[r], r == all[i].reg ? ~all[i].feature : ~0u);
			CU_ASSERT_EQUAL(other[r], ~0u);
		}
	}
	memset(&features, 0, sizeof features);
	CU_ASSERT_EQUAL(cpufeatures_hide_state(&features, 0x2e7), 0x200);
	features.word[CPU_FEATURE_STATE] = 7;
	CU_ASSERT_EQUAL(cpufeatures_hide_state(&features, 0x2e7), 0x207);
}

static void features_are_text_and_back(void)
{
	static const struct cpu_features all = { { 1, 0, 0xffffffff, 0xabc, 5, 6, 7, 8, 9 } };
	static const char *const wrong[] = { "",
					     "1",
					     "1,0,ffffffff,abc,5,6,7,8",
					     "1,0,ffffffff,abc,5,6,7,8,9,",
					     "1,0,1ffffffff,abc,5,6,7,8,9",
					     "1,0,,abc,5,6,7,8,9",
					     "x,0,1,abc,5,6,7,8,9" };
	struct cpu_features back, here, none = { { 0 } };
	char text[CPU_FEATURES_TEXT], name[64];

	cpufeatures_print(&all, text);
	CU_ASSERT_STRING_EQUAL(text, "1,0,ffffffff,abc,5,6,7,8,9");
	CU_ASSERT_EQUAL(cpufeatures_parse(&back, text), 0);
	CU_ASSERT_EQUAL(memcmp(&back, &all, sizeof all), 0);
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++)
		CU_ASSERT_EQUAL(cpufeatures_parse(&back, wrong[i]), -EINVAL);
	cpufeatures_look(&here);
	CU_ASSERT(!cpufeatures_lacking(&here, &here, name, sizeof name) &&
		  !cpufeatures_lacking(&none, &here, name, sizeof name));
	CU_ASSERT(here.word[1] >> 26 & 1); /* SSE2, which every x86-64 processor has */
	back = here;
	back.word[1] &= ~(1u << 26);
	CU_ASSERT(cpufeatures_lacking(&here, &back, name, sizeof name));
	CU_ASSERT_STRING_EQUAL(name, "SSE2");
}

static void the_host_tells_of_kills_for_lack_of_memory(void)
{
	static const struct { const char *text; uint64_t count;
	} cases[] = {
		{ "nr_free_pages 1\noom_kill 17\nfoo 3\n", 17 },
		{ "oom_kill 18446744073709551615", UINT64_MAX },
		{ "nr_oom_kill 4\n", 0 },
		{ "oom_kill\n", 0 },
		{ "", 0 },
	};
	char folder[] = "/tmp/vmp-unit-XXXXXX", path[64];

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	CU_ASSERT_EQUAL(killed_count(folder), 0);
	snprintf(path, sizeof path, "%s/proc", folder);
	CU_ASSERT_EQUAL_FATAL(mkdir(path, 0700), 0);
	strcat(path, "/vmstat");
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		FILE *file = fopen(path, "w");

		CU_ASSERT_PTR_NOT_NULL_FATAL(file);
		fputs(cases[i].text, file);
		fclose(file);
		CU_ASSERT_EQUAL(killed_count(folder), cases[i].count);
	}
	unlink(path);
	*strrchr(path, '/') = 0;
	rmdir(path);
	rmdir(folder);
	killed_remember();
	CU_ASSERT_STRING_EQUAL(killed_why(SIGSEGV), "");
	CU_ASSERT(strstr(killed_why(SIGSYS), "system call") != NULL);
	/* unless a process is being killed just now */
	CU_ASSERT_STRING_EQUAL(killed_why(SIGKILL), "");
}

static void a_warning_is_rare(void)
{
	uint64_t last_ns = 0, other_ns = 0;

	CU_ASSERT(log_is_due(&last_ns) && last_ns);
	CU_ASSERT_FALSE(log_is_due(&last_ns));
	CU_ASSERT_TRUE(log_is_due(&other_ns)); /* of another kind */
	last_ns -= 61 * 1000000000ull;
	CU_ASSERT_TRUE(log_is_due(&last_ns));
	CU_ASSERT_FALSE(log_is_due(&last_ns));
}

/* What another computer says may be a part of a line. */
static void a_line_on_a_terminal_is_printable(void)
{
	static const char said[] = "host b: \033]0;x\007 \302\233c \303\244\nvmp: all is well";
	int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), theirs, pipes[2];
	char line[200] = "";

	CU_ASSERT_FATAL(ours >= 0 && !grantpt(ours) && !unlockpt(ours) && !pipe(pipes));
	theirs = open(ptsname(ours), O_RDWR | O_NOCTTY | O_CLOEXEC);
	CU_ASSERT_FATAL(theirs >= 0);
	log_open("vmp", theirs, LOG_WARN);
	log_error("%s", said);
	CU_ASSERT(read(ours, line, sizeof line - 1) > 0);
	CU_ASSERT_STRING_EQUAL(line, "vmp: host b: ?]0;x? ??c \303\244?vmp: all is well\r\n");
	memset(line, 0, sizeof line);
	log_open("vmp", pipes[1], LOG_WARN);
	log_error("%s", said);
	CU_ASSERT(read(pipes[0], line, sizeof line - 1) > 0);
	CU_ASSERT(strstr(line, said) != NULL);
	log_open("base", 2, LOG_WARN);
	close(ours), close(theirs), close(pipes[0]), close(pipes[1]);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(a_line_on_a_terminal_is_printable),
		UNIT_TEST(page_faults_do_not_overlap_rights),
		UNIT_TEST(a_post_moves_the_futex_word_once),
		UNIT_TEST(a_cpu_that_runs_gets_one_signal),
		UNIT_TEST(a_post_to_an_absent_cpu_is_refused),
		UNIT_TEST(a_halted_cpu_is_interrupted_without_a_signal),
		UNIT_TEST(no_interrupt_is_lost_when_a_cpu_halts),
		UNIT_TEST(no_interrupt_is_lost_or_doubled_when_a_cpu_leaves),
		UNIT_TEST(pins_and_draining_exclude_each_other),
		UNIT_TEST(a_pin_of_the_dead),
		UNIT_TEST(who_computes_is_nicer),
		UNIT_TEST(a_feature_that_the_machine_has_not_is_hidden),
		UNIT_TEST(features_are_text_and_back),
		UNIT_TEST(a_warning_is_rare),
		UNIT_TEST(the_host_tells_of_kills_for_lack_of_memory),
		UNIT_END
	};

	return UNIT_RUN("base", tests);
}
