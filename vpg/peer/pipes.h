/* pipes.h - the ends of streams on this computer.
 *
 * A stream leads from a writer to a reader, on one computer or two.  The reader gives credit; the
 * writer sends no more than that, so at most VPG_WINDOW bytes are on their way.  An end is a pipe
 * of a command, or the shell's: then frames are passed on as they are.
 *
 * A stream whose connection breaks must not look like one that has ended: who reads it is killed.
 */
#ifndef VPG_PIPES_H
#define VPG_PIPES_H

#include "vpg/peer/tunnel.h"

struct stage;
struct pipe_end;

/* An end at `fd`, which becomes its own; for the stage `owner`.  NULL: no memory. */
struct pipe_end *pipe_open(struct daemon *d, uint64_t id, struct tunnel *via, bool writes, int fd,
			   struct stage *owner);
/* An end that is the shell's, of its job. */
struct pipe_end *pipe_relay(struct daemon *d, uint64_t id, struct tunnel *via, bool writes,
			    struct shell *shell, uint64_t job);

/* DATA, STREAM_END, CREDIT and STREAM_BREAK, from a tunnel or from a shell. */
bool pipe_is_frame(enum vpg_type type);
void pipe_hear(struct tunnel *t, enum vpg_type type, const union vpg_any *m);
void pipe_hear_shell(struct shell *s, enum vpg_type type, const union vpg_any *m);

void pipes_close_stage(struct daemon *d, const struct stage *owner);
/* job 0: all of the shell. */
void pipes_close_shell(struct daemon *d, const struct shell *shell, uint64_t job);
void pipes_tunnel_closed(struct tunnel *t);

#endif
