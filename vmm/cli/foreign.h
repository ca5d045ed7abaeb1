/* foreign.h - options and commands of docker run and exec, qemu-system-i386 and lkvm run, and what
 * vmp has instead.  Pure; the table is foreign.def. */
#ifndef VMM_CLI_FOREIGN_H
#define VMM_CLI_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

enum foreign_kind { FOREIGN_SAME, FOREIGN_NOTHING, FOREIGN_HINT };

/* Behind which command an option was typed: `vmp run` and `vmp up`, `vmp exec`, `vmp ps` and `vmp
 * logs` have rows of their own for some words.  ALSO is for foreign_also() alone. */
enum foreign_verb {
	FOREIGN_ANY, FOREIGN_RUN, FOREIGN_EXEC, FOREIGN_PS, FOREIGN_LOGS, FOREIGN_ALSO
};

struct foreign {
	const char *word;
	enum foreign_kind kind;
	const char *text;  /* SAME: our option's name; NOTHING: why; HINT: what to type */
	const char *whose;
	const char *first; /* the name of the first item of QEMU's value, as "cpus="; or NULL */
	enum foreign_verb verb;
};

/* Returns the row of an option as it was typed, or NULL.  Letters of docker behind one dash, as
 * "-itd", have the row of the one that matters most.  *value is the text behind "=" or behind a
 * single letter; NULL if there is none. */
const struct foreign *foreign_option(const char *typed, enum foreign_verb verb,
				     const char **value);

/* For a word that has no row, as "-uroot" or "-unknown": returns the row of its first letter if
 * that takes a value, and sets *value to the rest.  It could be a misspelt word as well. */
const struct foreign *foreign_letter(const char *typed, enum foreign_verb verb, const char **value);

/* For a word of one dash that has no row: returns the row of the same word with two dashes, as
 * --memory for "-memory" and "-memory=512", or NULL. */
const struct foreign *foreign_lacks_dash(const char *typed, enum foreign_verb verb);

/* Cuts QEMU's value, as "4,cores=2" or "cpus=4", to its first item, "4", and returns the item; for
 * a row with `first`.  Returns NULL if the item has another name, as "sockets=1". */
const char *foreign_first(const struct foreign *row, char *value);

/* Returns what the word of a SAME row, or of an option of ours (--word or --word=VALUE), means to
 * another program, or NULL. */
const char *foreign_also(const char *word);

/* Returns whether the value of -k is one of QEMU's keyboard layouts, and not lkvm's kernel.  A file
 * of such a name is ./NAME. */
bool foreign_is_keyboard(const char *value);

/* As foreign_option(), for QEMU's words with two dashes, as QEMU takes them too. */
const struct foreign *foreign_two_dashes(const char *typed, const char **value);

/* Returns a line that says what to type instead of another program's command, or NULL. */
const char *foreign_command(const char *word);

#endif
