/* escape.c - a guest program that tries to leave its user process on the direct engine with
 * --strict (vmproc/user.h): by 64-bit code, in the process's own program and mailboxes.
 *
 *   escape METHOD [ADDRESS [SECOND [THIRD]]]	of symbols of vmproc (tests/machine/hostile)
 *
 * It prints PROOF if it has seen the guest kernel's memory or privilege, or memory of the process
 * that it must not see.  Otherwise it goes on, or the machine ends with status 125 and a line.
 */
#include <asm/ldt.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "base/guest_abi.h"
#include "tests/guest/check.h"

enum { FRAME_AT = 0x40000000, FRAME = 16 << 20 /* where the guest kernel is loaded */ };

static sigjmp_buf back;
static void leave(int signal) { siglongjmp(back, signal); }

/* Words for the 64-bit code below. */
uint64_t escape_target, escape_second, escape_third, escape_value;
/* The head of a report, and what the code writes behind it: to xsave's header and MXCSR. */
uint64_t escape_report[22];
uint32_t escape_fpu;
volatile uint32_t *escape_count; /* in memory that two processes share */
extern const char escape_called[], escape_ordered[];

void escape_call(void), escape_report_it(void), escape_wait(void), escape_peek(void),
	escape_poke(void), escape_sigreturn(void), escape_storm(void),
	escape_step(void), escape_forged_step(void), escape_sleep(void);

