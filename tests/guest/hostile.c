/* hostile.c - a guest program that tries to reach the host from inside.
 *
 *   hostile METHOD [ADDRESS]
 *
 * Legal methods print the same lines on any IA-32 machine.  The others may end the program, or the
 * machine with status 125 and a clear message.  They must never succeed: to write PROOF on the
 * host's standard output, to make the file /tmp/vmp-hostile-proof on the host, or to kill a process
 * there. tests/machine/run checks for these.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "base/guest_abi.h"
#include "tests/guest/check.h"

#define KERNEL (VMP_USER_LIMIT + (16 << 20)) /* where the kernel is loaded */

static sigjmp_buf back;
static void leave(int signal) { siglongjmp(back, signal); }

/* 64-bit code, in the guest's 32-bit memory.  Each piece ends by a jump to itself, so that it never
 * seems to have ended normally. */
static const unsigned char code64[] = {
	/* mov $1,%eax; mov $1,%edi; lea text(%rip),%rsi; mov $6,%edx; syscall:
	 * write(1, "PROOF\n", 6) */
	0xb8, 1, 0, 0, 0, 0xbf, 1, 0, 0, 0, 0x48, 0x8d, 0x35, 60, 0, 0, 0,
	0xba, 6, 0, 0, 0, 0x0f, 0x05,
	/* mov $85,%eax; lea path(%rip),%rdi; mov $0644,%esi; syscall: creat() */
	0xb8, 85, 0, 0, 0, 0x48, 0x8d, 0x3d, 48, 0, 0, 0, 0xbe, 0xa4, 1, 0, 0, 0x0f, 0x05,
	/* mov $110,%eax; syscall; mov %eax,%edi; mov $9,%esi; mov $62,%eax; syscall:
	 * kill(getppid(), SIGKILL) */
	0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0x89, 0xc7, 0xbe, 9, 0, 0, 0, 0xb8, 62, 0, 0, 0, 0x0f, 0x05,
	/* jmp . */
	0xeb, 0xfe,
	/* padding up to byte 77 */
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
	'P', 'R', 'O', 'O', 'F', '\n', 0,
	'/', 't', 'm', 'p', '/', 'v', 'm', 'p', '-', 'h', 'o', 's', 't', 'i', 'l', 'e', '-',
	'p', 'r', 'o', 'o', 'f', 0,
};

static void far_jump(uint16_t selector, uint32_t offset)
{
	struct {
		uint32_t offset;
		uint16_t selector;
	} __attribute__((packed)) target = { offset, selector };

	__asm__ volatile("ljmp *%0" : : "m"(target) : "memory");
}

static void *place_code64(void)
{
	unsigned char *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(m, code64, sizeof code64);
	return m;
}

/* ---- The methods ---- */

static void by_int80(const char *argument)
{
	static const char line[] = "int $0x80 reaches the guest's own kernel\n";
	long n;

	(void)argument;
	__asm__ volatile("int $0x80"
			 : "=a"(n)
			 : "a"(SYS_write), "b"(1), "c"(line), "d"(sizeof line - 1)
			 : "memory");
	expect("write by int $0x80", n == sizeof line - 1);
	__asm__ volatile("int $0x80" : "=a"(n) : "a"(SYS_getpid) : "memory");
	expect("getpid by int $0x80", n == getpid());
	__asm__ volatile("int $0x80" : "=a"(n) : "a"(9999) : "memory");
	expect("an unknown call is ENOSYS", n == -ENOSYS);
}

static void by_syscall(const char *argument)
{
	static const char line[] = "PROOF\n";
	long n = SYS_write;

	(void)argument;
	/* in the form of AMD's compatibility mode: %ebp instead of %ecx */
	__asm__ volatile("pushl %%ebp; movl %%ecx, %%ebp; syscall; popl %%ebp"
			 : "+a"(n) : "b"(1), "c"(line), "d"(sizeof line - 1) : "memory");
}

static void by_sysenter(const char *argument)
{
	static const char line[] = "PROOF\n";
	long n = SYS_write;

	(void)argument;
	__asm__ volatile("pushl %%ebp; movl %%esp, %%ebp; sysenter; nop; nop; popl %%ebp"
			 : "+a"(n) : "b"(1), "c"(line), "d"(sizeof line - 1) : "memory");
}

static void by_far_jump(const char *argument)
{
	(void)argument;
	far_jump(0x33, (uint32_t)(uintptr_t)place_code64());
}

