/* worker.h - a thread for each chip that has work().  The threads are made at the start, before the
 * server is confined. */
#ifndef IOSRV_WORKER_H
#define IOSRV_WORKER_H

struct event_base;

/* Start all threads; die if that fails.  All of them run when it returns. */
void worker_open(struct event_base *loop);
/* End all threads; waits for running work, whose result is not reported. */
void worker_close(void);

#endif
