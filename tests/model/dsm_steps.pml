/* dsm_steps.pml - part of dsm.pml: what a node and a home do with a message, as the tables say. */
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

#ifdef REACHES
#define REACHED(table, state, event) \
	c_code { \
		static int told; \
		if (!told++) \
			printf("reached " #table "(" #state "," #event ")\n"); \
	};
#else
#define REACHED(table, state, event)
#endif

inline node_step()
{
	if
#define CELL(state, event, next, ...) \
	:: st[i] == NODE_##state && ev == NODE_ON_##event -> st[i] = NODE_##next; \
		REACHED(node, state, event) DO(NODE, __VA_ARGS__)
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
		REACHED(home, state, event) DO(HOME, __VA_ARGS__)
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
