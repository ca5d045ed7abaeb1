/* own_terminal.h - the shell's own terminal, while a command elsewhere has one. */
#ifndef VPG_OWN_TERMINAL_H
#define VPG_OWN_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether standard input and output are a terminal. */
bool terminal_is_own(void);
/* Sets raw mode: what is typed goes byte by byte to the terminal of the command elsewhere, which
 * echoes it and knows what Ctrl-C means.  Does nothing if standard input is no terminal. */
void terminal_raw(void);
/* Restores the mode from before terminal_raw(). */
void terminal_restore(void);
/* Returns the terminal's size; 24 x 80 if there is no terminal. */
void terminal_size(uint64_t *rows, uint64_t *columns);

#endif
