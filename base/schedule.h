/* schedule.h - daemons and monitors outrank VM processes: what waits for a page waits for them. */
#ifndef BASE_SCHEDULE_H
#define BASE_SCHEDULE_H

/* This process runs rarely and shortly, and should run at once when it is woken. Asks the host's scheduler for a slice of
 * 0.1 ms (Linux 6.12 and newer; older ones ignore it). Needs no privilege and never fails. */
void schedule_promptly(void);

/* The opposite, for a process that computes: nice 5. Inherited by exec. */
void schedule_behind(void);

#endif