/* The report is at 0x700100030000, its head takes 168 bytes, its registers begin 4096 behind. */
__asm__(".pushsection .text\n"
	".code64\n"
	/* mmap(FRAME_AT, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, 3, FRAME), by the
	 * process's own instruction */
	"escape_call:\n"
	"	movl $9, %eax; movl $0x40000000, %edi; movl $4096, %esi; movl $3, %edx\n"
	"	movl $0x11, %r10d; movl $3, %r8d; movl $0x1000000, %r9d\n"
	"	movl $1, %r13d; movl $escape_target, %ecx; movq (%rcx), %rcx; jmp *%rcx\n"
	/* a report of its own */
	"escape_report_it:\n"
	"	movabsq $0x700100030000, %rdi; movl $escape_report, %esi; movl $168, %ecx\n"
	"	rep movsb\n"
	"	movl $escape_fpu, %ecx; movl (%rcx), %eax; movabsq $0x700100031000, %rdi\n"
	"	movl %eax, 24(%rdi); movl %eax, 512(%rdi); movl %eax, 520(%rdi)\n"
	"	movl %eax, 524(%rdi); movl %eax, 528(%rdi)\n"
	"	movl $escape_target, %ecx; movq (%rcx), %rcx; jmp *%rcx\n"
	/* read(0, the report, 1): wait for the next order, without a report; ebp as behind one */
	"escape_wait:\n"
	"	movabsq $0x70010004007c, %rbp; movl (%rbp), %ebp; notl %ebp\n"
	"	xorl %eax, %eax; xorl %edi, %edi; movabsq $0x700100030000, %rsi; movl $1, %edx\n"
	"	movl $escape_target, %ecx; movq (%rcx), %rcx; jmp *%rcx\n"
	"escape_peek:\n"
	"	movl $escape_target, %ecx; movq (%rcx), %rcx; movq (%rcx), %rax\n"
	"	movl $escape_value, %ecx\n"
	"	movq %rax, (%rcx)\n"
	"	movl $1f, %ecx; ljmp *(%rcx)\n"
	"escape_poke:\n"
	"	movl $escape_target, %ecx; movq (%rcx), %rcx; movq %rcx, (%rcx)\n"
	"	movl $1f, %ecx; ljmp *(%rcx)\n"
	"escape_sigreturn:\n"
	"	movl $15, %eax; syscall\n"
	"	movl $1f, %ecx; ljmp *(%rcx)\n"
	/* The report's blocks for orders with even and odd numbers: to rcx and rdx; the flags say
	 * which the order has that is carried out.  A block ends with a syscall at its offset 22;
	 * the lea at 10 loads what it writes. */
	"escape_blocks:\n"
	"	movl $escape_target, %ecx; movq (%rcx), %rcx\n"
	"	movl $escape_second, %edx; movq (%rdx), %rdx\n"
	"	movabsq $0x70010004007c, %rax; testb $1, (%rax); ret\n"
	/* A report of its own by the other one, which does not wait then, but runs the program
	 * again from where the order says; that comes here a second time, and counts. */
	"escape_other:\n"
	"	movl $escape_count, %ecx; movl (%rcx), %ecx; movl (%rcx), %eax; incl (%rcx)\n"
	"	testl %eax, %eax; jz 3f\n"
	"4:	incl (%rcx); jmp 4b\n"
	"3:	movabsq $0x700100030000, %rdi; movl $escape_report, %esi; movl $168, %ecx\n"
	"	rep movsb; movl %esp, %esp; call escape_blocks; cmovzq %rdx, %rcx; jmp *%rcx\n"
	/* the right one, with a trap behind its syscall */
	"escape_step:\n"
	"	movl %esp, %esp; call escape_blocks; cmovnzq %rdx, %rcx\n"
	"	movslq 13(%rcx), %rsi; leaq 17(%rcx,%rsi), %rsi; addq $22, %rcx\n"
	"	movl $1, %eax; movl $1, %edi; movl $1, %edx\n"
	"	movq %rsp, %r8; movl %ss, %r9d; pushq %r9; pushq %r8; pushfq\n"
	"	orl $0x100, (%rsp); pushq $0x33; pushq %rcx; iretq\n"
	/* the same with a report of its own */
	"escape_forged_step:\n"
	"	movabsq $0x700100030000, %rdi; movl $escape_report, %esi; movl $168, %ecx\n"
	"	rep movsb; jmp escape_step\n"
	/* as if the process were about to sleep; back by a far return */
	"escape_sleep:\n"
	"	movabsq $0x7001000300ac, %rcx; movl $1, (%rcx); movl %esp, %esp; lretl\n"
	/* garbage into the report, for ever */
	"escape_storm:\n"
	"	movabsq $0x700100030000, %rdi; movl $32768, %ecx\n"
	"2:	movq %rcx, (%rdi,%rcx); addl $8, %edx; movl %edx, %ecx; andl $0x3ff8, %ecx\n"
	"	jmp 2b\n"
	".code32\n"
	"escape_proof:\n"
	"	call escape_proven\n"
	/* a system call, and then no use of the stack */
	"escape_again:\n"
	"	int $0x80\n"
	"escape_called:\n"
	"	ljmp *5f\n"
	"	int $0x80\n"
	"escape_ordered:\n"
	"	call escape_with_permits\n"
	".popsection\n"
	".pushsection .data\n"
	"1:	.long escape_proof, 0x97\n"
	"5:	.long escape_other, 0x33\n"
	".popsection\n");
_Static_assert(VMP_SEL_USER_CS == 0x97 && VMP_SEL_HOST64 == 0x33, "behind ljmp");

void escape_proven(void) __attribute__((noreturn, force_align_arg_pointer));
void escape_proven(void)
{
	printf("PROOF %llx\n", (unsigned long long)escape_value);
	fflush(stdout);
	_exit(1);
}

static void far_jump(void (*code)(void))
{
	const struct {
		uint32_t offset;
		uint16_t selector;
	} __attribute__((packed)) target = { (uint32_t)(uintptr_t)code, VMP_SEL_HOST64 };

	__asm__ volatile("ljmp *%0" : : "m"(target) : "memory");
}

static void far_call(void (*code)(void))
{
	const struct {
		uint32_t offset;
		uint16_t selector;
	} __attribute__((packed)) target = { (uint32_t)(uintptr_t)code, VMP_SEL_HOST64 };

	__asm__ volatile("lcall *%0" : : "m"(target) : "memory", "eax", "ecx", "edx", "cc");
}

