/* vmproc.h - what a monitor and its VM process agree on.
 *
 * The VM process is a small static program, linked far above 4 GiB, where 32-bit guest code
 * cannot point.  It sets up its jail.  On the direct engine it then runs its virtual CPU in
 * signal handlers (direct.h).  On the ptrace engine its only code from then on is the mapping stub:
 * a loop over system calls that the monitor has written into the stub page.  The process is not
 * trusted: of what it writes into the page, the monitor reads the results alone.
 *
 * The ptrace engine's jail (seccomp): from the stub's own `syscall`, mmap and munmap below 4 GiB
 * (mmap: the RAM descriptor, shared and fixed), and modify_ldt of the one descriptor in the stub
 * page.  Everything else stops at the monitor (SECCOMP_RET_TRACE), which serves the guest's `int
 * $0x80` and kills the guest for the rest.  Guest code that jumps to the stub's `syscall` can at
 * worst remap its own machine's RAM.  The stub accesses no memory but its page and then runs into
 * its `int3`; the monitor, which did not start it, ends the machine.  The monitor does not use the
 * list in the stub page afterwards: it has its own copy.
 */
#ifndef VMPROC_VMPROC_H
#define VMPROC_VMPROC_H

#include <asm/ldt.h>
#include <stddef.h>
#include <stdint.h>
#include "base/hostshm.h"
#include "vcpu/vcpu.h"

#define STUB_PAGE_ADDRESS 0x700100000000ull /* in the VM process */
enum {
	/* direct engine with --strict, of a user process and its kernel process (user.h): the two
	 * pipes; and the kernel process has a pidfd of the other */
	VMPROC_ORDER_FD = 0,
	VMPROC_REPORT_FD = 1,
	VMPROC_USER_FD = 2,
	VMPROC_RAM_FD = 3,
	VMPROC_BELL_FD = 4,  /* direct engine: the daemon's eventfd (base/hostshm.h) */
	VMPROC_FAULT_FD = 5, /* direct engine, several hosts: its own userfaultfd */
	/* --strict, several hosts, a kernel process: its user process's userfaultfd */
	VMPROC_USER_FAULT_FD = 6,
	/* until the jail is closed: */
	VMPROC_STUB_FD = 7,
	VMPROC_CPUS_FD = 8, /* direct engine: clock, slots and rights of the host's shared memory */
	VMPROC_TLS_ENTRIES = 3, /* from VMP_GDT_TLS_MIN on */
	VMPROC_SEL_TABLE = 4,	/* in a selector: the LDT */
	VMPROC_SEL_RPL = 3,
	STUB_OPS = 60,
	STUB_PAGE_BYTES = 4096,
	/* offset of the CPU window's two pages in VMPROC_STUB_FD */
	STUB_FD_WINDOW = STUB_PAGE_BYTES,
	STUB_FD_DIRECT = STUB_FD_WINDOW + 2 * 4096, /* offset of struct direct_shared */
	/* offset of the mail of user processes (user.h), for each host address space */
	STUB_FD_MAIL = STUB_FD_DIRECT + 16 * 4096,
	STUB_FD_MAIL_BYTES = 9 * 4096,
	STUB_FD_BYTES = STUB_FD_MAIL + MAX_SPACES * STUB_FD_MAIL_BYTES,
};

/* How a VM process starts: its command line, one decimal number for each field.  Not the stub
 * page and not struct direct_shared: the guest code of the CPU's other VM processes can write
 * these meanwhile. */
struct vmproc_start {
	uint64_t direct;    /* 1: the direct engine (direct.h) */
	uint64_t userfault; /* 1: with a userfaultfd */
	uint64_t strict;    /* direct engine: enum vmproc_strict */
	uint64_t space;	    /* direct engine: which of the CPU's host address spaces it is */
	/* of VMPROC_CPUS_FD, which begins with the clock */
	uint64_t ram_pages, slot_offset, bells_offset, rights_offset;
};
/* Whether guest programs have VM processes of their own, and which of the two this one is. */
enum vmproc_strict { VMPROC_TOGETHER, VMPROC_KERNEL, VMPROC_USER };
enum { VMPROC_START_WORDS = sizeof(struct vmproc_start) / sizeof(uint64_t) };

