/* foreign.c - see foreign.h. */
#include "vmm/cli/foreign.h"

#include <string.h>
#include "base/types.h"

static const struct foreign options[] = {
#define SAME(word, ours, whose) { word, FOREIGN_SAME, ours, whose },
#define NOTHING(word, whose, why) { word, FOREIGN_NOTHING, why, whose },
#define HINT(word, whose, line) { word, FOREIGN_HINT, line, whose },
#define EXEC_SAME(...)
#define EXEC_HINT(...)
#define COMMAND_HINT(...)
#include "vmm/cli/foreign.def"
#undef SAME
#undef NOTHING
#undef HINT
#undef EXEC_SAME
#undef EXEC_HINT
};

#define SAME(...)
#define NOTHING(...)
#define HINT(...)
static const struct foreign exec_options[] = {
#define EXEC_SAME(word, ours, whose) { word, FOREIGN_SAME, ours, whose },
#define EXEC_HINT(word, whose, line) { word, FOREIGN_HINT, line, whose },
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

/* Finds the row of a single letter with its value right behind it, as in "-m512m". */
static const struct foreign *find_letter(const char *typed, const char **value)
{
	for (size_t i = 0; typed[0] == '-' && typed[1] != '-' && i < ARRAY_LEN(options); i++)
		if (options[i].kind == FOREIGN_SAME && strlen(options[i].word) == 2 &&
		    !memcmp(options[i].word, typed, 2) && is_attached_value(typed + 2)) {
			*value = typed + 2;
			return &options[i];
		}
	return NULL;
}

const struct foreign *foreign_option(const char *typed, bool exec, const char **value)
{
	const struct foreign *row = NULL;

	if (exec)
		row = find(exec_options, ARRAY_LEN(exec_options), typed, value);
	if (!row)
		row = find(options, ARRAY_LEN(options), typed, value);
	return row ? row : find_letter(typed, value);
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
