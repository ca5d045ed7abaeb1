/* iosrv_snapshot.c - devices as items: each chip's state, sent through items into a chip that was
 * reset, is the same chip.  A disk's separate blocks are included.  Items that are wrong, or are
 * not this machine's, are refused, with one line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "iosrv/diskimage.h"
#include "tests/unit/iosrv_items.h"
#include "tests/unit/unit.h"
#include "vmm/cli/snapshot/snapfile.h"

static void each_chip_comes_back(void)
{
	const struct fake_message *room;

	put_chips_to_work();
	save();
	fake_reset();
	load();
	CU_ASSERT(port_in(VMP_UART_PORT + 7, 1) == 0x5a);
	CU_ASSERT(port_in(VMP_UART_PORT, 1) == 't');
	CU_ASSERT(fake.timer[CHIP_uart]);
	CU_ASSERT(port_in(stream_reg(0, VMP_STREAM_STATUS), 4) == 4);
	CU_ASSERT(port_in(stream_reg(0, VMP_STREAM_DATA), 1) == 'e');
	mmio_write(VMP_IOAPIC_GPA, 0x18);
	CU_ASSERT(mmio_read(VMP_IOAPIC_GPA + 0x10) == 0x31);
	/* the new command line is told how much input there is room for */
	room = fake_take(MSG_STREAM_ROOM);
	CU_ASSERT_FATAL(room != NULL);
	CU_ASSERT(((const struct msg_stream_room *)room->body)->bytes == 65536 - 4);
}

/* A writer that waited for a reader who is gone finds a new reader. */
static void output_has_a_new_reader(void)
{
	uint8_t bytes[4096] = { 0 };

	fake_reset();
	for (unsigned i = 0; i < 16; i++)
		port_outs(stream_reg(1, VMP_STREAM_DATA), 1, sizeof bytes, bytes);
	CU_ASSERT(port_in(stream_reg(1, VMP_STREAM_STATUS), 4) == 0);
	port_out(stream_reg(1, VMP_STREAM_IRQ_ENABLE), 4, 1);
	stream_input(&(struct msg_stream){ .stream = 2, .eof = 1 }, NULL, 0);
	save();
	fake_reset();
	load();
	CU_ASSERT(fake_edges(VMP_STREAM_IRQ) == 1);
	CU_ASSERT(port_in(stream_reg(1, VMP_STREAM_STATUS), 4) == 65536);
	CU_ASSERT(port_in(stream_reg(2, VMP_STREAM_STATUS), 4) == 65536);
}

/* In the middle of a sector: half of it is written before the save, half after. */
static void disk_in_the_middle_of_a_write(void)
{
	uint8_t sector[512], back[512];

	for (unsigned i = 0; i < sizeof sector; i++)
		sector[i] = i ^ 0x55;
	fake_reset();
	open_disk(",snapshot");
	issue(0x30, 9);
	port_outs(DATA, 2, 256, sector);
	issue(0x30, 99);
	port_outs(DATA, 2, 128, sector);
	save();
	fake_reset();
	open_disk(",snapshot");
	load();
	port_outs(DATA, 2, 128, sector + 256);
	issue(0x20, 99);
	port_ins(DATA, 2, 256, back);
	CU_ASSERT(!memcmp(sector, back, sizeof sector));
	issue(0x20, 9);
	port_ins(DATA, 2, 256, back);
	CU_ASSERT(!memcmp(sector, back, sizeof sector));
	ide_close();
}

static uint64_t saved_blocks(enum snapshot_mode mode)
{
	uint64_t blocks = 0;

	save_as(mode);
	for (unsigned i = 0; i < n_items; i++)
		if (items[i].head.kind == SNAPSHOT_BLOCK)
			blocks |= 1ull << items[i].head.index;
	return blocks;
}

/* A checkpoint must hold what was written since the last checkpoint, whatever snapshots were made
 * in between. */
