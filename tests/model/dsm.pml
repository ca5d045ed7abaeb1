/* dsm.pml - the page protocol as a Promela model, made from the same lists and tables as the code.
 *
 * dsm/node_table.def and dsm/home_table.def are included below: each CELL becomes a branch, each
 * NEVER an error.  This file models what dsm_node.c, home.c and dsm.c do in C: the actions, the
 * translation of messages to events, the queue.
 *
 * An event that a host causes by itself (not WANT) is sent to its node under the event's own name:
 * a new one is a branch in each `if` of the first host() below.
 *
 * In a step a node handles one message and all that it sends to itself, as in dsm.c.  Messages
 * between two nodes keep their order (one channel for each ordered pair); nothing else is assumed.
 *
 * A page's content is one value.  `latest` is the value of the last store; a page that may be read
 * must hold it, or a load would be stale.  A store flips one bit.  One bit is enough because the
 * protocol never reads values: if a sequence of stores could end in a stale copy, one with a single
 * store after it does.
 *
 * Options (-D): N nodes, P pages.  FREE: CPUs make any accesses for ever (one page); LITMUS_*: each
 * runs its litmus program; ANY_PROGRAM: each makes any OPS accesses.  A bounded run starts from any
 * placement of the pages; FEW_PLACES: untouched, or owned by the last node with copies everywhere.
 * DROPS, HOLDS: copies are dropped, pages are held.  HANDOVERS=1 or 2: to the next node, or to any;
 * REFUSES=node: this one takes none.  MOVES=n: the page's home moves up to n times, to any node,
 * and other nodes learn it at any time; LOSE_QUEUE: without its queue, an error that must be found.
 * FEW=n: hosts cause DROP, HAND_OVER and the like n times in all; else homes cannot move, too.
 * PROGRESS_OF=node: claim that each request of this node is answered.  RESUME_BEFORE_ACKS,
 * DELAY_INVALIDATIONS: the fault points of base/faultpoint.def.
 */
#include "dsm/lists.h"

#ifndef N
#define N 3
#endif
#ifndef P
#define P 1
#endif
#ifndef REFUSES
#define REFUSES N /* none */
#endif
#ifndef ROOM
/* Messages between two nodes.  A send that finds no room is an error, so the bound is proved, not
 * assumed. */
#define ROOM 4
#endif

#define PAGE_NONE 0
#define PAGE_READ 1
#define PAGE_WRITE 2
#ifdef MOVES
#define HOME(p) believes[AT(node, p)] /* the node that manages page p, as far as this one knows */
#define HOME_IS_HERE(p) (home_at[p] == node)
#else
#define HOME(p) ((p) % N)
#define HOME_IS_HERE(p) true
#endif
#define AT(n, p) ((n) * P + (p))
#define TO(from, to) ((from) * N + (to))
#define BIT(n) (1 << (n))

#define NAME(s, right, a) NODE_##s,
#define HNAME(s, a) HOME_##s,
#define EVENT(e, a) NODE_ON_##e,
#define HEVENT(e, a) HOME_ON_##e,
mtype = { NODE_STATES(NAME, ) HOME_STATES(HNAME, ) NODE_EVENTS(EVENT, )
	  HOME_EVENTS(HEVENT, ) NO_EVENT,
	  DSM_READ, DSM_WRITE, DSM_UPGRADE, DSM_CONFIRM, DSM_HANDOVER,
	  DSM_FORWARD_READ, DSM_FORWARD_WRITE, DSM_INVALIDATE, DSM_ACK,
	  DSM_GRANT_READ, DSM_GRANT_WRITE, DSM_GRANT_UPGRADE, DSM_GRANT_ZERO, DSM_ADOPT, DSM_HOME,
	  WANT };

/* A page at a node */
mtype st[N * P];
byte wanted[N * P];
short acks_due[N * P];
byte txn_own[N * P];
byte val[N * P];
mtype held[N * P]; /* rule e: kept for later; 0: nothing */
byte held_req[N * P], held_acks[N * P], held_txn[N * P];
#ifdef HANDOVERS
/* a host requests the next handover only when the last one has taken effect: that bounds queues */
bit asked_handover[N * P];
#endif
#ifdef DELAY_INVALIDATIONS
bit delayed[N * P];
#endif

