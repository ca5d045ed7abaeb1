/* pipes.h - the ends of streams on this computer.
 *
 * A stream leads from a writer to a reader, on one computer or two.  The reader gives credit, and
 * the writer sends no more than that; so at most VPG_WINDOW bytes are on their way.  An end is a
 * pipe of a command, or it belongs to a shell.  Then it is a pipe that the shell has attached, or
 * frames are passed on to the shell as they are.
 *
 * A stream whose connection breaks must not look like one that has ended: the command that reads it
 * is killed.
 */
#ifndef VPG_PIPES_H
#define VPG_PIPES_H

#include "vpg/peer/tunnel.h"

struct stage;
struct pipe_end;

/* Makes an end at `fd`, which the end closes; for the stage `owner`. */
void pipe_open(struct daemon *d, uint64_t id, struct tunnel *via, bool writes, int fd,
	       struct stage *owner);
/* Takes the pipe that will be the shell's end of the stream. */
void pipe_attach(struct daemon *d, uint64_t id, struct shell *shell, int fd);
/* Makes an end that belongs to the shell, for its job. */
void pipe_relay(struct daemon *d, uint64_t id, struct tunnel *via, bool writes, struct shell *shell,
		uint64_t job);

/* Returns whether the type is DATA, STREAM_END, CREDIT or STREAM_BREAK.  The next two serve such a
 * frame from a tunnel or from a shell. */
bool pipe_is_frame(enum vpg_type type);
void pipe_hear(struct tunnel *t, enum vpg_type type, const union vpg_any *m);
void pipe_hear_shell(struct shell *s, enum vpg_type type, const union vpg_any *m);

void pipes_close_stage(struct daemon *d, const struct stage *owner);
/* Closes the ends of a job of the shell; of all its jobs if `job` is 0. */
void pipes_close_shell(struct daemon *d, const struct shell *shell, uint64_t job);
void pipes_tunnel_closed(struct tunnel *t);

#endif
