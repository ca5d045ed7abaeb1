/* vmproc.c - the VM process: sets up its jail, then belongs to its monitor (ptrace engine) or to
 * direct.c.
 *
 * Freestanding (no libc, no stack protector, no thread-local storage): guest code will run here
 * with segment registers of its own, and no C library may be present for hostile code to use.
 * Started by monitor/process.c with the guest's RAM as descriptor 3, the stub page's memory as
 * 4, and struct vmproc_start on its command line.  On the ptrace engine two stops on `int3` tell
 * the monitor how far it is: the first when its userfaultfd can be fetched, the second when the
 * jail is closed.  From then on the monitor sets every register.
 */
#include "vmproc/vmproc.h"


#include <asm/prctl.h>
#include <asm/unistd_64.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/signal.h>
#include <linux/types.h>
#include <linux/ioctl.h>
#include <linux/userfaultfd.h>
#include <stddef.h>
#include "base/hostshm.h"
#include "vmproc/direct_env.h"
#include "vmproc/filter.h"
#include "vmproc/host.h"
#include "vmproc/user.h"

static struct stub_page *const page = (struct stub_page *)STUB_PAGE_ADDRESS;

/* The stub: %rbx points to the next struct stub_op, %rbp counts.  The monitor enters at
 * vmproc_stub.  Guest code may enter anywhere, with registers of its own.  So the pointer is forced
 * into the stub page before each call, and again behind it: after a call that maps the guest
 * kernel's memory, no access there follows.  (TRICKS: stub-keeps-to-its-page) */
#define INTO_STUB_PAGE \
	"	and	$0xfc0, %ebx\n" \
	"	movabs	$0x700100000000, %rcx\n" \
	"	or	%rcx, %rbx\n"
_Static_assert(STUB_PAGE_ADDRESS == 0x700100000000 &&
		       STUB_PAGE_BYTES == 0xfc0 + sizeof(struct stub_op),
	       "INTO_STUB_PAGE");
__asm__(".text\n"
	".globl vmproc_stub, vmproc_stub_syscall_end\n"
	".hidden vmproc_stub, vmproc_stub_syscall_end\n"
	"vmproc_stub:\n"
	"	test	%rbp, %rbp\n"
	"	jz	1f\n"
	INTO_STUB_PAGE
	"	mov	0(%rbx), %rax\n"
	"	mov	8(%rbx), %rdi\n"
	"	mov	16(%rbx), %rsi\n"
	"	mov	24(%rbx), %rdx\n"
	"	mov	32(%rbx), %r10\n"
	"	mov	40(%rbx), %r8\n"
	"	mov	48(%rbx), %r9\n"
	"	syscall\n"
	"vmproc_stub_syscall_end:\n"
	INTO_STUB_PAGE
	"	mov	%rax, 56(%rbx)\n"
	"	add	$64, %rbx\n"
	"	dec	%rbp\n"
	"	jmp	vmproc_stub\n"
	"1:	int3\n"
	"	jmp	1b\n");
extern __attribute__((visibility("hidden"))) const char vmproc_stub[], vmproc_stub_syscall_end[];

/* Open a userfaultfd that raises SIGBUS at the instruction that accessed the page, for user-mode
 * accesses only, which needs no privilege. (TRICKS: minor-faults-too) */
static void open_userfaultfd(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MINOR_SHMEM |
			    UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};
	long fd = host_call(__NR_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY, 0, 0, 0, 0, 0);
	long error = fd < 0 ? fd : host_call(__NR_ioctl, fd, (long)UFFDIO_API, (long)&api, 0, 0, 0);

	if (!error && fd != VMPROC_FAULT_FD)
		error = host_call(__NR_dup2, fd, VMPROC_FAULT_FD, 0, 0, 0, 0) < 0;
	page->userfault_fd = error ? -1 : VMPROC_FAULT_FD;
	page->userfault_error = error;
}

