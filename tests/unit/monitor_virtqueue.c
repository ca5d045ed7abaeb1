/* Virtqueues in memory that a hostile guest has written: monitor/virtqueue.c. */
#include <string.h>
#include "monitor/virtqueue.h"
#include "tests/unit/unit.h"

enum {
	RAM = 64 << 10,
	DESC = 0x1000,
	AVAIL = 0x2000,
	USED = 0x3000,
	TABLE = 0x4000,
	DATA = 0x8000,
	SIZE = 8
};
enum { NEXT = 1, WRITE = 2, INDIRECT = 4 };

static uint8_t ram[RAM];
static struct virtqueue q;
static struct virtqueue_chain chain;
static const char *why;

#include "tests/unit/virtqueue_ram.h"

static void start(void)
{
	memset(ram, 0, sizeof ram);
	q = (struct virtqueue){ .desc = DESC, .avail = AVAIL, .used = USED, .size = SIZE };
}

static void put16(uint32_t at, uint16_t value)
{
	memcpy(ram + at, &value, 2);
}
static uint16_t get16(uint32_t at)
{
	uint16_t value;
	memcpy(&value, ram + at, 2);
	return value;
}
static uint32_t get32(uint32_t at)
{
	uint32_t value;
	memcpy(&value, ram + at, 4);
	return value;
}

static void describe(uint32_t table, unsigned i, uint64_t gpa, uint32_t bytes, uint16_t flags,
		     uint16_t next)
{
	uint8_t *at = ram + table + 16 * i;

	memcpy(at, &gpa, 8);
	memcpy(at + 8, &bytes, 4);
	memcpy(at + 12, &flags, 2);
	memcpy(at + 14, &next, 2);
}

static void offer(uint16_t head)
{
	uint16_t index = get16(AVAIL + 2);

	put16(AVAIL + 4 + 2 * (index % SIZE), head);
	put16(AVAIL + 2, index + 1);
}

static int pop(void)
{
	return virtqueue_pop(&q, &memory, &chain, &why);
}

static void test_places(void)
{
	static const struct {
		struct virtqueue q;
		const char *word;
	} wrong[] = {
		{ { .desc = DESC, .avail = AVAIL, .used = USED, .size = 0 }, "size" },
		{ { .desc = DESC, .avail = AVAIL, .used = USED, .size = 6 }, "size" },
		{ { .desc = DESC, .avail = AVAIL, .used = USED, .size = 2 * VIRTIO_QUEUE_SIZE },
		  "size" },
		{ { .desc = DESC + 8, .avail = AVAIL, .used = USED, .size = 8 }, "descriptors" },
		{ { .desc = RAM - 112, .avail = AVAIL, .used = USED, .size = 8 }, "descriptors" },
		{ { .desc = UINT64_MAX - 15, .avail = AVAIL, .used = USED, .size = 8 },
		  "descriptors" },
		{ { .desc = DESC, .avail = RAM - 20, .used = USED, .size = 8 }, "available" },
		{ { .desc = DESC, .avail = AVAIL + 1, .used = USED, .size = 8 }, "available" },
		{ { .desc = DESC, .avail = AVAIL, .used = RAM, .size = 8 }, "used" },
		{ { .desc = DESC, .avail = AVAIL, .used = USED + 2, .size = 8 }, "used" },
	};

	start();
	CU_ASSERT_PTR_NULL(virtqueue_wrong(&q, RAM));
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		const char *says = virtqueue_wrong(&wrong[i].q, RAM);

		CU_ASSERT(says && strstr(says, wrong[i].word));
	}
}

