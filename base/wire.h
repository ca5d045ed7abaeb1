/* wire.h - messages as types: the bodies of msg.def, the header before each, and their enums and
 * items.
 *
 * All local sockets are AF_UNIX SOCK_SEQPACKET, one message a packet (base/packet.h).  Layouts are
 * little-endian.  None of the structs from here to the end of the bodies has padding, or the
 * compiler complains; so the sizes in msg.def, which are asserted, pin every offset as well.
 *
 * wire_version is a hash of msg.def and of the headers that its messages need, without their
 * comments (scripts/wire-hash): programs that differ in any message, field, enum or limit have
 * different versions, and refuse each other at HELLO.  For that, struct msg_header and the type and
 * body of HELLO must never change.
 */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

#include <stddef.h>
#include "base/limits.h"
#include "base/trace.h"
#include "base/types.h"

extern const uint32_t wire_version;

/* A virtual node: the address of a role, not of a process (the Phoenix library's names).  A role
 * can move. */
typedef int64_t vnode_t;
#define VNODE_DAEMON(node) ((vnode_t)(node))		/* node 0 .. MAX_NODES-1 */
#define VNODE_CPU(cpu) ((vnode_t)0x1000 + (cpu))	/* the daemon where this CPU runs now */
#define VNODE_IOSRV ((vnode_t)0x2000)			/* the daemon beside the I/O server */
/* the daemon with the control socket (node 0) */
#define VNODE_CLI ((vnode_t)0x2001)
/* page homes (dsm/dsm.h): for 256 blocks of 32768 pages */
#define VNODE_HOME_BASE ((vnode_t)0x100000)
#define VNODE_HOME_COUNT ((vnode_t)1 << 23)

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

struct msg_header {
	uint16_t type;	  /* msg.def */
	uint16_t version; /* the low half of wire_version */
	uint32_t bytes;	  /* body and payload, without this header */
	int64_t to;	  /* virtual node; a daemon passes on what is not its own */
	uint32_t from_node;
	uint32_t reserved;
};

enum peer_role { PEER_DAEMON, PEER_MONITOR, PEER_IOSRV, PEER_CLI };

enum io_kind { IO_PORT_IN, IO_PORT_OUT, IO_MMIO_READ, IO_MMIO_WRITE };
enum virtio_op {
	/* ASK, from the monitor */
	VIRTIO_REQUEST, /* a chain; payload: a part of its bytes to read */
	VIRTIO_USED,	/* chains of this device were given back: raise its line */
	VIRTIO_RELEASE, /* the lease is given back */
	VIRTIO_PUSHED,	/* pushed messages were taken */
	VIRTIO_BROKEN,	/* the guest's rings are malformed; payload: how */
	VIRTIO_LEAVE,	/* this CPU has no lease and is stopped; answered by LEFT */
	VIRTIO_BACK,	/* this CPU runs: it may have leases */
	/* TELL, from the I/O server */
	VIRTIO_DONE,	/* payload: a part of a chain's bytes to write */
	VIRTIO_PUSH,	/* payload: an unrequested message (packet), for the next chain */
	VIRTIO_RECALL,	/* give the lease back */
	VIRTIO_LEFT,	/* no further message arrives before BACK or a notification */
	VIRTIO_SETTLED, /* no monitor walks the stopped queues (virtio_write_stops()) */
};
/* A step of bus-master DMA: its bytes, at most, and what became of it. */
enum { DMA_STEP_BYTES = 128 << 10 };
enum dma_result {
	DMA_MOVED,	 /* all bytes; `entry` and `used` are where the next step begins */
	DMA_TABLE_ENDED, /* all bytes, and they were the table's last */
	DMA_TABLE_SHORT, /* the table ended before */
	DMA_TABLE_WRONG, /* the table, or a buffer, is not in RAM, or the table has changed */
	DMA_RESULTS
};
enum interrupt_kind { INTERRUPT_FIXED, INTERRUPT_NMI };
enum end_reason {
	END_COMMAND, END_POWEROFF, END_PANIC, END_GUEST_FAULT, END_PART_DIED, END_USER, END_FAILURE,
	END_REBOOT,
};
/* Payload of MACHINE_START: pages that a node owns from the start; or that nobody owns yet, but
 * whose home is to be at that node (`unowned`). */
