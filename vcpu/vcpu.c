/* vcpu.c - the life of a virtual CPU: power-on, start, death, and which interrupt comes next.
 *
 * Called by the engine's loop: before guest code runs it asks for interrupts; while halted it
 * asks whether to wake.
 */
#include "vcpu/internal.h"

void vcpu_init(struct vcpu *v, unsigned number, unsigned n_cpus, uint32_t ram_pages,
	       const struct vcpu_env *env)
{
	__builtin_memset(v, 0, sizeof *v);
	v->number = number;
	v->n_cpus = n_cpus;
	v->ram_pages = ram_pages;
	v->env = env;
	v->halted = true;
	v->eflags = EFLAGS_FIXED;
	v->cr0 = CR0_PE | CR0_ET;
	v->dr[6] = 0xffff0ff0;
	v->dr[7] = 0x400;
	v->xcr0 = 1;
	v->seg[SEG_CS] = VMP_SEL_BOOT_CS;
	for (unsigned s = 0; s < SEG_COUNT; s++)
		if (s != SEG_CS)
			v->seg[s] = VMP_SEL_BOOT_DS;
	v->apic_base_msr = VMP_LAPIC_GPA | 1 << 11 | (number == 0 ? 1 << 8 : 0);
	v->pat_msr = 0x0007040600070406;
	v->misc_msr = 1;
	apic_init(&v->apic, (uint8_t)number);
}

void vcpu_start(struct vcpu *v, uint32_t eip, uint32_t esi)
{
	vcpu_init(v, v->number, v->n_cpus, v->ram_pages, v->env);
	v->eip = eip;
	v->gpr[ESI] = esi;
	v->halted = false;
}

void vcpu_want_start(struct vcpu *v, uint32_t eip)
{
	v->start_wanted = true;
	v->start_eip = eip;
}

static bool nmi_ready(const struct vcpu *v) { return v->nmi_pending && !v->nmi_blocked; }

bool vcpu_halted_for_good(const struct vcpu *v)
{
	return v->halted && !v->awaited && !(v->eflags & EFLAGS_IF) && !nmi_ready(v);
}

/* (TRICKS: start-waits-for-hlt, offline-keeps-segments) */
bool vcpu_settle_start(struct vcpu *v)
{
	if (!v->start_wanted)
		return false;
	if (vcpu_halted_for_good(v)) {
		vcpu_start(v, v->start_eip, 0);
		v->env->flush_all(v->env->ctx);
		segments_announce(v, VMP_GDT_BOOT_CS, 2);
		return true;
	}
	v->start_wanted = !(v->eflags & EFLAGS_IF);
	return false;
}

void vcpu_kill(struct vcpu *v, const char *format, ...)
{
	struct text reason = { v->dead_reason, sizeof v->dead_reason, 0 };
	va_list args;

	if (v->dead)
		return;
	v->dead = VCPU_KILLED;
	va_start(args, format);
	text_add_list(&reason, format, args);
	va_end(args);
}

bool vcpu_interrupt_pending(const struct vcpu *v)
{
	return nmi_ready(v) || apic_highest(&v->apic) >= 0;
}

bool vcpu_can_interrupt(const struct vcpu *v)
{
	return (v->eflags & EFLAGS_IF) && !v->interrupt_shadow;
}

/* Deliver the NMI or the highest vector.  The interrupt shadow delays an NMI as well: SDM 3,
 * 6.8.3 allows it, and it protects mov ss; mov esp. */
bool vcpu_deliver_interrupt(struct vcpu *v)
{
	int vector;

	if (v->dead || v->interrupt_shadow)
		return false;
	if (nmi_ready(v)) {
		v->nmi_pending = false;
		v->nmi_blocked = true;
		v->halted = false;
		exception_external(v, VECTOR_NMI);
		return true;
	}
	vector = apic_highest(&v->apic);
	if (vector < 0 || !vcpu_can_interrupt(v))
		return false;
	apic_accept(&v->apic, (uint8_t)vector);
	apic_timer_taken(&v->apic, (uint8_t)vector, v->env->now_ns(v->env->ctx));
	v->halted = false;
	exception_external(v, (unsigned)vector);
	return true;
}

void vcpu_halt(struct vcpu *v)
{
	v->halted = true;
	v->awaited = 0;
	apic_halted(&v->apic);
}

bool vcpu_wakes(const struct vcpu *v)
{
	if (nmi_ready(v) || (v->awaited && apic_requested(&v->apic, v->awaited)))
		return true;
	return ((v->eflags & EFLAGS_IF) || (v->awaited && v->awaits_any)) &&
	       apic_highest(&v->apic) >= 0;
}

void vcpu_wake(struct vcpu *v)
{
	v->halted = false;
	if (v->awaited)
		apic_withdraw(&v->apic, v->awaited);
	v->awaited = 0;
}
