/* dsm_hosts.pml - part of dsm.pml: what the hosts do, for ever or as a litmus program says. */
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
