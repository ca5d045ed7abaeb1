/* pagenames.c - see pagenames.h.  The kernel maps RAM from kernel_base() on, as far as there are
 * addresses; what is above (high memory) has struct pages, and no structures of the kernel's. */
#include "vmm/cli/query/pagenames.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/layout.h"

enum {
#define FIELD(name, value, source) name = (value),
#include "vmm/cli/query/guest_layout.def"
#undef FIELD
	COMM_BYTES = 16,
	STACK_BYTES = 8192,
	MAX_TASKS = 4096, /* of one list */
	NAME_BYTES = 64,
	PAE_DIRECTORIES = 3,
	PRESENT = 1, LARGE = 0x80, /* bits of a page table's entry */
	MAPPING_ANON = 1, MAPPING_FLAGS = 3,
};

/* Types of pages that are no program's: struct page's page_type without one of its bits. */
static const uint32_t type_base = 0xf0000000, type_free = 0x80, type_table = 0x200;

enum use { USE_NONE, USE_STACK, USE_DIRECTORY, USE_TABLE, USE_MEMORY };

/* What a task uses a frame for: the first task that was found. */
struct frame { gva_t at; uint16_t task; uint8_t use; bool shared; };

struct pagenames {
	struct pagenames_ram ram;
	const struct symbols *symbols;
	struct frame *frame; /* of each frame */
	char (*comm)[COMM_BYTES];
	unsigned tasks;
	gva_t base; /* where the kernel maps RAM */
	bool pae;
	gva_t mem_map;
};

/* ---- reading ---- */

static bool read_word(const struct pagenames *n, gva_t at, uint32_t *word)
{
	const gpa_t gpa = at - n->base;
	const uint8_t *page;

	if (at < n->base || at % sizeof *word || gpa_to_gfn(gpa) >= n->ram.pages)
		return false;
	page = n->ram.page(n->ram.context, gpa_to_gfn(gpa));
	if (page)
		memcpy(word, page + (gpa & PAGE_MASK), sizeof *word);
	return page;
}

/* Reads a name, up to its end or to `bytes` - 1 characters.  False: there is none. */
static bool read_name(const struct pagenames *n, gva_t at, char *text, size_t bytes)
{
	size_t i = 0;

	for (; i < bytes - 1; i++) {
		uint32_t word, shift = (at + i) % 4;
		unsigned char c;

		if (!read_word(n, (gva_t)(at + i) - shift, &word))
			break;
		c = (unsigned char)(word >> 8 * shift);
		if (!c)
			break;
		text[i] = isprint(c) ? (char)c : '?';
	}
	text[i] = 0;
	return i;
}

static bool find_symbol(const struct symbols *symbols, const char *name, gva_t *at)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (!strcmp(symbols->symbol[i].name, name)) {
			*at = symbols->symbol[i].address;
			return true;
		}
	return false;
}

/* ---- what tasks use ---- */

static void note(struct pagenames *n, gfn_t gfn, enum use use, gva_t at)
{
	struct frame *frame;

	if (gfn >= n->ram.pages)
		return;
	frame = &n->frame[gfn];
	if (frame->use)
		frame->shared = true;
	else
		*frame = (struct frame){ .at = at, .task = (uint16_t)n->tasks, .use = use };
}

/* Reads a page table's entries; returns how many there are, 0: it cannot be read. */
static unsigned read_table(const struct pagenames *n, gfn_t table, uint64_t entry[PAGE_BYTES / 4])
{
	const uint8_t *page = table < n->ram.pages ? n->ram.page(n->ram.context, table) : NULL;
	const unsigned bytes = n->pae ? 8 : 4;

	for (unsigned i = 0; page && i < PAGE_BYTES / bytes; i++) {
		entry[i] = 0;
		memcpy(&entry[i], page + i * bytes, bytes);
	}
	return page ? PAGE_BYTES / bytes : 0;
}

static gfn_t frame_of(uint64_t entry)
{
	return gpa_to_gfn(entry & 0x0000000ffffff000ull);
}

static void note_table(struct pagenames *n, gfn_t table, gva_t base)
{
	uint64_t entry[PAGE_BYTES / 4];
	unsigned entries = read_table(n, table, entry);

	for (unsigned i = 0; i < entries; i++)
		if (entry[i] & PRESENT)
			note(n, frame_of(entry[i]), USE_MEMORY, base + (i << PAGE_BITS));
}

