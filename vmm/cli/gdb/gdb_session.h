/* gdb_session.h - what GDB says (rsp.h) and what the CPUs answer (base/wire.h, MSG_DEBUG), brought together.  No I/O.
 *
 * Each CPU is a thread: CPU#n is thread n+1.  All stop together: when one has something to tell, the others are stopped, and
 * GDB hears of it when all stand.  Which of them go on, and which make one step, GDB says each time (vCont; its `set
 * scheduler-locking`).
 *
 * Breakpoints (breakpoint.h) are kept here alone.  A CPU that meets an int3 asks; one that is not ours is the guest's.
 *
 * Watchpoints stand in the debug registers of each CPU's VM processes.  A CPU that was stopped for another one's sake and has
 * touched what is watched in the same moment is asked no more: GDB hears of it when it lets the CPU go.
 *
 * A debugger that goes, by `detach` or by dying, leaves none of these, and the machine runs on.
 */
#ifndef VMM_CLI_GDB_GDB_SESSION_H
#define VMM_CLI_GDB_GDB_SESSION_H

#include "base/wire.h"
#include "vmm/cli/gdb/breakpoint.h"
#include "vmm/cli/gdb/gdb_watch.h"
#include "vmm/cli/gdb/rsp.h"

enum { GDB_MAX_BYTES = RSP_MAX_TEXT / 2 };

/* What the session does to the world. None calls the session again. */
struct gdb_ops {
	void (*to_gdb)(void *ctx, const char *bytes, size_t n);
	void (*to_machine)(void *ctx, const struct msg_debug *request, const void *payload, size_t n);
	void (*try_again)(void *ctx);	/* call gdb_try_again() in a moment */
	void (*hang_up)(void *ctx);	/* this is no GDB */
	void (*end_machine)(void *ctx); /* GDB's kill */
};

enum gdb_state {
	GDB_ALONE,    /* no debugger: the machine runs by itself */
	GDB_ASKING,   /* ATTACH is under way */
	GDB_STOPPING, /* some CPUs do not stand yet */
	GDB_STANDING, /* all do */
	GDB_RUNNING,  /* as GDB has said */
};

struct gdb_session {
	const struct gdb_ops *ops;
	void *ctx;
	unsigned n_cpus;
	enum gdb_state state;
	struct rsp_reader reader;
	bool talked;  /* a whole packet has come */
	bool pending; /* the reader's packet waits until all CPUs stand */
	bool no_ack, swbreak;
	bool resumed; /* GDB waits to hear why the machine has stopped */
	bool leaving; /* breakpoints are being removed, then all is let go */
	uint32_t standing; /* bit set of CPUs */
	uint32_t cpu_state[MAX_CPUS]; /* enum debug_state, when it came to stand */
	unsigned current, of_c; /* the CPU that registers and memory are asked of; that `s` steps */
	unsigned stopped_cpu, signal;
	bool at_breakpoint;
	bool at_watch; /* the stopped CPU has touched watched_at[] */
	uint32_t watched; /* bit set of CPUs that have, and GDB has not been told */
	gva_t watched_at[MAX_CPUS];
	struct gdb_watch watch[GDB_MAX_WATCHES], watch_before[GDB_MAX_WATCHES]; /* before: if a CPU cannot have the new ones */
	uint32_t watch_error; /* it could not */
	/* the request that is under way */
	struct rsp_command command;
	bool busy;
	unsigned asked_cpu;
	uint32_t asked_op;
	size_t done, bytes; /* of data */
	uint8_t data[GDB_MAX_BYTES];
	struct gdb_breakpoint breakpoint[GDB_MAX_BREAKPOINTS];
	size_t sent_bytes;
	char sent[RSP_MAX_TEXT + 8]; /* the last packet, in case it must be repeated */
};

/* held: the machine was started with all CPUs standing, and waits for a debugger. */
void gdb_init(struct gdb_session *s, const struct gdb_ops *ops, void *ctx, unsigned n_cpus, bool held);

/* Bytes from GDB: takes as many as it can now and returns how many; it takes more after the next answer. */
size_t gdb_take(struct gdb_session *s, const uint8_t *bytes, size_t n);
/* Its connection is closed. */
void gdb_gone(struct gdb_session *s);

/* MSG_DEBUG_ANSWER, its size checked. */
void gdb_on_answer(struct gdb_session *s, const struct msg_debug *answer, const void *payload, size_t n);
void gdb_try_again(struct gdb_session *s);
void gdb_machine_ended(struct gdb_session *s, unsigned status);

#endif
