/* guest_disks.c - the order in which the guest's first process unmounts disks. */
#include <stdio.h>
#include <string.h>
#include "guest/guest.h"
#include "tests/unit/unit.h"

static void the_last_is_first(void)
{
	char table[1000], deep[601], *device, *where;
	size_t bytes;

	memset(deep, 'x', sizeof deep - 1);
	deep[0] = '/';
	deep[sizeof deep - 1] = 0;
	bytes = (size_t)snprintf(table, sizeof table,
				 "/dev/vda /mnt ext4 rw 0 0\nproc /proc proc rw 0 0\n"
				 "/dev/vdb /mnt/a\\040b\\134c ext4 rw 0 0\n\n"
				 "/dev/vdc %s ext4 rw 0 0\n", deep);
	CU_ASSERT_TRUE_FATAL(disks_take_last(table, &bytes, &device, &where));
	CU_ASSERT_STRING_EQUAL(device, "/dev/vdc");
	CU_ASSERT_STRING_EQUAL(where, deep);
	CU_ASSERT_TRUE_FATAL(disks_take_last(table, &bytes, &device, &where));
	CU_ASSERT_STRING_EQUAL(device, "/dev/vdb");
	CU_ASSERT_STRING_EQUAL(where, "/mnt/a b\\c");
	CU_ASSERT_TRUE_FATAL(disks_take_last(table, &bytes, &device, &where));
	CU_ASSERT_STRING_EQUAL(where, "/proc");
	CU_ASSERT_TRUE_FATAL(disks_take_last(table, &bytes, &device, &where));
	CU_ASSERT_STRING_EQUAL(where, "/mnt");
	CU_ASSERT_FALSE(disks_take_last(table, &bytes, &device, &where));
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "the last is first", the_last_is_first },
		UNIT_END
	};

	return UNIT_RUN("guest_disks", tests);
}
