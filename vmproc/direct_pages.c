/* direct_pages.c - guest RAM as this VM process sees it while other hosts may hold pages of it.
 *
 * Two independent layers decide whether guest code may touch a linear page.  The guest's page
 * table decides through the host mapping (direct_env.c; a touch that it forbids is SIGSEGV).
 * The page protocol decides through the userfaultfd of this process: a touch of a mapped page
 * that is not open in this process is SIGBUS.  If this host holds the page, the handler opens it
 * (UFFDIO_CONTINUE).  If not, it requests the page from the daemon through the CPU's slot and
 * sleeps (base/hostshm.h).  The daemon can remove a page from all mappings at once without their
 * cooperation (TRICKS: punch-everywhere).
 *
 * Hostile code here can call the same ioctls.  They reach no memory but this process's own
 * mappings of guest RAM, which it can write to anyway.
 */
#include <linux/futex.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <linux/userfaultfd.h>
#include "base/pin.h"
#include "base/touch.h"
#include "vcpu/ahead.h"
#include "vcpu/fresh.h"
#include "vcpu/locked.h"
#include "vcpu/pause.h"
#include "vmproc/direct_env.h"
#include "vmproc/host.h"
#include "vmproc/vmproc.h"

#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP ((__u64)1 << 1) /* Linux 6.4 */
#endif

enum { EFAULT = 14, ENOENT = 2, EEXIST = 17, EAGAIN = 11, EINVAL = 22, ADMIT_MOST = 16 };

static const _Atomic uint8_t *const rights = (const _Atomic uint8_t *)DIRECT_RIGHTS_ADDRESS;

static volatile uint8_t *alias_of(gfn_t gfn)
{
	return (volatile uint8_t *)(DIRECT_RAM_ADDRESS + ((uint64_t)gfn << PAGE_BITS));
}

/* --- asking ----------------------------------------------------------------------------------- */

static void count_fetch(uint64_t ticks)
{
	uint64_t us8 = ticks * 8000 / direct.shared->host_tsc_khz;
	unsigned bucket = 0;

	for (; us8 > 1 && bucket < FETCH_BUCKETS - 1; us8 >>= 1)
		bucket++;
	atomic_fetch_add_explicit(&direct.slot->fetch_us8[bucket], 1, memory_order_relaxed);
}

bool direct_is_traced(void)
{
	enum { AT = offsetof(struct host_shm, traced) - offsetof(struct host_shm, clock) };

	return atomic_load_explicit((const _Atomic uint32_t *)(DIRECT_CLOCK_ADDRESS + AT),
				    memory_order_relaxed);
}

static bool daemon_polls(void)
{
	enum { AT = offsetof(struct host_shm, daemon_polls) - offsetof(struct host_shm, clock) };

	return atomic_load((const _Atomic uint32_t *)(DIRECT_CLOCK_ADDRESS + AT));
}

void direct_ring(void)
{
	static const uint64_t one = 1;

	if (!daemon_polls())
		host_call(__NR_write, VMPROC_BELL_FD, (long)&one, sizeof one, 0, 0, 0);
}

const struct barrier_table *direct_barriers(void)
{
	enum { AT = offsetof(struct host_shm, barriers) - offsetof(struct host_shm, clock) };

	return (const struct barrier_table *)(DIRECT_CLOCK_ADDRESS + AT);
}

uint32_t direct_mechanisms_off(void)
{
	enum { AT = offsetof(struct host_shm, without) - offsetof(struct host_shm, clock) };

	return atomic_load_explicit((const _Atomic uint32_t *)(DIRECT_CLOCK_ADDRESS + AT),
				    memory_order_relaxed);
}

/* For --trace. */
static void note_fault(gva_t gva, uint32_t eip)
{
	if (!direct_is_traced())
		return;
	atomic_store_explicit(&direct.slot->fault.ns, direct_now_ns(), memory_order_relaxed);
	atomic_store_explicit(&direct.slot->fault.gva, gva, memory_order_relaxed);
	atomic_store_explicit(&direct.slot->fault.eip, eip, memory_order_relaxed);
}

/* Request a right to a page, and the pages in slot->want_ahead, from the daemon; returns once
 * the right has been here.  (TRICKS: ask-then-ring) */
