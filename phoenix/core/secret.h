/* secret.h - what proves that a process belongs to a session. */
#ifndef PHOENIX_SECRET_H
#define PHOENIX_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include "phoenix/core/bounds.h"

/* Computes the key of a session, or with session NULL that of this user on this host.  *shared:
 * whether other hosts can have it too.  Returns 0, or an error with text. */
int secret_of_session(const char *session, unsigned char key[32], bool *shared, char *text,
		      size_t room);
/* Computes the key from the secret in a file of mode 0600.  Returns 0, or an error with text. */
int secret_from_file(const char *path, unsigned char key[32], char *text, size_t room);
/* Creates ~/.config/phnx/SESSION with random contents.  Returns 0, or -1 with text. */
int secret_create(const char *session, char *text, size_t room);
/* HMAC-SHA256. */
void secret_mac(const unsigned char key[32], const void *data, size_t len, unsigned char mac[32]);

#endif
