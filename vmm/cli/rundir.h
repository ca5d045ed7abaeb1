/* rundir.h - where a running machine's sockets are: ${XDG_RUNTIME_DIR:-/tmp/vmp-UID}/vmp/NAME,
 * which only its owner can open.
 *
 * The `vmp run`, or the keeper of `vmp up`, that made the folder holds a lock on its file `lock` as
 * long as it lives.  A folder whose lock is free belongs to a dead machine; the next vmp that meets
 * it removes it.  The file `machine` holds what other commands must know.  The file `secret`, mode
 * 0600, is random and proves that a daemon belongs to this machine.
 */
#ifndef VMM_CLI_RUNDIR_H
#define VMM_CLI_RUNDIR_H

#include <sys/types.h>
#include <time.h>
#include "base/limits.h"
#include "base/machine.h"
#include "base/types.h"
#include "vmm/shared/problem.h"

/* so that PATH/control.sock and PATH/node-31.sock fit into a sockaddr_un */
enum { RUNDIR_PATH = 92 };

struct rundir {
	char path[RUNDIR_PATH];
	char name[MAX_NAME];
	int lock_fd;
};

struct machine_info {
	struct machine machine; /* what MACHINE_INFO reads; the hosts that it has now */
	pid_t pid; /* the process of `vmp run`, or the keeper of `vmp up` */
	uint32_t background; /* 1: started by `vmp up` */
	uint32_t log_fd;     /* the descriptor, in process `pid`, to which the log is written */
	uint32_t yields;  /* 1: host 0 is leaving, and the machine comes back on the other hosts */
	uint32_t yielded; /* how many times host 0 has left */
	char standby[MAX_NAME]; /* the host that would take over; "": none */
	char elsewhere[256];	/* where the machine runs now, for people; "": here */
	char kernel[4096];
};

/* How long a name that is taken is waited for: a command that lists the machines tests each lock
 * for a moment; and a machine's owner that was killed may take some time to die. */
enum { RUNDIR_TESTED_MS = 20, RUNDIR_DIES_MS = 1000 };
/* Makes and claims the folder.  A NULL name is replaced by one from the process id.  Returns 0, or
 * -1 with the problem. */
int rundir_claim(struct rundir *dir, const char *name, unsigned wait_ms, struct problem *p);
void rundir_write_info(const struct rundir *dir, const struct machine_info *info);
/* Replaces the secret by a new one.  Returns 0, or -1 with the problem. */
int rundir_make_secret(const struct rundir *dir, struct problem *p);
/* Removes the folder with all that is in it, and releases the lock. */
void rundir_release(struct rundir *dir);

/* Lists the names of this user's running machines, sorted.  Returns 0, or -1 with the problem. */
enum { MAX_LISTED = 64 };
struct rundir_list { unsigned n; char name[MAX_LISTED][MAX_NAME]; };
int rundir_list(struct rundir_list *list, struct problem *p);
/* Returns when a listed machine was started, in seconds since 1970; 0 if that is not known. */
time_t rundir_since(const struct rundir *dir);

/* Finds a running machine by its name, or, if `name` is NULL, the only one.  `dir->lock_fd` stays
 * -1.  Returns 0, or -1 with the problem. */
int rundir_find(struct rundir *dir, const char *name, struct problem *p);
/* Waits until the machine of a folder that was found has ended.  Returns 0, or -ETIMEDOUT. */
int rundir_wait_gone(const struct rundir *dir, unsigned limit_ms);
int rundir_read_info(const struct rundir *dir, struct machine_info *info, struct problem *p);

#endif
