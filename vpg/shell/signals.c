/* signals.c - see signals.h. */
#include "vpg/shell/signals.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct shell_signals shell_signals;

static const int watched[] = { SIGINT, SIGCHLD, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH, SIGUSR1,
			       SIGUSR2 };
enum { WATCHED = sizeof watched / sizeof *watched };

static void on_signal(int number)
{
	switch (number) {
	case SIGINT: shell_signals.interrupted++; break;
	case SIGCHLD: shell_signals.child_changed = 1; break;
	case SIGTSTP: shell_signals.stop_asked = 1; break;
	case SIGWINCH: shell_signals.resized = 1; break;
	case SIGUSR1:
	case SIGUSR2: shell_signals.user = number; break;
	default: shell_signals.ended_by = number;
	}
}

/* Returns whether the signal is to be caught.  A program that started the shell without job control
 * has ignored SIGTSTP: it stays ignored. */
static int is_wanted(int number)
{
	struct sigaction now;

	return number != SIGTSTP || sigaction(number, NULL, &now) || now.sa_handler != SIG_IGN;
}

void signals_prepare(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t block;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&block);
	for (size_t i = 0; i < WATCHED; i++) {
		if (is_wanted(watched[i]))
			sigaction(watched[i], &action, NULL);
		sigaddset(&block, watched[i]);
	}
	sigprocmask(SIG_BLOCK, &block, &shell_signals.waiting);
	for (size_t i = 0; i < WATCHED; i++)
		sigdelset(&shell_signals.waiting, watched[i]);
}

void signals_forget(bool ignores_hangup)
{
	sigset_t none;

	for (int n = 1; n < NSIG; n++)
		signal(n, n == SIGHUP && ignores_hangup ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void signals_stop(void)
{
	struct sigaction by_default = { .sa_handler = SIG_DFL }, before;
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	sigaction(SIGTSTP, &by_default, &before);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);	/* the process stops here */
	sigprocmask(SIG_BLOCK, &stop, NULL);
	sigaction(SIGTSTP, &before, NULL);
	shell_signals.stop_asked = 0;
}

int signals_number(const char *name)
{
	char *end;
	long number = strtol(name, &end, 10);

	if (*name && !*end)
		return number > 0 && number < NSIG ? (int)number : 0;
	if (!strncasecmp(name, "SIG", 3))
		name += 3;
	for (int n = 1; n < NSIG; n++)
		if (sigabbrev_np(n) && !strcasecmp(sigabbrev_np(n), name))
			return n;
	return 0;
}
