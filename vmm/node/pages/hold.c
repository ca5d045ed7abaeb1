/* hold.c - see hold.h. */
#include "vmm/node/pages/hold.h"

enum { NS_PER_US = 1000 };

const struct hold_lengths *hold_lengths(bool end)
{
	static const struct hold_lengths short_ones = { 100, 400, 2000 },
					 long_ones = { 100, 1600, 2000 };

	return end ? &long_ones : &short_ones;
}

static uint64_t since_us(uint64_t then_ns, uint64_t now_ns)
{
	return (now_ns - then_ns) / NS_PER_US;
}

/* Notes that the page has arrived.  The time between writers doubles if the page comes back soon,
 * and starts again at its minimum if it does not.  A page that comes in two steps (the copy, then
 * the right to write to it) has come back once. */
void hold_arrived(struct page_hold *hold, gfn_t gfn, const struct hold_lengths *lengths,
		  bool locked, uint64_t now_ns)
{
	if (hold->gfn_plus_1 != gfn + 1)
		*hold = (struct page_hold){ .gfn_plus_1 = gfn + 1, .writer_us = lengths->min_us };
	else if (hold->went_ns && since_us(hold->went_ns, now_ns) > lengths->soon_us)
		hold->writer_us = lengths->min_us;
	else if (hold->went_ns && hold->writer_us < lengths->max_us)
		hold->writer_us *= 2;
	hold->went_ns = 0;
	hold->locked = locked;
	hold->came_ns = hold->used_ns = now_ns;
}

void hold_went(struct page_hold *hold, gfn_t gfn, uint64_t now_ns)
{
	if (hold->gfn_plus_1 == gfn + 1)
		hold->went_ns = now_ns;
}

/* Returns how long the page must stay so that the CPU that waits for it can run.  A CPU's mark in
 * its slot is cleared just before it resumes.  When the mark is first seen cleared, the CPU gets
 * `grace_us` more. */
static uint32_t until_run_us(struct page_hold *hold, bool awaited, uint32_t grace_us,
			     uint64_t now_ns)
{
	if (awaited && since_us(hold->came_ns, now_ns) < HOLD_RUN_MAX_US) {
		hold->used_ns = 0;
		return HOLD_POLL_US;
	}
	if (!hold->used_ns)
		hold->used_ns = now_ns;
	return since_us(hold->used_ns, now_ns) < grace_us ? grace_us : 0;
}

/* A copy leaves as soon as it was used.  A writer keeps its page against readers for the length of
 * a critical section: while a CPU updates the guest's clock, all other CPUs read the sequence
 * counter in the same page again and again.  The writer does not keep it longer, or a thread that
 * spins on a word would wait for the end of the hold: a handover between two hosts took 3.1-6.8 ms
 * with 100-400 us against every request, 1.9-2.5 ms without.  The next request comes about 36 us
 * after the right to write.  A hold that is over by then costs no timer, and no wake-up of a daemon
 * beside a guest that spins.  The page stays longer only between two writers that want nothing but
 * this page, and only until a locked instruction ends that.  (TRICKS: short-hold) */
uint32_t hold_us(struct page_hold *hold, gfn_t gfn, enum page_right has, enum page_right left,
		 bool awaited, uint64_t synced_ns, uint64_t now_ns)
{
	uint64_t age_us = since_us(hold->came_ns, now_ns);

	if (hold->gfn_plus_1 != gfn + 1)
		return 0;
	if (has == PAGE_WRITE && left == PAGE_NONE && !hold->locked &&
	    hold->came_ns > synced_ns && age_us < hold->writer_us)
		return hold->writer_us - (uint32_t)age_us;
	return until_run_us(hold, awaited, has == PAGE_WRITE ? HOLD_SECTION_US : HOLD_INSN_US,
			    now_ns);
}

uint32_t hold_one_us(struct page_hold *hold, gfn_t gfn, bool awaited, uint64_t now_ns)
{
	return hold->gfn_plus_1 == gfn + 1 ? until_run_us(hold, awaited, HOLD_INSN_US, now_ns) : 0;
}
