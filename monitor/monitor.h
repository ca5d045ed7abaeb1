/* monitor.h - a monitor process: one per virtual CPU, paired with the VM process that runs guest
 * code; on the ptrace engine it runs the virtual CPU, on the direct engine (vmproc/direct.h) it
 * serves the VM processes, which do.
 *
 * Reading order: monitor.c (a monitor's life), engine/loop.c (the loop of both engines),
 * ptrace_run.c (what the ptrace engine does in it), process.c (the VM process under ptrace),
 * process_fpu.c (its FPU), direct_serve.c (the direct engine's VM processes and their calls),
 * unheard.c (and those that do not call), pages.c (host mappings that
 * follow the guest's page tables), guestmem.c (pins: touching RAM that other hosts may want),
 * insn.c (what an ordinary instruction touches), env.c (what the virtual CPU asks of the world),
 * rings.c (virtio), channel.c (messages with the node daemon), cpu_freeze.c (standing still for a
 * snapshot), cpu_debug.c (and for a debugger), cpu_handover.c (to and from other hosts),
 * cpu_state.h (a CPU as bytes), fpstate.h (its FPU and vector registers).
 *
 * Rules of use:
 *  - A monitor is one thread.  While its code runs, its VM process does not: that is stopped, or
 *    waits for its call to return.
 *  - On the ptrace engine m->vcpu holds the guest's registers from one stop to the next
 *    (process_enter()).  On the direct engine struct direct_shared holds them, and m->vcpu is a
 *    checked copy for the length of a call.
 *  - Host mappings change only through vcpu/shadow.c.  On the ptrace engine pages.c queues its
 *    system calls for the stub; they take effect before guest code runs again
 *    (process_stub_flush()).
 */
#ifndef MONITOR_MONITOR_H
#define MONITOR_MONITOR_H

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>
#undef PAGE_MASK /* <sys/user.h> has another one */
#undef PAGE_SIZE
#include "base/clock.h"
#include "base/hostshm.h"
#include "base/types.h"
#include "base/dispatch.h"
#include "base/wire.h"
#include "engine/engine.h"
#include "monitor/cpu_state.h"
#include "vcpu/ahead.h"
#include "vcpu/shadow.h"
#include "vcpu/vcpu.h"
#include "vcpu/window.h"
#include "vmproc/direct.h"
#include "vmproc/vmproc.h"

/* --strict on the direct engine: between a kernel process and its user process (vmproc/user.h),
 * while they are started. */
struct user_pipes { int order[2], report[2], pidfd, userfault_fd; };

struct vm_process {
	/* on the direct engine pid and userfault_fd are those of the process that has the CPU */
	pid_t pid;
	/* direct engine: one for each host address space; pid 0: none */
	struct { pid_t pid; int userfault_fd; } space[MAX_SPACES];
	struct { pid_t pid; int userfault_fd; } user[MAX_SPACES]; /* --strict: for each of them */
	struct user_pipes pipes;
	int stub_fd;		 /* the memory of: */
	struct stub_page *stub;	 /* shared with the VM process: never trust what is read from it */
	struct cpu_window *window; /* likewise */
	uint64_t stub_entry;	 /* copied before guest code ran */
	unsigned queued;	 /* operations in op, and in stub->op */
	struct stub_op op[STUB_OPS]; /* the monitor's own copy: the VM process can write stub->op */
	uint64_t signals_ignored; /* bit n - 1: signal n has been logged */
	int userfault_fd;	 /* -1: one host, no page protocol */
	bool cpuid_faulting;
	struct user_regs_struct regs;
	struct user_desc descriptor[VMP_GDT_ENTRIES]; /* as last given to the host */
};

