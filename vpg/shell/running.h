/* running.h - a pipeline that runs: join.c makes and connects it, and pipeline.c starts and serves
 * it. */
#ifndef VPG_RUNNING_H
#define VPG_RUNNING_H

#include <sys/types.h>
#include "vpg/shell/pipeline.h"
#include "vpg/shell/plan.h"
#include "vpg/shell/pumps.h"

/* One process of a part.  A part has several processes if it names a group of computers. */
struct running {
	const char *nick;	/* NULL: here */
	char **words;
	size_t n_words;
	bool of_group;
	pid_t pid;		/* if it runs here; 0: elsewhere */
	int fd[3];		/* here: its streams; -1: the shell's own */
	uint64_t io[3], stream[3];
	const char *at[3];	/* elsewhere: as SPAWN says them */
	bool terminal;		/* elsewhere: it has a terminal */
	bool done;
	int status;
};

struct pipeline {
	struct executor *x;
	struct plan plan;
	struct running *runs;
	size_t n_runs;
	size_t *first;		/* index of each part's first run; first[plan.n] is n_runs */
	struct group *groups;	/* for each part: the computers that its group names */
	struct pumps pumps;
	uint64_t job, last_stream;
	int signals_sent;
	bool interrupted;	/* by a first Ctrl-C */
	bool failed;		/* vmp itself has failed */
};

/* Reports why vmp itself has failed; returns -1. */
int join_fail(struct pipeline *p, const char *what, const char *why);
int join_gone(struct pipeline *p);	/* the same: the connection to the daemon has broken */
/* Makes the runs of all parts.  Returns 0 or -1. */
int join_make(struct pipeline *p);
/* Connects them: opens files and pipes, and numbers streams.  Returns 0; or -1 if vmp has failed,
 * or if a file of this computer cannot be opened, which is the command's failure. */
int join_all(struct pipeline *p);

#endif
