/* virtio_net.c - the network card (virtio 1.2, 5.1): forwards frames to and from vmp-net.
 *
 * The monitors of this host send the guest's frames to vmp-net themselves (monitor/localnet.h).
 * Those that come here are of other hosts' CPUs, or found no room in the socket.
 *
 * Both directions have a bound.  A frame from the guest that does not fit into the socket waits
 * with its request, and so does the guest's queue.  A frame for the guest that finds no room in the
 * queue waits here, and the socket is not read meanwhile.
 */
#include "iosrv/iosrv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include "base/netframe.h"
#include "iosrv/virtio.h"

enum { FEATURE_MTU = 3, FEATURE_MAC = 5, RECEIVE = 0, TRANSMIT = 1, IN_A_ROW = 32 };

struct config {
	uint8_t mac[6];
	uint16_t status, max_pairs, mtu;
};
_Static_assert(offsetof(struct config, mtu) == 10, "layout (virtio 1.2, 5.1.4)");
_Static_assert(sizeof(struct virtio_net_header) + NET_FRAME_BYTES <= MAX_MSG_PAYLOAD,
	       "a frame is one message");

static struct {
	int socket;			     /* -1: no network */
	struct virtio_request *first, *last; /* frames that wait to be sent */
	struct {
		struct virtio_net_header header;
		uint8_t frame[NET_FRAME_BYTES];
	} come;		     /* a frame that waits for the guest */
	uint32_t come_bytes; /* its length with the header; 0: none */
} net = { .socket = -1 };

static uint64_t net_features(unsigned slot)
{
	(void)slot;
	return VIRTIO_FEATURE(FEATURE_MAC) | VIRTIO_FEATURE(FEATURE_MTU);
}

static void net_config(unsigned slot, uint8_t *to, size_t bytes)
{
	const struct config config = { .mac = NET_MAC, .mtu = NET_MTU };

	(void)slot;
	memcpy(to, &config, sizeof config < bytes ? sizeof config : bytes);
}

static void watch(void)
{
	if (net.socket >= 0)
		iosrv_watch(WATCH_NET, net.socket, !net.come_bytes, net.first);
}

/* Send a request's frame to vmp-net.  False: the socket is full.  An invalid frame is dropped. */
static bool send_frame(const struct virtio_request *r)
{
	const size_t header = sizeof(struct virtio_net_header);
	size_t bytes = r->out_bytes - header;
	ssize_t n = 0;

	if (r->out_bytes <= header || bytes > NET_FRAME_BYTES)
		return true;
	do
		n = send(net.socket, r->out + header, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n >= 0 || (errno != EAGAIN && errno != ENOBUFS);
}

static void send_waiting(void)
{
	struct virtio_request *r;

	while ((r = net.first) && send_frame(r)) {
		net.first = r->next;
		if (!net.first)
			net.last = NULL;
		virtio_done(r, 0);
	}
}

static void net_request(struct virtio_request *r)
{
	if (r->queue != TRANSMIT) { /* chains of the other queue are filled by the monitor */
		virtio_done(r, 0);
		return;
	}
	r->next = NULL;
	*(net.last ? &net.last->next : &net.first) = r;
	net.last = r;
	send_waiting();
	watch();
}

static bool push_come(void)
{
	if (net.come_bytes && virtio_push(VIRTIO_NET, &net.come, net.come_bytes))
		net.come_bytes = 0;
	return !net.come_bytes;
}

static void take_frames(void)
{
	for (unsigned i = 0; i < IN_A_ROW && push_come(); i++) {
		ssize_t n = recv(net.socket, net.come.frame, sizeof net.come.frame, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			net.socket = -1;
			iosrv_fail(
				"vmp-net, the network's process, has ended; the log may say why");
			return;
		}
		if (n < 0)
			return;
		net.come.header = (struct virtio_net_header){ .n_buffers = 1 };
		net.come_bytes = sizeof net.come.header + (uint32_t)n;
	}
}

/* Called by the loop when the socket can be read or written to. */
void net_on_ready(void)
{
	send_waiting();
	take_frames();
	watch();
}

static void net_room(unsigned slot)
{
	(void)slot;
	if (!net.come_bytes)
		return;
	push_come();
	watch();
}

/* Forget all frames, after a reset of the whole server. */
void net_reset(void)
{
	virtio_forget(net.first);
	net.first = net.last = NULL;
	net.come_bytes = 0;
}

static uint32_t net_direct(unsigned slot, unsigned queue)
{
	(void)slot;
	return queue == TRANSMIT && net.socket >= 0 ? VIRTIO_DIRECT_SEND : 0;
}

int net_share(void)
{
	return net.socket < 0 ? -1 : fcntl(net.socket, F_DUPFD_CLOEXEC, 3);
}

static const struct virtio_model virtio_net = {
	.name = "network card",
	.id = 1,
	.queues = 2,
	.features = net_features,
	.config = net_config,
	.direct = net_direct,
	.request = net_request,
	.room = net_room,
};

/* Add the card; vmp-net is at the other end of this socket. */
void net_attach(int socket)
{
	net.socket = socket;
	virtio_add(VIRTIO_NET, &virtio_net);
}

void net_start(void)
{
	watch();
}
