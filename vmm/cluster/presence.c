/* presence.c - see presence.h. */
#include "vmm/cluster/presence.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void presence_name(char name[MAX_PRESENCE], const char *id, const char *host)
{
	snprintf(name, MAX_PRESENCE, "%.*s-%s", PRESENCE_ID, id, host);
}

int presence_hold(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "vmp-host-%s", name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

bool presence_is_held(const char *name)
{
	int fd = presence_hold(name);

	if (fd >= 0)
		close(fd);
	return fd < 0;
}
