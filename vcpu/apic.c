/* apic.c - the local APIC (SDM 3, chapter 10): priorities, destinations, and the timer.
 *
 * Interrupts come in by apic_post() from the engine, by a self-IPI, by the timer or by an error;
 * the vcpu takes the highest by apic_accept().  All interrupts are edge-triggered, so EOI
 * notifies no other chip.  INIT and start-up IPIs do nothing: processors are started by a
 * hypercall.
 */
#include "vcpu/internal.h"

enum {
	APIC_ID = 0x20, APIC_VERSION = 0x30, APIC_TPR = 0x80, APIC_APR = 0x90, APIC_PPR = 0xa0,
	APIC_EOI = 0xb0, APIC_LDR = 0xd0, APIC_DFR = 0xe0, APIC_SPIV = 0xf0, APIC_ISR = 0x100,
	APIC_TMR = 0x180, APIC_IRR = 0x200, APIC_ESR = 0x280, APIC_ICR_LOW = 0x300,
	APIC_ICR_HIGH = 0x310, APIC_LVT_TIMER = 0x320, APIC_LVT_THERMAL = 0x330,
	APIC_LVT_PERF = 0x340, APIC_LVT_LINT0 = 0x350, APIC_LVT_LINT1 = 0x360,
	APIC_LVT_ERROR = 0x370, APIC_TIMER_INITIAL = 0x380, APIC_TIMER_CURRENT = 0x390,
	APIC_TIMER_DIVIDE = 0x3e0,
};
enum {
	APIC_VERSION_VALUE = 0x14 | 5 << 16, /* integrated; six LVT entries */
	SPIV_ENABLE = 1 << 8,
	LVT_MASKED = 1 << 16, LVT_PERIODIC = 1 << 17,
	ESR_SEND_VECTOR = 1 << 5, ESR_RECEIVE_VECTOR = 1 << 6, ESR_REGISTER = 1 << 7,
	FIRST_VECTOR = 16, /* lower ones belong to exceptions */
};
enum {
	MODE_FIXED, MODE_LOWEST, MODE_SMI, MODE_RESERVED3, MODE_NMI, MODE_INIT, MODE_STARTUP,
	MODE_EXTINT,
};
enum { SHORTHAND_NONE, SHORTHAND_SELF, SHORTHAND_ALL, SHORTHAND_OTHERS };

static void bit_set(uint32_t map[8], unsigned vector) { map[vector / 32] |= 1u << vector % 32; }

static void bit_clear(uint32_t map[8], unsigned vector)
{
	map[vector / 32] &= ~(1u << vector % 32);
}

static int highest(const uint32_t map[8])
{
	for (int word = 7; word >= 0; word--)
		if (map[word])
			return word * 32 + 31 - __builtin_clz(map[word]);
	return -1;
}

void apic_init(struct apic *a, uint8_t id)
{
	__builtin_memset(a, 0, sizeof *a);
	a->id = id;
	a->dfr = 0xffffffff;
	a->spiv = 0xff;
	a->lvt_timer = a->lvt_thermal = a->lvt_perf = a->lvt_lint0 = a->lvt_lint1 = a->lvt_error =
		LVT_MASKED;
	a->timer_deadline_ns = UINT64_MAX;
}

/* ---- arrival and priority */

bool apic_is_enabled(const struct apic *a) { return a->spiv & SPIV_ENABLE; }

static void lvt_post(struct apic *a, uint32_t lvt)
{
	if (!(lvt & LVT_MASKED))
		apic_post(a, lvt & 0xff);
}

/* Errors gather until the guest writes ESR; each raises the error LVT's interrupt. */
static void report_error(struct apic *a, uint32_t bit)
{
	a->esr_gathered |= bit;
	if ((a->lvt_error & 0xff) >= FIRST_VECTOR && !(a->lvt_error & LVT_MASKED) &&
	    apic_is_enabled(a))
		bit_set(a->irr, a->lvt_error & 0xff);
}

/* While the APIC is disabled by software, it accepts no interrupt (SDM 3, 10.4.7.2). */
void apic_post(struct apic *a, uint8_t vector)
{
	if (!apic_is_enabled(a))
		return;
	if (vector < FIRST_VECTOR) {
		report_error(a, ESR_RECEIVE_VECTOR);
		return;
	}
	bit_set(a->irr, vector);
	bit_clear(a->tmr, vector);
}

