/* dsm.h - one memory: the page protocol of one node, as a holder of pages and as the home of some.
 *
 * README.md in this folder explains the protocol.  This is a state machine without threads,
 * clocks, sockets or page contents of its own.  The node daemon, the simulator and the unit
 * tests pass it messages and carry out its callbacks.
 *
 * Rules of use:
 *  - One caller at a time.  The callbacks of struct dsm_host run inside the call that caused
 *    them.  A callback may call only one of the functions here, dsm_want(), which is queued.
 *  - The transport keeps the order between each pair of nodes, and neither loses nor duplicates
 *    messages.  Messages to this node itself never reach send(): they are delivered internally.
 *  - dsm_preloaded() is called with the same arguments on every node before any node wants a page.
 *    So is dsm_homes_near(), before it, or on none.
 *  - The moves of one interval's home do not overlap.  A node leaves in this order: its homes
 *    move away, dsm_leave() and its steps to the end, dsm_forget_node() on all others.
 *  - Rights are enum page_right (base/types.h), which the host keeps: the host changes them
 *    only as the callbacks say.
 */
#ifndef DSM_DSM_H
#define DSM_DSM_H

#include "base/hostshm.h"
#include "base/types.h"
#include "base/wire.h"

struct dsm;

struct dsm_host {
	void *ctx;

	/* Send to a virtual node: a home or a daemon; dsm_node_of() says where it is. `payload`
	 * is NULL or one page, and is valid during the call only. */
	void (*send)(void *ctx, vnode_t to, uint16_t type, const struct msg_dsm *body,
		     const void *payload, uint32_t payload_bytes);

	/* Send MSG_HOME_STATE to node body->to, in order with the above; the payload is valid
	 * during the call only. */
	void (*send_home)(void *ctx, const struct msg_home *body, const void *payload,
			  uint32_t payload_bytes);

	/* Lower the local CPUs' right to `new_right` (PAGE_NONE or PAGE_READ), such that no
	 * local write can follow, then store the final contents in `contents` unless it is NULL.
	 * When the right is `new_right` already: only store. */
	void (*take)(void *ctx, gfn_t gfn, enum page_right new_right, void *contents);

	/* Make `contents` (NULL: zeros) the page, complete before any local CPU can see it, and
	 * give `right`. The right was PAGE_NONE. */
	void (*fill)(void *ctx, gfn_t gfn, const void *contents, enum page_right right);

	/* Raise the right from PAGE_READ to PAGE_WRITE; the contents stay. (With a fault point
	 * it may be raised already.) */
	void (*upgrade)(void *ctx, gfn_t gfn);

	/* A want up to `right` is fulfilled.  It may be called without a want (for another
	 * CPU's, or an adopted page). */
	void (*ready)(void *ctx, gfn_t gfn, enum page_right right);

	/* Another node requests this page; the local CPUs would keep `new_right` (PAGE_READ: it
	 * only reads).  Returns 0 if the page may go now, else the microseconds after which to
	 * ask again.  Reasons to hold it: a local CPU has not yet run with it (rule e), or two
	 * writers alternate too fast.  In all, no request is held longer than DSM_HOLD_MAX_US. */
	uint32_t (*hold_us)(void *ctx, gfn_t gfn, enum page_right new_right);

	/* Call dsm_retry(gfn) in `us` microseconds, not from within this callback.  A call that
	 * is early or repeated is harmless; a missing one is not. */
	void (*after_us)(void *ctx, gfn_t gfn, uint32_t us);

	/* Another node has broken the protocol; `text` is one line that says how.  Nothing is
	 * served any more: the machine must end.  Called once at most.  NULL: all nodes are this
	 * program's own, and it is a bug(). */
	void (*wrong)(void *ctx, const char *text);

	/* A request waits here, at the page's home, until node `requester`, another one, confirms
	 * its copy.  For hosts that delay these confirmations.  NULL: none does. */
	void (*unconfirmed)(void *ctx, gfn_t gfn, unsigned requester);

	/* Node `owner` hands the page over to this node: whether it takes it.  `must`: it has to.
	 * An owner whose page is refused keeps it; the host tells it so.  NULL: always. */
	bool (*adopts)(void *ctx, gfn_t gfn, unsigned owner, bool must);
};

enum {
	DSM_HOLD_MAX_US = 20000,
	DSM_ANY_NODE = MAX_NODES, /* dsm_handover(): the home chooses */
};

