/* lists.h - the states, events and actions of the page protocol, as lists for X-macros.
 *
 * Only macros stand here: the SPIN model (tests/model) is made of the same lists and tables as
 * the code.
 */
#ifndef DSM_LISTS_H
#define DSM_LISTS_H

/* A page at a node. X(state, the local CPUs' right, argument): */
#define NODE_STATES(X, a) \
	X(NONE, PAGE_NONE, a)		/* no copy, no request */ \
	X(READING, PAGE_NONE, a)	/* no copy, requested to read */ \
	X(WRITING, PAGE_NONE, a)	/* no copy, requested to write */ \
	X(COPY, PAGE_READ, a)		/* a copy; another node is the owner */ \
	X(COPY_WRITING, PAGE_READ, a)	/* a copy, requested to write */ \
	X(OWNED, PAGE_READ, a)		/* the owner; others may have copies */ \
	X(OWNED_WRITING, PAGE_READ, a)	/* the owner, requested to write */ \
	X(AWAITING, PAGE_READ, a)	/* granted, the last acknowledgements outstanding */ \
	X(WRITE, PAGE_WRITE, a)		/* the owner and the only holder */

#define NODE_EVENTS(X, a) \
	X(WANT_READ, a)		/* a local CPU wants to read */ \
	X(WANT_WRITE, a)	/* a local CPU wants to write, or the home makes us the owner */ \
	X(DROP, a)		/* this host wants to free the memory */ \
	X(HAND_OVER, a)		/* this host wants another one to own the page */ \
	X(FORWARD_READ, a)	/* home: send a copy to the requester */ \
	X(FORWARD_WRITE, a)	/* home: send the page to the requester */ \
	X(INVALIDATE, a)	/* home: drop the copy, acknowledge to the requester */ \
	X(GRANT_READ, a)	/* owner: a copy */ \
	X(GRANT_WRITE, a)	/* owner: the page; all acknowledgements have arrived */ \
	X(GRANT_WRITE_WAIT, a)	/* owner: the page; some acknowledgements are due */ \
	X(GRANT_UPGRADE, a)	/* home: our copy is current; no acknowledgements are due */ \
	X(GRANT_UPGRADE_WAIT, a) /* home: our copy is current; some acknowledgements are due */ \
	X(GRANT_ZERO, a)	/* home: never touched */ \
	X(ACK, a)		/* a copy was dropped; the grant or another one is due */ \
	X(ACK_LAST, a)		/* the last copy was dropped, after the grant arrived */

#define NODE_ACTIONS(X) \
	X(ASK_READ)	/* request to the home: no copy here, read */ \
	X(ASK_WRITE)	/* no copy here, write */ \
	X(ASK_UPGRADE)	/* a copy here, write */ \
	X(ASK_HANDOVER) /* the page should go to another node */ \
	X(SEND_COPY)	/* lower the local right to read, send the contents to the requester */ \
	X(SEND_PAGE)	/* take the page from the local CPUs, send it and the number of acks */ \
	X(TAKE)		/* take the page from the local CPUs, forget the contents */ \
	X(SEND_ACK)	/* to the requester of the transaction */ \
	X(FILL_READ)	/* the payload becomes the page, for reading */ \
	X(FILL_WRITE)	/* the payload becomes the page, for writing */ \
	X(FILL_ZERO)	/* zeros become the page, for writing */ \
	X(RAISE)	/* raise the local right from read to write */ \
	X(CONFIRM)	/* to the home: the next transaction may start */ \
	X(READY)	/* notify the host that local CPUs can continue */

/* A page at its home. */
#define HOME_STATES(X, a) \
	X(UNTOUCHED, a)	/* no node ever had it: it is zero */ \
	X(IDLE, a)	/* owner and copyset are exact, except silently dropped copies */ \
	X(BUSY, a)	/* one transaction runs; the rest queue */

#define HOME_EVENTS(X, a) \
	X(READ, a)		/* a node that is not the owner wants to read */ \
	X(WRITE, a)		/* a node without a current copy wants to write */ \
	X(UPGRADE, a)		/* a node in the copyset wants to write its copy */ \
	X(OWNER_MISS, a)	/* the owner reports that it has no copy */ \
	X(HAND_OVER, a)		/* the owner wants another node to own the page */ \
	X(HAND_OVER_STALE, a)	/* the same, from a former owner or to the current one */ \
	X(CONFIRM, a)		/* the requester is done */

#define HOME_ACTIONS(X) \
	X(GRANT_ZERO)	/* to the requester; it becomes owner and copyset */ \
	X(FORWARD_READ) /* to the owner; the requester joins the copyset */ \
	X(FORWARD_WRITE) /* to the owner, with the number of acks; others: invalidate */ \
	X(GRANT_UPGRADE) /* to the requester, with the number of acks; others: invalidate */ \
	X(SEND_ADOPT)	/* to the node that is to be the owner */ \
	X(QUEUE)	/* behind the running transaction */ \
	X(SERVE_NEXT)	/* the oldest of the queue */

#endif
