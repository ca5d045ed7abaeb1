/* running.h - a pipeline that runs: what join.c joins, and pipeline.c starts and attends. */
#ifndef VPG_RUNNING_H
#define VPG_RUNNING_H

#include <sys/types.h>
#include "vpg/shell/pipeline.h"
#include "vpg/shell/plan.h"
#include "vpg/shell/pumps.h"

/* One process of a part: a part has several if it names a group of computers. */
struct running {
	const char *nick;	/* NULL: here */
	char **words;
	size_t n_words;
	bool of_group;
	pid_t pid;		/* here; 0: elsewhere */
	int fd[3];		/* here: its streams; -1: the shell's own */
	uint64_t io[3], stream[3];
	const char *at[3];	/* elsewhere: as SPAWN says them */
	bool terminal;		/* elsewhere: it has one */
	bool done;
	int status;
};

struct pipeline {
	struct executor *x;
	struct plan plan;
	struct running *runs;
	size_t n_runs;
	size_t *first;		/* of each part: its first run; of `plan.n`: n_runs */
	struct group *groups;	/* of each part: whom its group names */
	struct pumps pumps;
	uint64_t job, last_stream;
	int signals_sent;
	bool interrupted;	/* by a first Ctrl-C */
	bool failed;		/* vmp's own failure */
};

/* Says why vmp itself has failed; returns -1. */
int join_fail(struct pipeline *p, const char *what, const char *why);
/* Makes the runs of all parts.  Returns 0 or -1. */
int join_make(struct pipeline *p);
/* Joins them: opens files and pipes, and numbers streams.  Returns 0; or -1: vmp has failed, or
 * else a file of this computer cannot be opened, and that is the command's failure. */
int join_all(struct pipeline *p);

#endif