/* The processor's priority is the higher of the task's and of the interrupt in service (SDM 3,
 * 10.8.3.1). */
static uint32_t processor_priority(const struct apic *a)
{
	int serving = highest(a->isr);
	uint32_t in_service = serving < 0 ? 0 : (uint32_t)serving & 0xf0;

	return (a->tpr & 0xf0) >= in_service ? a->tpr : in_service;
}

int apic_highest(const struct apic *a)
{
	int vector = highest(a->irr);

	return vector >= 0 && ((uint32_t)vector & 0xf0) > (processor_priority(a) & 0xf0)
		? vector : -1;
}

bool apic_requested(const struct apic *a, uint8_t vector)
{
	return a->irr[vector / 32] >> vector % 32 & 1;
}

void apic_withdraw(struct apic *a, uint8_t vector) { bit_clear(a->irr, vector); }

void apic_accept(struct apic *a, uint8_t vector)
{
	bit_clear(a->irr, vector);
	bit_set(a->isr, vector);
}

bool apic_end_unwatched(const struct apic *a)
{
	return highest(a->isr) >= 0 && highest(a->irr) < 0;
}

void apic_end_of_interrupt(struct apic *a)
{
	int vector = highest(a->isr);

	if (vector >= 0)
		bit_clear(a->isr, (unsigned)vector);
}

/* ---- timer: counts VMP_LAPIC_TIMER_HZ, divided */

static unsigned divider(const struct apic *a)
{
	unsigned code = (a->timer_divide & 3) | (a->timer_divide >> 1 & 4);

	return code == 7 ? 1 : 2u << code;
}

static uint64_t tick_ns(const struct apic *a)
{
	return (uint64_t)divider(a) * (1000000000 / VMP_LAPIC_TIMER_HZ);
}

uint64_t apic_timer_ns(const struct apic *a) { return a->timer_initial * tick_ns(a); }

static void timer_arm(struct apic *a, uint64_t now_ns, uint64_t count)
{
	a->timer_started_ns = now_ns;
	a->timer_deadline_ns = count ? now_ns + count * tick_ns(a) : UINT64_MAX;
}

static uint32_t timer_current(const struct apic *a, uint64_t now_ns)
{
	uint64_t tick = tick_ns(a);

	if (a->timer_deadline_ns == UINT64_MAX)
		return 0;
	if (a->timer_deadline_ns > now_ns)
		return (uint32_t)((a->timer_deadline_ns - now_ns + tick - 1) / tick);
	if (!(a->lvt_timer & LVT_PERIODIC))
		return 0;
	return (uint32_t)(a->timer_initial -
			  (now_ns - a->timer_deadline_ns) / tick % a->timer_initial);
}

/* A timer that always fires as soon as it is due can use up all of a CPU's time.  With several
 * hosts on a loaded computer, fetching a page may take tens of milliseconds.  Linux's tick handler
 * needs a dozen pages that the other CPUs' ticks write to.  It then runs for longer than a tick's
 * interval, and the interrupted code never continues (boots hung so; Linux's own remedy, a pause as
 * long as the handler took, ends at 100 ms).  The handler ends by setting the timer.  After a long
 * handler the guest runs for REST_TIMES as long before the timer fires again.  A CPU that halts has
 * no work left, so its timer need not rest. */
enum { REST_TIMES = 4 };
static const uint64_t REST_FROM_NS = 1000000, REST_MAX_NS = 10000000000;

/* (TRICKS: timer-rest) */
static void timer_rest(struct apic *a, uint64_t now_ns)
{
	uint64_t took = now_ns - a->timer_taken_ns;

	if (a->timer_taken_ns && took >= REST_FROM_NS)
		a->timer_rest_until_ns = now_ns + (took < REST_MAX_NS / REST_TIMES
							   ? took * REST_TIMES
							   : REST_MAX_NS);
	a->timer_taken_ns = 0;
}

void apic_timer_taken(struct apic *a, uint8_t vector, uint64_t now_ns)
{
	if (vector == (a->lvt_timer & 0xff))
		a->timer_taken_ns = now_ns;
}

