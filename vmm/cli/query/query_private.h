/* query_private.h - the state of a command that asks a running machine, and the functions that its
 * files call in each other. */
#ifndef VMM_CLI_QUERY_QUERY_PRIVATE_H
#define VMM_CLI_QUERY_QUERY_PRIVATE_H

#include "base/dispatch.h"
#include "vmm/cli/client.h"
#include "vmm/cli/cluster/host_names.h"
#include "vmm/cli/query/history.h"
#include "vmm/cli/query/pageheat.h"
#include "vmm/cli/query/query.h"
#include "vmm/cli/query/status.h"
#include "vmm/cli/rundir.h"
#include "vmm/cli/terminal.h"

struct query {
	const struct options *o;
	struct event_base *base;
	struct client client;
	struct rundir rundir;
	struct machine_info info;
	uint32_t to_host; /* the host of cpu move and host remove */
	struct host_names names;
	struct msg_hosts hosts;
	void (*start)(struct query *); /* starts the command; NULL once it has started */
	struct event *limit, *typed, *window, *back, *signals[4];
	struct escape escape;
	bool raw, done;
	uint32_t kind;	/* enum client_kind, as HELLO's index */
	/* console, top: how often the machine was looked for while it may be coming back */
	unsigned tries;
	bool told;	/* the user was told that the machine goes back */
	uint64_t yields_ns; /* when host 0 was asked to leave; 0: it was not */
	bool until_end; /* the machine's end ends this command with status 0 */
	int status;
	struct problem why;
	/* regs: each CPU's text, which arrives in parts */
	char *dump[MAX_CPUS];
	size_t dump_bytes[MAX_CPUS];
	bool dump_done[MAX_CPUS];
	uint32_t dump_host[MAX_CPUS];
	/* pages */
	struct pageheat heat;
	uint64_t synced, barrier_tells; /* of all hosts */
	bool asks_pages, node_done[MAX_NODES];
	struct frames *frames;
	/* status, top */
	struct status_look before, now;
	struct event *again;
	bool live;	/* top */
	bool execs;	/* exec */
	struct history history;
	bool progress_shown; /* host add, host remove */
};

/* Ends the command; the first call counts.  `line` is the error, or "". */
void query_end(struct query *q, int status, const char *line);

/* console.c */
void console_start(struct query *q);
void console_attach_again(struct query *q);

/* exec.c */
void exec_start(struct query *q);
void exec_stop(void);
bool exec_signal(int signal_number);	   /* false: this command ends by it */
const char *exec_lost(bool goes_back);	   /* why, when the connection is lost */

/* dumps.c: regs, and pages */
void dumps_start_regs(struct query *q);
void dumps_print_regs(struct query *q);
void dumps_start_pages(struct query *q);
void dumps_pages_check(struct query *q); /* Ends the command if this was the last answer. */
void dumps_print_pages(struct query *q);

/* frames.c: the guest's memory, as far as it has been read.  frames_page() waits for a page's
 * contents; NULL: there is no such page, or the machine does not answer. */
const uint8_t *frames_page(void *query, gfn_t gfn);
void frames_free(struct query *q);

/* looks.c: status, and top */
void look_start_status(struct query *q);
void look_start_top(struct query *q);
void look_anew(struct query *q); /* all counters start from 0 */
void look_check(struct query *q); /* takes the next step if this was the last answer */
void look_print_status(struct query *q);

/* changes.c: down, cpu move, host add and remove, policy */
/* finds the host that the user typed, perhaps by its name in the cluster file; 0, or -1 with
 * q->why */
int change_find_host(struct query *q);
void change_start_down(struct query *q);
void change_start_move(struct query *q);
void change_start_host(struct query *q);
void change_start_policy(struct query *q);
void change_hide_progress(struct query *q);
void change_has_yielded(struct query *q); /* the machine is back: checks whether host 0 has gone */
/* the whole machine has moved to `where` */
void change_has_gone(struct query *q, const char *where);

/* query_back.c: begins to wait for a machine that comes back.  Returns false if it does not come
 * back, or if this command ends instead. */
bool query_wait_for_machine(struct query *q);
/* Returns whether host 0 is leaving just now, so that the machine comes back on the others. */
bool query_yields(const struct query *q);
/* Returns whether host 0 is leaving, or has left since the command began: a command that runs late
 * finds that the machine is back already. */
bool query_yields_or_has(const struct query *q);

/* The handlers of the node daemon's messages (base/msg.def), each in the file of its command. */
#define NODE_TO_QUERY(name, how, handler) HANDLER_##how(struct query *q, name, handler)
#include "base/msg.def"

#endif
