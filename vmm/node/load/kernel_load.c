/* kernel_load.c - see kernel_load.h.  Only the file's program headers are used, and only after they
 * were checked. */
#include "vmm/node/load/kernel_load.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/guest_abi.h"

enum { LOWEST_LOAD_ADDRESS = 1 << 20 };

static int complain(char *why, size_t why_bytes, const char *path, const char *what)
{
	snprintf(why, why_bytes, "the guest kernel %s %s; build it again with make guest", path,
		 what);
	return -1;
}

static int read_whole(int fd, uint8_t *to, size_t n, off_t offset)
{
	while (n) {
		ssize_t got = pread(fd, to, n, offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		to += got;
		offset += got;
		n -= got;
	}
	return 0;
}

/* Returns NULL if the segment may be loaded, otherwise what is wrong. */
static const char *check_segment(const GElf_Phdr *p, uint64_t file_bytes, uint32_t ram_bytes)
{
	if (p->p_filesz > p->p_memsz)
		return "is damaged (a segment with more bytes in the file than in memory)";
	if (p->p_offset > file_bytes || p->p_filesz > file_bytes - p->p_offset)
		return "is damaged (it is shorter than its headers say)";
	if (p->p_paddr < LOWEST_LOAD_ADDRESS)
		return "wants to be loaded below 1 MiB, so it is not a vmlinux of ours";
	if (p->p_paddr > ram_bytes || p->p_memsz > ram_bytes - p->p_paddr)
		return "does not fit into the guest's RAM (use a larger --mem)";
	return NULL;
}

static const char *check_header(Elf *elf, GElf_Ehdr *header)
{
	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, header))
		return "is not an ELF file";
	if (gelf_getclass(elf) != ELFCLASS32 || header->e_machine != EM_386)
		return "is not for 32-bit x86";
	if (header->e_type != ET_EXEC)
		return "is not an executable (a vmlinux is)";
	return NULL;
}

static const char *load_segments(Elf *elf, int fd, uint64_t file_bytes, uint8_t *ram,
				 uint32_t ram_bytes, struct kernel_image *image)
{
	const char *wrong;
	size_t count;
	GElf_Phdr p;

	if (elf_getphdrnum(elf, &count))
		return "is damaged (no program headers)";
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, i, &p))
			return "is damaged (its program headers are cut off)";
		if (p.p_type != PT_LOAD || !p.p_memsz)
			continue;
		wrong = check_segment(&p, file_bytes, ram_bytes);
		if (wrong)
			return wrong;
		if (read_whole(fd, ram + p.p_paddr, p.p_filesz, p.p_offset))
			return "cannot be read to its end";
		if (p.p_paddr < image->first)
			image->first = p.p_paddr;
		if (p.p_paddr + p.p_memsz > image->end)
			image->end = p.p_paddr + p.p_memsz;
		if (p.p_paddr + p.p_filesz > image->file_end)
			image->file_end = p.p_paddr + p.p_filesz;
	}
	return image->end ? NULL : "has nothing to load";
}

/* Checks the absolute symbol vmp_abi_version (base/guest_abi.h).  A file without any symbols cannot
 * be checked and is accepted. */
static const char *check_abi(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Sym symbol;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB)
			continue;
		Elf_Data *symbols = elf_getdata(section, NULL);

		for (int i = 0; symbols && gelf_getsym(symbols, i, &symbol); i++) {
			const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);

			if (name && !strcmp(name, "vmp_abi_version"))
				return symbol.st_value == VMP_ABI_VERSION
					       ? NULL
					       : "is for another version of vmp";
		}
		return "is for another version of vmp, or not patched for it";
	}
	return NULL;
}

int kernel_load(const char *path, uint8_t *ram, uint32_t ram_bytes, struct kernel_image *image,
		char *why, size_t why_bytes)
{
	const char *wrong = NULL;
	struct stat status;
	GElf_Ehdr header;
	Elf *elf;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*image = (struct kernel_image){ .first = UINT32_MAX };
	if (fd < 0 || fstat(fd, &status)) {
		snprintf(why, why_bytes, "cannot open the guest kernel %s: %s; build it with make "
			 "guest", path,
			 strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		wrong = "is not an ELF file";
	if (!wrong)
		wrong = check_header(elf, &header);
	if (!wrong)
		wrong = check_abi(elf);
	if (!wrong)
		wrong = load_segments(elf, fd, status.st_size, ram, ram_bytes, image);
	if (!wrong && (header.e_entry < image->first || header.e_entry >= image->file_end))
		wrong = "is damaged (its entry is not a physical address inside it)";
	image->entry = wrong ? 0 : (gpa_t)header.e_entry;
	elf_end(elf);
	close(fd);
	return wrong ? complain(why, why_bytes, path, wrong) : 0;
}
