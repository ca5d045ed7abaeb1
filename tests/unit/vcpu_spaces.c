/* vcpu_spaces.c - several host address spaces for one CPU (vcpu/spaces.c): what is kept, what is
 * dropped, and that nothing stays that must be dropped; and which program computes
 * (vcpu/computing.h).
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"
#include "vcpu/computing.h"
#include "vcpu/spaces.h"

#define V (&fake.v)
enum {
	SPACES = 3,
	BARE = SPACES,
	KERNEL = VMP_USER_LIMIT,
	USER_AT = 0x100000 /* USER_AT is beyond what gather() maps together */
};

static struct spaces all;
static struct space space[SPACES + 1];
static uint32_t entries[SPACES + 1][LINEAR_PAGES];
static uint32_t cr3;
static unsigned unmapped; /* calls */

static uint32_t last_rights;
static unsigned maps; /* calls */

static void fake_map(void *ctx, gva_t gva, uint32_t bytes, gpa_t gpa, uint32_t rights)
{
	(void)ctx, (void)gva, (void)bytes, (void)gpa;
	last_rights = rights;
	maps++;
}

static void fake_unmap(void *ctx, gva_t gva, uint32_t bytes)
{
	(void)ctx, (void)gva, (void)bytes, unmapped++;
}

static void reset(unsigned n)
{
	static const struct shadow_host host = { fake_map, fake_unmap, NULL };

	fake_reset();
	set32(PAGE_DIR, 0); /* no neighbour is mapped too */
	all = (struct spaces){ .n = n };
	cr3 = unmapped = 0;
	for (unsigned i = 0; i <= BARE; i++) {
		memset(entries[i], 0, sizeof entries[i]);
		space[i] = (struct space){ .shadow = { .host = &host,
						       .entry = entries[i],
						       .ram_pages = RAM_BYTES >> PAGE_BITS,
						       .run = SHADOW_RUN,
						       .first_page = 1,
						       .area_limit = 60000 },
					   .bare = i == BARE };
	}
}

static struct space *current(void) { return &space[spaces_wanted(&all, cr3)]; }

static void touch_in(struct space *where, gva_t gva, gpa_t gpa)
{
	struct vcpu_walk w = { .gpa = gpa, .writable = true, .global = gva >= KERNEL };

	shadow_map(&where->shadow, V, gva, &w, ACCESS_READ);
}

static void touch(gva_t gva, gpa_t gpa) { touch_in(current(), gva, gpa); }

static gpa_t mapped_in(const struct space *where, gva_t gva)
{
	return gfn_to_gpa(shadow_frame(shadow_entry(&where->shadow, gva)));
}
static gpa_t mapped(gva_t gva) { return mapped_in(current(), gva); }

static void load_cr3(uint32_t number, bool keep)
{
	cr3 = number;
	spaces_cr3_loaded(&all, cr3, keep);
	V->cr3 = cr3;
	spaces_enter(&all, current(), V);
}

static void a_number_keeps_its_pages(void)
{
	reset(3);
	load_cr3(1, false);
	touch(USER_AT, 0x5000);
	touch(KERNEL, 0x6000);
	load_cr3(2, false);
	CU_ASSERT_EQUAL(mapped(USER_AT), 0);
	touch(USER_AT, 0x7000);
	load_cr3(1, true);
	CU_ASSERT_EQUAL(mapped(USER_AT), 0x5000);
	CU_ASSERT_EQUAL(mapped(KERNEL), 0x6000);
	load_cr3(2, false);
	CU_ASSERT_EQUAL(mapped(USER_AT), 0);
	load_cr3(2, true);
	CU_ASSERT_EQUAL(mapped(USER_AT), 0);
}

/* An address space, or a page of it, is flushed and goes on (fork, copy on write): what was mapped
 * is mapped as the page tables say now, the rest is dropped. */
