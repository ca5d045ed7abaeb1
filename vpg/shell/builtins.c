/* builtins.c - see builtins.h. */
#include "vpg/shell/builtins.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "vpg/shell/job_table.h"
#include "vpg/shell/signals.h"
#include "vpg/shell/own_terminal.h"

static int wrong(const char *what, const char *word)
{
	log_error("%s%s", what, word ? word : "");
	return 1;
}

static int run_cd(struct executor *x, const struct line_stage *s)
{
	const char *folder = s->n_words > 1 ? s->words[1] : getenv("HOME");

	(void)x;
	if (folder && !chdir(folder))
		return 0;
	log_error("cd: %s: %s", folder ? folder : "HOME", strerror(errno));
	return 1;
}

static int run_exit(struct executor *x, const struct line_stage *s)
{
	x->exits = true;
	return s->n_words > 1 ? atoi(s->words[1]) & 255 : x->status;
}

static int run_set(struct executor *x, const struct line_stage *s)
{
	if (s->n_words != 3 || strcmp(s->words[2], "pipefail") ||
	    (strcmp(s->words[1], "-o") && strcmp(s->words[1], "+o")))
		return wrong("set knows -o pipefail and +o pipefail", NULL);
	x->pipefail = s->words[1][0] == '-';
	return 0;
}

/* ---- jobs ---- */

/* Returns the job that the first word behind the command's name names, or the latest job; NULL
 * after one line. */
static struct job *job_of(const struct line_stage *s, size_t word)
{
	struct job *j;

	jobs_note();
	j = job_find(s->n_words > word ? s->words[word] : NULL);
	if (!j)
		log_error("%s: no such job: %s", s->words[0],
			  s->n_words > word ? s->words[word] : "there is none");
	return j;
}

static int run_jobs(struct executor *x, const struct line_stage *s)
{
	(void)x, (void)s;
	jobs_print(true);
	return 0;
}

static int run_fg(struct executor *x, const struct line_stage *s)
{
	struct job *j = job_of(s, 1);

	if (!j)
		return 1;
	printf("%s\n", j->text);
	fflush(stdout);
	return job_foreground(j, x->interactive && terminal_is_own());
}

static int run_bg(struct executor *x, const struct line_stage *s)
{
	struct job *j = job_of(s, 1);

	(void)x;
	return j && !job_signal(j, SIGCONT) ? 0 : 1;
}

static int run_wait(struct executor *x, const struct line_stage *s)
{
	struct job *j;

	if (s->n_words == 1) {
		execute_wait(x);
		return 0;
	}
	j = job_of(s, 1);
	return j ? job_wait(j) : 127;
}

static int run_kill(struct executor *x, const struct line_stage *s)
{
	size_t word = 1;
	int number = SIGTERM, error;
	struct job *j;

	(void)x;
	if (s->n_words > 1 && s->words[1][0] == '-') {
		number = signals_number(s->words[1] + 1);
		word = 2;
	}
	if (!number)
		return wrong("kill: no such signal: ", s->words[1]);
	j = job_of(s, word);
	error = j ? job_signal(j, number) : 0;
	if (error)
		log_error("kill: %s: %s", s->words[word], strerror(-error));
	return !j || error;
}

/* ---- all ---- */

static const struct builtin {
	const char *word;
	int (*function)(struct executor *, const struct line_stage *);
	bool of_jobs;	/* it is a builtin only if its last word names a job */
} builtins[] = {
	{ "cd", run_cd, false },     { "exit", run_exit, false }, { "set", run_set, false },
	{ "jobs", run_jobs, false }, { "fg", run_fg, false },	  { "bg", run_bg, false },
	{ "wait", run_wait, false }, { "kill", run_kill, true },
};

int builtin_run(struct executor *x, const struct line_stage *s)
{
	if (s->nick || s->after == AFTER_PIPE)
		return -1;
	for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
		if (!strcmp(s->words[0], builtins[i].word) &&
		    (!builtins[i].of_jobs || s->words[s->n_words - 1][0] == '%'))
			return builtins[i].function(x, s);
	return -1;
}
