/* Disks (iosrv/virtio_blk.c): requests, and what monitors may do with the image themselves. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "iosrv/diskimage.h"
#include "tests/unit/virtio_driver.h"

static char image[] = "/tmp/vmp-virtio-XXXXXX";

static int disk(uint32_t type, uint64_t sector, const void *data, uint32_t out_bytes,
		uint32_t in_bytes, void *to)
{
	static uint8_t bytes[VIRTIO_CHAIN_BYTES];
	struct {
		uint32_t type, reserved;
		uint64_t sector;
	} header = { type, 0, sector };
	int n;

	memcpy(bytes, &header, sizeof header);
	if (out_bytes)
		memcpy(bytes + sizeof header, data, out_bytes);
	request(VIRTIO_DISKS, 0, 9, bytes, sizeof header + out_bytes, in_bytes + 1);
	n = answer(9, bytes);
	if (n < 1)
		return -1;
	if (to)
		memcpy(to, bytes, (size_t)n - 1);
	return bytes[n - 1];
}

static void open_disk(const char *how)
{
	char spec[64], why[200] = "";
	struct msg_virtio_grant grant;

	snprintf(spec, sizeof spec, "%s%s", image, how);
	CU_ASSERT_EQUAL_FATAL(blk_open(0, spec, why, sizeof why), 0);
	fake_reset();
	out(VIRTIO_DISKS, VIRTIO_DEVICE_FEATURES_SEL, 0);
	initialize(VIRTIO_DISKS, in(VIRTIO_DISKS, VIRTIO_DEVICE_FEATURES), VERSION_1_HIGH);
	CU_ASSERT_EQUAL(in(VIRTIO_DISKS, VIRTIO_STATUS), 15);
	as_cpu(0);
	out(VIRTIO_DISKS, VIRTIO_QUEUE_NOTIFY, 0);
	CU_ASSERT(granted(0, &grant) && grant.event_idx == 1);
}

/* What a monitor of this host may do itself, and where the interrupt of what it has done goes. */
static void test_direct(void)
{
	enum { READ = VIRTIO_DIRECT_READ, WRITE = VIRTIO_DIRECT_WRITE, NO_FLUSH = 0 };
	static const struct {
		const char *how;
		uint32_t features, direct;
		int flags; /* of the file that the monitors get */
		bool undo; /* a checkpoint needs what is overwritten */
	} rows[] = {
		{ "", 1 << 9, READ | WRITE, O_RDWR, false },
		{ "", NO_FLUSH, READ, O_RDWR, false }, /* each write is flushed */
		{ "", 1 << 9, READ, O_RDONLY, true },
		{ ",ro", 1 << 9, READ, O_RDONLY, true },
		{ ",snapshot", 1 << 9, 0, -1, true },
	};
	enum { DISK_LINE = 9 };
	char path[] = "/tmp/vmp-virtio-XXXXXX", spec[64], why[200];
	struct msg_virtio_grant grant;
	int fd = mkstemp(path);

	CU_ASSERT_FATAL(fd >= 0 && !ftruncate(fd, 1 << 20));
	close(fd);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(spec, sizeof spec, "%s%s", path, rows[i].how);
		CU_ASSERT_EQUAL_FATAL(blk_open(0, spec, why, sizeof why), 0);
		if (rows[i].undo)
			CU_ASSERT_EQUAL(diskimage_keep_undo(blk_image(0), false, why, sizeof why),
					0);
		fake_reset();
		initialize(VIRTIO_DISKS, rows[i].features, VERSION_1_HIGH);
		mmio_write(VMP_IOAPIC_GPA, 0x10 + 2 * DISK_LINE);
		mmio_write(VMP_IOAPIC_GPA + 0x10, 0x51);
		as_cpu(0);
		out(VIRTIO_DISKS, VIRTIO_QUEUE_NOTIFY, 0);
		CU_ASSERT_TRUE(granted(0, &grant));
		CU_ASSERT_EQUAL(grant.direct & ~(uint32_t)VIRTIO_DIRECT_MEMORY, rows[i].direct);
		CU_ASSERT_EQUAL(grant.irq_cpu_mask, rows[i].direct ? 1 : 0);
		CU_ASSERT(!grant.irq_cpu_mask || grant.irq_vector == 0x51);
		fd = diskimage_open_shared(blk_image(0));
		CU_ASSERT_EQUAL(fd < 0 ? -1 : fcntl(fd, F_GETFL) & O_ACCMODE, rows[i].flags);
		close(fd);
		/* another route: a lease that sends interrupts itself comes back, and is granted
		 * with it */
		mmio_write(VMP_IOAPIC_GPA + 0x10, 0x51);
		CU_ASSERT_FALSE(told(0, VIRTIO_RECALL));
		mmio_write(VMP_IOAPIC_GPA + 0x10, 0x61);
		CU_ASSERT_EQUAL(told(0, VIRTIO_RECALL), rows[i].direct != 0);
		ask((struct msg_virtio){ .cpu = 0, .op = VIRTIO_RELEASE, .slot = VIRTIO_DISKS },
		    NULL, 0);
		CU_ASSERT_TRUE(granted(0, &grant));
		CU_ASSERT(!grant.irq_cpu_mask || grant.irq_vector == 0x61);
		diskimage_remove_undo(blk_image(0));
		blk_close();
	}
	unlink(path);
}

