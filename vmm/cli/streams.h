/* streams.h - the command's three streams between this process's descriptors and the machine's stream device.
 *
 * Input is read only as far as the machine has room for it; output is written as the descriptor takes it and only then
 * acknowledged, so that a slow reader slows the guest and not this process.
 *
 * A machine with checkpoints (vmm/cli/snapshot/checkpoint.h) may go back and say everything since the last one again, and perhaps in
 * other words.  So output then waits here until it is behind a checkpoint (`holds`): it is acknowledged when it comes, up to
 * HELD_MAX bytes of it; and input that was sent since is kept, to be sent again (`keeps`).  Both may begin and end at any time.
 */
#ifndef VMM_CLI_STREAMS_H
#define VMM_CLI_STREAMS_H

#include "vmm/cli/client.h"

enum { HELD_MAX = 4 << 20 };

struct stream_in {
	struct client *client;
	struct event *event, *retry;
	int fd; /* by the caller: standard input, as it comes */
	uint32_t room; /* bytes that the machine will take */
	bool ended;
	/* what was sent since the last checkpoint: byte number `base`, modulo 2^32, and on; `again`: of these, the next to be sent */
	bool keeps;
	char *sent;
	size_t n_sent, sent_room, again, mark;
	uint32_t base;
};

struct stream_out {
	struct client *client;
	struct event *event;
	uint32_t stream; /* 1 or 2 */
	int fd;
	bool broken; /* its reader is gone: what comes is dropped */
	void (*on_drained)(void *context);
	void (*on_much)(void *context); /* much output waits for a checkpoint */
	/* It cannot be written, for another reason than that its reader is gone: a full disk, say. What comes is dropped. */
	void (*on_failed)(void *context, const char *name, int error);
	void *context;
	bool holds;
	uint32_t owed;		    /* bytes that are not acknowledged yet */
	char *bytes;		    /* the first `ready` of them may be written */
	size_t n, room, ready, cut; /* cut: how many came before the checkpoint that is being taken */
};

/* 0, or -ENOMEM. Input flows as soon as the client is connected and there is room: STREAM_WINDOW bytes in a new machine, which
 * has taken none; one that was loaded says both. */
int stream_in_start(struct stream_in *in, struct client *client, uint32_t taken, uint32_t room);
void stream_in_room(struct stream_in *in, uint32_t bytes);
/* The machine reads no more; the end. */
void stream_in_stop(struct stream_in *in);
void stream_in_free(struct stream_in *in);
/* A checkpoint begins; it stands; the machine is lost; it is back, and had read `taken` bytes, modulo 2^32. */
void stream_in_mark(struct stream_in *in);
void stream_in_kept(struct stream_in *in);
void stream_in_lost(struct stream_in *in);
void stream_in_again(struct stream_in *in, uint32_t taken, uint32_t room);

int stream_out_start(struct stream_out *out, struct client *client, uint32_t stream, int fd);
/* Bytes from the machine; false if it sent more than it had room for. */
bool stream_out_take(struct stream_out *out, const void *bytes, size_t n);
bool stream_out_drained(const struct stream_out *out);
void stream_out_stop(struct stream_out *out);
/* A checkpoint was cut here; it stands; the machine has ended well, nothing will be said again; it is lost; it is back. */
void stream_out_mark(struct stream_out *out);
void stream_out_kept(struct stream_out *out);
void stream_out_release(struct stream_out *out);
void stream_out_hold(struct stream_out *out, bool holds); /* from here on, or no more */
void stream_out_lost(struct stream_out *out);
void stream_out_again(struct stream_out *out);

#endif
