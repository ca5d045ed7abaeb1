/* migration.pml - the protocol of phoenix/services/migrate.c: PPoPP 2003 figures 1 to 3, and what
 * follows the two locks.
 *
 * N nodes (their indices are the order of their resource names) share V virtual nodes; each assumes
 * one interval.  Each makes up to TRIES attempts to join, leave, take or hand over.  A query waits,
 * as in the library, until some node assumes the virtual node to which it was sent.  A giver may
 * refuse, because its application gives no state.  A taker may refuse what it is given, because its
 * call has given up or because it leaves; then the giver takes it back.  With -DDEATH one node dies
 * at any moment, and each other node learns it at any later moment, and ignores the dead node's
 * messages from then on.
 *
 * Checked: no virtual node is ever assumed twice; without death none is lost; each node assumes a
 * single interval; a node has one attempt in flight; nobody is left locked, trying or waiting at
 * the end (invalid end states and the final assertion).  -DLINE64 puts the figures' line 64 back
 * (cleanup also sets l = false): a second attempt starts while the first is in flight, and the
 * check fails.
 *
 * tests/model/run migration
 */
#ifndef N
#define N 3
#endif
#ifndef V
#define V 3
#endif
#ifndef TRIES
#define TRIES 1
#endif
#define NOBODY 255

mtype = { LOCK_YOU_FIRST, LOCK2, FAIL1, FAIL2, OK1, OK2, CLEANUP, CLEANUP_ACK, ASK, TRANSFER, DONE,
	ABORT, GONE };
mtype = { JOIN, LEAVE, TAKE, HAND };

/* kind, from, attempt, interval; of ASK: lo = whether it is a JOIN, hi = the side */
chan box[N] = [8] of { mtype, byte, byte, byte, byte };
byte lo[N], hi[N];		/* what each assumes: [lo, hi) */
bool dead[N];
bool asking[N];			/* a query is under way ... */
byte question[N], number[N];	/* ... to this virtual node, of this attempt */
byte moving_vps = 0;		/* released and not yet assumed */
byte inflight[N];		/* ghost: attempts that were begun and have not ended */
bool locked_[N], moving_[N];	/* of each node; global for the check at the end */
#define locked locked_[p]
#define moving moving_[p]
hidden byte i_, j_, sum_;

inline check() {
	d_step {
		sum_ = 0;
		for (i_ : 0 .. N - 1) {
			assert(lo[i_] <= hi[i_]);
			if
			:: !dead[i_] -> sum_ = sum_ + hi[i_] - lo[i_];
				for (j_ : 0 .. N - 1) {
					assert(i_ == j_ || dead[j_] || lo[i_] == hi[i_] ||
						lo[j_] == hi[j_] ||
					       hi[i_] <= lo[j_] || hi[j_] <= lo[i_])
				}
			:: else
			fi
		}
#ifndef DEATH
		assert(sum_ + moving_vps == V);
#endif
		skip
	}
}

#define adjacent(l, h)	(l < h && (lo[p] == hi[p] -> \
	(wish == JOIN) : (up -> l == hi[p] : h == lo[p])))
#define mine		(locked && holder == p)

inline say(to, kind, att, l, h) {
	if
	:: dead[to]
	:: else -> box[to]!kind(p, att, l, h)
	fi
}
inline unlock() { locked = false; holder = NOBODY; partner = NOBODY; moving = false }
inline attempt_ends() { trying = false; asked = NOBODY; inflight[p]-- }

/* [l, h) leaves this node for its partner */
inline give(l, h, att) {
	mlo = l; mhi = h; moving = true;
	moving_vps = moving_vps + (mhi - mlo);
	if
	:: mlo == lo[p] -> lo[p] = mhi
	:: else -> assert(mhi == hi[p]); hi[p] = mlo
	fi;
	say(partner, TRANSFER, att, mlo, mhi)
}
inline take(l, h) {
	if
	:: lo[p] == hi[p] -> lo[p] = l; hi[p] = h
	:: lo[p] != hi[p] && l == hi[p] -> hi[p] = h
	/* the intervals are adjacent */
	:: lo[p] != hi[p] && l != hi[p] -> assert(h == lo[p]); lo[p] = l
	fi;
	moving_vps = moving_vps - (h - l);
	check()
}

