/* standby_life.h - the life of `vmp standby` (takeover.c) from its start until it owns the machine:
 * it keeps copies of checkpoints, prepares the other hosts, and takes over when it is told to, or
 * when the owner is lost.  Pure: standby_life.def is the table.
 */
#ifndef VMM_CLI_RUN_STANDBY_LIFE_H
#define VMM_CLI_RUN_STANDBY_LIFE_H

#include <stdbool.h>

/* In this order: those up to READY have an owner, those from GATHERS on have lost it. */
#define STANDBY_STATES(X) \
	X(NEW)	    /* no orders have come */ \
	X(FOLLOWS)  /* it keeps copies; the other hosts are not prepared */ \
	X(PREPARES) /* the other hosts are being prepared */ \
	X(READY)    /* they are prepared */ \
	X(TOLD)	    /* the owner has told it to take over, and they are prepared */ \
	X(GATHERS)  /* the owner is lost; the other hosts are being prepared */ \
	X(WAITS)    /* they are prepared; the machine's processes on this computer may be alive */ \
	X(ALONE)    /* those processes have ended; the other hosts are being prepared */ \
	X(ASKS)	    /* hosts prepared, processes ended: asks for votes (vmm/shared/vote.h) */ \
	X(TAKES)    /* enough hosts have given their vote */

#define STANDBY_EVENTS(X) \
	X(ORDERS)  /* orders have come, and are good */ \
	X(PREPARE) /* the owner wants the other hosts prepared */ \
	X(CANNOT)  /* their preparation cannot begin */ \
	X(RELEASE) /* the owner wants the other hosts released */ \
	X(ALL)	   /* all other hosts are ready */ \
	X(SOME)	   /* some other hosts have failed */ \
	X(GO)	   /* the owner tells it to take over, and there is a checkpoint */ \
	X(LOST)	   /* the owner's connection has ended, and there is a checkpoint */ \
	X(SILENT)  /* the owner is silent, and there is a checkpoint */ \
	X(BARE)	   /* the owner is lost, and there is no checkpoint */ \
	X(GONE)	   /* the machine's processes on this computer have ended */ \
	X(HELD)	   /* those processes live on after the time that they are given */ \
	X(VOTES)   /* the hosts have given enough votes (quorum.h) */ \
	X(NO_VOTES) /* the time for votes is over, and they are too few */ \
	X(WORD)	   /* a neighbour says that the owner is alive (takeover.c: takeover_on_word()) */ \
	X(END)	   /* the owner says that it needs this standby no more */

#define STANDBY_ACTIONS(X) \
	X(NOTHING) \
	X(LISTEN)      /* listen for a neighbour's message */ \
	X(PREPARE)     /* prepare the other hosts */ \
	X(RELEASE)     /* release the other hosts */ \
	X(REFUSE)      /* answer why they cannot be prepared */ \
	X(SAY_PREPARED) \
	X(SAY_MISSING) /* answer which hosts have failed, and release the others */ \
	X(COUNT)       /* add those that have failed to the reason that is printed */ \
	X(LOOK)	       /* check whether the machine's processes here have ended */ \
	X(PREPARE_LOOK) \
	X(RELEASE_PREPARE_LOOK) \
	X(SAY_OVER)    /* say that it takes over */ \
	X(END)	       /* without a message */ \
	X(FAIL)	       /* end, for the reason that the event has */

#define STANDBY_STATE(name) STANDBY_IS_##name,
#define STANDBY_EVENT(name) STANDBY_ON_##name,
#define STANDBY_ACTION(name) STANDBY_DO_##name,
enum standby_state { STANDBY_STATES(STANDBY_STATE) STANDBY_STATE_COUNT };
enum standby_event { STANDBY_EVENTS(STANDBY_EVENT) STANDBY_EVENT_COUNT };
enum standby_action { STANDBY_ACTIONS(STANDBY_ACTION) STANDBY_ACTION_COUNT };
#undef STANDBY_STATE
#undef STANDBY_EVENT
#undef STANDBY_ACTION

/* Returns the row's action, and sets the state that follows.  Returns STANDBY_ACTION_COUNT, and
 * changes nothing, if the event cannot come in this state. */
enum standby_action standby_life(enum standby_state *state, enum standby_event event);

const char *standby_state_name(enum standby_state state);
const char *standby_event_name(enum standby_event event);

static inline bool standby_has_owner(enum standby_state state)
{
	return state <= STANDBY_IS_READY;
}

static inline bool standby_has_lost(enum standby_state state)
{
	return state >= STANDBY_IS_GATHERS;
}

/* The other hosts are asked for their votes. */
static inline bool standby_asks(enum standby_state state)
{
	return state == STANDBY_IS_ASKS || state == STANDBY_IS_TOLD;
}

/* The other hosts are being prepared. */
static inline bool standby_is_preparing(enum standby_state state)
{
	return state == STANDBY_IS_PREPARES || state == STANDBY_IS_GATHERS ||
	       state == STANDBY_IS_ALONE;
}

#endif
