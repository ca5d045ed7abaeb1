/* dsm.pml - the page protocol as a Promela model, made from the same lists and tables as the code.
 *
 * dsm_steps.pml includes dsm/node_table.def and dsm/home_table.def: each CELL becomes a branch,
 * each NEVER an error.  It models what dsm_node.c and home.c do in C: the actions, the translation
 * of messages to events.  This file models dsm.c: the queue, the messages between nodes.
 *
 * An event that a host causes by itself (not WANT) is sent to its node under the event's own name:
 * a new one is a branch in each `if` of the first host() of dsm_hosts.pml.
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
 * REACHES: pan prints each cell that it reaches.
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

#include "tests/model/dsm_steps.pml"

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

#include "tests/model/dsm_hosts.pml"

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
