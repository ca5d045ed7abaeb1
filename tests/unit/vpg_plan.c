/* A pipeline as parts: vpg/shell/plan.c.  A plan is printed in one form, and compared. */
#include <stdio.h>
#include <string.h>
#include "tests/unit/unit.h"
#include "vpg/shell/plan.h"

static void print_end(FILE *f, const char *sign, const struct plan_end *e)
{
	switch (e->kind) {
	case PLAN_OWN: return;
	case PLAN_PART: fprintf(f, " %s%zu", sign, e->part); return;
	case PLAN_FILE: fprintf(f, " %s%s%s", sign, e->append ? ">" : "", e->path); return;
	case PLAN_HERE: fprintf(f, " %shere:%s", sign, e->path); return;
	case PLAN_LIKE_OUT: fprintf(f, " %s&1", sign); return;
	}
}

static void print(const struct plan *p, char *to, size_t room)
{
	FILE *f = fmemopen(to, room, "w");

	for (size_t i = 0; i < p->n; i++) {
		const struct plan_part *part = p->parts + i;

		fprintf(f, "%s%s%s@%s", i ? "; " : "", part->carries ? "+" : "", part->words[0],
			part->nick ? part->nick : "");
		print_end(f, "<", &part->in);
		print_end(f, ">", &part->out);
		print_end(f, "2>", &part->err);
	}
	fclose(f);
}

static const struct { const char *line, *is; size_t last; } plans[] = {
	{ "a", "a@", 0 },
	{ "a@B", "a@B", 0 },
	{ "a@E | b@G", "a@E >1; b@G <0", 1 },
	{ "a | b@G | c", "a@ >1; b@G <0 >2; c@ <1", 2 },
	{ "a@B < x@B > y@B", "a@B <x >y", 0 },
	{ "a < x > y", "a@ <x >y", 0 },
	{ "a@B < x > y", "a@B <here:x >here:y", 0 },
	{ "a@B < x@C", "a@B <1; +cat@C <x >0", 0 },
	{ "a@B >> y@C", "a@B >1; +cat@C <0 >>y", 0 },
	{ "a > y@C", "a@ >1; +cat@C <0 >y", 0 },
	{ "a@B 2> e@C", "a@B 2>1; +cat@C <0 >e", 0 },
	{ "a@B 2>&1 | b", "a@B >1 2>&1; b@ <0", 1 },
	{ "a > y | b", "a@ >y; b@ </dev/null", 1 },
	{ "a | b < x", "a@ >/dev/null; b@ <x", 1 },
	{ "a@B < x@C | b@D > y@E", "a@B <2 >1; b@D <0 >3; +cat@C <x >0; +cat@E <1 >y", 1 },
};

static void test_plans(void)
{
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		char is[256] = "";
		struct plan p;
		struct line l;

		CU_ASSERT_EQUAL(line_parse(&l, plans[i].line, strlen(plans[i].line)), 0);
		CU_ASSERT_EQUAL(plan_make(&p, &l, 0, line_pipeline_end(&l, 0)), 0);
		print(&p, is, sizeof is);
		if (strcmp(is, plans[i].is))
			printf("%s: %s\n", plans[i].line, is);
		CU_ASSERT_STRING_EQUAL(is, plans[i].is);
		CU_ASSERT_EQUAL(p.last, plans[i].last);
		plan_free(&p);
		line_free(&l);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "plans of pipelines", test_plans },
		UNIT_END
	};

	return UNIT_RUN("vpg_plan", tests);
}
