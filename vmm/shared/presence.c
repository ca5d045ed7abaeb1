/* presence.c - see presence.h. */
#include "vmm/shared/presence.h"

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

/* Of an abstract socket: its length. */
static socklen_t address_of(struct sockaddr_un *address, const char *whose, const char *name)
{
	int n;

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "vmp-%s-%s", whose, name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int hold(const char *whose, const char *name)
{
	struct sockaddr_un address;
	socklen_t bytes = address_of(&address, whose, name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, bytes))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int presence_hold(const char *name) { return hold("host", name); }

/* (TRICKS: ask-presence) */
bool presence_is_held(const char *name)
{
	int fd = presence_hold(name);

	if (fd >= 0)
		close(fd);
	return fd < 0;
}

int presence_listen(const char *name)
{
	int fd = hold("standby", name), on = 1;

	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

bool presence_heard(int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr aligned;
	} control;
	struct ucred who;
	char word;
	struct iovec iov = { &word, 1 };
	bool heard = false;

	for (;;) {
		struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
		if (recvmsg(fd, &message, 0) < 0)
			return heard;
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);
		if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&who, CMSG_DATA(c), sizeof who);
		heard |= who.uid == geteuid();
	}
}

void presence_tell(const char *name)
{
	struct sockaddr_un address;
	socklen_t bytes = address_of(&address, "standby", name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	(void)!sendto(fd, "", 1, 0, (struct sockaddr *)&address, bytes); /* nobody may be there */
	close(fd);
}
