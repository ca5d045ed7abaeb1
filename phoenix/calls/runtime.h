/* runtime.h - the one node of a process, its lock, waiting; for the files of calls/. */
#ifndef PHOENIX_RUNTIME_H
#define PHOENIX_RUNTIME_H

#include <pthread.h>
#include "phoenix/core/core.h"
#include "phoenix/net/net_loop.h"

extern struct runtime {
	struct net *net;
	struct phnx *ph;	/* NULL: not initialised or, if there is a net, about to end */
	/* shared_secret: other hosts can have it.  lodger: in a caller's loop */
	bool shared_secret, stop, forked, lodger;
	enum { NOBODY, BACKGROUND, APPLICATION } driver;
	unsigned corked;		/* calls of ph_cork() that wait for their ph_uncork() */
	unsigned waiters, senders;	/* threads that wait; of these, those that wait for room */
	uint64_t last_drive_us;
	unsigned sent;	/* messages and bytes sent since acknowledgements were last read */
	size_t sent_bytes;
	pthread_t thread;
	int fd;				/* of ph_get_fd(), or -1 */
	bool fd_set;
	ph_error_fn error_fn;
	void *error_arg;
} rt;
/* of the lock; more than 1: the call comes from a handler */
extern _Thread_local unsigned runtime_depth;

void runtime_lock(void);
void runtime_unlock(void);
/* Takes the lock and returns 0 if there is a node; otherwise reports and returns the error. */
int runtime_enter(const char *call);
void runtime_settle(void);
void runtime_send(void);	/* sends what is queued; runtime_settle() is still due */
void runtime_leave(void);			/* lets the node act on the call, and unlocks */
bool runtime_may_answer(void);	/* whether the node may act later, after an answer to a message */

/* Reports an error, and returns it. */
int __attribute__((format(printf, 2, 3))) runtime_fail(int error, const char *format, ...);
uint64_t runtime_now(void);
void runtime_wait(uint64_t deadline);	/* waits for an event; rt.ph may be NULL afterwards */
/* a message was sent: reads acknowledgements now and then */
void runtime_sent(size_t bytes);
/* Waits for room in a queue, until runtime_took() or an acknowledgement. */
void runtime_wait_for_room(void);
void runtime_took(void);
/* Polls without waiting; true: something has happened, runtime_settle() is due. */
bool runtime_look(void);
/* Returns whether this call may wait: a handler runs in the loop, and must not wait for it. */
bool runtime_may_wait(const char *call);
void runtime_arrived(void);		/* the receive queue has become empty or stopped being so */

/* base: as in net_new() */
int runtime_start(ph_vp_t lower, ph_vp_t upper, struct event_base *base);
void runtime_stop(void);		/* locked once when called and when it returns */

#endif