static void a_flush_of_one_that_goes_on(void)
{
	enum { AT = 0x20000, OTHER = 0x23000, ALL = P | W | U | A | D };
	static const struct { uint32_t pte, frame; bool writable, new_directory;
	} rows[] = {
		{ AT | ALL, AT, true, false },
		{ AT | (ALL & ~W), AT, false, false },
		{ AT | (ALL & ~D), 0, false, false },
		{ AT | (ALL & ~A), 0, false, false },
		{ AT | (ALL & ~U), 0, false, false },
		{ OTHER | ALL, OTHER, true, false },
		{ OTHER | (ALL & ~W), OTHER, false, false },
		{ VMP_LAPIC_GPA | ALL, 0, false, false },
		{ 0, 0, false, false },
		{ AT | ALL, 0, false, true },
	};

	for (unsigned i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		unsigned row = i / 2;
		bool page_alone = i % 2;

		if (page_alone && rows[row].new_directory)
			continue;
		reset(3);
		set32(PAGE_DIR, PAGE_TABLE | P | W | U | A);
		load_cr3(PAGE_DIR | 1, false);
		touch(AT, AT); /* and its neighbours */
		CU_ASSERT_EQUAL(mapped(AT + PAGE_BYTES), AT + PAGE_BYTES);
		set_pte(AT, rows[row].pte);
		if (rows[row].new_directory)
			memcpy(fake.ram + 0x7000, fake.ram + PAGE_DIR, PAGE_BYTES);
		if (page_alone)
			spaces_drop_range(&all, current(), V, AT, 1);
		else
			load_cr3((rows[row].new_directory ? 0x7000 : PAGE_DIR) | 1, false);
		CU_ASSERT_EQUAL(mapped(AT), rows[row].frame);
		CU_ASSERT_EQUAL(!!(shadow_entry(&current()->shadow, AT) & SHADOW_WRITE),
				rows[row].writable);
		CU_ASSERT_EQUAL(mapped(AT + PAGE_BYTES) != 0, !rows[row].new_directory);
		CU_ASSERT_EQUAL(!!(shadow_entry(&current()->shadow, AT + PAGE_BYTES) &
				   SHADOW_WRITE),
				!rows[row].new_directory);
	}
}

/* Neighbours that are mapped too: within the run, and neither the page below the host's first nor
 * the CPU window. */
static void runs(void)
{
	static const struct { gva_t at; unsigned run, first_page; gva_t first, last;
	} rows[] = {
		{ 0x24000, SHADOW_RUN, 1, 0x20000, 0x2f000 },
		{ 0x24000, SHADOW_RUN, 0x22, 0x22000, 0x2f000 },
		{ 0x24000, SHADOW_LONG_RUN, 1, PAGE_BYTES, RAM_BYTES - PAGE_BYTES },
		{ VMP_WINDOW - PAGE_BYTES, SHADOW_RUN, 1, VMP_WINDOW & ~0xffffu,
		  VMP_WINDOW - PAGE_BYTES },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct space *s = &space[0];

		reset(1);
		set32(PAGE_DIR, PAGE_TABLE | P | W | U | A);
		set32(PAGE_DIR + 4 * (VMP_WINDOW >> 22), PAGE_TABLE | P | W | U | A);
		/* also those that the table of the window's 4 MiB covers */
		for (unsigned page = 0; page < RAM_BYTES >> PAGE_BITS; page++)
			set32(PAGE_TABLE + 4 * (0x3f0 + page % 16),
			      (0x20000 + page % 16 * PAGE_BYTES) | P | W | U | A | D);
		load_cr3(PAGE_DIR, false);
		s->shadow.run = rows[i].run;
		s->shadow.first_page = rows[i].first_page;
		touch(rows[i].at, 0x24000);
		for (gva_t gva = rows[i].at & ~0xfffffu, n = 0; n < 256; n++, gva += PAGE_BYTES)
			CU_ASSERT_EQUAL(mapped(gva) != 0,
					gva >= rows[i].first && gva <= rows[i].last);
	}
}

