/* machine.c - numbers, sizes and times (base/quantity.c), and the description of a machine
 * (base/machine.def): each row is set, at its limits and beyond, passed on as words and as lines,
 * and read again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/machine.h"
#include "base/mechanisms.h"
#include "base/quantity.h"
#include "base/wire.h"
#include "tests/unit/unit.h"

static const struct quantity_case {
	int (*parse)(const char *, uint32_t *);
	const char *text;
	int error;
	uint32_t value;
} quantities[] = {
	{ quantity_parse_number, "0", 0, 0 },
	{ quantity_parse_number, "4294967295", 0, UINT32_MAX },
	{ quantity_parse_number, "007", 0, 7 },
	{ quantity_parse_number, "4294967296", -ERANGE, 0 },
	{ quantity_parse_number, "", -EINVAL, 0 },
	{ quantity_parse_number, "99999999999999999999999", -ERANGE, 0 },
	{ quantity_parse_number, "-1", -EINVAL, 0 },
	{ quantity_parse_number, "1.0", -EINVAL, 0 },
	{ quantity_parse_number, " 1", -EINVAL, 0 },
	{ quantity_parse_number, "1x", -EINVAL, 0 },
	{ quantity_parse_mib, "256", 0, 256 },
	{ quantity_parse_mib, "256M", 0, 256 },
	{ quantity_parse_mib, "1G", 0, 1024 },
	{ quantity_parse_mib, "1.5G", 0, 1536 },
	{ quantity_parse_mib, "0.5gib", 0, 512 },
	{ quantity_parse_mib, "65536K", 0, 64 },
	{ quantity_parse_mib, "1K", -EDOM, 0 },
	{ quantity_parse_mib, "1.5M", -EDOM, 0 },
	{ quantity_parse_mib, "0.0009765625G", -EDOM, 0 },
	{ quantity_parse_mib, "4194304G", -ERANGE, 0 },
	{ quantity_parse_mib, "1.G", -EINVAL, 0 },
	{ quantity_parse_mib, ".5G", 0, 512 },
	{ quantity_parse_mib, ".G", -EINVAL, 0 },
	{ quantity_parse_mib, "1G512M", 0, 1536 },
	{ quantity_parse_mib, "512mb", 0, 512 },
	{ quantity_parse_mib, "268435456b", 0, 256 },
	{ quantity_parse_mib, "1gi", 0, 1024 },
	{ quantity_parse_mib, "1b", -EDOM, 0 },
	{ quantity_parse_mib, "99999999999999999999G", -ERANGE, 0 },
	{ quantity_parse_mib, "1e3", -EINVAL, 0 },
	{ quantity_parse_ms, "1.5", 0, 1500 },
	{ quantity_parse_ms, "0.5H", 0, 1800000 },
	{ quantity_parse_ms, "2min", 0, 120000 },
	{ quantity_parse_ms, "99999999999h", -ERANGE, 0 },
	{ quantity_parse_mib, "1 G", -EINVAL, 0 },
	{ quantity_parse_mib, "1T", 0, 1048576 },
	{ quantity_parse_ms, "5", 0, 5000 },
	{ quantity_parse_ms, "5s", 0, 5000 },
	{ quantity_parse_ms, "1.5s", 0, 1500 },
	{ quantity_parse_ms, "0.001s", 0, 1 },
	{ quantity_parse_ms, "500ms", 0, 500 },
	{ quantity_parse_ms, "2m", 0, 120000 },
	{ quantity_parse_ms, "0.5ms", -EDOM, 0 },
	{ quantity_parse_ms, "1.0000001s", -EDOM, 0 },
	{ quantity_parse_ms, "1.0000000s", 0, 1000 },
	{ quantity_parse_ms, "71583m", -ERANGE, 0 },
	{ quantity_parse_ms, "1d", 0, 86400000 },
	{ quantity_parse_ms, "50d", -ERANGE, 0 },
	{ quantity_parse_ms, "5y", -EINVAL, 0 },
	{ quantity_parse_ms, ".5", 0, 500 },
	{ quantity_parse_ms, "5seconds", 0, 5000 },
	{ quantity_parse_ms, "1m30s", 0, 90000 },
	{ quantity_parse_ms, "1h30m", 0, 5400000 },
	{ quantity_parse_ms, "1H30Min1.5s", 0, 5401500 },
	{ quantity_parse_ms, "1s500ms", 0, 1500 },
	{ quantity_parse_ms, "0h2m", 0, 120000 },
	{ quantity_parse_ms, "1.5h30m", 0, 7200000 },
	{ quantity_parse_ms, "1m90s", 0, 150000 },
	{ quantity_parse_ms, "1m30", -EINVAL, 0 },
	{ quantity_parse_ms, "30s1m", -EINVAL, 0 },
	{ quantity_parse_ms, "1s1s", -EINVAL, 0 },
	{ quantity_parse_ms, "1m1min", -EINVAL, 0 },
	{ quantity_parse_ms, "1m 30s", -EINVAL, 0 },
	{ quantity_parse_ms, "1m-30s", -EINVAL, 0 },
	{ quantity_parse_ms, "1m30x", -EINVAL, 0 },
	{ quantity_parse_ms, "1m30.s", -EINVAL, 0 },
	{ quantity_parse_ms, "m30s", -EINVAL, 0 },
	{ quantity_parse_ms, "1s0.5ms", -EDOM, 0 },
	{ quantity_parse_ms, "71582m47.295s", 0, UINT32_MAX },
	{ quantity_parse_ms, "71582m47.296s", -ERANGE, 0 },
	{ quantity_parse_ms, "999999999999d999999999999h999999999999m", -ERANGE, 0 },
	{ quantity_parse_ms, "1.5.5s", -EINVAL, 0 },
};

static void test_quantities(void)
{
	for (size_t i = 0; i < ARRAY_LEN(quantities); i++) {
		const struct quantity_case *c = &quantities[i];
		uint32_t value = 0;
		int error = c->parse(c->text, &value);

		CU_ASSERT(error == c->error && value == c->value);
		if (error != c->error || value != c->value)
			printf("\n    %s: %d, %u\n", c->text, error, value);
	}
}

static void test_printed_quantities(void)
{
	static const uint32_t values[] = { 0, 1, 999, 1000, 1500, 60000, 3600000, UINT32_MAX };
	char text[MACHINE_VALUE];
	uint32_t back;

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		quantity_print_number(values[i], text, sizeof text);
		CU_ASSERT(!quantity_parse_number(text, &back) && back == values[i]);
		quantity_print_mib(values[i], text, sizeof text);
		CU_ASSERT(!quantity_parse_mib(text, &back) && back == values[i]);
		quantity_print_ms(values[i], text, sizeof text);
		CU_ASSERT(!quantity_parse_ms(text, &back) && back == values[i]);
	}
}

static uint32_t *number_of(struct machine *m, const struct machine_row *row)
{
	return (uint32_t *)((char *)m + row->offset);
}

/* Writes a value of a row that is not its default; `high`: the largest. */
static const char *some_value(const struct machine_row *row, bool high, char text[MACHINE_VALUE])
{
	uint32_t number = high || row->least == row->start ? row->most : row->least;

	switch (row->kind) {
	case MACHINE_IS_FLAG: return NULL;
	case MACHINE_IS_TEXT:
	case MACHINE_IS_LIST: return "some file,ro";
	case MACHINE_IS_CHOICE: return row->names[high && row->names[2] ? 2 : 1];
	case MACHINE_IS_SET:
		machine_set_names(row->names, high ? ~0u : 2, text, MACHINE_VALUE);
		break;
	case MACHINE_IS_NUMBER: quantity_print_number(number, text, MACHINE_VALUE); break;
	case MACHINE_IS_SIZE: quantity_print_mib(number, text, MACHINE_VALUE); break;
	case MACHINE_IS_TIME: quantity_print_ms(number, text, MACHINE_VALUE); break;
	}
	return text;
}

