/* free_port.h - whether a test may let a node listen on a port. */
#ifndef TESTS_FREE_PORT_H
#define TESTS_FREE_PORT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns whether no program of this computer listens on the port, at any address. */
static inline bool port_is_free(int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	bool yes;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	yes = fd >= 0 && bind(fd, (struct sockaddr *)&in, sizeof in) == 0;
	close(fd);
	return yes;
}

#endif
