/* iosrv_snapshot.c - devices as items: each chip's state, sent through items into a chip that was
 * reset, is the same chip.  A disk's separate blocks are included.  An impossible state is refused,
 * with one line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "iosrv/diskimage.h"
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

enum {
	DATA = VMP_IDE_PORT,
	NSECT = DATA + 2,
	LBAL,
	LBAM,
	LBAH,
	DEVICE,
	COMMAND,
	DISK_SECTORS = 100
};

static char path[] = "/tmp/vmp-snap-XXXXXX", why[256];
static struct item {
	struct msg_snapshot_item head;
	size_t bytes;
	uint8_t data[MAX_MSG_PAYLOAD];
} items[96];
static unsigned n_items;

static void open_disk(const char *mode)
{
	char spec[64];

	ide_close();
	snprintf(spec, sizeof spec, "%s%s", path, mode);
	CU_ASSERT_FATAL(ide_open(spec, why, sizeof why) == 0);
}

/* Takes all items of the chips' current state; of the disk, the blocks that the mode asks for. */
static void save_as(enum snapshot_mode mode)
{
	fake.n_messages = n_items = 0;
	CU_ASSERT_FATAL(snapshot_capture(mode) == 0);
	fake.n_messages = 0;
	for (;;) {
		snapshot_pull(&(struct msg_snapshot_pull){ .seq = 7, .count = 1 });
		CU_ASSERT_FATAL(fake.n_messages == 1 &&
				fake.messages[0].type == MSG_SNAPSHOT_ITEM &&
				n_items < ARRAY_LEN(items));
		memcpy(&items[n_items].head, fake.messages[0].body, sizeof items[0].head);
		items[n_items].bytes = fake.messages[0].payload_bytes;
		memcpy(items[n_items].data, fake.messages[0].payload, items[n_items].bytes);
		fake.n_messages = 0;
		CU_ASSERT(items[n_items].head.seq == 7);
		if (items[n_items++].head.kind == SNAPSHOT_LAST)
			break;
	}
	CU_ASSERT(items[n_items - 1].head.index == n_items - 1);
	snapshot_pull(&(struct msg_snapshot_pull){ .count = 5 });
	CU_ASSERT(fake.n_messages == 0); /* the copy is gone */
}

static void save(void) { save_as(SNAPSHOT_APART); }

static void load(void)
{
	for (unsigned i = 0; i < n_items; i++) {
		snapshot_load(&items[i].head, items[i].data, items[i].bytes);
		if (items[i].head.kind != SNAPSHOT_LAST)
			fake.n_messages = 0;
	}
}

static uint32_t stream_reg(unsigned s, unsigned r) { return VMP_STREAM_PORT + 16 * s + r; }

static void put_chips_to_work(void)
{
	fake_reset();
	port_out(VMP_UART_PORT + 7, 1, 0x5a);
	port_out(VMP_UART_PORT + 4, 1, 0x0b);
	port_out(VMP_UART_PORT, 1, 'x'); /* the transmitter is draining */
	uart_input("typed", 5);
	stream_input(&(struct msg_stream){ .stream = 0 }, "hello", 5);
	port_in(stream_reg(0, VMP_STREAM_DATA), 1);
	port_out(stream_reg(0, VMP_STREAM_IRQ_ENABLE), 4, 1);
	fake_edges(VMP_STREAM_IRQ);
	mmio_write(VMP_IOAPIC_GPA, 0x18);
	mmio_write(VMP_IOAPIC_GPA + 0x10, 0x31);
}

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

static void issue(uint8_t command, uint32_t lba)
{
	port_out(NSECT, 1, 1);
	port_out(LBAL, 1, lba);
	port_out(LBAM, 1, 0);
	port_out(LBAH, 1, 0);
	port_out(DEVICE, 1, 0xe0);
	port_out(COMMAND, 1, command);
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
			snprintf(spec, sizeof spec, "%s,snapshot", path);
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
	int fd = open(path, O_WRONLY);

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
	snapshot_load(&(struct msg_snapshot_item){ .kind = SNAPSHOT_PAGE }, why, 10);
	CU_ASSERT(fake.failures == 3);
	snapshot_load(&(struct msg_snapshot_item){ .kind = SNAPSHOT_BLOCK }, why, 10);
	CU_ASSERT(fake.failures == 4);
	/* parts are missing */
	snapshot_load(&(struct msg_snapshot_item){ .kind = SNAPSHOT_LAST }, NULL, 0);
	CU_ASSERT(fake.failures == 5);
}

