/* phnx_net.h - what the files of phnx_net have in common; nobody else includes it. */
#ifndef PHNX_NET_H
#define PHNX_NET_H

#include <CUnit/Basic.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "phnx/phnx.h"

enum { SPACE = 64, PATIENCE = 60000000, MAX_ROLES = 8 };
extern int base_port;			/* of this test */
extern char folder[];			/* for files; removed in the end */
extern atomic_int errors[32];		/* reported to this process, by number without its sign */
extern char *_Atomic told;		/* the last one's text */

/* A role runs in its own process; it fails by returning a line number. */
#define CHECK(x) do { if (!(x)) return __LINE__; } while (0)
void run_roles(int (*role)(int), int n);

void count_error(void *arg, int error, const char *text);
void add_long(void *into, const void *from, size_t len);	/* of ph_reduce() */
void assume_range(ph_vp_t lo, ph_vp_t hi);
/* Ports from base_port on; 0: listens nowhere, or dials nobody. */
void start(int listen, int dial, const char *session);

void add_calls(CU_pSuite suite);	/* phnx_calls.c */
void add_crews(CU_pSuite suite);	/* phnx_crews.c */
void add_threads(CU_pSuite suite);	/* phnx_threads.c */

#endif
