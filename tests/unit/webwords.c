/* webwords.c - what the page of `vmp web` may ask for, as words of a command. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/types.h"
#include "tests/unit/unit.h"
#include "vmm/cli/web/webwords.h"

#define LONG63 "a23456789012345678901234567890123456789012345678901234567890123"

static void commands(void)
{
	static const struct {
		const char *form, *words; /* words == NULL: refused */
		unsigned file;
	} cases[] = {
		{ "what=move&cpu=1&host=0", "cpu move 1 0", 0 },
		{ "host=b.example&what=move&cpu=1", "cpu move 1 b.example", 0 },
		{ "what=add", "host add", 0 },
		{ "what=add&host=b", "host add b", 0 },
		{ "what=remove&host=1", "host remove 1", 0 },
		{ "what=policy&policy=auto", "policy auto", 0 },
		{ "what=save&file=lab.saved", "snapshot save lab.saved", 2 },
		{ "what=save&file=" LONG63, "snapshot save " LONG63, 2 },
		{ "what=save&file=" LONG63 "4", NULL, 0 },
		{ "", NULL, 0 }, { "what", NULL, 0 }, { "what=", NULL, 0 }, { "what=fly", NULL, 0 },
		{ "what=mov&cpu=1&host=0", NULL, 0 }, { "what=move2&cpu=1&host=0", NULL, 0 },
		{ "cpu=1&host=0", NULL, 0 }, { "=&=", NULL, 0 }, { "&", NULL, 0 },
		{ "what=down", NULL, 0 }, { "what=move&cpu=1", NULL, 0 },
		{ "what=move&cpu=1&host=", NULL, 0 }, { "what=add&host=", NULL, 0 },
		{ "what=move&cpu=1&host=0&", NULL, 0 }, { "&what=add", NULL, 0 },
		{ "what=move&cpu=1&host=0&more=1", NULL, 0 },
		{ "what=move&cpu=1&host=0&a=1&b=2", NULL, 0 },
		{ "what=add&what=remove&host=1", NULL, 0 },
		{ "what=remove&host=1&host=2", NULL, 0 }, { "what=add&cpu=1", NULL, 0 },
		{ "what=remove&host=--all", NULL, 0 }, { "what=remove&host=-1", NULL, 0 },
		{ "what=save&file=../x", NULL, 0 }, { "what=save&file=a/b", NULL, 0 },
		{ "what=save&file=/x", NULL, 0 }, { "what=save&file=.x", NULL, 0 },
		{ "what=save&file=a%2fb", NULL, 0 }, { "what=save&file=a b", NULL, 0 },
		{ "what=save&file=a\nb", NULL, 0 }, { "what=save&file=a=b", NULL, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char line[200] = "";
		struct webwords words;
		const char *why = NULL;
		int error = webwords_parse(cases[i].form, strlen(cases[i].form), &words, &why);

		for (unsigned k = 0; k < words.n; k++)
			snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s",
				 k ? " " : "", words.word[k]);
		CU_ASSERT_EQUAL(error, cases[i].words ? 0 : -EINVAL);
		CU_ASSERT(!error || why);
		CU_ASSERT(error || (!strcmp(line, cases[i].words) && words.file == cases[i].file));
		if (error != (cases[i].words ? 0 : -EINVAL))
			fprintf(stderr, "%s: %d %s\n", cases[i].form, error, line);
	}
}

/* Whatever is sent, a command has one of the known beginnings, and its other words are harmless. */
static void random_forms(void)
{
	static const char *const pieces[] = { "what=", "move", "add", "remove", "save", "policy",
		"cpu=", "host=", "file=", "policy=", "&", "&", "&", "1", "a", "-", ".", "/", "%",
		"=", "\xff", " " };
	unsigned taken = 0;

	srand(1);
	for (unsigned i = 0; i < 300000; i++) {
		char form[128] = "what=";
		struct webwords words;
		const char *why;

		for (int n = 1 + rand() % 10; n > 0; n--)
			strcat(form, pieces[(size_t)rand() % ARRAY_LEN(pieces)]);
		if (webwords_parse(form, strlen(form), &words, &why))
			continue;
		taken++;
		CU_ASSERT_FATAL(words.n >= 2 && words.n <= 4);
		for (unsigned k = 0; k < words.n; k++)
			CU_ASSERT_FATAL(isalnum((unsigned char)*words.word[k]) &&
					!strpbrk(words.word[k], "/%=& \xff"));
	}
	CU_ASSERT(taken > 100);
}

/* A zero byte is a byte as any other, and what follows the form is not read. */
static void bytes(void)
{
	struct webwords words;
	const char *why;

	CU_ASSERT(webwords_parse("what=add\0", 9, &words, &why));
	CU_ASSERT(webwords_parse("what=add&host=a\0b", 17, &words, &why));
	CU_ASSERT(!webwords_parse("what=addition", 8, &words, &why) && words.n == 2);
}

static void sizes(void)
{
	static const struct { const char *form; uint32_t columns, rows; } cases[] = {
		{ "columns=80&rows=24", 80, 24 }, { "rows=1&columns=1000", 1000, 1 },
		{ "columns=1001&rows=24", 0, 0 }, { "columns=0&rows=24", 0, 0 },
		{ "columns=-1&rows=24", 0, 0 },	  { "columns=80", 0, 0 },
		{ "columns=80&rows=", 0, 0 },	  { "columns=80&rows=24&x=1", 0, 0 },
		{ "columns=80&columns=24", 0, 0 }, { "columns=99999999999&rows=1", 0, 0 },
		{ "columns= 8&rows=24", 0, 0 },	  { "", 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t columns = 0, rows = 0;
		bool good = webwords_size(cases[i].form, strlen(cases[i].form), &columns, &rows);

		CU_ASSERT_EQUAL(good, cases[i].columns != 0);
		CU_ASSERT(!good || (columns == cases[i].columns && rows == cases[i].rows));
	}
}

static void samples(void)
{
	CU_ASSERT_EQUAL(webwords_from("/api/record"), 0);
	CU_ASSERT_EQUAL(webwords_from("/api/record?"), 0);
	CU_ASSERT_EQUAL(webwords_from("/api/record?from="), 0);
	CU_ASSERT_EQUAL(webwords_from("/api/record?from=-1"), 0);
	CU_ASSERT_EQUAL(webwords_from("/api/record?from=12"), 12);
	CU_ASSERT_EQUAL(webwords_from("/api/record?from=99999999999999999999999"), UINT64_MAX);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "commands", commands },
		{ "random forms", random_forms },
		{ "bytes", bytes },
		{ "sizes", sizes },
		{ "samples", samples },
		UNIT_END
	};

	return UNIT_RUN("webwords", tests);
}
