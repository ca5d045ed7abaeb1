/* standby.pml - a machine's owner and its standbys (vmm/cli/standby/sender.h), as a Promela model:
 * which computer has the machine, and from which checkpoint, whichever process dies at any step.
 *
 * The owner is on computer 0. It starts a standby on computer 1; if that one refuses, is lost or
 * leaves, it starts another one on computer 2. The owner's life, its steps with the standby and the
 * standby's life are the tables of the code, vmm/cli/run/owner_life.def, standby_step.def and
 * standby_life.def: each row becomes a branch, and an event without a row an error. The states of
 * vmm/cli/standby/sender.c are written here. A checkpoint is a number. Of the messages that were
 * sent before a death, any number arrives, in order. When the owner's machine has ended, its
 * processes on the other computers (vmm/shared/presence.h) end some time later. While they live, a
 * standby whose connection has ended waits, or gives up; it gives up only after the longest time
 * in which they notice a death.
 *
 * What must hold: there are never two machines.  The machine continues from the last checkpoint,
 * or, if its owner is lost, from the last one that the standby had confirmed to the owner, or a
 * later one.  A machine that has ended does not come back.  When nothing can happen any more there
 * is a machine, unless it was ended, or no process is left that has a checkpoint.  A user who
 * requested that host 0 leaves was told that it is gone or that it stays, and that is true, or the
 * owner is lost.
 *
 * Each computer gives its vote (vmm/shared/vote.h) to one owner or standby at a time, until the
 * processes of that one have ended there.  An owner and a standby each get them one after the
 * other, as they become free, and then count.  How many are enough is the rule of the code,
 * vmm/cli/run/quorum.def.  So is for which hosts the owner waits, vmm/cli/run/gather.def; after a
 * cut any host may have been silent, and be slow.
 *
 * Options (-D).  CUT: a network cut between the owner and some hosts.  The owner notices the cut
 * before the standby does; vmm/shared/silence.h has the times, and asserts their order.
 *
 * APART: with CUT, the network may also be cut between the owner and its standby alone, so that
 * both reach all other computers.
 *
 * FOUR: a fourth computer, on which there is never a standby: it may die, and is on either side of
 * the cut, which can leave two computers on each.
 *
 * Options that must fail.  REPLACED: a checkpoint is taken while the one before is copied.  EARLY:
 * the standby is ordered to take over before it has the last checkpoint.  IMPATIENT: a standby that
 * was ordered to take over, and does not answer at once, is regarded as lost.  NO_END: the standby
 * is not told that the machine has ended.  STUCK: the machine is not started again when the standby
 * that was ordered to take over is lost.  With CUT, NO_HALF: the standby does not count the hosts
 * when it takes over without an order; NO_DOUBT: nor does an owner that hears nothing from its
 * standby; HASTY: the standby may notice the cut first.
 * With CUT and FOUR, EVEN: the standby goes on with half of the hosts, as the owner does.  With
 * CUT and APART, NO_VOTES: both count the computers that they reach; RASH: an owner that does not
 * wait for slow hosts counts its votes only if it doubts its standby.
 *
 * LINGERS: a standby that has refused does not end by itself, but waits as if its owner were lost.
 * With CUT, COUNTED_BEFORE: a standby that had prepared the hosts before the cut does not count
 * them again; NO_DOUBT_THEN: nor does an owner whose standby was ordered to take over, and may not
 * have received the order.
 *
 * BREAKS: the connection to the standby ends while both live, but not while the standby takes over.
 * The owner then waits for as long as the standby may wait, before it starts another one.  When the
 * owner ends the machine's processes on the other computers, it notifies them
 * (vmm/shared/presence.h).  Options that must fail then: NO_WAIT, NO_WORD.
 *
 * CUT and BREAKS: a cut may end the connection, instead of silencing it.  Options that must fail
 * then: UNCOUNTED: a standby whose connection ends does not count the hosts; NO_DOUBT_BROKEN: nor
 * does its owner; AT_ONCE: the standby takes over before its owner must have noticed the cut.
 */
