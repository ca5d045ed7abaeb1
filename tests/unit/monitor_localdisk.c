/* Reads and writes of a disk's image by the monitor itself: monitor/localdisk.c.  What it does not
 * serve must be left to the I/O server. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/limits.h"
#include "monitor/localdisk.h"
#include "tests/unit/unit.h"

enum {
	RAM = 1 << 20,
	HEADER = 0x1000,
	STATUS = 0x2000,
	DATA = 0x10000,
	PIECE = 0x10000, /* between the buffers of a chain */
	SECTOR = VIRTIO_BLK_SECTOR_BYTES,
	SECTORS = 400,
	READ = VIRTIO_DIRECT_READ,
	WRITE = VIRTIO_DIRECT_WRITE,
	BOTH = READ | WRITE,
	IN = VIRTIO_BLK_IN,
	OUT = VIRTIO_BLK_OUT,
};

static uint8_t ram[RAM], image[SECTORS * SECTOR];
static int fd;
static struct virtqueue_chain chain;
static uint32_t written;

#include "tests/unit/virtqueue_ram.h"

/* The image as disk 1, with content that differs everywhere. */
static void start(int flags)
{
	char name[] = "/tmp/vmp-localdisk.XXXXXX";

	fd = mkstemp(name);
	for (unsigned i = 0; i < sizeof image; i++)
		image[i] = (uint8_t)(i * 7 + i / 251);
	CU_ASSERT_EQUAL_FATAL(write(fd, image, sizeof image), (ssize_t)sizeof image);
	close(fd);
	fd = open(name, flags);
	unlink(name);
	localdisk_open((const int[MAX_DISKS]){ -1, fd, -1, -1 });
	memset(ram, 0, sizeof ram);
	ram[STATUS] = 0xee;
}

static void add(uint64_t gpa, uint32_t bytes)
{
	chain.segment[chain.segments].gpa = gpa;
	chain.segment[chain.segments++].bytes = bytes;
}

/* Make `chain` a request with `pieces` buffers for its data. */
static void request(uint32_t type, uint64_t sector, uint32_t bytes, unsigned pieces)
{
	struct virtio_blk_header header = { .type = type, .sector = sector };

	memcpy(ram + HEADER, &header, sizeof header);
	chain.segments = 0;
	chain.out_bytes = sizeof header + (type == OUT ? bytes : 0);
	chain.in_bytes = 1 + (type == OUT ? 0 : bytes);
	add(HEADER, sizeof header);
	for (unsigned i = 0; i < pieces; i++)
		add(DATA + i * PIECE, bytes / pieces + (i ? 0 : bytes % pieces));
	chain.out_segments = type == OUT ? chain.segments : 1;
	add(STATUS, 1);
}

static bool serve(void)
{
	written = 77;
	return localdisk_serve(1, BOTH, &chain, &memory, &written);
}

static bool serve_request(uint32_t type, uint64_t sector, uint32_t bytes)
{
	request(type, sector, bytes, 1);
	return serve();
}

static void test_read(void)
{
	start(O_RDWR);
	CU_ASSERT_TRUE(serve_request(IN, 3, 1024));
	CU_ASSERT(!memcmp(ram + DATA, image + 3 * SECTOR, 1024) && !ram[DATA + 1024]);
	CU_ASSERT(ram[STATUS] == VIRTIO_BLK_OK && written == 1025);
	request(IN, 1, 300 * SECTOR, 3); /* longer than the buffer of localdisk.c */
	CU_ASSERT_TRUE(serve());
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT(!memcmp(ram + DATA + i * PIECE, image + (1 + i * 100) * SECTOR,
				  100 * SECTOR));
	CU_ASSERT_TRUE(serve_request(IN, SECTORS - 1, SECTOR));
	request(IN, 2, 2 * SECTOR, 1);
	CU_ASSERT_TRUE(localdisk_serve(1, READ | VIRTIO_DIRECT_MEMORY, &chain, &memory, &written));
	CU_ASSERT(!memcmp(ram + DATA, image + 2 * SECTOR, 2 * SECTOR));
	close(fd);
}

static void test_write(void)
{
	uint8_t back[4 * SECTOR];

	start(O_RDWR);
	request(OUT, 5, sizeof back, 3); /* 684, 682 and 682 bytes */
	for (unsigned i = 0; i < 3; i++)
		memset(ram + DATA + i * PIECE, 'a' + (int)i, PIECE);
	CU_ASSERT_TRUE(serve());
	CU_ASSERT(ram[STATUS] == VIRTIO_BLK_OK && written == 1);
	CU_ASSERT_EQUAL(pread(fd, back, sizeof back, 5 * SECTOR), (ssize_t)sizeof back);
	for (unsigned i = 0; i < sizeof back; i++)
		CU_ASSERT_EQUAL(back[i], i < 684 ? 'a' : i < 684 + 682 ? 'b' : 'c');
	CU_ASSERT_EQUAL(pread(fd, back, SECTOR, 9 * SECTOR), SECTOR);
	CU_ASSERT(!memcmp(back, image + 9 * SECTOR, SECTOR));
	close(fd);
}