/* Code that the kernel has run may be executed in its half, and all of the user's. */
static void what_may_be_executed(void)
{
	static const struct { gva_t at; bool large; enum vcpu_access access; bool may;
	} rows[] = {
		{ USER_AT, false, ACCESS_READ, true },	{ USER_AT, true, ACCESS_WRITE, true },
		{ KERNEL, false, ACCESS_READ, false },	{ KERNEL, false, ACCESS_FETCH, true },
		{ KERNEL, false, ACCESS_WRITE, false }, { KERNEL, true, ACCESS_READ, false },
		{ KERNEL, true, ACCESS_FETCH, true },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct vcpu_walk w = { .gpa = 0, .writable = true, .large = rows[i].large };

		reset(1);
		shadow_map(&space[0].shadow, V, rows[i].at, &w, rows[i].access);
		CU_ASSERT_EQUAL(last_rights, SHADOW_WRITE | (rows[i].may ? SHADOW_EXECUTE : 0));
	}
}

/* A space for programs alone gets no page that only the kernel may touch, as a neighbour or by
 * itself, and none of the kernel's half. */
static void what_programs_get(void)
{
	static const struct { gva_t at; bool user, killed; } rows[] = {
		{ USER_AT, true, false }, { USER_AT, false, true }, { KERNEL, true, true },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct vcpu_walk w = { .gpa = 0x5000, .writable = true, .user = rows[i].user };

		reset(1);
		space[0].shadow.users = true;
		CU_ASSERT_EQUAL(shadow_map(&space[0].shadow, V, rows[i].at, &w, ACCESS_READ),
				!rows[i].killed);
		CU_ASSERT_EQUAL(V->dead == VCPU_KILLED, rows[i].killed);
		CU_ASSERT_EQUAL(mapped(rows[i].at) != 0, !rows[i].killed);
	}
	for (unsigned users = 0; users < 2; users++) {
		struct vcpu_walk w = { .gpa = 0x24000, .writable = true, .user = true };

		reset(1);
		set32(PAGE_DIR, PAGE_TABLE | P | W | U | A);
		for (unsigned page = 0; page < 16; page++)
			set32(PAGE_TABLE + 4 * page, (0x20000 + page * PAGE_BYTES) | P | W | A | D |
							     (page % 2 ? U : 0));
		load_cr3(PAGE_DIR, false);
		space[0].shadow.users = users;
		shadow_map(&space[0].shadow, V, 5 * PAGE_BYTES, &w, ACCESS_READ);
		for (unsigned page = 1; page < 16; page++)
			CU_ASSERT_EQUAL(mapped(page * PAGE_BYTES) != 0, page % 2 || !users);
	}
}

/* The machine is saved: rights to frames were taken, and come back for pairs of them, as a pin asks
 * for one. */
static _Atomic uint8_t right[RAM_BYTES >> PAGE_BITS];

static void give_pair(struct fake *f, gpa_t gpa, bool write)
{
	(void)f;
	if (write)
		right[gpa_to_gfn(gpa) & ~1u] = right[gpa_to_gfn(gpa) | 1] = PAGE_WRITE;
}

