/* guestmem.c - pins: how a monitor may access guest RAM while other hosts request the page.
 *
 * The daemon grants and revokes the right to a page; base/hostshm.h gives the order of steps by
 * which a pin and a revocation exclude each other.  A pin is held for one emulated instruction,
 * never across a wait.  On a machine with one host a right is revoked only while no CPU runs, so
 * reading the right is enough there.
 */
#include "monitor/monitor.h"

#include "base/log.h"
#include "base/pin.h"

/* On the direct engine hostile code can write the slot's pins. */
static _Atomic uint32_t *find_pin(struct monitor *m, uint32_t value)
{
	_Atomic uint32_t *pin = pin_find(m->slot, value);

	if (!pin && m->direct_engine)
		die("guest code has overwritten the pins of its CPU");
	if (!pin)
		bug("CPU %u has no pin %x: it pins more than %d pages, or drops one twice", m->cpu,
		    value, PINS_PER_CPU);
	return pin;
}

void *guestmem_try_pin(struct monitor *m, gfn_t gfn, enum page_right right)
{
	void *page = m->ram + ((size_t)gfn << PAGE_BITS);
	const _Atomic uint8_t *here = &m->shm->page_right[gfn];

	if (!m->many_hosts)
		return atomic_load(here) >= right ? page : NULL;
	return pin_take(find_pin(m, 0), hostshm_pin(gfn, 1), here, right) >= right ? page : NULL;
}

void guestmem_ask(struct monitor *m, gfn_t gfn, enum page_right right, const gfn_t ahead[],
		  unsigned aheads)
{
	struct msg_page_want want = { .cpu = m->cpu, .gfn = gfn, .right = right };
	struct msg_page_ready ready;
	enum time_kind before = time_switch(m, TIME_SHARED_MEMORY);
	uint64_t start = m->time_mark_ns, us8;
	unsigned bucket = 0;

	atomic_store(&m->slot->granted, gfn + 1);
	atomic_fetch_add_explicit(&hostshm_page_faults(m->shm)[gfn], 1, memory_order_relaxed);
	channel_send(m, MSG_PAGE_WANT, VNODE_DAEMON(m->shm->node), &want, sizeof want, ahead,
		     aheads * sizeof *ahead);
	channel_wait(m, MSG_PAGE_READY, &ready, sizeof ready, NULL, 0, NULL);
	time_switch(m, before);
	for (us8 = (m->time_mark_ns - start) / 125; us8 > 1 && bucket < FETCH_BUCKETS - 1;
	     us8 >>= 1)
		bucket++;
	atomic_fetch_add_explicit(&m->slot->fetch_us8[bucket], 1, memory_order_relaxed);
}

void *guestmem_pin(struct monitor *m, gfn_t gfn, enum page_right right)
{
	for (;;) {
		void *page = guestmem_try_pin(m, gfn, right);

		if (page)
			return page;
		guestmem_ask(m, gfn, right, NULL, 0);
	}
}

void guestmem_unpin(struct monitor *m, gfn_t gfn)
{
	if (!m->many_hosts)
		return;
	pin_drop(find_pin(m, hostshm_pin(gfn, 1)));
}
