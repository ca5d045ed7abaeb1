/* secret.h - what proves that a process belongs to a session. */
#ifndef PHOENIX_SECRET_H
#define PHOENIX_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include "phoenix/limits.h"

/* The key of a session, or of this user on this machine when session is NULL. *shared tells whether other machines can
 * have it too. 0, or an error with text. */
int phnx_secret(const char *session, unsigned char key[32], bool *shared, char *text, size_t room);
/* The key of the secret in a file of mode 0600. */
int phnx_secret_file(const char *path, unsigned char key[32], char *text, size_t room);
/* Creates ~/.config/phnx/SESSION with random contents. 0, or -1 with text. */
int phnx_secret_create(const char *session, char *text, size_t room);
/* HMAC-SHA256. */
void phnx_mac(const unsigned char key[32], const void *data, size_t len, unsigned char mac[32]);

#endif
