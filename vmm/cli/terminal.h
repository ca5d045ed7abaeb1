/* terminal.h - the user's terminal as the guest's console: raw mode, its end, the window's size.
 *
 * terminal_restore() restores the terminal.  It also runs at exit, and is safe in a signal handler.
 */
#ifndef VMM_CLI_TERMINAL_H
#define VMM_CLI_TERMINAL_H

#include "base/types.h"

/* Ctrl-] starts an escape.  Then q quits, a second Ctrl-] is sent once, and any other key is sent
 * behind a Ctrl-].  Pure. */
enum { ESCAPE_KEY = 0x1d };
struct escape { bool pending; };
/* Copies typed bytes to `out` (room for 2n) without escapes; sets *quit at `q`.  Returns how many
 * bytes are in `out`. */
size_t terminal_filter(struct escape *escape, const char *typed, size_t n, char *out, bool *quit);

/* Switches standard input to raw mode, until exit or a deadly signal.  Returns false if it is not a
 * terminal. */
bool terminal_raw(void);
void terminal_restore(void);
/* Sets columns and rows of the window; 0 if unknown. */
void terminal_size(uint32_t *columns, uint32_t *rows);
struct client;
/* Tells the guest's console the size of the window, if it is known. */
void terminal_send_size(struct client *client);

#endif
