/* wire.h - messages as types: the bodies of msg.def, the header before each, and the enums and items that they speak of.
 *
 * All local sockets are AF_UNIX SOCK_SEQPACKET, one message a packet (base/packet.h).  Layouts are little-endian.  None of the
 * structs from here to the end of the bodies has padding, or the compiler complains; so the sizes in msg.def, which are
 * asserted, pin every offset as well.
 *
 * wire_version is a hash of msg.def and of the headers that its messages need, without their comments (scripts/wire-hash):
 * programs that differ in any message, field, enum or limit have different versions, and refuse each other at HELLO.  What
 * must stay as it is for ever, so that they can: struct msg_header, and type and body of HELLO.
 */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

#include <stddef.h>
#include "base/limits.h"
#include "base/types.h"

extern const uint32_t wire_version;

/* A virtual node: the address of a role, not of a process (the Phoenix library's names).  A role can move. */
typedef int64_t vnode_t;
#define VNODE_DAEMON(node) ((vnode_t)(node))		/* node 0 .. MAX_NODES-1 */
#define VNODE_CPU(cpu) ((vnode_t)0x1000 + (cpu))	/* the daemon where this CPU runs now */
#define VNODE_IOSRV ((vnode_t)0x2000)			/* the daemon beside the I/O server */
#define VNODE_CLI ((vnode_t)0x2001)			/* the daemon with the control socket (node 0) */
#define VNODE_HOME_BASE ((vnode_t)0x100000)		/* page homes: VNODE_HOME_BASE + (K*gfn mod 2^20) */
#define VNODE_HOME_COUNT ((vnode_t)1 << 20)

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
enum interrupt_kind { INTERRUPT_FIXED, INTERRUPT_NMI };
enum end_reason { END_COMMAND, END_POWEROFF, END_PANIC, END_GUEST_FAULT, END_PART_DIED, END_USER, END_FAILURE };
struct page_range { uint32_t first_gfn, count, owner /* node */; }; /* payload of MACHINE_START: pages that hold data already */
#define CONSOLE_ALL (~0u) /* output for every attached client; else the number of one, which node 0 gave it */
struct page_heat { uint32_t gfn, faults; };
enum cpu_step { STEP_PREPARED, STEP_TAKEN, STEP_BACK };

/* Hosts that come and go (vmm/node/hosts/hosts.h). A payload is a line of text but for NEWS, where it is DSM_INTERVALS home places. */
enum host_op {
	HOST_ADD,      /* C->D0: `nodes` 0 */
	HOST_REMOVE,   /* C->D0 */
	HOST_PROGRESS, /* D0->C; D->D0: `nodes`: pages that are still there */
	HOST_DONE,     /* D0->C: `error` 0: it came or went */
	HOST_LAUNCH,   /* D0->run client: start the daemon; `nodes`: those it connects to */
	HOST_LAUNCHED, /* back; `error` */
	HOST_INCLUDED, /* D0->run client: this daemon's end is the machine's from now on */
	HOST_RETIRE,   /* D0->run client: and now it is not any more; kill it if `error` is not 0 */
	HOST_RETIRED,  /* back: understood */
	HOST_ENDED,    /* run client->D0: its process has ended */
	HOST_NEWS,     /* D0->D: `present`: the hosts that there are; `nodes`: those of them that stay */
	HOST_HEARD,    /* back; `nodes`: pages that are there; `present`: pages for which its computer has memory */
	HOST_LEAVE,    /* D0->leaver: give up all pages */
	HOST_EMPTY,    /* leaver->D0 */
	HOST_FORGET,   /* D0->all others: the leaver has nothing and is asked for nothing any more */
	HOST_MARK,     /* D->leaver: the last that this host sends to it */
	HOST_FAREWELL, /* leaver->all others: the last that it sends */
	HOST_GONE,     /* D->D0: it has come */
	HOST_END,      /* D0->leaver: end */
	HOST_YIELD,    /* D0->run client: host 0 shall go: the machine is to go on without it */
	HOST_STAYS,    /* back: it cannot; payload: why */
	HOST_AT,       /* run client->D0: another computer; payload: "ADDRESS PORT DESTINATION" (vmm/cli/cluster/far.h) */
};

