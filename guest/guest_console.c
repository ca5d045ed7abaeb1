/* guest_console.c - the guest's console: the size of its window, and the shell on it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include "guest/guest.h"

#define VIRTIO_CONSOLE "/dev/hvc0" /* its driver follows the window's size by itself */
static const char *console = "/dev/ttyS0"; /* or that */

enum { WINDOW_LOOK_S = 1 };

void console_choose(void)
{
	if (access(VIRTIO_CONSOLE, F_OK) == 0)
		console = VIRTIO_CONSOLE;
}

void console_give(const struct user *user)
{
	if (user->uid && chown(console, user->uid, user->gid) < 0)
		complain("cannot give away", console);
}

/* What the stream device says of the user's window; 0 by 0 when it is not known. */
static struct winsize window_outside(int device)
{
	char text[32] = "";
	unsigned columns = 0, rows = 0;

	if (pread(device, text, sizeof text - 1, 0) <= 0 ||
	    sscanf(text, "%u %u", &columns, &rows) != 2)
		columns = rows = 0;
	return (struct winsize){ .ws_row = (unsigned short)rows,
				 .ws_col = (unsigned short)columns };
}

struct winsize console_window_size(int device)
{
	struct winsize window = window_outside(device);

	if (!window.ws_row || !window.ws_col) {
		window.ws_row = (unsigned short)atoi(getenv("LINES") ?: "0");
		window.ws_col = (unsigned short)atoi(getenv("COLUMNS") ?: "0");
	}
	return window;
}

void console_follow_window(int device, struct winsize last)
{
	int tty = -1;

	if (device < 0 || !strcmp(console, VIRTIO_CONSOLE) || fork() != 0)
		return;
	for (;;) {
		struct winsize now, has;

		sleep(WINDOW_LOOK_S);
		now = window_outside(device);
		if (!now.ws_row || !now.ws_col)
			continue;
		if (tty >= 0 && ioctl(tty, TIOCGWINSZ, &has) < 0) { /* a login has hung it up */
			close(tty);
			tty = -1;
		}
		if (tty < 0) {
			tty = open(console, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
			if (tty < 0 || ioctl(tty, TIOCGWINSZ, &has) < 0)
				continue;
		}
		if (has.ws_row && now.ws_row == last.ws_row && now.ws_col == last.ws_col)
			continue;
		ioctl(tty, TIOCSWINSZ, &now);
		last = now;
	}
}

void console_drain(int tty)
{
	enum { STEP_US = 500, PATIENCE_US = 10000000 };
	int left = 0, before = 0;

	for (int still = 0; still < PATIENCE_US; still += STEP_US) {
		if (ioctl(tty, TIOCOUTQ, &left) < 0)
			return;
		if (left <= 0) {
			/* what the serial chip still has; the kernel limits that */
			tcdrain(tty);
			return;
		}
		if (left != before)
			still = 0;
		before = left;
		usleep(STEP_US);
	}
}

/* In the shell's process: gives it the console and what a shell of a login has. */
static __attribute__((noreturn)) void become_shell(int tty, const struct user *user)
{
	char *argv[] = { "-sh", NULL };

	setpgid(0, 0);
	tcsetpgrp(tty, getpid());
	for (int fd = 0; fd < 3; fd++)
		dup2(tty, fd);
	if (tty > 2)
		close(tty);
	forget_signals();
	signal(SIGTTOU, SIG_DFL);
	become(user);
	execv("/bin/sh", argv);
	complain("cannot run", "/bin/sh");
	_exit(STATUS_NOT_FOUND);
}

/* The session's leader is this process: when a leader exits, the kernel discards what the console
 * has not taken yet. */
int console_run_shell(const struct winsize *window, const struct user *user)
{
	int tty, status = 0;
	pid_t shell;

	setsid();
	tty = open(console, O_RDWR);
	if (tty < 0) {
		complain("cannot open", console);
		return STATUS_CANNOT_EXECUTE;
	}
	ioctl(tty, TIOCSCTTY, 1);
	if (window->ws_row && window->ws_col)
		ioctl(tty, TIOCSWINSZ, window);
	signal(SIGTTOU, SIG_IGN);	/* the terminal is the shell's, and is drained from here */
	shell = fork();
	if (shell == 0)
		become_shell(tty, user);
	if (shell < 0) {
		complain("cannot fork for", "the shell");
		return STATUS_CANNOT_EXECUTE;
	}
	/* Ctrl-Z under `set +m` stops the shell, too; nobody else would continue it. */
	while (reap_command(shell, &status, WUNTRACED) && WIFSTOPPED(status))
		if (WSTOPSIG(status) == SIGTSTP)
			kill(-shell, SIGCONT);
	console_drain(tty);
	return exit_status(status);
}