/* A page at its home */
mtype hst[P];
byte owner[P], copyset[P], hreq[P], htxn[P];
#define WAITERS 6 /* one request of each node, one handover of each */
chan hqueue0 = [WAITERS] of { mtype, byte, byte };
#if P > 1
chan hqueue1 = [WAITERS] of { mtype, byte, byte };
#define HQ(p) hq[p]
chan hq[P];
#else
#define HQ(p) hqueue0
#endif

#ifdef MOVES
byte home_at[P]; /* N: it is between two nodes */
byte believes[N * P], moves;
#endif

byte latest[P];

/* type, page, requester, acks, txn, value */
chan net[N * N] = [ROOM] of { mtype, byte, byte, byte, byte, byte };
/* to the same node; empty between steps */
chan work = [6] of { mtype, byte, byte, byte, byte, byte };

/* The message that is handled, and where: not used beyond a step. */
hidden mtype m_type, ev, hev;
hidden byte m_from, m_req, m_acks, m_txn, m_val, p, i, node, b, holders, count, serving;

#define READABLE(s, right, a) || (a == NODE_##s && right >= PAGE_READ)
#define WRITABLE(s, right, a) || (a == NODE_##s && right == PAGE_WRITE)
#define can_read(x) (false NODE_STATES(READABLE, st[x]))
#ifdef RESUME_BEFORE_ACKS
#define can_write(x) ((false NODE_STATES(WRITABLE, st[x])) || st[x] == NODE_AWAITING)
#else
#define can_write(x) (false NODE_STATES(WRITABLE, st[x]))
#endif

#define SEND(to, type, req, acks, txn, value) \
	if \
	:: (to) == node -> work!type, p, req, acks, txn, value \
	:: else -> net[TO(node, to)]!type, p, req, acks, txn, value \
	fi

/* The actions of lists.h at a node: dsm_node.c's act() */
#define NODE_DO_NOTHING skip
#define NODE_DO_ASK_READ SEND(HOME(p), DSM_READ, node, 0, 0, 0)
#define NODE_DO_ASK_WRITE SEND(HOME(p), DSM_WRITE, node, 0, 0, 0)
#define NODE_DO_ASK_UPGRADE SEND(HOME(p), DSM_UPGRADE, node, 0, 0, 0)
#define NODE_DO_ASK_HANDOVER SEND(HOME(p), DSM_HANDOVER, node, m_req, 0, 0)
#define NODE_DO_SEND_COPY SEND(m_req, DSM_GRANT_READ, m_req, m_acks, m_txn, val[i])
#define NODE_DO_SEND_PAGE SEND(m_req, DSM_GRANT_WRITE, m_req, m_acks, m_txn, val[i]); NODE_DO_TAKE
#define NODE_DO_TAKE val[i] = 0
#define NODE_DO_SEND_ACK SEND(m_req, DSM_ACK, m_req, 0, m_txn, 0)
#define NODE_DO_FILL_READ val[i] = m_val
#define NODE_DO_FILL_WRITE val[i] = m_val
#define NODE_DO_FILL_ZERO val[i] = 0
#define NODE_DO_RAISE skip
#define NODE_DO_CONFIRM SEND(HOME(p), DSM_CONFIRM, node, 0, txn_own[i], 0); txn_own[i] = 0
#define NODE_DO_READY \
	if \
	:: can_write(i) || (can_read(i) && wanted[i] == PAGE_READ) -> wanted[i] = PAGE_NONE \
	:: else \
	fi

/* ... and at a home: home.c's act() */
#define BEGIN htxn[p] = 1 - htxn[p]; hreq[p] = m_from
#define GRANT(to, type, mask) \
	BEGIN; \
	holders = mask; \
	count = 0; \
	b = 0; \
	do \
	:: b < N -> count = count + ((holders >> b) & 1); b++ \
	:: else -> break \
	od; \
	SEND(to, type, m_from, count, htxn[p], 0); \
	b = 0; \
	do \
	:: b < N && (holders & BIT(b)) -> SEND(b, DSM_INVALIDATE, m_from, 0, htxn[p], 0); b++ \
	:: b < N && !(holders & BIT(b)) -> b++ \
	:: b == N -> break \
	od; \
	owner[p] = m_from; \
	copyset[p] = BIT(m_from)
