/* direct_env.c - see direct_env.h.  Mappings, segments and time are the VM process's own; the
 * rest is the monitor's. */
#include "vmproc/direct_env.h"

#include <asm/ldt.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/time.h>
#include <linux/time_types.h>
#include "base/mechanisms.h"
#include "base/virtio_abi.h"
#include "vmproc/host.h"
#include "vmproc/vmproc.h"

int64_t direct_call(enum direct_call call, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct direct_shared *s = direct.shared;

	s->call = call;
	s->arg[0] = a, s->arg[1] = b, s->arg[2] = c, s->arg[3] = d;
	atomic_store(&s->turn, TURN_MONITOR);
	host_call(__NR_futex, (long)&s->turn, FUTEX_WAKE, 1, 0, 0, 0);
	while (atomic_load(&s->turn) != TURN_VM)
		host_call(__NR_futex, (long)&s->turn, FUTEX_WAIT, TURN_MONITOR, 0, 0, 0);
	return s->result;
}

void direct_setup_done(enum direct_setup step)
{
	atomic_store(&direct.shared->setup, step);
	host_call(__NR_futex, (long)&direct.shared->setup, FUTEX_WAKE, 1, 0, 0, 0);
}

/* --- ports and devices ------------------------------------------------------------------------ */

static uint32_t env_port_in(void *ctx, uint16_t port, unsigned size)
{
	(void)ctx;
	return direct_call(DIRECT_PORT_IN, port, size, 0, 0);
}

static void env_port_out(void *ctx, uint16_t port, unsigned size, uint32_t value)
{
	(void)ctx;
	direct_call(DIRECT_PORT_OUT, port, size, value, 0);
}

static void env_port_in_string(void *ctx, uint16_t port, unsigned size, unsigned n, void *data)
{
	(void)ctx;
	direct_call(DIRECT_PORT_IN_STRING, port, size, n, 0);
	__builtin_memcpy(data, direct.shared->data, size * n);
}

static void env_port_out_string(void *ctx, uint16_t port, unsigned size, unsigned n,
				const void *data)
{
	(void)ctx;
	__builtin_memcpy(direct.shared->data, data, size * n);
	direct_call(DIRECT_PORT_OUT_STRING, port, size, n, 0);
}

static uint32_t env_mmio_read(void *ctx, gpa_t gpa, unsigned size)
{
	(void)ctx;
	if (virtio_only_tells(gpa, false))
		return VIRTIO_INTERRUPT_CHAINS;
	return direct_call(DIRECT_MMIO_READ, gpa, size, 0, 0);
}

static void env_mmio_write(void *ctx, gpa_t gpa, unsigned size, uint32_t value)
{
	(void)ctx;
	if (!virtio_only_tells(gpa, true))
		direct_call(DIRECT_MMIO_WRITE, gpa, size, value, 0);
}

/* --- translations and segments ---------------------------------------------------------------- */

static void env_flush_range(void *ctx, gva_t first, uint32_t pages)
{
	struct direct_shared *s = direct.shared;

	(void)ctx;
	if (direct.strict)
		spaces_drop_range_beside(&s->spaces, &direct.space, &direct.user.space, &s->vcpu,
					 first, pages);
	else
		spaces_drop_range(&s->spaces, &direct.space, &s->vcpu, first, pages);
}

static void env_flush_all(void *ctx)
{
	(void)ctx;
	spaces_drop_all(&direct.shared->spaces, &direct.space);
}

static void env_switch_space(void *ctx, bool keep)
{
	(void)ctx;
	spaces_cr3_loaded(&direct.shared->spaces, direct.shared->vcpu.cr3, keep);
}

/* The host maps pages one by one where they are written to, and up to 16 at once around one that
 * is read. (TRICKS: touch-each-16) */
static void look_at_each_16(gva_t gva, uint32_t bytes)
{
	enum { BLOCK = 16 * PAGE_BYTES };

	for (uint32_t at = 0; at + BLOCK <= bytes; at += BLOCK)
		(void)*(const volatile uint8_t *)(uintptr_t)(gva + at);
}

static void map(void *ctx, gva_t gva, uint32_t bytes, gpa_t gpa, uint32_t rights)
{
	long error = host_call(__NR_mmap, gva, bytes,
			       PROT_READ | (rights & SHADOW_EXECUTE ? PROT_EXEC : 0) |
				       (rights & SHADOW_WRITE ? PROT_WRITE : 0),
			       MAP_SHARED | MAP_FIXED, VMPROC_RAM_FD, gpa);

	(void)ctx;
	if (error < 0)
		vcpu_kill(&direct.shared->vcpu, "the host cannot map %x bytes at %x: error %x",
			  bytes, gva, (uint32_t)-error);
	else if (direct.shared->many_hosts)
		direct_pages_mapped(false, gva, bytes, gpa);
	else if (rights & SHADOW_WRITE && gva < VMP_USER_LIMIT)
		look_at_each_16(gva, bytes);
}

