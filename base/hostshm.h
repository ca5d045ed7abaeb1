/* hostshm.h - the memory that a host's node daemon shares with its monitors: two memfds, beside the guest's RAM memfd, mapped one
 * behind the other.  The head is the daemon's and the monitors' alone; the rest, from the clock on, is in another memfd, because
 * VM processes of the direct engine are given that one.
 *
 * Rules of use:
 *  - The daemon creates it, writes the header and every page's right, and reads the statistics.
 *  - Anybody on the host may post an interrupt to a CPU: set the bit, then hostshm_kick().
 *  - A CPU may leave for another host at any moment.  The daemon posts to those that it takes for its own, and sends on what
 *    they have left behind.  Everybody else uses hostshm_try_interrupt(): post, then read the state; if the CPU is absent,
 *    take the post back.  A CPU that leaves does it in the opposite order: it sets SLOT_ABSENT, then collects its posts.
 *    So one of the two sees the other, and whoever takes the bit out of the word has the interrupt, once.
 *  - Page rights (struct host_shm.page_right) are written by the daemon alone.  Whoever touches guest RAM through the
 *    alias mapping, or makes a page accessible to a VM process, first pins the page (monitor/guestmem.c):
 *        publish the frame in a pin slot; full fence; read the right; go on only if it suffices, else unpublish and ask.
 *    The daemon takes a page away in the opposite order: lower the right; full fence; wait until no pin slot names the
 *    frame; only then touch the page (hostshm_drain_pins()).  This is Dekker's algorithm, one side per process.
 *    A host that will never have another beside it takes rights away only at a snapshot's cut, when no CPU runs: there, nothing
 *    is published, and looking at the right is enough.
 *  - A VM process of the ptrace engine never sees this memory; one of the direct engine maps its own CPU's slot, and the clock
 *    and the rights for reading, at places that its monitor gives it on its command line, and closes the descriptor before
 *    guest code runs.  Therefore the clock and each slot are a page, and nothing there is a process id, a bound or a place of
 *    anybody else's: what a monitor or the daemon takes from a slot it checks.
 */
#ifndef BASE_HOSTSHM_H
#define BASE_HOSTSHM_H

#include <stdatomic.h>
#include <stddef.h>
#include "base/cpufeatures.h"
#include "base/hostclock.h"
#include "base/limits.h"
#include "base/types.h"

#define HOSTSHM_MAGIC 0x31706d76u /* "vmp1" */

enum slot_state {
	SLOT_ABSENT,  /* this CPU lives on another host, is not started yet, or is on its way */
	SLOT_MONITOR, /* in the monitor, which looks at its posts before guest code runs again */
	SLOT_RUNNING, /* in guest code, or about to be: a signal to the VM process that has the CPU stops it */
	SLOT_HALTED,  /* asleep on `wake` */
};

enum slot_post {
	POST_MESSAGE = 1, /* the daemon has put a message in the monitor's socket */
	POST_START = 2,	  /* start_eip is valid: leave the wait-for-start state */
	POST_NMI = 4,
};

/* What a trap was, for --stats and the time split. Expanded from one list. */
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

/* Where a CPU's time went, ns of CLOCK_MONOTONIC. */
enum time_kind { TIME_NATIVE, TIME_SHARED_MEMORY, TIME_EMULATION, TIME_IDLE, TIME_KIND_COUNT };

enum { FETCH_BUCKETS = 24 }; /* histogram of fetch times: bucket i counts [2^i, 2^(i+1)) us/8 */

struct vcpu_slot {
	_Atomic uint32_t state; /* enum slot_state */
	_Atomic uint32_t wake;	/* futex word: incremented by every kick */
	_Atomic uint32_t irr[8]; /* interrupt vectors posted from outside, collected by exchange */
	_Atomic uint32_t post;	 /* enum slot_post bits */
	_Atomic uint32_t start_eip;
	_Atomic uint32_t pin[PINS_PER_CPU]; /* frame + 1, or 0 */
	_Atomic uint32_t granted;	    /* frame + 1 of the last page asked for, until the guest has run with it */
	_Atomic uint32_t space;		    /* which of its VM processes has the CPU; theirs, so take it modulo MAX_SPACES */
	_Atomic uint32_t spins;		    /* VMP_CPU_SPINS; the daemon says */
	uint32_t pad;
	/* statistics, written by the monitor alone */
	_Atomic uint64_t traps[TRAP_KIND_COUNT];
	_Atomic uint64_t time_ns[TIME_KIND_COUNT];
	_Atomic uint64_t fetch_us8[FETCH_BUCKETS];
} __attribute__((aligned(4096)));

