/* localnet.c - see localnet.h. */
#include "monitor/localnet.h"

#include <errno.h>
#include <sys/socket.h>
#include "base/netframe.h"
#include "base/virtio_abi.h"

static int socket_fd = -1;

void localnet_open(int fd)
{
	socket_fd = fd;
}

bool localnet_send(const struct virtqueue_chain *chain, const struct virtqueue_memory *memory)
{
	enum { HEADER = sizeof(struct virtio_net_header) };
	static uint8_t frame[NET_FRAME_BYTES];
	uint32_t bytes = chain->out_bytes - HEADER;
	ssize_t sent;

	if (socket_fd < 0 || chain->in_bytes || chain->out_bytes <= HEADER ||
	    bytes > sizeof frame || !virtqueue_read(chain, memory, HEADER, frame, bytes))
		return false;
	do
		sent = send(socket_fd, frame, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)bytes;
}
