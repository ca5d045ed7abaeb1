/* execute.h - runs the lines of a shell. */
#ifndef VPG_EXECUTE_H
#define VPG_EXECUTE_H

#include "vpg/shell/line.h"
#include "vpg/wire/daemon_socket.h"

struct executor {
	struct daemon_socket daemon;	/* fd -1: not connected yet */
	bool pipefail;			/* a pipeline fails if one of its commands does */
	bool no_input;			/* standard input is /dev/null */
	bool keeps_streams;		/* under nohup, too, a command's streams are the shell's */
	bool terminal;			/* a lone command elsewhere gets a terminal */
	bool interactive;		/* a prompt: pipelines are jobs, and Ctrl-Z stops them */
	bool is_job;			/* this is a copy of the shell that runs a job */
	bool exits;			/* `exit` was typed */
	int status;			/* of the last line */
};

/* Must be called once, before the others. */
void execute_prepare(struct executor *x);
/* Runs a line; returns its status.  125 is a failure of vmp itself, with one line that says what
 * failed. */
int execute_line(struct executor *x, const struct line *l);
/* Parses and runs a text; prints one line if it is wrong. */
int execute_text(struct executor *x, const char *text, size_t n);
/* Waits for all jobs in the background, but not for stopped ones. */
void execute_wait(struct executor *x);
/* The same, but not for commands under nohup; then ends all jobs. */
void execute_leave(struct executor *x);
/* Ends all jobs, but for commands under nohup. */
void execute_end(struct executor *x);

#endif