struct page_range { uint32_t first_gfn, count, owner /* node */, unowned; };
/* output for every attached client; otherwise the number of one, assigned by node 0 */
#define CONSOLE_ALL (~0u)
struct page_heat { uint32_t gfn, faults; };
/* A move that was made: when (ns of the first host's CLOCK_MONOTONIC), and why (a text, with its
 * zero). */
enum { MOVE_NOTES = 32, MOVE_WHY = 100 };
struct move_note { uint64_t at_ns; uint32_t number, cpu, from, to, pause_us; char why[MOVE_WHY]; };
enum cpu_step { STEP_PREPARED, STEP_TAKEN, STEP_BACK };

/* Hosts that join and leave (vmm/node/hosts/hosts.h).  D0: node 0's daemon, D: a daemon, C: a
 * client.  A payload is a line of text, except in NEWS: DSM_INTERVALS home places. */
enum host_op {
	HOST_ADD,      /* C->D0: `nodes` 0 */
	HOST_REMOVE,   /* C->D0 */
	HOST_PROGRESS, /* D0->C; D->D0: `nodes`: pages that are still on the leaving host */
	HOST_DONE,     /* D0->C: `error` 0: it joined or left */
	HOST_LAUNCH,   /* D0->run client: start the daemon; `nodes`: those it connects to */
	HOST_LAUNCHED, /* the answer; `error` */
	HOST_INCLUDED, /* D0->run client: from now on this daemon's end is the machine's end */
	HOST_RETIRE,   /* D0->run client: it no longer is; kill the daemon if `error` is not 0 */
	HOST_RETIRED,  /* the answer */
	HOST_ENDED,    /* run client->D0: the daemon's process has ended */
	/* D0->D: `present`: the set of hosts; `nodes`: those of them that stay */
	HOST_NEWS,
	/* the answer; `nodes`: pages on this host; `present`: pages for which its computer has
	 * memory */
	HOST_HEARD,
	HOST_LEAVE,    /* D0->leaver: give up all pages */
	HOST_EMPTY,    /* leaver->D0: it has given up all pages */
	/* D0->all others: the leaver has no pages; send it no more requests */
	HOST_FORGET,
	HOST_MARK,     /* D->leaver: the last message of this host to it */
	HOST_FAREWELL, /* leaver->all others: its last message to each */
	HOST_GONE,     /* D->D0: the farewell has arrived */
	HOST_END,      /* D0->leaver: end */
	HOST_YIELD,    /* D0->run client: host 0 is to leave; the machine continues without it */
	HOST_STAYS,    /* the answer: host 0 cannot leave; payload: why */
	/* run client->D0: another computer; payload: "ADDRESS PORT DESTINATION"
	 * (vmm/cli/cluster/far.h) */
	HOST_AT,
};

/* Where CPUs run (vmm/shared/placement.h). */
enum policy { POLICY_AUTO, POLICY_FIXED, POLICY_SPREAD, POLICY_CONCENTRATE, POLICIES };
/* Since the last poll: percent of the time that the CPU waited for pages, and that it was halted;
 * whether tasks have waited for it lately (1); and the number of pages that each host sent. */
struct cpu_fetches { uint32_t cpu, waited_percent, idle_percent, crowded, from[MAX_NODES]; };

