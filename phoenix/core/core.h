/* core.h - what all layers of a node share: who it is, what it asks of its environment, when it is
 * due.
 *
 * A node is a protocol machine.  It does no input or output of its own: its environment (net/, on
 * libevent, or the simulator in tests/sim) opens connections, moves bytes, reads the clock through
 * `struct phnx_ops`, and calls node_poll() after each input and when a timer is due.  Nothing is
 * thread-safe here: calls/runtime.c holds one lock around everything.
 *
 * The layers, from below.  A layer includes headers of the layers below it alone.  What a layer
 * calls in the layers above is declared in its own *_upcalls.h and defined there, so that no circle
 * of headers arises and a call upwards costs no more than one downwards.
 *
 *   core      numbers in frames, memory for messages, sets of virtual nodes, secrets
 *   link      frames, the handshake, pings: one connection to one neighbour
 *   routing   which node is where, who holds a virtual node, whom to connect to, who is gone
 *   flow      messages from end to end: order, acknowledgements, retransmission, message logs
 *   services  migration of virtual nodes, multicast and reduction, all made of messages
 *   node      the layers put together: start, timers, end
 *   net       a node's environment in a real process: sockets, TLS, ssh
 *   calls     phnx.h: the lock, the thread, the configuration
 *
 * Each layer keeps its state in a struct of its own, which a header private to its folder defines.
 */
#ifndef PHOENIX_CORE_H
#define PHOENIX_CORE_H

#include "phoenix/core/bounds.h"
#include "phoenix/core/endpoint.h"
#include "phoenix/core/vps.h"

struct phnx;
struct plink;
struct contact;

/* What a node asks of its environment. */
struct phnx_ops {
	uint64_t (*now)(void *ctx);			/* microseconds; never goes back */
	void (*random)(void *ctx, void *buf, size_t n);
	/* ends in link_open() or contact_dial_failed() */
	void (*dial)(void *ctx, struct contact *c);
	/* stop dialing c, which is about to be freed */
	void (*undial)(void *ctx, struct contact *c);
	void (*kick)(void *ctx, struct plink *l);	/* l has frames to send */
	void (*close)(void *ctx, struct plink *l);	/* l is freed right after this */
	void (*report)(void *ctx, int error, const char *text);
	void (*arrived)(void *ctx);	/* the receive queue has become empty or stopped being so */
};

struct address {
	char host[64];
	int port;
	enum phnx_protocol protocol;
};
struct payload {			/* what a node announces of itself */
	bool leaving, gone;
	uint64_t stamp;	/* grows with each assumption; of two claims the newer one wins */
	unsigned n_addrs;
	struct address addrs[MAX_ADDRS];
	struct ph_vps vps;		/* the virtual nodes that it assumes */
};

struct phnx {
	const struct phnx_ops *ops;
	void *ctx;
	ph_vp_t lower, upper;		/* the virtual nodes are [lower, upper) */
	ph_vp_t name;			/* this node's resource name */

	/* The state of each layer. */
	struct links *links;
	struct routes *routes;
	struct contacts *contacts;
	struct detector *detector;
	struct flows *flows;
	struct doubts *doubts;
	struct migration *migration;
	struct collectives *collectives;

	/* What is due.  Layers write this; node_poll() reads it after each input. */
	uint64_t due;			/* when the next timer expires, in microseconds */
	uint64_t ack_due;	/* when the next acknowledgement must go; UINT64_MAX: none waits */
	/* ways: counts changes of routes; ways_seen: the last that flow/ used */
	uint64_t ways, ways_seen;
	bool untold;			/* some neighbour may lack an entry of the routing table */
	bool pump;			/* some queued message may be able to go now */

	/* ph_invalidate_routing() was called: nothing is reachable through this node */
	bool leaving;
	bool closing;			/* the node ends: no new links */

	/* Handed from link/ to flow/ with a frame: the block that this frame has to itself, or
	 * NULL.  Whoever keeps the block sets it to NULL. */
	struct rmsg *landed;

	struct payload me;		/* after each change: route_self_changed() */
	bool has_session;
	char session[MAX_SESSION];
	unsigned char secret[SECRET_BYTES];
	/* how late this node came to a timer, and when: core_lateness() */
	uint64_t late_us, late_at;
};

void core_report(struct phnx *ph, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t core_random(struct phnx *ph);
/* How late nodes run in these seconds, in microseconds: a pause of others means something only
 * if it is longer than that. */
uint64_t core_lateness(const struct phnx *ph, uint64_t now);
void core_note_lateness(struct phnx *ph, uint64_t now, unsigned n_links);

static inline uint64_t core_now(struct phnx *ph)
{
	return ph->ops->now(ph->ctx);
}

/* Brings the next timer forward. */
static inline void core_due_by(struct phnx *ph, uint64_t when)
{
	if (when < ph->due)
		ph->due = when;
}

#endif
