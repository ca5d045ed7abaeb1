/* hostshm.h - the memory that a host's node daemon shares with its monitors: two memfds, beside the
 * guest's RAM memfd, mapped one behind the other.  Only the daemon and the monitors have the head;
 * the rest, from the clock on, is in another memfd, because VM processes of the direct engine map
 * that one.
 *
 * Rules of use:
 *  - The daemon creates it, writes the header and every page's right, and reads the statistics.
 *  - Anybody on the host may post an interrupt to a CPU: set the bit, then hostshm_kick().
 *  - A CPU may leave for another host at any moment.  The daemon posts to the CPUs that it believes
 *    to be here, and forwards the posts that a CPU has left behind.  All other processes use
 *    hostshm_try_interrupt(): post, then read the state; if the CPU is absent, take the post back.
 *    A CPU that leaves does it in the opposite order: it sets SLOT_ABSENT, then collects its
 *    posts.  So one of the two sees the other, and the interrupt belongs to the one that clears
 *    the bit, exactly once.
 *  - Page rights (struct host_shm.page_right) are written by the daemon alone.  A process that
 *    accesses guest RAM through the alias mapping, or makes a page accessible to a VM process,
 *    first pins the page (monitor/guestmem.c):
 *        publish the frame in a pin slot; full fence; read the right; continue only if it
 *        suffices, else unpublish and request the page.
 *    The daemon takes a page away in the opposite order: lower the right; full fence; wait until no
 *    pin slot names the frame; only then touch the page (hostshm_drain_pins()).  This is Dekker's
 *    algorithm, one side per process.  In a machine that will always have one host, rights are
 *    lowered only at a snapshot's cut, when no CPU runs: there nothing is published, and reading
 *    the right is enough.
 *  - A VM process of the direct engine requests a page by its slot: it writes want_gfn and
 *    want_right, then want = WANT_ASKED; full fence; it reads daemon_polls, and writes to the
 *    host's bell (an eventfd) if that is 0; it sleeps until `want` is WANT_NONE.  The daemon clears
 *    daemon_polls; full fence; reads all slots; only then it sleeps.  It checks all values that it
 *    reads there.  A request may name further pages, for which no CPU waits yet.  A CPU has one
 *    request outstanding at a time, by its slot or by its monitor's message.
 *  - In the same way it tells the count of a barrier and waits for its sum: it writes `barrier`,
 *    then `tell`, then want = WANT_BARRIER, and reads the table of counts.  The daemon writes a
 *    count to the table, then reads `want` of all slots.  So one of the two sees that the sum is
 *    reached.  The VM process sleeps on `wake` there, as a halted CPU does, and stops waiting
 *    when it likes, but not before its count has been taken.
 *  - A VM process of the ptrace engine never sees this memory; one of the direct engine maps its
 *    own CPU's slot, the doorbells of all CPUs (base/doorbell.h), and the clock and the rights for
 *    reading, at places that its monitor gives it on its command line, and closes the descriptor
 *    before guest code runs.  Therefore the clock, the doorbells together and each slot are a page,
 *    and nothing there is a process id, a bound or an address for another process: a monitor or the
 *    daemon checks each value that it takes from there.
 */
#ifndef BASE_HOSTSHM_H
#define BASE_HOSTSHM_H

#include <stdatomic.h>
#include <stddef.h>
#include "base/barrier.h"
#include "base/cpufeatures.h"
#include "base/doorbell.h"
#include "base/hostclock.h"
#include "base/limits.h"
#include "base/types.h"

#define HOSTSHM_MAGIC 0x31706d76u /* "vmp1" */

enum slot_post {
	POST_MESSAGE = 1, /* the daemon has put a message in the monitor's socket */
	/* start_eip is valid: for a CPU that waits for its start, or that was taken offline */
	POST_START = 2,
	POST_NMI = 4,
};

/* How a VM process of the direct engine requests a page from the daemon, without its monitor. */
enum { SLOT_VAIN = 8 };
enum slot_want {
	/* no request, or it has been answered: the right was granted a moment ago */
	WANT_NONE,
	WANT_ASKED, /* set by the VM process; the daemon sets WANT_NONE and wakes it */
	/* set by the VM process: the CPU waits for `barrier`; either of them sets WANT_NONE */
	WANT_BARRIER,
};

/* The kinds of traps, for --stats and the time split. */
#define TRAP_KINDS(X) \
	X(MARKER, "sensitive instruction behind a marker") \
	X(PRIVILEGED, "privileged instruction") \
	X(HYPERCALL, "hypercall") \
	X(SYSCALL, "guest system call") \
	X(GUEST_FAULT, "the guest's own page fault") \
	X(SHADOW_FAULT, "host mapping made for a guest mapping") \
	X(PAGE_FETCH, "page not held by this host") \
	X(MMIO, "memory-mapped device") \
	X(EXCEPTION, "other exception of the guest") \
	X(KICK, "interrupted by the host") \
	X(STUB, "run of the mapping stub")