static void test_chain(void)
{
	char to[12];

	start();
	CU_ASSERT_EQUAL(pop(), 0);
	describe(DESC, 3, DATA, 5, NEXT, 1);
	describe(DESC, 1, DATA + 0x100, 5, NEXT, 7);
	describe(DESC, 7, DATA + 0x200, 4, NEXT | WRITE, 0);
	describe(DESC, 0, DATA + 0x300, 6, WRITE, 0);
	memcpy(ram + DATA, "hello", 5);
	memcpy(ram + DATA + 0x100, "world", 5);
	offer(3);
	CU_ASSERT_EQUAL(pop(), 1);
	CU_ASSERT(chain.head == 3 && chain.segments == 4 && chain.out_segments == 2 &&
		  chain.out_bytes == 10 && chain.in_bytes == 10);
	CU_ASSERT(virtqueue_read(&chain, &memory, 3, to, 6) && !memcmp(to, "loworl", 6));
	CU_ASSERT_FALSE(virtqueue_read(&chain, &memory, 5, to, 6));
	CU_ASSERT(virtqueue_write(&chain, &memory, 2, "abcd", 4));
	CU_ASSERT(!memcmp(ram + DATA + 0x202, "ab", 2) && !memcmp(ram + DATA + 0x300, "cd", 2));
	CU_ASSERT_FALSE(virtqueue_write(&chain, &memory, 9, "ab", 2));
	CU_ASSERT_EQUAL(pop(), 0);
	CU_ASSERT(virtqueue_push(&q, &memory, 3, 6));
	CU_ASSERT(get16(USED + 2) == 1 && get32(USED + 4) == 3 && get32(USED + 8) == 6);
	CU_ASSERT_TRUE(virtqueue_wants_interrupt(&q, &memory));
	put16(AVAIL, 1);
	CU_ASSERT_FALSE(virtqueue_wants_interrupt(&q, &memory));
}

/* Both indices count modulo 2^16, and go round the rings. */
static void test_around(void)
{
	start();
	q.avail_next = q.used_next = UINT16_MAX - 2;
	put16(AVAIL + 2, UINT16_MAX - 2);
	put16(USED + 2, UINT16_MAX - 2);
	for (unsigned i = 0; i < 3 * SIZE; i++) {
		describe(DESC, i % SIZE, DATA + i, 1, WRITE, 0);
		offer(i % SIZE);
		CU_ASSERT(pop() == 1 && chain.head == i % SIZE);
		CU_ASSERT(virtqueue_push(&q, &memory, chain.head, i));
		CU_ASSERT_EQUAL(get16(USED + 2), (uint16_t)(UINT16_MAX - 1 + i));
	}
}

enum { AVAIL_EVENT = USED + 4 + 8 * SIZE, USED_EVENT = AVAIL + 4 + 2 * SIZE };

static void start_with_events(void)
{
	start();
	q.event_idx = true;
	q.avail_next = q.used_next = UINT16_MAX; /* the indices wrap */
	put16(AVAIL + 2, UINT16_MAX);
	put16(USED + 2, UINT16_MAX);
	for (unsigned i = 0; i < SIZE; i++)
		describe(DESC, i, DATA + i, 1, WRITE, 0);
}

/* The guest notifies what it makes available behind the last chain that was taken, and no other. */
static void test_notifications(void)
{
	start_with_events();
	put16(AVAIL_EVENT, 77);
	offer(0);
	offer(1);
	CU_ASSERT_EQUAL(pop(), 1);
	CU_ASSERT_EQUAL(get16(AVAIL_EVENT), 77); /* there are more: no notification needed */
	CU_ASSERT_EQUAL(pop(), 1);
	CU_ASSERT_EQUAL(pop(), 0);
	CU_ASSERT_EQUAL(get16(AVAIL_EVENT), 1);
	put16(AVAIL_EVENT, 78);
	CU_ASSERT(pop() == 0 && get16(AVAIL_EVENT) == 78); /* written once */
	offer(2);
	CU_ASSERT(pop() == 1 && pop() == 0 && get16(AVAIL_EVENT) == 2);
	for (unsigned i = 3; i < 6; i++)
		offer(i);
	CU_ASSERT(virtqueue_arm_next(&q, &memory) && get16(AVAIL_EVENT) == 5);
	q.event_idx = false;
	offer(6);
	CU_ASSERT(virtqueue_arm_next(&q, &memory) && get16(AVAIL_EVENT) == 5);
}

/* A chain that the guest makes available while the event is being written is taken. */
static bool write_and_offer(void *ctx, uint64_t gpa, const void *from, uint32_t bytes)
{
	if (gpa == AVAIL_EVENT)
		offer(4);
	return ram_write(ctx, gpa, from, bytes);
}

static void test_race(void)
{
	const struct virtqueue_memory racing = { NULL, ram_read, write_and_offer };

	start_with_events();
	CU_ASSERT_EQUAL(virtqueue_pop(&q, &racing, &chain, &why), 1);
	CU_ASSERT_EQUAL(chain.head, 4);
}

