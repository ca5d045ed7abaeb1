/* loopback.h - addresses of this computer's own, HOST:PORT, and sockets that listen there: for
 * --gdb and for `vmp metrics --listen`.  No other computer can connect to them; every user of this
 * one can. */
#ifndef VMM_CLI_LOOPBACK_H
#define VMM_CLI_LOOPBACK_H

#include <netinet/in.h>
#include "vmm/shared/problem.h"

struct loopback {
	union { struct sockaddr any; struct sockaddr_in v4; struct sockaddr_in6 v6; } at;
	socklen_t bytes;
};

/* Parses 127.X.Y.Z:PORT, localhost:PORT or [::1]:PORT; port 0 stands for a free one.  Returns 0;
 * -EINVAL if the text has another form; -EPERM if it is another computer's address.  Pure. */
int loopback_parse(const char *text, struct loopback *address);
/* Returns a socket that listens there, or -errno. */
int loopback_listen(const struct loopback *address, int backlog);

#endif
