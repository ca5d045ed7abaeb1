/* direct.h - what the direct engine in the VM process and its monitor share.
 *
 * The VM process runs its virtual CPU itself, in its own signal handlers: the host reports a trap as a signal, the handler
 * emulates (vcpu/), and returning from it resumes the guest.  What it cannot do in its jail it asks of the monitor, a call
 * at a time: it fills in the call, gives the turn away and waits for it.  Both are on one processor; a call takes about as
 * long as two futex hand-overs.
 *
 * The VM process is not trusted: the monitor copies what it reads, and carries out only what a guest may cause anyway.
 */
#ifndef VMPROC_DIRECT_H
#define VMPROC_DIRECT_H

#include <stdatomic.h>
#include "base/types.h"
#include "base/wire.h"
#include "vcpu/vcpu.h"

/* Fixed places in the VM process, all beyond the reach of 32-bit code. */
#define DIRECT_SHARED_ADDRESS 0x700100010000ull
#define DIRECT_SLOT_ADDRESS 0x700100020000ull /* this CPU's struct vcpu_slot */
#define DIRECT_SHADOW_ADDRESS 0x700200000000ull
#define DIRECT_STACK_ADDRESS 0x700300000000ull
#define DIRECT_RIGHTS_ADDRESS 0x700400000000ull /* page rights, to read */
#define DIRECT_RAM_ADDRESS 0x710000000000ull
#define DIRECT_TLS_ARGUMENT (VMP_WINDOW + 0x800) /* struct user_desc, for the host's i386 set_thread_area */

/* X(NAME, what): arguments in arg[], answer in result; data as said. */
#define DIRECT_CALLS(X) \
	X(READY, "all is mapped; the monitor takes the userfaultfd") \
	X(WAIT_START, "until VMP_HC_START_CPU, or a CPU's state has come; vcpu is then how it begins; 1: a state has come") \
	X(LOAD_FPU, "xsave: as this process has it; becomes what came with the state") \
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
	X(POSTS, "serve the messages that have come; vcpu and xsave are current; the CPU may be saved or move meanwhile") \
	X(DEBUG, "why (enum debug_why): vcpu is current and stands still for a debugger; 1: the int3 was not the guest's own") \
	X(DEAD, "vcpu has died, and says why; no answer") \
	X(BEYOND_LIMIT, "fs base, gs base; vcpu: what did the instruction touch beyond a user segment? arg[0] gva, arg[1] access") \
	X(IS_SSE, "vcpu: is it an SSE instruction?") \
	X(PAGE_WANT, "gfn, right: wait until this host has it") \
	X(PAGE_MAPPED, "gva, bytes, gpa: a mapping was made") \
	X(PAGE_ADMIT, "gva, gpa, write, writable: let the guest at a mapped page")
enum direct_call {
#define X(name, what) DIRECT_##name,
	DIRECT_CALLS(X)
#undef X
	DIRECT_CALL_COUNT
};

enum { DIRECT_XSAVE_BYTES = 12 << 10 };
enum direct_turn { TURN_VM, TURN_MONITOR };

/* One instruction for a debugger: it is done when the host's trace trap has come, or EIP has moved. */
struct debug_step { uint32_t wanted, from_eip; };

struct direct_shared {
	_Atomic uint32_t turn; /* enum direct_turn; futex */
	uint32_t call;	       /* enum direct_call */
	uint64_t arg[6];
	int64_t result;
	uint8_t data[PAGE_BYTES];
	uint8_t xsave[DIRECT_XSAVE_BYTES]; /* FPU and vector registers, in the processor's standard form */
	uint32_t xsave_bytes;
	struct vcpu vcpu; /* env is the VM process's own */
	struct { uint32_t attached; struct debug_step step; } debug; /* the monitor writes it, for a debugger */
	/* filled in by the monitor before the start */
	uint32_t cpu, n_cpus, ram_pages, first_page, area_limit, many_hosts, host_tsc_khz, tsc_khz;
	uint64_t start_monotonic_ns, slot_offset, rights_offset; /* in the host's shared memory */
	/* filled in by the VM process when its jail is closed */
	int32_t setup_error, pad;
};

#endif
