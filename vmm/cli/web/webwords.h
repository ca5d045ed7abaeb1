/* webwords.h - what the page asks `vmp web` to do, as the words of a `vmp` command.  Pure.
 *
 * A request is a form: "what=move&cpu=1&host=0".  Only a few commands can be asked for, each with
 * its own fields, and a field's value has letters, digits and -_. alone; so no value can be an
 * option, or a path that leads out of a folder.
 */
#ifndef VMM_CLI_WEB_WEBWORDS_H
#define VMM_CLI_WEB_WEBWORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEBWORDS_MOST = 8, WEBWORDS_BYTES = 64 };

struct webwords {
	unsigned n;
	char word[WEBWORDS_MOST][WEBWORDS_BYTES]; /* "cpu", "move", "1", "0" */
	unsigned file; /* the number of the word that is a new file's name; 0: none */
};

/* Parses a form of `bytes` bytes.  Returns 0, or -EINVAL with the reason in *why. */
int webwords_parse(const char *form, size_t bytes, struct webwords *words, const char **why);

/* Parses "columns=80&rows=24".  Returns false if that is not it. */
bool webwords_size(const char *form, size_t bytes, uint32_t *columns, uint32_t *rows);

/* Returns the number behind "?from=" in a target, or 0. */
uint64_t webwords_from(const char *target);

#endif