/* Goes to the 64-bit segment, and from there to an address above 4 GiB with registers that ask for
 * creat(): the stub's own system call. */
static void by_stub(const char *argument)
{
	unsigned char *m = place_code64(), *at = m + 512;
	uint64_t target = argument ? strtoull(argument, NULL, 0) : 0x700000001000,
		 path = (uint32_t)(uintptr_t)m + 84;

	/* mov $85,%eax; movabs path,%rdi; mov $0644,%esi; movabs target,%rcx; jmp *%rcx */
	memcpy(at, "\xb8\x55\0\0\0\x48\xbf", 7);
	memcpy(at + 7, &path, 8);
	memcpy(at + 15, "\xbe\xa4\x01\0\0\x48\xb9", 7);
	memcpy(at + 22, &target, 8);
	memcpy(at + 30, "\xff\xe1", 2);
	far_jump(0x33, (uint32_t)(uintptr_t)at);
}

/* The host's own 32-bit segment has no limit at VMP_USER_LIMIT. */
static void by_flat_segment(const char *argument)
{
	uint32_t value = 0;

	(void)argument;
	__asm__ volatile("pushl %%ds; movw %w1, %%ds; movl %c2, %0; popl %%ds"
			 : "=&r"(value)
			 : "r"(0x2b), "i"(KERNEL)
			 : "memory");
}

/* Reads the guest kernel's memory by the host's flat segment and by the guest kernel's own, and
 * prints the results. */
static void by_kernel_memory(const char *argument)
{
	static const uint16_t selectors[] = { 0x2b, 0x8f };
	static sigjmp_buf outside;

	(void)argument;
	memcpy(outside, back, sizeof outside);
	for (volatile unsigned i = 0; i < sizeof selectors / sizeof *selectors; i++) {
		if (sigsetjmp(back, 1)) {
			printf("segment %x: a signal\n", selectors[i]);
			continue;
		}
		uint32_t value;

		__asm__ volatile("pushl %%ds; movw %w1, %%ds; movl %c2, %0; popl %%ds"
				 : "=&r"(value) : "r"(selectors[i]), "i"(KERNEL) : "memory");
		printf("segment %x: reads the guest kernel\n", selectors[i]);
	}
	memcpy(back, outside, sizeof outside);
}

/* Uses the CPU window's iret, with a frame that leads into the guest kernel's code segment.  Code
 * that got there could read CR3. */
static void by_window_iret(const char *argument)
{
	static uint32_t stack[64];
	uint32_t *frame = stack + 32;

	(void)argument;
	__asm__ volatile("movl $1f, (%0); movl $0x84, 4(%0); movl $2, 8(%0); movl %%esp, %%esi; "
			 "movl %0, %%esp\n"
			 "	ljmp $0x23, $0xffffd100\n"
			 "1:	movl %%cr3, %%eax; movl %%esi, %%esp"
			 :
			 : "r"(frame)
			 : "eax", "esi", "memory");
	printf("PROOF of the kernel's privilege\n");
	fflush(stdout);
}

/* Uses the CPU window's entry for hypercalls.  A caller that is believed there would be the kernel
 * when it returns. */
static void by_window_hypercall(const char *argument)
{
	static uint32_t stack[64];
	uint32_t *top = stack + 32;

	(void)argument;
	__asm__ volatile("movl $1f, (%0); movl %%esp, %%esi; movl %0, %%esp; movl $1, %%eax\n"
			 "	ljmp $0x23, $0xffffd200\n"
			 "1:	movl %%cr3, %%eax; movl %%esi, %%esp"
			 :
			 : "r"(top)
			 : "eax", "edx", "esi", "memory");
	printf("PROOF of the kernel's privilege\n");
	fflush(stdout);
}

/* Writes another gate into the CPU window's data page, by the host's flat segment: 64-bit code that
 * reads the guest kernel's memory and goes on to the old gate.  The next caller of the engine by
 * the gate is the kernel, on its way back from a system call. */