/* Where CPUs run (vmm/shared/placement.h). */
enum policy { POLICY_FIXED, POLICY_SPREAD, POLICY_CONCENTRATE, POLICY_AUTO, POLICIES };
struct cpu_fetches { uint32_t cpu, from[MAX_NODES]; }; /* pages since the last look, by the host that sent them */

enum snapshot_step {
	SNAPSHOT_SAVE,	  /* C->D0: begin. D->M, D0->I: all is frozen, make a copy of what you hold */
	SNAPSHOT_PREPARE, /* D0->D: have memory for what you will note */
	SNAPSHOT_PREPARED, /* D->D0 */
	SNAPSHOT_FREEZE,  /* D0->D->M: stop at an instruction boundary */
	SNAPSHOT_FROZEN,  /* M->D->D0 */
	SNAPSHOT_SAVED,	  /* I->D0: copied, and nothing happens until THAW */
	SNAPSHOT_CUT,	  /* D0->D: no CPU and no device runs any more on any host */
	SNAPSHOT_MARK,	  /* D->D: what was sent before has arrived; result: the round */
	SNAPSHOT_DONE,	  /* D->D0: marked; `result` 0, or why not */
	SNAPSHOT_THAW,	  /* D0->D->M, D0->I: go on */
	SNAPSHOT_END,	  /* C->D0->D, I: forget the copy */
	SNAPSHOT_READY,	  /* D0->C: loading: all hosts are connected, send the items */
	SNAPSHOT_LOADED,  /* C->D0: all items are sent */
	SNAPSHOT_TAKEN,	  /* I->D0->C: one more item was taken; D->D0->C: a SYNC has come (flow control) */
	SNAPSHOT_SYNC,	  /* C->D0->D: loading: have you taken what I sent? */
};
/* What is cut: `result` of SAVE and CUT. */
enum snapshot_mode {
	SNAPSHOT_APART,	    /* the whole machine, for a file */
	CHECKPOINT_WHOLE,   /* the whole machine, as what later changes are changes of */
	CHECKPOINT_CHANGES, /* what has changed since the last checkpoint; a page without data is zero now */
	CHECKPOINT_LAST,    /* the same, and the machine does not go on here: no THAW before END */
};
#define SNAPSHOT_OF_IOSRV MAX_NODES /* in `of`, where a node can stand */
/* What a machine is made of; payload: the data. */
enum snapshot_kind {
	SNAPSHOT_REFUSED, /* in place of SNAPSHOT_MACHINE: one line that says why; index 1: nothing has happened, try again */
	SNAPSHOT_MACHINE, /* struct snapshot_machine (vmm/shared/snapshot_machine.h) and two strings */
	SNAPSHOT_CPU,	  /* index: the CPU; monitor/cpu_state.h */
	SNAPSHOT_CHIP,	  /* index: chip << 16 | part */
	SNAPSHOT_DISK,	  /* struct snapshot_disk */
	SNAPSHOT_BLOCK,	  /* index: block of 4 KiB that the guest has written, kept apart from the image */
	SNAPSHOT_PAGE,	  /* index: frame; pages that are zero do not travel */
	SNAPSHOT_LAST,	  /* index: items before, from this node or the I/O server */
	SNAPSHOT_WAITS,	  /* before all others: one line that says for what; the machine is saved after that */
	SNAPSHOT_KINDS,
};
/* What a disk image must be when the machine is loaded. */
struct snapshot_disk { uint64_t bytes, mtime_ns; uint32_t mode /* 0 read-write, 1 ro, 2 snapshot */, reserved; char path[4096]; };

