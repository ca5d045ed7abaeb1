/* sim.h - a cluster in one process, under a seed: what its files share.
 *
 *   main.c     the command line: seeds, faults, what to print
 *   events.c   the clock: an ordered queue of what happens next; random numbers
 *   cluster.c  nodes: their memory, the network between them, the invariants
 *   pages.c    the callbacks of dsm/ (dsm-sim)
 *   daemon_pages.c  replaces pages.c: the daemons' own code gives and takes pages (daemon-sim)
 *   hosts.c    homes that move, nodes that join and leave, processors that move (dsm-sim)
 *   daemons.c  replaces hosts.c: the same by the daemons' own code, with faults at its steps
 *              (daemon-sim); daemon_world.c has what that code calls
 *   cpu.c      virtual processors: in order, with or without a store buffer; each access is checked
 *   litmus.c   the litmus tests and their forbidden outcomes
 *
 * The page protocol runs here exactly as in the node daemon.  Messages keep their order between two
 * nodes and nothing else: each pair has its own, changing delay.  There is one total order of all
 * stores, that of the simulator's steps; every load is checked against it.
 */
#ifndef TESTS_SIM_H
#define TESTS_SIM_H

#include "dsm/dsm.h"

enum {
	SIM_MAX_PAGES = 6,
	SIM_MAX_CPUS = 8,
	SIM_MAX_OPS = 48,
	SIM_BUFFER_MAX = 4,
	/* used words of each page; the first SIM_STRESS_WORDS by random accesses, then litmus
	 * rounds */
	SIM_WORDS = 128,
	SIM_STRESS_WORDS = 4,
	SIM_MAX_DELAY_NS = 2000000,
};

enum sim_op_kind { OP_LOAD, OP_STORE, OP_EXCHANGE, OP_FENCE, OP_PAUSE };

struct sim_op {
	uint8_t kind, page, word;
	uint32_t value;	 /* to store; OP_PAUSE: ns */
	uint32_t result; /* loaded */
};

struct sim_cpu {
	unsigned node, n_ops, next_op;
	struct sim_op ops[SIM_MAX_OPS];
	/* stores not yet in memory, oldest first */
	struct { uint8_t page, word; uint32_t value; } buffer[SIM_BUFFER_MAX];
	unsigned buffered, depth;
	unsigned waits_for; /* page + 1 */
	enum page_right waits_right;
	uint64_t waits_since;
	unsigned granted; /* page + 1: the CPU may go on, and has not yet */
	bool done;
	bool held, stepped; /* held: it stands still. stepped: its next step has been due since. */
};

struct sim_node {
	struct dsm *dsm;
	unsigned index;
	_Atomic uint8_t *right; /* the rights of its processors, one for each page */
	int ram_fd;
	uint8_t *ram;
	uint32_t *memory[SIM_MAX_PAGES]; /* its pages */
};

struct sim {
	uint64_t seed, random, now_ns;
	unsigned n_nodes, n_pages, n_cpus;
	uint32_t present, leaving; /* bit sets of nodes */
	unsigned changes; /* at most so many changes of the nodes in a run; 0: none */
	/* of the store buffers in this run; 0: sequential consistency is expected */
	unsigned depth;
	bool expect_fault; /* a fault point is on: count errors instead of stopping */
	bool verbose;
	/* the machine has ended in the middle, as it may; the rest of the run means nothing */
	bool ended;
	/* a part of the machine is lost, and it has not gone back yet: no CPU need make progress */
	bool broken;
	/* rights to write are lowered now and then, and come back when they are needed */
	bool lowers;
	unsigned runs; /* calls of cluster_run() so far */
	/* in this run, to before its start: the results of its programs mean nothing */
	bool went_back;
	struct sim_node nodes[MAX_NODES];
	struct sim_cpu cpus[SIM_MAX_CPUS];
	unsigned cpus_running;
	uint32_t latest[SIM_MAX_PAGES][SIM_WORDS]; /* the witness: what a load must return now */
	uint32_t next_value;
	uint64_t last_delivery[MAX_NODES][MAX_NODES]; /* first in, first out */
	uint64_t slow_until[MAX_NODES][MAX_NODES];
	const char *fault_name; /* for the command that repeats a failure */
	/* counts */
	uint64_t stale_loads, broken_invariants, forbidden[16], steps, messages, litmus_rounds,
		moves, joins, leaves;
};

