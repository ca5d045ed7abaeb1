/* direct_env.h - the state of the direct engine, and what its virtual CPU asks of the world. */
#ifndef VMPROC_DIRECT_ENV_H
#define VMPROC_DIRECT_ENV_H

#include "base/hostshm.h"
#include "vcpu/shadow.h"
#include "vcpu/window.h"
#include "vmproc/direct.h"

/* The guest serves a page fault on the user's half, of its user or its own; if the same instruction then runs again, it needs
 * this mapping. */
struct refault { bool wanted, user; uint32_t eip; gva_t gva; enum vcpu_access access; };

struct direct {
	struct direct_shared *shared;
	struct vcpu_slot *slot;
	struct cpu_window *window;
	unsigned number; /* which of the CPU's host address spaces this process is */
	struct space space;
	struct user_desc given[VMP_GDT_ENTRIES]; /* what the host's tables hold here */
	uint32_t given_entries;
	bool tls_stale; /* a TLS entry is not as the guest has it: before user code runs it must be */
	struct shadow_host shadow_host;
	struct vcpu_env env;
	bool started, loaded, stepping, inside;
	bool traced; /* the step has been made */
	uint8_t *fpu; /* in the signal frame; NULL in the gate: they stand in the registers */
	struct refault refault;
	int timer;
	uint64_t timer_armed_ns; /* deadline of the host timer, UINT64_MAX: none */
	uint64_t host_tick_ns; /* in the bare space */
	uint16_t entered_with[SEG_COUNT]; /* segment registers when the guest was stopped */
	uint32_t left_eip;	 /* where the guest went on */
	enum time_kind time_kind;
	uint64_t time_mark; /* TSC */
};
extern struct direct direct;

/* direct.c */
long direct_install(void); /* signals, their stack, the timer; before the jail. 0 or -errno */
void direct_run(void) __attribute__((noreturn));
void direct_disarm_timer(void);
enum time_kind direct_time_switch(enum time_kind to); /* returns the kind that was open */

/* direct_space.c: this process's part in passing the CPU from space to space */
void direct_wait_for_cpu(void);
void direct_take_cpu(void); /* in a handler; it has come from another process */
void direct_enter_space(struct vcpu *v); /* guest code is to run next: in the right process, which is up to date */
bool direct_is_in_place(const struct vcpu *v); /* it is this one */
void direct_settle_segments(struct vcpu *v); /* v is as guest code will find it; before registers go out */
void direct_segment_changed(unsigned index, const struct vcpu_segment *s);
/* FPU and vector registers, in the signal frame or in the processor, from and to the shared memory */
void direct_fpu_size(void); /* in the first handler: how many bytes they are */
void direct_fpu_out(void);
void direct_fpu_in(void);

/* direct_bare.c: the host address space for programs that compute */
static inline bool direct_is_bare(void) { return direct.number == DIRECT_BARE_SPACE; }
bool direct_bare_wanted(const struct vcpu *v); /* it is where v is to go on */
bool direct_bare_awaits(const struct vcpu *v); /* it will be, when the guest kernel returns to its user */
void direct_bare_stopped(const struct vcpu *v, bool was_user, bool tick); /* and has been dealt with; interrupts come later */
long direct_bare_set_up(void); /* this process is to be the bare one; before the jail: 0 or -errno */
void direct_bare_window(bool open); /* the page below 4 GiB that set_thread_area's argument needs; else nobody can touch it */
struct user_desc direct_bare_descriptor(struct user_desc d);

/* direct_env.c */
void direct_setup_done(enum direct_setup step);
void direct_env_init(void);
void direct_begin_cpu(struct vcpu *v); /* as at power-on; for the first of its processes */
uint64_t direct_now_ns(void); /* since the machine's start */
uint64_t direct_when_ns(uint64_t machine_ns); /* by the host's CLOCK_MONOTONIC */
/* Ask the monitor, and wait. */
int64_t direct_call(enum direct_call call, uint64_t a, uint64_t b, uint64_t c, uint64_t d);

#endif
