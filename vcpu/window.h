/* window.h - the CPU window (base/guest_abi.h): its data page as a struct, its code page as bytes,
 * and how a guest that stopped inside the code page is brought to a processor's state.
 *
 * The VM process maps both pages at VMP_WINDOW when it starts.  The guest may write anything
 * into the data page.  An engine takes from it the interrupt flag and other values that can harm
 * only the guest.
 */
#ifndef VCPU_WINDOW_H
#define VCPU_WINDOW_H

/* Words of the data page that only the engine and the code page use: */
#define WINDOW_SLOW_RETURN (VMP_WINDOW + 0x1c) /* not 0: iret calls the engine */
#define WINDOW_GATE (VMP_WINDOW + 0x20) /* 64 bits: the engine's address; r8d names the request */

#ifndef __ASSEMBLER__
#include <stddef.h>
#include "base/types.h"
#include "vcpu/vcpu.h"

enum { WINDOW_BYTES = 2 * PAGE_BYTES };

struct cpu_window {
	volatile uint32_t iflag, pending, cr2;
	uint32_t sp0, syscall_eip, syscall_cs;
	volatile uint32_t eoi;
	uint32_t slow_return;
	uint64_t gate;
	uint32_t spins, host;
};
#define WINDOW_FIELD(field, address) \
	_Static_assert(offsetof(struct cpu_window, field) == (address) - VMP_WINDOW, #field)
WINDOW_FIELD(iflag, VMP_CPU_IFLAG);
WINDOW_FIELD(pending, VMP_CPU_PENDING);
WINDOW_FIELD(cr2, VMP_CPU_CR2);
WINDOW_FIELD(sp0, VMP_CPU_SP0);
WINDOW_FIELD(syscall_eip, VMP_CPU_SYSCALL);
WINDOW_FIELD(syscall_cs, VMP_CPU_SYSCALL_CS);
WINDOW_FIELD(eoi, VMP_CPU_EOI);
WINDOW_FIELD(spins, VMP_CPU_SPINS);
WINDOW_FIELD(host, VMP_CPU_HOST);
WINDOW_FIELD(slow_return, WINDOW_SLOW_RETURN);
WINDOW_FIELD(gate, WINDOW_GATE);

/* window_open() fills the window from v, VMP_CPU_SPINS, VMP_CPU_HOST and the engine's gate before
 * guest code runs.  It writes every word each time: a guest's program may have written any of them,
 * and with --strict the guest kernel, which runs next, trusts them all.  window_close() copies the
 * window back after guest code, so that v is complete. */
void window_open(struct cpu_window *w, struct vcpu *v, uint64_t gate, uint32_t spins,
		 uint32_t host);
void window_close(struct cpu_window *w, struct vcpu *v);

/* For a guest that does not trust its users with the window: called after window_open(), and
 * instead of window_close() if the guest ran at CPL 3. */
void window_restrict(struct cpu_window *w, struct vcpu *v);
bool window_holds_syscall(uint64_t rip); /* is rip in the part that user code may run? */

/* window_code.S: position-independent, smaller than a page. */
extern const char window_code[], window_code_end[];

/* Return a gate that traps with #GP inside the code page, for an engine in another address
 * space. */
uint64_t window_trap_gate(void);

static inline bool window_holds(uint64_t rip) { return rip - VMP_STUB_SYSCALL < PAGE_BYTES; }

/* The host's registers that matter when the guest stops in the code page. */
struct window_stop { uint32_t rip, esp, r8, r10, eflags; };
enum window_place {
	WINDOW_SYSCALL, /* a system call was under way; it has been delivered to the guest */
	WINDOW_IRET,	/* at the start of VMP_STUB_IRET: runs natively, or by vcpu_iret() */
	WINDOW_HYPERCALL, /* a hypercall was under way; it has been carried out */
};

/* Bring v, stopped inside the code page, to a state that a processor could have.  v->gpr, except
 * ESP, must be current.  The cause of the stop recurs or no longer matters, except an
 * instruction that failed at WINDOW_IRET. */
enum window_place window_settle(struct vcpu *v, const struct window_stop *stop);

/* v is at the window's iret: return to user mode as the window's code does, with as few checks.
 * False: the frame is not a plain one; then vcpu_iret() does it, and nothing has changed. */
bool window_return(struct vcpu *v);

#endif /* C */
#endif
