/* signals.h - the signals that the shell catches.  They arrive while it waits in ppoll() with
 * `shell_signals.waiting`, and at no other time. */
#ifndef VPG_SIGNALS_H
#define VPG_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct shell_signals {
	volatile sig_atomic_t interrupted;	/* how many SIGINT have come */
	volatile sig_atomic_t ended_by;		/* SIGTERM or SIGHUP; 0: none */
	volatile sig_atomic_t child_changed;	/* SIGCHLD */
	volatile sig_atomic_t stop_asked;	/* SIGTSTP */
	volatile sig_atomic_t resized;		/* SIGWINCH */
	volatile sig_atomic_t user;		/* SIGUSR1 or SIGUSR2, to be passed on; 0: none */
	sigset_t waiting;
};
extern struct shell_signals shell_signals;

void signals_prepare(void);
/* Restores the signals as they were before.  For a child that becomes another program. */
void signals_forget(bool ignores_hangup);
/* Stops this process, as SIGTSTP does by default.  Returns when it is continued, or at once where
 * nobody could continue it. */
void signals_stop(void);
/* Returns the number of a signal from its name (TERM, SIGTERM, 15); 0 if there is none. */
int signals_number(const char *name);

#endif
