/* agenda.pml - node 0's agenda as a Promela model: requests for moves of CPUs, changes of hosts and
 * snapshots come in any order, a snapshot's may be withdrawn, and a debugger comes and goes.  What
 * may begin beside what, and what begins when something has ended, is the table of the code,
 * vmm/node/agenda.def.  The functions that begin an operation are written here as in moves.c
 * (moves_begin), hosts.c (hosts_begin) and cut/turn.c (turn_begin).
 *
 * A change of hosts is of one of three kinds: one that moves a CPU itself, one that moves none, and
 * that of host 0, which ends by a snapshot that is asked for like any other one.
 *
 * What must hold: no CPU moves while the machine stands still.  No two snapshots, and no two
 * changes go at once; none of them goes beside the other one, except host 0's change beside its
 * snapshot.
 * Nothing begins while a debugger is attached.  When nothing can happen any more, no request waits:
 * each began, was refused, or was withdrawn.  While a snapshot waits for moves alone, no other move
 * begins, and a change begins only in its turn, behind another snapshot.  While a change waits, at
 * most one snapshot begins.
 *
 * Options that must fail (-D).  NO_MOVED, NO_CHANGED, NO_STILL, NO_SAVED, NO_SNAPSHOT_NEXT: what
 * follows that condition in the table does not begin.  NO_WAIT: a snapshot that waits does not keep
 * moves and changes waiting.
 */
#define NO 0
#define W 1
#define R 2

/* operations */
#define OP_MOVE 0
#define OP_CHANGE 1
#define OP_TURN 2
#define OP_SNAPSHOT 3
#define OP_DEBUGGER 4

#ifndef MOVES
#define MOVES 2
#endif
#ifndef CHANGES
#define CHANGES 2
#endif
#ifndef SNAPSHOTS
#define SNAPSHOTS 2
#endif

mtype = { NOTHING, PLAIN, WITH_MOVE, HOST_0 };

byte moves, changes, snapshots; /* that wait */
byte asked_moves, asked_changes, asked_snapshots, withdrawn, attached;
bool moved;		/* a CPU is moving */
mtype change = NOTHING; /* that goes */
bool its_move;		/* it still has to move a CPU */
bool yield_saves;	/* host 0's change has asked for its snapshot */
bool still, saved, debugged;
byte passed; /* snapshots that began while a change waited */
byte verdict;

/* The conditions, as in agenda_look.c. */
#define IS_ENDS false
#define IS_STARTS false
#define IS_DEBUGGED debugged
#define IS_STILL still
#define IS_SAVED saved
#define IS_CHANGED (change == PLAIN || change == WITH_MOVE)
#define IS_YIELDS (change == HOST_0)
#define IS_CHANGE_ASKED (changes > 0 || change != NOTHING)
#define IS_MOVED moved
#define IS_MOVE_ASKED (moves > 0 || moved)
#ifdef NO_WAIT
#define IS_SNAPSHOT_NEXT false
#else
#define IS_SNAPSHOT_NEXT (snapshots > 0 && !saved && !IS_CHANGED)
#endif

#define COLUMN(op, m, c, t, s, d) \
	(op == OP_MOVE -> m : (op == OP_CHANGE -> c : \
	(op == OP_TURN -> t : (op == OP_SNAPSHOT -> s : d))))

inline judge(op)
{
	verdict = NO;
#define AGENDA(is, m, c, t, s, d, sample, decision) \
	verdict = (IS_##is && COLUMN(op, m, c, t, s, d) > verdict \
		   -> COLUMN(op, m, c, t, s, d) : verdict);
#define REFUSAL(is, op, why)
#define DONE(is, ...)
#include "vmm/node/agenda.def"
#undef AGENDA
#undef DONE
}

/* ---- what begins ---- */

inline begin_move()
{
	judge(OP_MOVE);
	if
	:: moves > 0 && verdict == NO ->
		assert(!still && !moved && !debugged);
		assert(!(snapshots > 0 && !saved && change == NOTHING));
		moves--;
		moved = true
	:: else
	fi
}

inline begin_change(op)
{
	judge(op);
	if
	:: changes > 0 && change == NOTHING && verdict == NO ->
		assert(!saved && !still && !debugged);
		assert(op == OP_TURN || snapshots == 0);
		changes--;
		passed = 0;
		change = chosen;
		its_move = chosen == WITH_MOVE;
		yield_saves = false
	:: else
	fi
}