enum trap_kind {
#define X(name, text) TRAP_##name,
	TRAP_KINDS(X)
#undef X
	TRAP_KIND_COUNT
};

/* How a CPU's time is divided, ns of CLOCK_MONOTONIC. */
enum time_kind { TIME_NATIVE, TIME_SHARED_MEMORY, TIME_EMULATION, TIME_IDLE, TIME_KIND_COUNT };

enum { FETCH_BUCKETS = 24 }; /* histogram of fetch times: bucket i counts [2^i, 2^(i+1)) us/8 */

struct vcpu_slot {
	_Atomic uint32_t post;	 /* enum slot_post bits */
	_Atomic uint32_t start_eip;
	_Atomic uint32_t pin[PINS_PER_CPU]; /* hostshm_pin(), or 0 */
	/* frame + 1 of the last requested page, until the guest has run with it */
	_Atomic uint32_t granted;
	_Atomic uint32_t want;		    /* enum slot_want; futex */
	/* the requested page, and which enum page_right of it */
	_Atomic uint32_t want_gfn, want_right;
	/* the number and the frames of pages requested with it: no CPU waits for them yet */
	_Atomic uint32_t want_aheads, want_ahead[MAX_AHEAD];
	/* frame + 1 of pages that were requested ahead and not used; the engine clears them */
	_Atomic uint32_t vain[SLOT_VAIN];
	/* if the machine is traced: the last access to a page that was not here: when, where,
	 * and when it continued; ns of the machine's time */
	struct { _Atomic uint64_t ns, resumed_ns; _Atomic uint32_t gva, eip; } fault;
	/* which of its VM processes has the CPU; written by them, so take it modulo MAX_SPACES */
	_Atomic uint32_t space;
	_Atomic uint32_t spins;		    /* VMP_CPU_SPINS, set by the daemon */
	_Atomic uint32_t tell; /* 1: `barrier` has a count to be told; the daemon sets 0 */
	struct {
		_Atomic uint64_t serial;
		_Atomic uint32_t frame, place, count, sum;
	} barrier; /* base/barrier.h */
	_Atomic uint32_t want_locked; /* a locked instruction needs the page */
	/* the CPU reads the page, and requests it to write to since it may soon do so */
	_Atomic uint32_t want_guessed;
	/* where the guest stood when a kick or the clock interrupted it, on a machine of several
	 * hosts; `sum` is its registers'; `pauses`: at PAUSE.  `count` is written last */
	struct { _Atomic uint32_t count, eip, sum, pauses; } seen;
	/* 1: it sleeps, halted with interrupts disabled; written by the engine */
	_Atomic uint32_t halted_for_good;
	/* 1: somebody has sent a signal, or is about to; the engine clears it before RUNNING */
	_Atomic uint32_t kicked;
	/* 1: the guest's tasks wait for this CPU (VMP_HC_CROWDED); the daemon sets 0 */
	_Atomic uint32_t crowded;
	/* statistics, written by the engine alone */
	_Atomic uint64_t traps[TRAP_KIND_COUNT];
	_Atomic uint64_t time_ns[TIME_KIND_COUNT];
	_Atomic uint64_t fetch_us8[FETCH_BUCKETS];
} __attribute__((aligned(4096)));

_Static_assert(offsetof(struct vcpu_slot, want) == 28 &&
		       offsetof(struct vcpu_slot, want_gfn) == 32 &&
		       offsetof(struct vcpu_slot, want_aheads) == 40 &&
		       offsetof(struct vcpu_slot, tell) == 2160,
	       "tests/guest/hostile.c writes there");

struct host_shm {
	uint32_t magic;
	uint32_t n_processors; /* that this host may use */
	uint32_t node, many_hosts /* there are others, or may be later */, n_cpus, ram_pages;
	uint32_t tsc_khz;	     /* VMP_HC_TSC_KHZ */
	uint32_t host_tsc_khz;	     /* of this host, measured */
	struct cpu_features features; /* what the guest may see of the processor */
	/* the VM processes, 0 for one that does not exist */
	_Atomic int32_t vm_pid[MAX_CPUS][MAX_SPACES];
	_Atomic int32_t user_pid[MAX_CPUS][MAX_SPACES]; /* the same with --strict: user processes */
	_Atomic int32_t monitor_pid[MAX_CPUS];
	/* from here on in the second memfd */
	struct host_clock clock __attribute__((aligned(4096))); /* VMP_HC_CLOCK */
	/* 1: the daemon polls `want` of all slots and need not be woken */
	_Atomic uint32_t daemon_polls;
	_Atomic uint32_t traced; /* 1: VM processes set slot[].fault */
	_Atomic uint32_t without; /* mechanisms that are off (base/mechanisms.h) */
	struct barrier_table barriers;
	struct doorbell doorbell[MAX_CPUS] __attribute__((aligned(4096)));
	struct vcpu_slot slot[MAX_CPUS];
	/* followed by ram_pages rights, then ram_pages fault counts */
	_Atomic uint8_t page_right[];
};

