/* monitor.h - a monitor process: one per virtual CPU, paired with the VM process that runs guest code; on the ptrace engine it
 * runs the virtual CPU, on the direct engine (vmproc/direct.h) it serves the VM processes, which do.
 *
 * Reading order: monitor.c (a monitor's life), ptrace_run.c (the trap loop of the ptrace engine), process.c (the VM process under
 * ptrace), direct_serve.c (the direct engine's VM processes and their calls), pages.c (host mappings that follow the guest's page
 * tables), guestmem.c (pins: touching RAM that other hosts may want), insn.c (what an ordinary instruction touches), env.c
 * (what the virtual CPU asks of the world), channel.c (messages with the node daemon), cpu_freeze.c (standing still for a
 * snapshot), cpu_debug.c (and for a debugger), cpu_handover.c (to and from other hosts), cpu_state.h (a CPU as bytes), fpstate.h (its FPU
 * and vector registers).
 *
 * Rules of use:
 *  - A monitor is one thread. Whenever its code runs, its VM process stands still: stopped, or waiting for its call's end.
 *  - On the ptrace engine m->vcpu holds the guest's registers from one stop to the next (process_enter()); on the direct
 *    engine struct direct_shared does, and m->vcpu is a checked copy for the length of a call.
 *  - Host mappings change only through vcpu/shadow.c. On the ptrace engine pages.c queues its system calls for the stub;
 *    they take effect before guest code runs again (process_stub_flush()).
 */
#ifndef MONITOR_MONITOR_H
#define MONITOR_MONITOR_H

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>
#undef PAGE_MASK /* <sys/user.h> has another one */
#undef PAGE_SIZE
#include "base/hostshm.h"
#include "base/types.h"
#include "base/dispatch.h"
#include "base/wire.h"
#include "monitor/cpu_state.h"
#include "vcpu/shadow.h"
#include "vcpu/vcpu.h"
#include "vcpu/window.h"
#include "vmproc/direct.h"
#include "vmproc/vmproc.h"

/* Why the VM process stopped. */
struct stop {
	enum { STOP_SIGNAL, STOP_SECCOMP, STOP_DIED } kind;
	int signal;	/* STOP_SIGNAL: its number; STOP_DIED: what killed it, 0 if it exited */
	siginfo_t info; /* STOP_SIGNAL */
	bool in_window;	/* it stopped in the window's code page; where the guest is now: */
	enum window_place place;
};

struct vm_process {
	pid_t pid; /* direct engine: the one that has the CPU, as its userfault_fd */
	struct { pid_t pid; int userfault_fd; } space[MAX_SPACES]; /* direct engine: all there are; pid 0: none */
	int stub_fd;		 /* the memory of: */
	struct stub_page *stub;	 /* shared with the VM process: never trust what is read from it */
	struct cpu_window *window; /* likewise */
	uint64_t stub_entry;	 /* copied before guest code ran */
	unsigned queued;	 /* operations in op, and in stub->op */
	struct stub_op op[STUB_OPS]; /* as they were asked for: those in the stub page the VM process can write */
	uint64_t signals_ignored; /* bit n - 1: of signal n the log has heard */
	int userfault_fd;	 /* -1: one host, no page protocol */
	bool cpuid_faulting;
	struct user_regs_struct regs;
	struct user_desc descriptor[VMP_GDT_ENTRIES]; /* as last given to the host */
};

/* A CPU on the wire: its state, then the counters of its slot. */
struct cpu_counters { uint64_t traps[TRAP_KIND_COUNT], time_ns[TIME_KIND_COUNT], fetch_us8[FETCH_BUCKETS]; };
enum { CPU_PAYLOAD_BYTES = CPU_STATE_MAX_BYTES + sizeof(struct cpu_counters) };

/* This CPU on its way to or from another host (cpu_handover.c). */
struct handover {
	bool give_wanted, frozen;
	struct msg_cpu_state arrived; /* state_bytes 0: nothing */
	size_t payload_bytes;
	uint8_t payload[CPU_PAYLOAD_BYTES];
};

