/* window.c - see window.h. */
#include "vcpu/window.h"
#include "vcpu/internal.h"

extern const char window_syscall_flags[], window_syscall_end[], window_iret_marked[],
	window_iret_slow[], window_trap[];

void window_open(struct cpu_window *w, struct vcpu *v, uint64_t gate, uint32_t spins,
		 uint32_t host)
{
	w->gate = gate;
	w->iflag = v->eflags & EFLAGS_IF;
	w->pending = vcpu_interrupt_pending(v);
	/* iret ends a block of NMIs and sets IOPL: the engine must see it */
	w->slow_return = w->pending || v->nmi_blocked || v->eflags & EFLAGS_IOPL;
	w->cr2 = v->cr2;
	w->sp0 = v->window_sp0;
	w->syscall_eip = v->window_syscall_eip;
	w->syscall_cs = v->window_syscall_cs;
	w->eoi = v->eoi_offered = apic_end_unwatched(&v->apic);
	w->spins = spins;
	w->host = host;
}

/* (TRICKS: eoi-offer) */
void window_close(struct cpu_window *w, struct vcpu *v)
{
	v->eflags = (v->eflags & ~(uint32_t)EFLAGS_IF) | (w->iflag & EFLAGS_IF);
	if (v->eoi_offered && !w->eoi)
		apic_end_of_interrupt(&v->apic);
	v->eoi_offered = false;
	v->window_sp0 = w->sp0;
	v->window_syscall_eip = w->syscall_eip;
	v->window_syscall_cs = w->syscall_cs;
}

void window_restrict(struct cpu_window *w, struct vcpu *v)
{
	w->slow_return = true;
	if (v->cpl == 0)
		return;
	w->syscall_cs = 0; /* system calls enter the engine as well */
	w->eoi = v->eoi_offered = false;
}

static uint32_t place(const char *label)
{
	return VMP_STUB_SYSCALL + (uint32_t)(label - window_code);
}

/* True if the guest's code segment for system calls is the flat one, and the window's code would
 * enter the kernel itself. */
static bool enters_by_itself(const struct vcpu *v)
{
	return (v->window_syscall_cs | SELECTOR_RPL) == (VMP_SEL_KERNEL_CS | SELECTOR_RPL) &&
	       !(v->eflags & (EFLAGS_TF | EFLAGS_NT | EFLAGS_AC));
}

/* Enter the kernel as the window's code does, which is a third of what a gate's checks cost.
 * False: the stack is not there, and nothing has changed. */
static bool enter_kernel(struct vcpu *v)
{
	uint32_t frame[] = { v->eip, VMP_SEL_USER_CS, v->eflags, v->gpr[ESP], VMP_SEL_USER_DS };
	uint32_t esp = v->window_sp0 - sizeof frame, cr2 = v->cr2, error;

	if (vcpu_write(v, esp, frame, sizeof frame, false, &error)) {
		v->cr2 = cr2;
		return false;
	}
	v->cpl = 0;
	v->seg[SEG_CS] = VMP_SEL_KERNEL_CS;
	v->seg[SEG_SS] = VMP_SEL_KERNEL_DS;
	v->gpr[ESP] = esp;
	v->eip = v->window_syscall_eip;
	v->eflags &= ~(uint32_t)EFLAGS_IF;
	v->halted = v->interrupt_shadow = false;
	return true;
}

/* Carry out the system call as a gate would: so far the guest cannot see any part of it. */
static void settle_syscall(struct vcpu *v, const struct window_stop *stop)
{
	uint32_t frame[2], error;

	v->cpl = 3;
	v->seg[SEG_CS] = VMP_SEL_USER_CS;
	v->seg[SEG_SS] = VMP_SEL_USER_DS;
	v->eflags = (stop->rip >= place(window_syscall_flags) ? stop->r10 : stop->eflags) |
		    EFLAGS_IF | EFLAGS_FIXED;
	v->eflags &= ~(uint32_t)EFLAGS_RF; /* the host's, where the call itself did not get here */
	v->gpr[ESP] = stop->rip == VMP_STUB_SYSCALL ? stop->esp : stop->r8;
	v->eip = VMP_STUB_SYSCALL;
	if (vcpu_read(v, v->gpr[ESP], frame, sizeof frame, true, &error)) {
		vcpu_exception(v, VECTOR_PF, error);
		return;
	}
	v->gpr[ESP] += sizeof frame;
	v->eip = frame[0] + 2;
	if (!enters_by_itself(v) || !enter_kernel(v))
		vcpu_software_interrupt(v, 0x80, frame[0]);
}