static void test_disk(void)
{
	enum { IN, OUT, FLUSH = 4, ID = 8, DISCARD = 11, ZEROES = 13 };
	static uint8_t data[40 << 10], back[40 << 10];
	struct {
		uint64_t sector;
		uint32_t count, flags;
	} range = { 8, 16, 0 };
	int fd = mkstemp(image);

	CU_ASSERT_FATAL(fd >= 0 && !ftruncate(fd, 1 << 20));
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7 + i / 512);
	open_disk("");
	CU_ASSERT(in(VIRTIO_DISKS, VIRTIO_CONFIG) == 2048 &&
		  in(VIRTIO_DISKS, VIRTIO_CONFIG + 12) == VIRTIO_SEGMENTS - 2);
	CU_ASSERT_EQUAL(disk(OUT, 3, data, sizeof data, 0, NULL), 0);
	CU_ASSERT(disk(IN, 3, NULL, 0, sizeof back, back) == 0 && !memcmp(data, back, sizeof data));
	CU_ASSERT(disk(IN, 2047, NULL, 0, 1024, back) == 1 &&
		  disk(OUT, ~0ull, data, 512, 0, NULL) == 1);
	CU_ASSERT(disk(IN, 0, NULL, 0, 100, back) == 1 && disk(99, 0, NULL, 0, 0, NULL) == 2);
	CU_ASSERT_EQUAL(disk(FLUSH, 0, NULL, 0, 0, NULL), 0);
	CU_ASSERT(disk(ID, 0, NULL, 0, 20, back) == 0 && !strcmp((char *)back, "vmp-disk-0"));
	CU_ASSERT_EQUAL(disk(ZEROES, 0, &range, sizeof range, 0, NULL), 0);
	CU_ASSERT(disk(IN, 8, NULL, 0, 8192, back) == 0 && !back[0] &&
		  !memcmp(back, back + 1, 8191));
	CU_ASSERT(disk(IN, 24, NULL, 0, 512, back) == 0 && !memcmp(back, data + 21 * 512, 512));
	CU_ASSERT_EQUAL(disk(DISCARD, 0, &range, sizeof range, 0, NULL), 0);
	range.sector = 2040;
	CU_ASSERT_EQUAL(disk(ZEROES, 0, &range, sizeof range, 0, NULL), 1);
	range.count = UINT32_MAX;
	CU_ASSERT(disk(ZEROES, 0, &range, sizeof range, 0, NULL) == 1 &&
		  disk(DISCARD, 0, &range, 5, 0, NULL) == 1);
	blk_close();
	open_disk(",ro");
	CU_ASSERT(disk(OUT, 3, data, 512, 0, NULL) == 1 && disk(FLUSH, 0, NULL, 0, 0, NULL) == 0);
	blk_close();
	open_disk(",snapshot");
	CU_ASSERT_EQUAL(disk(OUT, 100, data, 512, 0, NULL), 0);
	CU_ASSERT(disk(IN, 100, NULL, 0, 512, back) == 0 && !memcmp(back, data, 512));
	CU_ASSERT(pread(fd, back, 512, 51200) == 512 && memcmp(back, data, 512));
	blk_close();
	close(fd);
	unlink(image);
}

/* Bytes of the host's memory that the open image's overlay takes; -1: there is none. */
static int64_t overlay_bytes(void)
{
	char path[64], target[64];
	struct stat st;
	ssize_t n;

	for (int fd = 3; fd < 64; fd++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof target - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		if (strstr(target, "vmp-snapshot"))
			return fstat(fd, &st) ? -1 : st.st_blocks * 512;
	}
	return -1;
}

enum { GIB_SECTORS = 1 << 21, OUT = 1, DISCARD = 11, ZEROES = 13 };

static void open_large(const char *how, const void *data)
{
	int fd;

	memcpy(image + strlen(image) - 6, "XXXXXX", 6);
	fd = mkstemp(image);
	CU_ASSERT_FATAL(fd >= 0 && !ftruncate(fd, (off_t)GIB_SECTORS * 512 + 4096));
	CU_ASSERT(pwrite(fd, data, 8192, 0) == 8192 && pwrite(fd, data, 4096, 1 << 29) == 4096 &&
		  pwrite(fd, data, 4096, 1 << 30) == 4096);
	close(fd);
	open_disk(how);
}

/* In snapshot mode, zeroed blocks take no memory, also if the guest has written to them before;
 * only what is not zeroed as a whole block does. */
