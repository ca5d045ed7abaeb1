/* outside.h - what a node daemon needs from outside besides its loop (vmm/shared/loop.h): the
 * overlay to the other daemons, its children, and facts about this computer. outside.c has the real
 * functions.  The simulator and the fuzzer of the daemon pass in their own
 * (tests/sim/daemon_outside.c, tests/fuzz/daemon.c), and run all other files as they are.
 */
#ifndef VMM_NODE_OUTSIDE_H
#define VMM_NODE_OUTSIDE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "vmm/shared/hostmem.h"
#include "vmm/shared/tsc.h"

struct child;
struct conn_handler;
struct node;

/* A program beside vmp-node. */
struct child_program {
	const char *name;
	char **arguments; /* [0] is set here; behind the last one there is room for three more */
	unsigned n_arguments;
	const int *keep; /* descriptors that stay open in the child */
	unsigned n_keep;
	const struct conn_handler *handler; /* of the connection to it */
};

struct outside {
	/* vmm/node/wire/overlay.c */
	bool (*reaches)(const struct node *node, unsigned peer); /* its greeting has arrived */
	bool (*reaches_all)(const struct node *node);
	/* Returns the bit set of the hosts from which nothing has come for half of the time after
	 * which a host is lost: longer than those that merely run late are silent (silence.h). */
	uint32_t (*silent)(const struct node *node);
	/* Node 0: host `peer` listens at "ADDRESS PORT DESTINATION".  Connects to it, or, if that
	 * fails, to DESTINATION by ssh. */
	void (*dial)(struct node *node, unsigned peer, const char *where, size_t bytes);
	/* Returns whether more has arrived behind the message that is being served. */
	bool (*has_more)(const struct node *node);
	/* What is sent between cork and uncork leaves together. */
	void (*cork)(struct node *node);
	void (*uncork)(struct node *node);
	void (*be_prompt)(struct node *node); /* from now on a loss costs only the way back */
	void (*flush)(struct node *node); /* before this daemon dies: sends its last messages */
	/* Returns whether the other daemons have received whatever this one has sent. */
	bool (*has_sent_all)(const struct node *node);

	/* Starts a program, with "--socket N" behind its arguments; sets pid and conn.  Returns 0,
	 * or -errno with the reason in `why`. */
	int (*start)(struct node *node, struct child *child, const struct child_program *program,
		     char *why, size_t why_bytes);
	void (*kill)(struct node *node, struct child *child, int signal_number);
	/* Returns a child that has ended, with its status as of waitpid(); 0: no more. */
	pid_t (*reap)(struct node *node, int *status);

	/* Returns false if the processors that this daemon may use are not known. */
	bool (*processors)(cpu_set_t *allowed);
	/* Binds a process, or with 0 this one.  Does nothing if the process has ended meanwhile. */
	void (*bind)(pid_t pid, const cpu_set_t *processors);
	uint32_t (*load_percent)(void); /* of this computer; 100: each processor has one process */
	void (*memory)(struct hostmem *memory, const char *root);
	struct tsc_mark (*tsc_mark)(void);
	uint32_t (*tsc_khz_since)(const struct tsc_mark *then);
	bool (*tsc_trusted)(void);
};

extern const struct outside outside_real;

#endif
