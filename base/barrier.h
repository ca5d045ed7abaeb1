/* barrier.h - barriers whose threads are on several hosts, as one message: the counts of arrivals
 * that each host has outside guest memory, and the call by which a program reaches them.
 *
 * A program has a barrier's counts in its memory: one for each place, which is a host as the
 * program sees it; they only grow, and the barrier is reached when their sum is.  It tells a count
 * to all hosts, and waits for the sum, by one instruction in user mode:
 *
 *   int $VMP_INT_HYPERCALL	eax = BARRIER_CALL, edi:ebx = the barrier's serial number,
 *				ecx = place | BARRIER_TELL, edx = count, esi = sum to wait for
 *   -> eax: 1: reached; 0: not within a millisecond, or something else came; -EINVAL: place, count
 *      or sum is too large; -ENOSYS: this machine does not do it
 *
 * It needs no help of the guest's kernel: the page directory, which a program cannot choose, keeps
 * processes apart, and a serial number, which nobody can guess, keeps apart what used one directory
 * in turn.
 *
 * The table is a cache: each count in it was in guest memory before, so what it says of a sum is
 * true, and what it lacks (a host that has come, a snapshot, a ninth barrier at once) costs time
 * alone: the program looks in its memory after a while.
 */
#ifndef BASE_BARRIER_H
#define BASE_BARRIER_H

#include <stdatomic.h>
#include "base/types.h"

enum { BARRIER_CALL = 0x766d7001, BARRIER_TELL = 0x100 };
enum { BARRIER_SLOTS = 8, BARRIER_PLACES = 32, BARRIER_MOST = 0x7fffffff };

struct barrier_key { uint32_t frame /* of the page directory */; uint64_t serial; };

struct barrier_call {
	struct barrier_key key;
	uint32_t place, count, sum;
	bool tell;
};

/* Written by the daemon alone. */
struct barrier_table {
	_Atomic uint32_t uses; /* tells so far */
	struct barrier_slot {
		_Atomic uint32_t version; /* odd: the slot passes to another barrier now */
		_Atomic uint32_t frame, used;
		_Atomic uint64_t serial;
		_Atomic uint32_t count[BARRIER_PLACES];
	} slot[BARRIER_SLOTS];
};

static inline bool barrier_call_is_sound(const struct barrier_call *call)
{
	return call->place < BARRIER_PLACES && call->count <= BARRIER_MOST &&
	       call->sum <= BARRIER_MOST;
}

static inline bool barrier_slot_is(const struct barrier_slot *slot, const struct barrier_key *key)
{
	return atomic_load(&slot->frame) == key->frame && atomic_load(&slot->serial) == key->serial;
}

/* Return whether the counts that are here make up the sum.  (TRICKS: counts-are-a-cache) */
static inline bool barrier_reached(const struct barrier_table *table, const struct barrier_key *key,
				   uint32_t sum)
{
	if (!sum)
		return true;
	for (unsigned i = 0; i < BARRIER_SLOTS; i++) {
		const struct barrier_slot *slot = &table->slot[i];
		uint32_t version = atomic_load(&slot->version);
		uint64_t total = 0;

		if (version & 1 || !barrier_slot_is(slot, key))
			continue;
		for (unsigned place = 0; place < BARRIER_PLACES; place++)
			total += atomic_load(&slot->count[place]);
		if (atomic_load(&slot->version) == version)
			return total >= sum;
	}
	return false;
}

/* For the daemon: note a count.  A barrier that has no slot takes the one that was used least
 * recently.  Place and count are sound. */
static inline void barrier_note(struct barrier_table *table, const struct barrier_key *key,
				uint32_t place, uint32_t count)
{
	uint32_t now = atomic_fetch_add(&table->uses, 1) + 1;
	struct barrier_slot *slot = &table->slot[0];

	for (unsigned i = 0; i < BARRIER_SLOTS && !barrier_slot_is(slot, key); i++) {
		struct barrier_slot *other = &table->slot[i];

		if (barrier_slot_is(other, key) ||
		    now - atomic_load(&other->used) > now - atomic_load(&slot->used))
			slot = other;
	}
	if (!barrier_slot_is(slot, key)) {
		atomic_fetch_add(&slot->version, 1);
		for (unsigned i = 0; i < BARRIER_PLACES; i++)
			atomic_store(&slot->count[i], 0);
		atomic_store(&slot->frame, key->frame);
		atomic_store(&slot->serial, key->serial);
		atomic_fetch_add(&slot->version, 1);
	}
	atomic_store(&slot->used, now);
	if (count > atomic_load(&slot->count[place]))
		atomic_store(&slot->count[place], count);
}

#endif