struct host_shm {
	uint32_t magic, reserved;
	uint32_t node, many_hosts /* there are others, or may be later */, n_cpus, ram_pages;
	uint32_t tsc_khz;	     /* VMP_HC_TSC_KHZ */
	uint32_t host_tsc_khz;	     /* of this host, measured */
	struct cpu_features features; /* what the guest may see of the processor */
	_Atomic int32_t vm_pid[MAX_CPUS][MAX_SPACES]; /* the VM processes, 0 for one that does not exist */
	_Atomic int32_t monitor_pid[MAX_CPUS];
	/* from here on in the second memfd */
	struct host_clock clock __attribute__((aligned(4096))); /* VMP_HC_CLOCK */
	struct vcpu_slot slot[MAX_CPUS];
	/* followed by ram_pages rights, then ram_pages fault counts */
	_Atomic uint8_t page_right[];
};

enum { HOSTSHM_HEAD_BYTES = offsetof(struct host_shm, clock) };
_Static_assert(HOSTSHM_HEAD_BYTES % PAGE_BYTES == 0 && offsetof(struct host_shm, slot) % PAGE_BYTES == 0 &&
	       sizeof(struct vcpu_slot) % PAGE_BYTES == 0 && offsetof(struct host_shm, page_right) % PAGE_BYTES == 0, "pages of their own");

static inline size_t hostshm_bytes(uint32_t ram_pages)
{
	return sizeof(struct host_shm) + (ram_pages + 7u) / 8 * 8 + (size_t)ram_pages * sizeof(uint32_t);
}

/* Bytes of the second memfd. */
static inline size_t hostshm_cpus_bytes(uint32_t ram_pages)
{
	return (hostshm_bytes(ram_pages) - HOSTSHM_HEAD_BYTES + PAGE_MASK) & ~(size_t)PAGE_MASK;
}

/* Map the two memfds one behind the other; NULL with errno if that cannot be. */
struct host_shm *hostshm_map(int head_fd, int cpus_fd, uint32_t ram_pages);
void hostshm_unmap(struct host_shm *shm, uint32_t ram_pages);

/* Faults taken per page on this host (requests to the daemon), for `vmp pages`. */
static inline _Atomic uint32_t *hostshm_page_faults(struct host_shm *shm)
{
	return (_Atomic uint32_t *)((char *)shm->page_right + (shm->ram_pages + 7u) / 8 * 8);
}

/* Make `cpu` look at its posts: wake it if it is halted, stop its VM process if that runs. Any process of the host. */
void hostshm_kick(struct host_shm *shm, unsigned cpu);

/* Post interrupt `vector` to a CPU of this host and kick it. */
void hostshm_post_interrupt(struct host_shm *shm, unsigned cpu, uint8_t vector);

/* For all but the daemon. False: the CPU is not on this host now, and nothing was posted. */
bool hostshm_try_interrupt(struct host_shm *shm, unsigned cpu, uint8_t vector, bool nmi);

/* Post bits of enum slot_post and kick. */
void hostshm_post(struct host_shm *shm, unsigned cpu, uint32_t bits);

/* Daemon: wait until no CPU of this host pins `gfn`. Call after lowering its right. Pins are held for microseconds, unless who
 * holds one dies: is_gone is asked now and then, and true if nobody is left who could give that CPU's pin back.
 * -1, or the number of a CPU that has not given it back for HOSTSHM_PIN_LIMIT_MS: hostile code may write the pins of its own slot. */
enum { HOSTSHM_PIN_LIMIT_MS = 6000 };
typedef bool hostshm_is_gone(void *ctx, unsigned cpu);
int hostshm_drain_pins(struct host_shm *shm, gfn_t gfn, hostshm_is_gone *is_gone, void *ctx);

/* Whoever held pins in this slot is dead. */
void hostshm_forget_pins(struct vcpu_slot *slot);

#endif