static void ask(gfn_t gfn, enum page_right right)
{
	struct vcpu_slot *slot = direct.slot;
	enum time_kind before = direct_time_switch(TIME_SHARED_MEMORY);
	uint64_t start = direct.time_mark;

	atomic_store(&slot->granted, gfn + 1);
	atomic_store_explicit(&slot->want_gfn, gfn, memory_order_relaxed);
	atomic_store_explicit(&slot->want_right, right, memory_order_relaxed);
	/* sequentially consistent: stands before daemon_polls is read */
	atomic_store(&slot->want, WANT_ASKED);
	direct_ring();
	while (atomic_load(&slot->want) != WANT_NONE)
		host_call(__NR_futex, (long)&slot->want, FUTEX_WAIT, WANT_ASKED, 0, 0, 0);
	direct_time_switch(before);
	count_fetch(direct.time_mark - start);
}

/* --- pins, by the rules of base/hostshm.h ----------------------------------------------------- */

static _Atomic uint32_t *find_pin(uint32_t value)
{
	_Atomic uint32_t *pin = pin_find(direct.slot, value);

	if (!pin)
		__builtin_trap();
	return pin;
}

/* Pin `count` frames: return how many of them, from the first on, have
 * the first one's right.  0: that right is lower than `right`. */
static unsigned try_pin(gfn_t first, unsigned count, enum page_right right, enum page_right *has)
{
	unsigned n;

	*has = pin_take(find_pin(0), hostshm_pin(first, count), &rights[first], right);
	if (*has < right)
		return 0;
	for (n = 1; n < count && atomic_load(&rights[first + n]) == *has; n++)
		;
	return n;
}

static void unpin(gfn_t first, unsigned count)
{
	pin_drop(find_pin(hostshm_pin(first, count)));
}

enum { CODE_MOST = 8 }; /* prefixes, opcode and ModRM of what compilers emit */

/* Copy what stands at `eip`; return how many bytes, 0 if their page has gone meanwhile. */
static unsigned code_at(gva_t eip, uint8_t *code)
{
	uint32_t entry = shadow_entry(direct.engine.shadow, eip), at = eip & PAGE_MASK;
	gfn_t gfn = shadow_frame(entry);
	unsigned n = 0;
	enum page_right has;

	if (!(entry & SHADOW_VALID) || !ram_has(direct.shared->ram_pages, gfn) ||
	    !try_pin(gfn, 1, PAGE_READ, &has))
		return 0;
	for (; n < CODE_MOST && at + n < PAGE_BYTES; n++)
		code[n] = alias_of(gfn)[at + n];
	unpin(gfn, 1);
	return n;
}

/* Return whether a locked instruction stands at `eip`; false if its page has gone meanwhile.
 * (TRICKS: locked-ends-holds) */
static bool is_locked(gva_t eip)
{
	uint8_t code[CODE_MOST];

	return locked_insn(code, code_at(eip, code));
}

/* A CPU that is interrupted in a loop with PAUSE nearly always stands at it, or right behind. */
static bool at_pause(gva_t eip)
{
	uint8_t code[CODE_MOST];

	return pause_insn(code, code_at(eip, code)) ||
	       ((eip & PAGE_MASK) >= PAUSE_BYTES &&
		pause_insn(code, code_at(eip - PAUSE_BYTES, code)));
}

void direct_note_seen(const struct vcpu *v)
{
	struct vcpu_slot *slot = direct.slot;
	uint32_t sum = 0;

	for (unsigned i = 0; i < 8; i++)
		sum = (sum << 5 | sum >> 27) ^ v->gpr[i];
	atomic_store_explicit(&slot->seen.eip, v->eip, memory_order_relaxed);
	atomic_store_explicit(&slot->seen.sum, sum, memory_order_relaxed);
	atomic_store_explicit(&slot->seen.pauses, at_pause(v->eip), memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->seen.count, 1, memory_order_release);
}

/* Runs of linear pages, and of frames that are used without an address, by the right wanted. */
static struct miss_history misses;
static struct ahead frames_ahead[PAGE_WRITE + 1];

static void forget_vain(void)
{
	struct vcpu_slot *slot = direct.slot;

	for (unsigned i = 0; i < SLOT_VAIN; i++) {
		gfn_t gfn;

		if (!atomic_load_explicit(&slot->vain[i], memory_order_relaxed))
			continue;
		gfn = atomic_exchange(&slot->vain[i], 0) - 1;
		ahead_vain_frame(&misses, gfn);
		ahead_vain(&frames_ahead[PAGE_WRITE], gfn);
	}
}

