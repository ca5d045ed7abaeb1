/* worker.h - a thread for each chip that has work().  The threads are made at the start, before the server is confined. */
#ifndef IOSRV_WORKER_H
#define IOSRV_WORKER_H

struct event_base;

void worker_open(struct event_base *loop); /* dies if there is no thread to be had; all threads run when it returns */
void worker_close(void);		   /* waits for work under way; its result is not reported */

#endif