/* The calls that both engines make: each returns a verdict, or leaves the number loaded. */
#define MAPPING_CALLS(descriptor) \
	IF(__NR_mmap, 16), /* below 4 GiB, the RAM, shared and fixed */ \
	BELOW_4_GIB(0), BELOW_4_GIB(1), \
	LOAD_LOW(3), MUST_BE(MAP_SHARED | MAP_FIXED), BELOW_4_GIB(3), \
	LOAD_LOW(4), MUST_BE(VMPROC_RAM_FD), GIVE(SECCOMP_RET_ALLOW), \
	IF(__NR_munmap, 7), \
	BELOW_4_GIB(0), BELOW_4_GIB(1), GIVE(SECCOMP_RET_ALLOW), \
	IF(__NR_modify_ldt, 13), \
	LOAD_LOW(0), MUST_BE(0x11), ADDRESS(1, descriptor), \
	LOAD_LOW(2), MUST_BE(sizeof(struct user_desc)), \
	GIVE(SECCOMP_RET_ALLOW)

long vmproc_install_filter(struct sock_filter *filter, unsigned short length)
{
	struct sock_fprog program = { length, filter };

	host_call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
	return host_call(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&program, 0, 0, 0);
}

/* Close the ptrace engine's jail: it allows the stub's one `syscall`; every other call stops at the
 * monitor. */
static long close_stub_jail(void)
{
#define REFUSE SECCOMP_RET_TRACE
	uint64_t at = (uint64_t)vmproc_stub_syscall_end, descriptor = (uint64_t)&page->descriptor;
	struct sock_filter filter[] = {
		LOAD(arch), MUST_BE(AUDIT_ARCH_X86_64),
		LOAD(instruction_pointer), MUST_BE(at),
		LOAD_AT(offsetof(struct seccomp_data, instruction_pointer) + 4), MUST_BE(at >> 32),
		LOAD(nr),
		MAPPING_CALLS(descriptor),
		GIVE(REFUSE),
	};

	return vmproc_install_filter(filter, sizeof filter / sizeof *filter);
#undef REFUSE
}

/* Close the direct engine's jail: it allows the engine's own calls, from any address; every other
 * call becomes SIGSYS.  The only i386 call is set_thread_area. */
static long close_direct_jail(void)
{
#define REFUSE SECCOMP_RET_TRAP
	uint64_t descriptor = (uint64_t)&page->descriptor, bells = (uint64_t)direct.bells;
	uint64_t turn = (uint64_t)&direct.shared->turn, setup = (uint64_t)&direct.shared->setup;
	uint64_t want = (uint64_t)&direct.slot->want;
	uint64_t has_cpu = (uint64_t)direct.shared->has_cpu;
	struct sock_filter filter[] = {
		LOAD(arch),
		IF(AUDIT_ARCH_I386, 7),
		LOAD(nr), MUST_BE(243), LOAD_LOW(0), MUST_BE(DIRECT_TLS_ARGUMENT),
		GIVE(SECCOMP_RET_ALLOW),
		LOAD(arch), MUST_BE(AUDIT_ARCH_X86_64),
		LOAD(nr),
		IF(__NR_rt_sigreturn, 1), GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_sched_yield, 1), GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_clock_gettime, 4), LOAD_LOW(0), MUST_BE(1), GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_timer_settime, 4), LOAD_LOW(0), MUST_BE(direct.timer),
		GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_futex, 22), /* wait or wake: doorbells and a few words, in one 4 GiB */
		LOAD_LOW(1), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~1u), MUST_BE(0),
		LOAD_HIGH(0), MUST_BE(bells >> 32),
		LOAD_LOW(0), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(uint32_t)PAGE_MASK),
		IF(bells, 1), GIVE(SECCOMP_RET_ALLOW),
		LOAD_LOW(0), IF(turn, 1), GIVE(SECCOMP_RET_ALLOW),
		IF(want, 1), GIVE(SECCOMP_RET_ALLOW),
		IF(setup, 1), GIVE(SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(uint32_t)(sizeof direct.shared->has_cpu - 1)),
		MUST_BE(has_cpu),
		GIVE(SECCOMP_RET_ALLOW),
		/* with --strict: the pipes of its user process, and a kick to it */
		IF(__NR_write, 9), LOAD_LOW(0), IF(VMPROC_ORDER_FD, 1), GIVE(SECCOMP_RET_ALLOW),
		MUST_BE(VMPROC_BELL_FD), LOAD_LOW(2), MUST_BE(sizeof(uint64_t)),
		GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_read, 4), LOAD_LOW(0), MUST_BE(VMPROC_REPORT_FD), GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_ppoll, 1), GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_pidfd_send_signal, 13), LOAD_LOW(0), MUST_BE(VMPROC_USER_FD), LOAD_LOW(1),
		MUST_BE(SIGUSR1), ADDRESS(2, 0), GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_ioctl, 13), LOAD_LOW(0), IF(VMPROC_USER_FAULT_FD, 1),
		BPF_JUMP(BPF_JMP | BPF_JA, 2, 0, 0), MUST_BE(VMPROC_FAULT_FD), LOAD_LOW(1),
		IF(UFFDIO_CONTINUE, 1), GIVE(SECCOMP_RET_ALLOW), IF(UFFDIO_WRITEPROTECT, 1),
		GIVE(SECCOMP_RET_ALLOW),
		MUST_BE(UFFDIO_REGISTER), GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_mprotect, 13), /* direct_bare_window() */
		ADDRESS(0, VMP_WINDOW), LOAD_LOW(1), MUST_BE(PAGE_BYTES), BELOW_4_GIB(1),
		GIVE(SECCOMP_RET_ALLOW),
		MAPPING_CALLS(descriptor),
		GIVE(REFUSE),
	};

	return vmproc_install_filter(filter, sizeof filter / sizeof *filter);
