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
	if (argc > 1 && !strcmp(argv[1], "-T"))
		return be_a_standby();
	signal(SIGPIPE, SIG_IGN);
	if (dup2(memfd_create("heard", 0), HEARD_FD) < 0)
		return 1;
	return UNIT_RUN("standby", tests_of_records, tests_of_orders, tests_of_sender);
}
