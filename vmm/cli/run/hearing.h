/* hearing.h - for how long a standby has not heard its owner.  Time in which the standby itself did
 * not run does not count: the owner's signs of life may wait to be read, or to be passed on by an
 * sshd that did not run either.  Pure; times are in ns.  (TRICKS: own-lateness)
 *
 * A timer calls hearing_ticks() at a fixed interval; how late that call comes is how long the
 * process, or its computer, stood still.
 */
#ifndef VMM_CLI_RUN_HEARING_H
#define VMM_CLI_RUN_HEARING_H

#include <stdint.h>

struct hearing {
	uint64_t every_ns; /* the timer's interval */
	uint64_t heard_ns; /* when the owner has last sent anything */
	uint64_t due_ns;   /* when the timer fires next */
	uint64_t late_ns;  /* left out, since `heard_ns` */
};

/* The timer begins. */
void hearing_begin(struct hearing *h, uint64_t every_ns, uint64_t now);
void hearing_ticks(struct hearing *h, uint64_t now);
void hearing_hears(struct hearing *h, uint64_t now);
/* Returns for how long nothing was heard.  Knows of a timer that is late now. */
uint64_t hearing_silent_ns(const struct hearing *h, uint64_t now);

#endif
