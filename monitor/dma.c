/* dma.c - the monitor's part of bus-master DMA: it copies the bytes of a step between the I/O
 * server's messages and the buffers that the guest's table describes (prd.h).
 *
 * To memory, a step's bytes come in parts, and one message answers all of them.  From memory, one
 * message asks, and the bytes go in parts.  A step that fails is answered at once, and its parts
 * that still come are ignored.  The I/O server has one step under way at a time, and the CPU is not
 * stopped before the step is answered (rings_leave()).  So nothing of it is saved here.
 */
#include "monitor/dma.h"

static struct prd_place place; /* where the next part of the step goes */

static bool has_failed(void)
{
	return place.result != DMA_MOVED && place.result != DMA_TABLE_ENDED;
}

static void answer(struct monitor *m, struct msg_dma step, const void *payload, uint32_t bytes)
{
	step.entry = place.entry;
	step.used = place.used;
	step.result = place.result;
	step.last = has_failed() || step.offset + bytes == step.bytes;
	channel_send(m, MSG_DMA_ASK, VNODE_IOSRV, &step, sizeof step, payload, bytes);
}

static void from_memory(struct monitor *m, const struct virtqueue_memory *memory,
			struct msg_dma step)
{
	uint8_t data[MAX_MSG_PAYLOAD];
	uint32_t part;

	for (; step.offset < step.bytes && !has_failed(); step.offset += part) {
		part = step.bytes - step.offset < sizeof data ? step.bytes - step.offset
							      : sizeof data;
		if (!prd_copy(&place, memory, false, data, part))
			part = 0;
		answer(m, step, data, part);
	}
}

void dma_step(struct monitor *m, const struct virtqueue_memory *memory, struct msg_dma step,
	      void *payload, uint32_t bytes)
{
	if (!step.offset)
		place = (struct prd_place){ step.entry, step.used, DMA_MOVED };
	if (has_failed())
		return;
	if (!step.to_memory) {
		from_memory(m, memory, step);
		return;
	}
	prd_copy(&place, memory, true, payload, bytes);
	step.offset += bytes;
	if (has_failed() || step.offset == step.bytes)
		answer(m, step, NULL, 0);
}