#define HOME_DO_NOTHING skip
#define HOME_DO_GRANT_ZERO GRANT(m_from, DSM_GRANT_ZERO, 0)
#define HOME_DO_FORWARD_READ \
	BEGIN; SEND(owner[p], DSM_FORWARD_READ, m_from, 0, htxn[p], 0); \
		copyset[p] = copyset[p] | BIT(m_from)
#define HOME_DO_FORWARD_WRITE GRANT(owner[p], DSM_FORWARD_WRITE, \
	copyset[p] & ~(BIT(m_from) | BIT(owner[p])))
#define HOME_DO_GRANT_UPGRADE GRANT(m_from, DSM_GRANT_UPGRADE, copyset[p] & ~BIT(m_from))
#define HOME_DO_SEND_ADOPT SEND(m_acks, DSM_ADOPT, m_from, 0, htxn[p], 0)
#define HOME_DO_QUEUE HQ(p)!m_type, m_from, m_acks
#define HOME_DO_SERVE_NEXT serving = 1

/* The tables themselves */
#define DO1(who, a) who##_DO_##a
#define DO2(who, a, b) DO1(who, a); DO1(who, b)
#define DO3(who, a, b, c) DO2(who, a, b); DO1(who, c)
#define DO4(who, a, b, c, d) DO3(who, a, b, c); DO1(who, d)
#define DO_N(a, b, c, d, n, ...) DO##n
#define DO(who, ...) DO_N(__VA_ARGS__, 4, 3, 2, 1, )(who, __VA_ARGS__)

inline node_step()
{
	if
#define CELL(state, event, next, ...) \
	:: st[i] == NODE_##state && ev == NODE_ON_##event -> st[i] = NODE_##next; \
		DO(NODE, __VA_ARGS__)
#define NEVER(state, event, why)
#include "dsm/node_table.def"
#undef CELL
#undef NEVER
	:: else -> assert(false) /* a NEVER */
	fi
}

inline home_step()
{
	if
#define CELL(state, event, next, ...) \
	:: hst[p] == HOME_##state && hev == HOME_ON_##event -> hst[p] = HOME_##next; \
		DO(HOME, __VA_ARGS__)
#define NEVER(state, event, why)
#include "dsm/home_table.def"
#undef CELL
#undef NEVER
	:: else -> assert(false) /* a NEVER */
	fi
}

/* home.c's classify() */
inline home()
{
	if
	:: m_type == DSM_CONFIRM -> assert(m_txn == htxn[p] && m_from == hreq[p]);
		hev = HOME_ON_CONFIRM
	:: m_type == DSM_READ && hst[p] != HOME_UNTOUCHED && owner[p] == m_from ->
		hev = HOME_ON_OWNER_MISS
	:: m_type == DSM_READ && !(hst[p] != HOME_UNTOUCHED && owner[p] == m_from) ->
		hev = HOME_ON_READ
	:: m_type == DSM_WRITE && hst[p] != HOME_UNTOUCHED && owner[p] == m_from ->
		hev = HOME_ON_OWNER_MISS
	:: m_type == DSM_WRITE && !(hst[p] != HOME_UNTOUCHED && owner[p] == m_from) ->
		hev = HOME_ON_WRITE
	:: m_type == DSM_UPGRADE && (copyset[p] & BIT(m_from)) -> hev = HOME_ON_UPGRADE
	:: m_type == DSM_UPGRADE && !(copyset[p] & BIT(m_from)) -> hev = HOME_ON_WRITE
	:: m_type == DSM_HANDOVER && hst[p] != HOME_UNTOUCHED && owner[p] == m_from &&
		m_acks != m_from ->
		hev = HOME_ON_HAND_OVER
	:: m_type == DSM_HANDOVER &&
		!(hst[p] != HOME_UNTOUCHED && owner[p] == m_from && m_acks != m_from) ->
		hev = HOME_ON_HAND_OVER_STALE
	fi;
#ifdef HANDOVERS
	if
	:: hev == HOME_ON_HAND_OVER_STALE && hst[p] != HOME_BUSY ->
		asked_handover[AT(m_from, p)] = 0
	:: else
	fi;
#endif
	home_step()
}

/* Rule b: a message of a node's own transaction carries its number. */
inline check_own()
{
	if
	:: acks_due[i] == 0 && st[i] != NODE_AWAITING -> txn_own[i] = m_txn
	:: else
	fi;
	assert(txn_own[i] == m_txn && m_req == node)
}