/* Notes the tables of a page directory: those below the user's limit. */
static void note_directory(struct pagenames *n, gfn_t directory, gva_t base)
{
	const unsigned bits = n->pae ? 21 : 22;
	uint64_t entry[PAGE_BYTES / 4];
	unsigned entries = read_table(n, directory, entry);

	note(n, directory, USE_DIRECTORY, 0);
	for (unsigned i = 0; i < entries && base + ((uint64_t)i << bits) < VMP_USER_LIMIT; i++) {
		if (!(entry[i] & PRESENT) || entry[i] & LARGE)
			continue;
		note(n, frame_of(entry[i]), USE_TABLE, base + (i << bits));
		note_table(n, frame_of(entry[i]), base + (i << bits));
	}
}

static void note_memory(struct pagenames *n, uint32_t mm)
{
	uint32_t directory, low, high;

	if (!read_word(n, mm + MM_PGD, &directory))
		return;
	if (!n->pae) {
		note_directory(n, gpa_to_gfn(directory - n->base), 0);
		return;
	}
	note(n, gpa_to_gfn(directory - n->base), USE_DIRECTORY, 0);
	for (unsigned i = 0; i < PAE_DIRECTORIES; i++)
		if (read_word(n, directory + 8 * i, &low) && low & PRESENT &&
		    read_word(n, directory + 8 * i + 4, &high))
			note_directory(n, frame_of((uint64_t)high << 32 | low), (gva_t)i << 30);
}

static void note_stack(struct pagenames *n, gva_t task)
{
	uint32_t stack;

	if (!read_word(n, task + TASK_STACK, &stack))
		return;
	for (gva_t at = stack; at < stack + STACK_BYTES; at += PAGE_BYTES)
		note(n, gpa_to_gfn(at - n->base), USE_STACK, 0);
}

/* Notes a task; `leader`: its memory as well, which its threads have in common. */
static bool note_task(struct pagenames *n, gva_t task, bool leader)
{
	uint32_t mm;

	if (n->tasks == MAX_TASKS || !read_name(n, task + TASK_COMM, n->comm[n->tasks], COMM_BYTES))
		return false;
	note_stack(n, task);
	if (leader && read_word(n, task + TASK_MM, &mm) && mm)
		note_memory(n, mm);
	n->tasks++;
	return true;
}

static void note_threads(struct pagenames *n, gva_t leader)
{
	uint32_t next;
	gva_t at = leader + TASK_THREADS;

	while (read_word(n, at, &next) && next != leader + TASK_THREADS &&
	       note_task(n, next - TASK_THREADS, false))
		at = next;
}

static bool note_tasks(struct pagenames *n)
{
	static const char idle[] = "swapper/0";
	gva_t first, at;
	uint32_t next;

	if (!find_symbol(n->symbols, "init_task", &first) || !note_task(n, first, true) ||
	    strcmp(n->comm[0], idle))
		return false;
	at = first + TASK_NEXT;
	while (read_word(n, at, &next) && next != first + TASK_NEXT &&
	       note_task(n, next - TASK_NEXT, true)) {
		note_threads(n, next - TASK_NEXT);
		at = next;
	}
	return true;
}

struct pagenames *pagenames_read(const struct pagenames_ram *ram, const struct symbols *symbols)
{
	struct pagenames *n = calloc(1, sizeof *n);
	gva_t map;

	if (!n)
		return NULL;
	n->ram = *ram;
	n->base = kernel_base(ram->pages);
	n->pae = ram_needs_pae(ram->pages);
	n->symbols = symbols;
	n->frame = calloc(ram->pages, sizeof *n->frame);
	n->comm = calloc(MAX_TASKS, sizeof *n->comm);
	if (!n->frame || !n->comm || !find_symbol(symbols, "mem_map", &map) ||
	    !read_word(n, map, &n->mem_map) || !note_tasks(n)) {
		pagenames_free(n);
		return NULL;
	}
	return n;
}

void pagenames_free(struct pagenames *n)
{
	if (n) {
		free(n->frame);
		free(n->comm);
	}
	free(n);
}

/* ---- naming ---- */

/* Each CPU has a copy of the section of per-CPU variables. */
static bool name_percpu(const struct pagenames *n, gva_t page, char *text, size_t bytes)
{
	gva_t start, end, offsets;
	uint32_t offset;
	int used;

	if (!find_symbol(n->symbols, "__per_cpu_start", &start) ||
	    !find_symbol(n->symbols, "__per_cpu_end", &end) ||
	    !find_symbol(n->symbols, "__per_cpu_offset", &offsets))
		return false;
	for (unsigned cpu = 0; cpu < n->ram.cpus; cpu++) {
		gva_t at, to;

		if (!read_word(n, offsets + 4 * cpu, &offset))
			return false;
		at = page - offset;
		to = at + PAGE_BYTES < end ? at + PAGE_BYTES : end;
		if (to <= start || at >= end)
			continue;
		if (at < start)
			at = start;
		used = snprintf(text, bytes, "CPU %u's ", cpu);
		pageheat_symbols_at(n->symbols, at, to - at, text + used,
				    bytes - (size_t)used);
		if (!text[used])
			snprintf(text, bytes, "CPU %u's variables", cpu);
		return true;
	}
	return false;
}

