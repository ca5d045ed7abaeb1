/* terminal.h - the user's terminal as the guest's console: raw mode, the way out of it, window size.
 *
 * The terminal is put back by terminal_restore(), which also runs at exit and is safe in a signal handler.
 */
#ifndef VMM_CLI_TERMINAL_H
#define VMM_CLI_TERMINAL_H

#include "base/types.h"

/* Ctrl-] starts an escape: then q quits, Ctrl-] sends itself, anything else is sent after it. Pure. */
enum { ESCAPE_KEY = 0x1d };
struct escape { bool pending; };
/* Copies typed bytes to `out` (room for 2n) without escapes; sets *quit at `q`. Returns the bytes in `out`. */
size_t escape_filter(struct escape *escape, const char *typed, size_t n, char *out, bool *quit);

/* Raw mode, if standard input is a terminal; restores at exit and at deadly signals. False: not a terminal. */
bool terminal_raw(void);
void terminal_restore(void);
/* Columns and rows of the window, 0 if unknown. */
void terminal_size(uint32_t *columns, uint32_t *rows);

#endif
