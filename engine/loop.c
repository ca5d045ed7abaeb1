/* loop.c - from one stretch of guest code to the next: what must happen before guest code may
 * run. */
#include "engine/engine.h"
#include "engine/halt_poll.h"

/* --- posts and time --------------------------------------------------------------------------- */

static bool posts_waiting(struct cpu_engine *e)
{
	for (unsigned word = 0; word < ARRAY_LEN(e->bell->irr); word++)
		if (atomic_load(&e->bell->irr[word]))
			return true;
	return atomic_load(&e->slot->post);
}

uint32_t engine_take_posts(struct cpu_engine *e)
{
	uint32_t posts;

	for (unsigned word = 0; word < ARRAY_LEN(e->bell->irr); word++) {
		uint32_t bits;

		if (!atomic_load_explicit(&e->bell->irr[word], memory_order_relaxed))
			continue;
		for (bits = atomic_exchange(&e->bell->irr[word], 0); bits; bits &= bits - 1)
			apic_post(&e->vcpu->apic, word * 32 + __builtin_ctz(bits));
	}
	if (!atomic_load_explicit(&e->slot->post, memory_order_relaxed))
		return 0;
	posts = atomic_exchange(&e->slot->post, 0);
	if (posts & POST_NMI)
		e->vcpu->nmi_pending = true;
	if (posts & POST_START)
		vcpu_want_start(e->vcpu, atomic_load(&e->slot->start_eip));
	return posts & ~(uint32_t)POST_NMI;
}

/* Returns true if posts were served: the slot's state may have changed. */
static bool collect_posts(struct cpu_engine *e)
{
	uint32_t posts = engine_take_posts(e);

	if (posts & ~(uint32_t)POST_START)
		e->ops->serve(e, posts & ~(uint32_t)POST_START);
	return posts;
}

static uint64_t now_ns(const struct cpu_engine *e)
{
	return e->vcpu->env->now_ns(e->vcpu->env->ctx);
}

void engine_tick(struct cpu_engine *e)
{
	if (apic_deadline(&e->vcpu->apic) != UINT64_MAX)
		apic_tick(&e->vcpu->apic, now_ns(e));
}

static void arm_timer(struct cpu_engine *e)
{
	uint64_t deadline = apic_deadline(&e->vcpu->apic);

	if (deadline == e->timer_armed_ns)
		return;
	e->timer_armed_ns = deadline;
	e->ops->set_timer(e, deadline);
}

/* Returns how long it is to the timer; UINT64_MAX: it is not set. */
static uint64_t timer_due_in_ns(const struct cpu_engine *e)
{
	uint64_t deadline = apic_deadline(&e->vcpu->apic), now;

	if (deadline == UINT64_MAX)
		return UINT64_MAX;
	now = now_ns(e);
	return deadline > now ? deadline - now : 0;
}

/* Wait for a kick without sleeping, as long as that pays. (TRICKS: poll-before-sleep) */
static void poll_once(struct cpu_engine *e, uint32_t wake)
{
	uint64_t begin = e->ops->stamp_ns(e), due = timer_due_in_ns(e),
		 most = due < e->poll_ns ? due : e->poll_ns;

	atomic_store(&e->bell->state, SLOT_POLLING);
	if (posts_waiting(e))
		return;
	while (atomic_load(&e->bell->wake) == wake && e->ops->stamp_ns(e) - begin < most)
		__builtin_ia32_pause();
}

/* Sleep once, unless a post waits or the timer is due. */
static void sleep_once(struct cpu_engine *e)
{
	uint32_t wake = atomic_load(&e->bell->wake);
	uint64_t due;

	if (e->poll_ns)
		poll_once(e, wake);
	atomic_store(&e->bell->state, SLOT_HALTED);
	atomic_store_explicit(&e->slot->halted_for_good, vcpu_halted_for_good(e->vcpu),
			      memory_order_relaxed);
	if (!posts_waiting(e) && (due = timer_due_in_ns(e)))
		e->ops->sleep(e, wake, due);
	atomic_store_explicit(&e->slot->halted_for_good, 0, memory_order_relaxed);
	atomic_store(&e->bell->state, SLOT_MONITOR);
}

/* The CPU is halted: sleep until an interrupt wakes it, or posts have been served. */
static void sleep_halted(struct cpu_engine *e)
{
	enum time_kind before = e->ops->time_switch(e, TIME_IDLE);
	uint64_t begin = e->poll_most_ns ? e->ops->stamp_ns(e) : 0;
	bool served = false;

	while (!served && !vcpu_wakes(e->vcpu)) {
		sleep_once(e);
		served = collect_posts(e);
		engine_tick(e);
	}
	if (e->poll_most_ns)
		e->poll_ns = halt_poll_next(e->poll_ns, e->ops->stamp_ns(e) - begin,
					    e->poll_most_ns);
	if (vcpu_wakes(e->vcpu))
		vcpu_wake(e->vcpu);
	e->ops->time_switch(e, before);
}