/* Request a page together with `n` others. */
static void ask_with(gfn_t gfn, enum page_right right, const gfn_t *others, unsigned n)
{
	struct vcpu_slot *slot = direct.slot;

	for (unsigned i = 0; i < n; i++)
		atomic_store_explicit(&slot->want_ahead[i], others[i], memory_order_relaxed);
	atomic_store_explicit(&slot->want_aheads, n, memory_order_relaxed);
	ask(gfn, right);
	atomic_store_explicit(&slot->want_aheads, 0, memory_order_relaxed);
}

/* Request a page together with those that will probably be wanted next. */
static void ask_with_aheads(gva_t gva, gfn_t gfn, enum page_right wanted)
{
	enum page_right right = wanted;
	gfn_t frames[MAX_AHEAD];
	unsigned n;

	forget_vain();
	misses.by_right[PAGE_READ].without = misses.by_right[PAGE_WRITE].without =
		direct_mechanisms_off();
	n = ahead_frames(&misses, direct.engine.shadow, &direct.shared->vcpu, gva, &right, rights,
			 frames);
	atomic_store_explicit(&direct.slot->want_locked, is_locked(direct.shared->vcpu.eip),
			      memory_order_relaxed);
	atomic_store_explicit(&direct.slot->want_guessed, right != wanted, memory_order_relaxed);
	ask_with(gfn, right, frames, n);
	atomic_store_explicit(&direct.slot->want_locked, 0, memory_order_relaxed);
	atomic_store_explicit(&direct.slot->want_guessed, 0, memory_order_relaxed);
}

void direct_fetch(void *ctx, gfn_t first, unsigned count, bool write)
{
	enum page_right right = write ? PAGE_WRITE : PAGE_READ;
	gfn_t frames[AHEAD_NAMED_MOST];
	unsigned n;

	(void)ctx;
	if (!direct.shared->many_hosts)
		return;
	forget_vain();
	frames_ahead[right].without = direct_mechanisms_off();
	n = ahead_named(&frames_ahead[right], first, count, write, rights, direct.shared->ram_pages,
			frames);
	if (!n)
		return;
	note_fault(0, 0);
	ask_with(frames[0], right, frames + 1, n - 1);
}

void *direct_pin(void *ctx, gpa_t gpa, bool write)
{
	gfn_t gfn = gpa_to_gfn(gpa);
	enum page_right right = write ? PAGE_WRITE : PAGE_READ, has;

	(void)ctx;
	if (!ram_has(direct.shared->ram_pages, gfn))
		return NULL;
	note_fault(0, 0);
	if (!direct.shared->many_hosts)
		while (atomic_load(&rights[gfn]) < right)
			ask(gfn, right);
	else
		while (!try_pin(gfn, 1, right, &has))
			ask(gfn, right);
	return (void *)alias_of(gfn);
}

void direct_unpin(void *ctx, gpa_t gpa)
{
	(void)ctx;
	if (direct.shared->many_hosts)
		unpin(gpa_to_gfn(gpa), 1);
}

/* --- letting the guest at pages --------------------------------------------------------------- */

/* --strict: the mappings are those of the user process, whose program stopped. */
static bool for_user(void) { return direct.engine.shadow != &direct.space.shadow; }

static long fault_ioctl(bool user, unsigned long request, void *argument)
{
	return host_call(__NR_ioctl, user ? VMPROC_USER_FAULT_FD : VMPROC_FAULT_FD, (long)request,
			 (long)argument, 0, 0, 0);
}

/* Open `count` pinned pages to the guest; return how many were opened, or -errno of the first.
 * (TRICKS: minor-faults-too) */
static long let_in(bool user, gva_t gva, unsigned count, enum page_right right)
{
	struct uffdio_continue go = {
		.range = { gva & ~(uint64_t)PAGE_MASK, (uint64_t)count << PAGE_BITS },
		.mode = right == PAGE_READ ? UFFDIO_CONTINUE_MODE_WP : 0,
	};
	long error = fault_ioctl(user, UFFDIO_CONTINUE, &go);

	return go.mapped > 0 ? go.mapped >> PAGE_BITS : error;
}

/* Allocate the memory of those pinned pages that have none yet: they are zeros. */
static void make_exist(gfn_t first, unsigned count, enum page_right right)
{
	for (gfn_t gfn = first; gfn < first + count; gfn++)
		touch_page(alias_of(gfn), right == PAGE_WRITE);
}

