/* streams.h - the command's three streams between this process's descriptors and the machine's stream device.
 *
 * Input is read only as far as the machine has room for it; output is written as the descriptor takes it and only then
 * acknowledged, so that a slow reader slows the guest and not this process.
 */
#ifndef VMM_STREAMS_H
#define VMM_STREAMS_H

#include "vmm/client.h"

struct stream_in {
	struct client *client;
	struct event *event, *retry;
	uint32_t room; /* bytes that the machine will take */
	bool ended;
};

struct stream_out {
	struct client *client;
	struct event *event;
	uint32_t stream; /* 1 or 2 */
	int fd;
	uint32_t at, n; /* of `bytes`, to be written */
	bool broken;	/* its reader is gone: what comes is dropped */
	void (*on_drained)(void *context);
	void *context;
	char bytes[STREAM_WINDOW];
};

/* 0, or -ENOMEM. Input flows as soon as the client is connected and there is room: STREAM_WINDOW bytes in a new machine. */
int stream_in_start(struct stream_in *in, struct client *client, uint32_t room);
void stream_in_room(struct stream_in *in, uint32_t bytes);
void stream_in_stop(struct stream_in *in);

int stream_out_start(struct stream_out *out, struct client *client, uint32_t stream, int fd);
/* Bytes from the machine; false if it sent more than it had room for. */
bool stream_out_take(struct stream_out *out, const void *bytes, size_t n);
bool stream_out_drained(const struct stream_out *out);
void stream_out_stop(struct stream_out *out);

#endif
