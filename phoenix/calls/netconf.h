/* netconf.h - the configuration language of thesis A.7: where to listen, whom to connect to. */
#ifndef PHOENIX_NETCONF_H
#define PHOENIX_NETCONF_H

#include <stddef.h>
#include "phoenix/core/bounds.h"
#include "phoenix/core/endpoint.h"

struct netconf {
	int *ports;		/* to listen on: the first one that is free */
	size_t n_ports, room_ports;
	struct phnx_contact *contacts;
	size_t n_contacts, room_contacts;
	char error[160];	/* "LINE:COLUMN: what is wrong" */
};

/* Parses `len` bytes of text for `tag` (NULL: only `_` matches).  Returns 0, or -1 with error
 * set.  The caller frees c in both cases. */
int netconf_parse(struct netconf *c, const char *text, size_t len, const char *tag);
void netconf_free(struct netconf *c);

#endif
