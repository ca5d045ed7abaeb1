/* chips.c - the table of chips; passes each access to the chip that answers it.  An address without
 * a chip reads as all ones. */
#include "iosrv/iosrv.h"

#include <string.h>
#include "base/log.h"

const struct chip *const chips[N_CHIPS] = {
#define X(name) &name##_chip,
#include "iosrv/chips.def"
#undef X
};

unsigned chips_number(const struct chip *chip)
{
	unsigned i = 0;

	while (i < N_CHIPS && chips[i] != chip)
		i++;
	bug_on(i == N_CHIPS);
	return i;
}

void chips_reset(void)
{
	for (unsigned i = 0; i < N_CHIPS; i++)
		chips[i]->reset();
}

void chips_flush(void)
{
	for (unsigned i = 0; i < N_CHIPS; i++)
		if (chips[i]->flush)
			chips[i]->flush();
}

/* Set the chip's offset of an address; false: the address is not the chip's. */
static bool offset_in(const struct chip *chip, uint32_t address, bool mmio, uint32_t *offset)
{
	uint32_t before = 0;

	for (unsigned i = 0; i < CHIP_RANGES; before += chip->range[i++].count) {
		const struct chip_range *range = &chip->range[i];
		uint32_t first = chip->base ? chip->base() : range->first;

		if (range->mmio == mmio && address - first < range->count) {
			*offset = before + (address - first);
			return !chip->base || first;
		}
	}
	return false;
}

/* Return the chip that answers an address, and set its offset there; NULL: no chip. */
static const struct chip *chip_at(uint32_t address, bool mmio, uint32_t *offset)
{
	for (unsigned i = 0; i < N_CHIPS; i++)
		if (offset_in(chips[i], address, mmio, offset))
			return chips[i];
	return NULL;
}

static uint32_t ones(unsigned size)
{
	return size == 4 ? ~0u : (1u << 8 * size) - 1;
}

/* Log an access without a chip, once per port: Linux probes for a hundred old devices, for some of
 * them often. */
static void tell_absent(const struct msg_io_request *q)
{
	static uint8_t told[65536 / 8];
	bool port = q->kind <= IO_PORT_OUT;

	if (port && q->address < 65536) {
		if (told[q->address / 8] >> q->address % 8 & 1)
			return;
		told[q->address / 8] |= 1 << q->address % 8;
	}
	log_debug("nothing at %s %x", port ? "port" : "address", q->address);
}

static void read_string(const struct chip *chip, uint32_t offset, const struct msg_io_request *q,
			uint8_t *data)
{
	unsigned done = 0;

	if (chip->read_string)
		done = chip->read_string(offset, q->size, q->count, data);
	for (; done < q->count; done++) {
		uint32_t value = chip->read_string ? ones(q->size) : chip->read(offset, q->size);

		memcpy(data + done * q->size, &value, q->size);
	}
}

static void write_string(const struct chip *chip, uint32_t offset, const struct msg_io_request *q,
			 const uint8_t *data)
{
	if (chip->write_string) {
		chip->write_string(offset, q->size, q->count, data);
		return;
	}
	for (unsigned i = 0; i < q->count; i++) {
		uint32_t value = 0;

		memcpy(&value, data + i * q->size, q->size);
		chip->write(offset, q->size, value);
	}
}

uint32_t chips_access(const struct msg_io_request *q, void *data)
{
	bool out = q->kind == IO_PORT_OUT || q->kind == IO_MMIO_WRITE;
	bool mmio = q->kind == IO_MMIO_READ || q->kind == IO_MMIO_WRITE;
	uint32_t offset;
	const struct chip *chip = chip_at(q->address, mmio, &offset);

	if (!chip) {
		tell_absent(q);
		if (!out && q->count > 1)
			memset(data, 0xff, (size_t)q->count * q->size);
		return out ? 0 : ones(q->size);
	}
	if (q->count > 1) {
		if (out)
			write_string(chip, offset, q, data);
		else
			read_string(chip, offset, q, data);
		return 0;
	}
	/* A string port handles a single access as a string of one. */
	if (!out)
		return chip->read(offset, q->size) & ones(q->size);
	chip->write(offset, q->size, q->value);
	return 0;
}
