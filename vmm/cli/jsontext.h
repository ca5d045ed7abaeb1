/* jsontext.h - text as JSON. */
#ifndef VMM_CLI_JSONTEXT_H
#define VMM_CLI_JSONTEXT_H

#include <stdio.h>

/* Writes a string with its quotes.  Bytes beyond ASCII are written as characters of Latin-1, since
 * text from a guest's memory need not be UTF-8.  A "<" is escaped, so that the text may stand in
 * a page of HTML. */
void json_put_string(FILE *out, const char *text);

#endif
