/* terminal.c - see terminal.h. */
#include "vmm/cli/terminal.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include "vmm/cli/client.h"

static struct termios saved;
static volatile sig_atomic_t is_raw;

size_t terminal_filter(struct escape *escape, const char *typed, size_t n, char *out, bool *quit)
{
	size_t at = 0;

	*quit = false;
	for (size_t i = 0; i < n; i++) {
		char c = typed[i];

		if (escape->pending) {
			escape->pending = false;
			if (c == 'q' || c == 'Q') {
				*quit = true;
				return at;
			}
			out[at++] = ESCAPE_KEY;
			if (c != ESCAPE_KEY)
				out[at++] = c;
		} else if (c == ESCAPE_KEY) {
			escape->pending = true;
		} else {
			out[at++] = c;
		}
	}
	return at;
}

void terminal_restore(void)
{
	if (is_raw) {
		is_raw = 0;
		tcsetattr(0, TCSADRAIN, &saved);
	}
}

static void on_deadly(int signal_number)
{
	terminal_restore();
	raise(signal_number); /* SA_RESETHAND has restored the default action */
}

bool terminal_raw(void)
{
	/* The other signals that end a process go through the event loop.  These end it at once. */
	static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGXCPU };
	struct sigaction action = { .sa_handler = on_deadly,
				    .sa_flags = SA_RESETHAND | SA_NODEFER };
	struct termios raw;

	if (!isatty(0) || tcgetattr(0, &saved))
		return false;
	raw = saved;
	cfmakeraw(&raw);
	atexit(terminal_restore);
	for (size_t i = 0; i < ARRAY_LEN(deadly); i++)
		sigaction(deadly[i], &action, NULL);
	is_raw = 1;
	tcsetattr(0, TCSADRAIN, &raw);
	return true;
}

void terminal_size(uint32_t *columns, uint32_t *rows)
{
	struct winsize size = { 0 };

	if (ioctl(0, TIOCGWINSZ, &size) && ioctl(1, TIOCGWINSZ, &size))
		size = (struct winsize){ 0 };
	*columns = size.ws_col;
	*rows = size.ws_row;
}

void terminal_send_size(struct client *client)
{
	struct msg_console_size size = { 0 };

	terminal_size(&size.columns, &size.rows);
	if (size.columns)
		client_send(client, MSG_CONSOLE_SIZE, VNODE_IOSRV, &size, sizeof size, NULL, 0);
}
