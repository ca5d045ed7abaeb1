/* options_table.c - the tables of commands and options as data: what there is, and its words. */
#include "vmm/cli/options_private.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The options of the command itself (options.def). */
static const struct option_rule rules[] = {
#define OPTION(word, value, verbs, kind, field, least, most, help) \
	{ word, value, verbs, OPTION_##kind, offsetof(struct options, field), least, most, help },
#include "vmm/cli/options.def"
#undef OPTION
};
_Static_assert(ARRAY_LEN(rules) == N_RULES, "options.def");

#define STRING(number) STRING_OF(number)
#define STRING_OF(number) #number
const struct option_verb options_verbs[VERB_COUNT] = {
#define COMMAND(verb, word, machine, function, usage, what) [VERB_##verb] = { word, usage, what },
#include "vmm/cli/commands.def"
#undef COMMAND
};

int options_fail(struct options *o, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(o->error, sizeof o->error, format, args);
	va_end(args);
	return -EINVAL;
}

struct option options_at(size_t i)
{
	static const unsigned verbs_of[] = {
		[MACHINE_TYPED_NO] = 0,
		[MACHINE_TYPED_BOOT] = ON_BOOT,
		[MACHINE_TYPED_START] = ON_START,
	};

	if (i < MACHINE_ROWS) {
		const struct machine_row *row = &machine_rows[i];

		return (struct option){ row->word, row->value, row->help, verbs_of[row->typed],
					row, NULL };
	}
	const struct option_rule *rule = &rules[i - MACHINE_ROWS];

	return (struct option){ rule->name, rule->value, rule->help, rule->verbs, NULL, rule };
}

/* Finds the option whose name has `n` bytes.  Returns false if there is none. */
bool options_find(const char *name, size_t n, struct option *option)
{
	for (size_t at = 0; at < N_OPTIONS; at++) {
		*option = options_at(at);
		if (option->verbs && strlen(option->name) == n && !memcmp(option->name, name, n))
			return true;
	}
	return false;
}

bool options_describe(enum verb verb, size_t i, struct option_info *info)
{
	for (size_t at = 0; at < N_OPTIONS; at++) {
		const struct option option = options_at(at);

		if (!(option.verbs & ON(verb)) || !option.help || i--)
			continue;
		*info = (struct option_info){ option.name, option.value, option.help,
					      option.row ? option.row->names : NULL };
		return true;
	}
	return false;
}

const char *options_verb_word(enum verb verb) { return options_verbs[verb].name; }
const char *options_verb_what(enum verb verb) { return options_verbs[verb].what; }

bool options_is_typed(enum verb verb)
{
	return verb != VERB_STANDBY && verb != VERB_HOLD && verb != VERB_COMPLETE &&
	       verb != VERB_VERSION;
}

bool options_takes_name(enum verb verb)
{
	return ON(verb) & ON_MACHINE &
	       ~(ON(VERB_CPU) | ON(VERB_HOST) | ON(VERB_POLICY) | ON(VERB_SNAPSHOT) |
		 ON(VERB_REPORT));
}

int options_find_verb(const char *word)
{
	for (size_t i = 0; i < VERB_COUNT; i++)
		if (!strcmp(word, options_verbs[i].name))
			return (int)i;
	return -1;
}