#undef REFUSE
}

static long map_at(uint64_t address, uint64_t bytes, int protection, int fd, uint64_t offset)
{
	return host_call(__NR_mmap, address, bytes, protection,
			 fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE
				: MAP_SHARED | MAP_FIXED,
			 fd, offset);
}

/* Map what a kernel process shares with its user process, and the latter's shadow entries. */
static long map_mail(uint64_t space)
{
	uint64_t at = STUB_FD_MAIL + space * STUB_FD_MAIL_BYTES;
	long error = map_at(USER_REPORT_ADDRESS, USER_MAILBOX_BYTES, PROT_READ, VMPROC_STUB_FD, at);

	if (error >= 0)
		error = map_at(USER_ORDER_ADDRESS, USER_MAIL_BYTES - USER_MAILBOX_BYTES,
			       PROT_READ | PROT_WRITE, VMPROC_STUB_FD, at + USER_MAILBOX_BYTES);
	if (error >= 0)
		error = map_at(DIRECT_USER_SHADOW_ADDRESS, LINEAR_PAGES * sizeof(uint32_t),
			       PROT_READ | PROT_WRITE, -1, 0);
	return error;
}

/* Map the memory that the direct engine needs besides the stub page and the window. */
static void prepare_direct(const struct vmproc_start *start)
{
	struct direct_shared *s = (struct direct_shared *)DIRECT_SHARED_ADDRESS;
	long error = map_at(DIRECT_SHARED_ADDRESS, STUB_FD_MAIL - STUB_FD_DIRECT,
			    PROT_READ | PROT_WRITE, VMPROC_STUB_FD, STUB_FD_DIRECT);

	if (error < 0)
		host_call(__NR_exit_group, 1, 0, 0, 0, 0, 0);
	direct.shared = s;
	direct.number = (unsigned)start->space;
	direct.strict = start->strict != VMPROC_TOGETHER;
	direct.slot = (struct vcpu_slot *)DIRECT_SLOT_ADDRESS;
	direct.bells = (struct doorbell *)DIRECT_BELLS_ADDRESS;
	direct.window = (struct cpu_window *)VMP_WINDOW;
	error = direct_is_bare() ? direct_bare_set_up() : 0;
	if (error >= 0)
		error = map_at(DIRECT_SLOT_ADDRESS, sizeof(struct vcpu_slot),
			       PROT_READ | PROT_WRITE, VMPROC_CPUS_FD, start->slot_offset);
	if (error >= 0)
		error = map_at(DIRECT_BELLS_ADDRESS, PAGE_BYTES, PROT_READ | PROT_WRITE,
			       VMPROC_CPUS_FD, start->bells_offset);
	if (error >= 0)
		error = map_at(DIRECT_CLOCK_ADDRESS, PAGE_BYTES, PROT_READ, VMPROC_CPUS_FD, 0);
	if (error >= 0)
		error = map_at(DIRECT_RIGHTS_ADDRESS, start->ram_pages, PROT_READ, VMPROC_CPUS_FD,
			       start->rights_offset);
	if (error >= 0)
		error = map_at(DIRECT_RAM_ADDRESS, start->ram_pages << PAGE_BITS,
			       PROT_READ | PROT_WRITE, VMPROC_RAM_FD, 0);
	if (error >= 0)
		error = map_at(DIRECT_SHADOW_ADDRESS, LINEAR_PAGES * sizeof(uint32_t),
			       PROT_READ | PROT_WRITE, -1, 0);
	if (error >= 0 && direct.strict)
		error = map_mail(start->space);
	if (error >= 0)
		error = direct_install();
	s->setup_error = error < 0 ? error : 0;
	direct_setup_done(SETUP_MAPPED);
	while (atomic_load(&s->setup) == SETUP_MAPPED)
		host_call(__NR_futex, (long)&s->setup, FUTEX_WAIT, SETUP_MAPPED, 0, 0, 0);
}

