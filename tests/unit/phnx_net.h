/* phnx_net.h - for the files of phnx_net; nobody else includes it. */
#ifndef PHNX_NET_H
#define PHNX_NET_H

#include <stdatomic.h>
#include <stdbool.h>
#include "tests/unit/unit.h"
#include "phnx/phnx.h"

enum { SPACE = 64, PATIENCE = 60000000, MAX_ROLES = 8 };
extern int base_port;			/* the first of the ports that this test has claimed */
extern char folder[];			/* for files; removed at the end */
/* reports in this process, by the error's number without its sign */
extern atomic_int errors[32];
extern char *_Atomic told;		/* the text of the last report */

/* A role runs in its own process; it fails by returning a line number. */
#define CHECK(x) do { if (!(x)) return __LINE__; } while (0)
void run_roles(int (*role)(int), int n);

void count_error(void *arg, int error, const char *text);
void add_long(void *into, const void *from, size_t len);	/* for ph_reduce() */
void assume_range(ph_vp_t lo, ph_vp_t hi);
/* Starts a node; ports count from base_port.  listen 0: listens nowhere; dial 0: dials no node. */
void start(int listen, int dial, const char *session);

/* Role 0 asks, role 1 answers, with sizes around the limit of every buffer. */
int ask_and_answer(int role);
/* Does what ssh -W does, without the encryption.  Returns its exit status. */
int play_ssh(char **argv);

extern const struct unit_test tests_of_ssh[]; /* phnx_ssh.c */
extern const struct unit_test tests_of_strangers[]; /* phnx_strangers.c */
extern const struct unit_test tests_of_calls[]; /* phnx_calls.c */
extern const struct unit_test tests_of_crews[]; /* phnx_crews.c */
extern const struct unit_test tests_of_threads[]; /* phnx_threads.c */

#endif
