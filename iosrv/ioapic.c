/* ioapic.c - the IO-APIC (82093AA): 24 lines, each routed by its redirection entry to a vector on
 * some CPUs.
 *
 * All lines of this machine are edge-triggered.  An edge on a masked line is recorded and delivered
 * when the line is unmasked: Linux masks a line while it moves the interrupt to another CPU, and a
 * console that lost one edge would hang.  Destinations are physical (APIC id = CPU number) or flat
 * logical (bit n = CPU n); lowest priority is delivered round robin.
 */
#include "iosrv/iosrv.h"

#include <string.h>
#include "base/guest_abi.h"
#include "iosrv/virtio.h"

enum {
	PINS = 24, REG_SELECT = 0, REG_WINDOW = 0x10, INDEX_ID = 0, INDEX_VERSION = 1,
	INDEX_TABLE = 0x10, VERSION = 0x11,
};
enum { MODE_FIXED, MODE_LOWEST, MODE_NMI = 4 };
#define ENTRY_MASKED (1u << 16)
#define ENTRY_LOGICAL (1u << 11)

/* the bits of an entry's low half that can be written; the others are its status */
#define ENTRY_LOW 0x1afffu
#define ID_BITS 0xff000000u

#define STATE(X)                                                                                   \
	X(uint32_t, select, , 0, 0xff)                                                             \
	X(uint32_t, id, , 0, ID_BITS)                                                              \
	X(uint32_t, entry, [PINS][2], 0, UINT32_MAX) /* low, high */                               \
	X(bool, waiting, [PINS], 0, 1) /* an edge arrived while masked */                          \
	X(uint32_t, next, , 0, UINT32_MAX) /* round robin: the next CPU to try, modulo 32 */
static struct state { STATE(CHIPSTATE_MEMBER) } io;

static void ioapic_reset(void)
{
	memset(&io, 0, sizeof io);
	for (unsigned pin = 0; pin < PINS; pin++)
		io.entry[pin][0] = ENTRY_MASKED;
}

static uint32_t destination_cpus(const uint32_t entry[2])
{
	uint32_t all = iosrv_cpus() >= 32 ? ~0u : (1u << iosrv_cpus()) - 1, to = entry[1] >> 24;

	if (entry[0] & ENTRY_LOGICAL)
		return to & all;
	if (to == 0xff)
		return all;
	return to < 32 ? (1u << to) & all : 0;
}

static uint32_t one_of(uint32_t cpus)
{
	for (unsigned i = 0; cpus && i < 32; i++) {
		uint32_t bit = 1u << (io.next++ & 31);

		if (cpus & bit)
			return bit;
	}
	return 0;
}

static void deliver(unsigned pin)
{
	const uint32_t *entry = io.entry[pin];
	unsigned mode = entry[0] >> 8 & 7;
	uint32_t cpus = destination_cpus(entry);

	if (entry[0] & ENTRY_MASKED) {
		io.waiting[pin] = true;
		return;
	}
	io.waiting[pin] = false;
	if (mode == MODE_LOWEST)
		cpus = one_of(cpus);
	else if (mode != MODE_FIXED && mode != MODE_NMI)
		cpus = 0; /* SMI, INIT, ExtINT: not supported */
	if (cpus)
		iosrv_interrupt(cpus, entry[0] & 0xff, mode == MODE_NMI);
}

void ioapic_raise(unsigned pin)
{
	if (pin < PINS)
		deliver(pin);
}

uint32_t ioapic_route(unsigned pin, uint32_t *vector)
{
	const uint32_t *entry = io.entry[pin];
	unsigned mode = entry[0] >> 8 & 7;
	uint32_t cpus = destination_cpus(entry);

	*vector = entry[0] & 0xff;
	return (mode == MODE_FIXED || mode == MODE_LOWEST) && !(entry[0] & ENTRY_MASKED) &&
			       !(cpus & (cpus - 1))
		       ? cpus
		       : 0;
}

static uint32_t read_register(uint32_t index)
{
	if (index == INDEX_ID || index == 2)
		return io.id;
	if (index == INDEX_VERSION)
		return VERSION | (PINS - 1) << 16;
	if (index >= INDEX_TABLE && index < INDEX_TABLE + 2 * PINS)
		return io.entry[(index - INDEX_TABLE) / 2][index & 1];
	return 0;
}

static void write_register(uint32_t index, uint32_t value)
{
	unsigned pin = (index - INDEX_TABLE) / 2;

	if (index == INDEX_ID)
		/* 8 bits, as later chips: with 16 CPUs and more its id is above 15 */
		io.id = value & ID_BITS;
	if (index < INDEX_TABLE || pin >= PINS)
		return;
	if (index & 1 ? value != io.entry[pin][1] : (value & ENTRY_LOW) != io.entry[pin][0])
		virtio_rerouted(pin);
	io.entry[pin][index & 1] = index & 1 ? value : value & ENTRY_LOW;
	if (io.waiting[pin] && !(io.entry[pin][0] & ENTRY_MASKED))
		deliver(pin);
}

static uint32_t ioapic_read(uint32_t offset, unsigned size)
{
	(void)size;
	if (offset == REG_WINDOW)
		return read_register(io.select);
	return offset == REG_SELECT ? io.select : 0;
}

static void ioapic_write(uint32_t offset, unsigned size, uint32_t value)
{
	(void)size;
	if (offset == REG_SELECT)
		io.select = value & 0xff;
	else if (offset == REG_WINDOW)
		write_register(io.select, value);
}

static const char *ioapic_impossible(void)
{
	for (unsigned pin = 0; pin < PINS; pin++)
		if (io.entry[pin][0] & ~ENTRY_LOW)
			return "an entry has bits that are not its own";
	return io.id & ~ID_BITS ? "its id has more than 8 bits" : NULL;
}

const struct chip ioapic_chip = {
	.name = "IO-APIC", .range = { { VMP_IOAPIC_GPA, PAGE_BYTES, true } }, .reset = ioapic_reset,
	.read = ioapic_read,
	.write = ioapic_write, .state = CHIPSTATE(io), .impossible = ioapic_impossible,
};
