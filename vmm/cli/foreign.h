/* foreign.h - options and commands of docker run and exec, qemu-system-i386 and lkvm run, and what
 * vmp has instead.  Pure; the table is foreign.def. */
#ifndef VMM_CLI_FOREIGN_H
#define VMM_CLI_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

enum foreign_kind { FOREIGN_SAME, FOREIGN_NOTHING, FOREIGN_HINT };

struct foreign {
	const char *word;
	enum foreign_kind kind;
	const char *text;  /* SAME: our option's name; NOTHING: why; HINT: what to type */
	const char *whose;
};

/* Returns the row of an option as it was typed, or NULL. `exec`: it was typed behind `vmp exec`,
 * for which some words have rows of their own. *value is the text behind "=" or behind a
 * single letter; NULL if there is none. */
const struct foreign *foreign_option(const char *typed, bool exec, const char **value);

/* The same for QEMU's words alone, with two dashes, as QEMU takes them too. */
const struct foreign *foreign_two_dashes(const char *typed, const char **value);

/* Returns a line that says what to type instead of another program's command, or NULL. */
const char *foreign_command(const char *word);

#endif
