/* job_table.h - what the shell has started besides what it waits for: each job is a copy of the
 * shell in a process group of its own, which runs one line. */
#ifndef VPG_JOB_TABLE_H
#define VPG_JOB_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { JOBS_MAX = 256, JOB_TEXT = 80 };

struct job {
	int number;		/* from 1; 0: the entry is free */
	pid_t pid;		/* and its process group */
	bool stopped, done;
	int status;		/* of a done one, as a shell counts it */
	char text[JOB_TEXT];
};

/* Adds one.  NULL: there are too many. */
struct job *job_add(pid_t pid, const char *text);
void job_remove(struct job *j);
/* Of a word: %N, or NULL: the last one that was stopped, or else that was started.  NULL: none. */
struct job *job_find(const char *word);
/* The next one of a number higher than `after`, or NULL. */
struct job *job_next(int after);
/* Notes whose jobs have ended, were stopped or continued. */
void jobs_note(void);
/* Prints what the jobs do; those that are done are removed.  `all`: also what runs. */
void jobs_print(bool all);
/* Continues a job and waits until it has ended or was stopped; then prints that.  With a terminal,
 * the job has it meanwhile.  Returns its status; 148: it was stopped.  A job that has ended is
 * removed. */
int job_foreground(struct job *j, bool terminal);
/* Sends a signal to the whole job.  Returns 0 or -errno. */
int job_signal(struct job *j, int number);
/* Waits for it without continuing it.  Returns its status, or 130: Ctrl-C; the job is removed. */
int job_wait(struct job *j);
/* SIGHUP for all, stopped ones too. */
void jobs_hang_up(void);

#endif
