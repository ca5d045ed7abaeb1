/* lists.h - the states, events and actions of the page protocol, as lists for X-macros.
 *
 * Only macros stand here: the SPIN model (tests/model) is made of the same lists and tables as the code.
 */
#ifndef DSM_LISTS_H
#define DSM_LISTS_H

/* A page at a node. X(state, the local CPUs' right, argument): */
#define NODE_STATES(X, a) \
	X(NONE, PAGE_NONE, a)		/* nothing here, nothing asked */ \
	X(READING, PAGE_NONE, a)	/* nothing here, asked to read */ \
	X(WRITING, PAGE_NONE, a)	/* nothing here, asked to write */ \
	X(COPY, PAGE_READ, a)		/* a copy; another node is the owner */ \
	X(COPY_WRITING, PAGE_READ, a)	/* a copy, asked to write */ \
	X(OWNED, PAGE_READ, a)		/* the owner; others may have copies */ \
	X(OWNED_WRITING, PAGE_READ, a)	/* the owner, asked to write */ \
	X(AWAITING, PAGE_READ, a)	/* granted, the last acknowledgements outstanding */ \
	X(WRITE, PAGE_WRITE, a)		/* the owner and the only holder */

#define NODE_EVENTS(X, a) \
	X(WANT_READ, a)		/* a local CPU wants to read */ \
	X(WANT_WRITE, a)	/* a local CPU wants to write, or the home wants us to be the owner */ \
	X(DROP, a)		/* this host would like the memory back */ \
	X(HAND_OVER, a)		/* this host would like another one to own the page */ \
	X(FORWARD_READ, a)	/* home: send a copy to the requester */ \
	X(FORWARD_WRITE, a)	/* home: send the page to the requester */ \
	X(INVALIDATE, a)	/* home: drop the copy, acknowledge to the requester */ \
	X(GRANT_READ, a)	/* owner: a copy */ \
	X(GRANT_WRITE, a)	/* owner: the page, and every acknowledgement is in */ \
	X(GRANT_WRITE_WAIT, a)	/* owner: the page, some acknowledgements are not in yet */ \
	X(GRANT_UPGRADE, a)	/* home: the copy here is current, and every acknowledgement is in */ \
	X(GRANT_UPGRADE_WAIT, a) /* home: the copy here is current, some acknowledgements are not in yet */ \
	X(GRANT_ZERO, a)	/* home: never touched */ \
	X(ACK, a)		/* a copy is gone; the grant, or another acknowledgement, is still to come */ \
	X(ACK_LAST, a)		/* the last copy is gone, and the grant was here before */

#define NODE_ACTIONS(X) \
	X(ASK_READ)	/* request to the home: nothing here, read */ \
	X(ASK_WRITE)	/* nothing here, write */ \
	X(ASK_UPGRADE)	/* a copy here, write */ \
	X(ASK_HANDOVER) /* the page should go to another node */ \
	X(SEND_COPY)	/* lower the local right to read, send the contents to the requester */ \
	X(SEND_PAGE)	/* take the page from the local CPUs, send the contents and the number of acknowledgements */ \
	X(TAKE)		/* take the page from the local CPUs, forget the contents */ \
	X(SEND_ACK)	/* to the requester of the transaction */ \
	X(FILL_READ)	/* the payload becomes the page, for reading */ \
	X(FILL_WRITE)	/* the payload becomes the page, for writing */ \
	X(FILL_ZERO)	/* zeros become the page, for writing */ \
	X(RAISE)	/* raise the local right from read to write */ \
	X(CONFIRM)	/* to the home: the next transaction may start */ \
	X(READY)	/* tell the host that local CPUs can go on */

/* A page at its home. */
#define HOME_STATES(X, a) \
	X(UNTOUCHED, a)	/* no node ever had it: it is zero */ \
	X(IDLE, a)	/* the owner and the copyset are exact, but for copies dropped in silence */ \
	X(BUSY, a)	/* one transaction runs; the rest queue */

#define HOME_EVENTS(X, a) \
	X(READ, a)		/* a node that is not the owner wants to read */ \
	X(WRITE, a)		/* a node without a current copy wants to write */ \
	X(UPGRADE, a)		/* a node in the copyset, the owner or not, wants to write its copy */ \
	X(OWNER_MISS, a)	/* the owner says that it has nothing */ \
	X(HAND_OVER, a)		/* the owner wants another node to own the page */ \
	X(HAND_OVER_STALE, a)	/* the same, but the sender is not the owner any more, or the other one is it already */ \
	X(CONFIRM, a)		/* the requester is done */

#define HOME_ACTIONS(X) \
	X(GRANT_ZERO)	/* to the requester; it becomes owner and copyset */ \
	X(FORWARD_READ) /* to the owner; the requester joins the copyset */ \
	X(FORWARD_WRITE) /* to the owner, with the number of acknowledgements; invalidations to the other holders */ \
	X(GRANT_UPGRADE) /* to the requester, with the number of acknowledgements; invalidations to the other holders */ \
	X(SEND_ADOPT)	/* to the node that shall be the owner */ \
	X(QUEUE)	/* behind the running transaction */ \
	X(SERVE_NEXT)	/* the oldest of the queue */

#endif
