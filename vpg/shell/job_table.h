/* job_table.h - the jobs that the shell has started: each is a copy of the shell in a process group
 * of its own, which runs one line. */
#ifndef VPG_JOB_TABLE_H
#define VPG_JOB_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { JOBS_MAX = 256, JOB_TEXT = 80 };

struct job {
	int number;		/* from 1; 0: the entry is free */
	pid_t pid;		/* of the copy, and of its process group */
	bool stopped, done;
	bool stays;		/* a command under nohup: the shell does not wait for it to end */
	int status;		/* of a job that is done, as a shell counts it */
	char text[JOB_TEXT];
};

/* Adds a job.  Returns NULL if there are too many. */
struct job *job_add(pid_t pid, const char *text);
/* Returns the job that the word %N names.  With NULL: the job that was stopped or started last; if
 * it is gone, the one with the highest number.  Returns NULL if there is none. */
struct job *job_find(const char *word);
/* Returns the next job with a number higher than `after`, or NULL. */
struct job *job_next(int after);
/* Notes which jobs have ended, were stopped or were continued. */
void jobs_note(void);
/* Prints the state of the jobs, and removes those that are done.  `all`: prints running jobs,
 * too. */
void jobs_print(bool all);
/* Continues a job and waits until it has ended or was stopped; prints if it was stopped.  Meanwhile
 * the job has the terminal if `terminal`.  Returns its status; 148 means that it was stopped.  A
 * job that has ended is removed. */
int job_foreground(struct job *j, bool terminal);
/* Sends a signal to the whole job.  Returns 0 or -errno. */
int job_signal(struct job *j, int number);
/* Waits for a job without continuing it.  Returns its status, or 130 after Ctrl-C.  The job is
 * removed. */
int job_wait(struct job *j);
/* Sends SIGHUP to all jobs, also to stopped ones. */
void jobs_hang_up(void);

#endif