/* This CPU and a debugger (cpu_debug.c). */
struct debug {
	bool attached;	  /* an int3 may be the debugger's */
	bool stop_wanted; /* stand still at the next instruction boundary, and */
	bool standing;	  /* it has been told so */
	bool pass;	  /* the int3 is the guest's own */
	struct debug_step step;
	struct debug_watch watch; /* as the VM processes have it */
	gva_t watched;		  /* what was touched of it */
};

struct monitor {
	struct vcpu vcpu;
	struct vcpu_env env;
	unsigned cpu;
	struct host_shm *shm;
	struct vcpu_slot *slot;
	uint8_t *ram; /* the alias: all of guest RAM; touch only pinned pages */
	int ram_fd, cpus_fd, channel;
	struct vm_process vm;
	struct shadow shadow;
	struct shadow_host shadow_host;
	bool many_hosts;
	bool strict; /* guest users run without the guest kernel's pages, and change level through the monitor alone */
	bool state_came; /* state_load() has read one */
	bool direct_engine, direct_loaded; /* direct_loaded: a CPU's state has come */
	uint8_t direct_fpu[FPSTATE_MAX_BYTES]; /* and its FPU's */
	size_t direct_fpu_bytes;
	struct direct_shared *direct; /* shared with the VM process: never trust what is read from it */
	volatile sig_atomic_t child_changed; /* direct_serve.c: a VM process has died, or was stopped */
	bool dump_wanted, ending;
	bool started;		/* the CPU has left the wait for its start */
	bool freeze_wanted, frozen; /* cpu_freeze.c */
	struct handover handover;
	struct debug debug;
	uint32_t dump_seq;
	uint32_t io_seq;
	timer_t timer;
	uint64_t timer_armed_ns; /* deadline of the host timer, UINT64_MAX: none */
	enum time_kind time_kind; /* what the current stretch of time counts as */
	uint64_t time_mark_ns;
};

static inline void count_trap(struct monitor *m, enum trap_kind kind)
{
	atomic_fetch_add_explicit(&m->slot->traps[kind], 1, memory_order_relaxed);
}

/* Close the current stretch of time and open one of another kind; returns the kind that was open. */
enum time_kind time_switch(struct monitor *m, enum time_kind to);
uint64_t monotonic_ns(void);

/* monitor.c */
void wait_for_start(struct monitor *m);
void process_announce(struct monitor *m); /* this CPU can be started */

