/* killed.h - explains why a process was killed, beyond the signal's number.
 *
 * A host or a control group (cgroup) that runs out of memory kills processes by SIGKILL.  The only
 * trace is a counter.
 */
#ifndef BASE_KILLED_H
#define BASE_KILLED_H

#include <stdint.h>

/* Remember the counter's value; called at a program's start. */
void killed_remember(void);

/* Return a text to append to the signal's number.  SIGKILL: that memory ran out, if the counter has
 * grown since, else "".  SIGSYS: what it means (base/confine.h). */
const char *killed_why(int signal);

/* Return the host's counter, 0 if it has none; `root`: "" except in tests. */
uint64_t killed_count(const char *root);

#endif
