/* engine.h - the loop that runs a virtual CPU, and what each stop of guest code means: the part
 * of both engines that is the same.
 *
 * The direct engine compiles it into the VM process (vmproc/direct.c), the ptrace engine into the
 * monitor (monitor/ptrace_run.c).  An engine enters and leaves guest code in its own way.  It
 * translates each stop into a struct engine_stop, and supplies the rest by struct engine_ops:
 *
 *	engine_until_ready()	posts, timer, sleep, interrupts, until guest code may run
 *	engine_leave()		the last step before the registers go to the host
 *	... guest code runs; the engine copies its registers into the struct vcpu ...
 *	engine_on_stop()	emulate an instruction, raise an exception, map or fetch a page
 *
 * There is no libc here, and no system call.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/hostshm.h"
#include "base/wire.h"
#include "vcpu/shadow.h"
#include "vcpu/vcpu.h"
#include "vcpu/window.h"

/* One instruction for a debugger: it is done when the host's trace trap has come, or EIP has
 * moved. */
struct debug_step { uint32_t wanted, from_eip; };

/* A debugger's requests to this CPU. */
struct engine_debug {
	uint32_t attached; /* an int3 may be the debugger's */
	uint32_t watches;  /* the host's debug registers are the debugger's */
	struct debug_step step;
	/* The guest's own debug registers, as the host was last asked for them.  The debugger's
	 * come first: while `watches` is set, the host does not have the guest's. */
	struct debug_watch guest;
};

/* A page fault on the user's half that the guest is handling, of its user or its kernel.  If the
 * same instruction then runs again, it needs this mapping. */
struct refault { bool wanted, user; uint32_t eip; gva_t gva; enum vcpu_access access; };

/* Why guest code stopped, as the host reports it. */
struct engine_stop {
	int signal;	  /* SIGSYS: a system call that the host did not serve */
	int code;	  /* the signal's si_code */
	uint64_t address; /* SIGSEGV, SIGBUS: the host address that was accessed */
	uint32_t call;	  /* SIGSYS: the number of the system call */
	unsigned vector;  /* the processor's exception; 0: not known, as to a tracer */
	unsigned error;	  /* PF_*; valid if the vector is known */
	uint16_t cs;	  /* the host's selector */
	bool in_guest;	  /* cs is one of the guest's segments */
	bool in_window;	  /* in the window's code; then: */
	struct window_stop at;
};

struct cpu_engine;

/* An engine's operations.  None returns a failure: a failure ends the machine elsewhere. */
struct engine_ops {
	/* Carry out changes of mappings, and pass the CPU to the right host address space.
	 * Returns false if the machine ends. */
	bool (*prepare)(struct cpu_engine *e);
	/* Returns true if no further change has become necessary since prepare(). */
	bool (*is_prepared)(struct cpu_engine *e);
	/* Serve messages (posts: enum slot_post).  The CPU may be saved, moved, or stopped for a
	 * debugger meanwhile. */
	void (*serve)(struct cpu_engine *e, uint32_t posts);
	/* The guest broke a rule, and the machine ends: vcpu.dead is the reason. */
	void (*died)(struct cpu_engine *e);
	/* Stop the CPU for a debugger, and return when it may continue.  WHY_BREAKPOINT: EIP is
	 * behind an int3; false: it is the guest's own.  WHY_WATCH: false: no watchpoint was
	 * triggered, and the CPU was not stopped. */
	bool (*debugger)(struct cpu_engine *e, enum debug_why why);
	/* Ask the host for debug registers like those of the virtual CPU, and record that in
	 * debug->guest. */
	void (*watch)(struct cpu_engine *e, const struct debug_watch *watch);
	/* Return which of the guest's debug registers were triggered: one bit each. */
	uint32_t (*watch_hits)(struct cpu_engine *e);
	/* Close the current stretch of time and open another; returns the kind that was open. */
	enum time_kind (*time_switch)(struct cpu_engine *e, enum time_kind to);
	/* Return a time that only differences are taken of; cheap. */
	uint64_t (*stamp_ns)(struct cpu_engine *e);
	/* Sleep until the doorbell's `wake` is no longer `wake`, at most that long; UINT64_MAX:
	 * without limit.  May return early. */
	void (*sleep)(struct cpu_engine *e, uint32_t wake, uint64_t at_most_ns);
	/* Stop guest code at this time of the machine's clock; UINT64_MAX: never. */
	void (*set_timer)(struct cpu_engine *e, uint64_t deadline_ns);
	/* Map a guest page of RAM for an access. */
	void (*map)(struct cpu_engine *e, gva_t gva, const struct vcpu_walk *walk,
		    enum vcpu_access access);
	/* Fetch a mapped page that this host does not hold; entry: its shadow entry. */
	void (*admit)(struct cpu_engine *e, gva_t gva, uint32_t entry, bool write);
	/* Returns true if user code accessed memory beyond its segment, with address and access. */
	bool (*beyond_user_limit)(struct cpu_engine *e, gva_t *gva, enum vcpu_access *access);
	/* For stops whose vector is 0: decode the missing facts from the instruction.  NULL for an
	 * engine that knows all vectors.  guess_access: after a SIGSEGV with an address;
	 * guess_write: after a SIGBUS with an address; guess_vector: 0 if no trap explains it. */
	enum vcpu_access (*guess_access)(struct cpu_engine *e, gva_t gva);
	bool (*guess_write)(struct cpu_engine *e, gva_t gva);
	unsigned (*guess_vector)(struct cpu_engine *e, int signal);
};

