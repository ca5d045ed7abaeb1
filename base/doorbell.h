/* doorbell.h - how processes of a host tell a virtual CPU that something has come for it: the
 * interrupts, and a word to sleep on.
 *
 * All VM processes of the direct engine on a host map all doorbells, so that one CPU interrupts
 * another without any other process.  Therefore nothing here is a process id, a bound or an
 * address, and what hostile code writes here can mislead the CPUs of its own machine alone.
 */
#ifndef BASE_DOORBELL_H
#define BASE_DOORBELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum slot_state {
	SLOT_ABSENT,  /* this CPU lives on another host, is not started yet, or is on its way */
	SLOT_MONITOR, /* in the monitor, which checks the posts before guest code runs again */
	/* in guest code, or about to be: a signal to the VM process that has the CPU stops it */
	SLOT_RUNNING,
	SLOT_POLLING, /* halted, and reads `wake` again and again before it sleeps */
	SLOT_HALTED,  /* asleep on `wake` */
};

struct doorbell {
	_Atomic uint32_t state; /* enum slot_state */
	_Atomic uint32_t wake;	/* futex word: incremented by every kick */
	_Atomic uint32_t irr[8]; /* interrupt vectors posted from outside, collected by exchange */
} __attribute__((aligned(64)));

/* Post a vector.  False: it is posted already and not yet collected; the process that has posted it
 * kicks. */
static inline bool doorbell_post(struct doorbell *bell, uint8_t vector)
{
	uint32_t bit = 1u << (vector & 31);

	return !(atomic_fetch_or(&bell->irr[vector >> 5], bit) & bit);
}

/* Take a vector back.  False: the CPU has collected it. */
static inline bool doorbell_take_back(struct doorbell *bell, uint8_t vector)
{
	uint32_t bit = 1u << (vector & 31);

	return atomic_fetch_and(&bell->irr[vector >> 5], ~bit) & bit;
}

/* Count a kick, after something was posted.  Returns the state, which says what else is due: a
 * signal to a CPU that is RUNNING, nothing to one that is POLLING, FUTEX_WAKE on `wake` to any
 * other.
 *
 * The order matters: the post is written before `wake` is incremented, and `wake` is incremented
 * before `state` is read.  A CPU that goes to sleep reads `wake`, sets HALTED, checks its posts,
 * and sleeps only if `wake` is unchanged.  One that polls does the same with POLLING first. */
static inline enum slot_state doorbell_ring(struct doorbell *bell)
{
	atomic_fetch_add(&bell->wake, 1);
	return (enum slot_state)atomic_load(&bell->state);
}

/* What is left to do after doorbell_interrupt(). */
enum doorbell_rest {
	DOORBELL_NOTHING,
	DOORBELL_WAKE,	   /* FUTEX_WAKE on `wake` */
	DOORBELL_ELSEWHERE /* nothing was posted; somebody else has to, who may send signals, and
			    * knows where a CPU is that is not here */
};

/* Interrupt a CPU, if it is halted on this host.  For processes that may not send signals.
 * (TRICKS: doorbell-to-a-sleeper) */
static inline enum doorbell_rest doorbell_interrupt(struct doorbell *bell, uint8_t vector)
{
	enum slot_state state = (enum slot_state)atomic_load(&bell->state);

	if (state != SLOT_HALTED && state != SLOT_POLLING)
		return DOORBELL_ELSEWHERE;
	if (!doorbell_post(bell, vector))
		return DOORBELL_NOTHING;
	state = doorbell_ring(bell);
	if (state == SLOT_POLLING)
		return DOORBELL_NOTHING;
	if (state != SLOT_RUNNING && state != SLOT_ABSENT)
		return DOORBELL_WAKE;
	/* It has begun to run, or to leave, meanwhile, and has collected the post or will not. */
	return doorbell_take_back(bell, vector) ? DOORBELL_ELSEWHERE : DOORBELL_NOTHING;
}

#endif