/* Parse the command line's decimal words.  False: a wrong number of words, or not numbers. */
static bool take_start(const long *stack, struct vmproc_start *start)
{
	char *const *word = (char *const *)(stack + 2); /* behind argc and argv[0] */

	if (stack[0] != VMPROC_START_WORDS + 1)
		return false;
	for (unsigned i = 0; i < VMPROC_START_WORDS; i++) {
		uint64_t value = 0;

		for (const char *digit = word[i]; *digit; digit++) {
			if (*digit < '0' || *digit > '9')
				return false;
			value = value * 10 + (uint64_t)(*digit - '0');
		}
		((uint64_t *)start)[i] = value;
	}
	return true;
}

/* `stack` is the stack with which the host starts a process: argc, argv. */
void vmproc_main(const long *stack);
void vmproc_main(const long *stack)
{
	struct vmproc_start start;

	if (!take_start(stack, &start))
		host_call(__NR_exit_group, 1, 0, 0, 0, 0, 0);

	long error = host_call(__NR_mmap, STUB_PAGE_ADDRESS, STUB_PAGE_BYTES,
			       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, VMPROC_STUB_FD, 0);

	if (error >= 0)
		error = host_call(__NR_mmap, VMP_WINDOW, 4096, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_FIXED, VMPROC_STUB_FD, STUB_FD_WINDOW);
	if (error >= 0)
		error = host_call(__NR_mmap, VMP_STUB_SYSCALL, 4096, PROT_READ | PROT_EXEC,
				  MAP_SHARED | MAP_FIXED, VMPROC_STUB_FD, STUB_FD_WINDOW + 4096);
	if (error < 0)
		host_call(__NR_exit_group, 1, 0, 0, 0, 0, 0);
	page->stub_entry = (uint64_t)vmproc_stub;
	page->stub_syscall_end = (uint64_t)vmproc_stub_syscall_end;
	page->cpuid_faulting = host_call(__NR_arch_prctl, ARCH_SET_CPUID, 0, 0, 0, 0, 0) == 0;
	page->userfault_fd = -1;
	if (start.userfault)
		open_userfaultfd();
	if (start.strict == VMPROC_USER)
		user_main(&start);
	if (start.direct)
		prepare_direct(&start);
	else
		__asm__ volatile("int3" ::: "memory");

	host_call(__NR_close_range, start.direct ? VMPROC_STUB_FD : VMPROC_RAM_FD + 1, ~0u, 0, 0, 0,
		  0);
	if (start.strict == VMPROC_TOGETHER)
		host_call(__NR_close_range, 0, VMPROC_RAM_FD - 1, 0, 0, 0, 0);
	if (start.direct) {
		error = close_direct_jail();
		if (error) { /* decided here alone: hostile code may write to shared memory */
			direct.shared->setup_error = (int32_t)error;
			host_call(__NR_exit_group, 1, 0, 0, 0, 0, 0);
		}
		direct_setup_done(SETUP_JAILED);
		direct_run();
	}
	page->setup_error = close_stub_jail();
	__asm__ volatile("xor %%ebp, %%ebp; jmp vmproc_stub" ::: "memory");
	__builtin_unreachable();
}

__asm__(".globl _start\n_start:\n"
	"	mov %rsp, %rdi\n	and $-16, %rsp\n	call vmproc_main\n");
