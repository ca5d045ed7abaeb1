/* standby.pml - a machine's owner and those who stand by (vmm/cli/standby/sender.h), as a Promela model: who has the machine, and from which
 * checkpoint, whoever dies at whichever step.
 *
 * The owner is on computer 0 and starts a standby on computer 1, or another one on 2 when that one has refused, is lost or goes.  What
 * stands here in steps are vmm/cli/run/run_standby.c's next_step() and what follows from each answer, the states of vmm/cli/standby/sender.c, and
 * vmm/cli/run/takeover.c.  A checkpoint is a number.  Of what was said before a death, any beginning arrives.  When the owner's machine has
 * ended, its processes on the other computers (vmm/shared/presence.h) end a while after it; as long as they live, a standby whose
 * connection has ended waits, or gives up, but that is after the longest time in which they notice a death.
 *
 * What must hold: there are never two machines.  It goes on from the last checkpoint; or, if its owner is lost, from the last of which
 * the owner had heard that it was kept, or a later one.  A machine that has ended does not come back.  When nothing moves any
 * more there is a machine, unless it was ended, or nobody is left who has a checkpoint; and whoever asked for host 0 to go was told
 * that it is gone, or that it stays, and so it is, or its owner is lost.
 *
 * Options (-D).  CUT: some hosts and the owner do not reach each other any more.  Then there may be two machines only if the standby had
 * been told to go on.  (There are three computers, and so no two halves.)  The owner notices it before the standby does: after 10 s, not 15.
 *
 * Options that must fail.  REPLACED: a checkpoint is taken while the one before is copied.  EARLY: the standby is told to go on before it has
 * the last one.  IMPATIENT: a standby that was told to go on, and does not answer at once, is believed to be lost.  NO_END: it is not
 * told that the machine has ended.  STUCK: nobody starts the machine again when the standby that was told to go on is lost.  With
 * CUT, NO_HALF: the standby does not count the hosts when it goes on on its own; NO_DOUBT: nor does the owner, of whose standby nothing is heard.
 *
 * LINGERS: who has refused does not end by itself, but waits as if its owner were lost.  With CUT, COUNTED_BEFORE: who has got the hosts
 * ready before the cut does not count them any more; NO_DOUBT_THEN: nor does an owner whose standby was told to go on, and may not have
 * heard it.
 *
 * BREAKS: the connection to the standby ends while both live, but not while that one goes on.  The owner waits as long as that one may
 * before another one stands by; and when it ends the machine's processes on the other computers, it says so there
 * (vmm/shared/presence.h).  Options that must fail then: NO_WAIT, NO_WORD.
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
#define COMPUTERS 3
#define TORN 255 /* of two checkpoints */

mtype = { ORDERS, BEGIN, COMMIT, PREPARE, RELEASE, GO, END };	     /* to a standby */
mtype = { READY, KEPT, REFUSED, PREPARED, UNPREPARED, UP, FAILED };  /* from it */
mtype = { OFF, STARTS, IDLE, COPIES, PREPARES, GOES };		     /* a sender's state */
mtype = { NOT, WANTED, STANDS, LEFT, BACK };			     /* of host 0's going */
mtype = { NOBODY, ASKED, GONE, STAYS };				     /* who asked for it was told */

/* Of each computer; 0 is the owner's. */
chan down[COMPUTERS] = [4] of { mtype, byte };
chan up[COMPUTERS] = [1] of { mtype };
bool dead[COMPUTERS], on[COMPUTERS]; /* on: its machine runs */
bool held[COMPUTERS];		     /* the owner's machine has processes there */
bool closed[COMPUTERS];		     /* the owner has closed its connection to it */
bool left[COMPUTERS];		     /* it stands by no more */
bool word[COMPUTERS];		     /* it was told there that the owner lives and has ended the machine's processes */
bool away[COMPUTERS], broken[COMPUTERS]; /* CUT, BREAKS */
byte copy[COMPUTERS];

mtype state = OFF, yield = NOT, answer = NOBODY;
byte to;	     /* the standby that there is, or was last */
byte taken = 1;	     /* the last checkpoint that stands */
byte copied, sends;  /* as far as was sent to it; what is on its way */
byte heard;	     /* of what the owner has heard that it was kept */
bool prepared, pulls, pulls_last, last, changed, ending, ended, over, told, unsaid, noticed;

