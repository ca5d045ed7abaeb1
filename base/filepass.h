/* filepass.h - open files that one process gives to another, over a socket pair of their own
 * (SCM_RIGHTS, unix(7)). */
#ifndef BASE_FILEPASS_H
#define BASE_FILEPASS_H

enum { FILEPASS_MOST = 16 };

/* Send n descriptors, at most FILEPASS_MOST; -1 stands for none.  They stay open here.  Returns 0,
 * or -errno. */
int filepass_send(int socket, const int *fd, unsigned n);
/* Receive what the other end has sent by one call, without waiting, into fd[n]; they close on exec,
 * and are the caller's.  -1 stands for none.  Returns 0; -EAGAIN: nothing was sent; -EPROTO: it was
 * something else than n descriptors; or -errno.  If it fails, all are -1. */
int filepass_receive(int socket, int *fd, unsigned n);

#endif
