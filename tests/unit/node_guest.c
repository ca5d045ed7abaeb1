/* node_guest.c - the contents of the guest's RAM at its start: the kernel, its boot parameters, the
 * MP table. */
#include <asm/bootparam.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "base/layout.h"
#include "base/limits.h"
#include "tests/unit/unit.h"
#include "vmm/node/load/bootparams.h"
#include "vmm/node/load/kernel_load.h"
#include "vmm/node/load/mptable.h"
#include "vmm/node/load/nodes.h"

/* ---- kernel ---- */

struct kernel_file {
	Elf32_Ehdr header;
	Elf32_Phdr segment[2];
	char bytes[64];
	Elf32_Shdr section[3]; /* used with header.e_shnum 3: none, symbols, their names */
	Elf32_Sym symbol[2];
	char names[32];
};

static struct kernel_file good_kernel(void)
{
	struct kernel_file k = {
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_EXEC,
			    .e_machine = EM_386,
			    .e_version = EV_CURRENT,
			    .e_entry = 0x1000010,
			    .e_phoff = sizeof(Elf32_Ehdr),
			    .e_ehsize = sizeof(Elf32_Ehdr),
			    .e_phentsize = sizeof(Elf32_Phdr),
			    .e_phnum = 2 },
		.bytes = "text and data of the smallest kernel there is",
	};

	k.segment[0] = (Elf32_Phdr){ .p_type = PT_LOAD,
				     .p_offset = offsetof(struct kernel_file, bytes),
				     .p_vaddr = 0xc1000000,
				     .p_paddr = 0x1000000,
				     .p_filesz = 32,
				     .p_memsz = 32 };
	k.segment[1] = (Elf32_Phdr){ .p_type = PT_LOAD,
				     .p_offset = offsetof(struct kernel_file, bytes) + 32,
				     .p_vaddr = 0xc1001000,
				     .p_paddr = 0x1001000,
				     .p_filesz = 16,
				     .p_memsz = 0x3000 };
	k.section[1] = (Elf32_Shdr){ .sh_type = SHT_SYMTAB,
				     .sh_offset = offsetof(struct kernel_file, symbol),
				     .sh_link = 2,
				     .sh_size = sizeof k.symbol,
				     .sh_entsize = sizeof *k.symbol };
	k.section[2] = (Elf32_Shdr){ .sh_type = SHT_STRTAB,
				     .sh_offset = offsetof(struct kernel_file, names),
				     .sh_size = sizeof k.names };
	k.symbol[1] = (Elf32_Sym){ .st_name = 1, .st_value = VMP_ABI_VERSION, .st_shndx = SHN_ABS };
	memcpy(k.names + 1, "vmp_abi_version", 16);
	return k;
}

enum { RAM_BYTES = 32 << 20 };
static uint8_t *ram;

static int load(const struct kernel_file *k, size_t bytes, struct kernel_image *image, char *why,
		size_t why_bytes)
{
	char path[] = "/tmp/vmp-test-kernel-XXXXXX";
	int fd = mkstemp(path), result;

	CU_ASSERT_FATAL(fd >= 0 && write(fd, k, bytes) == (ssize_t)bytes);
	result = kernel_load(path, ram, RAM_BYTES, image, why, why_bytes);
	close(fd);
	unlink(path);
	return result;
}

static void expect_refused(struct kernel_file k, size_t bytes, const char *because)
{
	struct kernel_image image;
	char why[300] = "";

	CU_ASSERT_EQUAL(load(&k, bytes, &image, why, sizeof why), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, because));
}