inline write_grant(complete, waiting)
{
	check_own();
	acks_due[i] = acks_due[i] + m_acks;
	assert(acks_due[i] >= 0);
	if
	:: acks_due[i] == 0 -> ev = complete
	:: else -> ev = waiting
	fi
}

/* dsm_node.c's node_on_message(): the event of a message */
inline to_event()
{
	if
	:: m_type == DSM_FORWARD_READ -> ev = NODE_ON_FORWARD_READ
	:: m_type == DSM_FORWARD_WRITE -> ev = NODE_ON_FORWARD_WRITE
	:: m_type == DSM_INVALIDATE -> ev = NODE_ON_INVALIDATE
	:: m_type == DSM_ACK ->
		check_own();
		acks_due[i]--;
		if
		:: st[i] == NODE_AWAITING && acks_due[i] == 0 -> ev = NODE_ON_ACK_LAST
		:: else -> ev = NODE_ON_ACK
		fi
	:: m_type == DSM_GRANT_READ -> check_own(); ev = NODE_ON_GRANT_READ
	:: m_type == DSM_GRANT_WRITE -> write_grant(NODE_ON_GRANT_WRITE, NODE_ON_GRANT_WRITE_WAIT)
	:: m_type == DSM_GRANT_UPGRADE ->
		write_grant(NODE_ON_GRANT_UPGRADE, NODE_ON_GRANT_UPGRADE_WAIT)
	:: m_type == DSM_GRANT_ZERO -> check_own(); ev = NODE_ON_GRANT_ZERO
	:: m_type == DSM_ADOPT ->
#ifdef HANDOVERS
		asked_handover[AT(m_req, p)] = 0;
#endif
		ev = (node == REFUSES -> NO_EVENT : NODE_ON_WANT_WRITE);
		wanted[i] = (node == REFUSES -> wanted[i] : PAGE_WRITE)
	:: m_type == WANT ->
		if
		:: m_acks == PAGE_WRITE -> ev = NODE_ON_WANT_WRITE; wanted[i] = PAGE_WRITE
		:: else ->
			ev = NODE_ON_WANT_READ;
			if
			:: wanted[i] == PAGE_NONE -> wanted[i] = PAGE_READ
			:: else
			fi
		fi
	:: else -> ev = m_type /* a host causes the event itself */
	fi
}

#ifdef DELAY_INVALIDATIONS
inline finish_delayed()
{
	if
	:: delayed[i] ->
		delayed[i] = 0;
		if
		:: can_read(i) && (st[i] == NODE_COPY || st[i] == NODE_OWNED) -> st[i] = NODE_NONE;
			val[i] = 0
		:: can_read(i) && !(st[i] == NODE_COPY || st[i] == NODE_OWNED) ->
			st[i] = NODE_WRITING; val[i] = 0
		:: else
		fi
	:: else
	fi
}
#endif

inline node_message()
{
#ifdef DELAY_INVALIDATIONS
	if
	:: m_type == WANT && m_acks == PAGE_READ
	:: m_type == NODE_ON_DROP
	:: else -> finish_delayed()
	fi;
	if
	:: m_type == DSM_INVALIDATE && can_read(i) ->
		NODE_DO_SEND_ACK;
		delayed[i] = 1;
		ev = NO_EVENT
	:: else -> to_event()
	fi;
#else
	to_event();
#endif
	if
	:: ev == NO_EVENT
	:: else -> node_step()
	fi;
	if
	:: ev == NODE_ON_GRANT_READ && wanted[i] == PAGE_WRITE -> ev = NODE_ON_WANT_WRITE
	:: else -> ev = NO_EVENT
	fi;
	if
	:: ev == NO_EVENT
	:: else -> work!WANT, p, node, PAGE_WRITE, 0, 0
	fi
}

#define FOR_HOME(type) \
	(type == DSM_READ || type == DSM_WRITE || type == DSM_UPGRADE || type == DSM_CONFIRM || \
		type == DSM_HANDOVER)

#ifdef MOVES
/* Forward a request or a confirmation that arrived at a node without the home: dsm_on_message(). */
inline pass_on()
{
	assert(believes[AT(node, p)] != node);
	net[TO(node, believes[AT(node, p)])]!m_type, p, m_req, m_acks, m_txn, 0
}