#ifndef STANDBYS
#define STANDBYS 2
#endif
#ifndef CHECKPOINTS
#define CHECKPOINTS 1 /* that may be taken, and the last */
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#include "vmm/cli/run/quorum.def"
#ifdef FOUR
#define COMPUTERS 4
#else
#define COMPUTERS 3
#endif
#define TORN 255 /* of two checkpoints */

mtype = { ORDERS, BEGIN, COMMIT, PREPARE, RELEASE, GO, END };	     /* to a standby */
mtype = { READY, KEPT, REFUSED, PREPARED, UNPREPARED, UP, FAILED };  /* from it */
mtype = { OFF, STARTS, IDLE, COPIES, PREPARES, GOES };		     /* a sender's state */
mtype = { OWNER_STARTS, OWNER_RUNS, OWNER_LEAVES, OWNER_STANDS, OWNER_MOVES, OWNER_HANDED,
	  OWNER_GATHERS, OWNER_RETURNS, OWNER_AWAY }; /* vmm/cli/run/owner_life.h */
mtype = { OWNER_ON_THERE, OWNER_ON_LOST, OWNER_ON_GATHERED, OWNER_ON_ASKED, OWNER_ON_STILL,
	  OWNER_ON_TROUBLE, OWNER_ON_MOVE, OWNER_ON_GO, OWNER_ON_UP, OWNER_ON_FAILED,
	  OWNER_ON_DOUBT, OWNER_ON_TAKEN, OWNER_ON_UNPREPARED, OWNER_ON_ALONE };
mtype = { NOBODY, ASKED, GONE, STAYS };				     /* the answer to the user */
mtype = { STANDBY_IS_NEW, STANDBY_IS_FOLLOWS, STANDBY_IS_PREPARES, STANDBY_IS_READY,
	  STANDBY_IS_TOLD, STANDBY_IS_GATHERS, STANDBY_IS_WAITS, STANDBY_IS_ALONE,
	  STANDBY_IS_ASKS, STANDBY_IS_TAKES }; /* vmm/cli/run/standby_life.h */
mtype = { STANDBY_ON_ORDERS, STANDBY_ON_PREPARE, STANDBY_ON_CANNOT, STANDBY_ON_RELEASE,
	  STANDBY_ON_ALL, STANDBY_ON_SOME, STANDBY_ON_GO, STANDBY_ON_LOST, STANDBY_ON_SILENT,
	  STANDBY_ON_BARE, STANDBY_ON_GONE, STANDBY_ON_HELD, STANDBY_ON_WORD, STANDBY_ON_END,
	  STANDBY_ON_VOTES, STANDBY_ON_NO_VOTES };
mtype = { STANDBY_DO_NOTHING, STANDBY_DO_LISTEN, STANDBY_DO_PREPARE, STANDBY_DO_RELEASE,
	  STANDBY_DO_REFUSE, STANDBY_DO_SAY_PREPARED, STANDBY_DO_SAY_MISSING, STANDBY_DO_COUNT,
	  STANDBY_DO_LOOK, STANDBY_DO_PREPARE_LOOK, STANDBY_DO_RELEASE_PREPARE_LOOK,
	  STANDBY_DO_SAY_OVER, STANDBY_DO_END, STANDBY_DO_FAIL };

/* Of each computer; 0 is the owner's. */
chan down[COMPUTERS] = [4] of { mtype, byte };
chan up[COMPUTERS] = [1] of { mtype };
bool dead[COMPUTERS], on[COMPUTERS]; /* on: its machine runs */
byte vote[COMPUTERS];		     /* whose it is: FREE, OLD, NEW, or OF(standby) */
bool closed[COMPUTERS];		     /* the owner has closed its connection to it */
bool left[COMPUTERS];		     /* its standby has ended */
/* it was notified that the owner lives and has ended the machine's processes there */
bool word[COMPUTERS];
bool away[COMPUTERS], broken[COMPUTERS]; /* CUT, BREAKS */
byte copy[COMPUTERS];