/* A node's counters.  X(field, text) */
#define DSM_COUNTERS(X) \
	X(wants_read, "local wants to read") \
	X(wants_write, "local wants to write") \
	X(wants_ahead, "pages asked for in a run, before a CPU wanted them") \
	X(requests, "requests to homes") \
	X(grants_copy, "pages that came with data, to read") \
	X(grants_page, "pages that came with data, to write") \
	X(grants_upgrade, "rights raised without data") \
	X(grants_zero, "pages that no node had touched") \
	X(sent_copies, "copies sent to other nodes") \
	X(sent_pages, "pages given to other nodes with data") \
	X(invalidated, "pages lost to an invalidation, without data") \
	X(stale_invalidations, "invalidations for copies that were not here") \
	X(drops, "clean copies dropped in silence") \
	X(holds, "times that a page was held for a local CPU") \
	X(holds_expired, "times that a page went though the local CPU had not run") \
	X(home_transactions, "transactions served as home") \
	X(home_queued, "requests that found their page busy") \
	X(home_forwarded, "requests that came after their home had moved, passed on") \
	X(messages_sent, "protocol messages to other nodes") \
	X(messages_local, "protocol messages within this node") \
	X(messages_received, "protocol messages from other nodes")

struct dsm_stats {
#define X(field, text) uint64_t field;
	DSM_COUNTERS(X)
#undef X
};

/* Return a new protocol state for `n_pages` pages; dies when there is no memory (about 36 bytes
 * a page, touched lazily).  `host` is copied.  n_nodes: nodes 0 .. n_nodes-1 start together and
 * share the homes.  0: this node joins a running cluster, has no homes, and may want no page
 * before dsm_homes_learn(). */
struct dsm *dsm_new(unsigned node, unsigned n_nodes, uint32_t n_pages, const struct dsm_host *host);
void dsm_free(struct dsm *dsm);

/* Pages [first, first+count) hold data already, at node `owner`, with the right to write there.
 * The owner's host sets the rights itself; no callback is called. */
void dsm_preloaded(struct dsm *dsm, gfn_t first, uint32_t count, unsigned owner);

/* Called before dsm_preloaded(), with the ranges of all its calls, on every node that starts with
 * the others: each home begins at the node that owns most of its pages then.  So what that node
 * requests, or is requested of it, takes two hops instead of three. */
void dsm_homes_near(struct dsm *dsm, const struct page_range *ranges, unsigned n);

/* A local CPU wants `gfn` (PAGE_READ or PAGE_WRITE); ready() follows, at once if the right is
 * there already.  Several wants of one page become one request. */
void dsm_want(struct dsm *dsm, gfn_t gfn, enum page_right right);

/* A hint: as dsm_want(), for a page that no local CPU waits for yet.  Nothing happens if it is
 * here with that right, or requested. */
void dsm_want_ahead(struct dsm *dsm, gfn_t gfn, enum page_right right);

/* Handle a message of a type MSG_DSM_*.  packet_check() (base/packet.h) has accepted it, and the
 * caller has copied the body; the payload is what follows it.  Returns 0, or -EPROTO for one that
 * no correct node sends (it is ignored). */
int dsm_on_message(struct dsm *dsm, const struct msg_header *header, const struct msg_dsm *body,
		   const void *payload);

/* The delay of after_us() is over. */
void dsm_retry(struct dsm *dsm, gfn_t gfn);

/* Free the page's memory on this host.  True: it was a clean copy and is dropped without a
 * message, by take(PAGE_NONE).  False: the page stays. */
bool dsm_drop(struct dsm *dsm, gfn_t gfn);

/* Request that the home makes `to` (or DSM_ANY_NODE) the page's owner.  The page leaves later,
 * through take(), as if that node had written to it.  Nothing happens if this node is not the
 * owner.  A node that is named may refuse the page, and then it stays; so may another one, which
 * the home names in its place if it leaves.  With DSM_ANY_NODE the page is not refused. */
void dsm_handover(struct dsm *dsm, gfn_t gfn, unsigned to);

/* The right that the protocol has given to local CPUs, and whether this node is the owner (its
 * copy must not be lost). */
enum page_right dsm_right(const struct dsm *dsm, gfn_t gfn);
bool dsm_is_owner(const struct dsm *dsm, gfn_t gfn);

/* Return the bit set of nodes that may have copies of the page; 0 if its home is not here, or is
 * busy with it. */
uint32_t dsm_copies(const struct dsm *dsm, gfn_t gfn);

/* True if this node owns the page and has requested nothing of its home. */
bool dsm_owns_quietly(const struct dsm *dsm, gfn_t gfn);