/* Move the home to another node, with its whole state; or let a node learn where it is. */
proctype mover(byte n)
{
	byte to;

end:
	do
	:: atomic {
		home_at[0] == n && moves < MOVES ->
		moves++;
		if
		:: to = (n + 1) % N
		:: to = (n + 2) % N
		fi;
		d_step {
			home_at[0] = N;
			believes[AT(n, 0)] = to;
#ifdef LOSE_QUEUE
			do
			:: len(HQ(0)) > 0 -> HQ(0)?_, _, _
			:: else -> break
			od;
#endif
			net[TO(n, to)]!DSM_HOME, 0, 0, 0, 0, 0;
			to = 0
		}
	   }
	:: d_step { home_at[0] != N && home_at[0] != n && believes[AT(n, 0)] != home_at[0] ->
		believes[AT(n, 0)] = home_at[0] }
	od
}
#endif

/* One step: the message in m_*, then what the node sent to itself; the oldest waiter of a home goes
 * before that, since home.c serves it at once. */
inline run_step()
{
	do
	:: m_type != 0 && FOR_HOME(m_type) && HOME_IS_HERE(p) -> home(); m_type = 0
#ifdef MOVES
	:: m_type != 0 && FOR_HOME(m_type) && !HOME_IS_HERE(p) -> pass_on(); m_type = 0
	:: m_type == DSM_HOME -> home_at[p] = node; believes[AT(node, p)] = node; m_type = 0
#endif
	:: m_type != 0 && !FOR_HOME(m_type) && m_type != DSM_HOME -> i = AT(node, p);
		node_message(); m_type = 0
	:: m_type == 0 && serving && (hst[p] == HOME_BUSY || len(HQ(p)) == 0) -> serving = 0
	:: m_type == 0 && serving && !(hst[p] == HOME_BUSY || len(HQ(p)) == 0) ->
		HQ(p)?m_type, m_from, m_acks
	:: m_type == 0 && !serving && len(work) > 0 ->
		work?m_type, p, m_req, m_acks, m_txn, m_val;
		m_from = node
	:: m_type == 0 && !serving && len(work) == 0 -> break
	od;
	check_all();
	m_from = 0;
	m_req = 0;
	m_acks = 0;
	m_txn = 0;
	m_val = 0;
	p = 0;
	i = 0;
	b = 0;
	holders = 0;
	count = 0;
	ev = 0;
	hev = 0;
	node = 0
}

/* Check: one writer or many readers, and each readable copy has the last stored value.  With a
 * fault switched on, only the litmus test is to find it. */
inline check_all()
{
#if !defined(RESUME_BEFORE_ACKS) && !defined(DELAY_INVALIDATIONS) || defined(STRICT)
	p = 0;
	do
	:: p < P ->
		i = 0;
		count = 0;
		b = 0;
		do
		:: i < N ->
			assert(!can_read(AT(i, p)) || val[AT(i, p)] == latest[p]);
			if
			:: can_write(AT(i, p)) -> b = b + 1; count = count + 1
			:: !can_write(AT(i, p)) && can_read(AT(i, p)) -> count = count + 1
			:: else
			fi;
			i++
		:: else -> break
		od;
		assert(b == 0 || count == 1);
		p++
	:: else -> break
	od
#else
	skip
#endif
}

/* One direction between two nodes: it delivers in order, and a fair scheduler lets each direction
 * go on. */
proctype link(byte from; byte to)
{
	bit hold;

end:
	do
	:: atomic {
		if
		:: nempty(net[TO(from, to)]) -> hold = 0
#ifdef HOLDS
		/* A local CPU has not yet run with the page: keep the request (dsm_node.c's
		 * hold()). */

		:: net[TO(from, to)]?[DSM_FORWARD_WRITE, _, _, _, _, _] -> hold = 1
		:: net[TO(from, to)]?[DSM_FORWARD_READ, _, _, _, _, _] -> hold = 1
		:: net[TO(from, to)]?[DSM_INVALIDATE, _, _, _, _, _] -> hold = 1
#endif
		fi;
		d_step {
			net[TO(from, to)]?m_type, p, m_req, m_acks, m_txn, m_val;
			node = to;
			/* it may have been passed on */
			m_from = (FOR_HOME(m_type) -> m_req : from);
			if
			:: hold ->
				i = AT(to, p);
				assert(held[i] == 0); /* one transaction at a time */
				held[i] = m_type;
				held_req[i] = m_req;
				held_acks[i] = m_acks;
				held_txn[i] = m_txn;
				m_type = 0;
				hold = 0
			:: else
			fi;
			run_step()
		}
	   }
	od
}

