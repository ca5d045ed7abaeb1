/* standby.c - tests of the messages between a machine's owner and its standby (vmm/cli/standby/).
 * This file is the program, which is also the standby that the tests talk to.  Records are in
 * standby_record.c, orders in standby_orders.c, the owner's side in standby_sender.c, and the
 * standby's answers in standby_fake.c.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/standby.h"

int main(int argc, char **argv)
{
	unsigned failures;
	CU_pSuite suite;

	if (argc > 1 && !strcmp(argv[1], "-T"))
		return be_a_standby();
	signal(SIGPIPE, SIG_IGN);
	if (dup2(memfd_create("heard", 0), HEARD_FD) < 0 || CU_initialize_registry())
		return 1;
	suite = CU_add_suite("standby", NULL, NULL);
	add_records(suite);
	add_orders(suite);
	add_sender(suite);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
