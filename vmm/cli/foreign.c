/* foreign.c - see foreign.h. */
#include "vmm/cli/foreign.h"

#include <stdio.h>
#include <string.h>
#include "base/types.h"

/* The table is expanded twice: for options, and for commands. */
static const struct foreign options[] = {
#define ROW(verb, kind, word, text, whose, first) \
	{ word, FOREIGN_##kind, text, whose, first, FOREIGN_##verb },
#define SAME(word, ours, whose) ROW(ANY, SAME, word, ours, whose, NULL)
#define FIRST(word, ours, whose, first) ROW(ANY, SAME, word, ours, whose, first)
#define NOTHING(word, whose, why) ROW(ANY, NOTHING, word, why, whose, NULL)
#define HINT(word, whose, line) ROW(ANY, HINT, word, line, whose, NULL)
#define ALSO(word, whose, line) ROW(ALSO, HINT, word, line, whose, NULL)
#define RUN_HINT(word, whose, line) ROW(RUN, HINT, word, line, whose, NULL)
#define EXEC_SAME(word, ours, whose) ROW(EXEC, SAME, word, ours, whose, NULL)
#define EXEC_HINT(word, whose, line) ROW(EXEC, HINT, word, line, whose, NULL)
#define PS_NOTHING(word, whose, why) ROW(PS, NOTHING, word, why, whose, NULL)
#define PS_HINT(word, whose, line) ROW(PS, HINT, word, line, whose, NULL)
#define LOGS_HINT(word, whose, line) ROW(LOGS, HINT, word, line, whose, NULL)
#define COMMAND_HINT(...)
#include "vmm/cli/foreign.def"
#undef SAME
#undef FIRST
#undef NOTHING
#undef HINT
#undef ALSO
#undef RUN_HINT
#undef EXEC_SAME
#undef EXEC_HINT
#undef PS_NOTHING
#undef PS_HINT
#undef LOGS_HINT
#undef COMMAND_HINT
};

static const struct { const char *word, *line; } commands[] = {
#define SAME(...)
#define FIRST(...)
#define NOTHING(...)
#define HINT(...)
#define ALSO(...)
#define RUN_HINT(...)
#define EXEC_SAME(...)
#define EXEC_HINT(...)
#define PS_NOTHING(...)
#define PS_HINT(...)
#define LOGS_HINT(...)
#define COMMAND_HINT(word, whose, line) { word, line },
#include "vmm/cli/foreign.def"
};

/* Finds the row of a whole word, or of the part before its "=". *value is what follows the "=". */
static const struct foreign *find(enum foreign_verb verb, const char *typed, const char **value)
{
	const char *equals = strchr(typed, '=');
	size_t n = equals ? (size_t)(equals - typed) : strlen(typed);

	*value = equals ? equals + 1 : NULL;
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (options[i].verb == verb && strlen(options[i].word) == n &&
		    !memcmp(options[i].word, typed, n))
			return &options[i];
	return NULL;
}

/* Finds the row of a word, among those of the command first. */
static const struct foreign *find_for(enum foreign_verb verb, const char *typed, const char **value)
{
	const struct foreign *row = verb == FOREIGN_ANY ? NULL : find(verb, typed, value);

	return row ? row : find(FOREIGN_ANY, typed, value);
}

/* Returns whether `text`, which stands right behind a letter, can only be a value.  Letters alone
 * could be the rest of one of QEMU's words: -no-acpi is not -n with the name "o-acpi".  So could
 * those before a "=", unless the letter takes NAME=VALUE: -msg=x is not -m with the size "sg=x". */
static bool is_attached_value(char letter, const char *text)
{
	return strspn(text, "0123456789") || strpbrk(text, letter == 'e' ? "/=:" : "/:");
}

/* Finds the row of the letter with which a word begins, if the letter takes a value. */
static const struct foreign *find_first_letter(enum foreign_verb verb, const char *typed,
					       const char **value)
{
	const char word[] = { '-', typed[1], '\0' };
	const struct foreign *row;

	if (typed[0] != '-' || typed[1] == '-' || !typed[1] || !typed[2])
		return NULL;
	row = find_for(verb, word, value);
	if (!row || row->kind == FOREIGN_NOTHING)
		return NULL;
	*value = typed + 2;
	return row;
}

/* Finds the row of a single letter with its value right behind it, as in "-m512m". */
static const struct foreign *find_letter(enum foreign_verb verb, const char *typed,
					 const char **value)
{
	const struct foreign *row = find_first_letter(verb, typed, value);

	return row && is_attached_value(typed[1], *value) ? row : NULL;
}

/* Finds the row for several letters of docker behind one dash, as in "-itd", "-dp 80:80" or
 * "-iteA=1": only the last of them may have a value.  If each of them would do, they are to be
 * typed apart. */
static const struct foreign *find_letters(enum foreign_verb verb, const char *typed,
					  const char **value)
{
	static const struct foreign apart = {
		.word = "", .kind = FOREIGN_HINT, .whose = "docker",
		.text = "write each letter with a dash of its own, as in -i -t",
	};
	const char *alone = verb == FOREIGN_PS ? "alqs" : verb == FOREIGN_LOGS ? "ft" : "ditPq";
	const char *with = verb == FOREIGN_PS ? "fn" : verb == FOREIGN_LOGS ? "n" : "acehlmpuvw";
	size_t n = strlen(typed), flags = typed[0] == '-' ? strspn(typed + 1, alone) : 0;
	const char *last = typed + 1 + flags; /* behind the letters that have no value */
	const struct foreign *row;

	if (!flags || n < 3 || (*last && !strchr(with, *last)))
		return NULL;
	if (*last && last[1] && !is_attached_value(*last, last + 1))
		return NULL;
	/* What -d asks for says most. */
	for (const char *letter = memchr(typed, 'd', 1 + flags) ? "d" : typed + 1;
	     *letter && letter <= last; letter++) {
		const char word[] = { '-', *letter, '\0' };

		row = find_for(verb, word, value);
		if (row && row->kind == FOREIGN_HINT)
			return row;
	}
	return &apart;
}

const struct foreign *foreign_option(const char *typed, enum foreign_verb verb,
				     const char **value)
{
	const struct foreign *row = find_for(verb, typed, value);

	if (!row)
		row = find_letters(verb, typed, value);
	return row ? row : find_letter(verb, typed, value);
}

const struct foreign *foreign_letter(const char *typed, enum foreign_verb verb, const char **value)
{
	return find_first_letter(verb, typed, value);
}

const char *foreign_also(const char *word)
{
	const char *value;
	const struct foreign *row = find(FOREIGN_ALSO, word, &value);

	return row ? row->text : NULL;
}

bool foreign_is_keyboard(const char *value)
{
	static const char layouts[] = " ar bepo cz da de de-ch en-gb en-us es et fi fo fr fr-be "
				      "fr-ca fr-ch hr hu is it ja lt lv mk nl nl-be no pl pt "
				      "pt-br ru sl sv th tr ";
	char spaced[16];

	if (strchr(value, ' ') || strlen(value) > sizeof spaced - 3)
		return false;
	snprintf(spaced, sizeof spaced, " %s ", value);
	return strstr(layouts, spaced);
}

const char *foreign_first(const struct foreign *row, char *value)
{
	size_t name = strlen(row->first);

	if (!strncmp(value, row->first, name))
		value += name;
	if (memchr(value, '=', strcspn(value, ",")))
		return NULL;
	value[strcspn(value, ",")] = '\0';
	return value;
}

const struct foreign *foreign_lacks_dash(const char *typed, enum foreign_verb verb)
{
	const char *value;
	char word[32];

	if (typed[0] != '-' || typed[1] == '-' || strcspn(typed, "=") < 3 ||
	    find_letters(verb, typed, &value) ||
	    snprintf(word, sizeof word, "-%.*s", (int)strcspn(typed, "="), typed) >=
		    (int)sizeof word)
		return NULL;
	return find_for(verb, word, &value);
}

const struct foreign *foreign_two_dashes(const char *typed, const char **value)
{
	const struct foreign *row = NULL;

	if (!strncmp(typed, "--", 2) && strcspn(typed, "=") > 3)
		row = find(FOREIGN_ANY, typed + 1, value);
	return row && strstr(row->whose, "qemu") ? row : NULL;
}

const char *foreign_command(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (!strcmp(commands[i].word, word))
			return commands[i].line;
	return NULL;
}