#define MACHINES (on[0] + on[1] + on[2])
#define NEAR(i, j) (!dead[j] && away[j] == away[i])
#define HALF(i) ((NEAR(i, 0) + NEAR(i, 1) + NEAR(i, 2)) * 2 >= COMPUTERS)
#define CONNECTED(i) (!dead[0] && !closed[i] && !broken[i] && !away[i])

/* Of a connection that is cut, ssh and the standby know after 15 s. */
#define TOO_SOON (away[to] && !dead[0] && on[0] && !noticed)
#define IS_AWAY (away[to] && !TOO_SOON)

/* Computer i has the machine, from that checkpoint on. */
inline run_machine(i, from)
{
	on[i] = true;
	assert(from > 0 && from != TORN);
	assert(!over || away[i]);
	assert(MACHINES == 1 || (told && away[1] + away[2]))
}

/* --- the owner ---------------------------------------------------------------------------------------------------------- */

/* What is said to the dead is lost. */
inline say(what, n)
{
	if
	:: CONNECTED(to) && !left[to] -> down[to]!what(n)
	:: else
	fi
}
/* Its machine ends on the others, and it says so. */
inline leave_machine()
{
	on[0] = false;
#ifndef NO_WORD
	for (i : 1 .. STANDBYS) { word[i] = word[i] || (held[i] && NEAR(0, i)) }
#endif
}
/* Host 0. */
inline stays()
{
	yield = NOT;
	last = false;
	pulls_last = false;
	answer = STAYS
}
/* on_failed() of vmm/cli/run/run_standby.c. */
inline fail()
{
	closed[to] = true;
	sends = 0; heard = 0; prepared = false; changed = false; unsaid = false;
	if
	:: ending -> skip
	:: !ending && state == GOES -> yield = BACK
	:: !ending && state != GOES && yield == STANDS -> stays()
	:: else
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
#define LAGS (taken != copied && yield != STANDS)
#else
#define LAGS (taken != copied)
#endif
#define WANTS (on[0] && !ended && yield != LEFT && yield != BACK)
#define READY_FOR_MORE (WANTS && state == IDLE && !ending)

inline next_step()
{
	if
	:: yield == NOT && prepared -> prepared = false; say(RELEASE, 0)
	:: !(yield == NOT && prepared) && changed -> changed = false; state = STARTS; say(ORDERS, 0)
	:: !(yield == NOT && prepared) && !changed && LAGS -> copied = taken; sends = taken; state = COPIES; say(BEGIN, 0)
	:: !(yield == NOT && prepared) && !changed && !LAGS && !prepared -> state = PREPARES; say(PREPARE, 0)
	:: !changed && !LAGS && prepared && yield == WANTED -> last = true
	:: !changed && !LAGS && prepared && yield == STANDS -> yield = LEFT; leave_machine(); state = GOES; unsaid = true
	fi
}
#ifdef NO_DOUBT_THEN
#define DOUBTS_THEN false
#else
#define DOUBTS_THEN true
#endif
#ifdef REPLACED
#define IN_USE false
#else
#define IN_USE (state == COPIES)
#endif
#ifdef NO_WAIT
#define FORGOTTEN true
#else
#define FORGOTTEN (!broken[to] || left[to] || dead[to])
#endif
#define THERE_IS_A_STEP ((yield == NOT && prepared) || changed || (LAGS && !pulls) || (!LAGS && yield == WANTED && (!prepared || !last)) || \
			 (!LAGS && yield == STANDS))

inline hear()
{
	if
	:: ending
	:: !ending && said == REFUSED -> fail()
	:: !ending && said == FAILED -> fail()
	:: !ending && said == READY -> assert(state == STARTS); state = IDLE
	:: !ending && said == KEPT -> assert(state == COPIES); state = IDLE; heard = copied
	:: !ending && said == PREPARED -> assert(state == PREPARES); state = IDLE; prepared = true
	:: !ending && said == UNPREPARED -> assert(state == PREPARES); state = IDLE; stays()
	:: !ending && said == UP -> assert(state == GOES); state = OFF; closed[to] = true; answer = GONE; over_here = true
	fi
}

