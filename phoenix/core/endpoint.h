/* endpoint.h - where a node can be reached: what a configuration, a call or another node names. */
#ifndef PHOENIX_ENDPOINT_H
#define PHOENIX_ENDPOINT_H

enum phnx_protocol { PHNX_TCP, PHNX_SSH, PHNX_TLS, PHNX_UNIX };

struct phnx_contact {
	char *host;		/* PHNX_UNIX: the path of the socket */
	char *user;		/* PHNX_SSH: the login name, or NULL */
	/* PHNX_TLS: names of files, or NULL: the session's secret is the key */
	char *cert, *key;
	int port;
	enum phnx_protocol protocol;
};

#endif
