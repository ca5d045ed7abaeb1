/* config.h - the configuration language of thesis A.7: where to listen, whom to connect to. */
#ifndef PHOENIX_CONFIG_H
#define PHOENIX_CONFIG_H

#include <stddef.h>
#include "phoenix/limits.h"

enum phnx_protocol { PHNX_TCP, PHNX_SSH, PHNX_TLS, PHNX_UNIX };

struct phnx_contact {
	char *host;		/* of UNIX: the socket's path */
	char *user;		/* of SSH; or NULL */
	char *cert, *key;	/* of TLS; or NULL: the session's secret */
	int port;
	enum phnx_protocol protocol;
};

struct phnx_config {
	int *ports;		/* to listen on, the first free one */
	size_t n_ports, room_ports;
	struct phnx_contact *contacts;
	size_t n_contacts, room_contacts;
	char error[160];	/* "LINE:COLUMN: what is wrong" */
};

/* Interprets `len` bytes of text for `tag` (NULL: only `_` matches). 0, or -1 with error set; free in both cases. */
int phnx_config_parse(struct phnx_config *c, const char *text, size_t len, const char *tag);
void phnx_config_free(struct phnx_config *c);

#endif