/* What a debugger asks. A CPU that stands still serves READ, WRITE and the registers; so does one that is not started. */
enum debug_op {
	DEBUG_ATTACH,	     /* of node 0: no CPU moves and nothing is saved from now on; error EAGAIN: not now, try again */
	DEBUG_DETACH,	     /* of node 0; no answer */
	DEBUG_STOP,	     /* stand still between two instructions; answered then, with `why` and the two below */
	DEBUG_GO,	     /* no answer */
	DEBUG_STEP,	     /* one instruction, then stand still: answered as DEBUG_STOP */
	DEBUG_PASS,	     /* after WHY_BREAKPOINT: it is the guest's own; go, or step on, as before; no answer */
	DEBUG_FREE,	     /* go; breakpoints are the guest's own again; no answer */
	DEBUG_READ,	     /* `bytes` at linear `address`, at most to the end of its page; answer: physical `address` */
	DEBUG_WRITE,	     /* the payload to physical `address`, within a page */
	DEBUG_REGISTERS,     /* answer: struct debug_registers */
	DEBUG_SET_REGISTERS, /* payload: struct debug_registers; what must not change does not */
	DEBUG_WATCH,	     /* payload: struct debug_watch; it takes the place of the one before */
	DEBUG_OPS,
};
enum debug_why { WHY_ASKED, WHY_STEP, WHY_BREAKPOINT, WHY_DEAD /* the machine ends when it is let go */, WHY_WATCH, DEBUG_WHYS };
enum debug_state { DEBUG_CPU_HALTED = 1, DEBUG_CPU_UNSTARTED = 2, DEBUG_CPU_HOST_SHIFT = 8 /* its host above */ };
/* In GDB's order, and in its form; core: eax ecx edx ebx esp ebp esi edi eip eflags cs ss ds es fs gs. */
enum { DEBUG_CORE_REGISTERS = 16 };
struct debug_registers {
	uint32_t core[DEBUG_CORE_REGISTERS];
	uint8_t st[8][10];
	uint32_t fctrl, fstat, ftag, fiseg, fioff, foseg, fooff, fop;
	uint8_t xmm[8][16];
	uint32_t mxcsr, fs_base, gs_base, cr0, cr2, cr3, cr4;
};
/* A processor's debug registers: four linear addresses, and DR7, which says what is watched there (Intel SDM 3, 18.2). */
enum { DEBUG_WATCHES = 4 };
struct debug_watch { uint32_t address[DEBUG_WATCHES], control; };

/* Payload of HOME_STATE: pages that were ever touched, each followed by its `waiting` requests, oldest first. */
struct home_item { uint32_t gfn, txn, copyset, waiting; uint8_t state, owner, requester, reserved; };
struct home_item_waiting { uint16_t type; uint8_t from, target; };
/* Where each interval is: DSM_INTERVALS of these. */
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

#define MESSAGE(name, number, body, bytes, payload) _Static_assert(sizeof(struct body) == (bytes) && (number) < MESSAGE_TYPES, #name);
#define LAYOUT(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type);
#include "base/msg.def"
_Static_assert(sizeof(struct msg_header) == 24 && offsetof(struct msg_header, bytes) == 4 && offsetof(struct msg_hello, role) == 4 &&
	       MSG_HELLO == 1 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "what programs of all versions understand");

/* Who sends to whom; msg.def says what. */
enum wire_link {
	LINK_MONITOR_TO_NODE, LINK_IOSRV_TO_NODE, LINK_CLIENT_TO_NODE, /* the client's kind does not matter */
	LINK_NODE_TO_NODE, LINK_NODE_TO_LEADER, LINK_LEADER_TO_NODE,
	LINK_NODE_TO_MONITOR, LINK_NODE_TO_IOSRV, LINK_NODE_TO_RUN, LINK_NODE_TO_QUERY, LINK_NODE_TO_SAVE,
	LINKS,
	LINK_OVERLAY = LINKS, /* any of the three between nodes: a message may be on its way to another node */
};

/* Name of a type for logs, or "?"; of a link: "a monitor to its node". */
const char *wire_type_name(uint16_t type);
const char *wire_link_name(enum wire_link link);
/* A message of this type may come on this link. */
bool wire_is_legal(enum wire_link link, uint16_t type);
/* The smallest and largest legal `bytes` for a type: 0, or -EPROTO for an unknown one. */
int wire_type_bounds(uint16_t type, uint32_t *min_bytes, uint32_t *max_bytes);
/* `bytes` is legal, and is a whole number of the payload's items. */
bool wire_size_is_legal(uint16_t type, uint32_t bytes);
/* A type's body, without payload; 0 for an unknown one. */
uint32_t wire_body_bytes(uint16_t type);

#endif