/* A CPU on the wire: its state, then the counters of its slot. */
struct cpu_counters {
	uint64_t traps[TRAP_KIND_COUNT], time_ns[TIME_KIND_COUNT], fetch_us8[FETCH_BUCKETS];
};
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
	struct engine_debug told; /* for the engine; struct direct_shared has a copy */
	bool stop_wanted; /* stop at the next instruction boundary */
	bool standing;	  /* stopped, and the debugger has been notified */
	bool pass;	  /* the int3 is the guest's own */
	struct debug_watch watch; /* as set in the VM processes' debug registers */
	gva_t watched;		  /* the watched address that was accessed */
};

struct monitor {
	struct vcpu vcpu;
	struct cpu_engine engine; /* the ptrace engine's; on the direct engine it takes the posts
				     and ticks that arrive while the monitor serves a call */
	struct vcpu_env env;
	unsigned cpu;
	struct host_shm *shm;
	struct vcpu_slot *slot;
	struct doorbell *bell;
	uint8_t *ram; /* the alias: all of guest RAM; touch only pinned pages */
	int ram_fd, cpus_fd, bell_fd, channel;
	struct vm_process vm;
	struct shadow shadow;
	struct shadow_host shadow_host;
	struct miss_history misses; /* predicts the next page misses */
	struct ahead frames_ahead[PAGE_WRITE + 1]; /* the same for frames used without an address */
	bool many_hosts, halt_polls /* direct engine: halted CPUs may poll */;
	/* guest users run without the guest kernel's pages; only the monitor changes the level */
	bool strict;
	bool state_came; /* state_load() has read a state */
	bool direct_engine, direct_loaded; /* direct_loaded: a CPU's state has arrived */
	uint8_t direct_fpu[FPSTATE_MAX_BYTES]; /* the FPU state that arrived with it */
	size_t direct_fpu_bytes;
	/* shared with the VM process: never trust what is read from it */
	struct direct_shared *direct;
	volatile sig_atomic_t child_changed; /* direct_serve.c: a VM process died or stopped */
	bool dump_wanted, ending;
	struct msg_frame frame[4]; /* pages to be read for `vmp pages`, not served yet */
	unsigned frames;
	bool started;		/* the CPU has left the wait for its start */
	bool freeze_wanted, frozen; /* cpu_freeze.c */
	struct handover handover;
	struct debug debug;
	/* unheard.c: the last look, the VM processes' time then, and how many looks counted */
	struct { uint64_t looked_ns, used_ns; unsigned looks; } unheard;
	uint32_t dump_seq;
	uint32_t io_seq;
	timer_t timer;
	enum time_kind time_kind; /* the account to which time since time_mark_ns is charged */
	uint64_t time_mark_ns;
};

/* Close the current stretch of time and open one of another kind; returns the kind that was
 * open. */
enum time_kind time_switch(struct monitor *m, enum time_kind to);

/* monitor.c */
void monitor_wait_for_start(struct monitor *m);
void monitor_announce(struct monitor *m); /* tell the daemon that this CPU can be started */
/* Sleep until *word is no longer `value`, or a second has passed, or a signal arrives.  After a
 * second the daemon is told if another CPU alone can wake this one. */
void monitor_sleep(struct monitor *m, _Atomic uint32_t *word, uint32_t value);

/* unheard.c: end the machine if hostile code has let no message through for half a minute. */
void unheard_look(struct monitor *m);

/* ptrace_run.c: run the virtual CPU until the machine ends. */
void ptrace_run_prepare(struct monitor *m);
void run_guest(struct monitor *m);
/* At an instruction boundary: stop for a snapshot, a move or a debugger, until the CPU may go
 * on. */
void stand_still(struct monitor *m);
void collect_posts(struct monitor *m); /* process all posts to this CPU, and its timer */
/* End the machine.  The first caller's reason is reported, later ones are ignored. */
void monitor_end(struct monitor *m, enum end_reason reason, unsigned status, const char *format,
		 ...) __attribute__((format(printf, 4, 5)));

void report_death(struct monitor *m); /* vcpu.dead is set: report it and end the machine */
/* posts: the enum slot_post bits that were set; POST_START does nothing here */
void serve_posts(struct monitor *m, uint32_t posts);
/* At an instruction boundary, handover.give_wanted is set: returns if the CPU stays here. */
void give_away(struct monitor *m);

