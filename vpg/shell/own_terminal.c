/* own_terminal.c - see own_terminal.h. */
#include "vpg/shell/own_terminal.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static bool is_raw;

bool terminal_is_own(void) { return isatty(0) && isatty(1); }

void terminal_raw(void)
{
	struct termios raw;

	if (is_raw || tcgetattr(0, &before))
		return;
	raw = before;
	cfmakeraw(&raw);
	is_raw = !tcsetattr(0, TCSADRAIN, &raw);
}

void terminal_restore(void)
{
	if (is_raw)
		tcsetattr(0, TCSADRAIN, &before);
	is_raw = false;
}

void terminal_size(uint64_t *rows, uint64_t *columns)
{
	struct winsize size;

	*rows = 24;
	*columns = 80;
	if (ioctl(0, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		return;
	*rows = size.ws_row;
	*columns = size.ws_col;
}
