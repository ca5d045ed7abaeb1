/* vmproc.h - what a monitor and its VM process agree on.
 *
 * The VM process is a small static program, linked far above 4 GiB, where 32-bit guest code cannot point.  It sets up its
 * jail.  On the direct engine it then runs its virtual CPU in signal handlers (direct.h).  On the ptrace engine it never runs
 * code of its own again but for the mapping stub: a loop over system calls that the monitor has written into the stub page.
 * The process is not trusted: what it writes into the page is only ever read as "result".
 *
 * The ptrace engine's jail (seccomp): from the stub's own `syscall`, mmap and munmap below 4 GiB (mmap: the RAM descriptor, shared
 * and fixed), and modify_ldt of the one descriptor in the stub page.  Everything else stops at the monitor (SECCOMP_RET_TRACE),
 * which serves the guest's `int $0x80` and kills the guest for the rest.  Guest code that jumps to the stub's `syscall` can
 * at worst remap its own machine's RAM: the stub touches no memory but its page, and runs into its `int3`, and the monitor, which
 * did not start it, ends the machine.  Nor is the list in the stub page believed afterwards: the monitor has its own copy.
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
	VMPROC_RAM_FD = 3,
	VMPROC_STUB_FD = 4,
	VMPROC_CPUS_FD = 5, /* direct engine: clock, slots and rights of the host's shared memory, until they are mapped */
	VMPROC_TLS_ENTRIES = 3, /* from VMP_GDT_TLS_MIN on */
	VMPROC_SEL_TABLE = 4,	/* in a selector: the LDT */
	VMPROC_SEL_RPL = 3,
	STUB_OPS = 60,
	STUB_PAGE_BYTES = 4096,
	STUB_FD_WINDOW = STUB_PAGE_BYTES, /* where the CPU window's two pages stand in VMPROC_STUB_FD */
	STUB_FD_DIRECT = STUB_FD_WINDOW + 2 * 4096, /* and struct direct_shared */
	STUB_FD_BYTES = STUB_FD_DIRECT + 16 * 4096,
};

/* How a VM process starts: its command line, one decimal number for each field.  Not the stub page and not struct direct_shared: the
 * guest code of the CPU's other VM processes can write these meanwhile. */
struct vmproc_start {
	uint64_t direct;    /* 1: the direct engine (direct.h) */
	uint64_t userfault; /* 1: with a userfaultfd */
	uint64_t space;	    /* direct engine: which of the CPU's host address spaces it is */
	uint64_t ram_pages, slot_offset, rights_offset; /* of VMPROC_CPUS_FD, which begins with the clock */
};
enum { VMPROC_START_WORDS = sizeof(struct vmproc_start) / sizeof(uint64_t) };

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
	int32_t pad[2];
	struct user_desc descriptor; /* for modify_ldt */
	uint8_t reserved[64 - 56 + 64 * 2];
	struct stub_op op[STUB_OPS];
};

/* The guest has one table, the host two: what is not one of the three TLS entries stands in the LDT, whatever the guest's
 * selector says; and the host runs all at RPL 3. */
static inline bool vmproc_is_tls(unsigned index) { return index - VMP_GDT_TLS_MIN < VMPROC_TLS_ENTRIES; }

/* (TRICKS: shadow-ldt) */
static inline uint16_t vmproc_selector(uint16_t selector)
{
	unsigned index = selector >> 3;

	if (!index)
		return 0;
	return (vmproc_is_tls(index) ? selector & ~VMPROC_SEL_TABLE : selector | VMPROC_SEL_TABLE) | VMPROC_SEL_RPL;
}

/* A program of the guest's stopped at a system call in the host's own 32-bit code segment: by `syscall`, which this machine does
 * not have and behind which Linux loads that segment, or by a system call after a jump there.  #UD: the program has a SIGILL.
 * Behind `syscall` Linux keeps no trace of where it stood (it goes on at the host's vDSO), so EIP is what the host says then. */
enum { VMPROC_HOST_CS32 = 0x23 };
static inline void vmproc_no_syscall(struct vcpu *v, const uint8_t insn[2])
{
	bool known = (insn[0] == 0x0f && insn[1] == 0x05) || (insn[0] == 0xcd && insn[1] == 0x80);

	v->cpl = 3;
	v->seg[SEG_CS] = VMP_SEL_USER_CS;
	v->seg[SEG_SS] = VMP_SEL_USER_DS;
	v->eip -= known ? 2 : 0;
	vcpu_exception(v, VECTOR_UD, -1);
}

/* Segments of level 0 that the guest runs on. All of the host's LDT is of level 3: what is not needed is not there, so that
 * a user who returns to it fails as on a processor. */
static inline bool vmproc_kernel_needs(unsigned index)
{
	switch (index) {
	case VMP_GDT_BOOT_CS: case VMP_GDT_BOOT_DS: case VMP_GDT_KERNEL_CS: case VMP_GDT_KERNEL_DS: case VMP_GDT_PERCPU:
		return true;
	default:
		return false;
	}
}

/* What the host's tables get for entry `index` of the guest's GDT; *tls: in the host's own GDT, else in the LDT. False: the
 * host keeps what it has. (TRICKS: code-limit, tls-untrimmed) */
static inline bool vmproc_descriptor(unsigned index, const struct vcpu_segment *s, struct user_desc *d, bool *tls)
{
	uint32_t limit = s->limit;

	*tls = vmproc_is_tls(index);
	if (index >= VMP_GDT_ENTRIES || (s->system && s->present))
		return false;
	/* A processor keeps what it has loaded when the table changes; the host looks it up again at every switch. So the
	 * boot segments outlive the boot table: the guest still runs on them when it loads its own. */
	if (!s->present && (index == VMP_GDT_BOOT_CS || index == VMP_GDT_BOOT_DS))
		return false;
	*d = (struct user_desc){ .entry_number = index, .seg_32bit = 1 };
	if (!s->present || (s->dpl < 3 && !vmproc_kernel_needs(index))) {
		d->read_exec_only = d->seg_not_present = 1;
		d->seg_32bit = 0;
		return true;
	}
	/* Guest user segments end where the guest kernel begins; but code in a segment that does not reach 4 GiB takes up to 1.4
	 * times as long on some processors. What runs up there is found when it stops: vcpu_strayed(). */
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

/* What an emulated instruction counts as, on both engines. */
static inline enum trap_kind trap_kind_of(enum vcpu_trap trap)
{
	static const uint8_t kinds[] = {
		[VCPU_TRAP_PRIVILEGED] = TRAP_PRIVILEGED, [VCPU_TRAP_MARKER] = TRAP_MARKER,
		[VCPU_TRAP_HYPERCALL] = TRAP_HYPERCALL,	  [VCPU_TRAP_SYSCALL] = TRAP_SYSCALL,
	};

	return kinds[trap];
}

_Static_assert(sizeof(struct user_desc) == 16, "modify_ldt");
_Static_assert(sizeof(struct stub_op) == 64 && offsetof(struct stub_page, op) % 64 == 0, "the stub steps by 64");
_Static_assert(sizeof(struct stub_page) <= STUB_PAGE_BYTES, "one page");

#endif