/* direct_serve.c: start the direct engine in a VM process, and serve it until the machine ends. */
void direct_run(struct monitor *m);

/* process.c */
void process_prepare(struct monitor *m); /* make the memory shared with the VM processes */
/* Start a VM process.  Returns its process id, or -errno. */
pid_t process_spawn(struct monitor *m, unsigned space, enum vmproc_strict strict);
/* For the ptrace engine: prepare and spawn; returns when the VM process is in its jail. */
void process_start(struct monitor *m);
/* FPU and vector registers, in the format of fpstate.h.  The direct engine's VM process loads them
 * itself, by DIRECT_LOAD_FPU. */
int process_fpu_save(struct monitor *m, uint8_t *to);
int process_fpu_load(struct monitor *m, const uint8_t *from, size_t bytes, char *why,
		     size_t why_bytes);
/* Change them while the CPU is stopped: 0, or -errno. */
int process_fpu_change(struct monitor *m, const uint8_t *from, size_t bytes);
/* An error that a VM process reports, and that other VM processes of its CPU may have written: 0,
 * or -errno. */
int process_claimed_error(int32_t claimed);
/* With several hosts: set vm.userfault_fd to a copy of process vm.pid's userfaultfd. */
void process_fetch_userfaultfd(struct monitor *m);
/* Log, once for each signal, that it is ignored.  sender 0: not known. */
void process_signal_ignored(struct monitor *m, int signal, pid_t sender);
/* Run guest code until it stops.  False: signal stop->signal has killed the VM process. */
bool process_enter(struct monitor *m, struct engine_stop *stop);
void process_stub_queue(struct monitor *m, long number, uint64_t a, uint64_t b, uint64_t c,
			uint64_t d, uint64_t e, uint64_t f);
/* Run the queued calls.  True: calls were made, and a kick may have been lost meanwhile. */
bool process_stub_flush(struct monitor *m);
void process_set_segment(struct monitor *m, unsigned index, const struct vcpu_segment *segment);

/* pages.c */
void pages_init(struct monitor *m);
/* While the guest is stopped: write-protect all mappings of the VM processes. */
void pages_protect(struct monitor *m);
/* The VM process has made this mapping.  entry: the shadow entries of its pages, from the first. */
void pages_mapped(struct monitor *m, gva_t gva, uint32_t bytes, const uint32_t *entry);
/* Guest code accessed a mapped page that this host does not hold (SIGBUS by userfaultfd).  Fetch
 * the page, with the right to write if `write`, and admit the VM process to it. */
void pages_admit(struct monitor *m, gva_t gva, uint32_t entry, bool write);

/* guestmem.c */
/* Pin a page; wait until this host has the right to it. */
void *guestmem_pin(struct monitor *m, gfn_t gfn, enum page_right right);
/* Pin a page.  NULL: this host does not have the right. */
void *guestmem_try_pin(struct monitor *m, gfn_t gfn, enum page_right right);
void guestmem_unpin(struct monitor *m, gfn_t gfn);
/* Copy guest memory to `data`, or, if `write`, the reverse; pins one page at a time.  Two bytes at
 * an even address are copied in one access.  False: it is not all RAM, and nothing was copied. */
bool guestmem_copy(struct monitor *m, uint64_t gpa, void *data, uint32_t bytes, bool write);
/* Request a page and wait for the daemon's answer.  The pages in `ahead` may be needed next. */
void guestmem_ask(struct monitor *m, gfn_t gfn, enum page_right right, const gfn_t ahead[],
		  unsigned aheads);

/* rings.c: the rings of those virtio devices whose lease this CPU has. */
/* Write a device register without the I/O server.  False: the I/O server must do it. */
bool rings_write(struct monitor *m, gpa_t gpa, unsigned size, uint32_t value);
/* After a write for which virtio_write_stops() is true: returns when nobody walks the rings. */
void rings_stopped(struct monitor *m);
bool rings_wait(void);		     /* a request of the I/O server has arrived and waits */
void rings_serve(struct monitor *m); /* at an instruction boundary: serve those requests */
/* The CPU is going to stop: returns when it has no lease, and the I/O server sends nothing.  False:
 * the CPU has never used a device; else the caller calls rings_back() when the CPU goes on. */
