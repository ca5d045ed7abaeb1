/* pumps.h - the shell's ends of streams: bytes from descriptors to the daemon, and back. */
#ifndef VPG_PUMPS_H
#define VPG_PUMPS_H

#include <poll.h>
#include "vpg/wire/daemon_socket.h"

struct pump {
	uint64_t stream;
	int fd;			/* -1: closed */
	bool sends;		/* from fd to the stream */
	bool own;		/* fd is the shell's own pipe or file: it is closed at the end */
	bool ended;		/* nothing more comes; or nothing more is to be sent */
	uint64_t credit;	/* sends: may still be sent */
	uint64_t owed;		/* written, and not yet given as credit again */
	unsigned char *bytes;	/* came, and not yet written */
	size_t n, written;
	const char *label;	/* whole lines alone, each behind this and ": " (""; just lines) */
	unsigned char *line;	/* the one that is being written */
	size_t line_n, line_written;
};

struct pumps { struct pump *at; size_t n, room; struct daemon_socket *daemon; };

/* Adds one, which gives its first credit when `pumps_begin()` is called.  Returns 0 or -1. */
int pumps_add(struct pumps *p, uint64_t stream, int fd, bool sends, bool own);
/* The pump that was added last writes whole lines: others write there, too.  A line of more than
 * PIPE_BUF bytes is written in pieces.  Returns 0 or -1. */
int pumps_by_lines(struct pumps *p, const char *label);
/* Returns 0, or -1: the daemon is gone; as the calls below. */
int pumps_begin(struct pumps *p);
int pumps_hear(struct pumps *p, int type, const union vpg_any *m);
/* Closes the pumps of a stream: nothing comes there any more. */
void pumps_drop(struct pumps *p, uint64_t stream);
/* What to wait for: one entry for each pump; fd -1: nothing. */
void pumps_wait(const struct pumps *p, struct pollfd *fds);
int pumps_ready(struct pumps *p, const struct pollfd *fds);
/* Whether everything that comes was written. */
bool pumps_done(const struct pumps *p);
void pumps_free(struct pumps *p);

#endif