/* True if the page is neither here nor requested, so that a want brings one page more. */
bool dsm_is_elsewhere(const struct dsm *dsm, gfn_t gfn);

/* The number of pages that are not here, and requested. */
uint32_t dsm_coming(const struct dsm *dsm);

/* True if no request of this node is outstanding: it keeps what it owns until another node
 * requests it. */
bool dsm_settled(const struct dsm *dsm);

/* One line about a page's state here, for logs: node state, and home state if it is managed
 * here. */
void dsm_describe(const struct dsm *dsm, gfn_t gfn, char *text, size_t bytes);

const struct dsm_stats *dsm_stats(const struct dsm *dsm);

/* --- nodes that come and go, homes that move (homes.c, leave.c) --- */

/* Set the nodes that may become owners: all that are in the cluster and not about to leave.  At
 * first those of dsm_new(). */
void dsm_set_nodes(struct dsm *dsm, uint32_t nodes);
uint32_t dsm_nodes(const struct dsm *dsm);

/* Move the interval's home from here to `to`, with its table and queues, in parts through
 * send_home().  Returns 0, or -ENOENT when it is not here.  Later requests are forwarded. */
int dsm_home_give(struct dsm *dsm, unsigned interval, unsigned to);
/* Handle MSG_HOME_STATE.  Returns 1: the interval is complete and served here from now on; 0:
 * more parts follow; -EPROTO: no correct node sends that. */
int dsm_on_home_state(struct dsm *dsm, const struct msg_home *body, const void *payload,
		      uint32_t payload_bytes);
/* Return the places of all DSM_INTERVALS intervals, as this node believes. */
const struct home_place *dsm_homes(const struct dsm *dsm);
/* Adopt another node's places where they are newer. */
void dsm_homes_learn(struct dsm *dsm, const struct home_place *places);

/* Begin to leave: from now on this node adopts no page.  `leaves` false: it stays after all. */
void dsm_leave(struct dsm *dsm, bool leaves);
/* Take one step of leaving; called about every millisecond after dsm_leave().  elapsed_us: time
 * since the last step, or the usual interval.  It drops copies and hands pages over, as many as
 * the homes can take in that time.  Returns true when no page is left; none arrives after that,
 * as long as no local CPU wants one. */
bool dsm_leave_step(struct dsm *dsm, uint32_t elapsed_us);
/* Return the number of pages that are here or requested. */
uint32_t dsm_pages_here(const struct dsm *dsm);
/* Remove a node without pages (its dsm_leave_step() returned true) from all copysets, so that it
 * gets no invalidations. */
void dsm_forget_node(struct dsm *dsm, unsigned node);

/* Page homes.  Virtual nodes move in intervals of equal length.  An interval has one block of
 * neighbouring pages: RAM has at most DSM_INTERVALS of them, each of a power of two of pages.  So a
 * home can be where its pages are used.  K is odd, so that block -> interval is one to one, and
 * near DSM_INTERVALS divided by the golden ratio, so that neighbouring blocks fall far apart. */
enum {
	DSM_HOME_K = 159, DSM_INTERVALS = 256,
	DSM_INTERVAL_VNODES = (int)(VNODE_HOME_COUNT / DSM_INTERVALS),
};

/* Return the binary logarithm of a block's pages, in RAM of n_pages. */
static inline unsigned dsm_block_bits(uint32_t n_pages)
{
	uint32_t more = (n_pages - 1) / DSM_INTERVALS;

	return more ? 32 - (unsigned)__builtin_clz(more) : 0;
}

static inline unsigned dsm_interval(gfn_t gfn, uint32_t n_pages)
{
	return (gfn >> dsm_block_bits(n_pages)) * DSM_HOME_K % DSM_INTERVALS;
}

static inline vnode_t dsm_home(gfn_t gfn, uint32_t n_pages)
{
	return VNODE_HOME_BASE + dsm_interval(gfn, n_pages) * (vnode_t)DSM_INTERVAL_VNODES +
	       (gfn & ((1u << dsm_block_bits(n_pages)) - 1));
}

/* Return the node of an interval at the start, unless dsm_homes_near() chooses another one: each
 * node has an equal, contiguous share. */
static inline unsigned dsm_interval_start(unsigned interval, unsigned n_nodes)
{
	return interval * n_nodes / DSM_INTERVALS;
}

/* Return the node that serves a virtual node of the page protocol (a home's or VNODE_DAEMON()),
 * as far as this one knows. */
unsigned dsm_node_of(const struct dsm *dsm, vnode_t vnode);

#endif