static void unmap(void *ctx, gva_t gva, uint32_t bytes)
{
	(void)ctx;
	host_call(__NR_munmap, gva, bytes, 0, 0, 0, 0);
}

static void env_segment_changed(void *ctx, unsigned index, const struct vcpu_segment *s)
{
	(void)ctx;
	direct_segment_changed(index, s);
}

/* --- the rest of the machine ------------------------------------------------------------------ */

/* (TRICKS: doorbell-to-a-sleeper) */
static void env_send_interrupt(void *ctx, uint32_t cpus, uint8_t vector, bool nmi)
{
	uint32_t left = cpus;

	(void)ctx;
	for (uint32_t rest = nmi ? 0 : cpus; rest; rest &= rest - 1) {
		struct doorbell *bell = &direct.bells[__builtin_ctz(rest)];
		enum doorbell_rest what = doorbell_interrupt(bell, vector);

		if (what != DOORBELL_ELSEWHERE)
			left &= ~(rest & -rest);
		if (what == DOORBELL_WAKE)
			host_call(__NR_futex, (long)&bell->wake, FUTEX_WAKE, 1, 0, 0, 0);
	}
	if (left)
		direct_call(DIRECT_SEND_INTERRUPT, left, vector, nmi, 0);
}

static int env_start_cpu(void *ctx, unsigned cpu, uint32_t eip)
{
	(void)ctx;
	return direct_call(DIRECT_START_CPU, cpu, eip, 0, 0);
}

