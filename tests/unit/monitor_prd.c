/* monitor_prd.c - tables of buffers in memory that a hostile guest has written: monitor/prd.c. */
#include <string.h>
#include "monitor/prd.h"
#include "tests/unit/unit.h"

enum { RAM = 1 << 20, TABLE = 0x1000, LAST = 1 };

static uint8_t ram[RAM], data[DMA_STEP_BYTES];
static struct prd_place place;
static unsigned entries;

#include "tests/unit/virtqueue_ram.h"

static void start(void)
{
	for (unsigned i = 0; i < RAM; i++)
		ram[i] = i * 7 + (i >> 8);
	memset(data, 0xee, sizeof data);
	place = (struct prd_place){ TABLE, 0, DMA_MOVED };
	entries = 0;
}

static void add(uint32_t address, uint32_t size, bool last)
{
	uint32_t words[2] = { address, size | (last ? 0x80000000u : 0) };

	memcpy(ram + TABLE + 8 * entries++, words, sizeof words);
}

static bool from(uint32_t bytes) { return prd_copy(&place, &memory, false, data, bytes); }
static bool to(uint32_t bytes) { return prd_copy(&place, &memory, true, data, bytes); }

static void several_buffers(void)
{
	start();
	add(0x20000, 512, false);
	add(0x30001, 0x7ffe0400, false); /* bits that have no meaning */
	add(0x40000, 1024, true);
	CU_ASSERT(from(2560) && place.result == DMA_TABLE_ENDED);
	CU_ASSERT(!memcmp(data, ram + 0x20000, 512) && !memcmp(data + 512, ram + 0x30000, 1024) &&
		  !memcmp(data + 1536, ram + 0x40000, 1024) && data[2560] == 0xee);
	CU_ASSERT(!from(2) && place.result == DMA_TABLE_SHORT);
	CU_ASSERT(!from(2) && place.result == DMA_TABLE_SHORT);
}

/* The place after each step is the next one's beginning. */
static void in_steps(void)
{
	start();
	add(0x20000, 1000, false);
	add(0x30000, 0, true); /* 64 KiB */
	memset(data, 0x11, 600);
	CU_ASSERT(to(600) && place.entry == TABLE && place.used == 600);
	memset(data, 0x22, 400);
	CU_ASSERT(to(400) && place.entry == TABLE + 8 && !place.used && place.result == DMA_MOVED);
	memset(data, 0x33, sizeof data);
	CU_ASSERT(to(0xffff) && place.used == 0xffff && place.result == DMA_MOVED);
	CU_ASSERT(to(1) && place.result == DMA_TABLE_ENDED);
	CU_ASSERT(ram[0x20000 + 599] == 0x11 && ram[0x20000 + 600] == 0x22 &&
		  ram[0x20000 + 999] == 0x22 && ram[0x30000] == 0x33 && ram[0x3ffff] == 0x33);
	CU_ASSERT(ram[0x40000] == (uint8_t)(0x40000 * 7 + 0x400));
}

static void too_short(void)
{
	start();
	add(0x20000, 700, true);
	CU_ASSERT(!from(1024) && place.result == DMA_TABLE_SHORT);
}

/* A table without an end: a step ends after its bytes. */
static void endless(void)
{
	start();
	for (unsigned i = 0; i < 0x1000; i++)
		add(TABLE, 2, false);
	CU_ASSERT(from(0x2000) && place.result == DMA_MOVED && place.entry == TABLE + 0x8000);
}

static void outside_ram(void)
{
	static const struct {
		uint32_t table, address, size;
	} rows[] = {
		{ RAM, 0, 2 },		 { RAM - 4, 0, 2 },	 { 0xfffffff8, 0, 2 },
		{ TABLE, RAM, 2 },	 { TABLE, RAM - 256, 512 }, { TABLE, 0xfffffffe, 512 },
		{ TABLE, 0xffff0000, 0 }, { TABLE, RAM - 0xfffe, 0 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		for (unsigned write = 0; write < 2; write++) {
			start();
			add(rows[i].address, rows[i].size, true);
			place.entry = rows[i].table;
			CU_ASSERT(!prd_copy(&place, &memory, write, data, 0x10000));
			CU_ASSERT(place.result == DMA_TABLE_WRONG);
		}
	start();
	add(RAM - 512, 512, true);
	CU_ASSERT(to(512) && place.result == DMA_TABLE_ENDED);
}

static void changed_meanwhile(void)
{
	start();
	add(0x20000, 1024, true);
	CU_ASSERT(to(512));
	entries = 0;
	add(0x20000, 512, true);
	CU_ASSERT(!to(512) && place.result == DMA_TABLE_WRONG);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "several buffers", several_buffers },
		{ "in steps", in_steps },
		{ "too short", too_short },
		{ "endless", endless },
		{ "outside RAM", outside_ram },
		{ "changed meanwhile", changed_meanwhile },
		UNIT_END
	};

	return UNIT_RUN("prd", tests);
}
