/* Names of several computers, and their completion: vpg/shell/group.c, completion.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "tests/unit/unit.h"
#include "vpg/shell/completion.h"

static void print(const struct group *g, char *to, size_t room)
{
	size_t n = 0;

	*to = 0;
	for (size_t i = 0; i < g->n && n < room; i++)
		n += (size_t)snprintf(to + n, room - n, "%s%s", i ? " " : "", g->nicks[i]);
}

static const struct { const char *name, *is; } right[] = {
	{ "h[1-3]", "h1 h2 h3" },
	{ "h[08-11]", "h08 h09 h10 h11" },
	{ "h[1,3,5-6]x", "h1x h3x h5x h6x" },
	{ "h[7]", "h7" },
	{ "[1-2]", "1 2" },
};

static void test_right(void)
{
	for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
		struct group g = { 0 };
		char is[128];

		CU_ASSERT(group_is_one(right[i].name) && group_is_valid(right[i].name));
		CU_ASSERT_EQUAL(group_expand(&g, right[i].name), 0);
		print(&g, is, sizeof is);
		CU_ASSERT_STRING_EQUAL(is, right[i].is);
		group_free(&g);
	}
	CU_ASSERT(group_is_valid("all"));
	CU_ASSERT_FALSE(group_is_one("h1"));
	CU_ASSERT_FALSE(group_is_one("allx"));
}

static void test_wrong(void)
{
	static const char *const wrong[] = {
		"h", "h[", "h[]", "h[1", "h]1[", "h[1-]", "h[-2]", "h[3-1]", "h[1,]", "h[a-b]",
		"h[1][2]", "h[1-99999]", "h[1234567]", "-[1]", "h[1]/x", "h[1 2]",
		"a-name-that-is-too-long-for-a-nickname[1-2]",
	};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct group g = { 0 };

		CU_ASSERT_EQUAL(group_expand(&g, wrong[i]), -EINVAL);
		CU_ASSERT_FALSE(group_is_valid(wrong[i]));
		group_free(&g);
	}
}

static void test_completion(void)
{
	static const struct { const char *text, *begin, *first; size_t found, common; } cases[] = {
		{ "ps", NULL, NULL, 0, 0 },	   { "ps@", "", "harp", 4, 0 },
		{ "ps@h", "h", "harp", 3, 2 },	   { "ps@har", "har", "harp", 2, 4 },
		{ "a | b@t", "t", "tuba", 1, 4 },  { "a > f@x", "x", NULL, 0, 0 },
		{ "ps@h x", NULL, NULL, 0, 0 },	   { "\"a@h", "h", "harp", 3, 2 },
	};
	struct group g = { 0 };

	group_add(&g, "harp");
	group_add(&g, "harp2");
	group_add(&g, "halo");
	group_add(&g, "tuba");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *begin = completion_start(cases[i].text, strlen(cases[i].text)), *first;
		size_t common;

		CU_ASSERT_EQUAL(!begin, !cases[i].begin);
		if (!begin)
			continue;
		CU_ASSERT_STRING_EQUAL(begin, cases[i].begin);
		CU_ASSERT_EQUAL(completion_match(&g, begin, strlen(begin), &first, &common),
				cases[i].found);
		CU_ASSERT_EQUAL(common, cases[i].common);
		CU_ASSERT_EQUAL(!first, !cases[i].first);
		if (first)
			CU_ASSERT_STRING_EQUAL(first, cases[i].first);
	}
	group_free(&g);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "names of several computers", test_right },
		{ "what is none", test_wrong },
		{ "completion", test_completion },
		UNIT_END
	};

	return UNIT_RUN("vpg_group", tests);
}