#ifdef HOLDS
/* End a hold: the CPU has run, or the time is over. */
proctype keeper(byte n; byte page)
{
end:
	do
	:: d_step {
		held[AT(n, page)] != 0 ->
		node = n;
		p = page;
		i = AT(n, page);
		m_type = held[i];
		m_req = held_req[i];
		m_acks = held_acks[i];
		m_txn = held_txn[i];
		held[i] = 0;
		held_req[i] = 0;
		held_acks[i] = 0;
		held_txn[i] = 0;
		run_step()
	   }
	od
}
#endif

#ifdef DELAY_INVALIDATIONS
proctype late(byte n; byte page)
{
end:
	do
	:: d_step {
		delayed[AT(n, page)] ->
		i = AT(n, page);
		finish_delayed();
		i = 0
	   }
	od
}
#endif

#if defined(HANDOVERS)
#define MAY_HAND_OVER(x) \
	(!asked_handover[x] && (can_write(x) || st[x] == NODE_OWNED || st[x] == NODE_OWNED_WRITING))
#endif
#define OP_NONE 0
#define OP_LOAD 1
#define OP_STORE 2
#define OP_ANY 3
#ifdef FREE
/* A host whose CPUs make any accesses, for ever.  A load is no step of its own: check_all() makes
 * all of them. */
#ifdef FEW
byte caused;
#define MAY_CAUSE (caused < FEW)
#define CAUSE(event) m_type = event; caused++
#else
#define MAY_CAUSE true
#define CAUSE(event) m_type = event
#endif
#define STORE 1
#define WANT_LOAD 2
#define WANT_STORE 3
#define DROP_IT 4
#define HAND_IT 5 /* + distance to the new owner */
proctype host(byte n)
{
	byte op;

end:
	do
	:: atomic {
		if
		:: can_write(AT(n, 0)) -> op = STORE
		:: !can_read(AT(n, 0)) && wanted[AT(n, 0)] == PAGE_NONE -> op = WANT_LOAD
		:: !can_write(AT(n, 0)) && wanted[AT(n, 0)] != PAGE_WRITE -> op = WANT_STORE
#ifdef DROPS
		:: MAY_CAUSE && st[AT(n, 0)] == NODE_COPY -> op = DROP_IT
#endif
#ifdef HANDOVERS
		:: MAY_CAUSE && MAY_HAND_OVER(AT(n, 0)) -> op = HAND_IT
#if HANDOVERS > 1
		:: MAY_CAUSE && MAY_HAND_OVER(AT(n, 0)) -> op = HAND_IT + 1
#endif
#endif
		fi;
		d_step {
			node = n;
			i = AT(n, 0);
			p = 0;
			if
			:: op == STORE -> val[i] = 1 - val[i]; latest[0] = val[i]
			:: op == WANT_LOAD -> m_type = WANT; m_acks = PAGE_READ
			:: op == WANT_STORE -> m_type = WANT; m_acks = PAGE_WRITE
			:: op == DROP_IT -> CAUSE(NODE_ON_DROP)
#ifdef HANDOVERS
			:: op >= HAND_IT -> CAUSE(NODE_ON_HAND_OVER);
				m_req = (n + 1 + op - HAND_IT) % N;
				asked_handover[i] = 1
#endif
			fi;
			op = 0;
			run_step()
		}
	   }
	od
}
#else
/* A host whose one CPU runs a program of two accesses, in order. */
#ifndef OPS
#define OPS 2
#endif
byte kind[N * OPS], page_of[N * OPS], value[N * OPS]; /* value: to store; what was loaded */
byte finished;

