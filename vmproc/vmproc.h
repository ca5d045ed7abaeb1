/* vmproc.h - what a monitor and its VM process agree on.
 *
 * The VM process is a small static program, linked far above 4 GiB, where 32-bit guest code cannot point.  It sets up its
 * jail and then never runs code of its own again but for the mapping stub: a loop over system calls that the monitor has
 * written into the stub page.  The process is not trusted: what it writes into the page is only ever read as "result".
 *
 * The jail (seccomp): from the stub's own `syscall`, mmap/munmap/mprotect below 4 GiB (mmap: the RAM descriptor, shared and
 * fixed), and modify_ldt of the one descriptor in the stub page.  Everything else stops at the monitor (SECCOMP_RET_TRACE),
 * which serves the guest's `int $0x80` and kills the guest for the rest.  Guest code that jumps to the stub's `syscall` can
 * at worst remap its own machine's RAM; the stub then runs into its `int3`, and the monitor, which did not start it,
 * ends the machine.
 */
#ifndef VMPROC_VMPROC_H
#define VMPROC_VMPROC_H

#include <asm/ldt.h>
#include <stdint.h>

#define STUB_PAGE_ADDRESS 0x700100000000ull /* in the VM process */
enum {
	VMPROC_RAM_FD = 3,
	VMPROC_STUB_FD = 4,
	STUB_OPS = 60,
	STUB_PAGE_BYTES = 4096,
};

/* One system call for the stub. */
struct stub_op {
	uint64_t number, argument[6];
	int64_t result;
};

struct stub_page {
	/* filled in by the VM process while it starts: addresses of the stub, and its userfaultfd (-1: none, see error) */
	uint64_t stub_entry, stub_syscall_end;
	int32_t userfault_fd, userfault_error;
	int32_t cpuid_faulting; /* 1: CPUID traps */
	int32_t setup_error;	/* -errno of the step that failed, 0 if all is well */
	/* filled in by the monitor before the start */
	int32_t want_userfault;
	int32_t pad;
	struct user_desc descriptor; /* for modify_ldt */
	uint8_t reserved[64 - 56 + 64 * 2];
	struct stub_op op[STUB_OPS];
};
_Static_assert(sizeof(struct user_desc) == 16, "modify_ldt");
_Static_assert(sizeof(struct stub_op) == 64, "the stub steps by 64");
_Static_assert(sizeof(struct stub_page) <= STUB_PAGE_BYTES, "one page");

#endif