/* ---- a hostile file ---- */

static size_t offset_of(const struct chip *chip, unsigned copy, const struct chipstate_field *field,
			unsigned element)
{
	const struct chipstate_field *f = chip->state.field;
	size_t one = (chipstate_bytes(chip) - 4) / chip->state.copies,
	       at = 4 + copy * one + (size_t)element * field->bytes;

	for (; f != field; f++)
		at += (size_t)f->bytes * f->count;
	return at;
}

static const struct chipstate_field *field_named(const struct chip *chip, const char *name)
{
	for (unsigned i = 0; i < chip->state.n_fields; i++)
		if (!strcmp(chip->state.field[i].name, name))
			return &chip->state.field[i];
	CU_FAIL_FATAL("no such field");
	return NULL;
}

/* Returns a byte of a chip's saved form, in the items that were saved last. */
static uint8_t *saved_byte(const struct chip *chip, size_t at)
{
	for (unsigned i = 0; i < n_items; i++)
		if (items[i].head.kind == SNAPSHOT_CHIP &&
		    items[i].head.index == (chips_number(chip) << 16 | at / MAX_MSG_PAYLOAD))
			return &items[i].data[at % MAX_MSG_PAYLOAD];
	CU_FAIL_FATAL("no such byte");
	return NULL;
}

static void poke(const struct chip *chip, unsigned copy, const struct chipstate_field *field,
		 unsigned element, uint64_t value)
{
	for (unsigned i = 0; i < field->bytes; i++)
		*saved_byte(chip, offset_of(chip, copy, field, element) + i) = value >> 8 * i;
}

static bool is_refused(void)
{
	fake_reset();
	fake.may_fail = true;
	load();
	CU_ASSERT(fake.failures <= 1); /* one line */
	return fake.failures == 1;
}

/* Tries the smallest and the largest value of each field of each chip, and the next ones beyond. */
static void illegal_fields_are_refused(void)
{
	put_chips_to_work();
	save();
	CU_ASSERT(!is_refused());
	for (unsigned n = 0; n < N_CHIPS; n++)
		for (unsigned i = 0; i < chips[n]->state.n_fields; i++) {
			const struct chipstate_field *f = &chips[n]->state.field[i];
			uint64_t all = ~0ull >> (64 - 8 * f->bytes);
			unsigned copy = chips[n]->state.copies - 1;

			if (f->most < all) {
				put_chips_to_work();
				save();
				poke(chips[n], copy, f, f->count - 1, f->most + 1);
				CU_ASSERT(is_refused());
			}
			if (f->least > 0) {
				put_chips_to_work();
				save();
				poke(chips[n], copy, f, f->count - 1, f->least - 1);
				CU_ASSERT(is_refused());
			}
		}
}

static void write_half_a_sector(void)
{
	uint8_t sector[512] = { 0 };

	fake_reset();
	open_disk(",snapshot");
	issue(0x30, 9);
	port_outs(DATA, 2, 128, sector);
}

/* States of a disk that are impossible although each field is legal; made from a write in the
 * middle of a sector. */
