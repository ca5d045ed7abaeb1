/* bounds.h - every limit of the library in one place.  Sizes are in bytes, times in
 * microseconds. */
#ifndef PHOENIX_BOUNDS_H
#define PHOENIX_BOUNDS_H

enum {
	PHNX_VERSION = 6,			/* version of the protocol between nodes */
	SECRET_BYTES = 32,
	BODY_ALIGN = 16,			/* alignment of a message's body within its frame */
	MAX_SESSION = 64,			/* the name of a session, with its terminator */
	MAX_HOST = 254,				/* the name of a host, with its terminator */
	MAX_UNIX_PATH = 108,	/* the path of a local socket, with its terminator */
	MAX_PATH_TEXT = 512,			/* the name of a file in the configuration */
	MAX_CONFIG_BYTES = 1 << 20,
	MAX_CONTACTS = 65536,			/* contact points that one configuration may name */
	MAX_DIALING = 64,			/* connections that are being made at once */
	MAX_SSH_LINE = 200,			/* of a line that ssh writes */
	MAX_LEARNED = 4096,			/* contact points learned from routing messages */
	MAX_RANGES = 4096,			/* ranges of the set that one node announces */
	MAX_NODES_KNOWN = 16384,		/* entries of a routing table */
	MAX_ADDRS = 4,				/* addresses that one node announces */
	MAX_LINKS = 4096,
	SOME_NAMES = 4,	/* neighbours that a node names when a link is new */
	LAST_NAMES = 64,	/* of which these are taken: the names in the last greetings */
	MAX_HOPS = 64,
	MAX_FRAME = (16 << 20) + 256,		/* the largest message and its header */
	MAX_HANDSHAKE_FRAME = 1024,		/* a frame before the peer has proved itself */
	/* what a node announces with its proof; what is longer follows in a frame of its own */
	MAX_GREETING = 900,
	BARE_LEAST = 2048,	/* encrypted bytes that are not encrypted again, at least */
	/* unsent bytes of a link; above it data frames are dropped, and retransmitted later */
	MAX_LINK_QUEUE = 64 << 20,
	MAX_LINK_UNREAD = 2 * MAX_LINK_QUEUE,	/* unsent bytes, and */
	/* unsent frames of a link; above either the link is closed */
	MAX_LINK_FRAMES = 1 << 20,
	/* messages of this node that nobody has consumed; above it senders wait */
	SEND_QUEUE_BYTES = 64 << 20,
	/* the same with what this node keeps for others; above it no more is accepted */
	KEPT_BYTES = 256 << 20,
	RECV_QUEUE_BYTES = 64 << 20,		/* messages that wait for the application */
	WINDOW_MSGS = 4096,			/* unresolved messages between two nodes */
	WINDOW_BYTES = 8 << 20,	/* the same in bytes; one message is always allowed */
	MAX_FLOWS = 16384,			/* nodes whose sequence numbers are kept */
	SEEN_MULTICASTS = 256,	/* the last multicasts, of which a second copy is recognised */
	MAX_PAST = 64,	/* nodes that are gone of which is known what had arrived */
	MAX_VALUE_BYTES = 256 << 20,		/* values of reductions that wait to be combined */
	MAX_ANSWERS = 16384,			/* answers to one question of a reduction */
	MAX_REDUCTIONS = 1024,	/* questions of reductions that this node may be asked at once */
	SLICE_MAX = 65536,			/* members of a slice with a stride */

	HANDSHAKE_TIMEOUT = 5000000,
	/* the same through ssh, which logs in first, perhaps on two hosts */
	LOGIN_TIMEOUT = 30000000,
	ADDRESS_TIMEOUT = 1000000,		/* after it the next address of a name is tried */
	/* wait before the first retry of a connection; doubles up to RETRY_MAX */
	RETRY_MIN = 50000,
	RETRY_LOCAL = 5000,			/* RETRY_MIN for a local socket */
	/* the same after a link that was open for so long; links that break at once are not made so
	 * often */
	RETRY_SOON = 5000,
	LASTED = 20000,
	RETRY_MAX = 2000000,
	/* RETRY_MAX for learned contact points that have never answered */
	SILENT_RETRY = 64000000,
	/* of two nodes that learn of each other, one waits so long for the other */
	LEARNED_DELAY = 200000,
	ADDRESS_DELAY = 250000,			/* between the addresses of one node (RFC 8305) */
	/* contact points that should dial this node are dialed after this at the earliest, */
	OTHERS_FIRST = 10000,
	OTHERS_LAST = 500000,	/* and after this at the latest, while connections are being made */
	/* Nodes wait longer for others while nodes run late: so many times the lateness for a
	 * pause, and for anything at all at most. */
	PAUSE_TURNS = 2,
	MANY_TURNS = 16,
	/* lateness below this, and so much more per link, is the node's own work */
	LEAST_LATE = 5000,
	LEAST_LATE_PER_LINK = 100,
	MOST_LATE = 1000000,			/* more counts as this: the host was suspended */
	PING_INTERVAL = 500000,
	/* a node with many links pings one of them after this, so each of them less often, */
	PING_PAUSE = 20000,
	PING_INTERVAL_MOST = 2000000,		/* but after this at the latest */
	LINK_TIMEOUT = 8000000,			/* a link that is silent for so long is closed */
	RTO_MIN = 100000,	/* wait before a silent receiver is asked; doubles up to RTO_MAX */
	RTO_MAX = 2000000,
	/* A consumed message is acknowledged with the next data, or after this time: an
	 * acknowledgement of its own wakes both sides. */
	ACK_DELAY = 20000,
	ACK_EVERY = 16,				/* or after so many messages, */
	/* or bytes: so their sender reuses the memory while it is in its cache */
	ACK_BYTES = 512 << 10,
	MEMORY_WAIT = 20000,	/* wait before an operation that found no memory is retried */
	DOUBT_WAIT = 10000000,	/* wait for a node that knows which messages of a log had arrived */
	/* a virtual node that two nodes assume is reported after this */
	OVERLAP_GRACE = 2000000,
	ROUTE_EXPIRY = 30000000,		/* an unreachable node is forgotten after this */
	GOSSIP_INTERVAL = 500000,
	CLEANUP_LEAST = 5000000,	/* before a node of a small session is declared gone */
	/* a node that passed nothing on for so long, and some round trips, may leave */
	PASSED_ON = 100000,
	/* a node that has no value yet asks after this whether it is still wanted; doubles */
	REDUCE_DOUBT = 1000000,
	REDUCE_DOUBT_MAX = 64000000,
	/* the holder of the first virtual node asks after this if nobody else did */
	REDUCE_AGAIN = 200000,
	/* wait before a refused attempt is retried, times a random factor of 1 to 4 */
	MIGRATION_RETRY = 20000,
};

#endif
