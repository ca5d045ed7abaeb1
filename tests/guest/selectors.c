/* selectors.c - each selector with each RPL in each data segment register, as far as a program can
 * load it, survives a way into the kernel and back.  On a processor its RPL does, too.
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include "tests/guest/check.h"

enum { SELECTORS = 256, SEGMENTS = 4 };

static sigjmp_buf back;
static void leave(int signal) { siglongjmp(back, signal); }

#define LOAD(segment) \
	__asm__ volatile("movw %%" segment ", %w1\n" \
			 "	movw %w2, %%" segment "\n" \
			 "	int $0x80\n" \
			 "	movw %%" segment ", %w0\n" \
			 "	movw %w1, %%" segment \
			 : "=a"(found), "=&r"(old) \
			 : "r"(selector), "0"(SYS_getpid) \
			 : "memory")

/* Returns what is in the register after a system call. */
static uint16_t loaded(unsigned segment, uint32_t selector)
{
	uint32_t found, old;

	switch (segment) {
	case 0: LOAD("es"); break;
	case 1: LOAD("fs"); break;
	case 2: LOAD("gs"); break;
	default: LOAD("ds"); break;
	}
	return (uint16_t)found;
}

int main(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS };
	struct sigaction action = { .sa_handler = leave, .sa_flags = SA_NODEFER };
	static unsigned n, wrong;
	uint16_t es, gs;

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &action, NULL);
	__asm__("movw %%es, %0; movw %%gs, %1" : "=r"(es), "=r"(gs));
	for (; n < SEGMENTS * SELECTORS; n++) {
		uint32_t selector = n / SEGMENTS, found;

		if (!sigsetjmp(back, 1)) {
			found = loaded(n % SEGMENTS, selector);
			/* 0: it is the host's own, or what Linux takes for none */
			wrong += found && found >> 3 != selector >> 3;
		}
		__asm__ volatile("movw %0, %%es; movw %1, %%gs" : : "r"(es), "r"(gs));
	}
	expect("each selector is what was loaded", !wrong);
	return check_result();
}