enum snapshot_step {
	/* C->D0: begin.  D->M, D0->I: all is frozen, copy your state */
	SNAPSHOT_SAVE,
	SNAPSHOT_PREPARE, /* D0->D: allocate memory for the snapshot's lists */
	SNAPSHOT_PREPARED, /* D->D0 */
	SNAPSHOT_FREEZE,  /* D0->D->M: stop at an instruction boundary */
	SNAPSHOT_FROZEN,  /* M->D->D0 */
	SNAPSHOT_SAVED,	  /* I->D0: copied; no device runs until THAW */
	SNAPSHOT_CUT,	  /* D0->D: no CPU and no device runs any more on any host */
	SNAPSHOT_MARK,	  /* D->D: all earlier messages have arrived; result: the round */
	SNAPSHOT_DONE,	  /* D->D0: marked; `result` 0, or why not */
	SNAPSHOT_THAW,	  /* D0->D->M, D0->I: continue */
	SNAPSHOT_END,	  /* C->D0->D, I: drop the copy */
	SNAPSHOT_READY,	  /* D0->C: loading: all hosts are connected, send the items */
	SNAPSHOT_LOADED,  /* C->D0: all items are sent */
	/* I->D0->C: one more item was taken; D->D0->C: a SYNC has arrived (flow control) */
	SNAPSHOT_TAKEN,
	SNAPSHOT_SYNC,	  /* C->D0->D: loading: answer when all items so far are taken */
};
/* What a snapshot contains: `result` of SAVE and CUT. */
enum snapshot_mode {
	SNAPSHOT_APART,	    /* the whole machine, for a file */
	CHECKPOINT_WHOLE,   /* the whole machine, the base of later changes */
	/* the changes since the last checkpoint; a page without data is zero now */
	CHECKPOINT_CHANGES,
	CHECKPOINT_LAST,    /* the same; the machine does not continue here: no THAW before END */
};
#define SNAPSHOT_OF_IOSRV MAX_NODES /* in `of`, in place of a node */
/* The items of a machine's snapshot; payload: the data. */
enum snapshot_kind {
	/* in place of SNAPSHOT_MACHINE: one line with the reason; index 1: nothing has changed, try
	 * again */
	SNAPSHOT_REFUSED,
	/* struct snapshot_machine (vmm/shared/snapshot_machine.h) and two strings */
	SNAPSHOT_MACHINE,
	SNAPSHOT_CPU,	  /* index: the CPU; monitor/cpu_state.h */
	SNAPSHOT_CHIP,	  /* index: chip << 16 | part */
	SNAPSHOT_DISK,	  /* struct snapshot_disk; index: its number, as of --disk */
	/* 4 KiB that the guest has written, kept apart from the image; index:
	 * disk << SNAPSHOT_DISK_SHIFT | block */
	SNAPSHOT_BLOCK,
	SNAPSHOT_PAGE,	  /* index: frame; zero pages are not sent */
	SNAPSHOT_LAST,	  /* index: items before, from this node or the I/O server */
	/* before all others: one line that says what the snapshot waits for */
	SNAPSHOT_WAITS,
	SNAPSHOT_FOLDER,  /* struct snapshot_folder: the live folder */
	SNAPSHOT_FILES,	  /* what the guest has open in it (iosrv/ninep.h); index: the part */
	SNAPSHOT_KINDS,
};
enum { SNAPSHOT_DISK_SHIFT = 30, SNAPSHOT_BLOCK_MASK = (1 << SNAPSHOT_DISK_SHIFT) - 1 };
/* What a disk image must be when the machine is loaded. */
struct snapshot_disk {
	uint64_t bytes, mtime_ns;
	uint64_t cut; /* of its undo log (iosrv/undolog.h), instead of mtime_ns; 0: none */
	uint32_t mode /* 0 read-write, 1 ro, 2 snapshot */, ide /* 0: virtio */;
	char path[4096];
};

/* The folder of --share DIR,live. */
struct snapshot_folder {
	uint32_t read_only, reserved;
	uint64_t inode;
	char path[4096];
};

/* A debugger's requests.  A CPU serves READ, WRITE and the registers while it is stopped or not
 * started yet. */
enum debug_op {
	/* of node 0: from now on no CPU moves and nothing is saved; error EAGAIN: try again
	 * later */
	DEBUG_ATTACH,
	DEBUG_DETACH,	     /* of node 0; no answer */
	/* stop between two instructions; the answer follows the stop, with `why` and the two
	 * below */
	DEBUG_STOP,
	DEBUG_GO,	     /* continue; no answer */
	DEBUG_STEP,	     /* run one instruction, then stop: answered as DEBUG_STOP */
	/* after WHY_BREAKPOINT: the breakpoint is the guest's; continue or step; no answer */
	DEBUG_PASS,
	DEBUG_FREE,	     /* continue; breakpoints are the guest's again; no answer */
	/* `bytes` at linear `address`, at most to the end of its page; answer: physical
	 * `address` */
	DEBUG_READ,
	DEBUG_WRITE,	     /* the payload to physical `address`, within a page */
	DEBUG_REGISTERS,     /* answer: struct debug_registers */
	DEBUG_SET_REGISTERS, /* payload: struct debug_registers; protected bits keep their value */
	DEBUG_WATCH,	     /* payload: struct debug_watch; replaces the previous one */
	DEBUG_OPS,
};
enum debug_why {
	WHY_ASKED,
	WHY_STEP,
	WHY_BREAKPOINT,
	WHY_DEAD /* the machine ends when the CPU continues */,
	WHY_WATCH,
	DEBUG_WHYS
};
enum debug_state {
	DEBUG_CPU_HALTED = 1,
	DEBUG_CPU_UNSTARTED = 2,
	DEBUG_CPU_HOST_SHIFT = 8 /* the CPU's host is in the bits from here on */
};
/* In GDB's order, and in its form; core: eax ecx edx ebx esp ebp esi edi eip eflags cs ss ds es fs
 * gs. */
