/* node.h - the node daemon: one per host and machine.  It owns the host's share of guest RAM,
 * starts and watches the monitors of the CPUs on this host (and, on node 0, the I/O server), and
 * carries messages between them, the other daemons and the command lines.
 *
 *   vmp-node --dir RUNDIR --node K --log-fd FD [--features WORDS], and the options that describe
 *     the machine (base/machine.def)
 *     node 0 also: --kernel VMLINUX --initrd FILE (may repeat: concatenated) --cmdline STR
 *     a host that joins a running machine: --join HOSTS (a bit set)
 *     one of several computers: --cluster NAME [--phoenix LINE]... [--present NAME], and
 *       --secret FILE instead of --dir
 *     processors that do not begin on the hosts in turn: --place HOST,HOST...
 *     a saved machine has --restore instead of kernel and initrd; cut/restore.h says how it is
 *       loaded
 *
 * RUNDIR (mode 0700) holds the sockets: node-K.sock of each daemon, and node 0's control.sock for
 * command lines.  Its file `secret` proves to the daemons that they belong together.
 *
 * A machine's start, in order:
 *   1. Each daemon makes its shared memory, starts its children, and becomes a node of the overlay
 *      (overlay.c). Node 0 listens on control.sock, and loads the kernel meanwhile.
 *   2. When its monitors and all other daemons have said HELLO, a daemon sends node 0 NODE_READY
 *      (stage READY_CONNECTED).
 *   3. When all are ready and `vmp run` is connected, node 0 sends MACHINE_START with the preloaded
 *      pages. Each daemon gives them to its dsm and answers NODE_READY (READY_STARTED); only then
 *      may any CPU request a page.
 *   4. When all have answered, node 0 starts CPU 0.
 * A machine's end: a part that finds a reason tells node 0 (MACHINE_END); the first reason counts.
 * Node 0 tells its clients and all daemons.  Each daemon kills its children, reaps them, removes
 * its socket and exits.  With --report each first sends its counters, and node 0 waits until `vmp
 * run` has those of all.  A daemon that loses node 0 ends at once.
 *
 * One thread, one loop, one struct node.  Files: node.c (start), node_options.c (the command line),
 * poll.c (the loop: it polls while CPUs wait for pages), stages.c (the order above), agenda.c (what
 * may begin beside what on node 0: the table), agenda_look.c (what node 0 is doing, for that
 * table), route.c (messages that pass through this daemon), clients.c and control.c (command
 * lines), overlay.c (messages between daemons), outside.c (what the simulator replaces),
 * supervise.c (children; the end), halted.c (the end of a machine whose CPUs have all halted for
 * good), pagestore.c (taking pages from CPUs), moves.c and handover.c (CPUs that move), hosts.c,
 * hostcomes.c, hostgoes.c and hostpart.c (hosts that are added and removed), policy.c (where CPUs
 * run), guest_load.c (the contents of RAM at the start), cut/freeze.c (saving and loading the
 * machine), debugger.c (a debugger), node_stats.c (counters, for --stats, `vmp pages` and the log).
 */
#ifndef VMM_NODE_NODE_H
#define VMM_NODE_NODE_H

#include <sys/types.h>
#include "base/hostshm.h"
#include "base/layout.h"
#include "base/limits.h"
#include "base/machine.h"
#include "base/types.h"
#include "base/virtio_abi.h"
#include "base/wire.h"
#include "vmm/node/halted.h"
#include "vmm/node/outside.h"
#include "vmm/node/pages/starts.h"
#include "vmm/node/wire/handlers.h"
#include "vmm/node/wire/net.h"
#include "vmm/shared/loop.h"
#include "vmm/shared/tsc.h"

struct conn;
struct copy;
struct dsm;
struct event_base;

enum { MAX_PHOENIX = 8, MAX_INITRDS = 8, MAX_CLIENTS = 32, END_LINE = 480 };

