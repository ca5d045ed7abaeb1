/* virtio_rng.c - a source of entropy (virtio 1.2, 5.4): the host's getrandom(). */
#include "iosrv/iosrv.h"

#include <errno.h>
#include <sys/random.h>
#include "iosrv/virtio.h"

static void rng_request(struct virtio_request *r)
{
	uint32_t filled = 0;

	while (filled < r->in_bytes) {
		ssize_t n = getrandom(r->in + filled, r->in_bytes - filled, 0);

		if (n <= 0 && errno != EINTR)
			break;
		filled += n > 0 ? (uint32_t)n : 0;
	}
	virtio_done(r, filled);
}

const struct virtio_model virtio_rng = {
	.name = "random number generator", .id = 4, .queues = 1, .request = rng_request
};
