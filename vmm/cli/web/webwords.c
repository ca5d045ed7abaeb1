/* webwords.c - see webwords.h. */
#include "vmm/cli/web/webwords.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word that begins with $ is a field's value, with ? that of a field that may be missing, and
 * with > a new file's name. */
static const struct {
	const char *what, *word[5];
} commands[] = {
	{ "move", { "cpu", "move", "$cpu", "$host" } },
	{ "add", { "host", "add", "?host" } },
	{ "remove", { "host", "remove", "$host" } },
	{ "policy", { "policy", "$policy" } },
	{ "save", { "snapshot", "save", ">file" } },
};

enum { N_COMMANDS = sizeof commands / sizeof *commands, MOST_FIELDS = 4 };

struct field { const char *name, *value; size_t name_bytes, value_bytes; };

static bool is_value(const char *value, size_t bytes)
{
	if (!bytes || bytes >= WEBWORDS_BYTES || !isalnum((unsigned char)*value))
		return false;
	for (size_t i = 1; i < bytes; i++)
		if (!isalnum((unsigned char)value[i]) && !memchr("-_.", value[i], 3))
			return false;
	return true;
}

/* Takes the form apart.  Returns the number of fields, or -1. */
static int split(const char *form, size_t bytes, struct field field[MOST_FIELDS])
{
	int n = 0;

	while (bytes) {
		const char *end = memchr(form, '&', bytes);
		size_t part = end ? (size_t)(end - form) : bytes;
		const char *equals = memchr(form, '=', part);

		if (!equals || n == MOST_FIELDS)
			return -1;
		field[n] = (struct field){ form, equals + 1, (size_t)(equals - form),
					   part - (size_t)(equals - form) - 1 };
		for (int i = 0; i < n; i++)
			if (field[i].name_bytes == field[n].name_bytes &&
			    !memcmp(field[i].name, field[n].name, field[n].name_bytes))
				return -1;
		n++;
		bytes -= part;
		form += part;
		if (bytes) { /* something follows the & */
			form++;
			if (!--bytes)
				return -1;
		}
	}
	return n;
}

static const struct field *find(const struct field *field, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strlen(name) == field[i].name_bytes &&
		    !memcmp(field[i].name, name, field[i].name_bytes))
			return &field[i];
	return NULL;
}

static int refuse(const char *line, const char **why)
{
	*why = line;
	return -EINVAL;
}

/* Appends a command's word.  *used counts the fields that were taken. */
static int add_word(struct webwords *words, const char *word, const struct field *field, int n,
		    int *used, const char **why)
{
	bool is_field = strchr("$?>", *word);
	const struct field *f = is_field ? find(field, n, word + 1) : NULL;
	char *to = words->word[words->n];

	if (is_field && !f)
		return *word == '?' ? 0 : refuse("a field is missing", why);
	if (!f) {
		snprintf(to, WEBWORDS_BYTES, "%s", word);
	} else if (is_value(f->value, f->value_bytes)) {
		snprintf(to, WEBWORDS_BYTES, "%.*s", (int)f->value_bytes, f->value);
		++*used;
	} else {
		return refuse("a value must have 1 to 63 letters, digits, and -_. after the first",
			      why);
	}
	if (*word == '>')
		words->file = words->n;
	words->n++;
	return 0;
}

int webwords_parse(const char *form, size_t bytes, struct webwords *words, const char **why)
{
	struct field field[MOST_FIELDS];
	int n = split(form, bytes, field), used = 1;
	const struct field *what = find(field, n, "what");
	unsigned command = 0;

	*words = (struct webwords){ 0 };
	while (what && command < N_COMMANDS &&
	       (strlen(commands[command].what) != what->value_bytes ||
		memcmp(commands[command].what, what->value, what->value_bytes)))
		command++;
	if (!what || command == N_COMMANDS)
		return refuse("there is no such command", why);
	for (const char *const *word = commands[command].word; *word; word++)
		if (add_word(words, *word, field, n, &used, why))
			return -EINVAL;
	return used == n ? 0 : refuse("a field is unknown", why);
}

static bool number_of(const struct field *f, uint32_t most, uint32_t *number)
{
	char digits[8];

	if (!f || !f->value_bytes || f->value_bytes >= sizeof digits)
		return false;
	memcpy(digits, f->value, f->value_bytes);
	digits[f->value_bytes] = 0;
	if (strspn(digits, "0123456789") != f->value_bytes)
		return false;
	*number = (uint32_t)strtoul(digits, NULL, 10);
	return *number && *number <= most;
}

bool webwords_size(const char *form, size_t bytes, uint32_t *columns, uint32_t *rows)
{
	enum { MOST = 1000 };
	struct field field[MOST_FIELDS];
	int n = split(form, bytes, field);

	return n == 2 && number_of(find(field, n, "columns"), MOST, columns) &&
	       number_of(find(field, n, "rows"), MOST, rows);
}

uint64_t webwords_from(const char *target)
{
	const char *from = strstr(target, "?from=");

	if (!from || !isdigit((unsigned char)from[6]))
		return 0;
	return strtoull(from + 6, NULL, 10);
}
