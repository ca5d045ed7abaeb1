/* shadow.c - host mappings that follow the guest's page tables, as a TLB follows them.
 *
 * Two layers that know nothing of each other decide whether guest code may touch a linear page.  The guest's page table
 * decides through the mapping made here (mmap of the RAM descriptor with the guest's protection; a touch that it forbids is
 * SIGSEGV).  The page protocol decides through userfaultfd (a touch of a page that this host does not hold is SIGBUS), and
 * the daemon can take a page from all mappings at once without asking anybody; see TRICKS.md.
 *
 * Mappings are made in runs: the neighbours within 64 KiB that the guest has mapped and used already, and 4 MiB pages whole.
 * They go away when the guest says so (invlpg, CR3, CR4): until then a stale one is as legal as a stale TLB entry.
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

#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP ((__u64)1 << 1) /* Linux 6.4 */
#endif

enum { LINEAR_PAGES = 1 << 20, USER_PAGES = VMP_USER_LIMIT >> PAGE_BITS, RUN_PAGES = 16, LARGE_PAGES = 1024 };

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

void shadow_init(struct monitor *m)
{
	unsigned lowest = host_limit("/proc/sys/vm/mmap_min_addr", 65536);

	m->shadow.area_limit = host_limit("/proc/sys/vm/max_map_count", 65530) / 3;
	m->shadow.first_page = lowest < PAGE_BYTES ? 1 : (lowest + PAGE_MASK) >> PAGE_BITS;
	m->shadow.entry = mmap(NULL, LINEAR_PAGES * sizeof(uint32_t), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->shadow.entry == MAP_FAILED)
		die("no memory for the shadow map: %s", strerror(errno));
}

static void forget(struct monitor *m, uint32_t first, uint32_t count)
{
	madvise(m->shadow.entry + first, count * sizeof(uint32_t), MADV_DONTNEED);
}

static void drop_user(struct monitor *m)
{
	if (!m->shadow.user_pages)
		return;
	process_stub_queue(m, __NR_munmap, PAGE_BYTES, VMP_USER_LIMIT - PAGE_BYTES, 0, 0, 0, 0);
	forget(m, 0, USER_PAGES);
	m->shadow.user_pages = 0;
}

void shadow_drop_all(struct monitor *m)
{
	process_stub_queue(m, __NR_munmap, PAGE_BYTES, ((uint64_t)LINEAR_PAGES << PAGE_BITS) - PAGE_BYTES, 0, 0, 0, 0);
	forget(m, 0, LINEAR_PAGES);
	m->shadow.user_pages = m->shadow.kernel_local = m->shadow.areas = 0;
}

void shadow_switch_space(struct monitor *m)
{
	if (m->shadow.kernel_local)
		shadow_drop_all(m);
	else
		drop_user(m);
}

void shadow_drop_page(struct monitor *m, gva_t gva)
{
	uint32_t page = gva >> PAGE_BITS, *entry = &m->shadow.entry[page];

	if (!*entry)
		return;
	process_stub_queue(m, __NR_munmap, (uint64_t)page << PAGE_BITS, PAGE_BYTES, 0, 0, 0, 0);
	if (page < USER_PAGES)
		m->shadow.user_pages--;
	else if (!(*entry & SHADOW_GLOBAL))
		m->shadow.kernel_local--;
	*entry = 0;
	m->shadow.areas++;
}

static void set_entry(struct monitor *m, uint32_t page, uint32_t value)
{
	uint32_t *entry = &m->shadow.entry[page];

	if (page < USER_PAGES)
		m->shadow.user_pages += !*entry;
	else
		m->shadow.kernel_local += !(value & SHADOW_GLOBAL) - (*entry && !(*entry & SHADOW_GLOBAL));
	*entry = value;
}

/* Map `count` linear pages whose entries have been set, to frames that follow each other. */
static void map_run(struct monitor *m, uint32_t page, unsigned count)
{
	uint32_t entry = m->shadow.entry[page];

	process_stub_queue(m, __NR_mmap, (uint64_t)page << PAGE_BITS, (uint64_t)count << PAGE_BITS,
			   PROT_READ | PROT_EXEC | (entry & SHADOW_WRITE ? PROT_WRITE : 0), MAP_SHARED | MAP_FIXED,
			   VMPROC_RAM_FD, entry & ~(uint32_t)PAGE_MASK);
	m->shadow.areas++;
}

static uint32_t walk_entry(const struct vcpu_walk *w)
{
	return (w->gpa & ~(uint32_t)PAGE_MASK) | SHADOW_VALID | (w->writable ? SHADOW_WRITE : 0) |
	       (w->global ? SHADOW_GLOBAL : 0);
}

static void map_large(struct monitor *m, gva_t gva, const struct vcpu_walk *w)
{
	uint32_t first = (gva >> PAGE_BITS) & ~(LARGE_PAGES - 1u), entry = walk_entry(w);
	uint32_t frame = gpa_to_gfn(w->gpa) & ~(LARGE_PAGES - 1u);
	unsigned count = LARGE_PAGES;

	if (frame + count > m->shm->ram_pages)
		count = m->shm->ram_pages - frame;
	unsigned skip = first < m->shadow.first_page ? m->shadow.first_page - first : 0;
	for (unsigned i = skip; i < count; i++)
		set_entry(m, first + i, (frame + i) << PAGE_BITS | (entry & PAGE_MASK));
	map_run(m, first + skip, count - skip);
}

