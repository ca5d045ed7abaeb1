/* pages.c - host mappings in the VM process: its stub makes and drops them as vcpu/shadow.c
 * decides; access is granted page by page.
 *
 * Two independent layers decide whether guest code may access a linear page.  The guest's page
 * table decides through the mapping made here: mmap of the RAM descriptor with the guest's
 * protection; a forbidden access is SIGSEGV.  The page protocol decides through userfaultfd: an
 * access to a page that this host does not hold is SIGBUS, and the daemon can remove a page from
 * all mappings at once without a request to anybody (TRICKS: punch-everywhere).  If no other host
 * can hold pages, there is no second layer: while the machine is saved, a page that may not be
 * written yet is mapped for reading (vcpu/shadow.c).
 */
#include "monitor/monitor.h"

#include <asm/unistd_64.h>
#include <errno.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "base/log.h"
#include "base/touch.h"

#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP ((__u64)1 << 1) /* Linux 6.4 */
#endif

static unsigned host_limit(const char *path, unsigned otherwise)
{
	FILE *f = fopen(path, "r");
	unsigned value = otherwise;

	if (f) {
		if (fscanf(f, "%u", &value) != 1)
			value = otherwise;
		fclose(f);
	}
	return value;
}

static void map(void *ctx, gva_t gva, uint32_t bytes, gpa_t gpa, uint32_t rights)
{
	process_stub_queue(ctx, __NR_mmap, gva, bytes,
			   PROT_READ | (rights & SHADOW_EXECUTE ? PROT_EXEC : 0) |
				   (rights & SHADOW_WRITE ? PROT_WRITE : 0),
			   MAP_SHARED | MAP_FIXED, VMPROC_RAM_FD, gpa);
}

static void unmap(void *ctx, gva_t gva, uint32_t bytes)
{
	process_stub_queue(ctx, __NR_munmap, gva, bytes, 0, 0, 0, 0);
}

void pages_init(struct monitor *m)
{
	unsigned lowest = host_limit("/proc/sys/vm/mmap_min_addr", 65536);

	m->shadow_host = (struct shadow_host){ map, unmap, m };
	m->shadow.host = &m->shadow_host;
	m->shadow.run = SHADOW_RUN;
	m->shadow.right = m->many_hosts ? NULL : m->shm->page_right;
	m->shadow.ram_pages = m->shm->ram_pages;
	m->shadow.area_limit = host_limit("/proc/sys/vm/max_map_count", 65530) / 3;
	m->shadow.first_page = lowest < PAGE_BYTES ? 1 : (lowest + PAGE_MASK) >> PAGE_BITS;
	m->shadow.entry = mmap(NULL, LINEAR_PAGES * sizeof(uint32_t), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->shadow.entry == MAP_FAILED)
		die("no memory for the shadow map: %s", strerror(errno));
}

/* --- pages that other hosts may hold ---------------------------------------------------------- */

/* Give the VM process access to one page, which is pinned.  Returns 0, or -errno of the host.
 * (TRICKS: minor-faults-too) */
static int let_in(struct monitor *m, gva_t gva, enum page_right right)
{
	struct uffdio_continue go = { .range = { gva & ~(uint64_t)PAGE_MASK, PAGE_BYTES },
				      .mode = right == PAGE_READ ? UFFDIO_CONTINUE_MODE_WP : 0 };

	return ioctl(m->vm.userfault_fd, UFFDIO_CONTINUE, &go) ? -errno : 0;
}

/* Another error than those below: hostile code may have given the monitor another descriptor than
 * its userfaultfd (process_fetch_userfaultfd()). */
static void refused(struct monitor *m, const char *what, int error)
{
	monitor_end(m, END_GUEST_FAULT, EXIT_VMP_FAILURE,
		    "CPU %u: the VM process's userfaultfd refuses to %s: %s", m->cpu, what,
		    strerror(error));
}