/* A list is full if `high`. */
static void set_all(struct machine *m, bool high)
{
	char text[MACHINE_VALUE], why[200];

	machine_defaults(m);
	for (unsigned i = 0; i < MACHINE_ROWS; i++)
		for (unsigned n = high && machine_rows[i].kind == MACHINE_IS_LIST
					  ? MACHINE_LIST_ITEMS
					  : 1;
		     n; n--)
			CU_ASSERT_EQUAL(machine_set(m, &machine_rows[i],
						    some_value(&machine_rows[i], high, text), why,
						    sizeof why),
					0);
}

static size_t field_bytes(const struct machine_row *row)
{
	switch (row->kind) {
	case MACHINE_IS_FLAG: return sizeof(bool);
	case MACHINE_IS_TEXT: return sizeof(char *);
	case MACHINE_IS_LIST: return offsetof(struct machine_list, n) + sizeof(unsigned);
	default: return sizeof(uint32_t);
	}
}

/* Each row that `reader` reads must come through; the others keep their defaults. */
static bool same(const struct machine *a, const struct machine *b, unsigned readers)
{
	struct machine defaults;
	bool ok = true;

	machine_defaults(&defaults);
	for (unsigned i = 0; i < MACHINE_ROWS; i++) {
		const struct machine_row *row = &machine_rows[i];
		const struct machine *other = row->readers & readers ? b : &defaults;

		ok &= !memcmp((const char *)a + row->offset, (const char *)other + row->offset,
			      field_bytes(row));
	}
	return ok;
}

