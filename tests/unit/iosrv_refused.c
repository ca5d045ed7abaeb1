/* iosrv_refused.c - devices from a hostile file: a state that no chip can have is refused, with one
 * line. */
#include <string.h>
#include "base/guest_abi.h"
#include "tests/unit/iosrv_items.h"
#include "tests/unit/unit.h"

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
		    items[i].head.index == (chips_number(chip) << 16 | at / SNAPSHOT_PART_BYTES))
			return &items[i].data[at % SNAPSHOT_PART_BYTES];
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
		{ false, { { "dma_mode", 0 } } },
		{ false, { { "dma", 1 } } },
		{ false, { { "dma", 1 }, { "status", IDLE } } },
		{ false, { { "dma", 1 }, { "status", BUSY } } },
		{ true, { { "dma", 1 }, { "status", BUSY }, { "at", 0 }, { "block_bytes", 0 } } },
		{ true,
		  { { "dma", 1 },
		    { "status", BUSY },
		    { "at", 0 },
		    { "block_bytes", 0 },
		    { "writing", 0 } } },
		{ false,
		  { { "dma", 1 },
		    { "status", BUSY },
		    { "at", 0 },
		    { "block_bytes", 0 },
		    { "left", 65536 } } },
		{ false,
		  { { "dma", 1 },
		    { "status", BUSY },
		    { "at", 0 },
		    { "block_bytes", 0 },
		    { "left", 0 } } },
		{ false,
		  { { "dma", 1 },
		    { "status", BUSY },
		    { "at", 0 },
		    { "block_bytes", 0 },
		    { "identifying", 1 } } },
		{ false,
		  { { "dma", 1 },
		    { "status", BUSY },
		    { "at", 0 },
		    { "block_bytes", 0 },
		    { "control", 4 } } },
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

/* The same of the PCI bus and the bus master. */
static void registers_of_the_bus(void)
{
	static const struct {
		bool good, master;
		const char *field;
		unsigned element;
		uint64_t value;
	} rows[] = {
		{ true, false, "address", 0, 0x80000800 },
		{ false, false, "address", 0, 1 },
		{ false, false, "controller", 0, 0 }, /* the vendor */
		{ true, false, "controller", 4, 5 },
		{ false, false, "controller", 4, 2 },
		{ true, false, "controller", 0x21, 0xff },
		{ false, false, "controller", 0x20, 0 },
		{ false, false, "controller", 0x22, 1 },
		{ true, true, "cpu", 0, 1 },
		{ false, true, "cpu", 0, 2 },
		{ true, true, "command", 0, 9 },
		{ false, true, "command", 0, 2 },
		{ true, true, "status", 0, 0x66 },
		{ false, true, "status", 0, 0x80 },
		{ false, true, "status", 0, 1 }, /* active, and not started */
		{ false, true, "table", 0, 2 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		const struct chip *chip = rows[i].master ? &busmaster_chip : &pci_chip;

		write_half_a_sector();
		save();
		poke(chip, 0, field_named(chip, rows[i].field), rows[i].element, rows[i].value);
		CU_ASSERT(is_refused() == !rows[i].good);
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

int main(void)
{
	static const struct unit_test tests[] = {
		{ "illegal fields are refused", illegal_fields_are_refused },
		{ "contradictions are refused", contradictions_are_refused },
		{ "registers of the bus", registers_of_the_bus },
		{ "a read-only disk is not written", read_only_disk_is_not_written },
		{ "entries of the IO-APIC", entries_of_the_ioapic },
		{ "other versions are refused", other_versions_are_refused },
		UNIT_END
	};
	int status;

	if (!make_image())
		return 1;
	status = UNIT_RUN("snapshots that are refused", tests);
	remove_image();
	return status;
}