static void test_kernel_load(void)
{
	struct kernel_file k = good_kernel(), bad;
	struct kernel_image image;
	char why[300] = "";

	ram = calloc(1, RAM_BYTES);
	CU_ASSERT_FATAL(ram != NULL);
	CU_ASSERT_EQUAL(load(&k, sizeof k, &image, why, sizeof why), 0);
	CU_ASSERT(image.entry == 0x1000010 && image.first == 0x1000000 && image.end == 0x1004000 &&
		  image.file_end == 0x1001010);
	CU_ASSERT(!memcmp(ram + 0x1000000, k.bytes, 32) &&
		  !memcmp(ram + 0x1001000, k.bytes + 32, 16));

	k.header.e_shoff = offsetof(struct kernel_file, section),
	k.header.e_shentsize = sizeof(Elf32_Shdr);
	k.header.e_shnum = 3, k.header.e_shstrndx = 2;
	CU_ASSERT_EQUAL(load(&k, sizeof k, &image, why, sizeof why), 0);
	bad = k, bad.symbol[1].st_value++, expect_refused(bad, sizeof bad, "another version");
	bad = k, bad.names[1] = 'V', expect_refused(bad, sizeof bad, "another version");
	bad = k, bad.symbol[1].st_name = 1000, expect_refused(bad, sizeof bad, "another version");
	bad = k, bad.section[1].sh_size = 0, expect_refused(bad, sizeof bad, "another version");

	expect_refused(k, offsetof(struct kernel_file, bytes) + 24, "shorter");
	expect_refused(k, 10, "not an ELF");
	expect_refused(k, 0, "not an ELF");
	bad = k, bad.header.e_machine = EM_X86_64, expect_refused(bad, sizeof bad, "32-bit x86");
	bad = k, bad.header.e_type = ET_DYN, expect_refused(bad, sizeof bad, "not an executable");
	bad = k, bad.header.e_entry = 0xc1000010, expect_refused(bad, sizeof bad, "entry");
	bad = k, bad.segment[1].p_paddr = RAM_BYTES - 0x1000,
	expect_refused(bad, sizeof bad, "fit");
	bad = k, bad.segment[1].p_paddr = 0xfffff000, expect_refused(bad, sizeof bad, "fit");
	bad = k, bad.segment[0].p_paddr = 0x10000, expect_refused(bad, sizeof bad, "below 1 MiB");
	bad = k, bad.segment[0].p_memsz = 8, expect_refused(bad, sizeof bad, "more bytes");
	bad = k, bad.segment[0].p_offset = 0xfffffff0, expect_refused(bad, sizeof bad, "shorter");
	bad = k, bad.segment[0].p_type = bad.segment[1].p_type = PT_NOTE,
	expect_refused(bad, sizeof bad, "nothing to load");
	CU_ASSERT_EQUAL(kernel_load("/nonexistent/vmlinux", ram, RAM_BYTES, &image, why,
				    sizeof why),
			-1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "make"));
	free(ram);
}

/* ---- tables ---- */

static uint8_t sum(const uint8_t *p, size_t n)
{
	uint8_t s = 0;

	while (n--)
		s += *p++;
	return s;
}

static void test_mptable(void)
{
	static const uint8_t entry_bytes[] = { 20, 8, 8, 8, 8 };

	for (unsigned n_cpus = 1; n_cpus <= MAX_CPUS; n_cpus++) {
		uint8_t table[MPTABLE_ROOM];
		uint32_t bytes = mptable_build(table, n_cpus), address;
		uint16_t length, entries;
		unsigned count[5] = { 0 }, at = 16 + 44;

		CU_ASSERT(bytes <= sizeof table);
		memcpy(&address, table + 4, 4);
		memcpy(&length, table + 16 + 4, 2);
		memcpy(&entries, table + 16 + 34, 2);
		CU_ASSERT(!memcmp(table, "_MP_", 4) && !sum(table, 16) &&
			  address == VMP_MP_TABLE_GPA + 16);
		CU_ASSERT(!memcmp(table + 16, "PCMP", 4) && !sum(table + 16, length) &&
			  16u + length == bytes);
		for (unsigned i = 0; i < entries && at < bytes; i++) {
			uint8_t type = table[at];

			CU_ASSERT_FATAL(type < 5);
			if (type == 0) {
				CU_ASSERT_EQUAL(table[at + 1], count[0]);
				CU_ASSERT_EQUAL(table[at + 3], count[0] ? 1 : 3);
			}
			count[type]++;
			at += entry_bytes[type];
		}
		CU_ASSERT_EQUAL(at, bytes);
		CU_ASSERT(count[0] == n_cpus && count[1] == 1 && count[2] == 1 && count[3] == 15 &&
			  count[4] == 2);
	}
}

static void test_bootparams(void)
{
	struct boot_params b;

	memset(&b, 0xaa, sizeof b);
	bootparams_build(&b, ram_pages_of(64), 0x3000000, 1000);
	CU_ASSERT(b.e820_entries == 3 && b.e820_table[2].addr == 1 << 20 &&
		  b.e820_table[2].addr + b.e820_table[2].size == 64 << 20);
	CU_ASSERT(b.hdr.ramdisk_image == 0x3000000 && b.hdr.ramdisk_size == 1000 &&
		  b.hdr.cmd_line_ptr == VMP_CMDLINE_GPA);
	CU_ASSERT(b.hdr.hardware_subarch == VMP_HARDWARE_SUBARCH && b.acpi_rsdp_addr == 0);
	bootparams_build(&b, ram_pages_of(64), 0x3000000, 0);
	CU_ASSERT(b.hdr.ramdisk_image == 0);
	bootparams_build(&b, ram_pages_of(3840), 0x3000000, 0);
	CU_ASSERT(b.e820_entries == 3 &&
		  b.e820_table[2].addr + b.e820_table[2].size == 3840ull << 20);
	bootparams_build(&b, ram_pages_of(16384), 0x3000000, 0);
	CU_ASSERT(b.e820_entries == 4 &&
		  b.e820_table[2].addr + b.e820_table[2].size == 3840ull << 20 &&
		  b.e820_table[3].addr == 1ull << 32 &&
		  b.e820_table[3].addr + b.e820_table[3].size == (16384ull + 256) << 20);
	CU_ASSERT(b.hdr.initrd_addr_max == 0xefffffff);
	CU_ASSERT(b.hdr.setup_data == BOOTPARAMS_SEED_GPA);
}