/* Only the chain whose index the guest waits for causes an interrupt; the flags do not count. */
static void test_interrupts(void)
{
	start_with_events();
	put16(AVAIL, 1);
	put16(USED_EVENT, 0);
	CU_ASSERT(virtqueue_push(&q, &memory, 0, 0)); /* entry UINT16_MAX */
	CU_ASSERT_FALSE(virtqueue_wants_interrupt(&q, &memory));
	CU_ASSERT(virtqueue_push(&q, &memory, 1, 0)); /* entry 0 */
	CU_ASSERT_TRUE(virtqueue_wants_interrupt(&q, &memory));
	CU_ASSERT(virtqueue_push(&q, &memory, 2, 0));
	CU_ASSERT_FALSE(virtqueue_wants_interrupt(&q, &memory));
	put16(USED_EVENT, UINT16_MAX);
	CU_ASSERT_FALSE(virtqueue_wants_interrupt(&q, &memory));
}

static void test_indirect(void)
{
	start();
	describe(DESC, 2, TABLE, 3 * 16, INDIRECT, 0);
	describe(TABLE, 0, DATA, 16, NEXT, 2);
	describe(TABLE, 2, DATA + 0x100, 512, NEXT | WRITE, 1);
	describe(TABLE, 1, DATA + 0x400, 1, WRITE, 0);
	offer(2);
	CU_ASSERT_EQUAL(pop(), 1);
	CU_ASSERT(chain.head == 2 && chain.out_bytes == 16 && chain.in_bytes == 513 &&
		  chain.segments == 3);
}

/* The queue stays where it is when it is broken. */
static void breaks(const char *word)
{
	offer(0);
	CU_ASSERT_EQUAL(pop(), -1);
	CU_ASSERT(strstr(why, word) != NULL);
	CU_ASSERT_EQUAL(q.avail_next, 0);
	start();
}

static void test_broken(void)
{
	start();
	describe(DESC, 0, DATA, 1, NEXT, 1);
	describe(DESC, 1, DATA, 1, NEXT, 0);
	breaks("no end");
	describe(DESC, 0, DATA, 1, NEXT, SIZE);
	breaks("number that is none");
	describe(DESC, 0, DATA, 1, NEXT | WRITE, 1);
	describe(DESC, 1, DATA, 1, 0, 0);
	breaks("behind one to write");
	describe(DESC, 0, DATA, VIRTIO_CHAIN_BYTES + 1, 0, 0);
	breaks("more bytes");
	describe(DESC, 0, DATA, UINT32_MAX, NEXT | WRITE, 1);
	breaks("more bytes");
	describe(DESC, 0, TABLE, 16, INDIRECT, 0);
	describe(TABLE, 0, TABLE, 16, INDIRECT, 0);
	breaks("names another");
	describe(DESC, 0, TABLE, 16, INDIRECT | NEXT, 1);
	breaks("continues");
	describe(DESC, 0, TABLE, 24, INDIRECT, 0);
	breaks("no size");
	describe(DESC, 0, TABLE, 0, INDIRECT, 0);
	breaks("no size");
	describe(DESC, 0, UINT64_MAX - 7, 16, INDIRECT, 0);
	breaks("not in RAM");
	describe(DESC, 0, TABLE, 80 * 16, INDIRECT, 0);
	for (unsigned i = 0; i < 80; i++)
		describe(TABLE, i, DATA, 1, i < 79 ? NEXT : 0, i + 1);
	breaks("more descriptors");
	put16(AVAIL + 2, SIZE + 1);
	CU_ASSERT(pop() == -1 && strstr(why, "more chains"));
	start();
	put16(AVAIL + 2, 1);
	put16(AVAIL + 4, UINT16_MAX);
	CU_ASSERT(pop() == -1 && strstr(why, "number that is none"));
	start();
	describe(DESC, 0, RAM - 4, 8, 0, 0); /* found when it is read */
	offer(0);
	CU_ASSERT(pop() == 1 && !virtqueue_read(&chain, &memory, 0, ram, 8));
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "places", test_places },
		{ "a chain", test_chain },
		{ "around the rings", test_around },
		{ "an indirect table", test_indirect },
		{ "broken queues", test_broken },
		{ "notifications wanted", test_notifications },
		{ "a late chain", test_race },
		{ "interrupts wanted", test_interrupts },
		UNIT_END
	};

	return UNIT_RUN("virtqueue", tests);
}