static void by_gate(const char *argument)
{
	static volatile uint32_t reached;
	unsigned char *payload = place_code64() + 1024;
	uint32_t kernel = KERNEL, flag = (uint32_t)(uintptr_t)&reached, old = 0;
	uint32_t new = (uint32_t)(uintptr_t)payload;
	long pid;

	(void)argument;
	__asm__ volatile("pushl %%ds; movw %w1, %%ds; movl 0xffffc020, %0; popl %%ds"
			 : "=&r"(old) : "r"(0x2b) : "memory");
	/* mov $kernel,%r9d; mov (%r9),%r10d; mov $flag,%r9d; movl $1,(%r9); mov $old,%r9d;
	 * jmp *%r9 */
	memcpy(payload, "\x41\xb9....\x45\x8b\x11\x41\xb9....\x41\xc7\x01\1\0\0\0\x41\xb9...."
	       "\x41\xff\xe1", 31);
	memcpy(payload + 2, &kernel, 4);
	memcpy(payload + 11, &flag, 4);
	memcpy(payload + 24, &old, 4);
	for (unsigned i = 0; i < 100 && !reached; i++)
		__asm__ volatile("pushl %%ds; movw %w3, %%ds; movl %2, 0xffffc020; popl %%ds\n"
				 "	int $0x80\n"
				 "	pushl %%ds; movw %w3, %%ds; movl %1, 0xffffc020; popl %%ds"
				 : "=a"(pid)
				 : "D"(old), "S"(new), "d"(0x2b), "0"(SYS_getpid)
				 : "memory");
	if (reached)
		printf("PROOF of the kernel's address space\n");
	fflush(stdout);
}

/* Runs the mapping stub with this program's own operations all over the stub page, for so many
 * rounds that a tick interrupts it.  Each operation maps a frame of the kernel's. */
static void by_stub_list(const char *argument)
{
	enum { OPS = 64, ROUNDS = 65536, AT = 0x40000000 };
	static uint64_t ops[OPS * 8];
	unsigned char *code = place_code64() + 1024;
	uint64_t stub = strtoull(argument, NULL, 0), page = 0x700100000000; /* STUB_PAGE_ADDRESS */
	uint32_t count = ROUNDS, list = (uint32_t)(uintptr_t)ops, bytes = sizeof ops;
	static sigjmp_buf outside;

	/* mmap(AT, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, 3, 16 MiB) */
	for (unsigned i = 0; i < OPS; i++) {
		const uint64_t op[8] = { 9, AT, 4096, 3, 0x11, 3, 16 << 20 };

		memcpy(ops + i * 8, op, sizeof op);
	}
	/* mov $list,%esi; mov $bytes,%ecx; movabs $page,%rbx; mov %rbx,%rdi; rep movsb;
	 * mov $count,%ebp; movabs $stub,%rcx; jmp *%rcx */
	memcpy(code, "\xbe....\xb9....\x48\xbb........\x48\x89\xdf\xf3\xa4\xbd....\x48\xb9........"
	       "\xff\xe1", 42);
	memcpy(code + 1, &list, 4);
	memcpy(code + 6, &bytes, 4);
	memcpy(code + 12, &page, 8);
	memcpy(code + 26, &count, 4);
	memcpy(code + 32, &stub, 8);
	memcpy(outside, back, sizeof outside);
	if (!sigsetjmp(back, 1))
		far_jump(0x33, (uint32_t)(uintptr_t)code);
	if (!sigsetjmp(back, 1))
		printf("PROOF of the kernel's memory: %x\n", *(volatile uint32_t *)AT);
	fflush(stdout);
	memcpy(back, outside, sizeof outside);
}

/* Uses the VM process's own slot in the host's shared memory: asks the daemon for a page that does
 * not exist, and for countless others, and rings.  The bell takes eight bytes, and no text. */
static void by_slot_want(const char *argument)
{
	/* offsets in struct vcpu_slot (base/hostshm.h), and a value of enum slot_want */
	enum { WANT = 28, GFN = 32, AHEADS = 40, ASKED = 1 };
	static const unsigned char code[] = {
		/* mov $DIRECT_SLOT_ADDRESS,%rbx */
		0x48, 0xbb, 0x00, 0x00, 0x02, 0x00, 0x01, 0x70, 0x00, 0x00,
		/* movl $-1,GFN(%rbx) */
		0xc7, 0x83, GFN & 0xff, GFN >> 8, 0, 0, 0xff, 0xff, 0xff, 0xff,
		0xc7, 0x83, AHEADS & 0xff, AHEADS >> 8, 0, 0, 0xff, 0xff, 0xff, 0xff,
		0xc7, 0x83, WANT & 0xff, WANT >> 8, 0, 0, ASKED, 0, 0, 0,
		/* write(4, one, 8) */
		0xb8, 1, 0, 0, 0, 0xbf, 4, 0, 0, 0, 0x48, 0x8d, 0x35, 30, 0, 0, 0,
		0xba, 8, 0, 0, 0, 0x0f, 0x05,
		/* write(4, "PROOF\n", 6) */
		0xb8, 1, 0, 0, 0, 0x48, 0x8d, 0x35, 19, 0, 0, 0,
		0xba, 6, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xfe, 0x90, 0x90,
		1, 0, 0, 0, 0, 0, 0, 0, 'P', 'R', 'O', 'O', 'F', '\n',
	};
	unsigned char *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)argument;
	memcpy(m, code, sizeof code);
	far_jump(0x33, (uint32_t)(uintptr_t)m);
}

