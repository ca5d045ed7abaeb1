/* barrier.pml - a Promela model of barriers over hosts as messages (base/barrier.h): the threads of
 * two hosts pass ROUNDS barriers in turn.
 *
 * A host has one thread here; its count stands for all of its threads.  At a barrier it adds one
 * to its count in memory, tells the count, and waits until a sum is reached: in the table of its
 * host, or after a while in memory.  Memory is sequentially consistent: a store is one step (the
 * page protocol has a model of its own).  A message arrives whenever it likes, in the order of its
 * sender's.  The table may lose the barrier at any moment, for another one; a lost message stands
 * for a host that has come since.  The steps are those of barriers_look_at(), barriers_on_tell(),
 * env_barrier() and await_sum(), and of libgomp-patches/04.
 *
 * What must hold: nobody passes a barrier before all have arrived there; each has stored by then
 * what it stored before; and when nothing can happen any more, all have passed.
 *
 * Options (-D) that must fail: TELL_FIRST: a count is told before it is in memory, with what was
 * stored before it; NO_LOOK: nobody looks in memory after a while; NOT_CLEARED: a slot keeps its
 * counts when it passes to another barrier.  Without losses nobody needs to look in memory
 * (-DLOSSES=0 -DNO_LOOK), but for LOOK_THEN_WAIT: a CPU reads the table before its slot says that
 * it waits; and ANSWER_FIRST: a daemon reads the slot before it writes the table.
 */
#define HOSTS 2
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef LOSSES
#define LOSSES 1 /* messages that are lost, and slots that pass to another barrier, in all */
#endif

byte stored[HOSTS];	      /* the thread's work: the round before whose barrier it was stored */
byte memory[HOSTS];	      /* the counts in guest memory */
byte table[HOSTS * HOSTS];    /* of each host: the counts that it knows */
bool waits[HOSTS];	      /* a CPU's slot: WANT_BARRIER */
byte target[HOSTS];	      /* and the sum that it waits for */
bool woken[HOSTS];
byte passed[HOSTS];	      /* rounds that are over for the thread */
byte losses;

chan link[HOSTS * HOSTS] = [2] of { byte }; /* from i to j: i * HOSTS + j */

#define TABLE(host, whose) table[(host) * HOSTS + (whose)]
#define IN_TABLE(host) (TABLE(host, 0) + TABLE(host, 1))
#define IN_MEMORY (memory[0] + memory[1])
#define DONE (passed[0] == ROUNDS && passed[1] == ROUNDS)

/* The daemon: a count is noted; then the CPU that waits is answered if its sum is here. */
inline note(host, whose, count)
{
	if
	:: count > TABLE(host, whose) -> TABLE(host, whose) = count
	:: else
	fi
}
inline answer(host)
{
	if
	:: waits[host] && IN_TABLE(host) >= target[host] ->
		atomic {
			if
			:: waits[host] -> waits[host] = false; woken[host] = true
			:: else
			fi
		}
	:: else
	fi
}

/* A full link to a host: its sender would wait for ever; ROUNDS is small. */
inline tell(count)
{
	other = 0;
	do
	:: other < HOSTS && other != me -> link[me * HOSTS + other] ! count; other++
	:: other == me -> other++
	:: other == HOSTS -> break
	od
}

active [HOSTS] proctype thread()
{
	byte me = _pid, round, other;
	bool over, told;

	do
	:: round == ROUNDS -> break
	:: else ->
		round++;
#ifdef TELL_FIRST
		atomic { note(me, me, round); tell(round) };
		stored[me] = round;
		memory[me] = round;
#else
		stored[me] = round;
		memory[me] = round;
#endif
		told = false;
again:
#ifdef LOOK_THEN_WAIT
		over = IN_TABLE(me) >= round * HOSTS;
#endif
		atomic { target[me] = round * HOSTS; woken[me] = false; waits[me] = true };
#ifndef TELL_FIRST
		if /* the daemon takes the count */
		:: !told -> atomic { tell(round); told = true }; note(me, me, round); answer(me)
		:: else
		fi;
#endif
#ifndef LOOK_THEN_WAIT
		over = IN_TABLE(me) >= round * HOSTS;
#endif
		if /* it sleeps */
		:: over
		:: woken[me]
#ifndef NO_LOOK
		:: IN_MEMORY >= round * HOSTS
#endif
		fi;
		/* it may have been woken for an earlier sum */
		if
		:: IN_TABLE(me) >= round * HOSTS
#ifndef NO_LOOK
		:: IN_MEMORY >= round * HOSTS
#endif
		:: else -> goto again
		fi;
		atomic {
			waits[me] = false;
			passed[me] = round;
			other = 0;
			do
			:: other < HOSTS -> assert(stored[other] >= round); other++
			:: else -> break
			od
		}
	od
}

/* A message is taken, or lost. */
active [HOSTS] proctype daemon()
{
	byte me = _pid - HOSTS, count;
	bool waited;

end:	do
	:: atomic {
		link[(1 - me) * HOSTS + me] ? count;
		waited = waits[me]
	   };
		if
		:: atomic { losses < LOSSES -> losses++ }
#ifdef ANSWER_FIRST
		:: true ->
			note(me, 1 - me, count);
			if
			:: waited -> answer(me)
			:: else
			fi
#else
		:: true -> note(me, 1 - me, count); answer(me)
#endif
		fi
	od
}

/* A slot passes to another barrier, and comes back when this one is told again. */
active proctype evict()
{
	byte host;

end:	do
	:: atomic { losses < LOSSES ->
		losses++;
		if
		:: host = 0
		:: host = 1
		fi;
#ifdef NOT_CLEARED
		/* the other barrier has counted further */
		TABLE(host, 0) = ROUNDS; TABLE(host, 1) = ROUNDS
#else
		TABLE(host, 0) = 0; TABLE(host, 1) = 0
#endif
	}
	od
}

/* Nothing can happen any more. */
active proctype end_of_all()
{
end:	timeout -> assert(DONE)
}
