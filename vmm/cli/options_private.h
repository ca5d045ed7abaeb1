/* options_private.h - the tables behind a command line (options_table.c), for the files of
 * vmm/cli/options.c alone. */
#ifndef VMM_CLI_OPTIONS_PRIVATE_H
#define VMM_CLI_OPTIONS_PRIVATE_H

#include <errno.h>
#include "base/limits.h"
#include "vmm/cli/options.h"

enum option_kind {
	OPTION_FLAG,   /* no value: sets a bool */
	OPTION_TEXT,   /* value: a string */
	OPTION_NUMBER, /* value: min..max */
	OPTION_TIME,   /* value: a time, min..max ms */
	OPTION_LIST,   /* value: NAME=VALUE, may be repeated */
};

struct option_rule {
	const char *name;
	const char *value; /* the value's name in the help text, or NULL */
	unsigned verbs;	   /* bits 1 << enum verb */
	enum option_kind kind;
	size_t offset; /* in struct options */
	uint32_t min, max;
	const char *help;
};

#define ON(verb) (1u << (verb))
#define ON_BOOT (ON(VERB_RUN) | ON(VERB_UP))
#define ON_START (ON_BOOT | ON(VERB_SNAPSHOT))
#define ASKS 1u
#define PASSES 2u
#define BOOTS 0u
#define NONE 0u
enum {
	ON_MACHINE = 0
#define COMMAND(verb, word, machine, ...) | (machine & ASKS) << VERB_##verb
#include "vmm/cli/commands.def"
#undef COMMAND
	,
	ON_PASSED = 0
#define COMMAND(verb, word, machine, ...) | (machine & PASSES) / PASSES << VERB_##verb
#include "vmm/cli/commands.def"
#undef COMMAND
};

/* An option of either table: machine_rows (base/machine.def) or rules. */
struct option {
	const char *name, *value, *help;
	unsigned verbs;
	const struct machine_row *row;	/* the row in machine_rows, or NULL */
	const struct option_rule *rule; /* the row in rules, if `row` is NULL */
};

enum {
	N_RULES = 0
#define OPTION(...) + 1
#include "vmm/cli/options.def"
#undef OPTION
	,
	N_OPTIONS = MACHINE_ROWS + N_RULES
};

struct option_verb { const char *name, *usage, *what; };
extern const struct option_verb options_verbs[VERB_COUNT];

/* Keep one line of text as the error.  Returns -EINVAL. */
int options_fail(struct options *o, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Return option number i of N_OPTIONS. */
struct option options_at(size_t i);
/* Find the option whose name has `n` bytes.  Returns false if there is none. */
bool options_find(const char *name, size_t n, struct option *option);
/* Check an option's value and keep it.  Returns 0 or -EINVAL (options_value.c). */
int options_apply(struct options *o, const struct option *option, const char *value);
/* Returns true for a command that asks a running machine: it takes words that are no options. */
bool options_takes_words(enum verb verb);
/* Take the words that are no options.  Returns 0 or -EINVAL (options_words.c). */
int options_take_words(struct options *o, char **words, unsigned n);
/* Check the options against each other and set the defaults that depend on several of them.
 * Returns 0 or -EINVAL (options_check.c). */
int options_check(struct options *o, uint32_t host_cpus);

#endif
