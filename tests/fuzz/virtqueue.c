/* virtqueue.c - fuzzes what a monitor reads of a guest's rings: memory with arbitrary bytes, and a
 * queue somewhere in it.
 *
 * The first bytes say where the queue is. The others are its memory, each at a place that the byte
 * before says, so that short inputs reach all tables.  Whatever stands there: no chain is longer
 * than its limits, no copy touches what is not RAM, and both indices move only by what was taken
 * and given.  The same memory is a table of buffers of the IDE disk's bus master (monitor/prd.c).
 */
#include <string.h>
#include "monitor/prd.h"
#include "monitor/virtqueue.h"
#include "tests/fuzz/fuzz.h"

enum { RAM = 8192, GUARD = 64, CHAINS = 64 };
static uint8_t memory_bytes[RAM + 2 * GUARD];
#define ram (memory_bytes + GUARD)

static bool read_ram(void *ctx, uint64_t gpa, void *to, uint32_t bytes)
{
	(void)ctx;
	if (gpa > RAM || bytes > RAM - gpa)
		return false;
	memcpy(to, ram + gpa, bytes);
	return true;
}

static bool write_ram(void *ctx, uint64_t gpa, const void *from, uint32_t bytes)
{
	(void)ctx;
	if (gpa > RAM || bytes > RAM - gpa)
		return false;
	memcpy(ram + gpa, from, bytes);
	return true;
}

static void use(struct virtqueue *q, const struct virtqueue_memory *memory,
		const struct virtqueue_chain *chain)
{
	static uint8_t data[VIRTIO_CHAIN_BYTES];
	uint64_t out = 0, in = 0;
	uint16_t before = q->used_next;

	FUZZ_CHECK(chain->segments <= VIRTIO_SEGMENTS && chain->out_segments <= chain->segments);
	for (unsigned i = 0; i < chain->segments; i++)
		*(i < chain->out_segments ? &out : &in) += chain->segment[i].bytes;
	FUZZ_CHECK(out == chain->out_bytes && in == chain->in_bytes && out <= sizeof data &&
		   in <= sizeof data);
	virtqueue_read(chain, memory, 0, data, chain->out_bytes);
	FUZZ_CHECK(!virtqueue_read(chain, memory, 1, data, chain->out_bytes) || !chain->out_bytes);
	memset(data, 0x5a, chain->in_bytes);
	virtqueue_write(chain, memory, 0, data, chain->in_bytes);
	if (virtqueue_push(q, memory, chain->head, chain->in_bytes))
		FUZZ_CHECK(q->used_next == (uint16_t)(before + 1));
	virtqueue_wants_interrupt(q, memory);
	FUZZ_CHECK(virtqueue_arm_next(q, memory)); /* both rings were found to be in RAM */
}

/* Copies of several sizes by the table that the memory is. */
static void use_table(uint32_t entry, uint32_t used, const struct virtqueue_memory *memory)
{
	enum { MOST = 16 << 10 };
	static uint8_t data[MOST];
	struct prd_place place = { entry, used, DMA_MOVED };
	bool copied = true;

	for (uint32_t bytes = 512; copied && bytes <= MOST; bytes *= 2) {
		copied = prd_copy(&place, memory, !(bytes & 0x1400), data, bytes);
		FUZZ_CHECK(place.result < DMA_RESULTS && place.used < 0x10000);
		FUZZ_CHECK(copied == (place.result <= DMA_TABLE_ENDED));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t places[] = { 0,	  16,	    0x400,	     0x800,
					   0xc00, RAM - 16, UINT64_MAX - 15, 0x1001 };
	const struct virtqueue_memory memory = { NULL, read_ram, write_ram };
	struct virtqueue_chain chain;
	struct virtqueue q;
	const char *why;
	int result = 1;

	if (size < 8)
		return 0;
	memset(memory_bytes, 0, sizeof memory_bytes);
	q = (struct virtqueue){ .desc = places[data[0] % 8],
				.avail = places[data[1] % 8],
				.used = places[data[2] % 8],
				.size = data[3],
				.avail_next = data[4],
				.used_next = data[5],
				.event_idx = data[0] & 0x80 };
	for (size_t i = 6; i + 2 < size; i += 3)
		ram[(data[i] | data[i + 1] << 8) % RAM] = data[i + 2];
	if (virtqueue_wrong(&q, RAM)) {
		use_table((uint32_t)places[data[0] % 8], data[3], &memory);
		result = 0;
	}
	for (unsigned i = 0; i < CHAINS && result > 0; i++) {
		uint16_t before = q.avail_next;

		result = virtqueue_pop(&q, &memory, &chain, &why);
		FUZZ_CHECK(q.avail_next == (uint16_t)(before + (result > 0)) &&
			   (result >= 0 || why));
		if (result > 0)
			use(&q, &memory, &chain);
	}
	for (unsigned i = 0; i < GUARD; i++)
		FUZZ_CHECK(!memory_bytes[i] && !memory_bytes[RAM + GUARD + i]);
	return 0;
}
