/* cputime.c - a processor's time is counted finely.
 *
 * There is no comparison with the reference machine.  Its time-stamp counter is an interpreter's;
 * if the host was busy while that kernel measured it, the kernel counts ticks.
 */
#include "tests/guest/check.h"

/* The scheduler's clock: processor time advances by what was used, not by ticks of 10 ms. */
static void test_processor_time(void)
{
	enum { STEPS = 100 };
	struct timespec last, now;
	unsigned fine = 0;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &last);
	for (unsigned step = 0; step < STEPS;) {
		int64_t ns;

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
		ns = (now.tv_sec - last.tv_sec) * 1000000000LL + now.tv_nsec - last.tv_nsec;
		if (!ns)
			continue;
		step++;
		fine += ns > 0 && ns < 5 * 1000000;
		last = now;
	}
	expect("processor time advances in steps below a tick", fine > STEPS / 2);
}

int main(void)
{
	test_processor_time();
	return check_result();
}