static void a_checkpoint_has_the_blocks_that_changed(void)
{
	uint8_t two[1024] = { 1 };

	fake_reset();
	open_disk(",snapshot");
	CU_ASSERT_EQUAL(diskimage_write(ide_image(), 8, 1, two), 0);
	/* the last sector of block 3, and the first of 4 */
	CU_ASSERT_EQUAL(diskimage_write(ide_image(), 31, 2, two), 0);
	CU_ASSERT_EQUAL(saved_blocks(SNAPSHOT_APART), 1 << 1 | 1 << 3 | 1 << 4);
	CU_ASSERT_EQUAL(saved_blocks(CHECKPOINT_WHOLE), 1 << 1 | 1 << 3 | 1 << 4);
	CU_ASSERT_EQUAL(saved_blocks(CHECKPOINT_CHANGES), 0);
	CU_ASSERT_EQUAL(diskimage_write(ide_image(), 24, 1, two), 0);
	/* a block that is not whole */
	CU_ASSERT_EQUAL(diskimage_write(ide_image(), DISK_SECTORS - 1, 1, two), 0);
	CU_ASSERT_EQUAL(saved_blocks(SNAPSHOT_APART), 1 << 1 | 1 << 3 | 1 << 4 | 1 << 12);
	CU_ASSERT_EQUAL(saved_blocks(CHECKPOINT_CHANGES), 1 << 3 | 1 << 12);
	CU_ASSERT_EQUAL(saved_blocks(CHECKPOINT_CHANGES), 0);
	CU_ASSERT_EQUAL(saved_blocks(CHECKPOINT_WHOLE), 1 << 1 | 1 << 3 | 1 << 4 | 1 << 12);
	ide_close();
}

/* Each of several disks gets back its own, whichever of them is the IDE disk. */
static void several_disks(void)
{
	static const uint8_t sector[512] = { 7 }, other[512] = { 9 };
	char spec[64], why[200];
	uint8_t back[512];

	for (unsigned ide = 0; ide < 3; ide++) {
		struct diskimage *image[3];

		for (unsigned round = 0; round < 2; round++) {
			fake_reset();
			snprintf(spec, sizeof spec, "%s,snapshot", image_path);
			for (unsigned i = 0; i < 3; i++) {
				if (i == ide)
					open_disk(",snapshot");
				else
					CU_ASSERT_FATAL(!blk_open(i, spec, why, sizeof why));
				image[i] = i == ide ? ide_image() : blk_image(i);
			}
			fake_reset();
			if (!round) {
				CU_ASSERT(!diskimage_write(image[0], 8, 1, sector));
				CU_ASSERT(!diskimage_write(image[2], 16, 1, other));
				save();
			} else {
				load();
			}
			if (round) {
				CU_ASSERT(!diskimage_read(image[0], 8, 1, back) &&
					  !memcmp(back, sector, 512));
				CU_ASSERT(!diskimage_read(image[1], 8, 1, back) && !back[0]);
				CU_ASSERT(!diskimage_read(image[2], 16, 1, back) &&
					  !memcmp(back, other, 512));
				fake.may_fail = true; /* a disk that is not there */
				snapshot_load(
					&(struct msg_snapshot_item){
						.kind = SNAPSHOT_BLOCK,
						.index = 3u << SNAPSHOT_DISK_SHIFT },
					back, 512);
				CU_ASSERT_EQUAL(fake.failures, 1);
			}
			ide_close();
			blk_close();
		}
	}
}

static void changed_disk_is_refused(void)
{
	int fd = open(image_path, O_WRONLY);

	fake_reset();
	open_disk(",ro");
	save();
	CU_ASSERT(pwrite(fd, "changed", 7, 512) == 7);
	close(fd);
	fake_reset();
	open_disk(",ro");
	fake.may_fail = true;
	load();
	CU_ASSERT(fake.failures == 1);
	ide_close();
	fake.failures = 0;
	load(); /* no disk at all */
	CU_ASSERT(fake.failures == 1);
}

