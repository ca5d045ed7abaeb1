/* foreign.h - options and commands of docker run and exec, qemu-system-i386 and lkvm run, and what
 * vmp has instead.  Pure; the table is foreign.def. */
#ifndef VMM_CLI_FOREIGN_H
#define VMM_CLI_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

enum foreign_kind { FOREIGN_SAME, FOREIGN_NOTHING, FOREIGN_HINT };

/* Behind which command an option was typed: `vmp run` and `vmp up`, and `vmp exec`, have rows of
 * their own for some words. */
enum foreign_verb { FOREIGN_ANY, FOREIGN_RUN, FOREIGN_EXEC };

struct foreign {
	const char *word;
	enum foreign_kind kind;
	const char *text;  /* SAME: our option's name; NOTHING: why; HINT: what to type */
	const char *whose;
	const char *first; /* the name of the first item of QEMU's value, as "cpus="; or NULL */
};

/* Returns the row of an option as it was typed, or NULL.  Letters of docker behind one dash, as
 * "-itd", have the row of the one that matters most.  *value is the text behind "=" or behind a
 * single letter; NULL if there is none. */
const struct foreign *foreign_option(const char *typed, enum foreign_verb verb,
				     const char **value);

/* Copies the first item of QEMU's value, as "4" of "4,cores=2" or of "cpus=4", for a row with
 * `first`.  Another value is copied as it is. */
void foreign_first(const struct foreign *row, const char *value, char *item, size_t bytes);

/* The same for QEMU's words alone, with two dashes, as QEMU takes them too. */
const struct foreign *foreign_two_dashes(const char *typed, const char **value);

/* Returns a line that says what to type instead of another program's command, or NULL. */
const char *foreign_command(const char *word);

#endif
