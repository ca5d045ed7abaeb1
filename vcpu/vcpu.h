/* vcpu.h - one virtual IA-32 processor as pure code: no system call, no allocation, no libc.
 *
 * An engine (monitor/ with ptrace; vmproc/ in the process itself) runs guest code natively, and
 * calls in here when the host says that an instruction could not run.  The virtual CPU reaches
 * the rest of the machine through struct vcpu_env; the unit tests provide an environment of
 * arrays.
 *
 * Rules of use:
 *  - One thread at a time uses a struct vcpu.
 *  - Every address passes vcpu_walk(); every access to guest RAM is between env->pin and
 *    env->unpin, at most PINS_PER_CPU at once, in ascending order of frames, and nothing else of
 *    env is called while a pin is held.
 *  - Registers here are the guest's view: cs has RPL = CPL, EFLAGS has the guest's own IF, IOPL,
 *    NT, ID. The engine translates (see base/guest_abi.h, "Segments").
 *  - When the guest breaks a rule, vcpu_kill() records the first reason and marks the CPU dead.
 *    All callers continue and return; the engine checks vcpu.dead before it runs guest code.
 * References are to the Intel SDM, volumes 2 and 3.
 */
#ifndef VCPU_VCPU_H
#define VCPU_VCPU_H

#include "base/barrier.h"
#include "base/guest_abi.h"
#include "base/layout.h"
#include "base/limits.h"
#include "base/types.h"
#include "vcpu/apic.h"

enum vcpu_gpr { EAX, ECX, EDX, EBX, ESP, EBP, ESI, EDI };
enum vcpu_seg { SEG_ES, SEG_CS, SEG_SS, SEG_DS, SEG_FS, SEG_GS, SEG_COUNT };

enum {
	EFLAGS_CF = 1 << 0, EFLAGS_FIXED = 1 << 1, EFLAGS_PF = 1 << 2, EFLAGS_AF = 1 << 4,
	EFLAGS_ZF = 1 << 6, EFLAGS_SF = 1 << 7, EFLAGS_TF = 1 << 8, EFLAGS_IF = 1 << 9,
	EFLAGS_DF = 1 << 10, EFLAGS_OF = 1 << 11, EFLAGS_IOPL = 3 << 12, EFLAGS_NT = 1 << 14,
	EFLAGS_RF = 1 << 16, EFLAGS_VM = 1 << 17, EFLAGS_AC = 1 << 18, EFLAGS_VIF = 1 << 19,
	EFLAGS_VIP = 1 << 20, EFLAGS_ID = 1 << 21,
};
enum {
	CR0_PE = 1 << 0, CR0_MP = 1 << 1, CR0_EM = 1 << 2, CR0_TS = 1 << 3, CR0_ET = 1 << 4,
	CR0_NE = 1 << 5, CR0_WP = 1 << 16, CR0_AM = 1 << 18,
	CR4_TSD = 1 << 2, CR4_DE = 1 << 3, CR4_PSE = 1 << 4, CR4_PAE = 1 << 5,
	CR4_PGE = 1 << 7, CR4_OSFXSR = 1 << 9, CR4_OSXMMEXCPT = 1 << 10, CR4_OSXSAVE = 1 << 18,
	DR6_SINGLE_STEP = 1 << 14,
};
#define CR0_PG 0x80000000u
enum vcpu_vector {
	VECTOR_DE = 0, VECTOR_DB = 1, VECTOR_NMI = 2, VECTOR_BP = 3, VECTOR_OF = 4, VECTOR_BR = 5,
	VECTOR_UD = 6, VECTOR_NM = 7, VECTOR_DF = 8, VECTOR_TS = 10, VECTOR_NP = 11, VECTOR_SS = 12,
	VECTOR_GP = 13, VECTOR_PF = 14, VECTOR_MF = 16, VECTOR_AC = 17, VECTOR_MC = 18,
	VECTOR_XM = 19,
};
enum { PF_PRESENT = 1, PF_WRITE = 2, PF_USER = 4, PF_RESERVED = 8, PF_FETCH = 16 };
enum vcpu_access { ACCESS_READ, ACCESS_WRITE, ACCESS_FETCH };
enum { INSN_MAX_BYTES = 15 };