struct node_options {
	const char *dir;
	/* what MACHINE_NODE and, on host 0, MACHINE_NODE0 read; `hosts` is their number at the
	 * start */
	struct machine machine;
	unsigned node;
	int log_fd;
	struct cpu_features features; /* the processor's features that the guest sees */
	uint32_t join; /* this host joins a running machine: bit set of the machine's hosts */
	const char *kernel, *cmdline;
	/* the host's name in the cluster file, if the machine has several computers */
	const char *cluster;
	/* the file with the secret, which is removed when it was read; NULL: in `dir` */
	const char *secret;
	/* the name under which vmp-host holds this host (vmm/shared/presence.h), or NULL */
	const char *present;
	const char *phoenix[MAX_PHOENIX]; /* lines of the overlay's configuration */
	unsigned n_phoenix, n_places;
	uint8_t place[MAX_CPUS]; /* where processors begin, if n_places is not 0 */
	const char *initrd[MAX_INITRDS];
	unsigned n_initrds;
};

enum child_role { CHILD_MONITOR, CHILD_IOSRV };
/* A monitor's part in a move (handover.c). */
enum child_part {
	PART_RUNS,   /* it is not moving */
	PART_SPARE,  /* it waits for a CPU from another host */
	PART_FROZEN, /* its CPU was sent to another host, and may come back */
};
struct child {
	pid_t pid; /* 0: none, or reaped */
	enum child_role role;
	enum child_part part;
	struct msg_cpu_handover handover; /* its current or last move */
	unsigned cpu;
	struct conn *conn; /* NULL when it is closed */
	bool ready;	   /* its HELLO has arrived */
	/* the processor that it is bound to (processors.c), counted from 1; 0: none */
	unsigned processor;
	char name[48];
	char last_words[160]; /* a spare's reason to end; "": it has not said any */
};

/* HELLO's index of a client: the kind of command line. */
enum client_kind { CLIENT_KIND_RUN, CLIENT_KIND_CONSOLE, CLIENT_KIND_QUERY };
struct client_slot {
	struct conn *conn; /* NULL: free */
	bool greeted, console, execs, stuck; /* stuck: it has not taken a part of a trace */
	uint32_t life; /* counts the clients that have had this slot */
	enum client_kind kind;
};

/* Stages that node 0 counts (struct msg_node_ready.stage). */
enum ready_stage { READY_CONNECTED, READY_STARTED, READY_STAGES };

struct preloaded { struct page_range range[MAX_PRELOADED]; unsigned count; uint32_t entry; };

struct node {
	struct node_options o;
	struct event_base *base; /* where `loop` runs, for Phoenix and poll_loop() */
	struct loop loop;
	const struct outside *outside;
	uint64_t boot_ns; /* CLOCK_MONOTONIC when this daemon started */
	struct clock_sync *clock; /* of several computers; otherwise NULL */
	struct tsc_mark boot_tsc;

	int ram_fd, shm_fd, cpus_fd; /* base/hostshm.h */
	/* host 0: files of virtio devices, by slot, which the monitors may use themselves
	 * (monitor/localdisk.h, localnet.h), -1 for none; and where they come from, until they have
	 * come */
	int device_file[VIRTIO_SLOTS], files_socket;
	uint8_t *ram; /* the alias mapping: all of guest RAM, writable */
	uint32_t ram_pages;
	struct host_shm *shm;