/* One system call for the stub. */
struct stub_op {
	uint64_t number, argument[6];
	int64_t result;
};

struct stub_page {
	/* filled in by the VM process while it starts: addresses of the stub, and its
	 * userfaultfd (-1: none, see error) */
	uint64_t stub_entry, stub_syscall_end;
	int32_t userfault_fd, userfault_error;
	int32_t cpuid_faulting; /* 1: CPUID traps */
	int32_t setup_error;	/* -errno of the step that failed, 0 if all is well */
	int32_t pad[2];
	struct user_desc descriptor; /* for modify_ldt */
	uint8_t reserved[64 - 56 + 64 * 2];
	struct stub_op op[STUB_OPS];
};

/* The guest has one table of descriptors, the host two.  The three TLS entries are in the host's
 * GDT, all others in the LDT, whatever the guest's selector says. */
static inline bool vmproc_is_tls(unsigned index)
{
	return index - VMP_GDT_TLS_MIN < VMPROC_TLS_ENTRIES;
}

/* Return the host's selector for a guest's; its RPL is 3. (TRICKS: shadow-ldt) */
static inline uint16_t vmproc_selector(uint16_t selector)
{
	unsigned index = selector >> 3;

	if (!index)
		return 0;
	return (vmproc_is_tls(index) ? selector & ~VMPROC_SEL_TABLE : selector | VMPROC_SEL_TABLE) |
	       VMPROC_SEL_RPL;
}

/* Return true for the level-0 segments that the guest kernel uses.  The host's LDT has only entries
 * of level 3.  The guest's other level-0 segments get no entry, so that user code cannot load them,
 * as on a processor. */
static inline bool vmproc_kernel_needs(unsigned index)
{
	switch (index) {
	case VMP_GDT_BOOT_CS:
	case VMP_GDT_BOOT_DS:
	case VMP_GDT_KERNEL_CS:
	case VMP_GDT_KERNEL_DS:
	case VMP_GDT_PERCPU: return true;
	default:
		return false;
	}
}

/* Make the host's descriptor for entry `index` of the guest's GDT; *tls: it belongs in the host's
 * GDT, else in the LDT.  False: the host's entry stays as it is.
 * (TRICKS: code-limit, tls-untrimmed) */
static inline bool vmproc_descriptor(unsigned index, const struct vcpu_segment *s,
				     struct user_desc *d, bool *tls)
{
	uint32_t limit = s->limit;

	*tls = vmproc_is_tls(index);
	if (index >= VMP_GDT_ENTRIES || (s->system && s->present))
		return false;
	/* A processor keeps loaded segments when the table changes; the host reloads them at
	 * every switch.  So the boot segments outlive the boot table: the guest still runs on
	 * them when it loads its own. */
	if (!s->present && (index == VMP_GDT_BOOT_CS || index == VMP_GDT_BOOT_DS))
		return false;
	*d = (struct user_desc){ .entry_number = index, .seg_32bit = 1 };
	if (!s->present || (s->dpl < 3 && !vmproc_kernel_needs(index))) {
		d->read_exec_only = d->seg_not_present = 1;
		d->seg_32bit = 0;
		return true;
	}
	/* Guest user data segments end where the guest kernel begins.  Code segments reach 4 GiB,
	 * since code under another limit takes up to 1.4 times as long on some processors.  User
	 * code that runs beyond the user's limit is detected when it stops: vcpu_strayed(). */
	if (s->dpl == 3 && !*tls && limit >= VMP_USER_LIMIT - 1)
		limit = s->type & 8 ? UINT32_MAX : VMP_USER_LIMIT - 1;
	d->base_addr = s->base;
	d->limit_in_pages = limit > 0xfffff;
	d->limit = d->limit_in_pages ? limit >> 12 : limit;
	d->contents = s->type & 8 ? (s->type & 4 ? 3 : 2) : (s->type & 4 ? 1 : 0);
	d->read_exec_only = !(s->type & 2);
	d->useable = 1;
	return true;
}

_Static_assert(sizeof(struct user_desc) == 16, "modify_ldt");
_Static_assert(sizeof(struct stub_op) == 64 && offsetof(struct stub_page, op) % 64 == 0,
	       "the stub steps by 64");
_Static_assert(sizeof(struct stub_page) <= STUB_PAGE_BYTES, "one page");

#endif
