/* peers.h - hosts that are computers of the user's network (vmp-peer(1)): `vmp run --peers N`.
 *
 * The daemon of that network chooses and reserves them.  `vmp` starts vmp-peer, which asks it and
 * passes its connection to the daemon on: as long as `vmp` has it open, the computers are reserved.
 * From then on they are hosts of a cluster, and vmp-rsh stands where ssh would.
 */
#ifndef VMM_CLI_CLUSTER_PEERS_H
#define VMM_CLI_CLUSTER_PEERS_H

#include <stdbool.h>
#include <sys/types.h>
#include "base/limits.h"
#include "base/types.h"
#include "vmm/shared/problem.h"

enum { PEERS_TEXT = 8192 };

struct peers_wish {
	uint32_t others, cpus; /* computers besides this one; processors of all together */
	uint32_t mem_mib;      /* of each: how much the machine may use there */
	uint32_t min_mib;      /* and how much it must have free */
	const char *how;       /* near, spread or concentrate */
	const char *nick;      /* this computer alone; or NULL */
};

/* A question to the daemon. */
struct peers_asked {
	pid_t pid;
	int fd;	  /* where the answer comes */
	int held; /* the connection that holds the loans; -1: not yet */
	char text[PEERS_TEXT]; /* the answer: lines of a cluster file */
	size_t bytes;
};

/* Starts to ask.  Returns 0, or -1 with the problem. */
int peers_ask(struct peers_asked *a, const struct peers_wish *wish, struct problem *p);
/* Reads what has come.  wait: until it is whole.  Returns 0: it is not whole; 1: `text` is there,
 * and `held` is the caller's; or -1 with the problem.  After 1 or -1, fd is closed. */
int peers_read(struct peers_asked *a, bool wait, struct problem *p);
/* Gives the question up, and what it may have brought. */
void peers_drop(struct peers_asked *a);
/* What reserves a machine's computers: a connection for those that it began with, and one for each
 * that came later. */
struct peers_held {
	int first; /* -1: none */
	struct { char nick[MAX_HOST_NAME]; int fd; } later[MAX_NODES]; /* nick "": none */
};
void peers_held_begin(struct peers_held *held, int first);
/* Takes one more, which `fd` reserves. */
void peers_held_add(struct peers_held *held, const char *nick, int fd);
/* Gives one computer back. */
void peers_held_return(struct peers_held *held, const char *nick);
void peers_held_end(struct peers_held *held);
/* From now on vmp-rsh is started instead of ssh.  Returns 0, or -1 with the problem. */
int peers_use_rsh(struct problem *p);
/* The same in a process that was started by vmp-rsh: the environment says where that is, and the
 * programs of this computer's daemon lie beside it. */
int peers_use_rsh_of_here(struct problem *p);

#endif
