/* identity.h - a peer's key, and TLS 1.3 under it: both sides show their keys, and each decides
 * whether it knows the other's. */
#ifndef VPG_IDENTITY_H
#define VPG_IDENTITY_H

#include <openssl/ssl.h>
#include "vpg/peer/members.h"
#include "vpg/wire/why.h"

struct identity {
	EVP_PKEY *key;
	X509 *cert;	/* made by this peer: it carries the key; nothing else in it counts */
	unsigned char public[KEY_BYTES];
};

/* Reads the key of a folder, or makes one if there is none.  Returns 0 or -1. */
int identity_open(struct identity *id, const char *folder, struct why *why);
void identity_close(struct identity *id);

/* Judges a peer's key.  Returns 0 to accept it; otherwise an error of X509_V_ERR_*, which an alert
 * reports to the peer. */
typedef int (*identity_judge)(void *arg, const unsigned char key[KEY_BYTES]);
/* A context for both roles; NULL: no memory. */
SSL_CTX *identity_context(const struct identity *id, identity_judge judge, void *arg);
/* Copies the peer's key of an established connection.  Returns 0 or -1. */
int identity_of_peer(SSL *ssl, unsigned char key[KEY_BYTES]);
/* Returns what the last failure of TLS means, for a person; "" if only the connection broke.  After
 * the handshake (`open`) a client may still hear that its key was refused. */
const char *identity_failure(bool open);
/* What a computer is told that has lost its nickname to another one. */
#define IDENTITY_NICK_TAKEN \
	"another computer has the nickname of this one: vmp peer stop, remove the " \
	"peer's folder, and join again with another --name"

#endif