inline both_locked(q) {
	attempt_ends();
	partner = q;
	if
	:: wish == LEAVE -> give(lo[p], hi[p], attempt)
	:: wish == HAND && up -> give((hi[p] - 1), hi[p], attempt)
	:: wish == HAND && !up -> give(lo[p], (lo[p] + 1), attempt)
	/* its application gives no state */
	:: wish == LEAVE || wish == HAND -> unlock(); say(q, CLEANUP, attempt, 0, 0)
	:: wish == JOIN || wish == TAKE -> say(q, ASK, attempt, (wish == JOIN -> 1 : 0), up)
	fi
}

proctype node(byte p) {
	bool trying = false, up = false;
	byte holder = NOBODY, partner = NOBODY, asked = NOBODY, attempt = 0, tries = 0, mlo = 0,
		mhi = 0;
	byte q, att, l, h, give_lo, give_hi;
	bool gone[N];
	bool current;
	mtype kind, wish = JOIN;

end:	do
	:: dead[p] -> break

	/* BEGIN_TRANSACTION, figure 2 */
	:: atomic { !dead[p] && !locked && !trying && tries < TRIES ->
		tries++;
		if
		:: lo[p] == hi[p] -> wish = JOIN; up = true;
			select(q : 0 .. V - 1)
		:: lo[p] != hi[p] ->
			if
			:: wish = LEAVE; up = (lo[p] == 0)
			:: wish = TAKE; up = false
			:: wish = TAKE; up = true
			:: wish = HAND; up = false
			:: wish = HAND; up = true
			fi;
			if
			:: up -> q = hi[p]
			:: !up && lo[p] > 0 -> q = lo[p] - 1
			:: else -> q = V
			fi
		fi;
		if
		:: q < V ->
			trying = true; attempt++;
			inflight[p]++;
			assert(inflight[p] == 1);
			question[p] = q; number[p] = attempt; asking[p] = true
		:: else			/* the call returns an error */
		fi;
		q = 0 }

	/* received(query(q)): this node assumes the virtual node that was asked for */
	:: atomic { !dead[p] && asking[0] && !dead[0] && lo[p] <= question[0] &&
		question[0] < hi[p] -> q = 0; goto query }
	:: atomic { !dead[p] && asking[1] && !dead[1] && lo[p] <= question[1] &&
		question[1] < hi[p] -> q = 1; goto query }
#if N > 2
	:: atomic { !dead[p] && asking[2] && !dead[2] && lo[p] <= question[2] &&
		question[2] < hi[p] -> q = 2; goto query }
#endif

	:: atomic { !dead[p] && nempty(box[p]) ->
		box[p]?kind(q, att, l, h);
		current = trying && att == attempt;
		if
		:: gone[q] && kind != GONE		/* the dead say nothing */
		:: else ->
		if
		:: kind == LOCK_YOU_FIRST ->
			if
			:: current && asked == NOBODY && !locked && adjacent(l, h) ->
				locked = true; holder = p; asked = q;
				say(q, LOCK2, attempt, l, h)
			:: current && asked == NOBODY && (locked || !(adjacent(l, h))) ->
				attempt_ends()
			:: else
			fi
		:: kind == LOCK2 ->
			if
			:: !locked && lo[p] == l && hi[p] == h -> locked = true; holder = q;
				say(q, OK2, att, 0, 0)
			:: else -> say(q, FAIL2, att, 0, 0)
			fi
		:: kind == FAIL1 ->
			if
			:: current -> attempt_ends()
			:: else
			fi
		:: kind == FAIL2 ->
			if
			:: current && mine -> unlock(); attempt_ends()
			:: else
			fi
		:: kind == OK1 ->
			if
			:: current && asked == NOBODY && !locked && adjacent(l, h) ->
				locked = true; holder = p;
				both_locked(q)
			:: current && asked == NOBODY && (locked || !(adjacent(l, h))) ->
				asked = q; say(q, CLEANUP, att, 0, 0)
			:: else -> say(q, CLEANUP, att, 0, 0)
			fi
		:: kind == OK2 ->
			if
			:: current && mine && asked == q -> both_locked(q)
			:: else -> say(q, CLEANUP, att, 0, 0)
			fi
		:: kind == CLEANUP ->
			if
			:: locked && holder == q && !moving -> unlock()
			:: else
			fi;
#ifdef LINE64
			trying = false;
#endif
			say(q, CLEANUP_ACK, att, 0, 0)
		:: kind == CLEANUP_ACK ->
			if
			:: current && asked == q -> attempt_ends()
			:: else
			fi
		:: kind == ASK ->
			if
			:: locked && holder == q ->
				partner = q;
				if
				/* JOIN */
				:: l == 1 -> give_lo = lo[p]; give_hi = lo[p] + (hi[p] - lo[p]) / 2
				:: l == 0 && h == 1 -> give_lo = lo[p]; give_hi = lo[p] + 1
				:: l == 0 && h == 0 -> give_lo = hi[p] - 1; give_hi = hi[p]
				fi;
				if
				/* nothing to give, or its application refuses */
				:: unlock(); say(q, ABORT, att, 0, 0)
				:: give_lo != give_hi -> give(give_lo, give_hi, att)
				fi
			:: else
			fi
		:: kind == TRANSFER ->
			if
			:: locked && (holder == q || (mine && partner == q)) ->
				if
				:: take(l, h); unlock(); say(q, DONE, att, 0, 0)
				:: unlock(); say(q, ABORT, att, 0, 0)
				fi
			/* only if the giver took it back, since it holds us for dead */
			:: else
			fi
		:: kind == DONE ->
			if
			:: moving && partner == q -> unlock()
			:: else
			fi
		:: kind == ABORT ->
			if
			:: moving && partner == q -> take(mlo, mhi); unlock()
			:: !moving && mine && partner == q -> unlock()
			:: else
			fi
		:: kind == GONE ->
			gone[q] = true;
			if
			:: moving && partner == q -> take(mlo, mhi); unlock()
			:: !(moving && partner == q) && locked &&
				(holder == q || partner == q || (mine && asked == q)) ->
				if
				:: mine && trying -> attempt_ends()
				:: else
				fi;
				unlock()
			:: !(moving && partner == q) &&
				!(locked && (holder == q || partner == q ||
				(mine && asked == q))) &&
			   asked == q -> attempt_ends()
			:: else
			fi
		fi
		fi;
		check();
		q = 0; att = 0; l = 0; h = 0; give_lo = 0; give_hi = 0; current = false; kind = 0 }

#ifdef DEATH
	/* an answer will never come: ATTEMPT_TIMEOUT. Only then may it fire, or answers would be
	 * late, which OK1 covers */
	:: atomic { !dead[p] && trying && asked == NOBODY && (dead[0] || dead[1] || dead[N - 1]) ->
		asking[p] = false; attempt_ends() }
#endif
	od;
	goto out;

query:	atomic {
		asking[q] = false;
		if
		:: q == p -> attempt_ends()
		:: q < p -> say(q, LOCK_YOU_FIRST, number[q], lo[p], hi[p])
		:: q > p && !locked -> locked = true; holder = q;
			say(q, OK1, number[q], lo[p], hi[p])
		:: q > p && locked -> say(q, FAIL1, number[q], 0, 0)
		fi;
		q = 0;
		goto end
	}
out:	skip
}

#ifdef DEATH
proctype death() {
	byte k;

	atomic {
		select(k : 0 .. N - 1);
		dead[k] = true;
		asking[k] = false
	}
	/* the others learn it one by one, at any time */
	byte i;
	for (i : 0 .. N - 1) {
		if
		:: i != k -> box[i]!GONE(k, 0, 0, 0)
		:: else
		fi
	}
}
#endif

init {
	byte i;

	atomic {
		hi[N / 2] = V;		/* the node in the middle begins with everything */
		for (i : 0 .. N - 1) {
			run node(i)
		}
#ifdef DEATH
		run death()
#endif
	}
	/* nothing can happen any more: no node may be left in the middle of an attempt */
	timeout;
	for (i : 0 .. N - 1) {
		assert(dead[i] || (inflight[i] == 0 && !locked_[i] && !moving_[i]))
	}
#ifndef DEATH
	assert(moving_vps == 0)
#endif
}