/* Tells the count of a barrier to the daemon of a machine that has one host and shares nothing, by
 * the VM process's own slot, and waits until it has been taken. */
static void by_slot_tell(const char *argument)
{
	/* offsets in struct vcpu_slot (base/hostshm.h), and a value of enum slot_want */
	enum { WANT = 28, TELL = 2160, BARRIER = 2 };
	static const unsigned char code[] = {
		/* mov $DIRECT_SLOT_ADDRESS,%rbx */
		0x48, 0xbb, 0x00, 0x00, 0x02, 0x00, 0x01, 0x70, 0x00, 0x00,
		0xc7, 0x83, TELL & 0xff, TELL >> 8, 0, 0, 1, 0, 0, 0,
		0xc7, 0x83, WANT & 0xff, WANT >> 8, 0, 0, BARRIER, 0, 0, 0,
		/* write(4, one, 8) */
		0xb8, 1, 0, 0, 0, 0xbf, 4, 0, 0, 0, 0x48, 0x8d, 0x35, 18, 0, 0, 0,
		0xba, 8, 0, 0, 0, 0x0f, 0x05,
		/* 1: cmpl $0,TELL(%rbx); jne 1b; ud2 */
		0x83, 0xbb, TELL & 0xff, TELL >> 8, 0, 0, 0, 0x75, 0xf7, 0x0f, 0x0b,
		1, 0, 0, 0, 0, 0, 0, 0,
	};
	unsigned char *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)argument;
	memcpy(m, code, sizeof code);
	far_jump(0x33, (uint32_t)(uintptr_t)m);
}

/* Tries to get pages below 64 KiB, which the host does not let its users have.  If one were present
 * in the guest's page tables, a program that uses it would get a signal at best, and a system call
 * like FUTEX_WAKE_OP would fault and try again for ever.  So there must be none, not for root
 * either, and whatever vm.mmap_min_addr says. */
enum { LOW = 64 << 10 };

static void *map_at(uintptr_t at, size_t bytes, int flags)
{
	return mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0);
}

static bool refused(uintptr_t at)
{
	return map_at(at, LOW + 4096, 0) == MAP_FAILED && errno == EPERM;
}

static bool faults(volatile char *at)
{
	static sigjmp_buf outside;
	bool fault = true;

	memcpy(outside, back, sizeof outside);
	if (!sigsetjmp(back, 1)) {
		*at = 1;
		fault = false;
	}
	memcpy(back, outside, sizeof outside);
	return fault;
}

static void by_page_zero(const char *argument)
{
	volatile char *low = (volatile char *)LOW;
	FILE *limit = fopen("/proc/sys/vm/mmap_min_addr", "w");
	static uint32_t word;

	(void)argument;
	expect("the limit can be written", limit && fprintf(limit, "0\n") > 0);
	expect("... and is", limit && !fclose(limit));
	expect("page 0 is refused", refused(0));
	expect("so is the last page below 64 KiB", refused(LOW - 4096));
	expect("a stack begins at 64 KiB", map_at(LOW, 4096, MAP_GROWSDOWN) == low);
	low[5] = 7;
	expect("it works", low[5] == 7 && !low[6]);
	expect("it does not grow", faults(low - 1));
	expect("a write from page 0", syscall(SYS_write, 1, NULL, 16) < 0 && errno == EFAULT);
	expect("FUTEX_WAKE_OP with page 0",
	       syscall(SYS_futex, &word, FUTEX_WAKE_OP, 1, 1, NULL,
		       FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0)) < 0 && errno == EFAULT);
}

/* Executes what only the kernel may send to the monitor. */
static void by_marker(const char *argument)
{
	(void)argument;
	__asm__ volatile("int $0x82; cli");
}

static void by_hypercall(const char *argument)
{
	(void)argument;
	__asm__ volatile("int $0x83" : : "a"(5), "b"(0), "c"(0));
}

static void by_privileged(const char *argument)
{
	(void)argument;
	__asm__ volatile("movl %%cr3, %%eax" : : : "eax");
}