#define THIS (n * OPS + pc)
proctype host(byte n)
{
	byte pc;
	bit dropped;

	do
	:: pc < OPS && kind[THIS] == OP_NONE -> pc++
#ifdef ANY_PROGRAM
	:: atomic {
		pc < OPS && kind[THIS] == OP_ANY ->
		if
		:: kind[THIS] = OP_LOAD
		:: kind[THIS] = OP_STORE
		:: kind[THIS] = OP_NONE
		fi;
		if
		:: page_of[THIS] = 0
		:: kind[THIS] != OP_NONE -> page_of[THIS] = 1
		fi
	   }
#endif
	:: d_step {
		pc < OPS && kind[THIS] == OP_LOAD && can_read(AT(n, page_of[THIS])) ->
#ifdef ANY_PROGRAM
		kind[THIS] = OP_NONE; /* check_all() has compared every value: forget it */
		page_of[THIS] = 0;
#else
		value[THIS] = val[AT(n, page_of[THIS])];
#endif
		pc++
	   }
	:: d_step {
		pc < OPS && kind[THIS] == OP_STORE && can_write(AT(n, page_of[THIS])) ->
#ifdef ANY_PROGRAM
		value[THIS] = 1 - latest[page_of[THIS]];
#endif
		val[AT(n, page_of[THIS])] = value[THIS];
		latest[page_of[THIS]] = value[THIS];
#ifdef ANY_PROGRAM
		value[THIS] = 0;
		kind[THIS] = OP_NONE;
		page_of[THIS] = 0;
#endif
		check_all();
		pc++
	   }
	:: d_step {
		pc < OPS && kind[THIS] != OP_NONE && wanted[AT(n, page_of[THIS])] < kind[THIS] &&
			!(kind[THIS] == OP_LOAD && can_read(AT(n, page_of[THIS]))) &&
				!can_write(AT(n, page_of[THIS])) ->
		node = n;
		p = page_of[THIS];
		m_type = WANT;
		m_acks = kind[THIS]; /* OP_LOAD: PAGE_READ, OP_STORE: PAGE_WRITE */
		run_step()
	   }
#ifdef DROPS
	:: d_step {
		pc < OPS && !dropped && st[AT(n, 0)] == NODE_COPY ->
		dropped = 1;
		node = n;
		p = 0;
		m_type = NODE_ON_DROP;
		run_step()
	   }
#endif
	:: pc == OPS -> break
	od;
	finished++
}

#define PROGRAM(n, k, op, page, v) kind[(n) * OPS + (k)] = op; page_of[(n) * OPS + (k)] = page; \
	value[(n) * OPS + (k)] = v
#define GOT(n, k) value[(n) * OPS + (k)]
#define X 0
#define Y 1

#ifdef ANY_PROGRAM
#define PROGRAMS \
	do \
	:: x > 0 -> x--; kind[x] = OP_ANY \
	:: else -> break \
	od
#define FORBIDDEN false
#endif
#ifdef LITMUS_SB
#define PROGRAMS PROGRAM(A, 0, OP_STORE, X, 1); PROGRAM(A, 1, OP_LOAD, Y, 0); \
		 PROGRAM(B, 0, OP_STORE, Y, 1); PROGRAM(B, 1, OP_LOAD, X, 0)
#define FORBIDDEN (GOT(A, 1) == 0 && GOT(B, 1) == 0)
#endif
#ifdef LITMUS_MP
#define PROGRAMS PROGRAM(A, 0, OP_STORE, X, 1); PROGRAM(A, 1, OP_STORE, Y, 1); \
		 PROGRAM(B, 0, OP_LOAD, Y, 0); PROGRAM(B, 1, OP_LOAD, X, 0)
#define FORBIDDEN (GOT(B, 0) == 1 && GOT(B, 1) == 0)
#endif
#ifdef LITMUS_LB
#define PROGRAMS PROGRAM(A, 0, OP_LOAD, X, 0); PROGRAM(A, 1, OP_STORE, Y, 1); \
		 PROGRAM(B, 0, OP_LOAD, Y, 0); PROGRAM(B, 1, OP_STORE, X, 1)
#define FORBIDDEN (GOT(A, 0) == 1 && GOT(B, 0) == 1)
#endif
#ifdef LITMUS_WRC
#define PROGRAMS PROGRAM(A, 0, OP_STORE, X, 1); \
		 PROGRAM(B, 0, OP_LOAD, X, 0); PROGRAM(B, 1, OP_STORE, Y, 1); \
		 PROGRAM(C, 0, OP_LOAD, Y, 0); PROGRAM(C, 1, OP_LOAD, X, 0)
