/* quorum.h - whether the owner of a machine, or its standby, may go on with the hosts whose votes
 * it has (vmm/shared/vote.h), while the other one may be alive.  Pure: quorum.def has the rule, and
 * vmm/cli/standby/sender.h says why.
 */
#ifndef VMM_CLI_RUN_QUORUM_H
#define VMM_CLI_RUN_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

/* `doubt`: the standby may be alive, though nothing is heard of it, or its connection has ended.
 * `held`: the other one has the vote of some host that was asked for it.
 * `votes`: the hosts that have given their vote, the counting one's own computer included; `all`:
 * how many the machine had.  agreed: the standby, too, would count `all` hosts. */
bool quorum_owner(bool doubt, uint32_t votes, bool held, uint32_t all, bool agreed);
bool quorum_standby(uint32_t votes, bool held, uint32_t all);

#endif
