/* mptable.c - see mptable.h. The numbers are the sections of the MultiProcessor Specification. */
#include "vmm/node/load/mptable.h"

#include <string.h>
#include "base/guest_abi.h"
#include "base/limits.h"

enum {
	ISA_LINES = 16,
	CASCADE_LINE = 2,
	ALL_APICS = 0xff,
	APIC_VERSION = 0x14,
	IOAPIC_VERSION = 0x11,
	SPEC_1_4 = 4
};
enum entry_type { ENTRY_CPU, ENTRY_BUS, ENTRY_IOAPIC, ENTRY_INTERRUPT, ENTRY_LOCAL_INTERRUPT };
enum { CPU_ENABLED = 1, CPU_BOOT = 2 };
enum interrupt_type { TYPE_INT, TYPE_NMI, TYPE_SMI, TYPE_EXTINT };

struct floating { /* 4.1 */
	char signature[4];
	uint32_t table;
	uint8_t length /* in 16 bytes */, revision, checksum, features[5];
};
struct header { /* 4.2 */
	char signature[4];
	uint16_t length;
	uint8_t revision, checksum;
	char oem[8], product[12];
	uint32_t oem_table;
	uint16_t oem_bytes, entries;
	uint32_t lapic;
	uint32_t extended;
};
/* 4.3.1 */
struct cpu {
	uint8_t type, apic_id, apic_version, flags;
	uint32_t signature, features, reserved[2];
};
struct bus { uint8_t type, id; char name[6]; };				/* 4.3.2 */
struct ioapic { uint8_t type, id, version, flags; uint32_t address; };	/* 4.3.3 */
/* 4.3.4, 4.3.5 */
struct interrupt { uint8_t type, kind; uint16_t flags; uint8_t bus, line, apic, pin; };
_Static_assert(sizeof(struct floating) == 16 && sizeof(struct header) == 44 &&
		       sizeof(struct cpu) == 20 && sizeof(struct bus) == 8 &&
		       sizeof(struct ioapic) == 8 && sizeof(struct interrupt) == 8, "layout");
_Static_assert(sizeof(struct floating) + sizeof(struct header) + MAX_CPUS * sizeof(struct cpu) +
		       2 * 8 + (ISA_LINES + 2) * 8 <= MPTABLE_ROOM,
	       "32 CPUs fit into the top KiB of base memory");

struct builder { uint8_t *at; uint16_t entries; };

static void add(struct builder *b, const void *entry, size_t bytes)
{
	memcpy(b->at, entry, bytes);
	b->at += bytes;
	b->entries++;
}

static void add_interrupts(struct builder *b, uint8_t ioapic)
{
	for (uint8_t line = 0; line < ISA_LINES; line++)
		if (line != CASCADE_LINE)
			add(b,
			    &(struct interrupt){ ENTRY_INTERRUPT, TYPE_INT, 0, 0, line, ioapic,
						 line },
			    sizeof(struct interrupt));
	add(b, &(struct interrupt){ ENTRY_LOCAL_INTERRUPT, TYPE_EXTINT, 0, 0, 0, ALL_APICS, 0 },
	    sizeof(struct interrupt));
	add(b, &(struct interrupt){ ENTRY_LOCAL_INTERRUPT, TYPE_NMI, 0, 0, 0, ALL_APICS, 1 },
	    sizeof(struct interrupt));
}

/* Returns the byte that makes the sum of all bytes zero. */
static uint8_t checksum(const void *from, size_t bytes)
{
	const uint8_t *p = from;
	uint8_t sum = 0;

	while (bytes--)
		sum += *p++;
	return -sum;
}

uint32_t mptable_build(void *table, unsigned n_cpus)
{
	struct floating floating = { .signature = "_MP_",
				     .table = VMP_MP_TABLE_GPA + sizeof floating,
				     .length = 1,
				     .revision = SPEC_1_4 };
	struct header header = { .signature = "PCMP",
				 .revision = SPEC_1_4,
				 .oem = "VMP     ",
				 .product = "MACHINE     ",
				 .lapic = VMP_LAPIC_GPA };
	uint8_t *start = (uint8_t *)table + sizeof floating;
	struct builder b = { .at = start + sizeof header };

	memset(table, 0, MPTABLE_ROOM);
	for (unsigned i = 0; i < n_cpus; i++)
		add(&b,
		    &(struct cpu){ ENTRY_CPU,
				   i,
				   APIC_VERSION,
				   CPU_ENABLED | (i ? 0 : CPU_BOOT),
				   0x630,
				   0x201,
				   { 0 } },
		    sizeof(struct cpu));
	add(&b, &(struct bus){ ENTRY_BUS, 0, "ISA   " }, sizeof(struct bus));
	add(&b, &(struct ioapic){ ENTRY_IOAPIC, n_cpus, IOAPIC_VERSION, 1, VMP_IOAPIC_GPA },
	    sizeof(struct ioapic));
	add_interrupts(&b, n_cpus);
	header.length = b.at - start;
	header.entries = b.entries;
	memcpy(start, &header, sizeof header);
	((struct header *)start)->checksum = checksum(start, header.length);
	floating.checksum = checksum(&floating, sizeof floating);
	memcpy(table, &floating, sizeof floating);
	return b.at - (uint8_t *)table;
}