static void what_may_be_written_to(void)
{
	enum { AT = 0x20000, FRAME = AT >> PAGE_BITS };
	static const struct {
		bool large, kernel, has_right;
		enum vcpu_access before, then;
		unsigned pairs, maps;
		bool asks;
	} rows[] = {
		/* as without rights */
		{ false, false, true, ACCESS_READ, ACCESS_WRITE, 8, 1, true },
		{ false, false, false, ACCESS_READ, ACCESS_READ, 0, 1, false },
		{ false, false, false, ACCESS_READ, ACCESS_WRITE, 1, 1, true },
		{ false, true, false, ACCESS_FETCH, ACCESS_WRITE, 1, 2, true },
		{ true, true, false, ACCESS_READ, ACCESS_READ, 0, 1, false },
		{ true, true, false, ACCESS_FETCH, ACCESS_WRITE, 1, 1, true },
		{ true, true, true, ACCESS_FETCH, ACCESS_WRITE, (RAM_BYTES >> PAGE_BITS) / 2, 1,
		  true },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct shadow *s = &space[0].shadow;
		gva_t at = AT + (rows[i].kernel ? KERNEL : 0);
		struct vcpu_walk w = { .gpa = AT,
				       .writable = true,
				       .large = rows[i].large,
				       .global = rows[i].kernel };
		unsigned writable = 0, count = rows[i].large ? RAM_BYTES >> PAGE_BITS : SHADOW_RUN;

		reset(1);
		set32(PAGE_DIR, PAGE_TABLE | P | W | U | A);
		set32(PAGE_DIR + 4 * (KERNEL >> 22), PAGE_TABLE | P | W | A);
		memset((void *)right, rows[i].has_right ? PAGE_WRITE : PAGE_READ, sizeof right);
		s->right = right;
		fake.on_pin = give_pair;
		shadow_map(s, V, at, &w, rows[i].before);
		CU_ASSERT(!(shadow_entry(s, at) & SHADOW_WRITE) == !rows[i].has_right &&
			  fake.write_pins == 0);
		maps = 0;
		shadow_map(s, V, at, &w, rows[i].then);
		CU_ASSERT_EQUAL(fake.write_pins, rows[i].asks);
		CU_ASSERT_EQUAL(maps, rows[i].maps);
		for (unsigned page = 0; page < count; page++)
			writable += !!(
				shadow_entry(s, (at & ~0xfffffu) +
							(rows[i].large ? page : FRAME + page) *
								PAGE_BYTES) &
				SHADOW_WRITE);
		CU_ASSERT_EQUAL(writable, 2 * rows[i].pairs);
		CU_ASSERT_EQUAL(!!(shadow_entry(s, at) & SHADOW_EXECUTE),
				rows[i].before == ACCESS_FETCH);
	}
}

/* Numbers that share a host address space drop each other's user pages, and keep the kernel's. */
static void numbers_may_share(void)
{
	reset(3);
	load_cr3(1, false);
	touch(USER_AT, 0x5000);
	touch(KERNEL, 0x6000);
	load_cr3(4, true);
	CU_ASSERT_EQUAL(mapped(USER_AT), 0);
	CU_ASSERT_EQUAL(mapped(KERNEL), 0x6000);
	touch(USER_AT, 0x7000);
	load_cr3(1, true);
	CU_ASSERT_EQUAL(mapped(USER_AT), 0);
}

static void ranges(void)
{
	static const struct { gva_t first; uint32_t pages; bool here, there, kernel; } rows[] = {
		/* still mapped in the current space, in the other one, and the kernel's in the
		 * other one? */
		{ USER_AT, 1, false, true, true },
		{ KERNEL, 1, true, true, false },
		{ KERNEL - PAGE_BYTES, 2, true, true, false },
		{ KERNEL - PAGE_BYTES, 1, true, true, true },
		{ 0, UINT32_MAX, false, true, false },
		{ KERNEL + PAGE_BYTES, 1, true, true, true },
		{ VMP_WINDOW, 1, true, true, true },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		reset(3);
		load_cr3(1, false);
		touch(USER_AT, 0x5000);
		touch(KERNEL, 0x6000);
		load_cr3(2, false);
		touch(USER_AT, 0x7000);
		touch(KERNEL, 0x6000);
		spaces_drop_range(&all, current(), V, rows[i].first, rows[i].pages);
		CU_ASSERT_EQUAL(mapped(USER_AT) != 0, rows[i].here);
		CU_ASSERT_EQUAL(mapped(KERNEL) != 0, rows[i].kernel);
		load_cr3(1, true);
		CU_ASSERT_EQUAL(mapped(USER_AT) != 0, rows[i].there);
		CU_ASSERT_EQUAL(mapped(KERNEL) != 0, rows[i].kernel);
	}
}

