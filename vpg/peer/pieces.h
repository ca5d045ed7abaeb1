/* pieces.h - what lies between OpenSSL and the overlay in a tunnel.
 *
 * OpenSSL's records are written into blocks that the overlay sends as they are, and are read from
 * the message that has arrived: no byte is copied in between.
 */
#ifndef VPG_PIECES_H
#define VPG_PIECES_H

#include <openssl/bio.h>
#include <stddef.h>

/* Bytes of the largest piece: four DATA frames of VPG_CHUNK, and what encryption adds. */
enum { PIECE_BYTES = 528 << 10 };

struct piece { struct piece *next; size_t n, room; unsigned char bytes[]; };
struct pieces {
	struct piece *first, *last;	/* encrypted, to be sent */
	const unsigned char *come;	/* encrypted, to be read: `left` bytes of a message */
	size_t left;
};

/* Makes OpenSSL's side of `p`.  Returns NULL if there is no memory. */
BIO *pieces_bio(struct pieces *p);
/* Takes the first piece, which the caller frees with free(); NULL: there is none. */
struct piece *pieces_take(struct pieces *p);
void pieces_free(struct pieces *p);

#endif