struct vcpu;

/* A descriptor of the guest's GDT, decoded: what the engine loads into the host's LDT or TLS. */
struct vcpu_segment {
	uint32_t base, limit; /* limit in bytes, inclusive (granularity applied) */
	uint8_t type;	      /* bits 0-3 of the access byte */
	uint8_t dpl;
	bool present, system, big /* D/B */, granular;
};

/* What the engine does for a virtual CPU.  ctx is the engine's.  No function may fail: a failure
 * ends the machine elsewhere. */
struct vcpu_env {
	void *ctx;
	/* Return the host address of the 4 KiB page of RAM that holds gpa, with the right to
	 * read (or write) it until unpin; NULL if that is not RAM.  May wait for another host. */
	void *(*pin)(void *ctx, gpa_t gpa, bool write);
	void (*unpin)(void *ctx, gpa_t gpa);
	/* The pages of `count` frames of RAM (1 to MAX_AHEAD) will be pinned next, one by one.
	 * Those that other hosts have are requested together.  No pin may be held.  May wait. */
	void (*fetch)(void *ctx, gfn_t first, unsigned count, bool write);
	/* Ports, and device memory other than the local APIC (which vcpu/ emulates).  size: 1, 2
	 * or 4 bytes. */
	uint32_t (*port_in)(void *ctx, uint16_t port, unsigned size);
	void (*port_out)(void *ctx, uint16_t port, unsigned size, uint32_t value);
	/* `count` accesses of `size` bytes each, count*size <= 4096, for rep ins/outs; data is
	 * host memory. */
	void (*port_in_string)(void *ctx, uint16_t port, unsigned size, unsigned count, void *data);
	void (*port_out_string)(void *ctx, uint16_t port, unsigned size, unsigned count,
				const void *data);
	uint32_t (*mmio_read)(void *ctx, gpa_t gpa, unsigned size);
	void (*mmio_write)(void *ctx, gpa_t gpa, unsigned size, uint32_t value);
	/* The guest's translations changed: forget host mappings of some pages, or of all.
	 * Called once struct vcpu holds the new cr3/cr0/cr4. */
	void (*flush_range)(void *ctx, gva_t first, uint32_t pages);
	void (*flush_all)(void *ctx);
	/* CR3 was loaded: forget all but global mappings.  With `keep` the mappings remembered
	 * for address space v->cr3 & VMP_CR3_SPACE are still valid. */
	void (*switch_space)(void *ctx, bool keep);
	/* GDT entry `index` has this value now (lgdt, VMP_HC_GDT_CHANGED). */
	void (*segment_changed)(void *ctx, unsigned index, const struct vcpu_segment *segment);
	/* Interrupts to other CPUs: cpus is a mask of CPU numbers (= APIC ids), never this one. */
	void (*send_interrupt)(void *ctx, uint32_t cpus, uint8_t vector, bool nmi);
	int (*start_cpu)(void *ctx, unsigned cpu, uint32_t eip); /* 0 or -errno */
	/* since the machine's start; also the APIC timer's clock */
	uint64_t (*now_ns)(void *ctx);
	uint64_t (*wallclock_ns)(void *ctx);
	uint64_t (*tsc)(void *ctx);
	uint32_t (*tsc_khz)(void *ctx); /* 0: CPUs do not share one counter */
	void (*host_cpuid)(void *ctx, uint32_t leaf, uint32_t subleaf,
			   uint32_t out[4] /* eax ebx ecx edx */);
	uint64_t (*host_xcr0)(void *ctx);
	void (*print)(void *ctx, const char *text, unsigned bytes); /* VMP_HC_PRINT */
	void (*machine_end)(void *ctx, unsigned why /* VMP_EXIT_* */, uint32_t status);
	/* this CPU waits for another one, for the times-th time in a row */
	void (*yield)(void *ctx, unsigned times);
	void (*crowded)(void *ctx); /* VMP_HC_CROWDED */
	int (*barrier)(void *ctx, const struct barrier_call *call); /* base/barrier.h */
};