enum { HOSTSHM_HEAD_BYTES = offsetof(struct host_shm, clock) };
_Static_assert(HOSTSHM_HEAD_BYTES % PAGE_BYTES == 0 &&
		       offsetof(struct host_shm, doorbell) % PAGE_BYTES == 0 &&
		       offsetof(struct host_shm, slot) % PAGE_BYTES == 0 &&
		       sizeof(struct vcpu_slot) % PAGE_BYTES == 0 &&
		       offsetof(struct host_shm, page_right) % PAGE_BYTES == 0,
	       "pages of their own");
_Static_assert(offsetof(struct host_shm, doorbell) - HOSTSHM_HEAD_BYTES == PAGE_BYTES &&
		       offsetof(struct host_shm, slot) - HOSTSHM_HEAD_BYTES == 2 * PAGE_BYTES,
	       "VM processes map one page, from the clock on, and one with all doorbells");

static inline size_t hostshm_bytes(uint32_t ram_pages)
{
	return sizeof(struct host_shm) + (ram_pages + 7u) / 8 * 8 +
	       (size_t)ram_pages * sizeof(uint32_t);
}

/* Return the bytes of the second memfd. */
static inline size_t hostshm_cpus_bytes(uint32_t ram_pages)
{
	return (hostshm_bytes(ram_pages) - HOSTSHM_HEAD_BYTES + PAGE_MASK) & ~(size_t)PAGE_MASK;
}

/* Map the two memfds one behind the other.  Returns NULL with errno if that fails. */
struct host_shm *hostshm_map(int head_fd, int cpus_fd, uint32_t ram_pages);
void hostshm_unmap(struct host_shm *shm, uint32_t ram_pages);

/* The daemon's host has all memory alone: it gets the right to write to all that is RAM. */
void hostshm_give_all_rights(struct host_shm *shm, uint32_t ram_pages);

/* Faults taken per page on this host (requests to the daemon), for `vmp pages`. */
static inline _Atomic uint32_t *hostshm_page_faults(struct host_shm *shm)
{
	return (_Atomic uint32_t *)((char *)shm->page_right + (shm->ram_pages + 7u) / 8 * 8);
}

/* Make `cpu` check its posts: wake it if it is halted, stop its VM process if that runs.  Any
 * process of the host may call this. */
void hostshm_kick(struct host_shm *shm, unsigned cpu);

/* Post interrupt `vector` to a CPU of this host and kick it. */
void hostshm_post_interrupt(struct host_shm *shm, unsigned cpu, uint8_t vector);

/* Post an interrupt; for all processes but the daemon.  False: the CPU is not on this host now, and
 * nothing was posted. */
bool hostshm_try_interrupt(struct host_shm *shm, unsigned cpu, uint8_t vector, bool nmi);

/* Post bits of enum slot_post and kick. */
void hostshm_post(struct host_shm *shm, unsigned cpu, uint32_t bits);

/* The word that pins `count` frames, 1 to 256. */
enum { PIN_GFN_BITS = 24, PIN_MOST = 256 };
_Static_assert(MAX_RAM_PAGES < 1 << PIN_GFN_BITS, "a frame + 1 fits");
static inline uint32_t hostshm_pin(gfn_t first, unsigned count)
{
	return (first + 1) | (uint32_t)(count - 1) << PIN_GFN_BITS;
}

static inline bool hostshm_pin_holds(uint32_t pin, gfn_t gfn)
{
	uint32_t first_plus_1 = pin & ((1u << PIN_GFN_BITS) - 1);

	return first_plus_1 && gfn + 1 - first_plus_1 <= pin >> PIN_GFN_BITS;
}

/* Wait until no CPU of this host pins `gfn`; for the daemon, after it has lowered the right.  Pins
 * are held for microseconds, unless their holder dies: is_gone() is called now and then, and
 * returns true if no process is left that could release that CPU's pin.  Returns -1, or the number
 * of a CPU that has not released it for HOSTSHM_PIN_LIMIT_MS: hostile code may write the pins of
 * its slot. */
enum { HOSTSHM_PIN_LIMIT_MS = 6000 };
typedef bool hostshm_is_gone(void *ctx, unsigned cpu);
int hostshm_drain_pins(struct host_shm *shm, gfn_t gfn, hostshm_is_gone *is_gone, void *ctx);

/* Clear the pins of a slot whose holder is dead. */
void hostshm_forget_pins(struct vcpu_slot *slot);

#endif
