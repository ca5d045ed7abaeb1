/* node.h - the node daemon: one per host and machine.  It owns the host's share of guest RAM, starts and watches the
 * monitors of the CPUs that live here (and, on node 0, the I/O server), and carries messages between them, the other
 * daemons and the command lines.
 *
 *   vmp-node --dir RUNDIR --node K --log-fd FD [--features WORDS], and the machine's description: base/machine.def
 *     node 0 also: --kernel VMLINUX --initrd FILE (may repeat: concatenated) --cmdline STR
 *     a host that joins a machine that runs: --join HOSTS (a bit set)
 *     one of several computers: --cluster NAME [--phoenix LINE]...; --secret FILE instead of --dir; processors that do not begin in
 *     turn: --place HOST,HOST...
 *     a machine that was saved has --restore instead of kernel and initrd; cut/restore.h says how it is loaded
 *
 * RUNDIR (mode 0700) holds the sockets: node-K.sock of each daemon, and node 0's control.sock for command lines; and `secret`,
 * by which the daemons know each other.
 *
 * A machine's start, in order:
 *   1. Each daemon makes its shared memory, starts its children, and becomes a node of the overlay (overlay.c).
 *      Node 0 listens on control.sock and loads the kernel meanwhile.
 *   2. When its monitors and all other daemons have said HELLO, a daemon tells node 0 NODE_READY (stage READY_CONNECTED).
 *   3. When all are ready and `vmp run` is connected, node 0 sends MACHINE_START with the preloaded pages; each daemon
 *      gives them to its dsm and answers NODE_READY (READY_STARTED): only then may any CPU ask for a page.
 *   4. When all have answered, node 0 starts CPU 0.
 * A machine's end: whoever finds a reason tells node 0 (MACHINE_END); the first one wins.  Node 0 tells its clients and all
 * daemons; each kills its children, reaps them, removes its socket and exits.  With --report each first sends what it has counted,
 * and node 0 waits until `vmp run` has had it from all.  A daemon that loses node 0 ends at once.
 *
 * One thread, one libevent loop, one struct node.  Files: node.c (start), stages.c (the order above), route.c (what goes through
 * this daemon), clients.c (the control socket), overlay.c (messages between daemons), supervise.c (children; the end), pagestore.c
 * (taking pages from CPUs), moves.c and handover.c (CPUs that move), hosts.c, hostcomes.c, hostgoes.c and hostpart.c (hosts that
 * come and go), policy.c (where CPUs run), guest_load.c (what stands in RAM at the start), snapshot/freeze.c (saving and loading the
 * machine), debugger.c (a debugger), node_stats.c.
 */
#ifndef VMM_NODE_NODE_H
#define VMM_NODE_NODE_H

#include <sys/types.h>
#include "base/hostshm.h"
#include "base/limits.h"
#include "base/machine.h"
#include "base/types.h"
#include "base/wire.h"
#include "vmm/node/wire/handlers.h"
#include "vmm/node/wire/net.h"
#include "vmm/shared/tsc.h"

struct conn;
struct copy;
struct dsm;
struct event;
struct event_base;

enum { MAX_PHOENIX = 8, MAX_INITRDS = 8, MAX_CLIENTS = 32, END_LINE = 480 };

struct node_options {
	const char *dir;
	struct machine machine; /* what MACHINE_NODE and, on host 0, MACHINE_NODE0 read; its hosts are those at the start */
	unsigned node;
	int log_fd;
	struct cpu_features features; /* what the guest sees of the processor */
	uint32_t join; /* this one comes to a machine that runs: bit set of its hosts */
	const char *kernel, *cmdline;
	const char *cluster; /* one of several computers; its name in the cluster file */
	const char *secret;  /* the file with it, which is removed when it is read; NULL: in `dir` */
	const char *phoenix[MAX_PHOENIX]; /* lines of the overlay's configuration */
	unsigned n_phoenix, n_places;
	uint8_t place[MAX_CPUS]; /* where processors begin, if there are n_places */
	const char *initrd[MAX_INITRDS];
	unsigned n_initrds;
};

enum child_role { CHILD_MONITOR, CHILD_IOSRV };
/* A monitor's part in a move (handover.c). */
enum child_part {
	PART_RUNS,   /* none */
	PART_SPARE,  /* it waits for a CPU from another host */
	PART_FROZEN, /* its CPU was sent to another host, and may come back */
};
struct child {
	pid_t pid; /* 0: none, or reaped */
	enum child_role role;
	enum child_part part;
	struct msg_cpu_handover handover; /* the move */
	unsigned cpu;
	struct conn *conn; /* NULL when it is closed */
	bool ready;	   /* its HELLO came */
	unsigned processor; /* on which it is (processors.c), counted from 1; 0: on any */
	char name[48];
	char last_words[160]; /* a spare's: why it ends; "" if it has not said so */
};

