/* daemon_socket.h - a shell's connection to the daemon of its computer: frames on a socket. */
#ifndef VPG_DAEMON_SOCKET_H
#define VPG_DAEMON_SOCKET_H

#include <stdbool.h>
#include "vpg/wire/message.h"
#include "vpg/wire/why.h"

struct daemon_socket {
	int fd;
	size_t n, taken;	/* bytes of `buffer` that have come; bytes that were read */
	bool broken;		/* the daemon sends what this version does not know */
	unsigned char *buffer;
};

/* Connects to the daemon of this user's folder.  Returns 0, or -1 if it does not run. */
int daemon_socket_open(struct daemon_socket *s, struct why *why);
void daemon_socket_close(struct daemon_socket *s);
/* Returns why a connection has broken, as a line: the daemon has ended; or it still runs, and one
 * side does not know what the other one sends. */
const char *daemon_socket_failure(const struct daemon_socket *s);
/* Sends one frame; waits for room.  Returns 0, or -1 if the daemon is gone. */
int daemon_socket_send(struct daemon_socket *s, enum vpg_type type, const void *fields);
/* The same for a frame that is written already. */
int daemon_socket_send_frame(struct daemon_socket *s, const unsigned char *frame, size_t n);
/* Sends an ATTACH with the descriptor, which the caller keeps. */
int daemon_socket_attach(struct daemon_socket *s, uint64_t stream, int fd);
/* Reads the next frame.  Returns its type; 0 if no complete frame has come; or -1 if the daemon is
 * gone, or sends what no version of vmp sends.  With `wait`, waits for a frame.  The message is
 * valid until the next call. */
int daemon_socket_next(struct daemon_socket *s, union vpg_any *m, bool wait);

#endif
