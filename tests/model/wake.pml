/* wake.pml - a Promela model of how a post to a CPU of the direct engine, and the CPU's timer,
 * reach it.
 *
 * The CPU is one thread of control, in one of two VM processes at a time.  The steps of the model
 * are those of hostshm_kick() in base/hostshm.c, of engine_until_ready(), sleep_halted() and
 * arm_timer() in engine/loop.c, and of the handler of kicks and the gate's way out in vmproc/.  A
 * signal is handled at any step after it was sent: in the process that has the CPU, wherever that
 * is then; in the other process, while it sleeps.
 *
 * The guest runs until it is stopped, halts, changes to the other VM process, or sets its timer.
 * POSTERS post and kick, each as soon as its last post was collected.  What must hold: when nothing
 * can happen any more, no post and no timer interrupt waits.
 *
 * Options (-D) that must fail: LOOK_FIRST: posts are read before the state says where the CPU is;
 * NO_LOOK: the way out does not check for a kick; SPACE_LATE: the state is RUNNING before the slot
 * names the process; NO_WORD: the futex's word does not change; KEEP_ARMED: a timer's signal that
 * arrives within the engine is not recorded as spent.
 */
#ifndef POSTERS
#define POSTERS 1
#endif
#ifndef POSTS
#define POSTS 1 /* of each */
#endif
#ifndef TIMERS
#define TIMERS 1 /* times that the guest sets it */
#endif

mtype = { MONITOR, RUNNING, HALTED };
mtype state = MONITOR;
byte space; /* which process has the CPU, as the kickers read it */
byte me;    /* the process that has the CPU */
byte wake;
bool asleep, halted, between; /* between: the way out has checked, and the guest does not run */
bool post[POSTERS], kick[2], alarm[2], kicked[2];

byte deadline, passed, times; /* 0: none; passed: the last one that time has reached */
byte armed[2];		      /* its host timer, as a process has recorded it */
byte host_timer[2];	      /* the true setting */

#define POSTED (post[0] || post[POSTERS - 1])
#define DUE (deadline && passed == deadline)

/* Handle the signals that arrive at this instruction of the engine, or none. */
inline handle()
{
	if
	:: kick[me] -> kick[me] = false; kicked[me] = true; back = between
	:: alarm[me] ->
		alarm[me] = false; kicked[me] = true; back = between;
#ifndef KEEP_ARMED
		armed[me] = 0
#endif
	:: true
	fi
}

#define STEP(act) atomic { handle(); act }

inline collect() { atomic { post[0] = false; post[POSTERS - 1] = false } }
inline tick() { if :: DUE -> deadline = 0 :: else fi }

active proctype cpu()
{
	byte word;
	bool back, more;

again:
	STEP(kicked[me] = false);
	do
	:: halted ->
		STEP(word = wake);
#ifdef LOOK_FIRST
		STEP(more = POSTED);
		STEP(state = HALTED);
#else
		STEP(state = HALTED);
		STEP(more = POSTED);
#endif
		if
		:: !more && !DUE ->
			atomic { if :: wake == word -> asleep = true :: else fi }
			/* until it is woken, the time has come, or a signal has */
			!asleep || DUE || kick[me] || alarm[me];
			asleep = false
		:: else
		fi;
		STEP(state = MONITOR);
		atomic { if :: POSTED || DUE -> halted = false :: else fi }
		collect();
		STEP(tick())
	:: !halted -> break
	od;
#ifdef LOOK_FIRST
	collect();
	STEP(state = RUNNING);
#else
	STEP(state = RUNNING);
	collect();
#endif
#ifdef SPACE_LATE
	STEP(space = me);
#endif
	STEP(if :: deadline != armed[me] -> tick() :: else fi);
	/* arm_timer() */
	if
	:: deadline != armed[me] ->
		STEP(armed[me] = deadline);
		atomic { host_timer[me] = deadline }
	:: else
	fi;
way_out:
	atomic { handle(); back = false; more = kicked[me]; between = true }
#ifndef NO_LOOK
	if
	:: more -> between = false; state = MONITOR; goto again
	:: else
	fi;
#endif
	atomic { /* up to the iretq */
		handle();
		between = false;
		if
		:: back -> back = false; goto way_out
		:: else
		fi
	}
	if /* guest code: runs on, sets the timer, halts, */
	:: true ->
		if
		:: atomic { kick[me] -> kick[me] = false }
		:: atomic { alarm[me] -> alarm[me] = false; armed[me] = 0 }
		fi
	:: times < TIMERS -> atomic { times++; deadline = times }
	:: true -> atomic { halted = true }
	:: true -> /* or changes to another address space */
		STEP(state = MONITOR);
		atomic {
			handle();
			me = 1 - me;
#ifndef SPACE_LATE
			space = me
#endif
		}
	fi;
	STEP(state = MONITOR);
	goto again
}

/* The process that sleeps handles its signals. */
active proctype sleeper()
{
end:	do
	:: atomic { kick[1 - me] -> kick[1 - me] = false; kicked[1 - me] = true }
	:: atomic { alarm[1 - me] -> alarm[1 - me] = false; kicked[1 - me] = true;
		armed[1 - me] = 0 }
	od
}

active proctype time()
{
end:	do
	:: atomic { deadline && passed != deadline -> passed = deadline }
	:: atomic { host_timer[0] && host_timer[0] <= passed -> host_timer[0] = 0; alarm[0] = true }
	:: atomic { host_timer[1] && host_timer[1] <= passed -> host_timer[1] = 0; alarm[1] = true }
	od
}

active [POSTERS] proctype poster()
{
	byte mine = _pid - 3, left = POSTS, to;
	bool runs;

	do
	:: left && !post[mine] ->
		left--;
		post[mine] = true;
#ifndef NO_WORD
		wake++;
#endif
		runs = state == RUNNING;
		if
		:: runs -> to = space; kick[to] = true
		:: else -> asleep = false
		fi
	:: !left -> break
	od
}

/* Nothing can happen any more. */
active proctype end_of_all()
{
end:	timeout -> assert(!POSTED && !DUE)
}