void apic_halted(struct apic *a)
{
	a->timer_taken_ns = a->timer_rest_until_ns = 0;
}

static uint64_t fires_ns(const struct apic *a)
{
	bool due_first = a->timer_deadline_ns > a->timer_rest_until_ns;

	return due_first ? a->timer_deadline_ns : a->timer_rest_until_ns;
}

/* Return the time of the next interrupt.  A masked timer counts, but wakes no CPU. */
uint64_t apic_deadline(const struct apic *a)
{
	return a->lvt_timer & LVT_MASKED ? UINT64_MAX : fires_ns(a);
}

void apic_tick(struct apic *a, uint64_t now_ns)
{
	uint64_t period = apic_timer_ns(a);

	if (fires_ns(a) > now_ns)
		return;
	lvt_post(a, a->lvt_timer);
	/* missed ticks coalesce */
	if ((a->lvt_timer & LVT_PERIODIC) && period)
		a->timer_deadline_ns += ((now_ns - a->timer_deadline_ns) / period + 1) * period;
	else
		a->timer_deadline_ns = UINT64_MAX;
}

/* ---- outgoing */

/* Return the destinations of the ICR's interrupt: a mask of CPU numbers below n_cpus. */
static uint32_t destination(const struct vcpu *v)
{
	const struct apic *a = &v->apic;
	uint32_t all = v->n_cpus >= 32 ? 0xffffffff : (1u << v->n_cpus) - 1, self = 1u << v->number;
	uint8_t to = a->icr_high >> 24;

	switch (a->icr_low >> 18 & 3) {
	case SHORTHAND_SELF: return self;
	case SHORTHAND_ALL: return all;
	case SHORTHAND_OTHERS: return all & ~self;
	}
	if (to == 0xff)
		return all;
	if (a->icr_low & 1 << 11)
		return to & all;
	return to < v->n_cpus ? 1u << to : 0;
}

void apic_send(struct vcpu *v, uint32_t cpus, uint8_t vector, bool nmi)
{
	uint32_t self = 1u << v->number;

	if (cpus & self) {
		if (nmi)
			v->nmi_pending = true;
		else
			apic_post(&v->apic, vector);
	}
	if (cpus & ~self)
		v->env->send_interrupt(v->env->ctx, cpus & ~self, vector, nmi);
}

static void send_icr(struct vcpu *v)
{
	struct apic *a = &v->apic;
	uint8_t vector = a->icr_low & 0xff;
	uint32_t cpus = destination(v);

	switch (a->icr_low >> 8 & 7) {
	case MODE_LOWEST:
		cpus &= 0 - cpus; /* lowest priority: any CPU may take it; the first does */
		/* fall through */
	case MODE_FIXED:
		if (vector < FIRST_VECTOR)
			report_error(a, ESR_SEND_VECTOR);
		else
			apic_send(v, cpus, vector, false);
		return;
	case MODE_NMI:
		apic_send(v, cpus, VECTOR_NMI, true);
		return;
	default: /* SMI, INIT, start-up, reserved: no effect */
		return;
	}
}

/* ---- registers */

/* Return the place of a register that is plain memory, and the bits that a write may change;
 * NULL: it is not plain. */
static uint32_t *plain_register(struct apic *a, uint32_t offset, uint32_t *writable)
{
	switch (offset) {
	case APIC_TPR: *writable = 0xff; return &a->tpr;
	case APIC_LDR: *writable = 0xff000000; return &a->ldr;
	case APIC_DFR: *writable = 0xf0000000; return &a->dfr;
	case APIC_SPIV: *writable = 0x3ff; return &a->spiv;
	case APIC_ICR_LOW: *writable = 0xccfff; return &a->icr_low;
	case APIC_ICR_HIGH: *writable = 0xff000000; return &a->icr_high;
	case APIC_LVT_TIMER: *writable = 0x300ff; return &a->lvt_timer;
	case APIC_LVT_THERMAL: *writable = 0x107ff; return &a->lvt_thermal;
	case APIC_LVT_PERF: *writable = 0x107ff; return &a->lvt_perf;
	case APIC_LVT_LINT0: *writable = 0x1a7ff; return &a->lvt_lint0;
	case APIC_LVT_LINT1: *writable = 0x1a7ff; return &a->lvt_lint1;
	case APIC_LVT_ERROR: *writable = 0x100ff; return &a->lvt_error;
	default: return NULL;
	}
}