mtype state = OFF, owner = OWNER_STARTS, answer = NOBODY;
mtype was; /* in happens() */
byte to;	     /* the computer of the present or last standby */
byte taken = 1;	     /* the last complete checkpoint */
byte copied, sends;  /* the last one sent to the standby; the one that is being sent */
byte heard;	     /* the last one that the standby has confirmed to the owner */
byte apart;	     /* APART: only this standby is cut off, from the owner alone */
bool doubt;	     /* the owner, which gathers hosts: the standby was silent */
bool prepared, pulls, pulls_last, last, changed, ending, ended, over, unsaid, noticed;

#define LEAVING (owner == OWNER_LEAVES || owner == OWNER_STANDS)
#define MACHINES (on[0] + on[1] + on[2])
#include "tests/model/standby_votes.pml"

#ifdef FOUR
#define IS_CUT (away[1] + away[2] + away[3] + apart)
#else
#define IS_CUT (away[1] + away[2] + apart)
#endif

/* The standby notices a cut connection after the owner does (vmm/shared/silence.h). */
#ifdef HASTY
#define TOO_SOON false
#else
#define TOO_SOON (SILENT(to) && !dead[0] && on[0] && !noticed)
#endif
#define IS_AWAY (SILENT(to) && !TOO_SOON)

/* Computer i has the machine, from that checkpoint on. */
inline run_machine(i, from)
{
	on[i] = true;
	assert(from > 0 && from != TORN);
	assert(!over || SILENT(i));
	assert(MACHINES == 1)
}

/* --- the owner -------------------------------------------------------------------------------- */

/* Send a message to the standby; it is lost if that is dead. */
inline say(what, n)
{
	if
	:: CONNECTED(to) && !left[to] -> down[to]!what(n)
	:: else
	fi
}
/* End the machine on the other computers, and notify the standby. */
inline leave_machine()
{
	on[0] = false;
#ifndef NO_WORD
	for (i : 1 .. STANDBYS) { word[i] = word[i] || (vote[i] == OLD && NEAR(0, i)) }
	i = 0
#endif
}
/* It happens to the owner: a row of the table holds, or the event cannot come.  Host 0 may stay
 * after all: then the one who asked is told, and the last checkpoint is taken back if it has not
 * begun, or the machine goes on behind it. */
inline happens(event)
{
	was = owner;
	if
#define LIFE(state, on_event, next, action) \
	:: was == OWNER_##state && event == OWNER_ON_##on_event -> owner = OWNER_##next
#include "vmm/cli/run/owner_life.def"
#undef LIFE
	:: else -> assert(false)
	fi;
	if
	:: (was == OWNER_LEAVES || was == OWNER_STANDS) && !LEAVING && owner != OWNER_HANDED ->
		answer = STAYS;
		last = last && pulls && pulls_last
	:: else
	fi;
	if
	:: owner == OWNER_RUNS && (was == OWNER_STANDS || event == OWNER_ON_STILL) ->
		last = false; pulls_last = false
	:: else
	fi;
	was = 0
}
#ifdef NO_DOUBT_THEN
#define DOUBTS_THEN false
#else
#define DOUBTS_THEN true
#endif
/* on_failed() of vmm/cli/run/run_standby.c. */
inline fail()
{
	closed[to] = true;
	sends = 0; heard = 0; prepared = false; changed = false; unsaid = false;
	if
	:: ending -> skip
	:: !ending && state == GOES -> happens(OWNER_ON_FAILED); doubt = SILENT(to) && DOUBTS_THEN
	:: !ending && state != GOES -> happens(OWNER_ON_ALONE);
		doubt = doubt || (owner == OWNER_GATHERS && copied && MAY_BE_THERE)
	fi;
	ending = false;
	state = OFF
}
inline end_standby()
{
	ending = true;
	sends = 0;
#ifdef NO_END
	fail()
#else
	say(END, 0)
#endif
}