/* HELLO's index of a client: which kind of command line it is. */
enum client_kind { CLIENT_KIND_RUN, CLIENT_KIND_CONSOLE, CLIENT_KIND_QUERY };
struct client_slot {
	struct conn *conn; /* NULL: free */
	bool greeted, console;
	enum client_kind kind;
};

/* Stages that node 0 counts: struct msg_node_ready.stage */
enum ready_stage { READY_CONNECTED, READY_STARTED, READY_STAGES };

struct preloaded { struct page_range range[MAX_PRELOADED]; unsigned count; uint32_t entry; };

/* Who waits for a page, and how long a page that came stays (pagestore.c). */
struct page_wait { bool waiting; gfn_t gfn; enum page_right right; };

struct node {
	struct node_options o;
	struct event_base *base;
	uint64_t boot_ns; /* CLOCK_MONOTONIC when this daemon started */
	struct clock_sync *clock; /* of several computers; else NULL */
	struct tsc_mark boot_tsc;

	int ram_fd, shm_fd, cpus_fd; /* base/hostshm.h */
	uint8_t *ram; /* the alias: all of guest RAM, writable */
	uint32_t ram_pages;
	struct host_shm *shm;

	struct net *net;
	struct overlay *overlay; /* NULL with one node for ever */
	uint32_t hosts; /* bit set of the machine's hosts, as far as this one knows; one that joins is not in its own at first */
	struct dsm *dsm; /* NULL with one node for ever: every page is writable */
	struct pagestore *pages;
	struct page_wait wait[MAX_CPUS];
	uint64_t page_event_ns; /* the last page message or request (poll.h) */
	uint32_t fetched[MAX_CPUS][MAX_NODES]; /* pages that a CPU waited for, by the host that sent them, since policy.c looked */

	struct child monitor[MAX_CPUS], iosrv;
	struct processors *processors;
	uint32_t cpus_here; /* bit set: messages for these end here */
	struct moves *moves; /* node 0 */
	struct hosts *hosts_state; /* node 0 */
	struct hostpart *hostpart;
	struct freeze *freeze;
	struct turn *turn; /* node 0 */
	struct copy *copy; /* what this host adds to a snapshot */
	struct event *on_chld, *on_term, *on_int, *end_timer, *start_timer;

	int control_fd;
	struct event *control_event;
	struct client_slot client[MAX_CLIENTS];

