/* pageheat.c - see pageheat.h. */
#include "vmm/cli/query/pageheat.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/layout.h"
#include "base/log.h"

void pageheat_add(struct pageheat *heat, const void *bytes, size_t n)
{
	struct page_heat *page;

	if (!n)
		return;
	page = reallocarray(heat->page, heat->n + n, sizeof *page);
	if (!page)
		die("no memory");
	heat->page = page;
	memcpy(page + heat->n, bytes, n * sizeof *page);
	heat->n += n;
}

static int by_frame(const void *a, const void *b)
{
	const struct page_heat *x = a, *y = b;

	return (x->gfn > y->gfn) - (x->gfn < y->gfn);
}

static int by_heat(const void *a, const void *b)
{
	const struct page_heat *x = a, *y = b;

	return x->faults != y->faults ? (x->faults < y->faults) - (x->faults > y->faults)
				      : by_frame(a, b);
}

void pageheat_sort(struct pageheat *heat)
{
	size_t kept = 0;

	if (!heat->n)
		return;
	qsort(heat->page, heat->n, sizeof *heat->page, by_frame);
	for (size_t i = 1; i < heat->n; i++) {
		if (heat->page[i].gfn == heat->page[kept].gfn)
			heat->page[kept].faults += heat->page[i].faults;
		else
			heat->page[++kept] = heat->page[i];
	}
	heat->n = kept + 1;
	qsort(heat->page, heat->n, sizeof *heat->page, by_heat);
}

void pageheat_free(struct pageheat *heat)
{
	free(heat->page);
	*heat = (struct pageheat){ 0 };
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static int add_symbol(struct symbols *symbols, const GElf_Sym *sym, const char *name)
{
	int type = GELF_ST_TYPE(sym->st_info);
	struct symbol *grown;

	if (!name || !*name || (type != STT_OBJECT && type != STT_FUNC && type != STT_NOTYPE) ||
	    sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS)
		return 0;
	if (!strcmp(name, "__init_begin"))
		symbols->init_begin = sym->st_value;
	else if (!strcmp(name, "__init_end"))
		symbols->init_end = sym->st_value;
	else if (!strcmp(name, "_text")) /* it is loaded at 16 MiB */
		symbols->base = sym->st_value & 0xf0000000;
	if (symbols->n % 4096 == 0) {
		grown = reallocarray(symbols->symbol, symbols->n + 4096, sizeof *grown);
		if (!grown)
			return -ENOMEM;
		symbols->symbol = grown;
	}
	symbols->symbol[symbols->n] = (struct symbol){ sym->st_value, sym->st_size, strdup(name),
						       type == STT_OBJECT };
	return symbols->symbol[symbols->n].name ? (symbols->n++, 0) : -ENOMEM;
}

static int read_table(struct symbols *symbols, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Sym sym;
	int error = 0;

	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; !error && data && gelf_getsym(data, i, &sym); i++)
			error = add_symbol(symbols, &sym,
					   elf_strptr(elf, header.sh_link, sym.st_name));
	}
	return error;
}

int pageheat_load_symbols(struct symbols *symbols, const char *vmlinux)
{
	int fd = open(vmlinux, O_RDONLY | O_CLOEXEC), error = -ENOEXEC;
	Elf *elf;

	*symbols = (struct symbols){ 0 };
	if (fd < 0)
		return -errno;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf) {
		error = read_table(symbols, elf);
		elf_end(elf);
	}
	close(fd);
	if (symbols->n)
		qsort(symbols->symbol, symbols->n, sizeof *symbols->symbol, by_address);
	return error;
}

void pageheat_free_symbols(struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->n; i++)
		free(symbols->symbol[i].name);
	free(symbols->symbol);
	*symbols = (struct symbols){ 0 };
}

/* Returns the index of the first symbol whose address is not below `address`. */
static size_t first_from(const struct symbols *symbols, gva_t address)
{
	size_t low = 0, high = symbols->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (symbols->symbol[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the symbol that covers `address`, or NULL. Markers, which have no size, may lie between
 * the symbol's start and `address`. */
static const struct symbol *holder(const struct symbols *symbols, gva_t address)
{
	enum { MAX_STEPS_BACK = 64 };
	size_t after = address == UINT32_MAX ? symbols->n : first_from(symbols, address + 1);

	for (size_t i = after, steps = 0; i-- > 0 && steps < MAX_STEPS_BACK; steps++) {
		const struct symbol *s = &symbols->symbol[i];

		if (s->bytes && (uint64_t)s->address + s->bytes > address)
			return s;
	}
	return NULL;
}

void pageheat_symbol_name(const struct symbols *symbols, gva_t address, char *text,
			  size_t text_bytes)
{
	const struct symbol *s = holder(symbols, address);

	*text = 0;
	if (s)
		snprintf(text, text_bytes, "%s+0x%x", s->name, address - s->address);
}

void pageheat_function(const struct symbols *symbols, gva_t address, char *text, size_t text_bytes)
{
	const struct symbol *s = holder(symbols, address);

	*text = 0;
	if (s && !s->data)
		pageheat_symbol_name(symbols, address, text, text_bytes);
}

void pageheat_describe_symbol(const struct symbols *symbols, gva_t address, uint32_t bytes,
			      char *text, size_t text_bytes)
{
	if (address >= symbols->init_begin && address < symbols->init_end)
		snprintf(text, text_bytes, "(init section, free since the boot)");
	else
		pageheat_symbols_at(symbols, address, bytes, text, text_bytes);
}

void pageheat_describe_frame(const struct symbols *symbols, gfn_t gfn, char *text,
			     size_t text_bytes)
{
	const gva_t base = symbols->base ? symbols->base : VMP_USER_LIMIT;
	const gpa_t at = base + gfn_to_gpa(gfn);

	*text = 0;
	if (at <= UINT32_MAX)
		pageheat_describe_symbol(symbols, (gva_t)at, PAGE_BYTES, text, text_bytes);
}

void pageheat_symbols_at(const struct symbols *symbols, gva_t address, uint32_t bytes, char *text,
			 size_t text_bytes)
{
	enum { MAX_NAMES = 3 };
	const struct symbol *before = holder(symbols, address);
	size_t at = 0;
	unsigned names = 0;

	*text = 0;
	/* the symbol begins before `address` and covers it */
	if (before && before->address < address) {
		at = snprintf(text, text_bytes, "%s+0x%x", before->name, address - before->address);
		names++;
	}
	for (size_t i = first_from(symbols, address);
	     i < symbols->n && symbols->symbol[i].address - address < bytes; i++) {
		const struct symbol *s = &symbols->symbol[i];

		if (!s->bytes || at >= text_bytes)
			continue;
		if (names++ == MAX_NAMES) {
			snprintf(text + at, text_bytes - at, ", ...");
			return;
		}
		at += snprintf(text + at, text_bytes - at, "%s%s", at ? ", " : "", s->name);
	}
}