/* events.c */
enum sim_event_kind {
	EVENT_DELIVER,
	EVENT_CPU,
	EVENT_RETRY,
	EVENT_POKE,
	EVENT_WATCH,
	EVENT_CHANGE,
	EVENT_HOST
};
struct sim_event {
	uint64_t at_ns, order;
	uint8_t kind, to_home;
	uint8_t node, from; /* EVENT_CPU: node is the CPU's number */
	uint16_t type;
	struct msg_dsm body; /* EVENT_RETRY, EVENT_POKE: gfn */
	vnode_t to;
	struct msg_home home; /* EVENT_HOST */
	void *payload;
	uint32_t payload_bytes;
};
void events_clear(void);
void events_add(const struct sim_event *event);
bool events_next(struct sim_event *event);
bool events_only_watch(void); /* nothing but EVENT_WATCH is left */
bool events_any(bool (*is_one)(const struct sim_event *event, unsigned node), unsigned node);
/* drops the events for which is_gone() returns true */
void events_forget(bool (*is_gone)(const struct sim_event *event));
uint32_t sim_random(struct sim *sim, uint32_t below);
bool sim_chance(struct sim *sim, uint32_t percent);

/* cluster.c */
/* Sends an event from one node to another, behind earlier ones.  The payload is copied. */
void cluster_send(struct sim *sim, unsigned from, unsigned to, struct sim_event *event,
		  const void *payload, uint32_t payload_bytes);
void cluster_begin(struct sim *sim);
void cluster_end(struct sim *sim);
void cluster_run(struct sim *sim); /* until every CPU is done and nothing is in flight */
void cluster_watch(struct sim *sim); /* called regularly while CPUs run */
void cluster_check_idle(struct sim *sim);
void cluster_check_rights(struct sim *sim, gfn_t gfn); /* call it after each raise of a right */
void cluster_make_ram(struct sim_node *node, unsigned n_pages); /* new, all zero */
unsigned cluster_home_of(struct sim *sim, gfn_t gfn); /* the one node that serves the page */
void sim_fail(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* pages.c, daemon_pages.c */
_Atomic uint8_t *pages_rights(unsigned node); /* where the rights of a node's pages are kept */
void pages_new_node(struct sim *sim, unsigned node, unsigned n_nodes); /* makes its memory */
void pages_end_node(struct sim *sim, unsigned node);
void pages_preloaded(struct sim *sim, gfn_t gfn, unsigned owner);
void pages_want(struct sim *sim, unsigned cpu, gfn_t gfn, enum page_right right);
/* The host itself may take the page from its CPUs now, though they have not run with it. */
/* The host wants the page, and no CPU waits for it. */
void pages_fetch(struct sim *sim, unsigned node, gfn_t gfn, enum page_right right);
void pages_give_up(struct sim *sim, unsigned node, gfn_t gfn);
void pages_run(struct sim *sim, unsigned cpu); /* the CPU runs with the page that it got */
void pages_look(struct sim *sim); /* after each event */

/* hosts.c */
void hosts_open(struct sim *sim);
void hosts_homes(struct sim *sim); /* the homes are where they begin */
void hosts_plan(struct sim *sim); /* plans a run's changes */
void hosts_change(struct sim *sim, struct sim_event *event);
void hosts_on_event(struct sim *sim, struct sim_event *event);
void hosts_send_home(struct sim *sim, unsigned from, const struct msg_home *body,
		     const void *payload, uint32_t bytes);
void hosts_watch(struct sim *sim);
/* returns true if the event is dropped, since a daemon has died */
bool hosts_lost(struct sim *sim, const struct sim_event *event);
void hosts_close(struct sim *sim);
void hosts_check_idle(struct sim *sim);
int hosts_report(void); /* prints a line for all seeds, and returns the exit status */

/* cpu.c */
bool cpu_move(struct sim *sim, unsigned cpu, unsigned node); /* false: the CPU waits for a page */
void cpu_hold(struct sim *sim, unsigned cpu); /* stops it at its next step, until: */
void cpu_go(struct sim *sim, unsigned cpu);
void cpu_start(struct sim *sim, unsigned cpu, uint32_t delay_ns);
void cpu_step(struct sim *sim, unsigned cpu);
void cpu_add(struct sim_cpu *cpu, enum sim_op_kind kind, unsigned page, unsigned word,
	     uint32_t value);
/* the page has come: for all CPUs of the node that wait for it (cpu_ready), or for one CPU
 * (cpu_answered) */
void cpu_ready(struct sim *sim, unsigned node, gfn_t gfn, enum page_right right);
void cpu_answered(struct sim *sim, unsigned cpu);
bool cpu_holds(struct sim *sim, unsigned node, gfn_t gfn);
void cpu_watch(struct sim *sim);
void cpu_random_program(struct sim *sim, unsigned cpu, unsigned n_ops);

/* litmus.c */
extern const unsigned litmus_count;
const char *litmus_name(unsigned test);
bool litmus_tso_allows(unsigned test);
void litmus_round(struct sim *sim, unsigned word);

#endif
