/* direct.h - what the direct engine in the VM process and its monitor share.
 *
 * The VM process runs its virtual CPU itself, in its own signal handlers: the host reports a
 * trap as a signal, the handler emulates (vcpu/), and returning from it resumes the guest.
 * Hypercalls enter through a gate (gate.S), without the host.  For operations that its jail
 * forbids it calls the monitor, one call at a time: it fills in the call, passes the turn and
 * waits for its return.  Both run on one processor; a call takes about as long as two futex
 * hand-overs.
 *
 * A virtual CPU has several VM processes, one for each host address space that it keeps
 * (vcpu/spaces.h).  They pass the CPU to each other through this memory; all but one sleep.
 * "The VM process" means the one that has the CPU. The bare one is for programs that compute
 * (direct_bare.c).
 *
 * Pages that other hosts may hold do not involve the monitor: the VM process requests them from
 * the daemon through its slot (base/hostshm.h), and has its own userfaultfd (direct_pages.c).
 *
 * The VM process is not trusted: the monitor copies what it reads, and carries out only
 * operations that a guest may cause anyway.
 *
 * Reading order: vmproc.c (a VM process's start, and its jail), direct.c and gate.S (how guest code
 * is entered and left: signals, the gate), direct_ops.c (what the loop of engine/ asks for: to
 * sleep, to set the timer, to map, to call the monitor), direct_env.c (what the virtual CPU asks
 * for: mappings, time, and, by calls of the monitor, ports and devices), direct_pages.c (pages that
 * other hosts may hold: pins, requests, the userfaultfd), direct_space.c (the CPU goes from one VM
 * process to another, with its descriptors and FPU registers), direct_bare.c (the bare one).
 * With --strict: user.h, then direct_user.c (the kernel process's part), user.c (the user process's
 * start and signals), user_stub.S (its loop: report, wait for an order, carry it out), user_take.c
 * (what of a report is believed; pure).
 */
#ifndef VMPROC_DIRECT_H
#define VMPROC_DIRECT_H

#include <asm/ldt.h>
#include <stdatomic.h>
#include "base/types.h"
#include "base/wire.h"
#include "engine/engine.h"
#include "vcpu/computing.h"
#include "vcpu/spaces.h"
#include "vcpu/vcpu.h"

/* Fixed places in the VM process, all beyond the reach of 32-bit code. */
#define DIRECT_SHARED_ADDRESS 0x700100010000ull
#define DIRECT_SLOT_ADDRESS 0x700100020000ull /* this CPU's struct vcpu_slot */
/* one page, to read: the host's struct host_clock */
#define DIRECT_CLOCK_ADDRESS 0x700100021000ull
#define DIRECT_BELLS_ADDRESS 0x700100022000ull /* one page: struct doorbell of each CPU */
#define DIRECT_SHADOW_ADDRESS 0x700200000000ull
#define DIRECT_USER_SHADOW_ADDRESS 0x700210000000ull /* --strict: of the user process */
/* GATE_STACK_ADDRESS (gate.h): the stack of signals */
#define DIRECT_RIGHTS_ADDRESS 0x700400000000ull /* page rights, to read */
#define DIRECT_RAM_ADDRESS 0x710000000000ull
/* struct user_desc, for the host's i386 set_thread_area */
#define DIRECT_TLS_ARGUMENT (VMP_WINDOW + 0x800)

/* The flags that are in the host's EFLAGS while the guest runs. */
enum {
	DIRECT_FLAGS_NATIVE = EFLAGS_CF | EFLAGS_PF | EFLAGS_AF | EFLAGS_ZF | EFLAGS_SF |
			      EFLAGS_TF | EFLAGS_DF | EFLAGS_OF | EFLAGS_AC | EFLAGS_NT | EFLAGS_ID
};

