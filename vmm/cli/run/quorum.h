/* quorum.h - whether the owner of a machine, or its standby, may go on with the hosts that it
 * reaches, while the other one may be alive behind a network that is cut.  Pure: quorum.def has the
 * rule.
 */
#ifndef VMM_CLI_RUN_QUORUM_H
#define VMM_CLI_RUN_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

/* `reached` of `all` hosts are on this side, itself included.  `agreed`: the standby knows that
 * these are all; otherwise it may count one more or less. */
bool quorum_owner(uint32_t reached, uint32_t all, bool agreed);
bool quorum_standby(uint32_t reached, uint32_t all);

#endif