enum { DEBUG_CORE_REGISTERS = 16 };
struct debug_registers {
	uint32_t core[DEBUG_CORE_REGISTERS];
	uint8_t st[8][10];
	uint32_t fctrl, fstat, ftag, fiseg, fioff, foseg, fooff, fop;
	uint8_t xmm[8][16];
	uint32_t mxcsr, fs_base, gs_base, cr0, cr2, cr3, cr4;
};
/* A processor's debug registers: four linear addresses, and DR7, which selects the accesses that
 * trigger (Intel SDM 3, 18.2). */
enum { DEBUG_WATCHES = 4 };
struct debug_watch { uint32_t address[DEBUG_WATCHES], control; };

/* Payload of HOME_STATE: all pages that were ever used, each followed by its `waiting` requests,
 * oldest first. */
struct home_item {
	uint32_t gfn, txn, copyset, waiting;
	uint8_t state, owner, requester, reserved;
};
struct home_item_waiting { uint16_t type; uint8_t from, target; };
/* The place of a home interval; DSM_INTERVALS of these. */
struct home_place { uint32_t node, generation; };

/* The bodies of the messages. */
#define BODY(name, ...) struct name { __VA_ARGS__ };
#include "base/msg.def"

#pragma GCC diagnostic pop

enum msg_type {
#define MESSAGE(name, number, body, bytes, payload) MSG_##name = number,
#include "base/msg.def"
	MESSAGE_TYPES = 96, /* numbers are below */
};

/* body_NAME is the struct of message NAME. */
#define MESSAGE(name, number, body, bytes, payload) typedef struct body body_##name;
#include "base/msg.def"

#define MESSAGE(name, number, body, bytes, payload) \
	_Static_assert(sizeof(struct body) == (bytes), #name ": its body has another size"); \
	_Static_assert((number) < MESSAGE_TYPES, #name ": its number is too large");
#define LAYOUT(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type);
#include "base/msg.def"
_Static_assert(sizeof(struct msg_header) == 24 && offsetof(struct msg_header, bytes) == 4 &&
		       offsetof(struct msg_hello, role) == 4 && MSG_HELLO == 1 &&
		       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "what programs of all versions understand");

/* The links: from which sender to which receiver.  msg.def lists the messages of each. */
enum wire_link {
	/* the client's kind does not matter */
	LINK_MONITOR_TO_NODE, LINK_IOSRV_TO_NODE, LINK_CLIENT_TO_NODE,
	LINK_NODE_TO_NODE, LINK_NODE_TO_LEADER, LINK_LEADER_TO_NODE,
	LINK_NODE_TO_MONITOR, LINK_NODE_TO_IOSRV, LINK_NODE_TO_RUN, LINK_NODE_TO_QUERY,
	LINK_NODE_TO_SAVE, LINKS,
	/* any of the three between nodes: a message may be on its way to another node */
	LINK_OVERLAY = LINKS,
};

/* Return the name of a type for logs, or "?"; of a link: "a monitor to its node". */
const char *wire_type_name(uint16_t type);
const char *wire_link_name(enum wire_link link);
/* True if a message of this type may arrive on this link. */
bool wire_is_legal(enum wire_link link, uint16_t type);
/* Set the smallest and largest legal `bytes` of a type.  Returns 0, or -EPROTO: unknown type. */
int wire_type_bounds(uint16_t type, uint32_t *min_bytes, uint32_t *max_bytes);
/* True if `bytes` is legal: within the bounds, and a whole number of the payload's items. */
bool wire_size_is_legal(uint16_t type, uint32_t bytes);
/* Return the bytes of a type's body, without payload; 0: unknown type. */
uint32_t wire_body_bytes(uint16_t type);

#endif