/* An initializer of all calls but pin, unpin and fetch: functions of these names, behind a
 * prefix. */
#define VCPU_ENV_CALLS(prefix) \
	.port_in = prefix##port_in, .port_out = prefix##port_out, \
	.port_in_string = prefix##port_in_string, .port_out_string = prefix##port_out_string, \
	.mmio_read = prefix##mmio_read, .mmio_write = prefix##mmio_write, \
	.flush_range = prefix##flush_range, .flush_all = prefix##flush_all, \
	.switch_space = prefix##switch_space, .segment_changed = prefix##segment_changed, \
	.send_interrupt = prefix##send_interrupt, .start_cpu = prefix##start_cpu, \
	.now_ns = prefix##now_ns, .wallclock_ns = prefix##wallclock_ns, \
	.tsc = prefix##tsc, .tsc_khz = prefix##tsc_khz, \
	.host_cpuid = prefix##host_cpuid, .host_xcr0 = prefix##host_xcr0, \
	.print = prefix##print, .machine_end = prefix##machine_end, \
	.yield = prefix##yield, .crowded = prefix##crowded, .barrier = prefix##barrier,

enum vcpu_dead { VCPU_ALIVE, VCPU_TRIPLE_FAULT, VCPU_KILLED };

struct vcpu_table { uint32_t base; uint16_t limit; };

struct vcpu {
	uint32_t gpr[8], eip, eflags;
	uint16_t seg[SEG_COUNT];
	uint8_t cpl; /* 0 or 3 */
	bool halted;
	/* halted by VMP_HC_WAIT: the vector that wakes it even with interrupts disabled; 0: by
	 * hlt */
	uint8_t awaited;
	bool awaits_any;     /* with `awaited`: every other interrupt wakes it as well */
	/* a start has arrived (vcpu_want_start()), to this address, and is not decided yet */
	bool start_wanted;
	uint32_t start_eip;
	/* after sti, mov ss or the fetch of a page: no interrupt before the next instruction has
	 * run */
	bool interrupt_shadow;
	bool nmi_blocked, nmi_pending;
	bool eoi_offered; /* the window's eoi word is 1, or the guest has used it up */
	/* the guest's values in the window */
	uint32_t window_sp0, window_syscall_eip, window_syscall_cs;
	uint32_t cr0, cr2, cr3, cr4, dr[8];
	uint64_t pdpte[4]; /* with CR4.PAE: the top level, as CR3 was loaded (SDM 3, 4.4.1) */
	uint64_t xcr0;
	struct vcpu_table gdtr, idtr;
	uint16_t ldtr, tr;
	uint32_t tss_base, tss_limit;
	uint64_t apic_base_msr, pat_msr, misc_msr; /* the few MSRs that keep a value */
	struct apic apic;

	unsigned number, n_cpus;
	uint32_t ram_pages;
	const struct vcpu_env *env;
	enum vcpu_dead dead;
	char dead_reason[160];
	unsigned yields;     /* in a row, with no other request between them */
	/* the exception being delivered + 1, to detect double and triple faults; 0: none */
	unsigned delivering;
};

/* Set the power-on state of CPU `number`: protected mode, flat segments, paging and interrupts
 * off, waiting for its start. */
void vcpu_init(struct vcpu *v, unsigned number, unsigned n_cpus, uint32_t ram_pages,
	       const struct vcpu_env *env);
/* Start a CPU at a physical address, with flat boot segments and paging off: the first as the
 * boot loader does (Linux's 32-bit boot protocol: %esi = boot_params), another one by
 * VMP_HC_START_CPU.  The engine has no mappings and no descriptors of this CPU yet. */