static void test_words(void)
{
	static const unsigned readers[] = { MACHINE_NODE, MACHINE_NODE | MACHINE_NODE0,
					    MACHINE_MONITOR, MACHINE_IOSRV };

	for (size_t i = 0; i < 2 * ARRAY_LEN(readers); i++) {
		struct machine m, back;
		struct machine_words w;
		char *argv[MACHINE_WORDS + 5] = { "program", "--other", "x" }, why[200];
		int argc = 3;

		set_all(&m, i & 1);
		machine_words(&m, readers[i / 2], &w);
		for (unsigned n = 0; n < w.n; n++)
			argv[argc++] = w.word[n];
		argv[argc++] = "last";
		machine_defaults(&back);
		CU_ASSERT_EQUAL(machine_take_words(&back, readers[i / 2], &argc, argv, why,
						   sizeof why),
				0);
		CU_ASSERT(argc == 4 && !strcmp(argv[1], "--other") && !strcmp(argv[2], "x") &&
			  !strcmp(argv[3], "last") && !argv[4]);
		CU_ASSERT(same(&back, &m, readers[i / 2]));
	}
}

static void test_lines(void)
{
	static const unsigned readers[] = { MACHINE_STANDBY, MACHINE_INFO, MACHINE_SAVED };

	for (size_t i = 0; i < 2 * ARRAY_LEN(readers); i++) {
		struct machine m, back;
		char text[MACHINE_TEXT], little[10], why[200];
		size_t n;

		set_all(&m, i & 1);
		n = machine_print(&m, readers[i / 2], text, sizeof text);
		CU_ASSERT(n == strlen(text) && n > 10);
		CU_ASSERT_EQUAL(machine_print(&m, readers[i / 2], little, sizeof little), n);
		CU_ASSERT(!memcmp(little, text, sizeof little - 1) && !little[sizeof little - 1]);
		CU_ASSERT_EQUAL(machine_print(&m, readers[i / 2], NULL, 0), n);
		machine_defaults(&back);
		for (const char *at = text, *end; (end = strchr(at, '\n')); at = end + 1)
			CU_ASSERT_EQUAL(machine_read_line(&back, readers[i / 2], at,
							  (size_t)(end - at), why, sizeof why),
					0);
		CU_ASSERT(same(&back, &m, readers[i / 2]));
	}
}

/* What was not set is not passed on: a machine without options has no words. */
static void test_defaults(void)
{
	struct machine m;
	struct machine_words w;
	char text[MACHINE_TEXT];

	machine_defaults(&m);
	machine_words(&m, ~0u, &w);
	CU_ASSERT_EQUAL(w.n, 0);
	CU_ASSERT_EQUAL(machine_print(&m, MACHINE_STANDBY | MACHINE_INFO | MACHINE_SAVED, text,
				      sizeof text),
			0);
	CU_ASSERT(!*text && m.mem_mib == DEFAULT_RAM_MIB);
}

