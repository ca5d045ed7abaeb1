/* direct_env.h - the state of the direct engine, and its virtual CPU's struct vcpu_env. */
#ifndef VMPROC_DIRECT_ENV_H
#define VMPROC_DIRECT_ENV_H

#include "base/hostshm.h"
#include "engine/engine.h"
#include "vcpu/shadow.h"
#include "vcpu/window.h"
#include "vmproc/direct.h"

/* --strict: this kernel process's user process (user.h). */
struct direct_user {
	struct space space; /* its mappings */
	struct shadow_host host;
	struct user_desc given[VMP_GDT_ENTRIES]; /* what the host's tables hold there */
	uint32_t given_entries;
	uint32_t calls; /* in the order, not made yet */
	uint32_t serial; /* the order's number */
	_Atomic uint32_t running; /* a kick must reach it */
	uint64_t fs_base, gs_base; /* at its last stop */
	uint64_t xcr0;
	uint32_t mxcsr_mask;
};

struct direct {
	struct direct_shared *shared;
	struct vcpu_slot *slot;
	struct doorbell *bells; /* of all CPUs */
	struct cpu_window *window;
	unsigned number; /* which of the CPU's host address spaces this process is */
	struct space space;
	struct user_desc given[VMP_GDT_ENTRIES]; /* what the host's tables hold here */
	uint32_t given_entries;
	/* a TLS entry differs from the guest's, and must be updated before user code runs */
	bool tls_stale;
	struct shadow_host shadow_host;
	struct vcpu_env env;
	struct cpu_engine engine;
	bool started, loaded, inside;
	bool strict; /* guest programs run in a process of their own: */
	struct direct_user user;
	bool fpu_away; /* FPU and vector registers are in the shared memory */
	uint8_t *fpu; /* in the signal frame; NULL in the gate: they are in the processor */
	int timer;
	uint64_t host_tick_ns; /* in the bare space */
	uint16_t entered_with[SEG_COUNT]; /* segment registers when the guest was stopped */
	enum time_kind time_kind;
	uint64_t time_mark; /* TSC */
};
extern struct direct direct;
extern _Atomic uint32_t direct_kicked; /* a kick arrived while the guest was stopped */

/* direct.c */
long direct_install(void); /* signals, their stack, the timer; before the jail. 0 or -errno */
void direct_run(void) __attribute__((noreturn));
enum time_kind direct_time_switch(enum time_kind to); /* returns the kind that was open */

/* direct_ops.c: what the loop asks of this engine */
void direct_ops_init(void); /* direct.engine */
void direct_disarm_timer(void);

/* direct_space.c: this process's part in passing the CPU from space to space */
void direct_wait_for_cpu(void);
void direct_take_cpu(void); /* in a handler: the CPU arrived from another process */
/* before guest code: pass the CPU to the right process and update its mappings */
void direct_enter_space(struct vcpu *v);
bool direct_is_in_place(const struct vcpu *v); /* it is this one */
/* v is as guest code will find it; before registers go out */
void direct_settle_segments(struct vcpu *v);
void direct_segment_changed(unsigned index, const struct vcpu_segment *s);
/* FPU and vector registers, in the signal frame or in the processor, from and to the shared
 * memory */
void direct_fpu_size(void); /* in the first handler: how many bytes they are */
/* In a handler: they are in this frame.  If a program has locked memory by WRPKRU, which no host
 * can forbid it, that is undone: the next program in this process could not run. */
void direct_fpu_take(uint8_t *frame);
void direct_fpu_out(void);
void direct_fpu_copy(uint8_t *xsave); /* to any place that is aligned to 64 bytes */
void direct_fpu_in(void);

/* direct_bare.c: the host address space for programs that compute */
static inline bool direct_is_bare(void) { return direct.number == DIRECT_BARE_SPACE; }
bool direct_bare_wanted(const struct vcpu *v); /* v is to continue there */
/* v will continue there once the guest kernel returns to its user */
bool direct_bare_awaits(const struct vcpu *v);
/* and has been dealt with; interrupts come later */
void direct_bare_stopped(const struct vcpu *v, bool was_user, bool tick);
/* this process is to be the bare one; before the jail: 0 or -errno */
long direct_bare_set_up(void);
/* allow access to the page below 4 GiB for set_thread_area's argument; otherwise it is
 * inaccessible */
void direct_bare_window(bool open);
struct user_desc direct_bare_descriptor(struct user_desc d);

/* direct_user.c: --strict, the kernel process's part */
void direct_user_init(void);
/* Run the program until it stops.  If what it reports is impossible, v is killed. */
void direct_user_run(struct vcpu *v, struct engine_stop *s);
void direct_user_kick(void); /* in a handler: stop the program, if it runs */
/* Drop outdated mappings before the program runs, as spaces_enter(). */
void direct_user_enter_space(struct vcpu *v);
void direct_user_bases(uint64_t *fs, uint64_t *gs);

/* direct_pages.c: guest RAM, of which other hosts may hold pages */
/* as struct vcpu_env */
__attribute__((visibility("hidden"))) void *direct_pin(void *ctx, gpa_t gpa, bool write);
__attribute__((visibility("hidden"))) void direct_unpin(void *ctx, gpa_t gpa);
__attribute__((visibility("hidden"))) void direct_fetch(void *ctx, gfn_t first, unsigned count,
							bool write);
/* a host mapping was made, here or in the user process */
void direct_pages_mapped(bool user, gva_t gva, uint32_t bytes, gpa_t gpa);
/* give access to a mapped page that the guest touched */
void direct_page_admit(gva_t gva, enum page_right right);
/* Note in the slot where the interrupted guest stands. */
void direct_note_seen(const struct vcpu *v);

bool direct_is_traced(void); /* --trace */

/* Wake the daemon, unless it polls the slots; and what it lets VM processes read. */
void direct_ring(void);
uint32_t direct_mechanisms_off(void);
const struct barrier_table *direct_barriers(void);

/* direct_env.c */
void direct_setup_done(enum direct_setup step);
void direct_env_init(void);
void direct_begin_cpu(struct vcpu *v); /* as at power-on; for the first of its processes */
uint64_t direct_now_ns(void); /* since the machine's start */
uint64_t direct_when_ns(uint64_t machine_ns); /* by the host's CLOCK_MONOTONIC */
/* Call the monitor and wait; returns its result. */
int64_t direct_call(enum direct_call call, uint64_t a, uint64_t b, uint64_t c, uint64_t d);

#endif
