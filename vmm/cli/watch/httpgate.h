/* httpgate.h - which HTTP requests `vmp metrics --listen` and `vmp web` serve.  Pure, but for the
 * token's file.
 *
 * Every user and every web page on this computer can connect to a loopback port.  So a request must
 * prove that it comes from someone who can read the user's token; it must name this server as its
 * host, since a page of another host may have a name that leads to 127.0.0.1 (DNS rebinding); and a
 * browser's page must be one of this server's own.
 */
#ifndef VMM_CLI_WATCH_HTTPGATE_H
#define VMM_CLI_WATCH_HTTPGATE_H

#include <stdbool.h>
#include <stdint.h>
#include "vmm/cli/digest.h"
#include "vmm/shared/problem.h"

enum { TOKEN_LEAST = 32, TOKEN_MOST = 128, TOKEN_DIGEST = DIGEST_BYTES };

struct httpgate {
	char authority[3][32]; /* the values of Host that mean this server: "127.0.0.1:9100" */
	unsigned char digest[TOKEN_DIGEST]; /* SHA-256 of the token */
};

/* A request's parts.  A header that is not there is NULL; one that stands twice sets `twice`. */
struct httpgate_request {
	bool reads; /* GET or HEAD */
	bool twice;
	const char *target, *host, *origin, *authorization;
	bool posts; /* POST */
};

/* What a server has.  Two pages of one path differ in `posts`. */
struct httpgate_page {
	const char *path;
	bool posts;	  /* it is asked for by POST, otherwise by GET or HEAD */
	bool takes_query; /* a "?" and more may follow the path */
	bool is_public;	  /* it is the same for every machine and user, and needs no token */
};

/* `own` is the server's address as the user wrote it, with its real port. */
void httpgate_set(struct httpgate *gate, const char *own, uint16_t port, const char *token);

/* Returns the status for the request: 200 if it is to be served, with the page's number in *page;
 * or an error's, with *why. */
int httpgate_check(const struct httpgate *gate, const struct httpgate_request *r,
		   const struct httpgate_page *pages, unsigned n_pages, unsigned *page,
		   const char **why);

/* Reads the token from `path`, or, if `path` is NULL, from the user's configuration folder
 * (vmp/token); makes a random one if there is no such file.  The file must belong to this user, and
 * nobody else may read it.  `used` receives the file's path.  Returns 0, or -1 with the problem. */
int httpgate_token(const char *path, char token[TOKEN_MOST + 1], char used[4096],
		   struct problem *p);
/* Makes a random token that no file has.  Returns 0, or -1 with the problem. */
int httpgate_new_token(char token[TOKEN_MOST + 1], struct problem *p);

#endif
