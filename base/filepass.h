/* filepass.h - open files that one process gives to another over a Unix socket (SCM_RIGHTS,
 * unix(7)).  filepass_send() and filepass_receive() are for a socket that carries nothing else;
 * filepass_put() and filepass_take() for descriptors that go with bytes of the caller's. */
#ifndef BASE_FILEPASS_H
#define BASE_FILEPASS_H

#include <sys/socket.h>

enum { FILEPASS_MOST = 16 };

/* Room for what goes with a message: FILEPASS_MOST descriptors, and the sender's credentials if the
 * socket has SO_PASSCRED. */
union filepass_control {
	struct cmsghdr aligned;
	char bytes[CMSG_SPACE(FILEPASS_MOST * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

/* Send n descriptors, at most FILEPASS_MOST; -1 stands for none.  They stay open here.  Returns 0,
 * or -errno. */
int filepass_send(int socket, const int *fd, unsigned n);
/* Receive what the other end has sent by one call, without waiting, into fd[n]; they close on exec,
 * and are the caller's.  -1 stands for none.  Returns 0; -EAGAIN: nothing was sent; -EPROTO: it was
 * something else than n descriptors; or -errno.  If it fails, all are -1. */
int filepass_receive(int socket, int *fd, unsigned n);

/* Attach n descriptors, 1 to FILEPASS_MOST, to a message that is to be sent.  The message keeps
 * pointing to `control`. */
void filepass_put(struct msghdr *message, union filepass_control *control, const int *fd,
		  unsigned n);
/* Move the descriptors of a message that was received, with a union filepass_control as its
 * msg_control, into fd[most].  Those beyond are closed.  Returns how many came. */
unsigned filepass_take(struct msghdr *message, int *fd, unsigned most);

#endif
