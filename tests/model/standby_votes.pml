/* standby_votes.pml - part of standby.pml: who has whose vote, and whether that is enough. */
/* Votes.  OLD: the owner's, whose machine has processes there (presence.h); NEW: the owner's, which
 * has none there yet. */
#define FREE 0
#define OLD 1
#define NEW 2
#define OF(standby) ((standby) + 2)
#define CUT_OFF(i, j) (apart && (i) + (j) == apart && ((i) == 0 || (j) == 0))
#define NEAR(i, j) (!dead[j] && away[j] == away[i] && !CUT_OFF(i, j))
#define SILENT(i) (away[i] || apart == (i))
#define CONNECTED(i) (!dead[0] && !closed[i] && !broken[i] && !SILENT(i))
#ifdef FOUR
#define EACH(op, f) (f(1) op f(2) op f(3))
#define ALL(f) f(1); f(2); f(3)
#else
#define EACH(op, f) (f(1) op f(2))
#define ALL(f) f(1); f(2)
#endif

#define HAS_NEW(j) (vote[j] == NEW)
#define NEAR_OWNER(j) NEAR(0, j)
#define HELD_FROM_OWNER(j) (NEAR(0, j) && vote[j] > NEW)
#define TAKEN_FROM_OWNER(j) (HELD_FROM_OWNER(j) && on[vote[j] - 2])
/* The owner waits for longer than a standby does that has not decided yet; but not for a host that
 * was silent, and is slow, where it has enough. */
#define OWNER_KNOWS(j) (!NEAR(0, j) || vote[j] == NEW || TAKEN_FROM_OWNER(j))
#define FREE_TO_OWNER(j) (vote[j] == FREE && NEAR(0, j))
#define FREE_TO_ME(j) (vote[j] == FREE && NEAR(me, j))
#define HAS_MINE(j) (vote[j] == OF(me))
#define NEAR_ME(j) NEAR(me, j)
#define HELD_FROM_ME(j) (NEAR(me, j) && vote[j] != FREE && vote[j] != OF(me))
/* A standby waits until the processes of an owner that is lost have ended. */
#define I_KNOW(j) (!NEAR(me, j) || (vote[j] != FREE && !(vote[j] == OLD && !on[0])))
#ifdef NO_VOTES
#define OWNERS_VOTES (1 + EACH(+, NEAR_OWNER))
#define MY_VOTES (NEAR(me, 0) + EACH(+, NEAR_ME))
#define ALL_KNOWN true
#define I_DECIDE true
#define HELD(f) false
#define HAS_OWN true
#else
#define OWNERS_VOTES (1 + EACH(+, HAS_NEW))
#define MY_VOTES EACH(+, HAS_MINE)
#define ALL_KNOWN EACH(&&, OWNER_KNOWS)
#define I_DECIDE EACH(&&, I_KNOW)
#define HELD(f) EACH(||, f)
#define HAS_OWN (vote[me] == OF(me))
#endif
/* The standby's connection has ended, perhaps by the cut. */
#ifdef NO_DOUBT_BROKEN
#define MAY_BE_THERE false
#else
#define MAY_BE_THERE (broken[to] && !left[to])
#endif
#define OWNER_MAY(held) \
	(!QUORUM_COUNTS(doubt, held) || QUORUM_OWNER(OWNERS_VOTES, held, COMPUTERS))
/* A slow host may have given its vote to an earlier standby, of which the owner has no doubt. */
#ifdef RASH
#define OWNER_MAY_BEFORE OWNER_MAY(false)
#else
#define OWNER_MAY_BEFORE QUORUM_OWNER(OWNERS_VOTES, false, COMPUTERS)
#endif
#ifdef EVEN
#define QUORUM_ME QUORUM_OWNER
#else
#define QUORUM_ME QUORUM_STANDBY
#endif
/* A standby whose owner is lost: by silence, or by the end of the connection. */
#ifdef COUNTED_BEFORE
#define ON_SILENCE STANDBY_ON_LOST
#define DOUBTS (life == STANDBY_IS_GATHERS)
#else
#define ON_SILENCE STANDBY_ON_SILENT
#define DOUBTS true
#endif
#ifdef AT_ONCE
#define TOO_EARLY false
#else
#define TOO_EARLY TOO_SOON
#endif
#ifdef UNCOUNTED
#define DOUBTS_AT_END false
#else
#define DOUBTS_AT_END true
#endif
#ifdef NO_HALF
#define STANDBY_MAY true
#else
#define STANDBY_MAY \
	(HAS_OWN && (!QUORUM_COUNTS(doubts, HELD(HELD_FROM_ME)) || \
		     QUORUM_ME(MY_VOTES, HELD(HELD_FROM_ME), COMPUTERS)))
#endif

/* It has waited for the other hosts for long enough (vmm/cli/run/gather.def). */
inline decide(may)
{
	last = false; pulls_last = false;
	answer = (answer == ASKED -> STAYS : answer);
#ifdef STUCK
	happens(OWNER_ON_GATHERED)
#else
	if
	:: HELD(TAKEN_FROM_OWNER) || !(may) -> dead[0] = true; goto end
	:: else -> go_back()
	fi
#endif
}
/* A row of gather.def: no host that is not known yet was silent, or each was. */
#define GATHER_OTHERS(taken, undecided, comes, silent_comes, enough, late) \
	:: atomic { !dead[0] && !ended && owner == OWNER_GATHERS && \
		taken(HELD(TAKEN_FROM_OWNER)) && undecided(!ALL_KNOWN) && comes(!ALL_KNOWN) && \
		silent_comes(false) && enough(true) && late(true) -> \
		decide(OWNER_MAY(HELD(HELD_FROM_OWNER))) }
#define GATHER_SILENT(taken, undecided, comes, silent_comes, enough, late) \
	:: atomic { !dead[0] && !ended && owner == OWNER_GATHERS && \
		taken(HELD(TAKEN_FROM_OWNER)) && undecided(false) && comes(false) && \
		silent_comes(!ALL_KNOWN) && enough(OWNER_MAY_BEFORE && !MAY_BE_THERE) && \
		late(true) -> \
		decide(OWNER_MAY_BEFORE) }
