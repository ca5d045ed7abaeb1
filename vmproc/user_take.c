/* user_take.c - what a kernel process takes from its user process's report (user.h).  Pure.
 *
 * The program may have written the report itself.  So whatever stands there must become a stop that
 * the program could have caused: its own registers, with flags and selectors that a program may
 * have; a trap at its own level.  Nothing but a stop at the window's system call is believed to be
 * in the window.
 */
#include "vmproc/user.h"

#include <linux/signal.h>

enum { FLAGS = DIRECT_FLAGS_NATIVE, DIVIDE = 1 };

/* True if a guest program may have this stack segment: one of the guest's but not the kernel's, or
 * a TLS segment; none of the host's own. */
static bool is_program_stack(uint16_t ss)
{
	unsigned index = ss >> 3;

	if (!(ss & VMPROC_SEL_TABLE))
		return vmproc_is_tls(index);
	return index < VMP_GDT_ENTRIES && !vmproc_kernel_needs(index);
}

/* The vectors that may come with each signal; the first is taken if another one is reported, as
 * none of a signal's is unknown (struct engine_stop). */
static unsigned vector_of(uint32_t signal, uint32_t code, uint32_t vector)
{
	static const struct { uint8_t signal, first; uint32_t allowed; } row[] = {
		{ SIGSEGV, VECTOR_GP, 1u << VECTOR_GP | 1u << VECTOR_PF | 1u << VECTOR_OF |
					      1u << VECTOR_BR | 1u << VECTOR_TS },
		{ SIGBUS, VECTOR_SS, 1u << VECTOR_SS | 1u << VECTOR_NP | 1u << VECTOR_PF |
					     1u << VECTOR_AC },
		{ SIGTRAP, VECTOR_DB, 1u << VECTOR_DB | 1u << VECTOR_BP },
		{ SIGILL, VECTOR_UD, 1u << VECTOR_UD },
		{ SIGFPE, VECTOR_MF, 1u << VECTOR_MF | 1u << VECTOR_XM },
	};

	if (signal == SIGFPE && code == DIVIDE)
		return VECTOR_DE;
	for (unsigned i = 0; i < ARRAY_LEN(row); i++)
		if (row[i].signal == signal)
			return vector < 32 && row[i].allowed >> vector & 1 ? vector : row[i].first;
	return 0;
}

static bool is_stop(uint32_t signal)
{
	switch (signal) {
	case SIGSEGV:
	case SIGBUS:
	case SIGTRAP:
	case SIGILL:
	case SIGFPE:
	case SIGSYS:
	case SIGUSR1: return true;
	default:
		return false;
	}
}

bool user_take(const struct user_report *r, struct vcpu *v, struct engine_stop *s)
{
	uint32_t native = FLAGS | EFLAGS_RF;

	if (!is_stop(r->signal)) {
		vcpu_kill(v, "a guest program's process reports signal %u", r->signal);
		return false;
	}
	for (unsigned i = 0; i < ARRAY_LEN(r->gpr); i++)
		v->gpr[i] = (uint32_t)r->gpr[i];
	v->eip = (uint32_t)r->rip;
	v->eflags = (v->eflags & ~native) | ((uint32_t)r->rflags & native) | EFLAGS_FIXED;
	if (is_program_stack(r->ss))
		v->seg[SEG_SS] = r->ss | VMPROC_SEL_RPL;
	v->seg[SEG_DS] = r->ds, v->seg[SEG_ES] = r->es;
	v->seg[SEG_FS] = r->fs, v->seg[SEG_GS] = r->gs;
	*s = (struct engine_stop){
		.signal = (int)r->signal,
		.code = (int)r->code,
		.address = r->address,
		.call = r->call,
		.vector = vector_of(r->signal, r->code, r->vector),
		.error = r->error & (PF_PRESENT | PF_WRITE | PF_USER | PF_FETCH),
		.cs = r->cs,
		.in_guest = r->cs == VMP_SEL_USER_CS,
		.in_window = r->cs == VMP_SEL_HOST64 && window_holds_syscall(r->rip),
		.at = { .rip = (uint32_t)r->rip,
			.esp = (uint32_t)r->gpr[ESP],
			.r8 = (uint32_t)r->r8,
			.r10 = (uint32_t)r->r10 & FLAGS,
			.eflags = (uint32_t)r->rflags & FLAGS },
	};
	return true;
}

void user_take_xsave(uint8_t *xsave, uint64_t xcr0, uint32_t mxcsr_mask)
{
	enum { MXCSR_AT = 24, HEADER_AT = 512, HEADER_BYTES = 64 };
	const uint64_t pkru = 1 << 9; /* it would lock the kernel process out of its own memory */
	uint32_t mxcsr;
	uint64_t present;

	__builtin_memcpy(&mxcsr, xsave + MXCSR_AT, sizeof mxcsr);
	mxcsr &= mxcsr_mask;
	__builtin_memcpy(xsave + MXCSR_AT, &mxcsr, sizeof mxcsr);
	__builtin_memcpy(&present, xsave + HEADER_AT, sizeof present);
	present &= xcr0 & ~pkru;
	__builtin_memset(xsave + HEADER_AT, 0, HEADER_BYTES);
	__builtin_memcpy(xsave + HEADER_AT, &present, sizeof present);
}
