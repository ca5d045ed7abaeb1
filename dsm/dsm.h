/* dsm.h - one memory: the page protocol of one node, both as a holder of pages and as the home of some.
 *
 * README.md in this folder explains the protocol.  This is a state machine without threads, clocks, sockets or page
 * contents of its own: the node daemon, the simulator and the unit tests give it messages and carry out what it asks.
 *
 * Rules of use:
 *  - One caller at a time.  The callbacks of struct dsm_host run inside the call that caused them.  Of the functions
 *    here, a callback may call dsm_want() alone (it is queued).
 *  - The transport keeps the order between each pair of nodes, loses nothing, doubles nothing.  Messages to this node
 *    itself never reach send(): they are delivered within.
 *  - dsm_preloaded() is told the same on every node before any node wants a page.
 *  - Homes move one after the other as far as one interval is concerned. A node leaves in this order: its homes move away,
 *    dsm_leave() and its steps to the end, dsm_forget_node() on all others.
 *  - Rights are enum page_right (base/hostshm.h), which the host keeps: the host changes them only as the callbacks say.
 */
#ifndef DSM_DSM_H
#define DSM_DSM_H

#include "base/hostshm.h"
#include "base/types.h"
#include "base/wire.h"

struct dsm;

struct dsm_host {
	void *ctx;

	/* Send to a virtual node: a home or a daemon; dsm_node_of() says where it is. `payload` is NULL or one page, and is
	 * valid during the call only. */
	void (*send)(void *ctx, vnode_t to, uint16_t type, const struct msg_dsm *body, const void *payload,
		     uint32_t payload_bytes);

	/* Send MSG_HOME_STATE to node body->to, in order with the above; the payload is valid during the call only. */
	void (*send_home)(void *ctx, const struct msg_home *body, const void *payload, uint32_t payload_bytes);

	/* Lower the local CPUs' right to `new_right` (PAGE_NONE or PAGE_READ), such that no local write can follow, then
	 * store the final contents in `contents` unless it is NULL. When the right is `new_right` already: only store. */
	void (*take)(void *ctx, gfn_t gfn, enum page_right new_right, void *contents);

	/* Make `contents` (NULL: zeros) the page, complete before any local CPU can see it, and give `right`. The right
	 * was PAGE_NONE. */
	void (*fill)(void *ctx, gfn_t gfn, const void *contents, enum page_right right);

	/* Raise the right from PAGE_READ to PAGE_WRITE; the contents stay. (With a fault point it may be raised already.) */
	void (*upgrade)(void *ctx, gfn_t gfn);

	/* A want up to `right` can be answered. It may come without a want (another CPU's, or a page adopted). */
	void (*ready)(void *ctx, gfn_t gfn, enum page_right right);

	/* Another node asks for this page, which would leave the local CPUs `new_right` (PAGE_READ: it only reads): 0 when it
	 * may go, else after how many microseconds to ask again, because a local CPU has not yet run with it (rule e), or
	 * to let two writers get something done. In all, no request is held longer than DSM_HOLD_MAX_US. */
	uint32_t (*hold_us)(void *ctx, gfn_t gfn, enum page_right new_right);

	/* Call dsm_retry(gfn) in `us` microseconds, never from here. Too early or too often is harmless, never is not. */
	void (*after_us)(void *ctx, gfn_t gfn, uint32_t us);
};

enum {
	DSM_HOLD_MAX_US = 20000,
	DSM_ANY_NODE = MAX_NODES, /* dsm_handover(): the home chooses */
};

/* What a node counts. X(field, text) */
#define DSM_COUNTERS(X) \
	X(wants_read, "local wants to read") \
	X(wants_write, "local wants to write") \
	X(wants_ahead, "pages asked for in a run of reads, before a CPU wanted them") \
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

/* A node's protocol state for `n_pages` pages; dies when there is no memory (about 36 bytes a page, touched lazily).
 * `host` is copied. n_nodes: nodes 0 .. n_nodes-1 start together and share the homes; 0: this one joins a cluster that runs, has
 * no homes, and may want nothing before dsm_homes_learn(). */
struct dsm *dsm_new(unsigned node, unsigned n_nodes, uint32_t n_pages, const struct dsm_host *host);
void dsm_free(struct dsm *dsm);

/* Pages [first, first+count) hold data already, at node `owner`, with the right to write there. The owner's host sets
 * the rights itself; no callback comes. */
void dsm_preloaded(struct dsm *dsm, gfn_t first, uint32_t count, unsigned owner);

/* A local CPU wants `gfn` (PAGE_READ or PAGE_WRITE); ready() comes, at once if the right stands. Several wants of one
 * page need no care: they become one request. The pages that follow in a run of reads are asked for too (ahead.h). */
