/* unit.h - a program of unit tests is a table of its tests; this runs them with CUnit.
 *
 *	int main(void)
 *	{
 *		static const struct unit_test tests[] = {
 *			UNIT_TEST(grows),
 *			{ "shrinks to nothing", shrinks },
 *			UNIT_END
 *		};
 *
 *		return UNIT_RUN("a list", tests);
 *	}
 */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <stdbool.h>
#include <stdio.h>

#include <CUnit/Basic.h>

struct unit_test { const char *name; void (*run)(void); };
#define UNIT_TEST(function) { #function, function }
#define UNIT_END { NULL, NULL } /* the last row of each table */

/* Run the tests of these tables, as UNIT_RUN("name", table...).  Return main()'s status: 0 if there
 * are tests and none failed.
 */
#define UNIT_RUN(suite, ...) unit_run(suite, (const struct unit_test *[]){ __VA_ARGS__, NULL })

static inline int unit_run(const char *name, const struct unit_test *const *tables)
{
	CU_pSuite suite;
	bool passed;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	suite = CU_add_suite(name, NULL, NULL);
	for (; *tables; tables++)
		for (const struct unit_test *test = *tables; test->name; test++)
			CU_add_test(suite, test->name, test->run);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	setvbuf(stdout, NULL, _IONBF, 0); /* of a test that hangs, the name is in the log */
	CU_basic_run_tests();
	passed = !CU_get_number_of_failures() && !CU_get_error() && CU_get_number_of_tests_run();
	CU_cleanup_registry();
	return passed ? 0 : 1;
}

#endif