void vcpu_start(struct vcpu *v, uint32_t eip, uint32_t esi);

/* True for a CPU that only another one can wake or start again: hlt with interrupts disabled. */
bool vcpu_halted_for_good(const struct vcpu *v);
/* VMP_HC_START_CPU has named a CPU that ran before: one that the guest took offline, or one that
 * runs. */
void vcpu_want_start(struct vcpu *v, uint32_t eip);
/* Decide about a start that has arrived, at an instruction boundary.  A CPU that has halted for
 * good starts, as at its first start.  For a CPU with interrupts
 * enabled the start is ignored.  Another one is still on its way to its hlt: the start waits.
 * Returns true if the CPU has started. */
bool vcpu_settle_start(struct vcpu *v);

enum vcpu_result {
	VCPU_DONE,	/* emulated; EIP is behind it (or where it went) */
	/* the instruction raised an exception, which has been delivered to the guest */
	VCPU_RAISED,
	/* no sensitive instruction at EIP (or not at this CPL): the stop has another cause */
	VCPU_NOT_MINE,
	VCPU_HALTED,	/* hlt: wait until vcpu_wakes() */
};

/* Emulate the instruction at EIP, which could not run natively (#GP by the host) or follows a
 * marker.  At CPL 3 this raises what the architecture says: #GP for privileged instructions, the
 * gate's handler for int n. */
enum vcpu_result vcpu_emulate(struct vcpu *v);

/* Emulate the instruction at EIP, and those that follow as long as they would trap at once in
 * the kernel (sti;hlt, cli after popf, ...) and no interrupt is to be delivered; on request just
 * one.  seen() is called before each one is emulated, with v->cpl its CPL.  Returns the last
 * one's result; only the first can be VCPU_NOT_MINE. */
enum vcpu_trap { VCPU_TRAP_PRIVILEGED, VCPU_TRAP_MARKER, VCPU_TRAP_HYPERCALL, VCPU_TRAP_SYSCALL };
enum vcpu_result vcpu_emulate_run(struct vcpu *v, bool one, void (*seen)(void *ctx, enum vcpu_trap),
				  void *ctx);

/* Called before a step by the host's trap flag.  User code's pushf would show that flag, and its
 * popf and iret would clear it.  These three are emulated here as by vcpu_emulate().  False:
 * another instruction, which the engine steps. */
bool vcpu_step_by_hand(struct vcpu *v);

/* Emulate the instruction at EIP, which accesses device memory at `gpa` (linear address `gva`):
 * moves of 1, 2, 4 bytes, and/or/test/xchg.  The local APIC is served here.  Unknown
 * instructions kill the guest. */
enum vcpu_result vcpu_emulate_mmio(struct vcpu *v, gva_t gva, gpa_t gpa);

/* Deliver an exception through the guest's IDT; for VECTOR_PF set v->cr2 before. error < 0: no
 * error code.  Faults during delivery become #DF, then a triple fault (v->dead).  EIP must be
 * where the frame should point. */
void vcpu_exception(struct vcpu *v, unsigned vector, int64_t error);
/* Raise the page fault of a wild pointer.  A user's data segment ends at VMP_USER_LIMIT; an
 * access beyond it, or user code there, is #GP or #SS on the host, or no fault at all. */
void vcpu_beyond_user_limit(struct vcpu *v, gva_t gva, enum vcpu_access access);
/* True if user code has run into the guest kernel's addresses.  On the host a user's code
 * segment does not end at VMP_USER_LIMIT.  (TRICKS: code-limit) */
static inline bool vcpu_strayed(const struct vcpu *v)
{
	return v->cpl == 3 && v->eip >= VMP_USER_LIMIT;
}
/* Deliver a software interrupt from CPL 3 (int n, int3, into), with EIP already behind the
 * instruction.  The gate's DPL is checked; if that fails, #GP points at `insn_eip`. */
