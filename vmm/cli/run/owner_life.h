/* owner_life.h - the life of a machine's owner, `vmp run` or the keeper of `vmp up`, from its start
 * on: the machine runs, goes back to its last checkpoint when a host is lost, and goes on without
 * host 0 when that leaves.  Pure: owner_life.def is the table.
 *
 * Code that notices an event calls run_happens() (go_back.c), and does what that returns.
 */
#ifndef VMM_CLI_RUN_OWNER_LIFE_H
#define VMM_CLI_RUN_OWNER_LIFE_H

#include <stdbool.h>

/* From MOVES on, all processes of the machine had to end. */
#define OWNER_STATES(X) \
	X(STARTS)  /* the machine is started, or loaded for the first time */ \
	X(RUNS) \
	X(LEAVES)  /* it runs; host 0 is to leave */ \
	X(STANDS)  /* it stands still, with its last checkpoint complete */ \
	X(MOVES)   /* it is loaded on the other hosts of this computer */ \
	X(HANDED)  /* the standby was told to take it over */ \
	X(GATHERS) /* a host was lost: all processes end, the hosts that are left prepare */ \
	X(RETURNS) /* it is loaded from its last checkpoint */ \
	X(AWAY)	   /* it is, or may be, another owner's */

#define OWNER_EVENTS(X) \
	X(THERE)    /* the machine is started or loaded, and connected */ \
	X(LOST)	    /* a host is lost, and the machine can go back */ \
	X(GATHERED) /* the hosts that are left are prepared; on one computer at once */ \
	X(ASKED)    /* host 0 shall leave */ \
	X(STILL)    /* the last checkpoint is complete */ \
	X(TROUBLE)  /* a checkpoint could not be taken, or no other host can go on */ \
	X(MOVE)	    /* on one computer: go on without host 0 */ \
	X(GO)	    /* in a cluster: the standby has everything; it is told to go on */ \
	X(UP)	    /* the standby, told to go on, has done so */ \
	X(FAILED)   /* the standby, told to go on, does not */ \
	X(DOUBT)    /* the standby is silent, and may have gone on */ \
	X(TAKEN)    /* a standby has taken over the machine by itself */ \
	X(UNPREPARED) /* the standby cannot prepare the hosts, and still stands by */ \
	X(ALONE)    /* there is no standby any more */

#define OWNER_ACTIONS(X) \
	X(NOTHING) \
	X(GO_BACK)     /* end what is left of the machine, and prepare the hosts that are left */ \
	X(LOAD)	       /* load the last checkpoint on those hosts */ \
	X(SAY_GONE)    /* say in the log that host 0 has gone */ \
	X(LEAVE)       /* begin to leave host 0 */ \
	X(REFUSE)      /* answer that host 0 stays: the machine is only starting */ \
	X(STAY)	       /* answer that host 0 stays, for the reason that the event has */ \
	X(THAW)	       /* let the machine go on that stands still */ \
	X(STAY_THAW)   /* STAY and THAW */ \
	X(HAND_OVER)   /* to the standby, or at once to the other hosts of this computer */ \
	X(RELOAD)      /* end the machine's processes, and load it on one host less */ \
	X(HAND)	       /* end the machine's processes, and tell the standby to go on */ \
	X(START_AGAIN) /* the standby does not go on: as after a loss, host 0 included */ \
	X(LINGER)      /* so that clients can read where the machine is now; then end */ \
	X(END)	       /* with the reason that the event has */ \
	X(LOOK)	       /* choose the next step with the standby, or another standby */

#define OWNER_STATE(name) OWNER_##name,
#define OWNER_EVENT(name) OWNER_ON_##name,
#define OWNER_ACTION(name) OWNER_DO_##name,
enum owner_state { OWNER_STATES(OWNER_STATE) OWNER_STATE_COUNT };
enum owner_event { OWNER_EVENTS(OWNER_EVENT) OWNER_EVENT_COUNT };
enum owner_action { OWNER_ACTIONS(OWNER_ACTION) OWNER_ACTION_COUNT };
#undef OWNER_STATE
#undef OWNER_EVENT
#undef OWNER_ACTION

/* Returns the row's action, and sets the state that follows.  Returns OWNER_ACTION_COUNT, and
 * changes nothing, if the event cannot come in this state. */
enum owner_action owner_life(enum owner_state *state, enum owner_event event);

const char *owner_state_name(enum owner_state state);
const char *owner_event_name(enum owner_event event);

/* Host 0 is to leave, and the machine has not ended for that yet. */
static inline bool owner_leaves(enum owner_state state)
{
	return state == OWNER_LEAVES || state == OWNER_STANDS;
}

/* Nothing of the machine has run here since its last checkpoint, so the loss of a host does not end
 * it, with --checkpoint or without. */
static inline bool owner_has_stopped(enum owner_state state)
{
	return state >= OWNER_MOVES;
}

/* What the end of a request to the standby means for the owner. */
struct standby_failure {
	bool was_told;	/* to go on */
	bool is_over;	/* it has taken over by itself */
	bool may_go_on; /* its connection broke, and it is silent */
	bool is_there;	/* it has refused this request alone */
};
enum owner_event owner_event_of(const struct standby_failure *failure);

#endif
