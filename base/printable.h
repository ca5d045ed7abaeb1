/* printable.h - text that a guest, or a file of somebody else's, has chosen, made fit for a
 * terminal: it must not move the cursor, change the title, or send keys. */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include <stddef.h>

/* Puts '?' for each byte of a control character: C0 (but newlines, tabs, and a carriage return
 * before a newline), DEL, and C1, as U+0080 to U+009F in UTF-8 or as a byte outside of UTF-8.  So
 * a character that is cut at either end of the text becomes '?', too. */
void printable_text(char *text, size_t bytes);

/* The same for a string that is to be one line: newlines and tabs become '?', too. */
void printable_line(char *line);

#endif