	/* start, node 0 */
	struct preloaded preloaded;
	uint32_t ready[READY_STAGES]; /* bit sets of nodes */
	bool told_ready, started, running;
	uint64_t start_ns; /* the machine's, by node 0's clock */
	uint64_t clock_ns; /* the machine's clock when it starts: 0, or what it was when it was saved */
	uint64_t user_ns; /* the guest's init first touched a stream register */

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

/* Pages may be on other hosts, now or later. */
static inline bool node_shares_memory(const struct node *node)
{
	return node->o.machine.hosts > 1 || node->o.machine.grows || node->o.join;
}

static inline bool node_has_cpu(const struct node *node, unsigned cpu)
{
	return cpu < MAX_CPUS && node->cpus_here >> cpu & 1;
}

uint64_t node_now_ns(void);

/* stages.c: the start of a machine */
void node_check_ready(struct node *node); /* something said HELLO: perhaps that was the last */
void node_on_ready(struct node *node, const struct msg_node_ready *ready);
void node_on_start(struct node *node, const struct msg_machine_start *start, const struct page_range *ranges);

/* --restore: everything has been loaded, and the machine's clock goes on from here. */
void node_start_loaded(struct node *node, uint64_t clock_ns);

/* options of the command line: 0, or -EINVAL with the reason in `why` */
int node_options_parse(struct node_options *o, int argc, char **argv, char *why, size_t why_bytes);

/* supervise.c */
void supervise_start(struct node *node);
void supervise_start_children(struct node *node);
/* A reason to end the machine was found on this host. The first one at node 0 wins. */
void node_end(struct node *node, enum end_reason reason, uint32_t status, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same for END_PART_DIED, of another host. */
void node_end_lost(struct node *node, unsigned host, const char *format, ...) __attribute__((format(printf, 3, 4)));
void node_end_message(struct node *node, const struct msg_machine_end *end, const char *line, unsigned line_bytes);
/* Node 0 is gone, or this daemon was told: end this host's part. */
void node_end_here(struct node *node);
void supervise_proceed(struct node *node);

/* Start a monitor: 0, or -errno with the reason in `why`. */
int supervise_start_monitor(struct node *node, unsigned cpu, char *why, size_t why_bytes);
/* Its death is noticed when it is reaped. */
void supervise_kill(struct child *child);
/* End a child of which nothing is expected any more; its `handover` stays, for what is still under way. */
void supervise_release(struct child *child);
void supervise_last_words(struct child *child, const char *line, size_t bytes);

/* handover.c: a CPU moves between two hosts. */
void handover_start(struct node *node); /* which CPUs live here */
void handover_spare_ready(struct node *node, struct child *child);
/* A spare or frozen monitor has died. */
void handover_child_died(struct node *node, struct child *child, const char *how);

/* moves.c: node 0 lets CPUs move, one after the other. */
enum { MOVE_CLIENT_NOBODY = MAX_CLIENTS, MOVE_CLIENT_HOSTS, MOVE_CLIENT_POLICY /* hosts_on_moved(), policy_on_moved() get the answer */ };
void moves_start(struct node *node);
bool moves_under_way(const struct node *node);
bool moves_one_goes(const struct node *node); /* a CPU is on its way, or about to go */
unsigned moves_place(const struct node *node, unsigned cpu); /* the host where it is, a move under way not counted */
void moves_tell(struct node *node, unsigned host); /* where all CPUs are */
void moves_forget_client(struct node *node, unsigned client);
void moves_request(struct node *node, unsigned client, const struct msg_cpu_move *move);
void moves_after_freeze(struct node *node); /* what moves may have waited for is over */

/* route.c */
void route_to_child(struct node *node, struct child *child, const struct message *m);
/* To the monitor of a CPU that should be here, which then looks; an error in the log if it is not. */
void route_to_cpu(struct node *node, unsigned cpu, const struct message *m);
void route_interrupt(struct node *node, const struct msg_interrupt *interrupt); /* to wherever its CPUs are */
/* A daemon breaks the rules of the messages, or is of another version: that ends the machine, or, if it only joins, its part. */
void route_peer_is_wrong(struct node *node, unsigned peer, const char *why);
/* A net_deliver_fn: what has arrived for the roles of this node. `ctx`: the node. */
void route_deliver(void *ctx, const struct message *m);
extern const struct conn_handler route_monitor_handler, route_iosrv_handler;
void route_start_cpu(struct node *node, unsigned cpu, uint32_t eip);

/* clients.c */
void clients_listen(struct node *node);
void clients_close(struct node *node);
bool clients_have_run(const struct node *node);
/* This daemon cannot go on: tell `vmp run` why, waiting a moment for it if it is not connected yet. */
void clients_last_words(struct node *node, const char *line);
/* To the run client only; to all; returns false if nobody was there. */
bool clients_send_run(struct node *node, const struct msg_header *header, const void *body);
void clients_send_all(struct node *node, enum msg_type type, const void *body, uint32_t body_bytes, const void *payload,
		      uint32_t payload_bytes);
/* Console output: client number, or CONSOLE_ALL. */
void clients_send_console(struct node *node, const struct msg_header *header, const void *body);
/* A query's sequence number with the client's slot in its upper half, for clients_send_answer(). */
uint32_t clients_tag(unsigned client, uint32_t seq);
/* The answer to a query: msg_dump.seq, msg_stats.seq, msg_pages.seq carry the client's slot in their upper half. */
void clients_send_answer(struct node *node, const struct msg_header *header, const void *body);

/* overlay.c */
void overlay_start(struct node *node);
bool overlay_reaches(const struct node *node, unsigned peer); /* its greeting has come */
bool overlay_complete(const struct node *node);		      /* those of all have */
/* Node 0: host `peer` listens at "ADDRESS PORT DESTINATION": connect to it, or, if that fails, by ssh to DESTINATION. */
void overlay_dial(struct node *node, unsigned peer, const char *where, size_t bytes);
void overlay_flush(struct node *node);			      /* before this daemon dies: its last words go out */
void overlay_close(struct node *node);

/* pagestore.c */
void pagestore_start(struct node *node);
void pagestore_want(struct node *node, const struct msg_page_want *want);
/* At the start, on the host that has them: these pages hold data, with the right to write. */
void pagestore_preloaded(struct node *node, gfn_t first, uint32_t count);

/* guest_load.c: 0, or -1 with one line in `why`. Fills preloaded. */
int guest_load(struct node *node, char *why, size_t why_bytes);

/* node_stats.c */
void node_stats_send(struct node *node, uint32_t seq);
void node_pages_send(struct node *node, uint32_t seq);
void node_stats_log(struct node *node);

#endif