#ifdef EARLY
#define LAGS (taken != copied && owner != OWNER_STANDS)
#else
#define LAGS (taken != copied)
#endif
#define WANTS (on[0] && !ended && (owner == OWNER_RUNS || LEAVING))
#define READY_FOR_MORE (WANTS && state == IDLE && !ending)

/* A step of the table, if its facts hold.  The end of a standby whose host leaves is below. */
#define Y(fact) (fact)
#define N(fact) !(fact)
#define X(fact) true
#define FACTS(wanted, idle, there, leaves, stands, is_prepared, orders, has_copy, replaces, stops) \
	(!dead[0] && wanted(WANTS) && idle(state == IDLE && !ending) && there(on[0]) && \
	 leaves(LEAVING) && stands(owner == OWNER_STANDS) && is_prepared(prepared) && \
	 orders(!changed) && has_copy(!LAGS) && replaces(pulls) && stops(last))
#define STEP(step, ...) STEP_##step(FACTS(__VA_ARGS__))
#define STEP_END(facts)
#define STEP_RELEASE(facts) :: atomic { facts -> prepared = false; say(RELEASE, 0) }
#define STEP_ORDER(facts) \
	:: atomic { facts -> changed = false; state = STARTS; say(ORDERS, 0) }
#define STEP_COPY(facts) \
	:: atomic { facts -> copied = taken; sends = taken; state = COPIES; say(BEGIN, 0) }
#define STEP_PREPARE(facts) :: atomic { facts -> state = PREPARES; say(PREPARE, 0) }
#define STEP_LAST(facts) :: atomic { facts -> last = true }
#define STEP_GO(facts) \
	:: atomic { facts -> happens(OWNER_ON_GO); leave_machine(); state = GOES; unsaid = true }

#ifdef REPLACED
#define IN_USE false
#else
#define IN_USE (state == COPIES)
#endif
/* A standby is on a host of the machine. */
#define HAS_NEXT (to < STANDBYS && vote[to + 1] == OLD)
#ifdef NO_WAIT
#define FORGOTTEN true
#else
#define FORGOTTEN (!broken[to] || left[to] || dead[to])
#endif

inline hear()
{
	if
	:: ending
	:: !ending && said == REFUSED -> fail()
	:: !ending && said == FAILED -> fail()
	:: !ending && said == READY -> assert(state == STARTS); state = IDLE
	:: !ending && said == KEPT -> assert(state == COPIES); state = IDLE; heard = copied
	:: !ending && said == PREPARED -> assert(state == PREPARES); state = IDLE; prepared = true
	:: !ending && said == UNPREPARED -> assert(state == PREPARES); state = IDLE;
		happens(OWNER_ON_UNPREPARED)
	:: !ending && said == UP -> assert(state == GOES); state = OFF; closed[to] = true;
		happens(OWNER_ON_UP); answer = GONE; over_here = true
	fi
}

/* From the last checkpoint. */
inline go_back()
{
	happens(OWNER_ON_GATHERED);
	run_machine(0, taken);
	for (i : 1 .. COMPUTERS - 1) {
		vote[i] = (vote[i] == NEW -> OLD : vote[i]);
		word[i] = false
	}
	doubt = false;
	i = 0;
	happens(OWNER_ON_THERE)
}
#define OWNER_GETS(j) vote[j] = (vote[j] == FREE && NEAR(0, j) -> NEW : vote[j])

