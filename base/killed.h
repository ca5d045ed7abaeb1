/* killed.h - what is known of a process that was killed, beyond the signal's number.
 *
 * Who runs out of memory, the host or a control group (cgroup), kills with SIGKILL and leaves no word but a count.
 */
#ifndef BASE_KILLED_H
#define BASE_KILLED_H

#include <stdint.h>

/* At a program's start: how often that has happened before. */
void killed_remember(void);

/* Behind "signal 9": that it has happened since, or "". Behind SIGSYS: what that means (base/confine.h). */
const char *killed_why(int signal);

/* The host's count, 0 if it does not tell; `root`: "" but for tests. */
uint64_t killed_count(const char *root);

#endif