bool rings_leave(struct monitor *m);
/* Also for a CPU that has arrived from another host, or from a file. */
void rings_back(struct monitor *m);

/* insn.c: what the instruction at EIP does to memory */
/* True if it writes to linear address gva; false if that is not certain. */
bool insn_writes(struct monitor *m, gva_t gva);
/* Find the first linear address beyond VMP_USER_LIMIT that it accesses. */
bool insn_beyond_user_limit(struct monitor *m, gva_t *gva, enum vcpu_access *access);
bool insn_is_sse(struct monitor *m);
bool insn_is_bound(struct monitor *m); /* a `bound` whose operand can be read */
/* The instruction before EIP is an `into` that traps, and the one at EIP cannot have trapped. */
bool insn_was_into(struct monitor *m);

void send_dump(struct monitor *m);
void send_frames(struct monitor *m);

/* cpu_handover.c */
void handover_give(struct monitor *m); /* returns if no host took the CPU: it goes on here */
void handover_take(struct monitor *m); /* load the CPU state that has arrived */

/* env.c */
void env_init(struct monitor *m);
/* Post an interrupt to these CPUs, also on other hosts; ctx: the monitor. */
void env_send_interrupt(void *ctx, uint32_t cpus, uint8_t vector, bool nmi);

/* channel.c */
void channel_send(struct monitor *m, enum msg_type type, vnode_t to, const void *body,
		  size_t body_bytes, const void *payload, size_t payload_bytes);
/* Wait for a message of this type (for IO_REPLY: of our last request).  Other messages are served
 * meanwhile. */
void channel_wait(struct monitor *m, enum msg_type type, void *body, size_t body_bytes,
		  void *payload, size_t payload_room, size_t *payload_bytes);
void channel_drain(struct monitor *m); /* serve the messages that have arrived, without waiting */
void channel_serve(struct monitor *m); /* wait for one message and serve it */
/* The handlers of unrequested messages, as in base/msg.def. */
#define NODE_TO_MONITOR(name, how, handler) HANDLER_##how(struct monitor *monitor, name, handler)
#include "base/msg.def"

/* cpu_freeze.c: a CPU that stands still while the machine is saved or loaded */
/* At an instruction boundary, freeze_wanted is set: returns when the machine goes on. */
void freeze_guest(struct monitor *m);
void freeze_until_thaw(struct monitor *m);

/* cpu_debug.c */
/* At an instruction boundary: returns when the debugger lets the CPU go on. */
void debug_stand(struct monitor *m, enum debug_why why);
/* The CPU has executed an int3, EIP is behind it, and a debugger is attached.  False: the int3 is
 * the guest's own.  True: the debugger has been served, and EIP is where the guest continues. */
bool debug_breakpoint(struct monitor *m);
/* The host has reported a step or a watchpoint, behind the instruction.  True: it was a watchpoint,
 * and the CPU has stopped for the debugger. */
bool debug_watchpoint(struct monitor *m);

/* watch.c */
/* While the CPU is stopped: 0; or -errno, and nothing is watched. */
int watch_set(struct monitor *m, const struct debug_watch *watch);
/* The same for the guest's own debug registers.  What the host refuses is not watched. */
void watch_set_guest(struct monitor *m, const struct debug_watch *watch);
/* Which of the guest's watchpoints has the VM process that has the CPU triggered?  One bit each. */
uint32_t watch_guest_hits(struct monitor *m);
/* Set the watchpoints in a new VM process: 0 or -errno. */
int watch_start(struct monitor *m, pid_t pid);
/* True if the VM process that has the CPU has accessed a watched address: debug.watched. */
bool watch_hit(struct monitor *m);

#endif