/* A refused value leaves the field as it was, and gives one line that names the option. */
static bool is_refused(const struct machine_row *row, const char *value, const char *because)
{
	struct machine m, before;
	char why[200] = "", name[40];
	bool refused;

	set_all(&m, true);
	before = m;
	snprintf(name, sizeof name, "--%s", row->word);
	refused = machine_set(&m, row, value, why, sizeof why) == -EINVAL;
	return refused && !memcmp(&m, &before, sizeof m) && strstr(why, name) == why &&
	       strstr(why, because) && !strchr(why, '\n');
}

static void test_limits(void)
{
	for (unsigned i = 0; i < MACHINE_ROWS; i++) {
		const struct machine_row *row = &machine_rows[i];
		char text[MACHINE_VALUE + 4];

		if (row->kind == MACHINE_IS_FLAG) {
			CU_ASSERT(is_refused(row, "0", "takes no value"));
		} else if (row->kind == MACHINE_IS_TEXT) {
			CU_ASSERT(is_refused(row, "", "needs a value"));
		} else if (row->kind == MACHINE_IS_LIST) {
			CU_ASSERT(is_refused(row, "", "needs a value") &&
				  is_refused(row, "one more", "there can be 4"));
		} else if (row->kind == MACHINE_IS_CHOICE) {
			CU_ASSERT(is_refused(row, "none", "no such") &&
				  is_refused(row, "", "no such"));
		} else if (row->kind == MACHINE_IS_SET) {
			CU_ASSERT(is_refused(row, "none", "no such name: \"none\"") &&
				  is_refused(row, "", "no such name: \"\"") &&
				  is_refused(row, "hold,", "no such name: \"\"") &&
				  is_refused(row, "hold,,runs", "no such name: \"\"") &&
				  is_refused(row, "hold runs", "there are "));
		} else {
			snprintf(text, sizeof text, "%u%s", row->least - 1,
				 row->kind == MACHINE_IS_TIME ? "ms" : "");
			CU_ASSERT(is_refused(row, text, "too small"));
			snprintf(text, sizeof text, "%u%s", row->most + 1,
				 row->kind == MACHINE_IS_TIME ? "ms" : "");
			CU_ASSERT(is_refused(row, text, "too large"));
			CU_ASSERT(is_refused(row, "x", "not a") && is_refused(row, "", "not a") &&
				  is_refused(row, "-1", "not a"));
			CU_ASSERT_EQUAL(*number_of(&(struct machine){ 0 }, row), 0);
		}
	}
}

/* Names add up; their order and repetitions do not matter. */
static void test_sets(void)
{
	const struct machine_row *row = &machine_rows[MACHINE_ROW_without];
	char text[MACHINE_VALUE], little[6], why[200];
	struct machine m;

	machine_defaults(&m);
	for (unsigned i = 0; i < MECHANISMS; i++)
		CU_ASSERT(mechanism_on(m.without, (enum mechanism)i));
	CU_ASSERT(!machine_set(&m, row, "hold,runs,hold", why, sizeof why));
	CU_ASSERT_EQUAL(m.without, 1u << MECHANISM_HOLD | 1u << MECHANISM_RUNS);
	CU_ASSERT(!machine_set(&m, row, "poll", why, sizeof why));
	for (unsigned i = 0; i < MECHANISMS; i++)
		CU_ASSERT_EQUAL(mechanism_on(m.without, (enum mechanism)i),
				i != MECHANISM_HOLD && i != MECHANISM_RUNS && i != MECHANISM_POLL);
	CU_ASSERT_EQUAL(machine_set_names(mechanism_names, m.without, text, sizeof text),
			strlen("runs,hold,poll"));
	CU_ASSERT_STRING_EQUAL(text, "runs,hold,poll");
	CU_ASSERT_EQUAL(machine_set_names(mechanism_names, m.without, little, sizeof little), 14);
	CU_ASSERT_STRING_EQUAL(little, "runs,");
	CU_ASSERT_EQUAL(machine_set_names(mechanism_names, 0, text, sizeof text), 0);
	CU_ASSERT_STRING_EQUAL(text, "");
	/* all names fit where they are passed on */
	CU_ASSERT(machine_set_names(mechanism_names, ~0u, NULL, 0) < MACHINE_VALUE);
}