/* The kernel's account of all frames is an array of its own. */
static bool name_map(const struct pagenames *n, gva_t page, char *text, size_t bytes)
{
	const uint32_t at = page - n->mem_map;

	if (page < (n->mem_map & ~(gva_t)PAGE_MASK) || at / PAGE_STRUCT >= n->ram.pages)
		return false;
	snprintf(text, bytes, "struct pages of 0x%08lx and what follows",
		 gfn_to_gpa(at / PAGE_STRUCT));
	return true;
}

static bool name_task_use(const struct pagenames *n, gfn_t gfn, char *text, size_t bytes)
{
	const struct frame *frame = &n->frame[gfn];
	const char *comm = n->comm[frame->task];

	switch (frame->use) {
	case USE_STACK:
		snprintf(text, bytes, "kernel stack of %s", comm);
		return true;
	case USE_DIRECTORY:
		snprintf(text, bytes, "page directory of %s", comm);
		return true;
	case USE_TABLE:
		snprintf(text, bytes, "page table of %s for 0x%08x", comm, frame->at);
		return true;
	case USE_MEMORY:
		snprintf(text, bytes, "%s at 0x%08x%s", comm, frame->at,
			 frame->shared ? " and others" : "");
		return true;
	default:
		return false;
	}
}

/* A file's name is a directory entry's, one of those of its inode. */
static void name_file(const struct pagenames *n, uint32_t mapping, char *text, size_t bytes)
{
	uint32_t inode, link, name;
	char file[NAME_BYTES];

	if (read_word(n, mapping + MAPPING_HOST, &inode) && inode &&
	    read_word(n, inode + INODE_NAMES, &link) && link &&
	    read_word(n, link - DENTRY_INODE_LINK + DENTRY_NAME, &name) &&
	    read_name(n, name, file, sizeof file))
		snprintf(text, bytes, "file %s", file);
	else
		snprintf(text, bytes, "a file");
}

static bool has_type(uint32_t type, uint32_t bit)
{
	return (type & (type_base | bit)) == type_base;
}

/* From the kernel's own account of the frame, struct page.  False: no task uses it now. */
static bool name_page(const struct pagenames *n, gfn_t gfn, char *text, size_t bytes)
{
	gva_t page = n->mem_map + gfn * PAGE_STRUCT;
	uint32_t head, flags, word, type;
	char name[NAME_BYTES];

	if (read_word(n, page + PAGE_HEAD, &head) && head & 1)
		page = head - 1;
	if (!read_word(n, page, &flags) || !read_word(n, page + PAGE_TYPE, &type))
		return true;
	if (flags >> PAGE_IS_SLAB & 1) {
		if (read_word(n, page + SLAB_CACHE, &word) &&
		    read_word(n, word + CACHE_NAME, &word) &&
		    read_name(n, word, name, sizeof name))
			snprintf(text, bytes, "slab %s", name);
		else
			snprintf(text, bytes, "a slab");
	} else if (has_type(type, type_free)) {
		snprintf(text, bytes, "free");
		return false;
	} else if (has_type(type, type_table)) {
		snprintf(text, bytes, "a page table");
	} else if (read_word(n, page + PAGE_MAPPING, &word) && word & ~(uint32_t)MAPPING_FLAGS) {
		if (word & MAPPING_ANON)
			snprintf(text, bytes, "memory of a program");
		else if (!(word & MAPPING_FLAGS))
			name_file(n, word, text, bytes);
	} else {
		snprintf(text, bytes, "kernel memory");
	}
	return true;
}

void pagenames_describe(const struct pagenames *n, gfn_t gfn, char *text, size_t bytes)
{
	char page[NAME_BYTES + 16] = "", task[NAME_BYTES + 32] = "";

	const gva_t at = (gva_t)(n->base + gfn_to_gpa(gfn));
	const bool low = n->base + gfn_to_gpa(gfn) <= UINT32_MAX;

	*text = 0;
	if (gfn >= n->ram.pages ||
	    (low && (name_percpu(n, at, text, bytes) || name_map(n, at, text, bytes))))
		return;
	if (!name_page(n, gfn, page, sizeof page) || !name_task_use(n, gfn, task, sizeof task))
		snprintf(text, bytes, "%s", page);
	else if (!strncmp(page, "file ", 5))
		snprintf(text, bytes, "%s, in %s", page, task);
	else
		snprintf(text, bytes, "%s", task);
}
