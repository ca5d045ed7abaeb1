/* virtio_9p.c - a shared folder (device 9 of virtio; Linux, net/9p/trans_virtio.c): forwards
 * requests to vmp-share, and its replies to the guest, in order.
 *
 * A request that does not fit into the socket waits, and so does the guest's queue.
 *
 * When a machine is saved no request is under way (virtio.h): vmp-share has answered all of them,
 * and is asked for its state.  So save and load may wait for it here.
 */
#include "iosrv/iosrv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "base/log.h"
#include "iosrv/ninep.h"
#include "iosrv/shareframe.h"
#include "iosrv/virtio.h"

enum { FEATURE_MOUNT_TAG = 0, SLOT = VIRTIO_SHARE };
static const char tag[] = "share"; /* the guest's init mounts it by this name */

static struct {
	int socket; /* -1: no folder */
	struct snapshot_folder folder;
	/* requests, in order; those from `unsent` on wait to be sent */
	struct virtio_request *first, *last, *unsent;
} share = { .socket = -1 };

static uint64_t share_features(unsigned slot)
{
	(void)slot;
	return VIRTIO_FEATURE(FEATURE_MOUNT_TAG);
}

static void share_config(unsigned slot, uint8_t *to, size_t bytes)
{
	const uint16_t n = sizeof tag - 1;

	(void)slot, (void)bytes;
	memcpy(to, &n, sizeof n);
	memcpy(to + sizeof n, tag, n);
}

/* Watch the socket for reading always, so that the end of vmp-share is noticed at once. */
static void watch(void)
{
	if (share.socket >= 0)
		iosrv_watch(WATCH_SHARE, share.socket, true, share.unsent);
}

static void take_first(void)
{
	struct virtio_request *r = share.first;

	share.first = r->next;
	if (!share.first)
		share.last = NULL;
}

static void fail(void)
{
	share.socket = -1;
	iosrv_fail("vmp-share, the shared folder's process, has ended; the log may say why");
}

static ssize_t send_packet(enum share_packet kind, const void *data, size_t bytes, int flags)
{
	uint8_t first = (uint8_t)kind;
	struct iovec parts[] = { { &first, 1 }, { (void *)data, bytes } };
	struct msghdr packet = { .msg_iov = parts, .msg_iovlen = ARRAY_LEN(parts) };

	return sendmsg(share.socket, &packet, flags | MSG_NOSIGNAL);
}

static void send_waiting(void)
{
	struct virtio_request *r;

	while ((r = share.unsent) && share.socket >= 0) {
		ssize_t n = send_packet(SHARE_REQUEST, r->out, r->out_bytes, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
			return;
		if (n < 0)
			return fail();
		share.unsent = r->next;
	}
}

static void share_request(struct virtio_request *r)
{
	if (!r->out_bytes || r->out_bytes > NINEP_MESSAGE_BYTES) {
		virtio_done(r, 0); /* the guest's driver reports it as an error */
		return;
	}
	r->next = NULL;
	*(share.last ? &share.last->next : &share.first) = r;
	share.last = r;
	if (!share.unsent)
		share.unsent = r;
	send_waiting();
	watch();
}

static void take_replies(void)
{
	static uint8_t reply[NINEP_MESSAGE_BYTES];

	while (share.socket >= 0) {
		struct virtio_request *r = share.first != share.unsent ? share.first : NULL;
		ssize_t n = recv(share.socket, reply, sizeof reply, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0 || !r) /* vmp-share has ended, or sends a reply without a request */
			return fail();
		if ((size_t)n > r->in_bytes)
			n = r->in_bytes;
		memcpy(r->in, reply, (size_t)n);
		take_first();
		virtio_done(r, (uint32_t)n);
	}
}

/* Called by the loop when the socket can be read or written to. */
void virtio9p_on_ready(void)
{
	take_replies();
	send_waiting();
	watch();
}

void virtio9p_start(void)
{
	watch();
}

/* Forget all requests, after a reset of the whole server. */
void virtio9p_reset(void)
{
	virtio_forget(share.first);
	share.first = share.last = share.unsent = NULL;
}

static const struct virtio_model virtio_9p = {
	.name = "shared folder",
	.id = 9,
	.queues = 1,
	.features = share_features,
	.config = share_config,
	.request = share_request,
};

void virtio9p_attach(int socket, const struct snapshot_folder *folder)
{
	share.socket = socket;
	share.folder = *folder;
	virtio_add(SLOT, &virtio_9p);
}

/* --- snapshots --- */

bool virtio9p_is_there(void) { return share.socket >= 0; }

/* Wait for a packet: its length, or -EIO if vmp-share has ended. */
static ssize_t wait_for_packet(uint8_t *to, size_t room)
{
	ssize_t n;

	do
		n = recv(share.socket, to, room, 0);
	while (n < 0 && errno == EINTR);
	return n > 0 ? n : -EIO;
}

/* Send a packet, and wait until there is room for it. */
static int send_whole(enum share_packet kind, const void *data, size_t bytes)
{
	ssize_t n;

	do
		n = send_packet(kind, data, bytes, 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -EIO : 0;
}

/* Receive all parts of the state: its length or -errno. */
static ssize_t take_state(uint8_t **state)
{
	static uint8_t part[1 + SHARE_PART_BYTES];
	size_t bytes = 0;

	for (;;) {
		ssize_t n = wait_for_packet(part, sizeof part);
		size_t more = n > 1 ? (size_t)n - 1 : 0;
		uint8_t *longer;

		if (n < 0)
			return n;
		if (part[0] == SHARE_FAILED)
			return -ENOMEM;
		if (!more || part[0] > SHARE_LAST || more > NINEP_STATE_BYTES - bytes)
			return -EPROTO;
		longer = realloc(*state, bytes + more);
		if (!longer)
			die("no memory for the state of the shared folder");
		memcpy(longer + bytes, part + 1, more);
		*state = longer;
		bytes += more;
		if (part[0] == SHARE_LAST)
			return (ssize_t)bytes;
	}
}

ssize_t virtio9p_save(struct snapshot_folder *folder, uint8_t **state)
{
	ssize_t bytes;

	*state = NULL;
	if (share.socket < 0)
		return 0;
	if (share.first)
		return -EBUSY;
	*folder = share.folder;
	bytes = send_whole(SHARE_SAVE, NULL, 0) ? -EIO : take_state(state);
	if (bytes < 0) {
		free(*state);
		*state = NULL;
	}
	return bytes;
}

int virtio9p_load(const uint8_t *state, size_t bytes, char *why, size_t why_bytes)
{
	static uint8_t answer[256];
	size_t at = 0, part;
	ssize_t n = 0;

	for (; at < bytes && !n; at += part) {
		part = bytes - at < SHARE_PART_BYTES ? bytes - at : SHARE_PART_BYTES;
		n = send_whole(at + part == bytes ? SHARE_LOAD_LAST : SHARE_LOAD, state + at, part);
	}
	if (!n)
		n = wait_for_packet(answer, sizeof answer);
	if (n == 1 && !answer[0])
		return 0;
	snprintf(why, why_bytes, "%.*s", n < 0 ? 20 : (int)n,
		 n < 0 ? "vmp-share has ended" : (const char *)answer);
	return -EINVAL;
}