void dsm_want(struct dsm *dsm, gfn_t gfn, enum page_right right);

/* A message of types MSG_DSM_*: the caller has checked `header` against wire_type_bounds() and copied the body; the
 * payload is what follows it. 0, or -EPROTO for one that no correct node sends (it is ignored). */
int dsm_on_message(struct dsm *dsm, const struct msg_header *header, const struct msg_dsm *body, const void *payload);

/* The time asked for by after_us() is over. */
void dsm_retry(struct dsm *dsm, gfn_t gfn);

/* This host wants the memory back: a clean copy goes in silence, take(PAGE_NONE) is called, true. Anything else stays. */
bool dsm_drop(struct dsm *dsm, gfn_t gfn);

/* This host wants to own the page no longer: ask the home to let `to` (or DSM_ANY_NODE) take it. It goes as if that
 * node had written to it: later, through take(). Nothing happens if this node is not the owner. */
void dsm_handover(struct dsm *dsm, gfn_t gfn, unsigned to);

/* The right that the protocol has given to local CPUs, and whether this node is the owner (its copy must not be lost). */
enum page_right dsm_right(const struct dsm *dsm, gfn_t gfn);
bool dsm_is_owner(const struct dsm *dsm, gfn_t gfn);

/* Nothing that this node asked for is under way: what it owns now it owns until somebody asks. */
bool dsm_settled(const struct dsm *dsm);

/* One line about a page's state here, for logs: node state, and home state if it is managed here. */
void dsm_describe(const struct dsm *dsm, gfn_t gfn, char *text, size_t bytes);

const struct dsm_stats *dsm_stats(const struct dsm *dsm);

/* --- nodes that come and go, homes that move (homes.c, leave.c) --- */

/* The nodes that there are, and are not about to leave: who may be made an owner. At first those of dsm_new(). */
void dsm_set_nodes(struct dsm *dsm, uint32_t nodes);

/* The interval's home moves from here to `to`, with its table and its queues: through send_home(), in as many parts as it takes.
 * 0, or -ENOENT when it is not here. Requests that still come are passed on. */
int dsm_home_give(struct dsm *dsm, unsigned interval, unsigned to);
/* MSG_HOME_STATE came. 1: the interval is complete and served here from now on; 0: more follows; -EPROTO: no correct node
 * sends that. */
int dsm_on_home_state(struct dsm *dsm, const struct msg_home *body, const void *payload, uint32_t payload_bytes);
/* Where this node believes the intervals to be: DSM_INTERVALS places. */
const struct home_place *dsm_homes(const struct dsm *dsm);
/* Another node's belief: where it is newer, it counts. */
void dsm_homes_learn(struct dsm *dsm, const struct home_place *places);

/* This node shall hold nothing: from now on it adopts no page. Or it stays after all. */
void dsm_leave(struct dsm *dsm, bool leaves);
/* Between these two, again and again, about every millisecond; elapsed_us: since the last step, or as long as one should take. Pages
 * are handed over, as many as come back soon and in proportion to the time, copies dropped. Returns true when
 * nothing is left; nothing comes then, for as long as no local CPU wants a page. */
bool dsm_leave_step(struct dsm *dsm, uint32_t elapsed_us);
/* Pages that are here or on their way. */
uint32_t dsm_pages_here(const struct dsm *dsm);
/* A node that holds nothing any more (dsm_leave_step() said so) is not to be asked to give up copies again. */
void dsm_forget_node(struct dsm *dsm, unsigned node);

/* Page homes. K is odd, so that gfn -> virtual node is one to one, and near 2^20 divided by the golden ratio, so that
 * neighbouring pages fall far apart. Virtual nodes move in intervals of equal length. */
enum { DSM_HOME_K = 0x9e379, DSM_INTERVALS = 256, DSM_INTERVAL_VNODES = (int)(VNODE_HOME_COUNT / DSM_INTERVALS) };

static inline vnode_t dsm_home(gfn_t gfn)
{
	return VNODE_HOME_BASE + (vnode_t)((uint64_t)DSM_HOME_K * gfn % (uint64_t)VNODE_HOME_COUNT);
}

static inline unsigned dsm_interval(gfn_t gfn)
{
	return (unsigned)((dsm_home(gfn) - VNODE_HOME_BASE) / DSM_INTERVAL_VNODES);
}

/* Where an interval is at the start: each node has as many as the others, one after the other. */
static inline unsigned dsm_interval_start(unsigned interval, unsigned n_nodes)
{
	return interval * n_nodes / DSM_INTERVALS;
}

/* The node that serves a virtual node of the page protocol (a home's or VNODE_DAEMON()), as far as this one knows. */
unsigned dsm_node_of(const struct dsm *dsm, vnode_t vnode);

#endif
