/* asking.h - what `vmp peer` and `vmp peers` ask the daemon of this computer.
 *
 * Each returns the exit status: 0; 1: the daemon refuses; or 125: it does not run.  One line is
 * printed then.
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
/* Limits (lending.h): LIMIT_AS_IT_IS for what is not changed.  Prints them. */
int ask_limits(uint64_t processors, uint64_t memory_mib, uint64_t machines, bool json);
int ask_status(void);
int ask_stop(void);

#endif
