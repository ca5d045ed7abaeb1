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
	bool attached;		/* the daemon writes to fd in the shell's place */
	bool ended;		/* nothing more comes; or nothing more is to be sent */
	uint64_t credit;	/* if it sends: bytes that may still be sent */
	uint64_t owed;		/* bytes written, and not given as credit again yet */
	unsigned char *bytes;	/* those that came, and are not written yet */
	size_t n, written;
	const char *label;	/* write whole lines, each behind this and ": "; "": no label */
	unsigned char *line;	/* the line that is being written */
	size_t line_n, line_written;
};

struct pumps { struct pump *at; size_t n, room; struct daemon_socket *daemon; };

/* Adds a pump, which gives its first credit in pumps_begin().  Returns 0 or -1. */
int pumps_add(struct pumps *p, uint64_t stream, int fd, bool sends, bool own);
/* Gives the daemon the shell's end of a pipe, so that the bytes do not go through the shell.  If
 * the daemon writes to it, the shell keeps it open until everything is written: its reader must not
 * take the daemon's death for the end of the stream.  Takes fd.  Returns 0; -ENOMEM;
 * or -EPIPE if the daemon is gone. */
int pumps_attach(struct pumps *p, uint64_t stream, int fd, bool sends);
/* Lets the pump that was added last write whole lines, since others write to the same place.  A
 * line of more than PIPE_BUF bytes is written in pieces.  Returns 0 or -1. */
int pumps_by_lines(struct pumps *p, const char *label);
/* Returns 0, or -1 if the daemon is gone; so do the functions below. */
int pumps_begin(struct pumps *p);
int pumps_hear(struct pumps *p, int type, const union vpg_any *m);
/* Closes the pumps of a stream: nothing more comes there. */
void pumps_drop(struct pumps *p, uint64_t stream);
/* Sets what to wait for: one entry for each pump; fd -1 waits for nothing. */
void pumps_wait(const struct pumps *p, struct pollfd *fds);
int pumps_ready(struct pumps *p, const struct pollfd *fds);
/* Returns whether everything that comes has come and was written. */
bool pumps_done(const struct pumps *p);
void pumps_free(struct pumps *p);

#endif