void vcpu_software_interrupt(struct vcpu *v, unsigned vector, uint32_t insn_eip);

/* Interrupts: posted vectors go in by apic_post(); then, before guest code runs: */
/* one could be delivered if IF and the shadow allow */
bool vcpu_interrupt_pending(const struct vcpu *v);
bool vcpu_can_interrupt(const struct vcpu *v);	   /* IF set, no shadow */
/* NMI or the highest vector, if allowed; true: registers changed */
bool vcpu_deliver_interrupt(struct vcpu *v);
void vcpu_halt(struct vcpu *v);			   /* until an interrupt wakes it */
bool vcpu_wakes(const struct vcpu *v);		   /* must a halted CPU continue? */
void vcpu_wake(struct vcpu *v);			   /* continue a halted CPU, for any reason */

/* Carry out an iret, whatever is at EIP; an exception that it raises points there. */
enum vcpu_result vcpu_iret(struct vcpu *v);

/* CR4.PAE: three levels of page tables, entries of 64 bits. */
static inline bool vcpu_is_pae(const struct vcpu *v) { return v->cr4 & CR4_PAE; }
/* A page table's entries, and the small pages of a large one. */
static inline uint32_t vcpu_large_pages(const struct vcpu *v)
{
	return vcpu_is_pae(v) ? 512 : 1024;
}

/* The translation of one linear page.  vcpu_walk() sets accessed (and, for writes, dirty) bits
 * as the processor would. */
struct vcpu_walk {
	gpa_t gpa;	  /* of gva itself */
	bool writable;	  /* writable at this CPL and dirty: a host mapping may be writable */
	bool user;	  /* user-accessible */
	bool global;
	bool large;	  /* page of 4 MiB, or 2 MiB with PAE: vcpu_large_pages() */
	uint32_t error;	  /* error code for #PF when the walk fails */
};
/* Walk the page tables.  Returns 0, or -EFAULT with out->error set.  `user` is the privilege of
 * the access (CPL 3), not of the page. */
int vcpu_walk(struct vcpu *v, gva_t gva, enum vcpu_access access, bool user, struct vcpu_walk *out);
/* As vcpu_walk(), but sets no bits and requests at most a read copy from another host; for dumps
 * and for mapping in runs.  `accessed_dirty`: A (and D, for a writable page) are set already. */
int vcpu_peek(struct vcpu *v, gva_t gva, struct vcpu_walk *out, bool *accessed_dirty);
/* As vcpu_peek() for `count` pages of one page table.  out[].error is 0 for pages that are
 * present with A (and D) set.  Without paging, or in a 4 MiB page, no page is. */
void vcpu_peek_run(struct vcpu *v, gva_t first, unsigned count, struct vcpu_walk *out);

/* Copy between guest linear memory and the host, as the processor at this CPL would.  A copy may
 * cross pages; bytes <= 4096.  A fault raises nothing: returns -EFAULT, with cr2 and *error set. */
int vcpu_read(struct vcpu *v, gva_t gva, void *to, unsigned bytes, bool user, uint32_t *error);
int vcpu_write(struct vcpu *v, gva_t gva, const void *from, unsigned bytes, bool user,
	       uint32_t *error);

/* CPUID as the guest kernel sees it (the engine calls it too where CPUID faulting exists). */
void vcpu_cpuid(struct vcpu *v, uint32_t leaf, uint32_t subleaf, uint32_t out[4]);

/* Descriptor `index` of the guest's GDT, decoded; 0 or -EFAULT. */
int vcpu_segment(struct vcpu *v, unsigned index, struct vcpu_segment *out);

/* Record the first reason and mark the CPU dead; the caller continues.  Formats: %s %u %x %lx only
 * (no libc here). */
void vcpu_kill(struct vcpu *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One line per register group, page-table walk of EIP and ESP, code bytes; for `vmp regs`.
 * Returns bytes written. */
unsigned vcpu_dump(struct vcpu *v, char *text, unsigned room);

#endif
