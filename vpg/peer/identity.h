/* identity.h - a peer's key, and TLS 1.3 under it: both sides show the key, and each decides
 * whether it knows the other's. */
#ifndef VPG_IDENTITY_H
#define VPG_IDENTITY_H

#include <openssl/ssl.h>
#include "vpg/peer/members.h"
#include "vpg/wire/why.h"

struct identity {
	EVP_PKEY *key;
	X509 *cert;	/* of its own making: it carries the key, and nothing else counts */
	unsigned char public[KEY_BYTES];
};

/* Reads the key of a folder, or makes one if there is none.  Returns 0 or -1. */
int identity_open(struct identity *id, const char *folder, struct why *why);
void identity_close(struct identity *id);

/* What to think of a peer's key: 0: go on; otherwise an error of X509_V_ERR_*, of which the peer is
 * told by an alert. */
typedef int (*identity_judge)(void *arg, const unsigned char key[KEY_BYTES]);
/* A context for both roles; NULL: no memory. */
SSL_CTX *identity_context(const struct identity *id, identity_judge judge, void *arg);
/* The peer's key of a connection that is up.  Returns 0 or -1. */
int identity_of_peer(SSL *ssl, unsigned char key[KEY_BYTES]);
/* What the last failed handshake means, for a person; "" if only the connection broke. */
const char *identity_failure(void);

#endif
