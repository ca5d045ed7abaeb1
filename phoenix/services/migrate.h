/* migrate.h - calls that move virtual nodes to and from adjacent nodes. */
#ifndef PHOENIX_MIGRATE_H
#define PHOENIX_MIGRATE_H

#include "phoenix/core/core.h"

/* What a call wants.  FORMER: not a call's; what an earlier call wanted, which another has
 * followed. */
enum wish { WISH_NONE, WISH_JOIN, WISH_LEAVE, WISH_TAKE, WISH_HAND, WISH_FORMER };

/* NULL: nodes move without state */
void migrate_set_app(struct phnx *ph, const struct ph_migration *m);
/* Begins a call: count virtual nodes, above (side > 0) or below.  Returns 0 or an error. */
int migrate_begin(struct phnx *ph, enum wish wish, ph_vp_t count, int side);
int migrate_result(const struct phnx *ph);	/* of the last call; > 0: it is under way */
void migrate_cancel(struct phnx *ph);		/* the call gives up */
bool migrate_is_locked(const struct phnx *ph);	/* this node takes part in a migration */

#endif