active proctype owner()
{
	byte i;
	mtype said;
	bool over_here; /* this process has ended */

	atomic { on[0] = true; held[1] = true; held[2] = true };
	do
	:: atomic { dead[0] || over_here -> break }

	/* the machine */
	:: atomic { !dead[0] && WANTS && !pulls && (taken <= CHECKPOINTS || last) && yield != STANDS && !IN_USE ->
		pulls = true;
		pulls_last = last }
	:: atomic { !dead[0] && WANTS && pulls -> pulls = false; taken++; if :: pulls_last -> yield = STANDS :: else fi }
	:: atomic { !dead[0] && WANTS && pulls && pulls_last -> pulls = false; stays() } /* it could not be taken */
	:: atomic { !dead[0] && WANTS && answer == NOBODY -> answer = ASKED; yield = WANTED }
	:: atomic { !dead[0] && WANTS ->
		ended = true;
		if :: state != OFF && !ending -> end_standby() :: else fi }
	:: atomic { !dead[0] && ended && state == OFF -> leave_machine(); over = true; over_here = true }
	/* The standby that was told to go on does not. */
	:: atomic { !dead[0] && yield == BACK ->
		yield = NOT;
		last = false;
		answer = STAYS;
#ifndef STUCK
		if
		:: away[to] && !HALF(0) && DOUBTS_THEN -> dead[0] = true; goto end
		:: else -> run_machine(0, taken)
		fi;
#endif
		for (i : 1 .. STANDBYS) { held[i] = !dead[i] && !away[i]; word[i] = false } }

#ifdef CUT
	/* Hosts are lost. A standby that is silent may live: with fewer than half of the hosts this one ends, as if it were dead. */
	:: atomic { !dead[0] && on[0] && !noticed && away[1] + away[2] ->
		noticed = true;
		on[0] = false;
		pulls = false;
		if :: yield != NOT -> stays() :: else fi;
#ifdef NO_DOUBT
		run_machine(0, taken)
#else
		if
		:: state != OFF && away[to] && copied && !HALF(0) -> dead[0] = true; goto end
		:: else -> run_machine(0, taken)
		fi
#endif
	}
#endif

	/* its standby */
	:: atomic { !dead[0] && WANTS && state == OFF && to < STANDBYS && FORGOTTEN ->
		to++; state = STARTS; copied = 0;
		say(ORDERS, 0) }
	:: atomic { !dead[0] && WANTS && state == OFF && to == STANDBYS && yield != NOT -> stays() }
	:: atomic { !dead[0] && READY_FOR_MORE && THERE_IS_A_STEP -> next_step() }
	:: atomic { !dead[0] && READY_FOR_MORE && to == 1 && yield == NOT && !changed -> changed = true }
	:: atomic { !dead[0] && WANTS && yield == NOT && state != OFF && !ending -> end_standby() } /* its host goes */
	:: atomic { !dead[0] && sends && !ending -> if :: sends != taken -> sends = TORN :: else fi; say(COMMIT, sends); sends = 0 }
	:: atomic { !dead[0] && unsaid -> unsaid = false; say(GO, 0) }
	:: atomic { !dead[0] && state != OFF && nempty(up[to]) -> up[to]?said; hear(); said = 0 }
	:: atomic { !dead[0] && state != OFF && empty(up[to]) && (dead[to] || left[to] || IS_AWAY || broken[to]) -> fail() }
	:: atomic { !dead[0] && state != OFF && nempty(up[to]) && (dead[to] || IS_AWAY || broken[to]) -> up[to]?said; said = 0; fail() } /* lost on the way */
#ifdef IMPATIENT
	:: atomic { !dead[0] && state == GOES -> fail() }
#endif
	od;
end:	skip
}

/* --- a standby ---------------------------------------------------------------------------------------------------------- */

inline tell(what)
{
	if
	:: CONNECTED(me) -> up[me]!what
	:: else
	fi
}
#ifdef COUNTED_BEFORE
#define COUNTED is_prepared
#else
#define COUNTED false
#endif
/* It ends by itself. */
inline leave() { left[me] = true; goto end }
#ifdef LINGERS
#define REFUSES skip
#else
#define REFUSES left[me] = true; goto end
#endif