/* Return how many pages from `gva` on are contiguous both in RAM and in the guest's address
 * space. */
static unsigned run_length(gva_t gva)
{
	const struct shadow *shadow = direct.engine.shadow;
	gfn_t gfn = shadow_frame(shadow_entry(shadow, gva));
	unsigned n = 1;

	while (n < ADMIT_MOST && gva + n * PAGE_BYTES < VMP_WINDOW &&
	       ram_has(direct.shared->ram_pages, gfn + n) &&
	       shadow_entry(shadow, gva + n * PAGE_BYTES) & SHADOW_VALID &&
	       shadow_frame(shadow_entry(shadow, gva + n * PAGE_BYTES)) == gfn + n)
		n++;
	return n;
}

/* Make pages writable that are open to the guest for reading. */
static long open_to_write(gva_t gva, unsigned count)
{
	struct uffdio_writeprotect open = {
		.range = { gva & ~(uint64_t)PAGE_MASK, (uint64_t)count << PAGE_BITS },
	};

	return fault_ioctl(for_user(), UFFDIO_WRITEPROTECT, &open);
}

/* Open one pinned page, and those of the following pages that are here.  -EEXIST: it is open for
 * reading already. */
static long admit(gva_t gva, gfn_t gfn, unsigned pages, enum page_right right)
{
	static struct fresh fresh;
	long done = let_in(for_user(), gva, pages, right);

	if (done == -EFAULT) { /* the first page has no memory yet */
		unsigned run = fresh_run(&fresh, gfn, pages);

		make_exist(gfn, run, right);
		done = let_in(for_user(), gva, run, right);
	}
	if (done <= 0 && pages > 1) /* the host has more than one area there */
		done = let_in(for_user(), gva, 1, right);
	if (done == -EFAULT || done == -ENOENT) {
		make_exist(gfn, 1, right);
		done = let_in(for_user(), gva, 1, right);
	}
	if (done == -EEXIST && right == PAGE_WRITE) {
		done = open_to_write(gva, pages);
		if (done < 0 && pages > 1)
			done = open_to_write(gva, 1);
	}
	return done;
}

void direct_page_admit(gva_t gva, enum page_right want)
{
	gfn_t gfn = shadow_frame(shadow_entry(direct.engine.shadow, gva));
	bool around = mechanism_on(direct_mechanisms_off(), MECHANISM_AROUND);
	unsigned run = around ? run_length(gva) : 1;
	enum page_right has;
	long done;

	note_fault(gva, direct.shared->vcpu.eip);
	for (;;) {
		unsigned pages = try_pin(gfn, run, want, &has);

		if (!pages) {
			ask_with_aheads(gva, gfn, want);
			continue;
		}
		for (unsigned i = 0; i < pages; i++)
			ahead_used(&misses, gfn + i);
		done = admit(gva, gfn, pages, has);
		unpin(gfn, run);
		if (done != -EEXIST || has == PAGE_WRITE)
			break;
		want = PAGE_WRITE; /* it may be read already, so the instruction writes */
		run = 1;
	}
	if (done < 0 && done != -EAGAIN)
		vcpu_kill(&direct.shared->vcpu,
			  "the host does not let the guest at page %x (frame %x): error %x", gva,
			  gfn, (uint32_t)-done);
}

/* A mapping was made: open those of its pages that are here already. */
void direct_pages_mapped(bool user, gva_t gva, uint32_t bytes, gpa_t gpa)
{
	struct uffdio_register area = {
		.range = { gva, bytes },
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR |
			UFFDIO_REGISTER_MODE_WP,
	};
	long error = fault_ioctl(user, UFFDIO_REGISTER, &area);
	unsigned count = bytes >> PAGE_BITS, n;
	enum page_right has;

	if (error < 0) {
		vcpu_kill(&direct.shared->vcpu,
			  "the host does not register %x bytes at %x: error %x", bytes, gva,
			  (uint32_t)-error);
		return;
	}
	if (count > SHADOW_RUN)
		return;
	for (unsigned i = 0; i < count; i += n) {
		gfn_t gfn = gpa_to_gfn(gpa) + i;

		n = try_pin(gfn, count - i, PAGE_READ, &has);
		if (n) {
			let_in(user, gva + i * PAGE_BYTES, n, has);
			unpin(gfn, count - i);
			for (unsigned k = 0; k < n; k++)
				ahead_used(&misses, gfn + k);
		} else {
			n = 1;
		}
	}
}
