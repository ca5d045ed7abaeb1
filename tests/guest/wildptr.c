/* wildptr.c - user code points at kernel memory: every read, write and jump faults, with the
 * address, and nothing else happens. */
#include <setjmp.h>
#include <signal.h>
#include "base/guest_abi.h"
#include "tests/guest/check.h"

static sigjmp_buf back;
static void *volatile seen_address;
static volatile int seen_code;

#define KERNEL (VMP_USER_LIMIT + (16 << 20)) /* where the kernel is loaded */

static void leave(int signal, siginfo_t *info, void *context)
{
	(void)context;
	seen_address = info->si_addr;
	seen_code = info->si_code;
	siglongjmp(back, signal);
}

static void try(uintptr_t address)
{
	volatile uint32_t *at = (volatile uint32_t *)address;
	int signal;
	char line[100];

	if (!(signal = sigsetjmp(back, 1)))
		(void)*at;
	snprintf(line, sizeof line, "a read at %#lx faults", (unsigned long)address);
	expect(line, signal == SIGSEGV);
	printf("        address %p code %d\n", seen_address, seen_code);
	if (!(signal = sigsetjmp(back, 1)))
		*at = 0xdeadbeef;
	snprintf(line, sizeof line, "a write at %#lx faults", (unsigned long)address);
	expect(line, signal == SIGSEGV);
	printf("        address %p code %d\n", seen_address, seen_code);
	if (!(signal = sigsetjmp(back, 1)))
		__asm__ volatile("lock incl %0" : "+m"(*at));
	snprintf(line, sizeof line, "a locked increment at %#lx faults", (unsigned long)address);
	expect(line, signal == SIGSEGV);
	printf("        address %p code %d\n", seen_address, seen_code);
	if (!(signal = sigsetjmp(back, 1)))
		((void (*)(void))address)();
	snprintf(line, sizeof line, "a jump to %#lx faults", (unsigned long)address);
	expect(line, signal == SIGSEGV);
}

/* An access that begins below the border and ends above it. */
static void try_straddling(void)
{
	int signal;

	if (!(signal = sigsetjmp(back, 1)))
		*(volatile uint32_t *)(VMP_USER_LIMIT - 2) = 1;
	expect("a write across the limit faults", signal == SIGSEGV);
	if (!(signal = sigsetjmp(back, 1)))
		__asm__ volatile("movl %0, %%edi; movl $64, %%ecx; cld; rep stosl"
				 :
				 : "r"(VMP_USER_LIMIT)
				 : "edi", "ecx", "memory");
	expect("a string write above it faults", signal == SIGSEGV);
	if (!(signal = sigsetjmp(back, 1)))
		__asm__ volatile("movl %%esp, %%esi; movl %0, %%esp; pushl $1; movl %%esi, %%esp"
				 :
				 : "r"(KERNEL)
				 : "esi", "memory");
	expect("a push above it faults", signal == SIGSEGV);
}

/* The kernel refuses such pointers too. */
static void try_system_calls(void)
{
	expect("write() from kernel memory is EFAULT",
	       write(1, (void *)KERNEL, 16) < 0 && errno == EFAULT);
	expect("read() into kernel memory is EFAULT", read(0, (void *)KERNEL, 16) <= 0);
}

int main(void)
{
	static const uintptr_t addresses[] = { VMP_USER_LIMIT, 0xb0100000, KERNEL,     0xbfffffff,
					       0xc0000000,     0xe0000000, 0xfec00000, 0xfee00000,
					       0xffc00000,     0xfffff000, 0xfffffffc };
	static char stack[65536];
	stack_t other = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction action = { .sa_sigaction = leave, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigaltstack(&other, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	for (unsigned i = 0; i < sizeof addresses / sizeof *addresses; i++)
		try(addresses[i]);
	try_straddling();
	try_system_calls();
	return check_result();
}
