/* streams.h - the command's three streams, between this process's descriptors and the machine's
 * stream device.
 *
 * Input is read only as far as the machine has room for it.  Output is written as the descriptor
 * takes it, and acknowledged only then, so that a slow reader slows the guest down and not this
 * process.
 *
 * A machine with checkpoints (vmm/cli/snapshot/checkpoint.h) may go back to the last one and repeat
 * its output since then, perhaps with other bytes.  Therefore output waits here until a checkpoint
 * has been taken behind it (`holds`).  Up to HELD_MAX bytes of it are acknowledged as they arrive.
 * Input that was sent since the last checkpoint is kept, to be sent again (`keeps`).  Both may
 * begin and end at any time.
 */
#ifndef VMM_CLI_STREAMS_H
#define VMM_CLI_STREAMS_H

#include "vmm/cli/client.h"

enum { HELD_MAX = 4 << 20 };

/* How a stream speaks to the machine, if not by STREAM and STREAM_ROOM. */
struct stream_wire {
	void (*input)(void *context, const void *bytes, size_t n, bool eof);
	void (*room)(void *context, uint32_t stream, uint32_t bytes); /* so much more may come */
	void (*gone)(void *context, uint32_t stream);		      /* nobody reads it */
};

struct stream_in {
	struct client *client;
	struct loop_event *event, *retry;
	const struct stream_wire *wire; /* set by the caller, or NULL */
	int fd; /* set by the caller: standard input, as a rule */
	uint32_t room; /* bytes that the machine will take */
	bool ended;
	/* What was sent since the last checkpoint, from byte number `base` (modulo 2^32) on.
	 * `again` is the index of the next byte to send. */
	bool keeps;
	char *sent;
	size_t n_sent, sent_room, again, mark;
	uint32_t base;
};

struct stream_out {
	struct client *client;
	struct loop_event *event;
	const struct stream_wire *wire; /* or NULL; by the caller, after stream_out_start() */
	uint32_t stream; /* 1 or 2 */
	int fd;
	bool broken; /* the reader is gone: output is dropped */
	void (*on_drained)(void *context);
	void (*on_much)(void *context); /* much output waits for a checkpoint */
	/* Writing failed, and not because the reader is gone; the disk may be full.  Output is
	 * dropped from now on. */
	void (*on_failed)(void *context, const char *name, int error);
	void *context;
	bool holds;
	uint32_t owed;		    /* bytes that are not acknowledged yet */
	char *bytes;		    /* the first `ready` of them may be written */
	/* cut: the bytes from before the checkpoint that is being taken */
	size_t n, room, ready, cut;
};

/* Starts input.  It flows as soon as the client is connected and there is room.  A new machine has
 * taken 0 bytes and has room for STREAM_WINDOW; a loaded one says both numbers.  Returns 0, or
 * -ENOMEM. */
int stream_in_start(struct stream_in *in, struct client *client, uint32_t taken, uint32_t room);
void stream_in_room(struct stream_in *in, uint32_t bytes);
/* stop: the machine reads no more. free: this process is about to end. */
void stream_in_stop(struct stream_in *in);
void stream_in_free(struct stream_in *in);
/* mark: a checkpoint begins. kept: it is complete. lost: the machine is lost. again: the machine is
 * back, and had read `taken` bytes, modulo 2^32. */
void stream_in_mark(struct stream_in *in);
void stream_in_kept(struct stream_in *in);
void stream_in_lost(struct stream_in *in);
void stream_in_again(struct stream_in *in, uint32_t taken, uint32_t room);

int stream_out_start(struct stream_out *out, struct client *client, uint32_t stream, int fd);
/* Takes bytes from the machine.  Returns false if it sent more than it had room for. */
bool stream_out_take(struct stream_out *out, const void *bytes, size_t n);
bool stream_out_drained(const struct stream_out *out);
void stream_out_stop(struct stream_out *out);
/* mark: a checkpoint was cut here. kept: it is complete. release: the machine has ended well and
 * will repeat nothing. hold: whether output is held from now on. lost: the machine is lost. again:
 * it is back. */
void stream_out_mark(struct stream_out *out);
void stream_out_kept(struct stream_out *out);
void stream_out_release(struct stream_out *out);
void stream_out_hold(struct stream_out *out, bool holds);
void stream_out_lost(struct stream_out *out);
void stream_out_again(struct stream_out *out);

#endif
