/* filepass.c - see filepass.h.
 *
 * The packet has one byte for each descriptor: 1 if it comes, 0 for none.
 */
#include "base/filepass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Room for the descriptors, aligned as the kernel wants it. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(FILEPASS_MOST * sizeof(int))];
};

int filepass_send(int socket, const int *fd, unsigned n)
{
	unsigned char comes[FILEPASS_MOST] = { 0 };
	union control control = { 0 };
	struct iovec iov = { comes, n };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	int list[FILEPASS_MOST];
	unsigned count = 0;

	if (!n || n > FILEPASS_MOST)
		return -EINVAL;
	for (unsigned i = 0; i < n; i++)
		if ((comes[i] = fd[i] >= 0))
			list[count++] = fd[i];
	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), list, count * sizeof(int));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Take the descriptors out of a message.  Returns their number. */
static unsigned unpack(struct msghdr *message, int *list)
{
	unsigned count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		unsigned here = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(list + count, CMSG_DATA(c), here * sizeof(int));
		count += here;
	}
	return count;
}

int filepass_receive(int socket, int *fd, unsigned n)
{
	unsigned char comes[FILEPASS_MOST + 1] = { 0 };
	union control control;
	struct iovec iov = { comes, sizeof comes };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof control };
	int list[FILEPASS_MOST];
	unsigned count, used = 0;
	ssize_t bytes;

	for (unsigned i = 0; i < n; i++)
		fd[i] = -1;
	bytes = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (bytes < 0)
		return -errno;
	count = unpack(&message, list);
	for (unsigned i = 0; i < FILEPASS_MOST; i++)
		used += !!comes[i];
	if (!bytes || (size_t)bytes != n || used != count ||
	    message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		while (count)
			close(list[--count]);
		return -EPROTO;
	}
	for (unsigned i = 0, next = 0; i < n; i++)
		fd[i] = comes[i] ? list[next++] : -1;
	return 0;
}
