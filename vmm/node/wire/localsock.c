/* localsock.c - see localsock.h. */
#include "vmm/node/wire/localsock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"

enum { LISTEN_BACKLOG = 64 };

/* Returns 0 or -ENAMETOOLONG. */
static int make_address(struct sockaddr_un *address, const char *dir, const char *name)
{
	size_t room = sizeof address->sun_path;

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return snprintf(address->sun_path, room, "%s/%s", dir, name) < (int)room ? 0
										 : -ENAMETOOLONG;
}

int localsock_listen(const char *dir, const char *name, char *path, size_t path_bytes)
{
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0077);

	if (!make_address(&address, dir, name))
		unlink(address.sun_path); /* left by a daemon that was killed */
	if (fd < 0 || make_address(&address, dir, name) ||
	    bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, LISTEN_BACKLOG))
		die("cannot listen on %s/%s: %s", dir, name, strerror(errno));
	umask(mask);
	snprintf(path, path_bytes, "%s", address.sun_path);
	return fd;
}

int localsock_accept(int listen_fd)
{
	struct ucred who;
	socklen_t bytes = sizeof who;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
		die("cannot accept a connection: %s; see ulimit -n", strerror(errno));
	if (fd < 0)
		return -1; /* the caller has already closed */
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) && who.uid == geteuid())
		return fd;
	log_warn("a process of another user tried to connect: refused");
	close(fd);
	return -1;
}
