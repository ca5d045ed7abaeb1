/* job_table.c - see job_table.h. */
#include "vpg/shell/job_table.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include "vpg/shell/signals.h"

enum { STOPPED_STATUS = 128 + SIGTSTP, INTERRUPTED_STATUS = 128 + SIGINT };

static struct job jobs[JOBS_MAX];
static int latest;	/* number of the job that was stopped or started last */

struct job *job_next(int after)
{
	struct job *best = NULL;

	for (size_t i = 0; i < JOBS_MAX; i++)
		if (jobs[i].number > after && (!best || jobs[i].number < best->number))
			best = jobs + i;
	return best;
}

struct job *job_add(pid_t pid, const char *text)
{
	int number = 1;

	for (struct job *j = NULL; (j = job_next(j ? j->number : 0)); )
		number = j->number + 1;
	for (size_t i = 0; i < JOBS_MAX; i++)
		if (!jobs[i].number) {
			jobs[i] = (struct job){ .number = number, .pid = pid };
			snprintf(jobs[i].text, JOB_TEXT, "%s", text);
			latest = number;
			return jobs + i;
		}
	return NULL;
}

static void remove_job(struct job *j)
{
	*j = (struct job){ 0 };
}

static struct job *of_number(int number)
{
	for (size_t i = 0; i < JOBS_MAX; i++)
		if (jobs[i].number && jobs[i].number == number)
			return jobs + i;
	return NULL;
}

struct job *job_find(const char *word)
{
	struct job *last = NULL;

	if (word)
		return *word == '%' ? of_number(atoi(word + 1)) : NULL;
	if (of_number(latest))
		return of_number(latest);
	for (struct job *j = NULL; (j = job_next(j ? j->number : 0)); )
		last = j;
	return last;
}

/* ---- changes ---- */

static void note(struct job *j, int status)
{
	if (WIFSTOPPED(status)) {
		j->stopped = true;
		latest = j->number;
	} else if (WIFCONTINUED(status)) {
		j->stopped = false;
	} else {
		j->done = true;
		j->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

void jobs_note(void)
{
	int status;

	shell_signals.child_changed = 0;
	for (size_t i = 0; i < JOBS_MAX; i++)
		while (jobs[i].number && !jobs[i].done &&
		       waitpid(jobs[i].pid, &status, WNOHANG | WUNTRACED | WCONTINUED) > 0)
			note(jobs + i, status);
}

static void print_one(const struct job *j)
{
	char done[32];

	snprintf(done, sizeof done, j->status ? "exit %d" : "done", j->status);
	printf("[%d]  %-10s %s\n", j->number, j->done ? done : j->stopped ? "stopped" : "running",
	       j->text);
}

void jobs_print(bool all)
{
	jobs_note();
	for (struct job *j = job_next(0); j; ) {
		int number = j->number;

		if (all || j->done)
			print_one(j);
		if (j->done)
			remove_job(j);
		j = job_next(number);
	}
	fflush(stdout);
}

/* ---- waiting ---- */

/* Waits until the job has ended or was stopped, or the shell itself is to end or was
 * interrupted. */
static void await(struct job *j, int seen)
{
	jobs_note();
	while (!j->done && !j->stopped && !shell_signals.ended_by &&
	       shell_signals.interrupted == seen) {
		ppoll(NULL, 0, NULL, &shell_signals.waiting);
		jobs_note();
	}
}

int job_signal(struct job *j, int number)
{
	if (j->done)
		return -ESRCH;
	if (kill(-j->pid, number))
		return -errno;
	if (j->stopped && (number == SIGTERM || number == SIGHUP || number == SIGINT ||
			   number == SIGCONT)) {
		kill(-j->pid, SIGCONT);
		j->stopped = false;
	}
	return 0;
}

static int status_after(struct job *j)
{
	int status = j->done ? j->status : j->stopped ? STOPPED_STATUS : INTERRUPTED_STATUS;

	if (j->done)
		remove_job(j);
	return status;
}

int job_foreground(struct job *j, bool terminal)
{
	struct termios mode;
	bool kept = terminal && !tcgetattr(0, &mode);

	if (terminal)
		tcsetpgrp(0, j->pid);
	if (j->stopped) {
		j->stopped = false;
		kill(-j->pid, SIGCONT);
	}
	await(j, shell_signals.interrupted);
	if (terminal)
		tcsetpgrp(0, getpgrp());
	if (kept)
		tcsetattr(0, TCSADRAIN, &mode);
	if (j->stopped) {
		if (terminal)
			putchar('\n');
		print_one(j);
		fflush(stdout);
	}
	return status_after(j);
}

int job_wait(struct job *j)
{
	await(j, shell_signals.interrupted);
	return status_after(j);
}

void jobs_hang_up(void)
{
	for (struct job *j = job_next(0); j; j = job_next(j->number)) {
		kill(-j->pid, SIGHUP);
		kill(-j->pid, SIGCONT);
	}
}
