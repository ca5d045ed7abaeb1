/* machine.c - see machine.h. */
#include "base/machine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "base/mechanisms.h"
#include "base/quantity.h"
#include "base/wire.h"

/* The names of each enum, in its order. */
static const char *const engine_names[] = { "", "direct", "ptrace", NULL };
static const char *const console_names[] = { "serial", "virtio", NULL };
const char *const policy_names[] = { "auto", "fixed", "spread", "concentrate", NULL };
_Static_assert(ARRAY_LEN(policy_names) == POLICIES + 1, "a name for each policy");
const char *const mechanism_names[] = {
#define MECHANISM(name, word, what) word,
#include "base/mechanisms.def"
#undef MECHANISM
	NULL
};

#define MACHINE_KIND_NUMBER MACHINE_IS_NUMBER, NULL
#define MACHINE_KIND_SIZE MACHINE_IS_SIZE, NULL
#define MACHINE_KIND_TIME MACHINE_IS_TIME, NULL
#define MACHINE_KIND_FLAG MACHINE_IS_FLAG, NULL
#define MACHINE_KIND_TEXT MACHINE_IS_TEXT, NULL
#define MACHINE_KIND_LIST MACHINE_IS_LIST, NULL
#define MACHINE_KIND_CHOICE_OF(names) MACHINE_IS_CHOICE, names##_names
#define MACHINE_KIND_SET_OF(names) MACHINE_IS_SET, names##_names

const struct machine_row machine_rows[MACHINE_ROWS] = {
#define MACHINE(field, word, kind, least, most, start, typed, readers, value, help) \
	{ word, \
	  MACHINE_KIND_##kind, \
	  offsetof(struct machine, field), \
	  least, \
	  most, \
	  start, \
	  MACHINE_TYPED_##typed, \
	  readers, \
	  value, \
	  help },
#include "base/machine.def"
#undef MACHINE
};

/* Daemons start the monitors and the I/O server, with what is on their own command lines. */
#define MACHINE(field, word, kind, least, most, default, typed, readers, ...) \
	_Static_assert(!((readers) & (MACHINE_MONITOR | MACHINE_IOSRV)) || \
		       (readers) & (MACHINE_NODE | MACHINE_NODE0), \
		       "--" word " reaches no daemon that could pass it on");
#include "base/machine.def"
#undef MACHINE

static void *field_of(struct machine *m, const struct machine_row *row)
{
	return (char *)m + row->offset;
}

void machine_defaults(struct machine *m)
{
	*m = (struct machine){ 0 };
	for (unsigned i = 0; i < MACHINE_ROWS; i++)
		if (machine_rows[i].start)
			*(uint32_t *)field_of(m, &machine_rows[i]) = machine_rows[i].start;
}

/* Returns the row of a word of `bytes` bytes that one of `readers` receives, or NULL. */
static const struct machine_row *find_row(const char *word, size_t bytes, unsigned readers)
{
	for (unsigned i = 0; i < MACHINE_ROWS; i++)
		if (machine_rows[i].readers & readers && strlen(machine_rows[i].word) == bytes &&
		    !memcmp(machine_rows[i].word, word, bytes))
			return &machine_rows[i];
	return NULL;
}

/* --- reading ---------------------------------------------------------------------------------- */

static const struct measure {
	int (*parse)(const char *text, uint32_t *value);
	size_t (*print)(uint32_t value, char *text, size_t bytes);
	const char *what;
} measures[] = {
	[MACHINE_IS_NUMBER] = { quantity_parse_number, quantity_print_number, "a whole number" },
	[MACHINE_IS_SIZE] = { quantity_parse_mib, quantity_print_mib,
			      "a size; write it as 256M or 1.5G" },
	[MACHINE_IS_TIME] = { quantity_parse_ms, quantity_print_ms,
			      "a time; write it as 500ms, 1.5s or 1m30s" },
};

static int set_measure(uint32_t *field, const struct machine_row *row, const char *value, char *why,
		       size_t why_bytes)
{
	const struct measure *measure = &measures[row->kind];
	char least[MACHINE_VALUE], most[MACHINE_VALUE];
	uint32_t number = 0;
	int error = measure->parse(value, &number);

	measure->print(row->least, least, sizeof least);
	measure->print(row->most, most, sizeof most);
	if (error == -EINVAL)
		snprintf(why, why_bytes, "--%s %s: not %s", row->word, value, measure->what);
	else if (error == -EDOM)
		snprintf(why, why_bytes, "--%s %s: must be a whole number of %s", row->word, value,
			 row->kind == MACHINE_IS_SIZE
				 ? "MiB, which a number alone counts; write it as 256M or 1.5G"
				 : "milliseconds");
	else if (error || number > row->most)
		snprintf(why, why_bytes, "--%s %s: too large; must be from %s to %s", row->word,
			 value, least, most);
	else if (number < row->least)
		snprintf(why, why_bytes, "--%s %s: too small; must be from %s to %s", row->word,
			 value, least, most);
	else
		return *field = number, 0;
	return -EINVAL;
}

