/* fpstate.c - floating-point and vector registers belong to each thread: x87, SSE and, where there
 * is one, AVX state must survive context switches, moves between processors, signal handlers and
 * faults.
 *
 * Threads and processes fill all registers with values of their own, do something that switches to
 * another thread, and compare.  The widest registers are those that this processor's CPUID shows
 * and the kernel has enabled.  The output does not say which, so that machines can be compared.
 */
#include <cpuid.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include "tests/guest/check.h"

enum { THREADS = 6, ROUNDS = 300 };

struct state {
	uint8_t vector[8][32]; /* xmm or ymm 0-7 */
	uint32_t mxcsr;
	uint16_t x87_control;
	double x87[4];
};

static bool have_avx;

static void find_avx(void)
{
	uint32_t a, b, c, d;

	if (__get_cpuid(1, &a, &b, &c, &d) && c & bit_OSXSAVE && c & bit_AVX) {
		uint32_t low, high;

		__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
		have_avx = (low & 6) == 6;
	}
}

#define EACH_VECTOR(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7)

static void load_vectors(const struct state *s)
{
	if (have_avx) {
#define LOAD(n) __asm__ volatile("vmovdqu %0, %%ymm" #n : : "m"(s->vector[n]));
		EACH_VECTOR(LOAD)
#undef LOAD
	} else {
#define LOAD(n) __asm__ volatile("movdqu %0, %%xmm" #n : : "m"(s->vector[n]));
		EACH_VECTOR(LOAD)
#undef LOAD
	}
}

static void store_vectors(struct state *s)
{
	if (have_avx) {
#define STORE(n) __asm__ volatile("vmovdqu %%ymm" #n ", %0" : "=m"(s->vector[n]));
		EACH_VECTOR(STORE)
#undef STORE
	} else {
#define STORE(n) __asm__ volatile("movdqu %%xmm" #n ", %0" : "=m"(s->vector[n]));
		EACH_VECTOR(STORE)
#undef STORE
	}
}

/* Fills all registers with values that depend on `number`.  System calls run between load and
 * store; code of the compiler cannot touch the registers in between, since all of it is this
 * function's inline assembly and `int $0x80`. */
static bool survives(uint32_t number, uint32_t call, uint32_t argument)
{
	struct state in, out;
	uint32_t mxcsr_before, mxcsr = 0x1f80 | (number & 3) << 13, result;
	uint16_t control_before, control = (uint16_t)(0x037f | (number & 3) << 10);

	memset(&in, 0, sizeof in);
	memset(&out, 0, sizeof out);
	for (unsigned i = 0; i < 8; i++)
		memset(in.vector[i], (int)(number * 8 + i), have_avx ? 32 : 16);
	for (unsigned i = 0; i < 4; i++)
		in.x87[i] = number * 4.25 + i;
	__asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(mxcsr_before), "=m"(control_before));
	__asm__ volatile("ldmxcsr %0; fldcw %1" : : "m"(mxcsr), "m"(control));
	__asm__ volatile("fldl %0; fldl %1; fldl %2; fldl %3"
			 :
			 : "m"(in.x87[3]), "m"(in.x87[2]), "m"(in.x87[1]), "m"(in.x87[0]));
	load_vectors(&in);
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(call), "b"(argument), "c"(0) : "memory");
	store_vectors(&out);
	__asm__ volatile("fstpl %0; fstpl %1; fstpl %2; fstpl %3"
			 : "=m"(out.x87[0]), "=m"(out.x87[1]), "=m"(out.x87[2]), "=m"(out.x87[3]));
	__asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(out.mxcsr), "=m"(out.x87_control));
	__asm__ volatile("ldmxcsr %0; fldcw %1" : : "m"(mxcsr_before), "m"(control_before));
	(void)result;
	return !memcmp(in.vector, out.vector, sizeof in.vector) &&
	       !memcmp(in.x87, out.x87, sizeof in.x87) && (out.mxcsr & ~0x3fu) == mxcsr &&
	       out.x87_control == control;
}

static _Atomic int wrong;

enum { CALL_GETPPID = 64, CALL_SCHED_YIELD = 158, CALL_NANOSLEEP = 162 };

static void *keep_registers(void *number)
{
	static const struct timespec moment = { 0, 100000 };
	uint32_t me = (uint32_t)(uintptr_t)number;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t value = me * 1000 + i;

		if (!survives(value, i % 3 ? CALL_SCHED_YIELD : CALL_GETPPID, 0))
			wrong++;
		if (i % 20 == 0 && !survives(value, CALL_NANOSLEEP, (uint32_t)(uintptr_t)&moment))
			wrong++;
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t id[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&id[i], NULL, keep_registers, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	expect("registers survive switches between threads", wrong == 0);
}

static void test_processes(void)
{
	bool good = true;

	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			keep_registers((void *)(intptr_t)(i + 20));
			_exit(wrong != 0);
		}
	for (int i = 0; i < 4; i++) {
		int status;

		wait(&status);
		good = good && status == 0;
	}
	expect("registers survive switches between processes", good);
}

/* A thread that moves itself between processors. */
static void test_moves(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	bool good = true;

	for (int i = 0; i < 50; i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((unsigned)(i % cpus), &set);
		sched_setaffinity(0, sizeof set, &set);
		good = good && survives((uint32_t)i, CALL_SCHED_YIELD, 0);
	}
	expect("registers survive moves between processors", good);
}

static volatile sig_atomic_t handled;

static void disturb(int signal)
{
	(void)signal;
	struct state other;

	memset(&other, 0xee, sizeof other);
	load_vectors(&other);
	__asm__ volatile("fninit; fldpi; fstp %st(0)");
	handled++;
}

static void test_signals(void)
{
	struct sigaction action = { .sa_handler = disturb };
	pid_t parent = getpid(), child;
	bool good = true;

	sigaction(SIGUSR1, &action, NULL);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 100; i++) {
			usleep(1000);
			kill(parent, SIGUSR1);
		}
		_exit(0);
	}
	for (uint32_t i = 0; waitpid(child, NULL, WNOHANG) == 0; i++)
		good = good && survives(i, CALL_SCHED_YIELD, 0);
	expect("a handler was run", handled > 0);
	expect("registers survive signal handlers", good);
}

/* Computes numbers whose last bits depend on rounding and precision, with only those operations
 * that every processor rounds alike. */
static void test_numbers(void)
{
	volatile double third = 1.0 / 3;
	volatile long double exact = 1.0L / 3;
	double sum = 0;

	for (int i = 1; i <= 1000; i++)
		sum += (i % 2 ? 1 : -1) / sqrt(i);
	printf("        sum %.17g third %.17g long %.20Lg\n", sum, third, exact);
	expect("infinity and not-a-number", isinf(1 / (third - third)) && isnan(sqrt(-third)));
}

int main(void)
{
	find_avx();
	expect("registers survive a system call", survives(1, CALL_GETPPID, 0));
	test_threads();
	test_processes();
	test_moves();
	test_signals();
	test_numbers();
	return check_result();
}