static uint64_t monotonic_ns(void)
{
	struct __kernel_timespec t;

	host_call(__NR_clock_gettime, 1 /* CLOCK_MONOTONIC */, (long)&t, 0, 0, 0, 0);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

uint64_t direct_now_ns(void)
{
	return hostclock_now((const struct host_clock *)DIRECT_CLOCK_ADDRESS, monotonic_ns);
}

uint64_t direct_when_ns(uint64_t machine_ns)
{
	return hostclock_when((const struct host_clock *)DIRECT_CLOCK_ADDRESS, monotonic_ns,
			      machine_ns);
}

static uint64_t env_now_ns(void *ctx)
{
	(void)ctx;
	return direct_now_ns();
}

static uint64_t env_wallclock_ns(void *ctx)
{
	(void)ctx;
	return direct_call(DIRECT_WALLCLOCK, 0, 0, 0, 0);
}

static uint64_t env_tsc(void *ctx)
{
	(void)ctx;
	return __builtin_ia32_rdtsc();
}

static uint32_t env_tsc_khz(void *ctx)
{
	(void)ctx;
	return direct.shared->tsc_khz;
}

/* Linux reads the highest leaf before each other one: 230 of 290 reads at boot.  The result
 * never changes. */
static void env_host_cpuid(void *ctx, uint32_t leaf, uint32_t subleaf, uint32_t out[4])
{
	static struct { bool known; uint32_t out[4]; } highest[2];
	bool extended = leaf == 0x80000000, asks_highest = leaf == 0 || extended;

	(void)ctx;
	if (!asks_highest || !highest[extended].known) {
		direct_call(DIRECT_HOST_CPUID, leaf, subleaf, 0, 0);
		__builtin_memcpy(out, direct.shared->data, 16);
	} else {
		__builtin_memcpy(out, highest[extended].out, 16);
	}
	if (asks_highest) {
		highest[extended].known = true;
		__builtin_memcpy(highest[extended].out, out, 16);
	}
}

static uint64_t env_host_xcr0(void *ctx)
{
	(void)ctx;
	return direct_call(DIRECT_HOST_XCR0, 0, 0, 0, 0);
}

static void env_print(void *ctx, const char *text, unsigned bytes)
{
	(void)ctx;
	if (bytes > PAGE_BYTES)
		bytes = PAGE_BYTES;
	__builtin_memcpy(direct.shared->data, text, bytes);
	direct_call(DIRECT_PRINT, bytes, 0, 0, 0);
}

static void env_machine_end(void *ctx, unsigned why, uint32_t status)
{
	(void)ctx;
	direct_call(DIRECT_MACHINE_END, why, status, 0, 0);
}

/* The guest waits for another CPU: yield the processor; if that has not helped for a while,
 * sleep briefly. */
static void env_yield(void *ctx, unsigned times)
{
	(void)ctx;
	if (times % 16)
		host_call(__NR_sched_yield, 0, 0, 0, 0, 0, 0);
	else
		engine_nap(&direct.engine);
}

/* (TRICKS: ask-then-ring) */
static void env_crowded(void *ctx)
{
	(void)ctx;
	if (!direct.shared->many_hosts)
		return;
	/* sequentially consistent: stands before daemon_polls is read */
	atomic_store(&direct.slot->crowded, 1);
	direct_ring();
}

/* --- barriers of several hosts ---------------------------------------------------------------- */

/* The count is told, and taken: wait for the sum, but not for long. */
static void await_sum(const struct barrier_call *call)
{
	enum { AT_MOST_NS = 1000000 };
	struct vcpu_slot *slot = direct.slot;
	bool waited = false, due = false;

	for (;;) {
		uint32_t wake = atomic_load(&direct.engine.bell->wake);
		bool told = !atomic_load(&slot->tell);
		bool over = waited || due ||
			    barrier_reached(direct_barriers(), &call->key, call->sum);

		if (atomic_load(&slot->want) != WANT_BARRIER || (told && over))
			return;
		if (!told && (waited || due))
			engine_nap(&direct.engine);
		else
			due = !engine_doze(&direct.engine, wake, AT_MOST_NS);
		waited = true;
	}
}

/* (TRICKS: ask-then-ring, counts-are-a-cache) */
static int env_barrier(void *ctx, const struct barrier_call *call)
{
	struct vcpu_slot *slot = direct.slot;
	enum time_kind before;

	(void)ctx;
	if (!direct.shared->many_hosts || !mechanism_on(direct_mechanisms_off(), MECHANISM_BARRIER))
		return -38; /* ENOSYS */
	if (!call->tell && barrier_reached(direct_barriers(), &call->key, call->sum))
		return 1;
	before = direct_time_switch(TIME_SHARED_MEMORY);
	atomic_store_explicit(&slot->barrier.frame, call->key.frame, memory_order_relaxed);
	atomic_store_explicit(&slot->barrier.serial, call->key.serial, memory_order_relaxed);
	atomic_store_explicit(&slot->barrier.place, call->place, memory_order_relaxed);
	atomic_store_explicit(&slot->barrier.count, call->count, memory_order_relaxed);
	atomic_store_explicit(&slot->barrier.sum, call->sum, memory_order_relaxed);
	atomic_store(&slot->tell, call->tell);
	/* sequentially consistent: stands before daemon_polls and the counts are read */
	atomic_store(&slot->want, WANT_BARRIER);
	direct_ring();
	await_sum(call);
	atomic_store(&slot->want, WANT_NONE);
	direct_time_switch(before);
	return barrier_reached(direct_barriers(), &call->key, call->sum);
}

void direct_env_init(void)
{
	struct direct_shared *s = direct.shared;

	direct.env = (struct vcpu_env){
		.pin = direct_pin,
		.unpin = direct_unpin,
		.fetch = direct_fetch,
		VCPU_ENV_CALLS(env_)
	};
	direct.shadow_host = (struct shadow_host){ map, unmap, NULL };
	direct.space.shadow.host = &direct.shadow_host;
	direct.space.shadow.entry = (uint32_t *)DIRECT_SHADOW_ADDRESS;
	direct.space.shadow.right =
		s->many_hosts ? NULL : (const _Atomic uint8_t *)DIRECT_RIGHTS_ADDRESS;
	direct.space.shadow.ram_pages = s->ram_pages;
	direct.space.shadow.run = s->many_hosts ? SHADOW_RUN : SHADOW_LONG_RUN;
	direct.space.shadow.first_page = s->first_page;
	direct.space.shadow.area_limit = s->area_limit;
}

void direct_begin_cpu(struct vcpu *v)
{
	const struct direct_shared *s = direct.shared;

	vcpu_init(v, s->cpu, s->n_cpus, s->ram_pages, &direct.env);
	/* Flat boot segments are in force until the guest loads a table of its own. */
	env_segment_changed(NULL, VMP_GDT_BOOT_CS,
			    &(struct vcpu_segment){ .limit = UINT32_MAX,
						    .present = true,
						    .big = true,
						    .granular = true,
						    .type = 0xb });
	env_segment_changed(NULL, VMP_GDT_BOOT_DS,
			    &(struct vcpu_segment){ .limit = UINT32_MAX,
						    .present = true,
						    .big = true,
						    .granular = true,
						    .type = 0x3 });
}