/* CR3 is loaded, and a user page is flushed before guest code runs: the page was the new
 * number's. */
static void a_flush_behind_the_load(void)
{
	reset(3);
	load_cr3(1, false);
	touch(USER_AT, 0x5000);
	load_cr3(2, false);
	cr3 = 1;
	spaces_cr3_loaded(&all, cr3, true);
	V->cr3 = cr3;
	spaces_drop_range(&all, &space[2], V, USER_AT, 1);
	V->cr3 = cr3;
	spaces_enter(&all, current(), V);
	CU_ASSERT_EQUAL(mapped(USER_AT), 0);
}

static void the_kernels_half_goes_alone(void)
{
	reset(1);
	load_cr3(1, false);
	touch(USER_AT, 0x5000);
	touch(KERNEL, 0x6000);
	unmapped = 0;
	shadow_drop_kernel(&current()->shadow);
	CU_ASSERT(mapped(USER_AT) != 0 && mapped(KERNEL) == 0 && unmapped == 1);
	shadow_drop_kernel(&current()->shadow);
	CU_ASSERT_EQUAL(unmapped, 1); /* nothing was there */
	touch(KERNEL, 0x6000);
	spaces_drop_range(&all, current(), V, KERNEL, 1);
	unmapped = 0;
	shadow_drop_kernel(&current()->shadow);
	CU_ASSERT_EQUAL(unmapped, 0);
}

static void all_is_dropped_everywhere(void)
{
	for (unsigned logged = 0; logged <= SPACES_LOG + 1; logged++) {
		reset(3);
		load_cr3(1, false);
		touch(USER_AT, 0x5000);
		touch(KERNEL, 0x6000);
		load_cr3(2, false);
		if (logged == 0)
			spaces_drop_all(&all, current());
		for (unsigned i = 0; i < logged; i++)
			spaces_drop_range(&all, current(), V, KERNEL + (1 + i) * PAGE_BYTES, 1);
		load_cr3(1, true);
		CU_ASSERT_EQUAL(mapped(USER_AT) != 0, logged > 0 && logged <= SPACES_LOG);
		CU_ASSERT_EQUAL(mapped(KERNEL) != 0, logged > 0 && logged <= SPACES_LOG);
	}
}

static void the_bare_one(void)
{
	enum {
		NOTHING,
		SAME_NUMBER,
		OTHER_NUMBER,
		OTHER_DIRECTORY,
		FLUSHED,
		PAGE_FLUSHED,
		PAGE_FLUSHED_BESIDE,
		OTHER_PAGE_FLUSHED_BESIDE,
		KERNEL_FLUSHED,
		OTHERS_FLUSHED,
		ALL_DROPPED
	};
	static const struct { int what; bool there;
	} rows[] = {
		{ NOTHING, true },	    { SAME_NUMBER, true },    { OTHER_NUMBER, false },
		{ OTHER_DIRECTORY, false }, { FLUSHED, false },	      { PAGE_FLUSHED, false },
		{ KERNEL_FLUSHED, true },   { OTHERS_FLUSHED, true }, { ALL_DROPPED, false },
		{ PAGE_FLUSHED_BESIDE, false }, { OTHER_PAGE_FLUSHED_BESIDE, true },
	};
	struct space *bare = &space[BARE];

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		reset(3);
		load_cr3(1, false);
		spaces_enter(&all, bare, V);
		touch_in(bare, USER_AT, 0x5000);
		spaces_enter(&all, current(), V);
		switch (rows[i].what) {
		case SAME_NUMBER: load_cr3(1, true); break;
		case OTHER_NUMBER: load_cr3(2, true); break;
		case OTHER_DIRECTORY: load_cr3(PAGE_DIR | 1, true); break;
		case FLUSHED: load_cr3(1, false); break;
		case PAGE_FLUSHED: spaces_drop_range(&all, current(), V, USER_AT, 1); break;
		case PAGE_FLUSHED_BESIDE:
			spaces_drop_range_beside(&all, current(), bare, V, USER_AT, 1);
			CU_ASSERT_EQUAL(mapped_in(bare, USER_AT), 0);
			break;
		case OTHER_PAGE_FLUSHED_BESIDE:
			spaces_drop_range_beside(&all, current(), bare, V, USER_AT + PAGE_BYTES, 1);
			break;
		case KERNEL_FLUSHED: spaces_drop_range(&all, current(), V, KERNEL, 1); break;
		case OTHERS_FLUSHED:
			load_cr3(2, false);
			spaces_drop_range(&all, current(), V, USER_AT, 1);
			load_cr3(1, true);
			break;
		case ALL_DROPPED: spaces_drop_all(&all, current()); break;
		}
		spaces_enter(&all, bare, V);
		CU_ASSERT_EQUAL(mapped_in(bare, USER_AT) != 0, rows[i].there);
		spaces_enter(&all, current(), V);
		spaces_enter(&all, bare, V);
		CU_ASSERT_EQUAL(mapped_in(bare, USER_AT) != 0, rows[i].there);
	}
}