#define FORBIDDEN (GOT(B, 0) == 1 && GOT(C, 0) == 1 && GOT(C, 1) == 0)
#endif
#ifdef LITMUS_2P2W
#define PROGRAMS PROGRAM(A, 0, OP_STORE, X, 1); PROGRAM(A, 1, OP_STORE, Y, 2); \
		 PROGRAM(B, 0, OP_STORE, Y, 1); PROGRAM(B, 1, OP_STORE, X, 2)
#define FORBIDDEN (latest[X] == 1 && latest[Y] == 1)
#endif
#ifdef LITMUS_S
#define PROGRAMS PROGRAM(A, 0, OP_STORE, X, 2); PROGRAM(A, 1, OP_STORE, Y, 1); \
		 PROGRAM(B, 0, OP_LOAD, Y, 0); PROGRAM(B, 1, OP_STORE, X, 1)
#define FORBIDDEN (GOT(B, 0) == 1 && latest[X] == 2)
#endif
#ifdef LITMUS_R
#define PROGRAMS PROGRAM(A, 0, OP_STORE, X, 1); PROGRAM(A, 1, OP_STORE, Y, 1); \
		 PROGRAM(B, 0, OP_STORE, Y, 2); PROGRAM(B, 1, OP_LOAD, X, 0)
#define FORBIDDEN (latest[Y] == 2 && GOT(B, 1) == 0)
#endif
#endif

/* Place a page at the start: untouched, or with an owner and any copies. */
inline preload(page, who, copies)
{
	p = page;
	hst[p] = HOME_IDLE;
	owner[p] = who;
	copyset[p] = BIT(who) | copies;
	b = 0;
	do
	:: b < N && b == who ->
		if
		:: copyset[p] == BIT(who) -> st[AT(b, p)] = NODE_WRITE
		:: else -> st[AT(b, p)] = NODE_OWNED
		fi;
		b++
	:: b < N && b != who ->
		if
		:: copyset[p] & BIT(b) -> st[AT(b, p)] = NODE_COPY
		:: else
		fi;
		b++
	:: b == N -> break
	od;
	b = 0;
	p = 0
}

init {
	byte page, who, copies, A, B, C, x;

	atomic {
		do
		:: x < N * P -> st[x] = NODE_NONE; x++
		:: else -> break
		od;
		do
		:: page < P -> hst[page] = HOME_UNTOUCHED; page++
		:: else -> break
		od;
		page = 0;
#if P > 1
		hq[0] = hqueue0;
		hq[1] = hqueue1;
#endif
#ifndef FREE
		do
		:: page < P ->
			if
			:: break /* this page and those after it are untouched */
#ifdef FEW_PLACES
			:: who = 2; copies = 7
#else
			:: select(who : 0..2); select(copies : 0..7)
#endif
			fi;
			d_step { preload(page, who, copies) };
			who = 0;
			copies = 0;
			page++
		:: page == P -> break
		od;
		page = 0;
		if
		:: A = 0; B = 1; C = 2
#ifndef ANY_PROGRAM
		:: A = 0; B = 2; C = 1
		:: A = 1; B = 0; C = 2
		:: A = 1; B = 2; C = 0
		:: A = 2; B = 0; C = 1
		:: A = 2; B = 1; C = 0
#endif
		fi;
		x = N * OPS;
		PROGRAMS;
		x = 0;
#endif
		run host(0); run host(1); run host(2);
		run link(0, 1); run link(0, 2); run link(1, 0); run link(1, 2); run link(2, 0);
			run link(2, 1);
#ifdef MOVES
		run mover(0); run mover(1); run mover(2);
#endif
#ifdef HOLDS
		run keeper(0, 0); run keeper(1, 0); run keeper(2, 0);
#if P > 1
		run keeper(0, 1); run keeper(1, 1); run keeper(2, 1);
#endif
#endif
#ifdef DELAY_INVALIDATIONS
		run late(0, 0); run late(1, 0); run late(2, 0);
#if P > 1
		run late(0, 1); run late(1, 1); run late(2, 1);
#endif
#endif
	}
#ifndef FREE
	finished == N;
	assert(!(FORBIDDEN))
#endif
}

#ifdef PROGRESS_OF
/* A node that requests a page gets it, whatever the others do for ever. */
ltl progress { [] ((wanted[PROGRESS_OF] != PAGE_NONE) -> <> (wanted[PROGRESS_OF] == PAGE_NONE)) }
#endif