/* --- the methods ------------------------------------------------------------------------------ */

/* Maps a frame of the kernel's.  If the process's loop then ran the program on without a permit,
 * the program would be where its last system call returned. */
static void by_call(void)
{
	static volatile bool tried;

	syscall(SYS_getpid);
	if (tried) {
		if (!sigsetjmp(back, 1))
			escape_value = *(volatile uint32_t *)FRAME_AT, escape_proven();
		return;
	}
	tried = true;
	far_jump(escape_call);
}

static void privileged(void)
{
	uint32_t cr3;

	__asm__ volatile("movl %%cr3, %0" : "=r"(cr3));
	escape_value = cr3;
	escape_proven();
}

/* Offsets in struct user_report, in words of 8 bytes. */
enum {
	EAX_AT = 2, EBX_AT = 2 + 3, ESP_AT = 2 + 4, RIP_AT = 10, FLAGS_AT, SIGNAL_AT = 17,
	VECTOR_AT = 18, SELECTORS_AT = 19
};

static void forge(uint32_t signal, uint32_t vector, const void *eip, uint64_t data)
{
	static uint8_t stack[65536];
	const uint64_t cs = VMP_SEL_USER_CS;
	uint16_t gs; /* the C library's */

	__asm__("mov %%gs, %0" : "=r"(gs));

	for (size_t i = 0; i < sizeof escape_report / sizeof *escape_report; i++)
		escape_report[i] = 0xfffffffffffff000;
	escape_report[1] = 0; /* no call has failed */
	escape_report[ESP_AT] = (uint32_t)(uintptr_t)(stack + sizeof stack - 64);
	escape_report[RIP_AT] = (uint32_t)(uintptr_t)eip;
	escape_report[SIGNAL_AT] = signal | 0x80ull << 32;
	escape_report[VECTOR_AT] = vector | ~0ull << 32;
	escape_report[SELECTORS_AT] = cs << 32 | data << 48;
	escape_report[SELECTORS_AT + 1] = data | data << 16 | data << 32 | (uint64_t)gs << 48;
	escape_fpu = ~0u;
}

static void report(uint32_t signal, uint32_t vector)
{
	forge(signal, vector, privileged, VMP_SEL_KERNEL_DS);
	far_jump(escape_report_it);
}

/* A kick with the kernel's stack and data segments: the program goes on, and is not the kernel. */
static void by_level(void) { report(SIGUSR1, 0); }
/* Vectors and signals that no processor and no host has. */
static void by_vector(void) { report(SIGFPE, 301); }
static void by_signal(void) { report(63, 14); }
/* A report that the order's calls are made. */
static void by_done(void) { report(0, 0); }

static void by_wait(void) { far_jump(escape_wait); }
static void by_peek(void) { far_jump(escape_peek); }
static void by_poke(void) { far_jump(escape_poke); }
static void by_sigreturn(void) { far_jump(escape_sigreturn); }

/* The state of a process in /proc: 'R' runs, 'S' sleeps. */
static char state_of(pid_t pid)
{
	char path[32], state = 0;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (file)
		fclose(file);
	return state;
}

/* A process reports by the wrong instruction, behind which the order that is there is carried out
 * again.  It reports that it has called pause().  So the guest kernel lets it sleep, and sends no
 * order; if its processor runs it all the same, another process sees it count. */
static void by_other(void)
{
	pid_t child;

	escape_count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = fork();
	if (!child) {
		forge(SIGSYS, 0, escape_called, VMP_SEL_USER_DS);
		escape_report[EAX_AT] = SYS_pause;
		*escape_count = 0; /* the page is there */
		__asm__ volatile("jmp escape_again" : : "a"(SYS_getpid));
	}
	for (;;) {
		uint32_t before = *escape_count;
		bool sleeps = state_of(child) == 'S';

		usleep(100000);
		if (sleeps && state_of(child) == 'S' && *escape_count != before)
			escape_value = before, escape_proven();
	}
}