static uint32_t read_special(struct vcpu *v, uint32_t offset)
{
	struct apic *a = &v->apic;

	switch (offset) {
	case APIC_ID: return (uint32_t)a->id << 24;
	case APIC_VERSION: return APIC_VERSION_VALUE;
	case APIC_APR:
	case APIC_PPR: return processor_priority(a);
	case APIC_EOI: return 0;
	case APIC_ESR: return a->esr;
	case APIC_TIMER_INITIAL: return a->timer_initial;
	case APIC_TIMER_CURRENT: return timer_current(a, v->env->now_ns(v->env->ctx));
	case APIC_TIMER_DIVIDE: return a->timer_divide;
	}
	report_error(a, ESR_REGISTER);
	return 0;
}

uint32_t apic_read(struct vcpu *v, uint32_t offset)
{
	struct apic *a = &v->apic;
	uint32_t writable, *plain;

	offset &= 0xff0;
	plain = plain_register(a, offset, &writable);
	if (plain)
		return *plain;
	if (offset >= APIC_ISR && offset < APIC_TMR)
		return a->isr[(offset - APIC_ISR) / 16];
	if (offset >= APIC_TMR && offset < APIC_IRR)
		return a->tmr[(offset - APIC_TMR) / 16];
	if (offset >= APIC_IRR && offset < APIC_ESR)
		return a->irr[(offset - APIC_IRR) / 16];
	return read_special(v, offset);
}

/* Disabling masks all local interrupts, and they cannot be unmasked until it is enabled again
 * (SDM 3, 10.4.7.2). */
static void mask_all(struct apic *a)
{
	a->lvt_timer |= LVT_MASKED;
	a->lvt_thermal |= LVT_MASKED;
	a->lvt_perf |= LVT_MASKED;
	a->lvt_lint0 |= LVT_MASKED;
	a->lvt_lint1 |= LVT_MASKED;
	a->lvt_error |= LVT_MASKED;
}

/* Carry out the effects of a write to a plain register. */
static void plain_written(struct vcpu *v, uint32_t offset)
{
	if (offset == APIC_ICR_LOW)
		send_icr(v);
	if (!apic_is_enabled(&v->apic))
		mask_all(&v->apic);
}

static void write_divide(struct apic *a, uint32_t value, uint64_t now_ns)
{
	uint32_t left = timer_current(a, now_ns);

	a->timer_divide = value & 0xb;
	timer_arm(a, now_ns, left);
}

static void write_special(struct vcpu *v, uint32_t offset, uint32_t value)
{
	struct apic *a = &v->apic;
	uint64_t now_ns;

	switch (offset) {
	case APIC_EOI:
		apic_end_of_interrupt(a);
		return;
	case APIC_ESR:
		a->esr = a->esr_gathered;
		a->esr_gathered = 0;
		return;
	case APIC_TIMER_INITIAL:
		a->timer_initial = value;
		now_ns = v->env->now_ns(v->env->ctx);
		timer_rest(a, now_ns);
		timer_arm(a, now_ns, value);
		return;
	case APIC_TIMER_DIVIDE:
		write_divide(a, value, v->env->now_ns(v->env->ctx));
		return;
	case APIC_ID: /* read-only here: it is the CPU's number */
	case APIC_VERSION:
		return;
	}
	report_error(a, ESR_REGISTER);
}

void apic_write(struct vcpu *v, uint32_t offset, uint32_t value)
{
	struct apic *a = &v->apic;
	uint32_t writable, *plain;

	offset &= 0xff0;
	/* a timer that is due fires under its old settings */
	if (offset == APIC_LVT_TIMER || offset == APIC_TIMER_INITIAL || offset == APIC_TIMER_DIVIDE)
		apic_tick(a, v->env->now_ns(v->env->ctx));
	plain = plain_register(a, offset, &writable);
	if (!plain) {
		write_special(v, offset, value);
		return;
	}
	*plain = (*plain & ~writable) | (value & writable);
	plain_written(v, offset);
}
