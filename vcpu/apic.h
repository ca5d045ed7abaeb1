/* apic.h - the local APIC of one virtual CPU (Intel SDM 3, chapter 10): registers, priorities, timer, inter-processor
 * interrupts.  Pure state: the vcpu asks it which vector is next; time comes in as ns; outgoing interrupts go out through
 * struct vcpu_env.  Logical destinations are flat and fixed: CPU n < 8 answers to bit n; more CPUs use physical mode.
 */
#ifndef VCPU_APIC_H
#define VCPU_APIC_H

#include "base/types.h"

struct vcpu;

struct apic {
	uint8_t id;
	uint32_t irr[8], isr[8], tmr[8];
	uint32_t tpr, ldr, dfr, spiv, esr, esr_gathered, icr_low, icr_high; /* esr: as latched by the last write to it */
	uint32_t lvt_timer, lvt_thermal, lvt_perf, lvt_lint0, lvt_lint1, lvt_error;
	uint32_t timer_initial, timer_divide;
	uint64_t timer_started_ns; /* when timer_initial was written */
	uint64_t timer_deadline_ns; /* UINT64_MAX: not armed */
	uint64_t timer_taken_ns; /* when the CPU took the timer's interrupt; 0: it has set the timer anew since, or halted */
	uint64_t timer_rest_until_ns; /* the timer fires no sooner: time for the rest of the guest */
};

void apic_init(struct apic *a, uint8_t id);
void apic_post(struct apic *a, uint8_t vector);	   /* an interrupt arrived from outside */
int apic_highest(const struct apic *a);		   /* vector deliverable now by priority, or -1 */
bool apic_requested(const struct apic *a, uint8_t vector); /* whatever the priorities say */
void apic_withdraw(struct apic *a, uint8_t vector); /* a request is taken back */
void apic_accept(struct apic *a, uint8_t vector);  /* the CPU takes it: irr -> isr */
bool apic_end_unwatched(const struct apic *a);	   /* one is in service, and nobody waits for its end */
void apic_end_of_interrupt(struct apic *a);
void apic_send(struct vcpu *v, uint32_t cpus, uint8_t vector, bool nmi); /* cpus: a mask, this one's too */
uint32_t apic_read(struct vcpu *v, uint32_t offset);
void apic_write(struct vcpu *v, uint32_t offset, uint32_t value);
/* ns (of env->now_ns) when the timer fires next, UINT64_MAX if never; apic_tick posts it if it is due. */
uint64_t apic_deadline(const struct apic *a);
void apic_tick(struct apic *a, uint64_t now_ns);
uint64_t apic_timer_ns(const struct apic *a); /* what the timer was last set for */
void apic_timer_taken(struct apic *a, uint8_t vector, uint64_t now_ns); /* the CPU has taken this interrupt: the timer's? */
void apic_halted(struct apic *a); /* the CPU has nothing to do: its timer need not rest */

#endif