/* Print the names that a choice has, as "direct and ptrace". */
static void list_names(const struct machine_row *row, char *list, size_t bytes)
{
	size_t n = 0;

	*list = 0;
	for (unsigned i = 0; row->names[i] && n < bytes; i++)
		if (*row->names[i]) {
			const char *between = row->names[i + 1] ? ", " : " and ";

			n += (size_t)snprintf(list + n, bytes - n, "%s%s", n ? between : "",
					      row->names[i]);
		}
}

static int set_choice(uint32_t *field, const struct machine_row *row, const char *value, char *why,
		      size_t why_bytes)
{
	char list[128];

	for (unsigned i = 0; row->names[i]; i++)
		if (*value && !strcmp(row->names[i], value)) {
			*field = i;
			return 0;
		}
	list_names(row, list, sizeof list);
	snprintf(why, why_bytes, "--%s %s: no such %s; there are %s", row->word, value, row->word,
		 list);
	return -EINVAL;
}

/* Returns the number of the name that a list of names begins with, or -1. */
static int name_at(const char *const *names, const char *list, size_t bytes)
{
	for (int i = 0; names[i]; i++)
		if (strlen(names[i]) == bytes && !memcmp(names[i], list, bytes))
			return i;
	return -1;
}

/* Adds the names of a list "A,B" to the set.  If one is wrong, the set stays as it was. */
static int set_set(uint32_t *field, const struct machine_row *row, const char *value, char *why,
		   size_t why_bytes)
{
	uint32_t set = *field;
	char list[256];

	for (const char *at = value;; at++) {
		size_t bytes = strcspn(at, ",");
		int number = name_at(row->names, at, bytes);

		if (number < 0) {
			list_names(row, list, sizeof list);
			snprintf(why, why_bytes, "--%s %s: no such name: \"%.*s\"; there are %s",
				 row->word, value, (int)(bytes < 32 ? bytes : 32), at, list);
			return -EINVAL;
		}
		set |= 1u << number;
		at += bytes;
		if (!*at)
			break;
	}
	*field = set;
	return 0;
}

size_t machine_set_names(const char *const *names, uint32_t set, char *text, size_t bytes)
{
	size_t n = 0;

	if (bytes)
		*text = 0;
	for (unsigned i = 0; names[i]; i++)
		if (set >> i & 1)
			n += (size_t)snprintf(n < bytes ? text + n : NULL,
					      n < bytes ? bytes - n : 0, "%s%s", n ? "," : "",
					      names[i]);
	return n;
}

static int add_item(struct machine_list *list, const struct machine_row *row, const char *value,
		    char *why, size_t why_bytes)
{
	if (list->n == MACHINE_LIST_ITEMS) {
		snprintf(why, why_bytes, "--%s %s: there can be %d", row->word, value,
			 MACHINE_LIST_ITEMS);
		return -EINVAL;
	}
	list->item[list->n++] = value;
	return 0;
}

int machine_set(struct machine *m, const struct machine_row *row, const char *value, char *why,
		size_t why_bytes)
{
	void *field = field_of(m, row);

	switch (row->kind) {
	case MACHINE_IS_FLAG:
		if (value && strcmp(value, "1")) {
			snprintf(why, why_bytes, "--%s takes no value", row->word);
			return -EINVAL;
		}
		*(bool *)field = true;
		return 0;
	case MACHINE_IS_TEXT:
	case MACHINE_IS_LIST:
		if (!*value) {
			snprintf(why, why_bytes, "--%s needs a value: --%s %s", row->word,
				 row->word, row->value);
			return -EINVAL;
		}
		if (row->kind == MACHINE_IS_LIST)
			return add_item(field, row, value, why, why_bytes);
		*(const char **)field = value;
		return 0;
	case MACHINE_IS_CHOICE:
		return set_choice(field, row, value, why, why_bytes);
	case MACHINE_IS_SET:
		return set_set(field, row, value, why, why_bytes);
	default:
		return set_measure(field, row, value, why, why_bytes);
	}
}

/* --- passing values on ------------------------------------------------------------------------ */

/* Set the value's text.  False: it is the default.  The values of TEXT and LIST are their strings,
 * which are not copied to `text`. */
