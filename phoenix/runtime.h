/* runtime.h - what runtime.c, startup.c and api.c have in common: the process's one node, its lock, waiting. */
#ifndef PHOENIX_RUNTIME_H
#define PHOENIX_RUNTIME_H

#include <pthread.h>
#include "phoenix/net.h"

extern struct runtime {
	struct net *net;
	struct phnx *ph;		/* NULL: not initialised */
	bool shared_secret, stop, forked, lodger;	/* lodger: in a caller's loop */
	enum { NOBODY, BACKGROUND, APPLICATION } driver;
	unsigned waiters;
	uint64_t last_drive_us;
	pthread_t thread;
	int fd;				/* of ph_get_fd(), or -1 */
	bool fd_set;
	ph_error_fn error_fn;
	void *error_arg;
} rt;
extern _Thread_local unsigned rt_depth;	/* of the lock; more than 1: called from a handler */

void rt_lock(void);
void rt_unlock(void);
int rt_enter(const char *call);		/* locks, if there is a node; else reports, does not, and returns the error */
void rt_settle(void);
void rt_leave(void);			/* lets the node act on what the call has changed, and unlocks */

int __attribute__((format(printf, 2, 3))) rt_fail(int error, const char *format, ...);	/* reports; returns error */
uint64_t rt_now(void);
void rt_wait(uint64_t deadline);	/* waits for something to happen; rt.ph may be NULL afterwards */
bool rt_look(void);			/* whether anything has happened, as far as can be told at once */
bool rt_may_wait(const char *call);	/* a handler runs in the loop: it must not wait for it */
void rt_arrived(void);		/* the receive queue has become empty, or is not any more */

int rt_start(ph_vp_t lower, ph_vp_t upper, struct event_base *base);	/* base: as of net_new() */
void rt_stop(void);		/* locked once on entry and return */

#endif
