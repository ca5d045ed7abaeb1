/* bootparams.c - see bootparams.h.  No BIOS wrote these fields; they hold only what our kernel
 * reads. */
#include "vmm/node/load/bootparams.h"

#include <asm/bootparam.h>
#include <string.h>
#include "base/layout.h"
#include "base/limits.h"

enum {
	BOOT_FLAG = 0xaa55,
	HEADER_MAGIC = 0x53726448, /* "HdrS" */
	PROTOCOL = 0x020f,
	LOADER_UNDEFINED = 0xff,
	LOADED_HIGH_FLAG = 1,
	E820_RAM = 1, E820_RESERVED = 2,
	FIRST_MIB = 1 << 20,
};

_Static_assert(sizeof(struct boot_params) == PAGE_BYTES, "boot_params is one page");

void bootparams_build(void *page, uint32_t ram_pages, gpa_t initrd, uint32_t initrd_bytes)
{
	const uint64_t below = ram_below_hole(ram_pages), above = gfn_to_gpa(RAM_HOLE_END_GFN);
	struct boot_params *b = page;
	/* The kernel reserves the MP table's page itself once it has found it.  Between that page
	 * and 1 MiB there is no RAM. */
	const struct boot_e820_entry map[] = {
		{ 0, VMP_MP_TABLE_GPA, E820_RAM },
		{ VMP_MP_TABLE_GPA, FIRST_MIB - VMP_MP_TABLE_GPA, E820_RESERVED },
		{ FIRST_MIB, below - FIRST_MIB, E820_RAM },
		{ above, gfn_to_gpa(ram_pages) - above, E820_RAM }, /* if there is any */
	};

	memset(b, 0, sizeof *b);
	b->hdr.boot_flag = BOOT_FLAG;
	b->hdr.header = HEADER_MAGIC;
	b->hdr.version = PROTOCOL;
	b->hdr.type_of_loader = LOADER_UNDEFINED;
	b->hdr.loadflags = LOADED_HIGH_FLAG;
	b->hdr.ramdisk_image = initrd_bytes ? (uint32_t)initrd : 0;
	b->hdr.ramdisk_size = initrd_bytes;
	b->hdr.initrd_addr_max = (uint32_t)(below - 1);
	b->hdr.cmd_line_ptr = VMP_CMDLINE_GPA;
	b->hdr.cmdline_size = MAX_CMDLINE - 1;
	b->hdr.hardware_subarch = VMP_HARDWARE_SUBARCH;
	b->hdr.setup_data = BOOTPARAMS_SEED_GPA;
	b->e820_entries = ARRAY_LEN(map) - (ram_pages > RAM_HOLE_END_GFN ? 0 : 1);
	memcpy(b->e820_table, map, b->e820_entries * sizeof map[0]);
}

void bootparams_seed(void *area, const uint8_t seed[BOOTPARAMS_SEED_BYTES])
{
	struct setup_data *data = area;

	_Static_assert(sizeof *data + BOOTPARAMS_SEED_BYTES == BOOTPARAMS_SEED_AREA_BYTES, "");
	_Static_assert(BOOTPARAMS_SEED_GPA + BOOTPARAMS_SEED_AREA_BYTES <= VMP_NODES_GPA, "");
	*data = (struct setup_data){ .type = SETUP_RNG_SEED, .len = BOOTPARAMS_SEED_BYTES };
	memcpy(data->data, seed, BOOTPARAMS_SEED_BYTES);
}