/* X(NAME, what): arguments in arg[], answer in result; data as said. */
#define DIRECT_CALLS(X) \
	X(WAIT_START, "wait for VMP_HC_START_CPU or a CPU's state, and set vcpu; 1: a state came") \
	X(LOAD_FPU, "xsave: as this process has it; becomes what came with the state") \
	X(NEW_SPACE, "space: start the VM process of that host address space; 0 or -errno") \
	X(PORT_IN, "port, size") \
	X(PORT_OUT, "port, size, value") \
	X(PORT_IN_STRING, "port, size, count; data") \
	X(PORT_OUT_STRING, "port, size, count; data") \
	X(MMIO_READ, "gpa, size") \
	X(MMIO_WRITE, "gpa, size, value") \
	X(SEND_INTERRUPT, "cpus, vector, nmi") \
	X(START_CPU, "cpu, eip") \
	X(WALLCLOCK, "") \
	X(HOST_CPUID, "leaf, subleaf; data: eax ebx ecx edx") \
	X(HOST_XCR0, "") \
	X(PRINT, "bytes; data") \
	X(MACHINE_END, "why, status") \
	/* vcpu and xsave are current; the CPU may be saved or moved meanwhile */ \
	X(POSTS, "serve the messages that have arrived") \
	/* vcpu is current; 1: the int3 was not the guest's own, or a watchpoint was triggered */ \
	X(DEBUG, "why (enum debug_why): stop for the debugger") \
	X(WATCH, "vcpu is current: the guest's debug registers have changed") \
	X(WATCH_HITS, "which of them were triggered: one bit each") \
	X(DEAD, "vcpu.dead is set; no answer") \
	/* answer: arg[0] gva, arg[1] access */ \
	X(BEYOND_LIMIT, "fs base, gs base; vcpu: what was accessed beyond a user segment?")
enum direct_call {
#define X(name, what) DIRECT_##name,
	DIRECT_CALLS(X)
#undef X
	DIRECT_CALL_COUNT
};

enum { DIRECT_XSAVE_BYTES = 12 << 10 };
/* Host address spaces: the guest's, as many as Linux tells apart (TLB_NR_DYN_ASIDS), and the
 * bare one. */
enum { DIRECT_GUEST_SPACES = 6, DIRECT_BARE_SPACE, DIRECT_SPACES };
_Static_assert((int)DIRECT_SPACES <= (int)MAX_SPACES, "a VM process each");
enum direct_turn { TURN_VM, TURN_MONITOR };
/* A VM process starts; each step is set by the side that has done it. */
enum direct_setup {
	SETUP_BEGUN,
	SETUP_MAPPED, /* VM process: all is mapped, or setup_error says why not */
	SETUP_TAKEN,  /* monitor: has its userfaultfd, if it needs one */
	SETUP_JAILED, /* VM process: the jail is closed (or setup_error); it waits for the CPU */
};

/* All VM processes of a virtual CPU map this; but for the start of one, the one that has the CPU
 * alone uses it. */
struct direct_shared {
	/* futexes: exactly one is 1 */
	_Atomic uint32_t has_cpu[MAX_SPACES] __attribute__((aligned(4 * MAX_SPACES)));
	_Atomic uint32_t turn; /* enum direct_turn; futex */
	uint32_t call;	       /* enum direct_call */
	uint64_t arg[6];
	int64_t result;
	uint8_t data[PAGE_BYTES];
	/* FPU and vector registers, in the processor's standard form */
	uint8_t xsave[DIRECT_XSAVE_BYTES] __attribute__((aligned(64)));
	uint32_t xsave_bytes;
	struct vcpu vcpu; /* env is the VM process's own */
	/* a debugger's wishes; written by the monitor */
	struct engine_debug debug;
	struct spaces spaces;
	uint32_t started, refused; /* bit k: space k has a VM process; cannot have one */
	struct computing computing;
	/* what the host's tables must hold, and for which entries */
	struct user_desc segment[VMP_GDT_ENTRIES];
	uint32_t segments;
	/* Filled in by the monitor before the start.  A guest may write it all: a VM process
	 * that starts takes what it maps from its command line (struct vmproc_start). */
	uint32_t cpu, n_cpus, host, ram_pages, first_page, area_limit, many_hosts, always_bare,
		halt_polls /* 1: a halted CPU may poll (engine/halt_poll.h) */,
		host_tsc_khz, tsc_khz;
	/* bit n - 1: another process sent signal n; the monitor reports it */
	_Atomic uint64_t sent;
	_Atomic uint32_t sender; /* of the last of them: a pid */
	_Atomic uint32_t setup; /* enum direct_setup; futex */
	int32_t setup_error; /* -errno of what failed in the VM process that starts, or 0 */
};

#endif