proctype owner_process()
{
	byte i;
	mtype said;
	bool over_here; /* this process has ended */

	atomic { happens(OWNER_ON_THERE); on[0] = true;
		for (i : 1 .. COMPUTERS - 1) { vote[i] = OLD }
		i = 0 };
	do
	:: atomic { dead[0] || over_here -> break }

	/* the machine */
	:: atomic { !dead[0] && WANTS && !pulls && (taken <= CHECKPOINTS || last) &&
		owner != OWNER_STANDS && !IN_USE ->
		pulls = true;
		pulls_last = last }
	:: atomic { !dead[0] && WANTS && pulls ->
		pulls = false; taken++;
		if :: pulls_last -> happens(OWNER_ON_STILL) :: else fi }
	/* it could not be taken */
	:: atomic { !dead[0] && WANTS && pulls && pulls_last ->
		pulls = false; last = false; pulls_last = false;
		happens(OWNER_ON_TROUBLE) }
	:: atomic { !dead[0] && WANTS && answer == NOBODY ->
		answer = ASKED; happens(OWNER_ON_ASKED) }
	:: atomic { !dead[0] && WANTS ->
		ended = true;
		if :: state != OFF && !ending -> end_standby() :: else fi }
	:: atomic { !dead[0] && ended && state == OFF -> leave_machine(); over = true;
		over_here = true }
	/* The machine goes back: hosts were lost, or the standby that was told to go on does not.
	 * An owner that ends is as if it were dead. */
	:: atomic { !dead[0] && !ended && owner == OWNER_GATHERS && EACH(||, FREE_TO_OWNER) ->
		ALL(OWNER_GETS) }
	/* Each host that is not known yet was not silent; or, after a cut, it was. */
#define GATHER(...) GATHER_OTHERS(__VA_ARGS__)
#include "vmm/cli/run/gather.def"
#undef GATHER
#ifdef CUT
#define GATHER(...) GATHER_SILENT(__VA_ARGS__)
#include "vmm/cli/run/gather.def"
#undef GATHER

	/* Hosts are lost.  A silent standby may live: with too few hosts the owner ends, as if it
	 * were dead. */
	:: atomic { !dead[0] && on[0] && !noticed && IS_CUT ->
		noticed = true;
		on[0] = false;
		pulls = false;
		happens(OWNER_ON_LOST);
		last = false; pulls_last = false;
#ifndef NO_DOUBT
		doubt = copied && (state != OFF -> SILENT(to) : MAY_BE_THERE)
#endif
	}
#endif

	/* its standby */
	:: atomic { !dead[0] && WANTS && state == OFF && HAS_NEXT && FORGOTTEN ->
		to++; state = STARTS; copied = 0;
		say(ORDERS, 0) }
	:: atomic { !dead[0] && WANTS && state == OFF && !HAS_NEXT && LEAVING ->
		happens(OWNER_ON_TROUBLE) }
#include "vmm/cli/run/standby_step.def"
	:: atomic { !dead[0] && READY_FOR_MORE && to == 1 && !LEAVING && !changed ->
		changed = true }
	/* its host goes */
	:: atomic { !dead[0] && WANTS && !LEAVING && state != OFF && !ending -> end_standby() }
	:: atomic { !dead[0] && sends && !ending -> if :: sends != taken -> sends = TORN :: else fi;
		say(COMMIT, sends); sends = 0 }
	:: atomic { !dead[0] && unsaid -> unsaid = false; say(GO, 0) }
	:: atomic { !dead[0] && state != OFF && nempty(up[to]) -> up[to]?said; hear(); said = 0 }
	:: atomic { !dead[0] && state != OFF && empty(up[to]) &&
		(dead[to] || left[to] || IS_AWAY || broken[to]) -> fail() }
	/* lost on the way */
	:: atomic { !dead[0] && state != OFF && nempty(up[to]) &&
		(dead[to] || IS_AWAY || broken[to]) -> up[to]?said; said = 0; fail() }
#ifdef IMPATIENT
	:: atomic { !dead[0] && state == GOES -> fail() }
#endif
	od;
end:	skip
}

/* --- a standby -------------------------------------------------------------------------------- */

