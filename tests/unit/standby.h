/* standby.h - what the files of the test "standby" share; no other file includes it. */
#ifndef TESTS_STANDBY_H
#define TESTS_STANDBY_H

#include <CUnit/Basic.h>
#include "vmm/cli/standby/record.h"

enum { HEAD = sizeof(struct snapfile_record), HEARD_FD = 200 };

/* identifies a copy by a sum over its records */
uint32_t add_up(uint32_t sum, const struct snapfile_record *record, const void *data);
int be_a_standby(void); /* standby_fake.c; its exit status */

void add_records(CU_pSuite suite); /* standby_record.c */
void add_orders(CU_pSuite suite); /* standby_orders.c */
void add_sender(CU_pSuite suite); /* standby_sender.c */

#endif