/* 64-bit code gives fs or gs a base in the host kernel's half of the address space, and goes back.
 * No 32-bit segment has such a base, and the host refuses a tracer that sets one. */
static void set_base(unsigned char modrm)
{
	enum { AT = 0x50000000, BACK = AT + 0x800, WAYS = 200000000 };
	const uint64_t base = 0xffff800000000000;
	const uint32_t back_at = BACK;
	unsigned char *m = mmap((void *)AT, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	struct { uint32_t offset; uint16_t selector; } __attribute__((packed)) to = { AT, 0x33 },
		*from = (void *)(m + 0x800);

	/* movabs base,%rax; wrfsbase %rax or wrgsbase %rax; ljmp *BACK */
	memcpy(m, "\x48\xb8........\xf3\x48\x0f\xae.\xff\x2c\x25....", 22);
	memcpy(m + 2, &base, 8);
	m[14] = modrm;
	memcpy(m + 18, &back_at, 4);
	__asm__ volatile("movl $1f, %0; movw %%cs, %1; ljmp *%2\n"
			 "1:"
			 : "=m"(from->offset), "=m"(from->selector)
			 : "m"(to)
			 : "eax", "memory");
	for (volatile unsigned n = 0; n < WAYS; n++) /* until a tick */
		;
}

static void by_fs_base(const char *argument) { (void)argument, set_base(0xd0); }
static void by_gs_base(const char *argument) { (void)argument, set_base(0xd8); }

/* 64-bit code blocks all signals, the engine's kick among them, by rt_sigreturn.  Then it spins, or
 * with an argument sleeps on the word that wakes the VM process after a call of its monitor.  With
 * "barrier" its slot says meanwhile that the CPU waits for one. */
static void by_sigmask(const char *argument)
{
	enum { AT = 0x50000000, FRAME = AT + 0x1000, STACK = AT + 0x3000, WORDS = 64 };
	/* movabs $FRAME + 8,%rsp; mov $15,%eax; syscall; ud2 */
	static const unsigned char go[] = { 0x48, 0xbc, 0x08, 0x10, 0, 0x50, 0, 0, 0, 0,
					    0xb8, 15, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x0b },
		spin[] = { 0xeb, 0xfe },
		/* 1: futex(DIRECT_SHARED_ADDRESS + 32, FUTEX_WAIT, 0, NULL); jmp 1b */
		rest[] = { 0x48, 0xbf, 0x20, 0x00, 0x01, 0x00, 0x01, 0x70, 0, 0, 0x31, 0xf6,
			   0x31, 0xd2, 0x4d, 0x31, 0xd2, 0xb8, 202, 0, 0, 0, 0x0f, 0x05,
			   0xeb, 0xe6 },
		/* movabs $DIRECT_SLOT_ADDRESS,%rbx; movl $WANT_BARRIER,28(%rbx): its `want` */
		wait[] = { 0x48, 0xbb, 0x00, 0x00, 0x02, 0x00, 0x01, 0x70, 0, 0,
			   0xc7, 0x43, 28, 2, 0, 0, 0 };
	enum { FLAGS = 0, DISABLED = 3, RSP = 20, RIP = 21, EFLAGS = 22, SEGMENTS = 23, MASK = 37 };
	unsigned char *m = mmap((void *)AT, 4 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0),
		      *then = m + 0x100;
	uint64_t frame[WORDS] = { [FLAGS] = 6, [DISABLED] = 2, [RSP] = STACK, [RIP] = AT + 0x100,
				  [EFLAGS] = 0x202, [SEGMENTS] = 0x2bull << 48 | 0x33,
				  [MASK] = ~0ull };

	memcpy(m, go, sizeof go);
	if (argument && !strcmp(argument, "barrier")) {
		memcpy(then, wait, sizeof wait);
		then += sizeof wait;
	}
	memcpy(then, argument ? rest : spin, argument ? sizeof rest : sizeof spin);
	memcpy(m + 0x1008, frame, sizeof frame);
	memset(m + 0x2000, 0, 2 * 4096);
	printf("begun\n");
	fflush(stdout);
	far_jump(0x33, AT);
}

/* 64-bit code writes to the word by which the VM process and its monitor take turns, again and
 * again for some seconds, what is neither's turn.  A monitor that waited for its own turn then
 * would not sleep. */
static void by_turn(const char *argument)
{
	enum { AT = 0x50000000, BACK = AT + 0x800, SECONDS = 10, PAUSE = 1000000 };
	const uint32_t back_at = BACK;
	unsigned char *m = mmap((void *)AT, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	struct { uint32_t offset; uint16_t selector; } __attribute__((packed)) to = { AT, 0x33 },
		*from = (void *)(m + 0x800);
	time_t end = time(NULL) + SECONDS;

	(void)argument;
	/* movabs $DIRECT_SHARED_ADDRESS + 32,%rax; movl $7,(%rax); ljmp *BACK */
	memcpy(m, "\x48\xb8\x20\0\1\0\1\x70\0\0\xc7\0\7\0\0\0\xff\x2c\x25....", 23);
	memcpy(m + 19, &back_at, 4);
	while (time(NULL) < end) {
		__asm__ volatile("movl $1f, %0; movw %%cs, %1; ljmp *%2\n"
				 "1:"
				 : "=m"(from->offset), "=m"(from->selector)
				 : "m"(to)
				 : "eax", "memory");
		for (volatile unsigned n = 0; n < PAUSE; n++) /* no tick comes to 64-bit code */
			;
	}
}

static void copy_program(const char *name)
{
	static char bytes[65536];
	int from = open("/proc/self/exe", O_RDONLY);
	int to = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	ssize_t n;

	while ((n = read(from, bytes, sizeof bytes)) > 0)
		if (write(to, bytes, (size_t)n) != n)
			break;
	expect("a copy of this program", from >= 0 && to >= 0 && !n);
	close(from);
	close(to);
}

/* As an ordinary user: a program whose name has a second line gets a fault.  The kernel prints the
 * name, and so the line; with "Kernel panic" it looks like the end of a panic. */
static void by_name(const char *argument)
{
	static const char folder[] = "/tmp/hostile",
			  name[] = "/tmp/hostile/a\n---[ end Kernel panic";
	int status = 0;
	pid_t child;

	(void)argument;
	mkdir(folder, 0777);
	chmod(folder, 0777);
	child = fork();
	if (!child) {
		if (setgid(1000) || setuid(1000))
			_exit(1);
		copy_program(name);
		execl(name, "x", "crash", NULL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	expect("the program got its signal", WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	sleep(1); /* as long as the message needs, by far */
}

/* For by_name(): without a handler the kernel prints the program's name. */
static void by_crash(const char *argument)
{
	(void)argument;
	signal(SIGSEGV, SIG_DFL);
	__asm__ volatile("movl $1, 8" : : : "memory");
}

static const struct method {
	const char *name;
	void (*try)(const char *argument);
	bool fault_is_certain; /* the program gets a signal on any machine */
} methods[] = {
	{ "int80", by_int80, false }, { "syscall", by_syscall, false },
	{ "sysenter", by_sysenter, false }, { "farjump", by_far_jump, false },
	{ "stub", by_stub, false }, { "flat", by_flat_segment, false },
	{ "kernel", by_kernel_memory, false }, { "iret", by_window_iret, false },
	{ "window", by_window_hypercall, false }, { "gate", by_gate, false },
	{ "stublist", by_stub_list, false }, { "want", by_slot_want, false },
	{ "turn", by_turn, false }, { "tell", by_slot_tell, false }, { "name", by_name, false },
	{ "crash", by_crash, false }, { "fsbase", by_fs_base, false },
	{ "gsbase", by_gs_base, false }, { "sigmask", by_sigmask, false },
	{ "zero", by_page_zero, false }, { "marker", by_marker, true },
	{ "hypercall", by_hypercall, true }, { "privileged", by_privileged, true },
};

static int run(const struct method *method, const char *argument)
{
	int signal = sigsetjmp(back, 1);

	if (!signal)
		method->try(argument);
	if (method->fault_is_certain)
		expect("only a signal came of it", signal == SIGSEGV);
	printf("the program goes on\n");
	return check_result();
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP };
	static char stack[65536];
	stack_t other = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction action = { .sa_handler = leave, .sa_flags = SA_ONSTACK };

	sigaltstack(&other, NULL);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &action, NULL);
	for (size_t i = 0; argc > 1 && i < sizeof methods / sizeof *methods; i++)
		if (!strcmp(argv[1], methods[i].name))
			return run(&methods[i], argc > 2 ? argv[2] : NULL);
	fprintf(stderr, "usage: hostile "
		"int80|syscall|sysenter|farjump|stub|flat|kernel|iret|window|gate|stublist|want|"
		"turn|tell|name|crash|fsbase|gsbase|sigmask|"
		"zero|marker|hypercall|privileged [ADDRESS]\n");
	return 2;
}