proctype standby(byte me)
{
	mtype what;
	byte n;
	bool is_prepared;

end_never_started:
	do
	:: atomic { dead[me] -> goto end }
	:: atomic { !dead[me] && !broken[me] && !away[me] && nempty(down[me]) ->
		down[me]?what(n);
		if
		:: what == ORDERS -> if :: true -> tell(READY) :: true -> tell(REFUSED); REFUSES fi
		:: what == BEGIN
		:: what == COMMIT -> if :: true -> copy[me] = n; tell(KEPT) :: true -> tell(REFUSED); REFUSES fi
		:: what == PREPARE -> if :: true -> is_prepared = true; tell(PREPARED) :: true -> tell(UNPREPARED) fi
		:: what == RELEASE -> assert(is_prepared); is_prepared = false
		:: what == GO -> assert(is_prepared); goto go
		:: what == END -> leave()
		fi;
		what = 0;
		n = 0 }
	:: atomic { !dead[me] && to >= me && !CONNECTED(me) && (empty(down[me]) || dead[0] || broken[me] || away[me]) && !TOO_SOON -> break }
	od;

	/* The owner is lost, as it seems. */
	atomic {
		if
		:: dead[me] -> goto end
		:: !dead[me] && copy[me] == 0 -> leave()
		:: else
		fi
	}
	if
	:: atomic { dead[me] -> goto end }
	:: atomic { !dead[me] && held[me] && !dead[0] -> leave() } /* the machine runs on */
	:: atomic { !dead[me] && !held[me] && word[me] && broken[me] -> leave() }
	:: atomic { !dead[me] && !held[me] && !(word[me] && broken[me]) ->
#ifndef NO_HALF
		if :: away[me] && !HALF(me) && !COUNTED -> leave() :: else fi;
#endif
		assert(copy[me] >= heard || dead[0] == false);
		run_machine(me, copy[me]) }
	fi;
	goto end;

go:	/* it was told to go on */
	told = true;
	if
	:: atomic { dead[me] -> goto end }
	:: atomic { !dead[me] -> assert(copy[me] == taken); run_machine(me, copy[me]) }
	:: atomic { !dead[me] -> tell(FAILED); leave() }
	fi;
	if
	:: atomic { dead[me] -> goto end }
	:: atomic { !dead[me] -> tell(UP) }
	fi;
end:	/* nothing more is heard of it */
	atomic {
		what = 0; n = 0; is_prepared = false;
		do
		:: nempty(down[me]) -> down[me]?_, _
		:: empty(down[me]) -> break
		od
	}
}

/* --- what befalls them -------------------------------------------------------------------------------------------------- */

inline die(i)
{
	atomic { !dead[i] && deaths < DEATHS -> dead[i] = true; on[i] = false; held[i] = false; copy[i] = 0; deaths++ }
}

proctype fate()
{
	byte deaths;

end:	do
	:: die(0)
	:: die(1)
	:: die(2)
	/* processes of a machine that is no more */
	:: atomic { held[1] && !on[0] -> held[1] = false }
	:: atomic { held[2] && !on[0] -> held[2] = false }
#ifdef CUT
	:: atomic { away[1] + away[2] == 0 -> if :: away[1] = true :: away[2] = true :: away[1] = true; away[2] = true fi }
	:: atomic { held[1] && away[1] -> held[1] = false }
	:: atomic { held[2] && away[2] -> held[2] = false }
#endif
#ifdef BREAKS
	:: atomic { broken[1] + broken[2] == 0 && state != OFF && state != GOES -> broken[to] = true }
#endif
	od
}

#define LOST(i) (dead[i] || left[i] || copy[i] == 0)

init {
	atomic { run fate(); run standby(1); run standby(2) }
	timeout;
	if
	:: over -> assert((on[0] || (on[1] && !away[1]) || (on[2] && !away[2])) == 0)
	:: else -> assert(MACHINES >= 1 || ((dead[0] || answer == GONE) && LOST(1) && LOST(2)))
	fi;
	assert(dead[0] || over || answer == NOBODY || (answer == STAYS && on[0]) || (answer == GONE && !on[0]))
}
