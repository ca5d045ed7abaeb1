/* apic.h - the local APIC of one virtual CPU (Intel SDM 3, chapter 10): registers, priorities,
 * timer, inter-processor interrupts.  Pure state: the vcpu asks which vector is next; the caller
 * passes the time in ns; outgoing interrupts are sent through struct vcpu_env.  Logical
 * destinations are flat and fixed: CPU n < 8 has bit n.  Further CPUs use physical mode.
 */
#ifndef VCPU_APIC_H
#define VCPU_APIC_H

#include "base/types.h"

struct vcpu;

struct apic {
	uint8_t id;
	uint32_t irr[8], isr[8], tmr[8];
	/* esr: latched by its last write */
	uint32_t tpr, ldr, dfr, spiv, esr, esr_gathered, icr_low, icr_high;
	uint32_t lvt_timer, lvt_thermal, lvt_perf, lvt_lint0, lvt_lint1, lvt_error;
	uint32_t timer_initial, timer_divide;
	uint64_t timer_started_ns; /* when timer_initial was written */
	uint64_t timer_deadline_ns; /* UINT64_MAX: not armed */
	/* when the CPU accepted the timer interrupt; 0: since then it has set the timer or
	 * halted */
	uint64_t timer_taken_ns;
	/* the timer does not fire before: the rest of the guest needs time */
	uint64_t timer_rest_until_ns;
};

void apic_init(struct apic *a, uint8_t id);
void apic_post(struct apic *a, uint8_t vector);	   /* request an interrupt */
bool apic_is_enabled(const struct apic *a); /* by software; otherwise it accepts no request */
int apic_highest(const struct apic *a);		   /* the vector that priorities allow now, or -1 */
bool apic_requested(const struct apic *a, uint8_t vector); /* is it requested, at any priority? */
void apic_withdraw(struct apic *a, uint8_t vector); /* cancel a request */
void apic_accept(struct apic *a, uint8_t vector);  /* the CPU accepts it: irr -> isr */
/* an interrupt is in service, and no request waits for its EOI */
bool apic_end_unwatched(const struct apic *a);
void apic_end_of_interrupt(struct apic *a);
/* cpus: a mask, which may include v's own CPU */
void apic_send(struct vcpu *v, uint32_t cpus, uint8_t vector, bool nmi);
uint32_t apic_read(struct vcpu *v, uint32_t offset);
void apic_write(struct vcpu *v, uint32_t offset, uint32_t value);
/* apic_deadline() returns when the timer fires next, in ns of env->now_ns; UINT64_MAX: never.
 * apic_tick() posts the timer's interrupt if it is due. */
uint64_t apic_deadline(const struct apic *a);
void apic_tick(struct apic *a, uint64_t now_ns);
uint64_t apic_timer_ns(const struct apic *a); /* the interval it was last set to, in ns */
/* the CPU accepted `vector`; the time counts if it is the timer's */
void apic_timer_taken(struct apic *a, uint8_t vector, uint64_t now_ns);
void apic_halted(struct apic *a); /* the CPU is idle: end the timer's rest */

#endif