static void wrong_items_are_refused(void)
{
	put_chips_to_work();
	save();
	fake.may_fail = true;
	snapshot_load(&items[0].head, items[0].data, items[0].bytes - 1); /* short */
	CU_ASSERT(fake.failures == 1);
	items[0].head.index = 99 << 16; /* no such chip */
	snapshot_load(&items[0].head, items[0].data, items[0].bytes);
	CU_ASSERT(fake.failures == 2);
	snapshot_load(&(struct msg_snapshot_item){ .kind = SNAPSHOT_PAGE }, "wrong item", 10);
	CU_ASSERT(fake.failures == 3);
	snapshot_load(&(struct msg_snapshot_item){ .kind = SNAPSHOT_BLOCK }, "wrong item", 10);
	CU_ASSERT(fake.failures == 4);
	/* parts are missing */
	snapshot_load(&(struct msg_snapshot_item){ .kind = SNAPSHOT_LAST }, NULL, 0);
	CU_ASSERT(fake.failures == 5);
}

/* Sectors that are not there, if the caller forgets to check. */
static void image_has_bounds(void)
{
	static const struct { uint64_t sector; unsigned count;
	} rows[] = {
		{ DISK_SECTORS, 1 },
		{ DISK_SECTORS - 1, 2 },
		{ 0, DISK_SECTORS + 1 },
		{ 0, 0 },
		{ ~0ull, 1 },
		{ 1ull << 55, 16 },
		{ 1, ~0u },
	};
	static uint8_t bytes[512 * 16];

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		open_disk(i & 1 ? "" : ",snapshot");
		CU_ASSERT(diskimage_read(ide_image(), rows[i].sector, rows[i].count, bytes) ==
			  -ERANGE);
		CU_ASSERT(diskimage_write(ide_image(), rows[i].sector, rows[i].count, bytes) ==
			  -ERANGE);
	}
	ide_close();
}

/* The saved form of all chips: their numbers, their fields and what else begins each item. */
static uint32_t form_of_chips(void)
{
	uint32_t hash = 0;
	uint8_t *saved;

	fake_reset();
	for (unsigned chip = 0; chip < N_CHIPS; chip++) {
		uint32_t bytes = chipstate_bytes(chips[chip]), fingerprint;

		saved = malloc(bytes);
		CU_ASSERT_FATAL(saved != NULL);
		chipstate_save(chips[chip], saved);
		memcpy(&fingerprint, saved, sizeof fingerprint);
		hash = (hash * 31 + bytes) * 31 + fingerprint;
		free(saved);
	}
	return hash * 31 + SNAPSHOT_KINDS;
}

/* A file of a vmp whose chips differ must be refused by its version, in one line for the user, not
 * in the middle of a load. */
static void another_form_has_another_version(void)
{
	static const struct { uint32_t version, form; } row[] = {
#define FORM(version, form) { version, form },
#include "iosrv/forms.def"
#undef FORM
	};
	enum { LAST = ARRAY_LEN(row) - 1 };
	uint32_t form = form_of_chips();

	if (form != row[LAST].form)
		fprintf(stderr, "saved devices have another form: append this to iosrv/forms.def:\n"
				"FORM(%u, %#x)\n", row[LAST].version + 1, form);
	CU_ASSERT_EQUAL(form, row[LAST].form);
	for (unsigned i = 1; i <= LAST; i++)
		CU_ASSERT_EQUAL(row[i].version, row[i - 1].version + 1);
	CU_ASSERT_EQUAL(row[LAST].version, SNAPFILE_VERSION);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "each chip comes back", each_chip_comes_back },
		{ "output has a new reader", output_has_a_new_reader },
		{ "disk in the middle of a write", disk_in_the_middle_of_a_write },
		{ "a checkpoint has the blocks that changed",
		  a_checkpoint_has_the_blocks_that_changed },
		{ "several disks", several_disks },
		{ "changed disk is refused", changed_disk_is_refused },
		{ "wrong items are refused", wrong_items_are_refused },
		{ "an image has bounds", image_has_bounds },
		{ "another form has another version", another_form_has_another_version },
		UNIT_END
	};
	int status;

	if (!make_image())
		return 1;
	status = UNIT_RUN("snapshot", tests);
	remove_image();
	return status;
}