/* ptrace_run.c: run the virtual CPU until the machine ends. */
void run_guest(struct monitor *m);
void collect_posts(struct monitor *m); /* take in what was posted to this CPU, and its own timer */
void monitor_end(struct monitor *m, enum end_reason reason, unsigned status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

void report_death(struct monitor *m); /* the guest did what no guest may */
void serve_posts(struct monitor *m, uint32_t posts); /* enum slot_post bits that were set, but for POST_START */
void give_away(struct monitor *m); /* handover.give_wanted, at an instruction boundary: returns if the CPU stays */

/* direct_serve.c: start the direct engine in a VM process, and serve it until the machine ends. */
void direct_run(struct monitor *m);

/* process.c */
void process_prepare(struct monitor *m);  /* what it will share with its VM processes */
pid_t process_spawn(struct monitor *m, unsigned space);	  /* a VM process, or -errno */
void process_start(struct monitor *m);	  /* the ptrace engine's: both, and up to where it is in its jail */
/* FPU and vector registers, as fpstate.h's. A direct engine's are loaded when it asks for them. */
int process_fpu_save(struct monitor *m, uint8_t *to);
int process_fpu_load(struct monitor *m, const uint8_t *from, size_t bytes, char *why, size_t why_bytes);
int process_fpu_change(struct monitor *m, const uint8_t *from, size_t bytes); /* of a CPU that stands: 0, or -errno */
void process_fetch_userfaultfd(struct monitor *m); /* vm.pid's, if there are several hosts, into vm.userfault_fd */
void process_signal_ignored(struct monitor *m, int signal, pid_t sender); /* says so, once for each; sender 0: not known */
void process_enter(struct monitor *m, struct stop *why, bool single_step); /* guest runs until `why`; registers both ways */
void process_stub_queue(struct monitor *m, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
			uint64_t f);
bool process_stub_flush(struct monitor *m); /* true: something ran (and a kick may have been swallowed) */
void process_set_segment(struct monitor *m, unsigned index, const struct vcpu_segment *segment);

/* pages.c */
void pages_init(struct monitor *m);
/* Whatever the VM processes have mapped, they cannot write to without asking. The guest stands still. */
void pages_protect(struct monitor *m);
/* The VM process has made this mapping; entry: of its first page and those behind it, as in struct shadow. */
void pages_mapped(struct monitor *m, gva_t gva, uint32_t bytes, const uint32_t *entry);
/* A touch of a mapped page that this host does not hold (SIGBUS by userfaultfd): get it, with the right to write if
 * `write`, and let the VM process at it. */
void pages_admit(struct monitor *m, gva_t gva, uint32_t entry, bool write);

/* guestmem.c */
void *guestmem_pin(struct monitor *m, gfn_t gfn, enum page_right right); /* waits until this host has the right */
void *guestmem_try_pin(struct monitor *m, gfn_t gfn, enum page_right right); /* NULL: the right is not here */
void guestmem_unpin(struct monitor *m, gfn_t gfn);
void guestmem_ask(struct monitor *m, gfn_t gfn, enum page_right right); /* wait until the daemon has had it */

/* insn.c: what the instruction at EIP does to memory */
bool insn_writes(struct monitor *m, gva_t gva); /* does it write at linear address gva? (false when in doubt) */
/* The first linear address beyond VMP_USER_LIMIT that it touches. */
bool insn_beyond_user_limit(struct monitor *m, gva_t *gva, enum vcpu_access *access);
bool insn_is_sse(struct monitor *m);
bool insn_is_bound(struct monitor *m); /* one whose operand can be read */
bool insn_was_into(struct monitor *m); /* the one before EIP, it would trap, and what stands at EIP cannot */

void send_dump(struct monitor *m);

/* cpu_handover.c */
void handover_give(struct monitor *m); /* returns when nobody took it: the CPU goes on here */
void handover_take(struct monitor *m); /* what has arrived is this CPU */

/* env.c */
void env_init(struct monitor *m);

/* channel.c */
void channel_send(struct monitor *m, enum msg_type type, vnode_t to, const void *body, size_t body_bytes,
		  const void *payload, size_t payload_bytes);
/* Wait for a message of this type (for IO_REPLY: of our last request); others are served on the way. */
void channel_wait(struct monitor *m, enum msg_type type, void *body, size_t body_bytes, void *payload,
		  size_t payload_room, size_t *payload_bytes);
void channel_drain(struct monitor *m); /* serve what has arrived, without waiting */
void channel_serve(struct monitor *m); /* wait for one message and serve it */
/* The functions that serve what nobody waits for, as base/msg.def says. */
#define NODE_TO_MONITOR(name, how, handler) HANDLER_##how(struct monitor *monitor, name, handler)
#include "base/msg.def"

/* cpu_freeze.c: a CPU that stands still while the machine is saved or loaded */
void freeze_guest(struct monitor *m); /* freeze_wanted, at an instruction boundary: returns when the machine goes on */
void freeze_until_thaw(struct monitor *m);

/* cpu_debug.c */
void debug_stand(struct monitor *m, enum debug_why why); /* at an instruction boundary: returns when the CPU is let go */
/* The CPU has met an int3, with EIP behind it, and a debugger is attached. False: it is the guest's own. True: whatever there
 * was to do has been done, EIP is where the guest goes on. */
bool debug_breakpoint(struct monitor *m);
/* The host has reported a step, or what is watched, behind the instruction. True: it was the latter, and the CPU has stood. */
bool debug_watchpoint(struct monitor *m);

/* watch.c */
int watch_set(struct monitor *m, const struct debug_watch *watch); /* the CPU stands: 0; or -errno, and nothing is watched */
int watch_start(struct monitor *m, pid_t pid); /* a VM process that was not there: 0 or -errno */
bool watch_hit(struct monitor *m); /* the VM process that has the CPU has touched debug.watched */

#endif