/* Several may be refused, one after the other. */
inline begin_snapshot()
{
	judge(OP_SNAPSHOT);
	if
	:: verdict == R -> snapshots = 0
	:: snapshots > 0 && verdict == NO ->
		assert(!saved && !still && !moved && !debugged);
		assert(change == NOTHING || change == HOST_0);
		snapshots--;
		passed = (changes > 0 && change == NOTHING -> passed + 1 : passed);
		assert(passed <= 1);
		still = true;
		saved = true
	:: else
	fi
}

#define BEGIN_MOVE begin_move()
#define BEGIN_TURN begin_change(OP_TURN)
#define BEGIN_CHANGE begin_change(OP_CHANGE)
#define BEGIN_SNAPSHOT begin_snapshot()
#define BEGIN_NONE skip

#ifdef NO_MOVED
#define FOLLOWS_MOVED false
#else
#define FOLLOWS_MOVED true
#endif
#ifdef NO_CHANGED
#define FOLLOWS_CHANGED false
#else
#define FOLLOWS_CHANGED true
#endif
#ifdef NO_STILL
#define FOLLOWS_STILL false
#else
#define FOLLOWS_STILL true
#endif
#ifdef NO_SAVED
#define FOLLOWS_SAVED false
#else
#define FOLLOWS_SAVED true
#endif
#ifdef NO_SNAPSHOT_NEXT
#define FOLLOWS_SNAPSHOT_NEXT false
#else
#define FOLLOWS_SNAPSHOT_NEXT true
#endif

mtype = { ENDED_MOVED, ENDED_CHANGED, ENDED_STILL, ENDED_SAVED, ENDED_SNAPSHOT_NEXT };
inline done(ended)
{
#define AGENDA(is, ...)
#define DONE_2(is, a, b, ...) \
	if \
	:: ended == ENDED_##is && FOLLOWS_##is -> BEGIN_##a; BEGIN_##b \
	:: else \
	fi;
#define DONE(is, ...) DONE_2(is, __VA_ARGS__, NONE, )
#include "vmm/node/agenda.def"
}

/* ---- requests: agenda_why_not(), and then perhaps at once ---- */

inline ask(op, waiting)
{
	judge(op);
	waiting = (verdict == R -> waiting : waiting + 1)
}

inline end_change()
{
	change = NOTHING;
	its_move = false;
	begin_change(OP_CHANGE);
	done(ENDED_CHANGED)
}

mtype chosen;
active proctype node_0()
{
	do
	:: atomic { asked_moves < MOVES -> asked_moves++; ask(OP_MOVE, moves); begin_move() }
	:: atomic { asked_changes < CHANGES -> asked_changes++;
		if :: chosen = PLAIN :: chosen = WITH_MOVE :: chosen = HOST_0 fi;
		ask(OP_CHANGE, changes); begin_change(OP_CHANGE) }
	:: atomic { asked_snapshots < SNAPSHOTS -> asked_snapshots++;
		ask(OP_SNAPSHOT, snapshots); begin_snapshot() }
	:: atomic { snapshots > 0 && !yield_saves && withdrawn < 1 ->
		withdrawn++; snapshots--; done(ENDED_SNAPSHOT_NEXT) }
	:: atomic { attached < 1 -> attached++; judge(OP_DEBUGGER); debugged = verdict == NO }
	:: atomic { debugged -> debugged = false }
	/* what goes makes progress */
	:: atomic { moved ->
		moved = false;
		its_move = false; /* that of the change, if it waited for one */
		done(ENDED_MOVED) }
	:: atomic { change == PLAIN || (change == WITH_MOVE && !its_move) -> end_change() }
	:: atomic { change == WITH_MOVE && its_move && !moved && moves == 0 ->
		moves++; begin_move() }
	:: atomic { change == HOST_0 && !yield_saves ->
		yield_saves = true; ask(OP_SNAPSHOT, snapshots); begin_snapshot() }
	:: atomic { change == HOST_0 && yield_saves && snapshots == 0 && !saved -> end_change() }
	:: atomic { still -> still = false; done(ENDED_STILL) }
	:: atomic { saved && !still -> saved = false; done(ENDED_SAVED) }
	:: timeout -> break
	od;
	assert(moves == 0 && changes == 0 && snapshots == 0);
	assert(!moved && !still && !saved && change == NOTHING)
}
