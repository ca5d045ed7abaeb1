/* limits.h - every limit of the library in one place.  Sizes in bytes, times in microseconds. */
#ifndef PHOENIX_LIMITS_H
#define PHOENIX_LIMITS_H

enum {
	PHNX_VERSION = 5,			/* of the protocol between nodes */
	MAX_SESSION = 64,			/* a session's name, with its terminator */
	MAX_HOST = 254,				/* a host's name, with its terminator */
	MAX_UNIX_PATH = 108,			/* of a socket in the file system, with its terminator */
	MAX_PATH_TEXT = 512,			/* a file's name in the configuration */
	MAX_CONFIG_BYTES = 1 << 20,
	MAX_CONTACTS = 65536,			/* end points that one configuration may name */
	MAX_DIALING = 64,			/* connections under way at once */
	MAX_SSH_LINE = 200,			/* of what ssh says */
	MAX_LEARNED = 4096,			/* end points learned from routing messages */
	MAX_RANGES = 4096,			/* of one node's announced set */
	MAX_NODES_KNOWN = 16384,		/* entries of a routing table */
	MAX_ADDRS = 4,				/* addresses that one node announces */
	MAX_LINKS = 4096,
	SOME_NAMES = 4,				/* of neighbours, that a node names when a link is new */
	LAST_NAMES = 64,			/* of these some */
	MAX_HOPS = 64,
	MAX_FRAME = (16 << 20) + 256,		/* the largest message and its header */
	MAX_HANDSHAKE_FRAME = 1024,		/* before a peer has proved itself */
	MAX_GREETING = 900,			/* what a node says of itself with its proof; what is longer comes later */
	MAX_LINK_QUEUE = 64 << 20,		/* unsent bytes of a link; then data frames are dropped, and sent again */
	MAX_LINK_UNREAD = 2 * MAX_LINK_QUEUE,	/* unsent bytes of a link, and */
	MAX_LINK_FRAMES = 1 << 20,		/* unsent frames; whose peer reads so little is closed */
	SEND_QUEUE_BYTES = 64 << 20,		/* unconsumed messages that a node has sent; then senders wait */
	KEPT_BYTES = 256 << 20,			/* the same with what it passes on for others; then it accepts no more of that */
	RECV_QUEUE_BYTES = 64 << 20,		/* messages that wait for the application */
	WINDOW_MSGS = 4096,			/* unresolved messages between a pair of nodes */
	WINDOW_BYTES = 8 << 20,			/* the same in bytes; one message is always allowed */
	MAX_FLOWS = 16384,			/* peers of which a node keeps sequence numbers */
	SEEN_MULTICASTS = 256,			/* the last ones, of which a second copy is recognised */
	MAX_PAST = 64,				/* nodes that are gone, of which it is known what had arrived */
	MAX_VALUE_BYTES = 256 << 20,		/* values of reductions that wait to be combined */
	MAX_ANSWERS = 16384,			/* to one question of a reduction */
	MAX_REDUCTIONS = 1024,			/* that other nodes may begin before this one joins in */
	SLICE_MAX = 65536,			/* members of a slice with a stride */

	HANDSHAKE_TIMEOUT = 5000000,
	LOGIN_TIMEOUT = 30000000,		/* the same through ssh, which logs in first, perhaps on two hosts */
	ADDRESS_TIMEOUT = 1000000,		/* then a name's next address is tried */
	RETRY_MIN = 50000,			/* the first retry of a connection; doubles up to RETRY_MAX */
	RETRY_LOCAL = 5000,			/* RETRY_MIN of a socket in the file system */
	RETRY_MAX = 2000000,
	SILENT_RETRY = 64000000,		/* the same for learned end points that have never answered */
	LEARNED_DELAY = 200000,			/* of the two nodes that learn of each other, one waits so long */
	ADDRESS_DELAY = 250000,			/* between the addresses of one of these (RFC 8305) */
	OTHERS_FIRST = 10000,			/* contact points that should dial this node are dialed after this at the earliest */
	OTHERS_LAST = 500000,			/* the same at the latest, while connections are being made */
	/* What others do is waited for as many times longer as nodes run late: a pause, and all that is waited for at most. */
	PAUSE_TURNS = 2,
	MANY_TURNS = 16,
	LEAST_LATE = 5000,			/* less, and so much for each link, comes from a node's own work */
	LEAST_LATE_PER_LINK = 100,
	MOST_LATE = 1000000,			/* more counts as this: the computer stood still */
	PING_INTERVAL = 500000,
	LINK_TIMEOUT = 8000000,			/* a silent link is closed */
	RTO_MIN = 100000,			/* a silent receiver is asked after this at the earliest; doubles up to RTO_MAX */
	RTO_MAX = 2000000,
	/* A consumed message is acknowledged with the next data, or after this: a message of its own wakes both sides. */
	ACK_DELAY = 20000,
	ACK_EVERY = 16,				/* or after so many messages, */
	ACK_BYTES = 512 << 10,			/* or bytes: their sender uses the memory again while it is in its cache */
	MEMORY_WAIT = 20000,			/* then what there was no memory for is tried again */
	DOUBT_WAIT = 10000000,			/* for a node that can tell which messages of a log had arrived */
	OVERLAP_GRACE = 2000000,		/* a doubly assumed virtual node is reported after this */
	ROUTE_EXPIRY = 30000000,		/* an unreachable node is forgotten after this, unless messages wait for it */
	GOSSIP_INTERVAL = 500000,
	PASSED_ON = 100000,			/* who passed nothing on for so long, and some round trips, may leave */
	REDUCE_DOUBT = 1000000,			/* who was asked for a value, and has none, asks after this whether it is still wanted; doubles */
	REDUCE_DOUBT_MAX = 64000000,
	REDUCE_AGAIN = 200000,			/* whoever has taken the first virtual node asks, if nobody did meanwhile */
	MIGRATION_RETRY = 20000,		/* a refused attempt is repeated after this, times a random factor */
};

#endif