bool window_return(struct vcpu *v)
{
	const uint32_t slow = EFLAGS_TF | EFLAGS_NT | EFLAGS_IOPL | EFLAGS_VM;
	uint32_t frame[5], cr2 = v->cr2, error;

	if (v->cpl || v->eflags & (EFLAGS_TF | EFLAGS_NT) || v->nmi_blocked)
		return false;
	if (vcpu_read(v, v->gpr[ESP], frame, sizeof frame, false, &error)) {
		v->cr2 = cr2;
		return false;
	}
	if ((uint16_t)frame[1] != VMP_SEL_USER_CS || (uint16_t)frame[4] != VMP_SEL_USER_DS ||
	    (frame[2] & (slow | EFLAGS_IF)) != EFLAGS_IF)
		return false;
	v->eflags = transfer_merge_eflags(v, frame[2], sizeof frame[2], true);
	v->cpl = 3;
	v->seg[SEG_CS] = VMP_SEL_USER_CS;
	v->seg[SEG_SS] = VMP_SEL_USER_DS;
	v->gpr[ESP] = frame[3];
	v->eip = frame[0];
	return true;
}

static void settle_iret(struct vcpu *v, const struct window_stop *stop)
{
	uint32_t error;
	uint8_t cs;

	v->cpl = 0;
	v->seg[SEG_CS] = VMP_SEL_KERNEL_CS;
	v->seg[SEG_SS] = VMP_SEL_KERNEL_DS;
	v->eflags &= ~(uint32_t)EFLAGS_IF;
	v->eip = VMP_STUB_IRET;
	if (stop->rip < place(window_iret_marked) || stop->rip >= place(window_iret_slow))
		return;
	cs = VMP_SEL_KERNEL_CS;
	if (vcpu_write(v, v->gpr[ESP] + 4, &cs, 1, false, &error))
		vcpu_kill(v, "the frame at %x vanished under iret", v->gpr[ESP]);
}

/* Carry out the hypercall: the guest's registers are still those at the call. */
static void settle_hypercall(struct vcpu *v, const struct window_stop *stop)
{
	unsigned yields = v->yields;
	uint32_t error;

	v->cpl = 0;
	v->seg[SEG_CS] = VMP_SEL_KERNEL_CS;
	v->seg[SEG_SS] = VMP_SEL_KERNEL_DS;
	v->gpr[ESP] = stop->esp;
	if (vcpu_read(v, stop->esp, &v->eip, sizeof v->eip, false, &error)) {
		vcpu_kill(v, "a hypercall with no stack at %x", stop->esp);
		return;
	}
	v->gpr[ESP] += sizeof v->eip;
	hypercall(v);
	if (v->yields == yields)
		v->yields = 0;
}

uint64_t window_trap_gate(void) { return place(window_trap); }

bool window_holds_syscall(uint64_t rip)
{
	return window_holds(rip) && rip < place(window_syscall_end);
}

/* (TRICKS: window-settle) */
enum window_place window_settle(struct vcpu *v, const struct window_stop *stop)
{
	uint32_t rip = stop->rip == place(window_trap) ? stop->r8 : stop->rip;

	if (rip < place(window_syscall_end)) {
		settle_syscall(v, stop);
		return WINDOW_SYSCALL;
	}
	if (rip >= VMP_STUB_HYPERCALL) {
		settle_hypercall(v, stop);
		return WINDOW_HYPERCALL;
	}
	settle_iret(v, stop);
	return WINDOW_IRET;
}
