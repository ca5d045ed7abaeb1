/* virtio_9p.c - a shared folder (device 9 of virtio; Linux, net/9p/trans_virtio.c): forwards
 * requests to vmp-share, and its replies to the guest, in order.
 *
 * A request that does not fit into the socket waits, and so does the guest's queue.
 */
#include "iosrv/iosrv.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "iosrv/ninep.h"
#include "iosrv/virtio.h"

enum { FEATURE_MOUNT_TAG = 0, SLOT = VIRTIO_SHARE };
static const char tag[] = "share"; /* the guest's init mounts it by this name */

static struct {
	int socket; /* -1: no folder */
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

static void send_waiting(void)
{
	struct virtio_request *r;

	while ((r = share.unsent) && share.socket >= 0) {
		ssize_t n = send(share.socket, r->out, r->out_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

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

/* Add the device; vmp-share is at the other end of this socket. */
void virtio9p_attach(int socket)
{
	share.socket = socket;
	virtio_add(SLOT, &virtio_9p);
}
