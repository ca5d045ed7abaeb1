/* message.h - messages of message.def as structs and as bytes.  Pure.
 *
 * A frame is its length (32 bits, little-endian; of what follows), its type (8 bits), and the
 * fields.  A message that was read points into the frame: it is valid as long as the frame is.
 */
#ifndef VPG_MESSAGE_H
#define VPG_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum {
	VPG_VERSION = 5,		/* of message.def */
	VPG_FRAME_MAX = 256 << 10,	/* bytes of a frame, with its length */
	VPG_DATA_HEAD = 17,		/* bytes of a DATA frame before its data */
	/* bytes of a DATA, at most: its frame fills eight records of TLS */
	VPG_CHUNK = (128 << 10) - VPG_DATA_HEAD,
	VPG_WINDOW = 4 << 20,		/* bytes of a stream that are on their way, at most */
	VPG_LENGTH_BYTES = 4,
};
#define LIMIT_AS_IT_IS UINT64_MAX

/* Where a standard stream of a stage leads: SPAWN's in, out and err. */
enum vpg_io {
	IO_NULL,	/* /dev/null */
	IO_SHELL,	/* a stream; the other end is the shell */
	IO_STREAM,	/* a stream; the other end is a stage on the computer `at` */
	IO_READ,	/* the file `at` */
	IO_WRITE,	/* the file `at`, emptied first */
	IO_APPEND,
	IO_LIKE_OUT,	/* only for err: 2>&1 */
	IO_KINDS
};

/* As the first word of a SPAWN this means the daemon's own program, whatever its path is there. */
#define PEER_PROGRAM "vmp-peer"

struct vpg_bytes { const unsigned char *at; size_t n; };
struct vpg_list { const char *at; size_t n, bytes; };	/* n texts, one behind the other */

#define NUMBER(f) uint64_t f;
#define TEXT(f) const char *f;
#define BYTES(f) struct vpg_bytes f;
#define LIST(f) struct vpg_list f;
#define MESSAGE(name, number, fields) struct vpg_##name { fields };
#include "vpg/wire/message.def"
#undef MESSAGE

enum vpg_type {
#define MESSAGE(name, number, fields) VPG_##name = number,
#include "vpg/wire/message.def"
#undef MESSAGE
	VPG_TYPES = 64
};

union vpg_any {
#define MESSAGE(name, number, fields) struct vpg_##name name;
#include "vpg/wire/message.def"
#undef MESSAGE
};
#undef NUMBER
#undef TEXT
#undef BYTES
#undef LIST

/* Writes a frame of at most `room` bytes.  Returns its size; 0 if it does not fit, or the type is
 * unknown. */
size_t message_put(enum vpg_type type, const void *fields, unsigned char *to, size_t room);

/* Writes what precedes the `n` bytes of data in a DATA frame. */
void message_data_head(unsigned char head[VPG_DATA_HEAD], uint64_t stream, size_t n);
/* Returns the frame from which a DATA was read. */
struct vpg_bytes message_data_frame(const struct vpg_DATA *m);

/* Returns the size of the frame that begins here, with its length; 0 if too few bytes have come to
 * know it; -EPROTO if it is too long or too short. */
long message_size(const unsigned char *at, size_t n);

/* Reads a whole frame of `n` bytes.  Returns its type, or -EPROTO. */
int message_get(const unsigned char *frame, size_t n, union vpg_any *m);

/* Returns the name of a type, or "?". */
const char *message_name(int type);

/* Returns a list of the texts of `words`, copied to `to`; n is 0 if they do not fit. */
struct vpg_list message_list(char *const *words, size_t n, char *to, size_t room);
/* Sets the pointers of `words` to the texts of a list, and a NULL behind the last one. */
void message_words(const struct vpg_list *list, char **words);

#endif