static void test_seed(void)
{
	struct {
		struct setup_data data;
		uint8_t seed[BOOTPARAMS_SEED_BYTES], behind;
	} area;
	uint8_t seed[BOOTPARAMS_SEED_BYTES];

	memset(&area, 0xaa, sizeof area);
	for (unsigned i = 0; i < sizeof seed; i++)
		seed[i] = (uint8_t)(i + 1);
	bootparams_seed(&area, seed);
	CU_ASSERT(area.data.next == 0 && area.data.type == SETUP_RNG_SEED &&
		  area.data.len == sizeof seed && !memcmp(area.seed, seed, sizeof seed) &&
		  area.behind == 0xaa);
}

/* The parts of one kind of memory, which begins at `first`: all but the first one are equal. */
static void check_parts(const gfn_t *end, unsigned count, gfn_t first)
{
	for (unsigned n = 0; n < count; n++) {
		CU_ASSERT(end[n] > (n ? end[n - 1] : first));
		if (n > 1)
			CU_ASSERT_EQUAL(end[n] - end[n - 1], end[1] - end[0]);
	}
}

static void check_plan(uint32_t ram_pages, gfn_t taken, unsigned hosts, unsigned cpus,
		       unsigned count, unsigned parts)
{
	uint8_t host[MAX_CPUS], table[NODES_TABLE_BYTES];
	struct nodes_plan plan;
	uint32_t end;

	for (unsigned cpu = 0; cpu < MAX_CPUS; cpu++)
		host[cpu] = (uint8_t)(cpu % hosts);
	memset(&plan, 0xaa, sizeof plan);
	nodes_plan(&plan, ram_pages, taken, hosts, cpus, host);
	CU_ASSERT_EQUAL(plan.count, count);
	CU_ASSERT_EQUAL(plan.parts, parts);
	memset(table, 0xaa, sizeof table);
	nodes_build(table, &plan);
	memcpy(&end, table + VMP_NODES_COUNT, 4);
	CU_ASSERT_EQUAL(end, count);
	for (unsigned n = 0; n < parts; n++) {
		memcpy(&end, table + VMP_NODES_END + 4 * n, 4);
		CU_ASSERT_EQUAL(end, plan.end[n]);
	}
	memcpy(&end, table + VMP_NODES_END + 4 * parts, 4);
	CU_ASSERT_EQUAL(end, 0);
	check_parts(plan.end, count, taken);
	if (parts > count) {
		CU_ASSERT_EQUAL(plan.end[count - 1], VMP_LOW_RAM >> PAGE_BITS);
		check_parts(plan.end + count, count, VMP_LOW_RAM >> PAGE_BITS);
	}
	if (count)
		CU_ASSERT_EQUAL(plan.end[parts - 1], ram_pages);
	for (unsigned cpu = 0; cpu < cpus; cpu++)
		CU_ASSERT_EQUAL(table[VMP_NODES_CPU + cpu], count ? host[cpu] % count : 0);
}

static void test_nodes(void)
{
	check_plan(65536, 8000, 1, 2, 0, 0);
	check_plan(65536, 8000, 2, 2, 2, 2);
	check_plan(65536, 8000, 8, 16, 8, 8);
	check_plan(262144, 8000, 32, 32, 32, 32);
	/* parts of 8 MiB, and four hosts have CPUs alone */
	check_plan(65536, 8000, 32, 32, 28, 28);
	check_plan(8192, 8000, 2, 2, 0, 0);
	check_plan(8192, 9000, 2, 2, 0, 0);
	check_plan(16384 + 512, 8000, 2, 4, 2, 2); /* RAM need not end where a block does */
	/* high memory; too little of it to be dealt */
	check_plan(262144 + 4096, 12000, 2, 2, 2, 4);
	check_plan(262144 + 4095, 12000, 2, 2, 2, 2);
	check_plan(786432, 20000, 4, 4, 4, 8);
	check_plan(786432, 20000, 32, 32, 32, 64);
	check_plan(786432, 20000, 1, 4, 0, 0);
	check_plan(786432, 262143, 2, 2, 0, 0);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "kernel loading, bad files", test_kernel_load },
		{ "MP table", test_mptable },
		{ "boot parameters", test_bootparams },
		{ "a seed for random numbers", test_seed },
		{ "hosts as nodes", test_nodes },
		UNIT_END
	};

	return UNIT_RUN("the guest at its start", tests);
}
