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

void filepass_put(struct msghdr *message, union filepass_control *control, const int *fd,
		  unsigned n)
{
	memset(control, 0, sizeof *control);
	message->msg_control = control;
	message->msg_controllen = CMSG_SPACE(n * sizeof *fd);
	control->aligned.cmsg_level = SOL_SOCKET;
	control->aligned.cmsg_type = SCM_RIGHTS;
	control->aligned.cmsg_len = CMSG_LEN(n * sizeof *fd);
	memcpy(CMSG_DATA(&control->aligned), fd, n * sizeof *fd);
}

unsigned filepass_take(struct msghdr *message, int *fd, unsigned most)
{
	unsigned came = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof *fd <= bytes; at += sizeof *fd) {
			int one;

			memcpy(&one, CMSG_DATA(c) + at, sizeof one);
			if (came < most)
				fd[came] = one;
			else
				close(one);
			came++;
		}
	}
	return came;
}

int filepass_send(int socket, const int *fd, unsigned n)
{
	unsigned char comes[FILEPASS_MOST] = { 0 };
	union filepass_control control;
	struct iovec iov = { comes, n };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	int list[FILEPASS_MOST];
	unsigned count = 0;

	if (!n || n > FILEPASS_MOST)
		return -EINVAL;
	for (unsigned i = 0; i < n; i++)
		if ((comes[i] = fd[i] >= 0))
			list[count++] = fd[i];
	if (count)
		filepass_put(&message, &control, list, count);
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int filepass_receive(int socket, int *fd, unsigned n)
{
	unsigned char comes[FILEPASS_MOST + 1] = { 0 };
	union filepass_control control;
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
	count = filepass_take(&message, list, FILEPASS_MOST);
	for (unsigned i = 0; i < FILEPASS_MOST; i++)
		used += !!comes[i];
	if (!bytes || (size_t)bytes != n || used != count ||
	    message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		for (unsigned i = 0; i < count && i < FILEPASS_MOST; i++)
			close(list[i]);
		return -EPROTO;
	}
	for (unsigned i = 0, next = 0; i < n; i++)
		fd[i] = comes[i] ? list[next++] : -1;
	return 0;
}
