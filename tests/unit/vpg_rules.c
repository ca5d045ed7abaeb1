/* Which commands others may run: vpg/peer/rules.c. */
#include <stdio.h>
#include "tests/unit/unit.h"
#include "vpg/peer/rules.h"

static const struct { const char *text, *program; enum rules_answer is; } cases[] = {
	{ "", "rm", RULES_ALLOW },
	{ "# deny rm\n\n", "rm", RULES_ALLOW },
	{ "deny rm", "rm", RULES_DENY },
	{ "deny rm\n", "/bin/rm", RULES_DENY },
	{ "deny /bin/rm\n", "rm", RULES_ALLOW },
	{ "deny /bin/*\n", "/bin/rm", RULES_DENY },
	{ "deny *sh\n", "bash", RULES_DENY },
	{ "allow ps\n", "ps", RULES_ALLOW },
	{ "allow ps\n", "rm", RULES_DENY },
	{ "allow ps\nallow tar\n", "tar", RULES_ALLOW },
	{ "allow *\ndeny rm\n", "rm", RULES_DENY },
	{ "deny rm\nallow *\n", "rm", RULES_DENY },
	{ "  allow   ps  \n", "ps", RULES_ALLOW },
	{ "permit ps\n", "ps", RULES_DAMAGED },
	{ "allow\n", "ps", RULES_DAMAGED },
	{ "allow ps tar\n", "ps", RULES_DAMAGED },
	{ "allowance ps\n", "ps", RULES_DAMAGED },
};

static void test_rules(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (rules_ask(cases[i].text, cases[i].program) != cases[i].is)
			printf("%s: %s\n", cases[i].text, cases[i].program);
		CU_ASSERT_EQUAL(rules_ask(cases[i].text, cases[i].program), cases[i].is);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "which commands are run", test_rules },
		UNIT_END
	};

	return UNIT_RUN("vpg_rules", tests);
}