static bool value_of(const struct machine *m, const struct machine_row *row,
		     char text[MACHINE_VALUE])
{
	const void *field = field_of((struct machine *)m, row);
	uint32_t number;

	switch (row->kind) {
	case MACHINE_IS_FLAG:
		strcpy(text, "1");
		return *(const bool *)field;
	case MACHINE_IS_TEXT:
		return *(const char *const *)field;
	case MACHINE_IS_LIST:
		return ((const struct machine_list *)field)->n;
	case MACHINE_IS_CHOICE:
		number = *(const uint32_t *)field;
		snprintf(text, MACHINE_VALUE, "%s", row->names[number]);
		return number;
	case MACHINE_IS_SET:
		number = *(const uint32_t *)field;
		bug_on(machine_set_names(row->names, number, text, MACHINE_VALUE) >= MACHINE_VALUE);
		return number;
	default:
		number = *(const uint32_t *)field;
		measures[row->kind].print(number, text, MACHINE_VALUE);
		return number != row->start;
	}
}

static void add_list(struct machine_words *w, char *word, const struct machine_list *list)
{
	for (unsigned i = 0; i < list->n; i++) {
		w->word[w->n++] = word;
		w->word[w->n++] = (char *)list->item[i];
	}
}

void machine_words(const struct machine *m, unsigned readers, struct machine_words *w)
{
	w->n = 0;
	for (unsigned i = 0; i < MACHINE_ROWS; i++) {
		const struct machine_row *row = &machine_rows[i];

		if (!(row->readers & readers) || !value_of(m, row, w->text[i][1]))
			continue;
		snprintf(w->text[i][0], MACHINE_VALUE, "--%s", row->word);
		if (row->kind == MACHINE_IS_LIST) {
			add_list(w, w->text[i][0], field_of((struct machine *)m, row));
			continue;
		}
		w->word[w->n++] = w->text[i][0];
		if (row->kind == MACHINE_IS_TEXT)
			w->word[w->n++] = *(char **)field_of((struct machine *)m, row);
		else if (row->kind != MACHINE_IS_FLAG)
			w->word[w->n++] = w->text[i][1];
	}
}

int machine_take_words(struct machine *m, unsigned readers, int *argc, char **argv, char *why,
		       size_t why_bytes)
{
	int left = 0;

	for (int i = 0; i < *argc; i++) {
		const char *word = i && !strncmp(argv[i], "--", 2) ? argv[i] + 2 : "";
		const struct machine_row *row = find_row(word, strlen(word), readers);
		bool flag = row && row->kind == MACHINE_IS_FLAG;

		if (!row) {
			argv[left++] = argv[i];
			continue;
		}
		if (!flag && i + 1 == *argc) {
			snprintf(why, why_bytes, "--%s needs a value", word);
			return -EINVAL;
		}
		if (machine_set(m, row, flag ? NULL : argv[++i], why, why_bytes))
			return -EINVAL;
	}
	argv[left] = NULL;
	*argc = left;
	return 0;
}

size_t machine_print(const struct machine *m, unsigned readers, char *text, size_t bytes)
{
	char value[MACHINE_VALUE];
	size_t n = 0;

	if (bytes)
		*text = 0;
	for (unsigned i = 0; i < MACHINE_ROWS; i++) {
		const struct machine_row *row = &machine_rows[i];

		bug_on(row->readers & readers &&
		       (row->kind == MACHINE_IS_TEXT || row->kind == MACHINE_IS_LIST));
		if (row->readers & readers && value_of(m, row, value))
			n += (size_t)snprintf(n < bytes ? text + n : NULL,
					      n < bytes ? bytes - n : 0, "%s %s\n", row->word,
					      value);
	}
	return n;
}

int machine_read_line(struct machine *m, unsigned readers, const char *line, size_t bytes,
		      char *why, size_t why_bytes)
{
	const char *space = memchr(line, ' ', bytes);
	const struct machine_row *row = space
		? find_row(line, (size_t)(space - line), readers) : NULL;
	size_t n = row ? bytes - (size_t)(space + 1 - line) : 0;
	char value[MACHINE_VALUE];

	if (!row || row->kind == MACHINE_IS_TEXT || row->kind == MACHINE_IS_LIST)
		return -ENOENT;
	if (!n || n >= sizeof value) {
		snprintf(why, why_bytes, "--%s: its value is missing or too long", row->word);
		return -EINVAL;
	}
	memcpy(value, space + 1, n);
	value[n] = 0;
	return machine_set(m, row, value, why, why_bytes);
}

