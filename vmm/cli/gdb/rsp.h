/* rsp.h - GDB's remote serial protocol as text: bytes to packets, packets to commands.  Pure.
 *
 * Source: the GDB manual, appendix E. A packet is $text#cc, where cc is the sum of the text's bytes
 * in hex.  The receiver acknowledges it by + or -, until both sides have agreed not to.  Outside of
 * packets only +, - and the byte 3 (Ctrl-C) are allowed; a peer that sends anything else is no GDB.
 */
#ifndef VMM_CLI_GDB_RSP_H
#define VMM_CLI_GDB_RSP_H

#include "base/types.h"

enum { RSP_MAX_TEXT = 4096 }; /* bytes of a packet's text, both ways */

enum rsp_event {
	RSP_NOTHING,   /* nothing is complete yet */
	RSP_PACKET,    /* reader->text holds a packet */
	RSP_INTERRUPT, /* Ctrl-C */
	RSP_ACK,
	RSP_NAK,       /* send the last packet again */
	RSP_DAMAGED,   /* a packet with a wrong sum */
	RSP_FOREIGN,   /* the peer is no GDB */
};
struct rsp_reader {
	enum { RSP_OUTSIDE, RSP_INSIDE, RSP_SUM_HIGH, RSP_SUM_LOW } state;
	uint8_t sum, sent_sum;
	size_t n;
	char text[RSP_MAX_TEXT + 1]; /* NUL-terminated when it is a packet */
};
enum rsp_event rsp_read(struct rsp_reader *r, uint8_t byte);

/* Writes $text#cc into `out`, which has at least n + 4 bytes.  Returns how many bytes it wrote. */
size_t rsp_frame(const char *text, size_t n, char *out);

enum rsp_kind {
	RSP_UNKNOWN,
	RSP_SUPPORTED,
	RSP_NO_ACK,
	RSP_WHY,
	RSP_GET_REGISTERS,
	RSP_SET_REGISTERS,
	RSP_GET_REGISTER,
	RSP_SET_REGISTER,
	RSP_GET_MEMORY,
	RSP_SET_MEMORY,
	RSP_INSERT,
	RSP_REMOVE,
	RSP_WATCH,
	RSP_UNWATCH,
	RSP_WATCH_ACCESS,
	RSP_UNWATCH_ACCESS,
	RSP_THREAD_OF_G,
	RSP_THREAD_OF_C,
	RSP_THREAD_LIVES,
	RSP_FIRST_THREADS,
	RSP_MORE_THREADS,
	RSP_THREAD_TEXT,
	RSP_THREAD_NOW,
	RSP_ATTACHED,
	RSP_FEATURES,
	RSP_RESUMES,
	RSP_RESUME,
	RSP_CONTINUE,
	RSP_STEP,
	RSP_DETACH,
	RSP_KILL,
};
struct rsp_command {
	enum rsp_kind kind;
	int32_t thread;	      /* from 1; 0: any, -1: all */
	uint32_t address, length; /* also a register's number, or an offset */
	const char *rest;     /* the text behind these, in the packet */
};
/* Parses a packet.  `text` is NUL-terminated.  Text that fits no row of the table is
 * RSP_UNKNOWN. */
struct rsp_command rsp_parse(const char *text);

/* Takes the next action of an RSP_RESUME's rest, as in ";s:1;c".  Returns false if there is none
 * left, or if it cannot be understood.  Signals in it are dropped: a machine takes none. */
struct rsp_action { bool step; int32_t thread; /* -1: all */ };
bool rsp_next_action(const char **rest, struct rsp_action *action);

/* Hex as the protocol has memory and registers, the first byte first. rsp_hex() writes 2n
 * characters and a NUL. rsp_unhex() stops at what is not hex, and returns how many bytes it has
 * read. */
void rsp_hex(const void *bytes, size_t n, char *out);
size_t rsp_unhex(const char *text, void *bytes, size_t room);

#endif
