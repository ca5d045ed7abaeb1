/* pin.h - the pins of a CPU's slot: how an engine keeps the daemon from taking a page away while
 * it touches the page.  The daemon's side is hostshm_drain_pins(); the rules are in hostshm.h.
 */
#ifndef BASE_PIN_H
#define BASE_PIN_H

#include "base/hostshm.h"

/* Return the pin that holds `value`; 0: one that is free.  NULL: none does. */
static inline _Atomic uint32_t *pin_find(struct vcpu_slot *slot, uint32_t value)
{
	for (unsigned i = 0; i < PINS_PER_CPU; i++)
		if (atomic_load_explicit(&slot->pin[i], memory_order_relaxed) == value)
			return &slot->pin[i];
	return NULL;
}

/* Pin frames (value: hostshm_pin()), then read the right to the first of them.  Returns that right;
 * if it is lower than `wanted`, nothing is pinned.  (TRICKS: pin-then-look) */
static inline enum page_right pin_take(_Atomic uint32_t *free_pin, uint32_t value,
				       const _Atomic uint8_t *right_of_first,
				       enum page_right wanted)
{
	enum page_right has;

	/* sequentially consistent: stands before the right is read */
	atomic_store(free_pin, value);
	has = atomic_load(right_of_first);
	if (has < wanted)
		atomic_store(free_pin, 0);
	return has;
}

static inline void pin_drop(_Atomic uint32_t *pin)
{
	atomic_store_explicit(pin, 0, memory_order_release);
}

#endif