static void protect(struct monitor *m, int userfault_fd, gva_t first)
{
	struct uffdio_writeprotect all = { .range = { first, VMP_WINDOW - (uint64_t)first },
					   .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	int error;

	do /* EAGAIN: a mapping is changing */
		error = ioctl(userfault_fd, UFFDIO_WRITEPROTECT, &all) ? errno : 0;
	while (error == EAGAIN);
	/* ENOENT: nothing is mapped; ESRCH: killed, as below */
	if (error && error != ENOENT && error != ESRCH)
		refused(m, "write-protect its mappings", error);
}

/* Drop all mappings before guest code runs again. */
static void drop_all(struct monitor *m)
{
	if (m->direct_engine)
		m->direct->spaces.all_drops++;
	else
		shadow_drop_all(&m->shadow);
}

void pages_protect(struct monitor *m)
{
	gva_t first = m->shadow.first_page << PAGE_BITS;

	if (!m->many_hosts) {
		drop_all(m);
		return;
	}
	if (!m->direct_engine) {
		protect(m, m->vm.userfault_fd, first);
		return;
	}
	for (unsigned space = 0; space < MAX_SPACES; space++)
		if (m->vm.space[space].pid)
			protect(m, m->vm.space[space].userfault_fd, first);
	for (unsigned space = 0; space < MAX_SPACES; space++)
		if (m->vm.user[space].pid)
			protect(m, m->vm.user[space].userfault_fd, first);
}

void pages_mapped(struct monitor *m, gva_t gva, uint32_t bytes, const uint32_t *entry)
{
	struct uffdio_register area = { .range = { gva, bytes },
					.mode = UFFDIO_REGISTER_MODE_MISSING |
						UFFDIO_REGISTER_MODE_MINOR |
						UFFDIO_REGISTER_MODE_WP };

	/* A later operation of the same batch may have unmapped it again.  A VM process that was
	 * killed has no memory (ESRCH); the next wait for it reports that. */
	if (ioctl(m->vm.userfault_fd, UFFDIO_REGISTER, &area) && *entry && errno != ESRCH)
		bug("userfaultfd register %x+%x: %s", gva, bytes, strerror(errno));
	if (bytes > SHADOW_RUN * PAGE_BYTES)
		return;
	for (uint32_t at = 0; at < bytes; at += PAGE_BYTES, entry++) {
		/* give access to the pages that are here already */
		gfn_t gfn = shadow_frame(*entry);

		if (!*entry || !guestmem_try_pin(m, gfn, PAGE_READ))
			continue;
		let_in(m, gva + at, atomic_load(&m->shm->page_right[gfn]));
		guestmem_unpin(m, gfn);
	}
}

/* Request a page that is not here, with the pages that will probably be wanted next. */
static void ask_first(struct monitor *m, gva_t gva, gfn_t gfn, enum page_right want)
{
	gfn_t frames[MAX_AHEAD];
	unsigned n;

	m->misses.by_right[PAGE_READ].without = m->misses.by_right[PAGE_WRITE].without =
		atomic_load_explicit(&m->shm->without, memory_order_relaxed);
	if (atomic_load(&m->shm->page_right[gfn]) >= want)
		return;
	n = ahead_frames(&m->misses, &m->shadow, &m->vcpu, gva, &want, m->shm->page_right, frames);
	guestmem_ask(m, gfn, want, frames, n);
}

void pages_admit(struct monitor *m, gva_t gva, uint32_t entry, bool write)
{
	gfn_t gfn = shadow_frame(entry);
	enum page_right want = write && entry & SHADOW_WRITE ? PAGE_WRITE : PAGE_READ, right;
	int error;

	volatile uint8_t *page;

	ask_first(m, gva, gfn, want);
	ahead_used(&m->misses, gfn);
	page = guestmem_pin(m, gfn, want);
	right = atomic_load(&m->shm->page_right[gfn]);
	if (right < want) /* another host wants it meanwhile: it goes when the pin is released */
		right = want;
	error = let_in(m, gva, right);
	if (error == -EFAULT || error == -ENOENT) { /* a page of zeros that has no memory yet */
		touch_page(page, right == PAGE_WRITE);
		error = let_in(m, gva, right);
	}
	if (error == -EEXIST && right == PAGE_READ) {
		/* it may be read already, so the instruction writes */
		guestmem_unpin(m, gfn);
		page = guestmem_pin(m, gfn, PAGE_WRITE);
		error = let_in(m, gva, PAGE_WRITE);
		right = PAGE_WRITE;
	}
	if (error == -EEXIST && right == PAGE_WRITE) {
		struct uffdio_writeprotect open = { .range = { gva & ~(uint64_t)PAGE_MASK,
							       PAGE_BYTES } };

		error = ioctl(m->vm.userfault_fd, UFFDIO_WRITEPROTECT, &open) ? -errno : 0;
	}
	guestmem_unpin(m, gfn);
	/* EAGAIN: the mapping is changing, and the instruction faults again.  ESRCH: killed, as
	 * above. */
	if (error && error != -EAGAIN && error != -ESRCH)
		bug("CPU %u: cannot let the guest at page %x (frame %x): %s", m->cpu, gva, gfn,
		    strerror(-error));
}