/* Initializers: functions of these names, behind a prefix.  ENGINE_GUESSES is for an engine that
 * does not know all vectors. */
#define ENGINE_OPS(prefix) \
	.prepare = prefix##prepare, .is_prepared = prefix##is_prepared, \
	.serve = prefix##serve, .died = prefix##died, \
	.debugger = prefix##debugger, .watch = prefix##watch, \
	.watch_hits = prefix##watch_hits, .time_switch = prefix##time_switch, \
	.stamp_ns = prefix##stamp_ns, .sleep = prefix##sleep, .set_timer = prefix##set_timer, \
	.map = prefix##map, .admit = prefix##admit, \
	.beyond_user_limit = prefix##beyond_user_limit,
#define ENGINE_GUESSES(prefix) \
	.guess_access = prefix##guess_access, .guess_write = prefix##guess_write, \
	.guess_vector = prefix##guess_vector,

struct cpu_engine {
	const struct engine_ops *ops;
	struct vcpu *vcpu;
	struct vcpu_slot *slot;
	struct doorbell *bell;
	struct shadow *shadow;
	const struct engine_debug *debug;
	uint32_t ram_pages;
	bool many_hosts;
	bool stepping;	    /* one instruction runs, by the host's trap flag */
	bool traced;	    /* a debugger's step has been made */
	uint32_t left_eip;  /* EIP when guest code was last entered */
	/* halt_poll.h: how long to poll at the next halt, and at most; 0: never */
	uint32_t poll_ns, poll_most_ns;
	struct refault refault;
	/* deadline of the host's timer, UINT64_MAX: none, as after its signal */
	volatile uint64_t timer_armed_ns;
};

/* --- the loop (loop.c) ------------------------------------------------------------------------ */

/* Returns true when guest code may run: the doorbell's state is SLOT_RUNNING.  Returns false if the
 * machine ends. */
bool engine_until_ready(struct cpu_engine *e);
/* Set the host's timer, and e->stepping.  After this only the registers go out. */
void engine_leave(struct cpu_engine *e);
/* Move posted interrupts into the local APIC, and take an NMI and a start.  Returns the posts but
 * POST_NMI. */
uint32_t engine_take_posts(struct cpu_engine *e);
/* Raise the timer's interrupt if it is due. */
void engine_tick(struct cpu_engine *e);
/* Pure: what the host's debug registers must hold for the guest's.  Breakpoints on ports are left
 * out: the host has none. */
struct debug_watch engine_guest_watch(const struct vcpu *v);
/* Sleep for a moment, since another CPU has not done what this one waits for. */
void engine_nap(struct cpu_engine *e);
/* Sleep at most that long, unless the doorbell's `wake` is no longer `wake`, a post waits or the
 * timer is due.  Returns false if a post waits or the timer is due. */
bool engine_doze(struct cpu_engine *e, uint32_t wake, uint64_t at_most_ns);

/* --- traps (traps.c) -------------------------------------------------------------------------- */

/* Guest code has stopped, and its registers are in the struct vcpu. */
void engine_on_stop(struct cpu_engine *e, const struct engine_stop *s);
/* The same for code of the window that has called the engine. */
void engine_on_call(struct cpu_engine *e, const struct window_stop *at);

/* Count a trap.  The engine alone writes these counters. */
static inline void engine_count(struct cpu_engine *e, enum trap_kind kind)
{
	_Atomic uint64_t *counter = &e->slot->traps[kind];

	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

#endif
