/* agenda.h - node 0's agenda: moves of CPUs, changes of hosts, snapshots, the debugger and the
 * policy's samples exclude each other in part.  agenda.def is the table of what may begin beside
 * what.  A request that comes while something else is being served waits; it is never refused for
 * that, except a debugger's.
 *
 *   a move      begins while CPUs run, but not ahead of a snapshot that waits for moves alone; a
 *               move that belongs to a current change of hosts always begins
 *   a change    of hosts begins when no snapshot is being made or pulled
 *   a snapshot  begins when no CPU is moving, no host is added or removed, and no other snapshot is
 *               being made or pulled
 *
 * agenda.c is pure; agenda_look.c asks the parts of node 0, and begins what may begin.
 */
#ifndef VMM_NODE_AGENDA_H
#define VMM_NODE_AGENDA_H

#include <stdbool.h>

struct node;

#define AGENDA_OPERATIONS(X) \
	X(MOVE)	    /* of a CPU */ \
	X(CHANGE)   /* of hosts: one joins or leaves */ \
	X(TURN)	    /* the same, when it goes ahead of a snapshot that waits */ \
	X(SNAPSHOT) /* or a checkpoint */ \
	X(DEBUGGER) /* is attached */ \
	X(SAMPLE)   /* the policy asks all hosts for their load */ \
	X(DECISION) /* the policy moves a CPU */

#define AGENDA_CONDITIONS(X) \
	X(ENDS)		 /* the machine ends */ \
	X(STARTS)	 /* or is only starting */ \
	X(DEBUGGED)	 /* a debugger is attached */ \
	X(STILL)	 /* it stands still for a snapshot, or is about to */ \
	X(SAVED)	 /* a snapshot is being made or pulled */ \
	X(CHANGED)	 /* a host joins or leaves, other than host 0 */ \
	X(YIELDS)	 /* host 0 leaves: by a checkpoint, which is a snapshot itself */ \
	X(CHANGE_ASKED)	 /* a change is being made or waits */ \
	X(MOVED)	 /* a CPU is moving */ \
	X(MOVE_ASKED)	 /* a move is being made or waits */ \
	X(SNAPSHOT_NEXT) /* a snapshot waits for nothing but the current move */

#define AGENDA_NAME(name) AGENDA_##name,
enum agenda_operation { AGENDA_OPERATIONS(AGENDA_NAME) AGENDA_OPERATION_COUNT };
enum agenda_condition { AGENDA_CONDITIONS(AGENDA_NAME) AGENDA_CONDITION_COUNT };
#undef AGENDA_NAME

enum agenda_verdict { AGENDA_NO /* begins */, AGENDA_W /* waits */, AGENDA_R /* is refused */ };

/* Returns whether the operation may begin under these conditions, a bit set; and in `because`, if
 * it is not NULL, the first of them that refuses it or, if none does, for which it waits. */
enum agenda_verdict agenda_judge(enum agenda_operation operation, unsigned conditions,
				 enum agenda_condition *because);
/* Returns why the operation is refused under this condition; "" if it is not refused. */
const char *agenda_refusal(enum agenda_operation operation, enum agenda_condition because);
/* Returns the n-th operation, from 0 on, that may begin when this condition has ended; or
 * AGENDA_OPERATION_COUNT. */
enum agenda_operation agenda_next(enum agenda_condition ended, unsigned n);

/* ---- agenda_look.c, node 0 ---- */

/* Returns whether the operation may begin now. */
bool agenda_may(const struct node *node, enum agenda_operation operation);
/* Returns why a request for this operation is refused; NULL: it is not, but may have to wait. */
const char *agenda_why_not(const struct node *node, enum agenda_operation operation);
/* Returns what the operation waits for.  It must be one that waits. */
enum agenda_condition agenda_waits_for(const struct node *node, enum agenda_operation operation);
/* Call it when a condition has ended: begins what waited for that and may begin now. */
void agenda_done(struct node *node, enum agenda_condition ended);

#endif
