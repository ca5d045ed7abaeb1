/* own_terminal.h - the shell's own terminal, while a command elsewhere has one. */
#ifndef VPG_OWN_TERMINAL_H
#define VPG_OWN_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* Standard input and output are a terminal. */
bool terminal_is_own(void);
/* What is typed goes to the other terminal byte by byte; that one echoes it, and knows what Ctrl-C
 * means.  Nothing happens if standard input is no terminal. */
void terminal_raw(void);
/* As before terminal_raw(). */
void terminal_restore(void);
/* 24 x 80 if there is no terminal. */
void terminal_size(uint64_t *rows, uint64_t *columns);

#endif
