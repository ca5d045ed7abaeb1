/* pci.c - the PCI bus of a machine with an IDE disk: configuration mechanism 1 (PCI 2.1, 3.2.2.3),
 * a host bridge, which Linux looks for, and the IDE controller (Intel PIIX3).
 *
 * The controller is in compatibility mode: its disk has the addresses and the line of an ISA disk,
 * and ide.c answers there.  What the guest can set: whether the registers of the bus master
 * (busmaster.c) are there, and where; whether it may access memory; the timings, which mean nothing
 * here.  The second channel is disabled.  A machine without an IDE disk has no PCI: all ports read
 * as ones, and the guest kernel's command line says that it need not look (vmm/cli/run/start.c).
 */
#include "iosrv/iosrv.h"

#include <string.h>

enum { ADDRESS_PORT = 0xcf8, ADDRESS = 0, DATA = 4, PORTS = 8 };
enum { BRIDGE, CONTROLLER, DEVICES }; /* on bus 0, each with one function */
enum { COMMAND = 0x04, BAR4 = 0x20, CONFIG_BYTES = 0x48, COMMAND_IO = 1, COMMAND_MASTER = 4 };
#define ADDRESS_ENABLE 0x80000000u
#define ADDRESS_BITS 0x80fffffcu

static const uint8_t power_on[DEVICES][CONFIG_BYTES] = {
	[BRIDGE] = { 0x86, 0x80, 0x37, 0x12, [COMMAND] = 6, [0x06] = 0x80, 0x02,
		     [0x0a] = 0x00, 0x06 },
	[CONTROLLER] = { 0x86, 0x80, 0x10, 0x70, [COMMAND] = COMMAND_IO, [0x06] = 0x80, 0x02,
			 [0x09] = 0x80, 0x01, 0x01, /* IDE, compatibility mode, bus master */
			 [BAR4] = 0x01, 0xc0,
			 [0x40] = 0x00, 0x80 /* the first channel is enabled */ },
};
/* The bits of the controller's registers that the guest can change. */
static const uint8_t writable[CONFIG_BYTES] = {
	[COMMAND] = COMMAND_IO | COMMAND_MASTER, [0x0d] = 0xf0, /* latency timer */
	[BAR4] = 0xf0, 0xff, [0x3c] = 0xff, /* interrupt line: a note for the guest itself */
	[0x40] = 0xff, 0x7f, 0xff, 0x7f, 0xff, /* timings */
};

#define STATE(X)                                                         \
	X(uint32_t, address, , 0, UINT32_MAX) /* the configuration address */ \
	X(uint8_t, controller, [CONFIG_BYTES], 0, 0xff)
static struct state { STATE(CHIPSTATE_MEMBER) } pci;

static void pci_reset(void)
{
	pci.address = 0;
	memcpy(pci.controller, power_on[CONTROLLER], CONFIG_BYTES);
}

uint32_t pci_busmaster_base(void)
{
	if (!ide_image() || !(pci.controller[COMMAND] & COMMAND_IO))
		return 0;
	return pci.controller[BAR4 + 1] << 8 | (pci.controller[BAR4] & writable[BAR4]);
}

bool pci_busmaster_enabled(void)
{
	return pci.controller[COMMAND] & COMMAND_MASTER;
}

/* Return the device that the address chooses; DEVICES: none. */
static unsigned chosen(void)
{
	unsigned device = pci.address >> 11 & 31;
	bool far = pci.address & 0x00ff0700; /* another bus, or function */

	return !(pci.address & ADDRESS_ENABLE) || far || device >= DEVICES ? DEVICES : device;
}

static uint8_t read_config(unsigned at)
{
	unsigned device = chosen();

	if (device == DEVICES)
		return 0xff;
	if (at >= CONFIG_BYTES)
		return 0;
	return device == CONTROLLER ? pci.controller[at] : power_on[device][at];
}

static void write_config(unsigned at, uint8_t value)
{
	bool was_enabled = pci_busmaster_enabled();
	uint8_t *byte;

	if (chosen() != CONTROLLER || at >= CONFIG_BYTES)
		return;
	byte = &pci.controller[at];
	*byte = (*byte & ~writable[at]) | (value & writable[at]);
	if (was_enabled && !pci_busmaster_enabled())
		busmaster_suspend();
	else if (!was_enabled && pci_busmaster_enabled())
		busmaster_run_on(serve_cpu());
}

static uint32_t pci_read(uint32_t offset, unsigned size)
{
	uint32_t value = 0;

	if (!ide_image() || (offset < DATA && (offset != ADDRESS || size != 4)))
		return ~0u;
	if (offset == ADDRESS)
		return pci.address;
	for (unsigned i = 0; i < size; i++) {
		uint32_t byte = offset + i < PORTS
				? read_config((pci.address & 0xfc) + offset + i - DATA) : 0xff;

		value |= byte << 8 * i;
	}
	return value;
}

static void pci_write(uint32_t offset, unsigned size, uint32_t value)
{
	if (!ide_image())
		return;
	if (offset == ADDRESS && size == 4)
		pci.address = value & ADDRESS_BITS;
	for (unsigned i = 0; i < size && offset >= DATA && offset + i < PORTS; i++)
		write_config((pci.address & 0xfc) + offset + i - DATA, value >> 8 * i);
}

static const char *pci_impossible(void)
{
	if (pci.address & ~ADDRESS_BITS)
		return "its address has bits that no address has";
	for (unsigned i = 0; i < CONFIG_BYTES; i++)
		if ((pci.controller[i] ^ power_on[CONTROLLER][i]) & ~writable[i])
			return "a register that does not change has another value";
	return NULL;
}

const struct chip pci_chip = {
	.name = "PCI bus", .range = { { ADDRESS_PORT, PORTS } },
	.reset = pci_reset, .read = pci_read, .write = pci_write,
	.state = CHIPSTATE(pci),
	.impossible = pci_impossible,
};
