/* Disks (iosrv/virtio_blk.c): requests, and what monitors may do with the image themselves. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

int main(void)
{
	static const struct unit_test tests[] = {
		{ "direct", test_direct },
		{ "disk", test_disk },
		UNIT_END
	};

	return UNIT_RUN("disk", tests);
}