/* Each request that is left to the I/O server: nothing may change on the disk. */
static void test_refused(void)
{
	static const struct {
		unsigned slot;
		uint32_t direct, type;
		uint64_t sector;
		uint32_t bytes;
	} rows[] = {
		{ 0, BOTH, IN, 0, SECTOR }, /* no such disk */
		{ MAX_DISKS, BOTH, IN, 0, SECTOR },
		{ VIRTIO_CONSOLE, BOTH, OUT, 0, SECTOR },
		{ UINT32_MAX, BOTH, OUT, 0, SECTOR },
		{ 1, WRITE, IN, 0, SECTOR }, /* no right */
		{ 1, READ, OUT, 0, SECTOR },
		{ 1, 0, IN, 0, SECTOR },
		{ 1, BOTH, 4, 0, 0 }, /* a flush, the name, a discard, nothing known */
		{ 1, BOTH, 8, 0, 20 },
		{ 1, BOTH, 11, 0, SECTOR },
		{ 1, BOTH, UINT32_MAX, 0, SECTOR },
		{ 1, BOTH, IN, 0, 0 }, /* no data, or no whole sectors */
		{ 1, BOTH, OUT, 0, 0 },
		{ 1, BOTH, IN, 0, SECTOR - 1 },
		{ 1, BOTH, OUT, 0, SECTOR + 1 },
		{ 1, BOTH, IN, SECTORS, SECTOR }, /* beyond the end */
		{ 1, BOTH, OUT, SECTORS, SECTOR },
		{ 1, BOTH, OUT, SECTORS - 1, 2 * SECTOR },
		{ 1, BOTH, IN, UINT64_MAX, SECTOR },
		{ 1, BOTH, OUT, UINT64_MAX / SECTOR + 1, SECTOR }, /* byte 0, modulo 2^64 */
	};
	static uint8_t back[sizeof image + 1];

	start(O_RDWR);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		request(rows[i].type, rows[i].sector, rows[i].bytes, 1);
		written = 77;
		CU_ASSERT_FALSE(localdisk_serve(rows[i].slot, rows[i].direct, &chain, &memory,
						&written));
		CU_ASSERT(ram[STATUS] == 0xee && written == 77);
	}
	CU_ASSERT_EQUAL(pread(fd, back, sizeof back, 0), (ssize_t)sizeof image);
	CU_ASSERT(!memcmp(back, image, sizeof image));
	close(fd);
}

/* A chain whose header, data or status is not in RAM, or that has none of them. */
static void test_bad_chains(void)
{
	start(O_RDWR);
	for (unsigned i = 0; i < 3; i++)
		for (uint32_t type = IN; type <= OUT; type++) {
			request(type, 0, SECTOR, 1);
			chain.segment[i].gpa = RAM;
			CU_ASSERT_FALSE(serve());
		}
	request(IN, 0, SECTOR, 1);
	chain.out_bytes = chain.segment[0].bytes = sizeof(struct virtio_blk_header) - 1;
	CU_ASSERT_FALSE(serve());
	request(OUT, 0, SECTOR, 1);
	chain.in_bytes = 0;
	chain.segments--;
	CU_ASSERT_FALSE(serve());
	close(fd);
}

/* What the host refuses: a write to a file that is open for reading, or beyond a limit; a read
 * behind the end of an image that has become shorter. */
static void test_errors(void)
{
	struct rlimit limit, before;

	start(O_RDONLY);
	CU_ASSERT_TRUE(serve_request(IN, 0, SECTOR));
	ram[STATUS] = 0xee;
	CU_ASSERT_FALSE(serve_request(OUT, 0, SECTOR));
	CU_ASSERT_EQUAL(ram[STATUS], 0xee);
	close(fd);
	start(O_RDWR);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = SECTOR;
	setrlimit(RLIMIT_FSIZE, &limit);
	CU_ASSERT_FALSE(serve_request(OUT, 1, SECTOR));
	CU_ASSERT_FALSE(serve_request(OUT, 0, 2 * SECTOR)); /* its first half is written */
	setrlimit(RLIMIT_FSIZE, &before);
	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, SECTOR), 0);
	CU_ASSERT_FALSE(serve_request(IN, 0, 2 * SECTOR));
	CU_ASSERT_TRUE(serve_request(IN, 0, SECTOR));
	close(fd);
}

static void test_no_disks(void)
{
	static const int fds[][MAX_DISKS] = { { -1, -1, -1, -1 }, { 999, 999, 999, 999 } };

	for (unsigned i = 0; i < ARRAY_LEN(fds); i++) {
		localdisk_open(fds[i]);
		CU_ASSERT_FALSE(serve_request(IN, 0, SECTOR));
		CU_ASSERT_FALSE(serve_request(OUT, 0, SECTOR));
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "reads", test_read },
		{ "writes", test_write },
		{ "what is left to the I/O server", test_refused },
		{ "bad chains", test_bad_chains },
		{ "errors of the host", test_errors },
		{ "no disks", test_no_disks },
		UNIT_END
	};

	return UNIT_RUN("localdisk", tests);
}
