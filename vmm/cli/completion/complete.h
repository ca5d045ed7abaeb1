/* complete.h - what can stand at a place of a command line, for the shells' completion
 * (install/completions/). */
#ifndef VMM_CLI_COMPLETION_COMPLETE_H
#define VMM_CLI_COMPLETION_COMPLETE_H

#include <stdio.h>
#include "vmm/cli/options.h"

/* What only this computer knows. */
struct completion_facts {
	const char *const *machines; /* running ones, NULL-terminated */
	/* numbers and names of the chosen machine's hosts, NULL-terminated */
	const char *const *hosts;
	uint32_t cpus;		     /* of the chosen machine */
	const char *const *programs; /* of the guest, NULL-terminated */
};

/* Prints what the last of `n` words (behind `vmp`) may become, a line each: the word, a tab, and
 * what it is.  A line ":files" or ":folders" says that a file or folder may stand there too.
 * Pure. */
void completion_print(FILE *out, char *const *words, size_t n,
		      const struct completion_facts *facts);

/* Returns the machine that the words name, with --name or alone, or NULL. Pure. */
const char *completion_machine(char *const *words, size_t n);

#endif
