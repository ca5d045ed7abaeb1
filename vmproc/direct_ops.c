/* direct_ops.c - what the loop (engine/engine.h) asks of the direct engine: to sleep, to set the
 * timer, to map pages, to call the monitor, and to prepare what guest code needs.
 */
#include <linux/futex.h>
#include <linux/time.h>
#include <linux/time_types.h>
#include "base/hostshm.h"
#include "engine/halt_poll.h"
#include "vcpu/shadow.h"
#include "vmproc/direct_env.h"
#include "vmproc/host.h"

static enum time_kind op_time_switch(struct cpu_engine *e, enum time_kind to)
{
	(void)e;
	return direct_time_switch(to);
}

/* Call the monitor with all of the CPU's state in shared memory; it, or a debugger through it,
 * may change that state. */
static int64_t show(enum direct_call call, uint64_t what)
{
	int64_t result;

	direct_fpu_out();
	result = direct_call(call, what, 0, 0, 0);
	if (direct.shared->debug.attached)
		direct_fpu_in();
	return result;
}

static void op_serve(struct cpu_engine *e, uint32_t posts)
{
	(void)e;
	show(DIRECT_POSTS, posts);
	/* a snapshot may have been taken meanwhile, which drops mappings */
	spaces_catch_up(&direct.shared->spaces, &direct.space);
}

static bool op_debugger(struct cpu_engine *e, enum debug_why why)
{
	(void)e;
	return show(DIRECT_DEBUG, why);
}

/* The monitor takes what it sets from the virtual CPU. */
static void op_watch(struct cpu_engine *e, const struct debug_watch *watch)
{
	(void)e, (void)watch;
	direct_call(DIRECT_WATCH, 0, 0, 0, 0);
}

static uint32_t op_watch_hits(struct cpu_engine *e)
{
	(void)e;
	return direct_call(DIRECT_WATCH_HITS, 0, 0, 0, 0);
}

static void op_died(struct cpu_engine *e)
{
	(void)e;
	direct_call(DIRECT_DEAD, 0, 0, 0, 0);
}

static uint64_t op_stamp_ns(struct cpu_engine *e)
{
	uint64_t ticks = __builtin_ia32_rdtsc(), khz = direct.shared->host_tsc_khz;

	(void)e;
	return ticks / khz * 1000000 + ticks % khz * 1000000 / khz;
}

static struct __kernel_timespec timespec_of(uint64_t ns)
{
	return (struct __kernel_timespec){ .tv_sec = (long long)(ns / 1000000000),
					   .tv_nsec = (long long)(ns % 1000000000) };
}

static void op_sleep(struct cpu_engine *e, uint32_t wake, uint64_t at_most_ns)
{
	struct __kernel_timespec wait = timespec_of(at_most_ns);

	host_call(__NR_futex, (long)&e->bell->wake, FUTEX_WAIT, wake,
		  at_most_ns == UINT64_MAX ? 0 : (long)&wait, 0, 0);
}

static void op_set_timer(struct cpu_engine *e, uint64_t deadline)
{
	struct __kernel_itimerspec when = { 0 };
	uint64_t at;

	if (deadline != UINT64_MAX) {
		at = direct_when_ns(deadline);
		if (direct_is_bare() || (direct.strict && e->vcpu->cpl == 3))
			at = computing_due_ns(at, apic_timer_ns(&e->vcpu->apic),
					      direct.host_tick_ns);
		when.it_value = timespec_of(at);
	}
	host_call(__NR_timer_settime, direct.timer, 1 /* TIMER_ABSTIME */, (long)&when, 0, 0, 0);
}

void direct_disarm_timer(void)
{
	static const struct __kernel_itimerspec never;

	if (direct.engine.timer_armed_ns == UINT64_MAX)
		return;
	direct.engine.timer_armed_ns = UINT64_MAX;
	host_call(__NR_timer_settime, direct.timer, 0, (long)&never, 0, 0, 0);
}

