/* sshtunnel.h - what a node daemon and its vmp-tunnel say to each other.
 *
 * A daemon of several computers may have to start ssh at any time, and a process that may start
 * ssh cannot be confined.  So the daemon starts vmp-tunnel before it is confined.  Later it sends
 * requests through the door, a pair of SOCK_SEQPACKET sockets.  Each request carries three
 * descriptors: ssh's standard input and output; its standard error; and a stream socket.  On that,
 * the daemon shuts down its sending side to end ssh, and receives ssh's status, an int as of
 * waitpid().
 */
#ifndef VMM_SHARED_SSHTUNNEL_H
#define VMM_SHARED_SSHTUNNEL_H

#include <stdint.h>

enum { TUNNEL_DESCRIPTORS = 3, MAX_TUNNEL_LOGIN = 512 };

/* A tunnel to 127.0.0.1:port on the host of this login, "[USER@]HOST". */
struct tunnel_request {
	int32_t port;
	char login[MAX_TUNNEL_LOGIN];
};

#endif
