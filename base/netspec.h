/* netspec.h - the value of --net: no network, or a user's network, with forwarded ports.  Pure.
 *
 *	none
 *	user[,loopback][,forward=[udp:]ADDRESS:PORT:GUESTPORT]...
 *
 * ADDRESS is one of this computer's, as 127.0.0.1 or [::1]; 0.0.0.0 and [::] mean all.
 */
#ifndef BASE_NETSPEC_H
#define BASE_NETSPEC_H

#include <netinet/in.h>
#include "base/types.h"

enum { NET_FORWARDS = 16 };

struct netspec {
	bool user;     /* false: no network */
	bool loopback; /* the guest reaches this computer's loopback interface, by the gateway's
			  address; without it, no frame to that interface goes on */
	unsigned n_forwards;
	struct net_forward {
		bool udp;
		uint16_t guest_port;
		union {
			struct sockaddr any;
			struct sockaddr_in v4;
			struct sockaddr_in6 v6;
		} host;
		const char *text; /* its place in `spec`, up to a comma or the end */
	} forward[NET_FORWARDS];
};

/* Parse the value of --net.  Returns 0, or -EINVAL with the reason in `why`.  The texts point into
 * `spec`. */
int netspec_parse(struct netspec *net, const char *spec, char *why, size_t why_bytes);

#endif