static void by_step(void) { far_jump(escape_step); }

/* The trap's report answers an order that has calls alone: the one that a change of a TLS
 * descriptor needs.  If it counts, the calls' permits are left over for a call of the program's. */
enum { SYSCALL_AT = 22 }; /* of the addresses 24 bytes before the end of a syscall */
void escape_with_permits(void) __attribute__((noreturn, force_align_arg_pointer));
void escape_with_permits(void)
{
	static volatile bool tried;

	if (tried)
		escape_value = *(volatile uint32_t *)FRAME_AT, escape_proven();
	tried = true;
	escape_target = escape_third + SYSCALL_AT;
	far_jump(escape_call);
	__builtin_unreachable();
}

static void by_permits(void)
{
	static struct user_desc tls = {
		.entry_number = -1, .limit = 0xfffff, .seg_32bit = 1, .limit_in_pages = 1,
		.useable = 1,
	};

	forge(SIGSYS, 0, escape_ordered, VMP_SEL_USER_DS);
	escape_report[EAX_AT] = SYS_set_thread_area;
	escape_report[EBX_AT] = (uint32_t)(uintptr_t)&tls;
	escape_report[FLAGS_AT] = 0; /* no AC */
	far_jump(escape_forged_step);
}

/* Bytes that wake nobody stay in the order's pipe.  None is a permit. */
static void by_stale(void)
{
	for (int i = 0; i < 10; i++) {
		far_call(escape_sleep);
		syscall(SYS_getpid);
	}
	by_call();
}

/* The pipe is full of them. */
static void by_full(void)
{
	char *page = sbrk(64 * 4096);

	for (int i = 0; i < 100000; i++) {
		far_call(escape_sleep);
		syscall(SYS_getpid);
	}
	for (int i = 0; i < 64; i++)
		page[i * 4096] = 1;
}

/* The code in the window's place, as 32-bit code. */
static void by_near(void)
{
	__asm__ volatile("call *%0" : : "r"(VMP_STUB_SYSCALL) : "memory", "ecx", "edx", "cc");
}

static void *storm(void *unused)
{
	(void)unused;
	far_jump(escape_storm);
	return NULL;
}

/* One thread writes to its mailbox while another one's stops use theirs. */
static void by_storm(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, storm, NULL);
	for (;;)
		syscall(SYS_getpid);
}

static const struct method { const char *name; void (*try)(void); } methods[] = {
	{ "call", by_call },     { "level", by_level }, { "vector", by_vector },
	{ "signal", by_signal }, { "done", by_done },	{ "wait", by_wait },
	{ "peek", by_peek },	 { "poke", by_poke },	{ "sigreturn", by_sigreturn },
	{ "storm", by_storm },   { "other", by_other }, { "step", by_step },
	{ "permits", by_permits },
	{ "stale", by_stale },   { "full", by_full },	{ "near", by_near },
};

static int run(void (*try)(void))
{
	if (!sigsetjmp(back, 1))
		try();
	printf("the program goes on\n");
	return 0;
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE };
	static char stack[65536];
	stack_t other = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction action = { .sa_handler = leave, .sa_flags = SA_ONSTACK };

	sigaltstack(&other, NULL);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &action, NULL);
	escape_target = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	escape_second = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
	escape_third = argc > 4 ? strtoull(argv[4], NULL, 0) : 0;
	for (size_t i = 0; argc > 1 && i < sizeof methods / sizeof *methods; i++)
		if (!strcmp(argv[1], methods[i].name))
			return run(methods[i].try);
	fprintf(stderr, "usage: escape call|level|vector|signal|done|wait|peek|poke|sigreturn|"
			"storm|other|step|permits|stale|full|near [ADDRESS [SECOND [THIRD]]]\n");
	return 2;
}
