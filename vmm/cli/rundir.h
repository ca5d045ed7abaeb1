/* rundir.h - where a running machine's sockets live: ${XDG_RUNTIME_DIR:-/tmp/vmp-UID}/vmp/NAME, for the owner alone.
 *
 * The `vmp run` (or keeper of `vmp up`) that made the folder holds a lock on its file `lock` while it lives: a folder whose lock is free belongs to
 * a dead machine and is cleaned away by whoever meets it.  The file `machine` holds what other commands must know; `secret`,
 * mode 0600, is random, and proves that a daemon belongs to this machine.
 */
#ifndef VMM_CLI_RUNDIR_H
#define VMM_CLI_RUNDIR_H

#include <sys/types.h>
#include "base/limits.h"
#include "base/machine.h"
#include "base/types.h"
#include "vmm/shared/problem.h"

enum { RUNDIR_PATH = 92 }; /* so that PATH/control.sock and PATH/node-31.sock fit into a sockaddr_un */

struct rundir {
	char path[RUNDIR_PATH];
	char name[MAX_NAME];
	int lock_fd;
};

struct machine_info {
	struct machine machine; /* what MACHINE_INFO reads; the hosts that it has now */
	pid_t pid; /* of its `vmp run`, or of the keeper of `vmp up` */
	uint32_t yields;  /* 1: host 0 goes just now, and the machine comes back on the others */
	uint32_t yielded; /* how many times it has gone */
	char standby[MAX_NAME]; /* the host that would go on with it; "": none */
	char elsewhere[256];	/* it is none here any more: where it goes on, for people */
	char kernel[4096];
};

/* Make and claim the folder. A NULL name is replaced by one from the process id. 0, or -1 with the problem. */
int rundir_claim(struct rundir *dir, const char *name, struct problem *p);
void rundir_write_info(const struct rundir *dir, const struct machine_info *info);
/* Another secret than before. 0, or -1 with the problem. */
int rundir_make_secret(const struct rundir *dir, struct problem *p);
/* Remove the folder with all in it and drop the lock. */
void rundir_release(struct rundir *dir);

/* Find a running machine: by name, or the only one. `dir->lock_fd` stays -1. 0, or -1 with the problem. */
int rundir_find(struct rundir *dir, const char *name, struct problem *p);
/* Wait until the machine of a folder found is no more. 0, or -ETIMEDOUT. */
int rundir_wait_gone(const struct rundir *dir, unsigned limit_ms);
int rundir_read_info(const struct rundir *dir, struct machine_info *info, struct problem *p);

#endif
