/* asking.h - asks the daemon of this computer the questions of `vmp peer` and `vmp peers`.
 *
 * Each function returns the exit status: 0; 1 if the daemon refuses; or 125 if it does not run.  In
 * the last two cases it prints one line.
 */
#ifndef VPG_ASKING_H
#define VPG_ASKING_H

#include <stdbool.h>
#include <stdint.h>

int ask_peers(bool json);
int ask_members(bool json);
int ask_invite(uint64_t seconds, const char *address);
int ask_revoke(const char *nick);
int ask_dial(const char *host, unsigned port, const char *user);
/* Sets limits (lending.h), and prints all.  LIMIT_AS_IT_IS leaves a limit as it is. */
int ask_limits(uint64_t processors, uint64_t memory_mib, uint64_t machines, bool json);
int ask_status(void);
int ask_stop(void);

#endif
