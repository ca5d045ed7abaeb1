/* runtime.h - what runtime.c, startup.c and api.c have in common: the process's one node, its lock, waiting. */
#ifndef PHOENIX_RUNTIME_H
#define PHOENIX_RUNTIME_H

#include <pthread.h>
#include "phoenix/net.h"

extern struct runtime {
	struct net *net;
	struct phnx *ph;		/* NULL: not initialised, or, if there is a net, about to end */
	bool shared_secret, stop, forked, lodger;	/* lodger: in a caller's loop */
	enum { NOBODY, BACKGROUND, APPLICATION } driver;
	unsigned waiters, senders;	/* threads that wait; of all that wait, those for room */
	uint64_t last_drive_us;
	unsigned sent;			/* messages and bytes since the application last looked for acknowledgements */
	size_t sent_bytes;
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
void rt_send(void);			/* sends what there is to send; rt_settle() is still due */
void rt_leave(void);			/* lets the node act on what the call has changed, and unlocks */
bool rt_may_answer(void);		/* with a message that was received, before the node acts on what that has changed */

int __attribute__((format(printf, 2, 3))) rt_fail(int error, const char *format, ...);	/* reports; returns error */
uint64_t rt_now(void);
void rt_wait(uint64_t deadline);	/* waits for something to happen; rt.ph may be NULL afterwards */
void rt_sent(size_t bytes);		/* a message of the application's: reads what comes back, now and then */
void rt_wait_for_room(void);		/* the same, for what a message taken from the queue may bring; rt_took() ends it */
void rt_took(void);
bool rt_look(void);			/* whether anything has happened, as far as can be told at once; then rt_settle() is due */
bool rt_may_wait(const char *call);	/* a handler runs in the loop: it must not wait for it */
void rt_arrived(void);		/* the receive queue has become empty, or is not any more */

int rt_start(ph_vp_t lower, ph_vp_t upper, struct event_base *base);	/* base: as of net_new() */
void rt_stop(void);		/* locked once on entry and return */

#endif
