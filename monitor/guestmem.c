/* guestmem.c - pins: how a monitor may touch guest RAM while other hosts may want the page.
 *
 * The right to a page is the daemon's to give and to take; see base/hostshm.h for the order of steps that makes a pin and a
 * taking-away exclude each other.  A pin is held for the time of one emulated instruction, never across a wait.
 * A host that has all memory for itself takes a right away only while no CPU runs: there, looking at it is enough.
 */
#include "monitor/monitor.h"

#include "base/log.h"

/* (TRICKS: pin-then-look) */
void *guestmem_try_pin(struct monitor *m, gfn_t gfn, enum page_right right)
{
	void *page = m->ram + ((size_t)gfn << PAGE_BITS);

	if (!m->many_hosts)
		return atomic_load(&m->shm->page_right[gfn]) >= right ? page : NULL;
	for (unsigned i = 0; i < PINS_PER_CPU; i++) {
		_Atomic uint32_t *pin = &m->slot->pin[i];

		if (atomic_load_explicit(pin, memory_order_relaxed))
			continue;
		atomic_store(pin, gfn + 1); /* sequentially consistent: stands before the right is read */
		if (atomic_load(&m->shm->page_right[gfn]) >= right)
			return page;
		atomic_store(pin, 0);
		return NULL;
	}
	bug("CPU %u pins more than %d pages", m->cpu, PINS_PER_CPU);
}

void guestmem_ask(struct monitor *m, gfn_t gfn, enum page_right right)
{
	struct msg_page_want want = { .cpu = m->cpu, .gfn = gfn, .right = right };
	struct msg_page_ready ready;
	enum time_kind before = time_switch(m, TIME_SHARED_MEMORY);
	uint64_t start = m->time_mark_ns, us8;
	unsigned bucket = 0;

	atomic_store(&m->slot->granted, gfn + 1);
	atomic_fetch_add_explicit(&hostshm_page_faults(m->shm)[gfn], 1, memory_order_relaxed);
	channel_send(m, MSG_PAGE_WANT, VNODE_DAEMON(m->shm->node), &want, sizeof want, NULL, 0);
	channel_wait(m, MSG_PAGE_READY, &ready, sizeof ready, NULL, 0, NULL);
	time_switch(m, before);
	for (us8 = (m->time_mark_ns - start) / 125; us8 > 1 && bucket < FETCH_BUCKETS - 1; us8 >>= 1)
		bucket++;
	atomic_fetch_add_explicit(&m->slot->fetch_us8[bucket], 1, memory_order_relaxed);
}

void *guestmem_pin(struct monitor *m, gfn_t gfn, enum page_right right)
{
	for (;;) {
		void *page = guestmem_try_pin(m, gfn, right);

		if (page)
			return page;
		guestmem_ask(m, gfn, right);
	}
}

void guestmem_unpin(struct monitor *m, gfn_t gfn)
{
	if (!m->many_hosts)
		return;
	for (unsigned i = 0; i < PINS_PER_CPU; i++)
		if (atomic_load_explicit(&m->slot->pin[i], memory_order_relaxed) == gfn + 1) {
			atomic_store_explicit(&m->slot->pin[i], 0, memory_order_release);
			return;
		}
	bug("CPU %u unpins frame %x, which it does not pin", m->cpu, gfn);
}