	struct net *net;
	struct overlay *overlay; /* NULL in a machine that stays on one host */
	/* bit set of the machine's hosts, as far as this node knows; a host that is joining is not
	 * in its own set at first */
	uint32_t hosts;
	struct dsm *dsm; /* NULL in a machine that stays on one host: every page is writable */
	struct pagestore *pages;
	struct wants *wants; /* pages/wants.h */
	struct spill *spill; /* pages/spill.h */
	struct starts starts; /* pages/starts.h */
	/* how many pages this host may hold; 0 before the page store starts: as --host-mem says */
	uint32_t share_pages;
	struct trace *trace; /* pages/pagetrace.h; NULL: nothing is traced */
	/* number of times that all holds were ended here; number of barrier counts told to other
	 * hosts; of reads that were requested with both rights (pages/both.h) */
	uint32_t synced, barrier_tells, boths;
	uint32_t put_off; /* requests of CPUs that had to wait until this host had room */
	uint64_t page_event_ns; /* the last page message or request (poll.h) */
	/* pages that a CPU waited for since the last sample (policy.c), by the host that sent
	 * them */
	uint32_t fetched[MAX_CPUS][MAX_NODES];
	/* of each CPU at the last sample: how long it had waited, and been idle, and the sum of
	 * all its times; when the sample was */
	struct { uint64_t waited_ns, idle_ns, all_ns; } sampled[MAX_CPUS];
	uint64_t looked_ns;
	uint64_t crowded_ns[MAX_CPUS]; /* when tasks last waited for each CPU; 0: never */
	/* the current burst of requests for pages (policy.c) */
	struct { uint64_t since_ns, told_ns; uint32_t wants; } burst;

	struct child monitor[MAX_CPUS], iosrv;
	struct processors *processors;
	uint32_t cpus_here; /* bit set of CPUs: messages for these end here */
	struct moves *moves; /* node 0 */
	struct policy_state *policy;
	struct hosts *hosts_state; /* node 0 */
	struct hostpart *hostpart;
	struct freeze *freeze;
	struct turn *turn; /* node 0 */
	struct halted halted; /* node 0 */
	bool debugged; /* node 0: a debugger is attached */
	uint32_t debug_stopped; /* bit set of the CPUs that it has stopped */
	struct copy *copy; /* what this host adds to a snapshot */
	struct loop_event *on_chld, *on_term, *on_int, *end_timer, *start_timer;

	int control_fd;
	struct loop_event *control_event;
	struct loop_event *hoard; /* looks at the memory file; NULL: no limit */
	struct client_slot client[MAX_CLIENTS];

	/* start, node 0 */
	struct preloaded preloaded;
	uint32_t ready[READY_STAGES]; /* bit sets of nodes */
	bool told_ready, started, running;
	uint64_t start_ns; /* of the machine, by node 0's clock */
	/* the machine's clock at its start: 0, or its value when the machine was saved */
	uint64_t clock_ns;
	uint64_t user_ns; /* when the guest's init first used a stream register */

	/* end */
	bool ending, end_told, failed;
	struct msg_machine_end end;
	char end_line[END_LINE];
	uint64_t end_deadline_ns;
};

static inline bool node_has_host(const struct node *node, unsigned host)
{
	return host < MAX_NODES && node->hosts >> host & 1;
}

/* Returns whether pages may be on other hosts, now or later. */
static inline bool node_shares_memory(const struct node *node)
{
	return node->o.machine.hosts > 1 || node->o.machine.grows || node->o.join;
}

static inline bool node_has_cpu(const struct node *node, unsigned cpu)
{
	return cpu < MAX_CPUS && node->cpus_here >> cpu & 1;
}

/* Returns this host's time. */
static inline uint64_t node_now_ns(const struct node *node)
{
	return loop_now_ns(&node->loop);
}

/* Returns the machine's time.  The daemon alone changes its line, so no change can be under way. */
static inline uint64_t node_clock_ns(const struct node *node)
{
	const struct clock_line line = hostclock_line(&node->shm->clock);

	return clock_line_at(&line, node_now_ns(node));
}

/* stages.c: the start of a machine */
void node_check_ready(struct node *node); /* something has said HELLO: checks whether all have */
void node_on_ready(struct node *node, const struct msg_node_ready *ready);
void node_on_start(struct node *node, const struct msg_machine_start *start,
		   const struct page_range *ranges);

/* --restore: everything is loaded, and the machine's clock goes on from here. */
void node_start_loaded(struct node *node, uint64_t clock_ns);

/* Parses the command line.  Returns 0, or -EINVAL with the reason in `why`. */
int node_options_parse(struct node_options *o, int argc, char **argv, char *why, size_t why_bytes);

