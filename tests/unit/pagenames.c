/* pagenames.c - unit tests: what lies on a page, of a guest's memory that is made here, and of one
 * that a hostile guest has made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/guest_abi.h"
#include "tests/unit/unit.h"
#include "vmm/cli/query/pagenames.h"

enum {
#define FIELD(name, value, source) name = (value),
#include "vmm/cli/query/guest_layout.def"
#undef FIELD
	FRAMES = 64,
	FLAGS_AT = 0,
	/* what lies where: the frame, and the address in it */
	IMAGE = 1, MAP = 2, TASKS = 4, DIRECTORY = 8, TABLE = 9, STACK = 10, OBJECTS = 12,
	ANON = 20, FILE_PAGE = 21, SLAB_HEAD = 22, SLAB_TAIL = 23, FREE_PAGE = 24, PERCPU = 26,
	PLAIN = 30, SECOND_STACK = 32, LOST_TABLE = 34,
	INIT_TASK = 0, SHELL = 2048, MM = 0x100,
	MM_BYTES = 64,
	PRESENT = 1, GONE = 1 << 6,
};

static uint8_t ram[FRAMES][PAGE_BYTES];
static unsigned reads;

static const uint8_t *page_of(void *context, gfn_t gfn)
{
	(void)context;
	reads++;
	return gfn == GONE || gfn >= FRAMES ? NULL : ram[gfn];
}

static gva_t address(gfn_t gfn, uint32_t at)
{
	return VMP_USER_LIMIT + gfn_to_gpa(gfn) + at;
}

static void put(gva_t at, uint32_t word)
{
	memcpy((uint8_t *)ram + (at - VMP_USER_LIMIT), &word, sizeof word);
}

static void put_text(gva_t at, const char *text)
{
	strcpy((char *)ram + (at - VMP_USER_LIMIT), text);
}

static void put_frame(gfn_t gfn, uint32_t flags, uint32_t mapping)
{
	put(address(MAP, gfn * PAGE_STRUCT + FLAGS_AT), flags);
	put(address(MAP, gfn * PAGE_STRUCT + PAGE_MAPPING), mapping);
	put(address(MAP, gfn * PAGE_STRUCT + PAGE_TYPE), UINT32_MAX);
}

/* Symbols: init_task in its page, and the variables that lead to the others. */
static struct symbol table[] = {
	{ 0, 4, "__per_cpu_offset", true }, { 0, 0, "__per_cpu_start", true },
	{ 0, 8, "counter", true }, { 0, 0, "__per_cpu_end", true },
	{ 0, 4, "mem_map", true }, { 0, 2048, "init_task", true },
};
static const struct symbols symbols = { .symbol = table, .n = ARRAY_LEN(table) };
static const struct pagenames_ram view = { NULL, page_of, FRAMES, 1 };

static void put_symbols(void)
{
	const gva_t percpu = address(IMAGE, 0x800);

	table[0].address = address(IMAGE, 0x10);
	table[1].address = table[2].address = percpu;
	table[3].address = percpu + 8;
	table[4].address = address(IMAGE, 0x20);
	table[5].address = address(TASKS, INIT_TASK);
	put(address(IMAGE, 0x10), address(PERCPU, 0x800) - percpu);
	put(address(IMAGE, 0x20), address(MAP, 0));
}

static void put_task(gva_t task, const char *comm, gfn_t stack, uint32_t mm, gva_t next)
{
	put_text(task + TASK_COMM, comm);
	put(task + TASK_STACK, address(stack, 0));
	put(task + TASK_MM, mm);
	put(task + TASK_NEXT, next + TASK_NEXT);
	put(task + TASK_THREADS, task + TASK_THREADS);
}

/* A kernel with its idle task and a shell that has three pages. */
static void make_guest(void)
{
	const gva_t init = address(TASKS, INIT_TASK), shell = address(TASKS, SHELL);
	const gva_t objects = address(OBJECTS, 0);

	memset(ram, 0, sizeof ram);
	put_symbols();
	put_task(init, "swapper/0", STACK, 0, shell);
	put_task(shell, "ash\n", SECOND_STACK, objects + MM, init);
	put(objects + MM + MM_PGD, address(DIRECTORY, 0));
	put(address(DIRECTORY, 4 * 32), gfn_to_gpa(TABLE) | PRESENT);
	put(address(TABLE, 4 * 72), gfn_to_gpa(ANON) | PRESENT);
	put(address(TABLE, 4 * 73), gfn_to_gpa(FILE_PAGE) | PRESENT);
	for (gfn_t gfn = 0; gfn < FRAMES; gfn++)
		put_frame(gfn, 0, 0);
	put_frame(ANON, 0, objects + 1);
	/* mapping, inode, directory entry, name */
	put_frame(FILE_PAGE, 0, objects + 0x200);
	put(objects + 0x200 + MAPPING_HOST, objects + 0x300);
	put(objects + 0x300 + INODE_NAMES, objects + 0x400 + DENTRY_INODE_LINK);
	put(objects + 0x400 + DENTRY_NAME, objects + 0x501);
	put_text(objects + 0x501, "libc.so.6");
	put_frame(SLAB_HEAD, 1 << PAGE_IS_SLAB, 0);
	put(address(MAP, SLAB_HEAD * PAGE_STRUCT + SLAB_CACHE), objects + 0x600);
	put(objects + 0x600 + CACHE_NAME, objects + 0x700);
	put_text(objects + 0x700, "dentry");
	put_frame(SLAB_TAIL, 0, 0);
	put(address(MAP, SLAB_TAIL * PAGE_STRUCT + PAGE_HEAD),
	    address(MAP, SLAB_HEAD * PAGE_STRUCT) + 1);
	put(address(MAP, FREE_PAGE * PAGE_STRUCT + PAGE_TYPE), UINT32_MAX & ~0x80u);
	put(address(MAP, LOST_TABLE * PAGE_STRUCT + PAGE_TYPE), UINT32_MAX & ~0x200u);
}

