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

static void copy_page(uint8_t *page, void *data, uint32_t bytes, bool write)
{
	if (bytes == 2 && !((uintptr_t)page & 1)) { /* an index or flags: in one access */
		uint16_t value;

		memcpy(&value, data, 2);
		if (write)
			__atomic_store_n((uint16_t *)page, value, __ATOMIC_RELEASE);
		else
			value = __atomic_load_n((uint16_t *)page, __ATOMIC_ACQUIRE);
		memcpy(data, &value, 2);
	} else if (write) {
		memcpy(page, data, bytes);
	} else {
		memcpy(data, page, bytes);
	}
}

bool guestmem_copy(struct monitor *m, uint64_t gpa, void *data, uint32_t bytes, bool write)
{
	uint64_t ram_bytes = (uint64_t)m->shm->ram_pages << PAGE_BITS;

	if (gpa > ram_bytes || bytes > ram_bytes - gpa)
		return false;
	for (gpa_t at = gpa & ~(gpa_t)PAGE_MASK; at < gpa + bytes; at += PAGE_BYTES)
		if (!ram_has(m->shm->ram_pages, gpa_to_gfn(at)))
			return false;
	while (bytes) {
		gfn_t gfn = gpa_to_gfn(gpa);
		uint32_t at = gpa & PAGE_MASK,
			 part = PAGE_BYTES - at < bytes ? PAGE_BYTES - at : bytes;
		uint8_t *page = guestmem_pin(m, gfn, write ? PAGE_WRITE : PAGE_READ);

		copy_page(page + at, data, part, write);
		guestmem_unpin(m, gfn);
		gpa += part;
		data = (uint8_t *)data + part;
		bytes -= part;
	}
	return true;
}