inline tell(what)
{
	if
	:: CONNECTED(me) -> up[me]!what
	:: else
	fi
}
/* The rows of standby_life.def, which init reads.  They never change, so they are no state. */
#define ROW(state, event) ((state) * 128 + (event))
hidden mtype row_next[16384], row_action[16384];
inline read_rows()
{
#define LIFE(state, event, next, action) \
	row_next[ROW(STANDBY_IS_##state, STANDBY_ON_##event)] = STANDBY_IS_##next; \
	row_action[ROW(STANDBY_IS_##state, STANDBY_ON_##event)] = STANDBY_DO_##action;
#include "vmm/cli/run/standby_life.def"
#undef LIFE
}
/* A standby gives up the votes that it has. */
inline give_back(i)
{
	vote[1] = (vote[1] == OF(i) -> FREE : vote[1]);
	vote[2] = (vote[2] == OF(i) -> FREE : vote[2])
#ifdef FOUR
	; vote[3] = (vote[3] == OF(i) -> FREE : vote[3])
#endif
}
/* It ends by itself. */
inline leave() { left[me] = true; goto end }
/* It happens to the standby: a row of the table holds, or the event cannot come.  What the row's
 * action sends is sent behind it. */
inline lives(event)
{
	does = row_action[ROW(life, event)];
	assert(does);
	life = row_next[ROW(life, event)];
	if
	:: does == STANDBY_DO_END || does == STANDBY_DO_FAIL -> leave()
	:: else -> does = 0
	fi
}
#ifdef LINGERS
#define REFUSES skip
#else
#define REFUSES left[me] = true; goto end
#endif

#define I_GET(j) vote[j] = (vote[j] == FREE && NEAR(me, j) -> OF(me) : vote[j])

proctype standby(byte me)
{
	mtype what;
	mtype life = STANDBY_IS_NEW, does;
	byte n;
	bool doubts; /* its owner may be alive */

end_never_started:
	do
	:: atomic { dead[me] -> goto end }
	:: atomic { !dead[me] && !broken[me] && !SILENT(me) && nempty(down[me]) ->
		down[me]?what(n);
		if
		:: what == ORDERS -> if :: true -> lives(STANDBY_ON_ORDERS); tell(READY) :: true ->
			tell(REFUSED); REFUSES fi
		:: what == BEGIN
		:: what == COMMIT -> if :: true -> copy[me] = n; tell(KEPT) :: true ->
			tell(REFUSED); REFUSES fi
		:: what == PREPARE -> lives(STANDBY_ON_PREPARE);
			if
			:: true -> lives(STANDBY_ON_ALL); tell(PREPARED)
			:: true -> lives(STANDBY_ON_SOME); tell(UNPREPARED)
			:: true -> lives(STANDBY_ON_CANNOT); tell(UNPREPARED)
			fi
		:: what == RELEASE -> assert(life == STANDBY_IS_READY); lives(STANDBY_ON_RELEASE)
		:: what == GO -> lives(STANDBY_ON_GO); assert(life == STANDBY_IS_TOLD); goto go
		:: what == END -> lives(STANDBY_ON_END); assert(false)
		fi;
		what = 0;
		n = 0 }
	:: atomic { !dead[me] && to >= me && !CONNECTED(me) &&
		(empty(down[me]) || dead[0] || broken[me] || SILENT(me)) &&
		(broken[me] || !TOO_SOON) -> break }
	od;

	/* The owner is lost, as it seems. */
	atomic {
		if
		:: dead[me] -> goto end
		:: !dead[me] && life == STANDBY_IS_NEW -> leave()
		:: !dead[me] && life != STANDBY_IS_NEW && copy[me] == 0 -> lives(STANDBY_ON_BARE)
		:: !dead[me] && copy[me] && SILENT(me) && !broken[me] ->
			lives(ON_SILENCE); doubts = DOUBTS
		:: !dead[me] && copy[me] && (broken[me] || !SILENT(me)) ->
			lives(STANDBY_ON_LOST); doubts = DOUBTS_AT_END
		fi
	}
	if
	:: atomic { dead[me] -> goto end }
	:: atomic { !dead[me] && vote[me] == OLD && !dead[0] -> /* the machine runs on */
		lives(STANDBY_ON_HELD) }
	:: atomic { !dead[me] && vote[me] != OLD && word[me] && broken[me] ->
		lives(STANDBY_ON_WORD) }
	:: atomic { !dead[me] && vote[me] != OLD && !(word[me] && broken[me]) ->
		if
		:: life == STANDBY_IS_GATHERS -> lives(STANDBY_ON_GONE); lives(STANDBY_ON_ALL)
		:: else -> lives(STANDBY_ON_GONE)
		fi;
		assert(life == STANDBY_IS_ASKS) }
	fi;
	do
	:: atomic { dead[me] -> goto end }
	:: atomic { !dead[me] && EACH(||, FREE_TO_ME) -> ALL(I_GET) }
	:: atomic { !dead[me] && I_DECIDE && !TOO_EARLY ->
		if
		:: STANDBY_MAY -> lives(STANDBY_ON_VOTES)
		:: else -> lives(STANDBY_ON_NO_VOTES)
		fi;
		assert(life == STANDBY_IS_TAKES);
		assert(copy[me] >= heard || dead[0] == false);
		run_machine(me, copy[me]);
		break }
	od;
	goto end;

go:	/* it was ordered to take over, by an owner that is alive */
	doubts = true;
	do
	:: atomic { dead[me] -> goto end }
	:: atomic { !dead[me] && EACH(||, FREE_TO_ME) -> ALL(I_GET) }
	:: atomic { !dead[me] && I_DECIDE ->
		if
		:: STANDBY_MAY -> lives(STANDBY_ON_VOTES)
		:: else -> tell(FAILED); lives(STANDBY_ON_NO_VOTES)
		fi;
		assert(copy[me] == taken);
		run_machine(me, copy[me]);
		break }
	:: atomic { !dead[me] -> tell(FAILED); leave() }
	od;
	if
	:: atomic { dead[me] -> goto end }
	:: atomic { !dead[me] -> tell(UP) }
	fi;
end:	/* it sends nothing more */
	atomic {
		what = 0; n = 0; life = 0; does = 0; doubts = false;
		if :: !on[me] -> give_back(me) :: else fi;
		do
		:: nempty(down[me]) -> down[me]?_, _
		:: empty(down[me]) -> break
		od
	}
}

/* --- deaths and cuts -------------------------------------------------------------------------- */

/* A computer belongs to the owner until its machine has ended, or does not reach that computer. */
#define THEY_END(i) \
	:: atomic { (vote[i] == OLD && (!on[0] || SILENT(i))) || \
		(vote[i] == NEW && (dead[0] || SILENT(i))) -> vote[i] = FREE }

inline die(i)
{
	atomic { !dead[i] && deaths < DEATHS -> dead[i] = true; on[i] = false; vote[i] = FREE;
		give_back(i);
		copy[i] = 0; deaths++ }
}

proctype fate()
{
	byte deaths;

end:	do
	:: die(0)
	:: die(1)
	:: die(2)
#ifdef FOUR
	:: die(3)
#endif
	/* the owner's processes end */
	THEY_END(1)
	THEY_END(2)
#ifdef FOUR
	THEY_END(3)
#endif
#ifdef CUT
	:: atomic { IS_CUT == 0 ->
		if :: away[1] = true :: away[2] = true :: away[1] = true; away[2] = true
#ifdef APART
		:: to > 0 -> apart = to
#endif
#ifdef FOUR
		:: away[3] = true :: away[1] = true; away[3] = true
		:: away[2] = true; away[3] = true :: away[1] = true; away[2] = true; away[3] = true
#endif
		fi }
#endif
#ifdef BREAKS
	:: atomic { broken[1] + broken[2] == 0 && state != OFF && state != GOES ->
		broken[to] = true }
#endif
	od
}

#define LOST(i) (dead[i] || left[i] || copy[i] == 0)

init {
	atomic { read_rows(); run owner_process(); run fate(); run standby(1); run standby(2) }
	timeout;
	if
	:: over -> assert((on[0] || (on[1] && !SILENT(1)) || (on[2] && !SILENT(2))) == 0)
	:: else -> assert(MACHINES >= 1 || ((dead[0] || answer == GONE) && LOST(1) && LOST(2)))
	fi;
	assert(dead[0] || over || answer == NOBODY || (answer == STAYS && on[0]) ||
		(answer == GONE && !on[0]))
}
