/* query_private.h - a command that asks a running machine, and what its parts are to each other. */
#ifndef VMM_CLI_QUERY_QUERY_PRIVATE_H
#define VMM_CLI_QUERY_QUERY_PRIVATE_H

#include "base/dispatch.h"
#include "vmm/cli/client.h"
#include "vmm/cli/cluster/host_names.h"
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
	uint32_t to_host; /* of cpu move, host remove */
	struct host_names names;
	struct msg_hosts hosts;
	void (*start)(struct query *); /* NULL once it has */
	struct event *limit, *typed, *window, *back, *signals[4];
	struct escape escape;
	bool raw, done;
	uint32_t kind;	/* of client */
	unsigned tries; /* console, top: the machine may be going back to a checkpoint */
	bool told;	/* of that */
	uint64_t yields_ns; /* host 0 shall go: since when; the machine comes back without it */
	bool until_end; /* the machine's end is a good end of this command */
	int status;
	struct problem why;
	/* regs: each CPU's text as it comes in parts */
	char *dump[MAX_CPUS];
	size_t dump_bytes[MAX_CPUS];
	bool dump_done[MAX_CPUS];
	uint32_t dump_host[MAX_CPUS];
	/* pages */
	struct pageheat heat;
	bool asks_pages, node_done[MAX_NODES];
	/* status, top */
	struct status_look before, now;
	struct event *again;
	bool live;	/* top */
	bool progress_shown; /* host */
};

uint64_t query_now_ns(void);
/* query.c: the first reason to end wins; `line`: what went wrong, or "". */
void query_end(struct query *q, int status, const char *line);

/* console.c */
void console_start(struct query *q);
void console_attach_again(struct query *q);

/* dumps.c: regs, and pages */
void regs_start(struct query *q);
void regs_print(struct query *q);
void pages_start(struct query *q);
void pages_check(struct query *q); /* that may have been the last answer */
void pages_print(struct query *q);

/* looks.c: status, and top */
void look_start_status(struct query *q);
void look_start_top(struct query *q);
void look_anew(struct query *q); /* all that is counted begins anew */
void look_check(struct query *q); /* that may have been the last answer */
void look_print_status(struct query *q);

/* changes.c: down, cpu move, host add and remove, policy */
int change_find_host(struct query *q); /* what was typed may be a host's name in the cluster file; 0, or -1 with q->why */
void change_start_down(struct query *q);
void change_start_move(struct query *q);
void change_start_host(struct query *q);
void change_start_policy(struct query *q);
void change_hide_progress(struct query *q);
void change_has_yielded(struct query *q); /* the machine is there again: has host 0 gone? */
void change_has_gone(struct query *q, const char *where); /* with all of the machine, there */

/* query_back.c: console and top go on when a machine goes back to a checkpoint, or host 0 has gone, and who asked for that hears of it.
 * False: this machine does not come back, or this command ends. */
bool query_wait_for_machine(struct query *q);
/* Host 0 goes just now: the machine comes back on the others. */
bool query_yields(const struct query *q);

/* What the node daemon tells it, each in the file of what was asked: base/msg.def. */
#define NODE_TO_QUERY(name, how, handler) HANDLER_##how(struct query *q, name, handler)
#include "base/msg.def"

#endif