static void each_use_has_a_name(void)
{
	static const struct { gfn_t gfn; const char *text; } rows[] = {
		{ MAP, "struct pages of 0x00000000 and what follows" },
		{ STACK, "kernel stack of swapper/0" },
		{ STACK + 1, "kernel stack of swapper/0" },
		{ SECOND_STACK, "kernel stack of ash?" },
		{ DIRECTORY, "page directory of ash?" },
		{ TABLE, "page table of ash? for 0x08000000" },
		{ ANON, "ash? at 0x08048000" },
		{ FILE_PAGE, "file libc.so.6, in ash? at 0x08049000" },
		{ SLAB_HEAD, "slab dentry" },
		{ SLAB_TAIL, "slab dentry" },
		{ FREE_PAGE, "free" },
		{ LOST_TABLE, "a page table" },
		{ PERCPU, "CPU 0's counter" },
		{ PLAIN, "kernel memory" },
		{ FRAMES, "" },
		{ UINT32_MAX, "" },
	};
	struct pagenames *names;
	char text[160];

	make_guest();
	names = pagenames_read(&view, &symbols);
	CU_ASSERT_PTR_NOT_NULL_FATAL(names);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		pagenames_describe(names, rows[i].gfn, text, sizeof text);
		if (strcmp(text, rows[i].text)) {
			fprintf(stderr, "frame %u: %s, not %s\n", rows[i].gfn, text, rows[i].text);
			CU_FAIL("a name");
		}
	}
	pagenames_free(names);
}

/* Another kernel, or one that has not begun yet, gets no names. */
static void another_kernel_has_none(void)
{
	struct symbols none = { 0 };

	make_guest();
	put_text(address(TASKS, INIT_TASK) + TASK_COMM, "other");
	CU_ASSERT_PTR_NULL(pagenames_read(&view, &symbols));
	make_guest();
	put(address(IMAGE, 0x20), 0);
	pagenames_free(pagenames_read(&view, &symbols)); /* no struct pages: must only not fail */
	CU_ASSERT_PTR_NULL(pagenames_read(&view, &none));
}

/* Lists without an end, pointers to anywhere, names without an end: it ends, and within bounds. */
static void a_hostile_guest_is_survived(void)
{
	const gva_t shell = address(TASKS, SHELL);
	struct pagenames *names;
	char text[160];

	make_guest();
	put(shell + TASK_NEXT, shell + TASK_NEXT);
	reads = 0;
	names = pagenames_read(&view, &symbols);
	CU_ASSERT_PTR_NOT_NULL(names);
	pagenames_free(names);
	make_guest();
	put(shell + TASK_THREADS, address(TASKS, INIT_TASK) + TASK_THREADS);
	pagenames_free(pagenames_read(&view, &symbols));
	srand(1);
	for (unsigned round = 0; round < 2000; round++) {
		make_guest();
		for (unsigned i = 0; i < 8; i++) {
			static const uint32_t odd[] = { 0, 1, UINT32_MAX, VMP_USER_LIMIT,
							VMP_USER_LIMIT - 4, 0x80000000 };
			gva_t at = VMP_USER_LIMIT + (uint32_t)rand() % (sizeof ram / 4) * 4;

			put(at, rand() % 2 ? odd[(unsigned)rand() % ARRAY_LEN(odd)] :
				address((unsigned)rand() % FRAMES, (unsigned)rand() % PAGE_BYTES));
		}
		names = pagenames_read(&view, &symbols);
		for (gfn_t gfn = 0; names && gfn < FRAMES; gfn++)
			pagenames_describe(names, gfn, text, 1 + (unsigned)rand() % sizeof text);
		pagenames_free(names);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(each_use_has_a_name),
		UNIT_TEST(another_kernel_has_none),
		UNIT_TEST(a_hostile_guest_is_survived),
		UNIT_END
	};

	return UNIT_RUN("what lies on a page", tests);
}
