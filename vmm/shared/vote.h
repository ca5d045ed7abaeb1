/* vote.h - the vote of a computer: to which owner of a machine it belongs.
 *
 * When the network is cut, or a computer stood still, a machine may have two owners for a while:
 * the one before, and its standby (vmm/cli/run/takeover.c).  Each computer gives its vote to one of
 * them at a time.  The vote is the lock of a file in this user's private folder (presence.h), which
 * the owner's vmp-host there holds from before the daemon starts until everything that was started
 * there has ended; so no owner gets the vote while another one's processes live.  An owner holds
 * the vote of its own computer itself.  An owner goes on only with the hosts whose votes it has,
 * and, in doubt, only with enough of them (quorum.def).  (TRICKS: one-vote)
 */
#ifndef VMM_SHARED_VOTE_H
#define VMM_SHARED_VOTE_H

#define VOTE_LOCKS(X) \
	X(TAKEN)  /* the file is locked for the asker now */ \
	X(LOCKED) /* somebody else has locked it, or has it in use at this moment */ \
	X(BARRED) /* there is no private folder, or nothing can be locked */

#define VOTE_HOLDERS(X) \
	X(NOBODY) /* no name is in the file */ \
	X(ASKER)  /* the asking owner's */ \
	X(OTHER)  /* another owner's */ \
	X(RUNNER) /* another owner's, which had enough votes, and runs the machine here */

#define VOTE_ANSWERS(X) \
	X(UNASKED) \
	X(WAITS) /* not decided yet */ \
	X(GIVEN) /* the asker has it, until its process here ends */ \
	X(HELD)	 /* another owner has it; ask again */ \
	X(TAKEN) /* the same, and it runs the machine: an owner that hears this ends */ \
	X(NONE)	 /* nobody gets it: the owner that has the machine may use this computer, and a \
		  * standby may not */

#define VOTE_LOCK(name) VOTE_LOCK_##name,
#define VOTE_HOLDER(name) VOTE_HOLDER_##name,
#define VOTE_ANSWER(name) VOTE_##name,
enum vote_lock { VOTE_LOCKS(VOTE_LOCK) VOTE_LOCK_COUNT };
enum vote_holder { VOTE_HOLDERS(VOTE_HOLDER) VOTE_HOLDER_COUNT };
enum vote { VOTE_ANSWERS(VOTE_ANSWER) VOTE_COUNT };
#undef VOTE_LOCK
#undef VOTE_HOLDER
#undef VOTE_ANSWER

/* Pure: vote.def is the table. */
enum vote vote_answer(enum vote_lock lock, enum vote_holder holder);
/* The answer as a word, and back; VOTE_COUNT if it is none.  Pure. */
const char *vote_word(enum vote vote);
enum vote vote_of_word(const char *word);

#endif