static void test_zeros_take_no_memory(void)
{
	struct { uint64_t sector; uint32_t count, flags; } range = { 1, GIB_SECTORS, 0 };
	uint8_t data[8192], back[8192];
	struct diskimage_copy *copy;
	uint64_t block = 0;

	memset(data, 7, sizeof data);
	open_large(",snapshot", data);
	for (unsigned i = 0; i < 64; i++) {
		CU_ASSERT_EQUAL(disk(OUT, 4096 + i * 16, data, sizeof data, 0, NULL), 0);
		fake.n_messages = 0;
	}
	CU_ASSERT(overlay_bytes() >= 64 * 8192);
	CU_ASSERT_EQUAL(disk(ZEROES, 0, &range, sizeof range, 0, NULL), 0);
	CU_ASSERT(overlay_bytes() >= 0 && overlay_bytes() <= 4 * 4096);
	CU_ASSERT(disk(0, 0, NULL, 0, 8192, back) == 0 && !memcmp(back, data, 512) && !back[512] &&
		  !memcmp(back + 512, back + 513, 8192 - 513));
	CU_ASSERT(disk(0, 4096, NULL, 0, 8192, back) == 0 && !back[0] &&
		  !memcmp(back, back + 1, 8191));
	CU_ASSERT(disk(0, 1 << 20, NULL, 0, 4096, back) == 0 && !back[0] &&
		  !memcmp(back, back + 1, 4095));
	CU_ASSERT(disk(0, GIB_SECTORS, NULL, 0, 4096, back) == 0 && !back[511] &&
		  !memcmp(back + 512, data, 3584));
	/* a checkpoint has the zeros, and puts them back */
	CU_ASSERT_EQUAL_FATAL(diskimage_copy_make(blk_image(0), SNAPSHOT_APART, &copy), 0);
	CU_ASSERT(diskimage_copy_next(copy, &block, back) == 4096 && block == 0 && back[0] == 7);
	block = 512;
	CU_ASSERT(diskimage_copy_next(copy, &block, back) == 4096 && block == 512 && !back[0] &&
		  !memcmp(back, back + 1, 4095));
	CU_ASSERT_EQUAL(disk(OUT, 4096, data, 4096, 0, NULL), 0);
	CU_ASSERT_EQUAL(diskimage_put_block(blk_image(0), 512, back, 4096), 0);
	CU_ASSERT(disk(0, 4096, NULL, 0, 4096, back) == 0 && !back[0] &&
		  !memcmp(back, back + 1, 4095));
	CU_ASSERT(overlay_bytes() <= 4 * 4096);
	diskimage_copy_free(copy);
	blk_close();
	unlink(image);
}

/* A request that zeroes or discards has its answer after some turns of the loop; between two of
 * them other requests are served, a flush, too. */
static void test_clearing_takes_turns(void)
{
	struct { uint32_t type, reserved; uint64_t sector, from; uint32_t count, flags; } ask = {
		.count = GIB_SECTORS
	};
	static const uint32_t types[] = { ZEROES, DISCARD };
	struct { uint32_t type, reserved; uint64_t sector; } flush = { .type = 4 };
	uint8_t data[8192], bytes[16];
	unsigned turns, flushed;

	memset(data, 7, sizeof data);
	for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
		open_large("", data);
		fake.slow = true;
		ask.type = types[i];
		ask.from = 0;
		ask.count = GIB_SECTORS;
		request(VIRTIO_DISKS, 0, 1, &ask, sizeof ask, 1);
		CU_ASSERT_EQUAL(answer(1, bytes), -1);
		CU_ASSERT(disk(OUT, GIB_SECTORS, data, 512, 0, NULL) == 0);
		request(VIRTIO_DISKS, 0, 2, &flush, sizeof flush, 1);
		for (turns = flushed = 0; fake.works; turns++) {
			fake_work();
			if (answer(2, bytes) == 1)
				flushed = turns + 1;
		}
		CU_ASSERT(turns > 64 && flushed && flushed < 4);
		fake.slow = false;
		CU_ASSERT(disk(0, 0, NULL, 0, 8192, data) == 0);
		CU_ASSERT(types[i] == DISCARD || (!data[0] && !memcmp(data, data + 1, 8191)));
		CU_ASSERT(disk(0, GIB_SECTORS, NULL, 0, 512, data) == 0 && data[0] == 7);
		memset(data, 7, sizeof data);
		/* nothing is done if a range leaves the image */
		ask.from = GIB_SECTORS - 16384;
		ask.count = 32768;
		CU_ASSERT(disk(OUT, ask.from, data, 512, 0, NULL) == 0 &&
			  disk(types[i], 0, &ask.from, 16, 0, NULL) == 1 &&
			  disk(0, ask.from, NULL, 0, 512, data) == 0 && data[0] == 7);
		blk_close();
		unlink(image);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "direct", test_direct },
		{ "disk", test_disk },
		{ "zeros take no memory", test_zeros_take_no_memory },
		{ "clearing takes turns", test_clearing_takes_turns },
		UNIT_END
	};

	return UNIT_RUN("disk", tests);
}