/* T: a tick finds the program running; t: another program.  K, k: it wants the kernel, where it was
 * assumed to compute, or not. */
static void who_computes(void)
{
	static const struct { const char *past; bool computes; uint32_t doubt;
	} rows[] = {
		{ "", false, 0 },
		{ "T", false, 0 },
		{ "TT", true, 0 },
		{ "TTT", true, 0 },
		{ "TtT", false, 0 },
		{ "tTT", true, 0 },
		{ "TkT", false, 0 },
		{ "TTk", false, 0 },
		{ "TTkTT", true, 0 },
		{ "kTT", true, 0 },
		{ "TTK", false, 1 },
		{ "TTKTT", false, 1 },
		{ "TTKTTT", false, 1 },
		{ "TTKTTTT", true, 1 },
		{ "TTKTTTTK", false, 2 },
		{ "TTKTTTTTK", false, 0 },
		{ "TTKTTTTTKTT", true, 0 },
		{ "TTTK", false, 0 },
		{ "TTKKKKKKKK", false, COMPUTING_MOST_DOUBT },
		{ "TTKTkT", false, 1 },
		{ "TTt", false, 0 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct computing c = { 0 };

		for (const char *p = rows[i].past; *p; p++) {
			if (*p == 'T' || *p == 't')
				computing_tick(&c, *p == 'T' ? 0x1001 : 0x2002);
			else
				computing_trap(&c, *p == 'K');
		}
		if (computing_is(&c, 0x1001) != rows[i].computes || c.doubt != rows[i].doubt)
			CU_FAIL(rows[i].past);
		CU_ASSERT_FALSE(computing_is(&c, 0x3003));
	}
}

static void interrupted_with_host_ticks(void)
{
	static const struct { uint64_t due, set_for, tick, at;
	} rows[] = {
		{ 1000, 1000, 400, 1200 }, { 1200, 1000, 400, 1200 }, { 1201, 1000, 400, 1600 },
		{ 1000, 400, 400, 1200 },  { 1000, 399, 400, 1000 },  { 1200, 0, 400, 1200 },
		{ 1000, 1000, 0, 1000 },   { 1001, 799, 400, 1200 },  { 801, 797, 400, 801 },
		{ 801, 798, 400, 1200 },   { 0, 10, 400, 0 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		CU_ASSERT_EQUAL(computing_due_ns(rows[i].due, rows[i].set_for, rows[i].tick),
				rows[i].at);
}

static void drop_at_random(gva_t gva)
{
	if (rand() % 2)
		spaces_drop_range(&all, current(), V, gva, 1);
	else
		spaces_drop_range_beside(&all, current(), &space[BARE], V, gva, 1);
}

/* A guest that changes its page tables and flushes as the architecture requires, at random: no host
 * mapping is ever older than that permits.  The version of a page is its frame. */
static void at_random(void)
{
	enum { NUMBERS = 7, PAGES = 4, FRAMES = RAM_BYTES >> PAGE_BITS, STEPS = 200000 };
	unsigned truth[NUMBERS][PAGES], kernel[PAGES], wrong = 0, kept = 0, seen_bare;
	bool changed[NUMBERS] = { false };

	srand(1);
	for (unsigned n = 1; n <= SPACES; n++) {
		reset(n);
		load_cr3(0, false);
		seen_bare = 0;
		for (unsigned p = 0; p < PAGES; p++) {
			kernel[p] = 1 + rand() % (FRAMES - 1);
			for (unsigned i = 0; i < NUMBERS; i++)
				truth[i][p] = 1 + rand() % (FRAMES - 1);
		}
		for (unsigned step = 0; step < STEPS; step++) {
			unsigned number = spaces_number(cr3), page = rand() % PAGES,
				 other = rand() % NUMBERS;
			gva_t user = USER_AT + page * 0x100000, high = KERNEL + page * 0x100000;

			switch (rand() % 9) {
			case 0: case 1:
				kept += mapped(user) != 0;
				touch(user, truth[number][page] << PAGE_BITS);
				break;
			case 2:
				touch(high, kernel[page] << PAGE_BITS);
				break;
			case 3:
				truth[number][page] = 1 + rand() % (FRAMES - 1);
				drop_at_random(user);
				break;
			case 4:
				kernel[page] = 1 + rand() % (FRAMES - 1);
				drop_at_random(high);
				break;
			case 5:
				truth[other][page] = 1 + rand() % (FRAMES - 1);
				changed[other] = true;
				if (other == number) {
					load_cr3(number, false);
					changed[number] = false;
				}
				break;
			case 6:
				load_cr3(other, !changed[other] && rand() % 4);
				changed[other] = false;
				break;
			case 7:
				if (rand() % 50 == 0)
					spaces_drop_all(&all, current());
				break;
			case 8: /* its user computes for a while */
				spaces_enter(&all, &space[BARE], V);
				for (unsigned p = 0; p < PAGES; p++) {
					gpa_t here = mapped_in(&space[BARE],
							       USER_AT + p * 0x100000);

					wrong += here && here != truth[number][p] << PAGE_BITS;
					seen_bare += here != 0;
				}
				touch_in(&space[BARE], user, truth[number][page] << PAGE_BITS);
				spaces_enter(&all, current(), V);
				break;
			}
			for (unsigned p = 0; p < PAGES; p++) {
				gpa_t here = mapped(USER_AT + p * 0x100000),
				      above = mapped(KERNEL + p * 0x100000);

				wrong += here && here != truth[spaces_number(cr3)][p] << PAGE_BITS;
				wrong += above && above != kernel[p] << PAGE_BITS;
			}
		}
		CU_ASSERT(seen_bare > 0);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(kept > 0);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(a_number_keeps_its_pages),
		UNIT_TEST(a_flush_of_one_that_goes_on),
		UNIT_TEST(runs),
		UNIT_TEST(what_may_be_executed),
		UNIT_TEST(what_programs_get),
		UNIT_TEST(what_may_be_written_to),
		UNIT_TEST(numbers_may_share),
		UNIT_TEST(ranges),
		UNIT_TEST(a_flush_behind_the_load),
		UNIT_TEST(the_kernels_half_goes_alone),
		UNIT_TEST(all_is_dropped_everywhere),
		UNIT_TEST(the_bare_one),
		UNIT_TEST(who_computes),
		UNIT_TEST(interrupted_with_host_ticks),
		UNIT_TEST(at_random),
		UNIT_END
	};

	return UNIT_RUN("vcpu spaces", tests);
}