static void contradictions_are_refused(void)
{
	enum { BUSY = 0x80, IDLE = 0x50, DRQ = 0x58 };
	static const struct {
		bool good;
		struct {
			const char *field;
			uint64_t value;
		} is[5];
	} rows[] = {
		{ true, { { "writing", 1 } } },
		{ true, { { "sector", DISK_SECTORS - 1 } } },
		{ false, { { "sector", DISK_SECTORS } } },
		{ false, { { "sector", 1ull << 55 } } },
		{ false, { { "sector", ~0ull } } },
		{ false, { { "identifying", 1 } } },
		/* was written beyond the image's maps */
		{ false, { { "identifying", 1 }, { "sector", 1ull << 55 } } },
		{ true, { { "identifying", 1 }, { "writing", 0 } } },
		{ false, { { "identifying", 1 }, { "writing", 0 }, { "left", 2 } } },
		{ false, { { "block_bytes", 0 } } },
		{ false, { { "block_bytes", 0 }, { "at", 0 } } },
		{ false, { { "block_bytes", 0 }, { "at", 0 }, { "sector", 1ull << 55 } } },
		{ false, { { "block_bytes", 511 } } },
		{ false, { { "block_bytes", 1024 } } },
		{ true, { { "block_bytes", 1024 }, { "block_sectors", 2 }, { "left", 2 } } },
		{ false,
		  { { "block_bytes", 1024 },
		    { "block_sectors", 2 },
		    { "left", 2 },
		    { "sector", DISK_SECTORS - 1 } } },
		{ false, { { "block_sectors", 0 } } },
		{ false, { { "left", 0 } } },
		{ false, { { "left", 65536 } } },
		{ true, { { "at", 511 } } },
		{ false, { { "at", 512 } } },
		{ false, { { "status", IDLE } } },
		{ true, { { "status", IDLE }, { "at", 0 }, { "left", 0 }, { "block_bytes", 0 } } },
		{ false,
		  { { "status", IDLE },
		    { "at", 0 },
		    { "left", 0 },
		    { "block_bytes", 0 },
		    { "identifying", 1 } } },
		{ false, { { "status", BUSY }, { "at", 0 }, { "left", 0 }, { "block_bytes", 0 } } },
		{ true,
		  { { "status", BUSY },
		    { "at", 0 },
		    { "left", 0 },
		    { "block_bytes", 0 },
		    { "control", 4 } } },
		{ false, { { "status", 0xff } } },
		{ false, { { "status", BUSY | DRQ } } },
		{ false, { { "multiple", 3 } } },
		{ true, { { "multiple", 0 } } },
	};

	for (unsigned r = 0; r < ARRAY_LEN(rows); r++) {
		write_half_a_sector();
		save();
		for (unsigned i = 0; i < ARRAY_LEN(rows[r].is) && rows[r].is[i].field; i++)
			poke(&ide_chip, 0, field_named(&ide_chip, rows[r].is[i].field), 0,
			     rows[r].is[i].value);
		CU_ASSERT(is_refused() == !rows[r].good);
		/* it stays within the disk, whatever was said */
		for (unsigned i = 0; i < 4096; i++)
			port_out(DATA, 4, i);
		port_out(COMMAND, 1, 0xec);
		for (unsigned i = 0; i < 4096; i++)
			port_in(DATA, 4);
	}
	ide_close();
}

static void read_only_disk_is_not_written(void)
{
	write_half_a_sector();
	save();
	open_disk(",ro");
	CU_ASSERT(is_refused());
	ide_close();
}

static void entries_of_the_ioapic(void)
{
	put_chips_to_work();
	save();
	/* "being delivered": not the guest's to say */
	poke(&ioapic_chip, 0, field_named(&ioapic_chip, "entry"), 46, 1 << 12);
	CU_ASSERT(is_refused());
	put_chips_to_work();
	save();
	poke(&ioapic_chip, 0, field_named(&ioapic_chip, "id"), 0, 1);
	CU_ASSERT(is_refused());
}

/* A snapshot of a version whose chips have different fields. */
static void other_versions_are_refused(void)
{
	for (unsigned n = 0; n < N_CHIPS; n++) {
		put_chips_to_work();
		save();
		*saved_byte(chips[n], 0) ^= 1; /* the form's fingerprint */
		CU_ASSERT(is_refused());
		CU_ASSERT(port_in(VMP_UART_PORT + 7, 1) == 0); /* no chip was touched */
	}
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
		{ "illegal fields are refused", illegal_fields_are_refused },
		{ "contradictions are refused", contradictions_are_refused },
		{ "a read-only disk is not written", read_only_disk_is_not_written },
		{ "entries of the IO-APIC", entries_of_the_ioapic },
		{ "other versions are refused", other_versions_are_refused },
		{ "an image has bounds", image_has_bounds },
		UNIT_END
	};
	int fd = mkstemp(path), status;

	if (fd < 0 || ftruncate(fd, DISK_SECTORS * 512))
		return 1;
	close(fd);
	status = UNIT_RUN("snapshot", tests);
	unlink(path);
	return status;
}
