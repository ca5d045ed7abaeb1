/* loopback.c - see loopback.h. */
#include "vmm/cli/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int parse_port(const char *text, in_port_t *port)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value > 65535)
		return -EINVAL;
	*port = htons((uint16_t)value);
	return 0;
}

static int set_host(const char *host, in_port_t port, struct loopback *a)
{
	if (!strcmp(host, "[::1]")) {
		a->at.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						  .sin6_port = port,
						  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
		a->bytes = sizeof a->at.v6;
		return 0;
	}
	a->at.v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port };
	a->bytes = sizeof a->at.v4;
	if (inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1",
		      &a->at.v4.sin_addr) != 1)
		return -EPERM;
	return ntohl(a->at.v4.sin_addr.s_addr) >> 24 == 127 ? 0 : -EPERM;
}

int loopback_parse(const char *text, struct loopback *address)
{
	char host[64];
	in_port_t port;
	char *colon;

	*address = (struct loopback){ 0 };
	snprintf(host, sizeof host, "%s", text);
	colon = strrchr(host, ':');
	if (strlen(text) >= sizeof host || !colon || parse_port(colon + 1, &port))
		return -EINVAL;
	*colon = 0;
	return set_host(host, port, address);
}

int loopback_listen(const struct loopback *address, int backlog)
{
	int one = 1, error;
	int fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (!bind(fd, &address->at.any, address->bytes) && !listen(fd, backlog))
		return fd;
	error = -errno;
	close(fd);
	return error;
}
