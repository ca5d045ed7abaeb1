/* standby.h - what the files of the test "standby" share; no other file includes it. */
#ifndef TESTS_STANDBY_H
#define TESTS_STANDBY_H

#include "tests/unit/unit.h"
#include "vmm/cli/standby/record.h"

enum { HEAD = sizeof(struct snapfile_record), HEARD_FD = 200 };

/* identifies a copy by a sum over its records */
uint32_t add_up(uint32_t sum, const struct snapfile_record *record, const void *data);
int be_a_standby(void); /* standby_fake.c; its exit status */

extern const struct unit_test tests_of_records[]; /* standby_record.c */
extern const struct unit_test tests_of_orders[]; /* standby_orders.c */
extern const struct unit_test tests_of_sender[]; /* standby_sender.c */

#endif