void engine_nap(struct cpu_engine *e)
{
	enum { NAP_NS = 50000 };

	atomic_store(&e->bell->state, SLOT_HALTED);
	e->ops->sleep(e, atomic_load(&e->bell->wake), NAP_NS);
	atomic_store(&e->bell->state, SLOT_MONITOR);
}

bool engine_doze(struct cpu_engine *e, uint32_t wake, uint64_t at_most_ns)
{
	uint64_t deadline = apic_deadline(&e->vcpu->apic),
		 now = deadline == UINT64_MAX ? 0 : now_ns(e);
	bool due;

	atomic_store(&e->bell->state, SLOT_HALTED);
	due = posts_waiting(e) || deadline <= now;
	if (!due)
		e->ops->sleep(e, wake, deadline - now < at_most_ns ? deadline - now : at_most_ns);
	atomic_store(&e->bell->state, SLOT_MONITOR);
	return !due;
}

/* --- the guest's debug registers -------------------------------------------------------------- */

struct debug_watch engine_guest_watch(const struct vcpu *v)
{
	enum { ON_PORT = 2 };
	struct debug_watch watch = { { 0 }, 0 };

	for (unsigned i = 0; i < DEBUG_WATCHES; i++) {
		unsigned kind = v->dr[7] >> (16 + 4 * i) & 15;

		if (!(v->dr[7] >> 2 * i & 3) || (kind & 3) == ON_PORT)
			continue;
		watch.address[i] = v->dr[i];
		watch.control |= 1u << 2 * i | kind << (16 + 4 * i);
	}
	return watch;
}

/* A guest changes its debug registers when it switches to a program that is being debugged, and
 * back.  Most guests never do. (TRICKS: guest-watch) */
static void settle_watch(struct cpu_engine *e)
{
	enum { ENABLED = 0xff };
	const struct debug_watch *has = &e->debug->guest;
	struct debug_watch wanted;

	if (!((e->vcpu->dr[7] | has->control) & ENABLED))
		return;
	wanted = engine_guest_watch(e->vcpu);
	if (__builtin_memcmp(&wanted, has, sizeof wanted))
		e->ops->watch(e, &wanted);
}

/* --- before guest code ------------------------------------------------------------------------ */

/* True if one instruction is to be stepped: for a debugger, or because an interrupt waits for
 * the end of the shadow. (TRICKS: sti-shadow) */
static bool wants_step(const struct cpu_engine *e)
{
	return e->debug->step.wanted || (e->vcpu->interrupt_shadow && vcpu_wakes(e->vcpu));
}

static bool step_is_made(const struct cpu_engine *e)
{
	const struct debug_step *step = &e->debug->step;

	return step->wanted && (e->traced || e->vcpu->eip != step->from_eip);
}

/* Deliver an interrupt.  During a debugger's step only an interrupt that wakes a halted CPU is
 * delivered, and the window's iret, which would restart again and again, is emulated.  False:
 * check again. (TRICKS: step-without-interrupt) */
static bool can_run(struct cpu_engine *e, bool woken)
{
	struct vcpu *v = e->vcpu;
	const struct debug_step *step = &e->debug->step;

	if (wants_step(e))
		vcpu_step_by_hand(v);
	if (!step->wanted || woken)
		vcpu_deliver_interrupt(v);
	else if (window_holds(v->eip))
		vcpu_iret(v);
	return !v->halted && !v->dead && !(step->wanted && v->eip != step->from_eip);
}

/* One attempt of engine_until_ready(). (TRICKS: kick-is-a-hint) */
static bool is_ready(struct cpu_engine *e)
{
	struct vcpu *v = e->vcpu;
	bool woken = v->halted;

	if (v->halted)
		sleep_halted(e);
	/* From here on a kick is a signal, which arrives as soon as guest code runs.
	 * (TRICKS: one-kick) */
	atomic_store(&e->slot->kicked, 0);
	atomic_store(&e->bell->state, SLOT_RUNNING);
	if (collect_posts(e))
		return false;
	/* If the host's timer is set to the deadline, its signal arrives as soon as guest code
	 * runs. */
	if (apic_deadline(&v->apic) != e->timer_armed_ns)
		engine_tick(e);
	return can_run(e, woken) && e->ops->is_prepared(e);
}

/* Start the CPU again if another one asks for that, and it has halted for good. */
static void settle_start(struct cpu_engine *e)
{
	if (vcpu_settle_start(e->vcpu))
		e->refault.wanted = false;
}

bool engine_until_ready(struct cpu_engine *e)
{
	for (;;) {
		if (e->vcpu->dead)
			e->ops->died(e);
		settle_start(e);
		if (step_is_made(e))
			e->ops->debugger(e, WHY_STEP);
		e->traced = false;
		settle_watch(e);
		/* First: the mapping stub may swallow a kick, so posts are read after it. */
		if (!e->ops->prepare(e))
			return false;
		if (is_ready(e))
			return true;
		atomic_store(&e->bell->state, SLOT_MONITOR);
	}
}

void engine_leave(struct cpu_engine *e)
{
	arm_timer(e);
	e->stepping = wants_step(e);
	e->left_eip = e->vcpu->eip;
	atomic_store_explicit(&e->slot->granted, 0, memory_order_relaxed);
}
