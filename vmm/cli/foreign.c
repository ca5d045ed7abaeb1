/* foreign.c - see foreign.h. */
#include "vmm/cli/foreign.h"

#include <stdio.h>
#include <string.h>
#include "base/types.h"

/* The table is expanded once for each array below, with the rows of the other arrays empty. */
static const struct foreign options[] = {
#define SAME(word, ours, whose) { word, FOREIGN_SAME, ours, whose, NULL },
#define FIRST(word, ours, whose, first) { word, FOREIGN_SAME, ours, whose, first },
#define NOTHING(word, whose, why) { word, FOREIGN_NOTHING, why, whose, NULL },
#define HINT(word, whose, line) { word, FOREIGN_HINT, line, whose, NULL },
#define RUN_HINT(...)
#define EXEC_SAME(...)
#define EXEC_HINT(...)
#define COMMAND_HINT(...)
#include "vmm/cli/foreign.def"
#undef SAME
#undef FIRST
#undef NOTHING
#undef HINT
#undef RUN_HINT
#undef EXEC_SAME
#undef EXEC_HINT
};

#define SAME(...)
#define FIRST(...)
#define NOTHING(...)
#define HINT(...)
static const struct foreign run_options[] = {
#define RUN_HINT(word, whose, line) { word, FOREIGN_HINT, line, whose, NULL },
#define EXEC_SAME(...)
#define EXEC_HINT(...)
#include "vmm/cli/foreign.def"
#undef RUN_HINT
#undef EXEC_SAME
#undef EXEC_HINT
};

#define RUN_HINT(...)
static const struct foreign exec_options[] = {
#define EXEC_SAME(word, ours, whose) { word, FOREIGN_SAME, ours, whose, NULL },
#define EXEC_HINT(word, whose, line) { word, FOREIGN_HINT, line, whose, NULL },
#include "vmm/cli/foreign.def"
#undef EXEC_SAME
#undef EXEC_HINT
#undef COMMAND_HINT
};

static const struct { const char *word, *line; } commands[] = {
#define EXEC_SAME(...)
#define EXEC_HINT(...)
#define COMMAND_HINT(word, whose, line) { word, line },
#include "vmm/cli/foreign.def"
};

/* Finds the row of a whole word, or of the part before its "=". *value is what follows the "=". */
static const struct foreign *find(const struct foreign *rows, size_t n_rows, const char *typed,
				  const char **value)
{
	const char *equals = strchr(typed, '=');
	size_t n = equals ? (size_t)(equals - typed) : strlen(typed);

	*value = equals ? equals + 1 : NULL;
	for (size_t i = 0; i < n_rows; i++)
		if (strlen(rows[i].word) == n && !memcmp(rows[i].word, typed, n))
			return &rows[i];
	return NULL;
}

/* Returns whether `text`, which stands right behind a letter, is a value.  It could be the rest of
 * one of QEMU's words: -no-acpi is not -n with the name "o-acpi". */
static bool is_attached_value(const char *text)
{
	return strspn(text, "0123456789") || *text == '/' || strchr(text, '=');
}

/* Finds the row of a word, among those of the command first. */
static const struct foreign *find_for(enum foreign_verb verb, const char *typed, const char **value)
{
	const struct foreign *row = NULL;

	if (verb == FOREIGN_EXEC)
		row = find(exec_options, ARRAY_LEN(exec_options), typed, value);
	if (verb == FOREIGN_RUN)
		row = find(run_options, ARRAY_LEN(run_options), typed, value);
	return row ? row : find(options, ARRAY_LEN(options), typed, value);
}

/* Finds the row of a single letter with its value right behind it, as in "-m512m". */
static const struct foreign *find_letter(enum foreign_verb verb, const char *typed,
					 const char **value)
{
	const char word[] = { '-', typed[1], '\0' };
	const struct foreign *row;

	if (typed[0] != '-' || typed[1] == '-' || !typed[1] || !is_attached_value(typed + 2))
		return NULL;
	row = find_for(verb, word, value);
	if (!row || row->kind == FOREIGN_NOTHING)
		return NULL;
	*value = typed + 2;
	return row;
}

/* Finds the row for several letters of docker behind one dash, as in "-itd" or "-dp 80:80": only
 * the last of them may have a value.  If each of them would do, they are to be typed apart. */
static const struct foreign *find_letters(enum foreign_verb verb, const char *typed,
					  const char **value)
{
	static const struct foreign apart = {
		"", FOREIGN_HINT, "write each letter with a dash of its own, as in -i -t", "docker",
		NULL
	};
	size_t n = strlen(typed), flags = typed[0] == '-' ? strspn(typed + 1, "ditPq") : 0;
	const struct foreign *row;

	if (n < 3 || flags < n - 2 || !strchr("ditPqacelmpuvw", typed[n - 1]))
		return NULL;
	/* What -d asks for says most. */
	for (const char *letter = strchr(typed, 'd') ? "d" : typed + 1; *letter; letter++) {
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
		row = find_letter(verb, typed, value);
	return row ? row : find_letters(verb, typed, value);
}

void foreign_first(const struct foreign *row, const char *value, char *item, size_t bytes)
{
	size_t name = row->first ? strlen(row->first) : 0;

	if (name && !strncmp(value, row->first, name))
		value += name;
	snprintf(item, bytes, "%.*s", (int)(name ? strcspn(value, ",") : strlen(value)), value);
}

const struct foreign *foreign_two_dashes(const char *typed, const char **value)
{
	const struct foreign *row = NULL;

	if (!strncmp(typed, "--", 2) && strcspn(typed, "=") > 3)
		row = find(options, ARRAY_LEN(options), typed + 1, value);
	return row && strstr(row->whose, "qemu") ? row : NULL;
}

const char *foreign_command(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (!strcmp(commands[i].word, word))
			return commands[i].line;
	return NULL;
}
