/* freeze.h - the node daemon's part in saving and loading a machine: one consistent cut over all hosts.
 *
 * Saving, in order (base/wire.h has the steps; node 0 leads):
 *   1. A client sends SAVE. Every daemon PREPAREs memory for its copy, then is told to FREEZE, and tells its monitors: each
 *      CPU stops at an instruction boundary, after the pages and the I/O that it waits for have come. Daemons and I/O
 *      server serve on meanwhile.
 *   2. When all CPUs of all hosts are FROZEN, the I/O server copies its devices (SAVED) and stands still. Interrupts that
 *      it raised before are ahead of its answer.
 *   3. CUT: every daemon sends every other one a MARK, twice. Between two daemons messages keep their order, so behind the
 *      marks no interrupt is under way. Then each CPU's state is taken, and the pages that this host owns are copied.
 *   4. All DONE: THAW. The pause ends here, and is as long as copying memory takes, whatever the file is written to.
 *   5. The client pulls the copies, item by item, and writes the file (vmm/snapshot/save.c). END, or the client's end, frees them.
 *   With one page owner each and no request under way, owned pages of all hosts together are the RAM, each page once.
 * Loading: node 0 was started with --restore. When all hosts are connected it tells the run client READY, which sends
 * the items; all pages are node 0's, and move by demand. LOADED starts the machine with the saved clock, and ends in THAW.
 */
#ifndef VMM_FREEZE_H
#define VMM_FREEZE_H

#include "vmm/hostcpu.h"
#include "vmm/node.h"

enum { CPU_STATE_LIMIT = 4096 };

/* SNAPSHOT_MACHINE's payload; two strings follow: the guest kernel's command line, and the file that it was loaded from. */
struct snapshot_machine {
	uint32_t hosts, cpus, mem_mib;
	uint32_t tsc_khz; /* of the time-stamp counter that the guest reads as its clock; 0: it reads none */
	uint64_t clock_ns, pause_ns, saved_ns /* since the epoch */, tsc;
	uint32_t features[HOSTCPU_FEATURES]; /* hostcpu_features() where it was saved */
};

/* The CPUs of this host stand still, or are about to. */
bool freeze_holds(void);
/* Or the copy of this host's part is still there. */
bool freeze_active(void);
/* MSG_SNAPSHOT that came to this daemon, from whomever. */
void freeze_on_message(void *ctx, const struct msg_header *header, const void *body);
void freeze_on_item(void *ctx, const struct msg_header *header, const void *body);
void freeze_on_pull(void *ctx, const struct msg_header *header, const void *body);
/* From the monitor of a CPU of ours. */
void freeze_on_monitor(struct node *node, unsigned cpu, const void *body);
void freeze_on_cpu_state(struct node *node, unsigned cpu, const void *state, uint32_t bytes);
/* From client `number` of node 0. */
void freeze_on_client(struct node *node, unsigned number, const struct msg_header *header, const void *body);
void freeze_client_gone(struct node *node, unsigned number);

/* Node 0, --restore: all hosts are connected; all hosts have started. Then node_start_loaded() and freeze_thaw_all(). */
void freeze_load_ready(struct node *node);
void freeze_thaw_all(struct node *node);

#endif
