/* vmproc.c - the VM process: sets up its jail, then belongs to its monitor.
 *
 * Freestanding (no libc, no stack protector, no thread-local storage): guest code will run here with segment registers of
 * its own, and nothing of a C library may lie about for hostile code to use.  Started by monitor/process.c with the guest's
 * RAM as descriptor 3 and the stub page's memory as 4.  Two stops on `int3` tell the monitor how far it is: the first when
 * its userfaultfd can be fetched, the second when the jail is closed.  From then on the monitor sets every register.
 */
#include "vmproc/vmproc.h"

#include <asm/prctl.h>
#include <asm/unistd_64.h>
#include <linux/audit.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/types.h>
#include <linux/ioctl.h>
#include <linux/userfaultfd.h>
#include <stddef.h>

static struct stub_page *const page = (struct stub_page *)STUB_PAGE_ADDRESS;

static long call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/* The stub: %rbx points to the next struct stub_op, %rbp counts. The monitor enters at vmproc_stub. */
__asm__(".text\n"
	".globl vmproc_stub, vmproc_stub_syscall_end\n"
	".hidden vmproc_stub, vmproc_stub_syscall_end\n"
	"vmproc_stub:\n"
	"	test	%rbp, %rbp\n"
	"	jz	1f\n"
	"	mov	0(%rbx), %rax\n"
	"	mov	8(%rbx), %rdi\n"
	"	mov	16(%rbx), %rsi\n"
	"	mov	24(%rbx), %rdx\n"
	"	mov	32(%rbx), %r10\n"
	"	mov	40(%rbx), %r8\n"
	"	mov	48(%rbx), %r9\n"
	"	syscall\n"
	"vmproc_stub_syscall_end:\n"
	"	mov	%rax, 56(%rbx)\n"
	"	add	$64, %rbx\n"
	"	dec	%rbp\n"
	"	jmp	vmproc_stub\n"
	"1:	int3\n"
	"	jmp	1b\n");
extern __attribute__((visibility("hidden"))) const char vmproc_stub[], vmproc_stub_syscall_end[];

/* userfaultfd: errors as SIGBUS at the instruction that touched the page, for user-mode accesses only: no privilege. */
static void open_userfaultfd(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_MISSING_SHMEM |
			    UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};
	long fd = call(__NR_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY, 0, 0, 0, 0, 0);
	long error = fd < 0 ? fd : call(__NR_ioctl, fd, (long)UFFDIO_API, (long)&api, 0, 0, 0);

	page->userfault_fd = error ? -1 : fd;
	page->userfault_error = error;
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_LOW(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (n))
#define LOAD_HIGH(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (n) + 4)
#define GIVE(what) BPF_STMT(BPF_RET | BPF_K, what)
/* Go on if the loaded word is k, otherwise to the monitor. */
#define MUST_BE(k) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(k), 1, 0), GIVE(SECCOMP_RET_TRACE)
#define BELOW_4_GIB(n) LOAD_HIGH(n), MUST_BE(0)
/* Skip `length` instructions unless the loaded word is k. */
#define IF(k, length) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), 0, (length))

static long close_jail(void)
{
	uint64_t at = (uint64_t)vmproc_stub_syscall_end, descriptor = (uint64_t)&page->descriptor;
	struct sock_filter filter[] = {
		LOAD(arch), MUST_BE(AUDIT_ARCH_X86_64),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)), MUST_BE(at),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4), MUST_BE(at >> 32),
		LOAD(nr),
		IF(__NR_mmap, 16), /* below 4 GiB, the RAM, shared and fixed */
		BELOW_4_GIB(0), BELOW_4_GIB(1), LOAD_LOW(3), MUST_BE(MAP_SHARED | MAP_FIXED), BELOW_4_GIB(3),
		LOAD_LOW(4), MUST_BE(VMPROC_RAM_FD), GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_munmap, 7),
		BELOW_4_GIB(0), BELOW_4_GIB(1), GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_mprotect, 7),
		BELOW_4_GIB(0), BELOW_4_GIB(1), GIVE(SECCOMP_RET_ALLOW),
		IF(__NR_modify_ldt, 13),
		LOAD_LOW(0), MUST_BE(0x11), LOAD_LOW(1), MUST_BE(descriptor), LOAD_HIGH(1), MUST_BE(descriptor >> 32),
		LOAD_LOW(2), MUST_BE(sizeof(struct user_desc)), GIVE(SECCOMP_RET_ALLOW),
		GIVE(SECCOMP_RET_TRACE),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

	call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
	return call(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&program, 0, 0, 0);
}

void vmproc_main(void);
void vmproc_main(void)
{
	long error = call(__NR_mmap, STUB_PAGE_ADDRESS, STUB_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			  VMPROC_STUB_FD, 0);

	if (error < 0)
		call(__NR_exit_group, 1, 0, 0, 0, 0, 0);
	page->stub_entry = (uint64_t)vmproc_stub;
	page->stub_syscall_end = (uint64_t)vmproc_stub_syscall_end;
	page->cpuid_faulting = call(__NR_arch_prctl, ARCH_SET_CPUID, 0, 0, 0, 0, 0) == 0;
	page->userfault_fd = -1;
	if (page->want_userfault)
		open_userfaultfd();
	__asm__ volatile("int3" ::: "memory");

	call(__NR_close_range, VMPROC_STUB_FD, ~0u, 0, 0, 0, 0);
	call(__NR_close_range, 0, VMPROC_RAM_FD - 1, 0, 0, 0, 0);
	page->setup_error = close_jail();
	__asm__ volatile("xor %%ebp, %%ebp; jmp vmproc_stub" ::: "memory");
	__builtin_unreachable();
}

__asm__(".globl _start\n_start:\n	and $-16, %rsp\n	call vmproc_main\n");