void shadow_map(struct monitor *m, gva_t gva, const struct vcpu_walk *w)
{
	uint32_t page = gva >> PAGE_BITS, first = page & ~(RUN_PAGES - 1u), fresh[RUN_PAGES] = { 0 };

	if (m->shadow.areas > m->shadow.area_limit)
		shadow_drop_all(m);
	if (page < m->shadow.first_page) { /* the host forbids it; a guest's null pointer has faulted before this */
		vcpu_kill(&m->vcpu, "the guest maps address %x, below the host's vm.mmap_min_addr", gva);
		return;
	}
	if (w->large) {
		map_large(m, gva, w);
		return;
	}
	fresh[page - first] = walk_entry(w);
	for (unsigned i = 0; i < RUN_PAGES; i++) {
		struct vcpu_walk near;
		bool used;

		if (first + i == page || first + i < m->shadow.first_page || m->shadow.entry[first + i])
			continue;
		if (vcpu_peek(&m->vcpu, (first + i) << PAGE_BITS, &near, &used) || !used || near.large ||
		    gpa_to_gfn(near.gpa) >= m->shm->ram_pages)
			continue;
		fresh[i] = walk_entry(&near);
	}
	for (unsigned i = 0, count; i < RUN_PAGES; i += count) {
		for (count = 1; i + count < RUN_PAGES && fresh[i] && fresh[i + count] == fresh[i] + count * PAGE_BYTES; count++)
			continue;
		if (!fresh[i])
			continue;
		for (unsigned k = 0; k < count; k++)
			set_entry(m, first + i + k, fresh[i + k]);
		map_run(m, first + i, count);
	}
}

/* --- pages that other hosts may hold -------------------------------------------------------------------------------- */

/* Let the VM process at one page; the page is pinned. 0, or -errno of the host. */
static int let_in(struct monitor *m, gva_t gva, enum page_right right)
{
	struct uffdio_continue go = { .range = { gva & ~(uint64_t)PAGE_MASK, PAGE_BYTES },
				      .mode = right == PAGE_READ ? UFFDIO_CONTINUE_MODE_WP : 0 };

	return ioctl(m->vm.userfault_fd, UFFDIO_CONTINUE, &go) ? -errno : 0;
}

void shadow_mapped(struct monitor *m, gva_t gva, uint32_t bytes)
{
	struct uffdio_register area = { .range = { gva, bytes },
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP };

	/* A later operation of the same batch may have unmapped it again; a VM process that was killed has no memory
	 * (ESRCH), and the next wait for it says so. */
	if (ioctl(m->vm.userfault_fd, UFFDIO_REGISTER, &area) && m->shadow.entry[gva >> PAGE_BITS] && errno != ESRCH)
		bug("userfaultfd register %x+%x: %s", gva, bytes, strerror(errno));
	if (bytes > RUN_PAGES * PAGE_BYTES)
		return;
	for (uint32_t at = gva; at - gva < bytes; at += PAGE_BYTES) { /* what is here already comes along */
		gfn_t gfn = gpa_to_gfn(m->shadow.entry[at >> PAGE_BITS]);

		if (!m->shadow.entry[at >> PAGE_BITS] || !guestmem_try_pin(m, gfn, PAGE_READ))
			continue;
		let_in(m, at, atomic_load(&m->shm->page_right[gfn]));
		guestmem_unpin(m, gfn);
	}
}

void shadow_admit(struct monitor *m, gva_t gva, bool write)
{
	uint32_t entry = m->shadow.entry[gva >> PAGE_BITS];
	gfn_t gfn = gpa_to_gfn(entry);
	enum page_right want = write && entry & SHADOW_WRITE ? PAGE_WRITE : PAGE_READ, right;
	int error;

	if (!entry)
		bug("CPU %u: SIGBUS at %x, where nothing is mapped", m->cpu, gva);
	volatile uint8_t *page = guestmem_pin(m, gfn, want);
	right = atomic_load(&m->shm->page_right[gfn]);
	error = let_in(m, gva, right);
	if (error == -EFAULT || error == -ENOENT) { /* a page of zeroes that has no memory yet */
		if (right == PAGE_WRITE)
			*page = *page;
		else
			(void)*page;
		error = let_in(m, gva, right);
	}
	if (error == -EEXIST && right == PAGE_READ) { /* it may be read already, so the instruction writes */
		guestmem_unpin(m, gfn);
		page = guestmem_pin(m, gfn, PAGE_WRITE);
		error = let_in(m, gva, PAGE_WRITE);
		right = PAGE_WRITE;
	}
	if (error == -EEXIST && right == PAGE_WRITE) {
		struct uffdio_writeprotect open = { .range = { gva & ~(uint64_t)PAGE_MASK, PAGE_BYTES } };

		error = ioctl(m->vm.userfault_fd, UFFDIO_WRITEPROTECT, &open) ? -errno : 0;
	}
	guestmem_unpin(m, gfn);
	/* EAGAIN: the mapping changes right now, and the instruction faults again. ESRCH: killed, as above. */
	if (error && error != -EAGAIN && error != -ESRCH)
		bug("CPU %u: cannot let the guest at page %x (frame %x): %s", m->cpu, gva, gfn, strerror(-error));
}