/* Map pages for an access.  With one host, read the page: the host then maps all present ones of
 * 16 pages at once, not only one that is written to. */
static void op_map(struct cpu_engine *e, gva_t gva, const struct vcpu_walk *walk,
		   enum vcpu_access access)
{
	bool here = e->shadow == &direct.space.shadow;

	if (shadow_map(e->shadow, e->vcpu, gva, walk, access) && here && !e->many_hosts)
		(void)*(const volatile uint8_t *)(uintptr_t)gva;
}

static void op_admit(struct cpu_engine *e, gva_t gva, uint32_t entry, bool write)
{
	(void)e;
	direct_time_switch(TIME_SHARED_MEMORY);
	direct_page_admit(gva, write && entry & SHADOW_WRITE ? PAGE_WRITE : PAGE_READ);
	direct_time_switch(TIME_EMULATION);
}

static bool op_beyond_user_limit(struct cpu_engine *e, gva_t *gva, enum vcpu_access *access)
{
	uint64_t fs, gs;

	__asm__("rdfsbase %0" : "=r"(fs));
	__asm__("rdgsbase %0" : "=r"(gs));
	if (direct.strict && e->vcpu->cpl == 3)
		direct_user_bases(&fs, &gs);
	if (!direct_call(DIRECT_BEYOND_LIMIT, fs, gs, 0, 0))
		return false;
	*gva = (gva_t)direct.shared->arg[0];
	*access = direct.shared->arg[1];
	return true;
}

/* The guest has handled a page fault on the user's half, and the instruction is to run again:
 * map its page before it faults.  No page is marked accessed or dirty, since the instruction may
 * be another one at the same place. (TRICKS: map-before-return) */
static void map_what_faulted(struct cpu_engine *e)
{
	const struct refault *r = &e->refault;
	struct vcpu *v = e->vcpu;
	struct vcpu_walk walk;
	bool used;

	e->refault.wanted = false;
	if (v->eip != r->eip || (v->cpl == 3) != r->user || vcpu_peek(v, r->gva, &walk, &used) ||
	    !used)
		return;
	if ((walk.user || !r->user) && (walk.writable || r->access != ACCESS_WRITE) &&
	    ram_has(e->ram_pages, gpa_to_gfn(walk.gpa)) &&
	    shadow_entry(e->shadow, r->gva) != shadow_entry_of(e->shadow, &walk))
		op_map(e, r->gva, &walk, r->access);
}

static bool op_prepare(struct cpu_engine *e)
{
	struct vcpu *v = e->vcpu;

	/* the cause of a kick is checked after this */
	atomic_store_explicit(&direct_kicked, 0, memory_order_relaxed);
	direct_enter_space(v);
	e->shadow = direct.strict && v->cpl == 3 ? &direct.user.space.shadow : &direct.space.shadow;
	if (e->refault.wanted && (v->cpl == 3 || v->eip == e->refault.eip))
		map_what_faulted(e);
	return true;
}

/* Handling an interrupt may need another space than the interrupted program. */
static bool op_is_prepared(struct cpu_engine *e) { return direct_is_in_place(e->vcpu); }

static const struct engine_ops ops = { ENGINE_OPS(op_) };

void direct_ops_init(void)
{
	direct.engine = (struct cpu_engine){
		.ops = &ops,
		.vcpu = &direct.shared->vcpu,
		.slot = direct.slot,
		.bell = &direct.bells[direct.shared->cpu % MAX_CPUS],
		.poll_most_ns = direct.shared->halt_polls ? HALT_POLL_MOST_NS : 0,
		.shadow = &direct.space.shadow,
		.debug = &direct.shared->debug,
		.ram_pages = direct.shared->ram_pages,
		.many_hosts = direct.shared->many_hosts,
		.timer_armed_ns = UINT64_MAX,
	};
}