/* supervise.c */
void supervise_start(struct node *node);
/* With disks, node 0's monitors start only when the I/O server has said that it is ready. */
void supervise_start_children(struct node *node);
void supervise_iosrv_ready(struct node *node);
/* This host has found a reason to end the machine.  The first one at node 0 counts. */
void node_end(struct node *node, enum end_reason reason, uint32_t status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same with END_PART_DIED: another host is lost. */
void node_end_lost(struct node *node, unsigned host, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void node_end_message(struct node *node, const struct msg_machine_end *end, const char *line,
		      unsigned line_bytes);
/* Ends this host's part: node 0 is gone, or this daemon was told to end. */
void node_end_here(struct node *node);
/* Does the same on node 0's order. */
void node_end_ordered(struct node *node, const struct msg_machine_end *end);
void supervise_proceed(struct node *node);

/* Starts a monitor.  Returns 0, or -errno with the reason in `why`. */
int supervise_start_monitor(struct node *node, unsigned cpu, char *why, size_t why_bytes);
/* Kills a child; its death is handled when it is reaped. */
void supervise_kill(struct node *node, struct child *child);
/* Ends a child that is not needed any more.  Its `handover` stays for messages that still
 * arrive. */
void supervise_release(struct node *node, struct child *child);
void supervise_last_words(struct child *child, const char *line, size_t bytes);

/* handover.c: a CPU moves between two hosts. */
void handover_start(struct node *node); /* sets which CPUs are on this host */
void handover_spare_ready(struct node *node, struct child *child);
/* A spare or frozen monitor has died. */
void handover_child_died(struct node *node, struct child *child, const char *how);

/* moves.c: node 0 lets CPUs move, one after the other. */
/* hosts_on_moved() and policy_on_moved() get the answers for the last two. */
enum { MOVE_CLIENT_NOBODY = MAX_CLIENTS, MOVE_CLIENT_HOSTS, MOVE_CLIENT_POLICY };
void moves_start(struct node *node);
bool moves_asked(const struct node *node); /* a CPU is moving, or a move waits */
bool moves_one_goes(const struct node *node); /* a CPU is moving, or about to move */
/* returns the host where the CPU is; a move that has not ended does not count */
unsigned moves_place(const struct node *node, unsigned cpu);
void moves_tell(struct node *node, unsigned host); /* tells `host` where all CPUs are */
void moves_forget_client(struct node *node, unsigned client);
void moves_request(struct node *node, unsigned client, const struct msg_cpu_move *move,
		   const char *reason);
void moves_begin(struct node *node); /* begins moves that wait, as far as the agenda allows */

/* route.c */
void route_to_child(struct node *node, struct child *child, const struct message *m);
/* Sends to the monitor of a CPU that should be here, and posts; logs an error if it is not here. */
void route_to_cpu(struct node *node, unsigned cpu, const struct message *m);
/* sends it to each host that has some of its CPUs */
void route_interrupt(struct node *node, const struct msg_interrupt *interrupt);
/* A daemon breaks the rules of the messages, or has another version.  This ends the machine; if the
 * daemon is only joining, it ends the daemon. */
void route_peer_is_wrong(struct node *node, unsigned peer, const char *why);
/* A net_deliver_fn for messages to the roles of this node.  `ctx` is the node. */
void route_deliver(void *ctx, const struct message *m);
extern const struct conn_handler route_monitor_handler, route_iosrv_handler;
void route_start_cpu(struct node *node, unsigned cpu, uint32_t eip);

/* clients.c */
void clients_close(struct node *node);
/* Takes a connection of a command line; its HELLO says which one it is.  Returns false if there are
 * MAX_CLIENTS already. */
bool clients_take(struct node *node, struct conn *conn);
void clients_flush_run(struct node *node, int timeout_ms);
bool clients_have_run(const struct node *node);
/* Send to the run client alone (returns false if it is not there), and to all clients. */
bool clients_send_run(struct node *node, const struct msg_header *header, const void *body);
void clients_send_all(struct node *node, enum msg_type type, const void *body, uint32_t body_bytes,
		      const void *payload, uint32_t payload_bytes);
/* Console output, to one client or to CONSOLE_ALL. */
void clients_send_console(struct node *node, const struct msg_header *header, const void *body);
/* Sends a frame to the one `vmp exec` that the body names. */
void clients_send_exec(struct node *node, const struct msg_header *header, const void *body);
/* Returns a query's sequence number with the client's slot in its upper part, for
 * clients_send_answer(). */
uint32_t clients_tag(const struct node *node, unsigned client, uint32_t seq);
/* Sends the answer to a query.  The body's second word is the sequence number (msg_dump.seq,
 * msg_stats.seq, msg_pages.seq), with the client's slot in its upper part. */
void clients_send_answer(struct node *node, const struct msg_header *header, const void *body);

/* control.c */
void control_listen(struct node *node);
void control_close(struct node *node);
/* Tells `vmp run` why this daemon cannot continue; waits a moment if `vmp run` is not connected
 * yet. */
void control_last_words(struct node *node, const char *line);

/* overlay.c: what outside_real has, and its start and end */
void overlay_start(struct node *node);
bool overlay_reaches(const struct node *node, unsigned peer); /* its greeting has arrived */
bool overlay_complete(const struct node *node);	/* the greetings of all have arrived */
uint32_t overlay_silent(const struct node *node);
/* Node 0: host `peer` listens at "ADDRESS PORT DESTINATION".  Connects to it, or, if that fails, to
 * DESTINATION by ssh. */
void overlay_dial(struct node *node, unsigned peer, const char *where, size_t bytes);
/* Returns whether more has arrived behind the message that is being served. */
bool overlay_has_more(const struct node *node);
/* What is sent between cork and uncork leaves together. */
void overlay_cork(struct node *node);
void overlay_uncork(struct node *node);
/* From now on a lost host costs only the way back to a checkpoint (vmm/shared/silence.h). */
void overlay_be_prompt(struct node *node);
void overlay_flush(struct node *node);	/* before this daemon dies: sends its last messages */
bool overlay_has_sent_all(const struct node *node);
void overlay_close(struct node *node);

/* pagestore.c */
void pagestore_start(struct node *node);
/* Frees what pagestore_start() made, while the loop is there.  For tests that make many daemons. */
void pagestore_end(struct node *node);
/* A home asks for the confirmations that this host delays. */
void pagestore_on_awaited(struct node *node, const struct message *m);
/* For batch.c: serves a message now.  What follows is what else batch.c needs of the page store. */
void pagestore_serve(struct node *node, const struct message *m, const struct msg_dsm *dsm);
void pagestore_drain(struct node *node, gfn_t gfn); /* drains its pins; the right is lowered */
/* A CPU waits for a page with a locked instruction, or at a barrier: ends the holds of this
 * host. */
void pagestore_synchronises(struct node *node);
uint32_t pagestore_hold_us(struct node *node, gfn_t gfn, enum page_right new_right);
struct extract *pagestore_extract(struct node *node);
struct batch *pagestore_batch(struct node *node);
struct misses *pagestore_misses(struct node *node);
struct share *pagestore_share(const struct node *node);
/* This CPU waits for the page. */
void pagestore_want(struct node *node, unsigned cpu, gfn_t gfn, enum page_right right);
/* Sends the requests that were delayed until now (pages/both.h), or all of them; all must be sent
 * before the daemon sleeps.  Returns when the next one is due; 0: never. */
uint64_t pagestore_send_delayed(struct node *node, bool all);
/* a CPU may want it soon */
void pagestore_want_ahead(struct node *node, gfn_t gfn, enum page_right right);
/* At the start, on the host that has them: these pages hold data, with the right to write. */
void pagestore_preloaded(struct node *node, gfn_t first, uint32_t count);

/* guest_load.c: fills `preloaded`.  Returns 0, or -1 with a line in `why`. */
int guest_load(struct node *node, char *why, size_t why_bytes);

/* node_stats.c */
void node_stats_send(struct node *node, uint32_t seq);
void node_pages_send(struct node *node, uint32_t seq);
void node_stats_log(struct node *node);

#endif