static void test_wrong_words(void)
{
	static const struct { unsigned readers; char *argv[4]; const char *why; } wrong[] = {
		{ MACHINE_NODE, { "p", "--cpus" }, "--cpus needs a value" },
		{ MACHINE_NODE, { "p", "--cpus", "0" }, "--cpus 0: too small" },
		{ MACHINE_NODE, { "p", "--cpus", "33" }, "--cpus 33: too large" },
		{ MACHINE_MONITOR, { "p", "--engine", "fast" }, "there are direct and ptrace" },
	};
	char *passed[] = { "p", "--cpus", "2", NULL }, why[200];
	struct machine m;
	int argc = 3;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		char *argv[5] = { NULL };

		memcpy(argv, wrong[i].argv, sizeof wrong[i].argv);
		argc = argv[2] ? 3 : 2;
		machine_defaults(&m);
		CU_ASSERT_EQUAL(machine_take_words(&m, wrong[i].readers, &argc, argv, why,
						   sizeof why),
				-EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, wrong[i].why));
	}
	argc = 3;
	CU_ASSERT_EQUAL(machine_take_words(&m, MACHINE_MONITOR, &argc, passed, why, sizeof why), 0);
	/* not the monitor's: left to its caller */
	CU_ASSERT(argc == 3 && !strcmp(passed[1], "--cpus"));
}

/* a number that is too long for MACHINE_VALUE */
#define ZEROS_32 "00000000000000000000000000000000"
#define ZEROS ZEROS_32 ZEROS_32 ZEROS_32 ZEROS_32 ZEROS_32

static void test_wrong_lines(void)
{
	static const struct { const char *line; int error;
	} lines[] = {
		{ "", -ENOENT },	{ "cpus", -ENOENT },
		{ "cpus 2", 0 },	{ "cpus ", -EINVAL },
		{ "cpu 2", -ENOENT },	{ "cpuss 2", -ENOENT },
		{ "disk d", -ENOENT },	{ "cpus " ZEROS "2", -EINVAL },
		{ "cpus 33", -EINVAL }, { "mem 17G", -EINVAL },
		{ "mem 0.5G", 0 },	{ "engine direct", -ENOENT /* no snapshot says that */ },
	};
	struct machine m;
	char why[200];

	machine_defaults(&m);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		CU_ASSERT_EQUAL(machine_read_line(&m, MACHINE_SAVED, lines[i].line,
						  strlen(lines[i].line), why, sizeof why),
				lines[i].error);
	CU_ASSERT(m.cpus == 2 && m.mem_mib == 512);
}

/* Each name is one of its enum's. */
static void test_names(void)
{
	CU_ASSERT_STRING_EQUAL(policy_names[POLICY_FIXED], "fixed");
	CU_ASSERT_STRING_EQUAL(policy_names[POLICY_SPREAD], "spread");
	CU_ASSERT_STRING_EQUAL(policy_names[POLICY_CONCENTRATE], "concentrate");
	CU_ASSERT_STRING_EQUAL(policy_names[POLICY_AUTO], "auto");
	for (unsigned i = 0; i < MACHINE_ROWS; i++) {
		CU_ASSERT(strlen(machine_rows[i].word) + 3 <= MACHINE_VALUE);
		CU_ASSERT(!machine_rows[i].help == !machine_rows[i].typed);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "numbers, sizes, times", test_quantities },
		{ "numbers, sizes, times as printed", test_printed_quantities },
		{ "words of a command line", test_words },
		{ "lines", test_lines },
		{ "defaults", test_defaults },
		{ "limits", test_limits },
		{ "sets of names", test_sets },
		{ "wrong words", test_wrong_words },
		{ "wrong lines", test_wrong_lines },
		{ "names", test_names },
		UNIT_END
	};

	return UNIT_RUN("machine", tests);
}
