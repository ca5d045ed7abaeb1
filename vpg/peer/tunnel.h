/* tunnel.h - a channel to another peer: TLS 1.3 from end to end, in messages of the overlay.
 *
 * The nodes between the two peers carry it, and can neither read nor change it.  A tunnel joins two
 * processes, not two computers: when one of them ends, so does the tunnel.  Of two processes the
 * one with the smaller resource name is TLS's client, so that not both begin a handshake.
 *
 * A frame that was sent arrives, in order; or the tunnel is closed, and hear_closed() is called.
 */
#ifndef VPG_TUNNEL_H
#define VPG_TUNNEL_H

#include "vpg/peer/daemon.h"
#include "vpg/peer/pieces.h"

/* Facts about a peer, from its last PONG. */
struct peer_facts {
	uint64_t processors, memory_kib, free_kib, load_percent, rtt_us;
	/* what it lends to machines (lending.h): at most; now; and how many of its processors are
	 * left for this computer */
	uint64_t lends, lent, lends_mib, lent_mib, machines_most, machines, offers, spare,
		 speed;
};

struct evbuffer;
struct tunnel {
	struct tunnel *next;
	struct daemon *d;
	ph_vp_t instance;		/* the other process; 0: this is the tunnel to itself */
	struct tunnel *mirror;		/* other end of the tunnel to itself; otherwise NULL */
	char nick[NICK_BYTES];		/* "" until it is open */
	unsigned char key[KEY_BYTES];
	bool open, failed, dead;
	SSL *ssl;
	struct pieces pieces;		/* between OpenSSL and the overlay */
	struct evbuffer *in;		/* plain bytes of a frame that is not complete */
	struct piece *held;		/* the overlay has no room for it yet; or NULL */
	struct event *pump;
	int64_t since_us, asked_us;	/* asked_us: when the PING under way was sent; 0: none is */
	struct peer_facts facts;
};

enum { TUNNEL_TAG = 2, TUNNEL_RESET_TAG = 3, TUNNELS_MAX = 2048 };

/* Makes the tunnel to itself.  Returns 0 or -1. */
int tunnel_start_self(struct daemon *d);
/* A process of the network was heard of. */
void tunnel_meet(struct daemon *d, ph_vp_t instance);
/* Bytes of a tunnel came from that process; tunnel_reset(): it knows of no tunnel. */
void tunnel_arrived(struct daemon *d, ph_vp_t instance, const void *bytes, size_t n);
void tunnel_reset(struct daemon *d, ph_vp_t instance);
void tunnel_gone(struct daemon *d, ph_vp_t instance);

void tunnel_send(struct tunnel *t, enum vpg_type type, const void *fields);
/* Like tunnel_send(), when more follows at once: it leaves with the next tunnel_send() or
 * tunnel_flush(). */
void tunnel_send_more(struct tunnel *t, enum vpg_type type, const void *fields);
/* Like tunnel_send_more(), for a frame that is written already. */
void tunnel_send_frame(struct tunnel *t, const unsigned char *frame, size_t n);
void tunnel_flush(struct tunnel *t);
void tunnels_flush(struct daemon *d);		/* all of them */
/* Closes the tunnel; `why` is for a person.  It is freed later. */
void tunnel_close(struct tunnel *t, const char *why);
/* Returns the open tunnel to a peer, or NULL.  Of the tunnel to itself: the end that `writes` a
 * stream, or the one that reads it. */
struct tunnel *tunnel_to(struct daemon *d, const char *nick, bool writes);
/* Frees closed tunnels; ends handshakes that take too long. */
void tunnels_tidy(struct daemon *d);
void tunnels_free(struct daemon *d);
int64_t tunnel_now_us(void);

#endif
