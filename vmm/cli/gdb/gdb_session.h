/* gdb_session.h - joins what GDB sends (rsp.h) and what the CPUs answer (base/wire.h, MSG_DEBUG).
 * No I/O.
 *
 * Each CPU is a thread: CPU#n is thread n+1.  All CPUs stop together.  When one has something to
 * report, the others are stopped, and GDB gets the report when all stand.  GDB says each time which
 * CPUs go on, and which make one step (vCont; its `set scheduler-locking`).
 *
 * Breakpoints (breakpoint.h) are kept here alone.  A CPU that meets an int3 asks; an int3 that is
 * not in the table belongs to the guest.
 *
 * Watchpoints are in the debug registers of each CPU's VM processes.  A CPU that was being stopped
 * because of another one may touch watched memory in the same moment.  It is not asked again: GDB
 * gets this report when it lets that CPU run.
 *
 * A debugger that leaves, by `detach` or because it died, leaves no breakpoints and watchpoints
 * behind, and the machine runs on.
 */
#ifndef VMM_CLI_GDB_GDB_SESSION_H
#define VMM_CLI_GDB_GDB_SESSION_H

#include "base/wire.h"
#include "vmm/cli/gdb/breakpoint.h"
#include "vmm/cli/gdb/gdb_watch.h"
#include "vmm/cli/gdb/rsp.h"

enum { GDB_MAX_BYTES = RSP_MAX_TEXT / 2 };

/* What the session does to the world.  None of these functions calls the session again. */
struct gdb_ops {
	void (*to_gdb)(void *ctx, const char *bytes, size_t n);
	void (*to_machine)(void *ctx, const struct msg_debug *request, const void *payload,
			   size_t n);
	void (*try_again)(void *ctx);	/* call gdb_try_again() in a moment */
	void (*hang_up)(void *ctx);	/* disconnect: the peer is no GDB */
	void (*end_machine)(void *ctx); /* GDB's kill command */
};

enum gdb_state {
	GDB_ALONE,    /* no debugger: the machine runs by itself */
	GDB_ASKING,   /* the answer to ATTACH is due */
	GDB_STOPPING, /* some CPUs do not stand yet */
	GDB_STANDING, /* all CPUs stand */
	GDB_RUNNING,  /* CPUs run as GDB has said */
};

struct gdb_session {
	const struct gdb_ops *ops;
	void *ctx;
	unsigned n_cpus;
	enum gdb_state state;
	struct rsp_reader reader;
	bool talked;  /* a whole packet has arrived */
	bool pending; /* the reader's packet waits until all CPUs stand */
	bool no_ack, swbreak;
	bool resumed; /* GDB waits to learn why the machine has stopped */
	bool leaving; /* breakpoints are being removed; then all CPUs run */
	uint32_t standing; /* bit set of CPUs */
	uint32_t cpu_state[MAX_CPUS]; /* enum debug_state, from when the CPU stopped */
	/* current: the CPU of requests for registers and memory; of_c: the CPU that `s` steps */
	unsigned current, of_c;
	unsigned stopped_cpu, signal;
	bool at_breakpoint;
	bool at_watch; /* the stopped CPU has touched watched_at[] */
	/* bit set of CPUs that have touched watched memory, which GDB does not know yet */
	uint32_t watched;
	gva_t watched_at[MAX_CPUS];
	/* watch_before: restored if a CPU refuses the new watchpoints */
	struct gdb_watch watch[GDB_MAX_WATCHES], watch_before[GDB_MAX_WATCHES];
	uint32_t watch_error; /* the error of the CPU that refused */
	/* the current request */
	struct rsp_command command;
	bool busy;
	unsigned asked_cpu;
	uint32_t asked_op;
	size_t done, bytes; /* of `data` */
	uint8_t data[GDB_MAX_BYTES];
	struct gdb_breakpoint breakpoint[GDB_MAX_BREAKPOINTS];
	size_t sent_bytes;
	char sent[RSP_MAX_TEXT + 8]; /* the last packet, in case it must be repeated */
};

/* `held`: the machine was started with all CPUs stopped, and waits for a debugger. */
void gdb_init(struct gdb_session *s, const struct gdb_ops *ops, void *ctx, unsigned n_cpus,
	      bool held);

/* Takes bytes from GDB. Returns how many it took; it takes more after the next answer. */
size_t gdb_take(struct gdb_session *s, const uint8_t *bytes, size_t n);
/* GDB's connection is closed. */
void gdb_gone(struct gdb_session *s);

/* Takes a MSG_DEBUG_ANSWER whose size has been checked. */
void gdb_on_answer(struct gdb_session *s, const struct msg_debug *answer, const void *payload,
		   size_t n);
void gdb_try_again(struct gdb_session *s);
void gdb_machine_ended(struct gdb_session *s, unsigned status);

#endif
