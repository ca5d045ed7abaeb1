/* spaces.c - several address spaces: three page directories, each with the user area of one of
 * three tenants, under the eight numbers of address spaces that vmp keeps (VMP_CR3_SPACE).
 *
 * A trap gate's handler changes them as a kernel's scheduler would: any directory under any number,
 * sometimes with another tenant in a directory that could have been freed.  It sets VMP_CR3_KEEP if
 * the translations that were kept under that number must still be valid.  On other machines every
 * load of CR3 flushes all translations, so kept ones must never make a difference.
 */
#include "tests/diff/diff.h"

enum { P = 1, W = 2, U = 4, A = 0x20, D = 0x40, LARGE = 0x80 };
enum { DIRECTORIES = 3, NUMBERS = VMP_CR3_SPACE + 1, LARGE_WORDS = 1 << 20 };
enum tenant { TENANT_FIRST, TENANT_OTHER, TENANT_LARGE, TENANTS };

/* Return a tenant's page-directory entry.  The first tenant's pages are those of every area
 * (machine.c); the second has the same frames in other places; the third has a page of 4 MiB, which
 * user code executes and may not write. */
static uint32_t tenant_entry(enum tenant tenant)
{
	switch (tenant) {
	case TENANT_FIRST: return PHYS_PT_USER | P | W | U | A;
	case TENANT_OTHER: return PHYS_PT_OTHER | P | W | U | A;
	default: return PHYS_LARGE | P | U | LARGE | (sequence.user ? 0 : W);
	}
}

static const struct { uint8_t page, frame, flags;
} other[] = {
	{ AREA_CODE, FRAME_CODE, P | U }, { AREA_CODE + 1, FRAME_CODE + 1, P | U },
	{ AREA_DATA, 5, P | W | U },      { AREA_DATA + 1, 2, P | U },
	{ AREA_READ_ONLY, 3, P | W | U }, { AREA_DATA2, 4, P | W | U },
	{ AREA_STACK, 6, P | W | U },     { AREA_ALIAS, 3, P | W | U },
};

/* The content of the tables when a number was left. */
static struct kept {
	bool valid;
	uint32_t directory, user;
	uint32_t entries[3 * AREA_PAGES];
} kept[NUMBERS];

static uint32_t directory_address(unsigned n)
{
	return n ? PHYS_DIRECTORIES + (n - 1) * 4096 : PHYS_PAGE_DIR;
}
static uint32_t *directory(uint32_t address) { return physical(address); }
static uint32_t *user_entry(uint32_t address) { return directory(address) + (USER_AREA >> 22); }
static uint32_t *other_entry(unsigned page) { return (uint32_t *)physical(PHYS_PT_OTHER) + page; }

static bool large_written = true; /* since it was filled */

static void set_tenant(uint32_t address, enum tenant tenant)
{
	uint32_t *entry = user_entry(address);

	large_written |= (*entry & LARGE) && (*entry & D);
	*entry = tenant_entry(tenant);
}

static uint32_t read_cr3(void)
{
	uint32_t cr3;

	__asm__ volatile("mov %%cr3, %0" : "=r"(cr3));
	return cr3;
}

static void write_cr3(uint32_t address, unsigned number, bool keep)
{
#ifdef DIFF_VMP
	number |= keep ? VMP_CR3_KEEP : 0;
#else
	(void)keep;
#endif
	__asm__ volatile("mov %0, %%cr3" : : "r"(address | number) : "memory");
}

static struct kept tables_now(uint32_t address)
{
	struct kept now = { true, address, *user_entry(address), { 0 } };

	for (unsigned page = 0; page < AREA_PAGES; page++) {
		now.entries[page] = *area_entry(KERNEL_AREA, page);
		now.entries[AREA_PAGES + page] = *area_entry(USER_AREA, page);
		now.entries[2 * AREA_PAGES + page] = *other_entry(page);
	}
	return now;
}

/* True if the entry is unchanged, except for accessed and dirty bits that were set since. */
static bool entry_still_true(uint32_t before, uint32_t now)
{
	return !((before ^ now) & ~(now & (A | D)));
}

static bool still_true(const struct kept *before, const struct kept *now)
{
	bool same = before->valid && before->directory == now->directory &&
		    entry_still_true(before->user, now->user);

	for (unsigned i = 0; i < ARRAY_LEN(now->entries); i++)
		same &= entry_still_true(before->entries[i], now->entries[i]);
	return same;
}

void spaces_switch(uint32_t choice)
{
	uint32_t from = read_cr3(), to = directory_address(choice % DIRECTORIES);
	unsigned number = choice >> 4 & VMP_CR3_SPACE;
	struct kept now;
	bool keep;

	kept[from & VMP_CR3_SPACE] = tables_now(from & ~0xfffu);
	if ((choice >> 8 & 3) == 0)
		set_tenant(to, (choice >> 10 & 0xff) % TENANTS);
	now = tables_now(to);
	keep = still_true(&kept[number], &now) && (choice >> 20 & 3);
	kept[number].valid = false; /* until it is left by this way */
	write_cr3(to, number, keep);
}

void spaces_init(void)
{
	uint32_t *first = directory(PHYS_PAGE_DIR);

	first[(DIRECT + PHYS_LARGE) >> 22] = PHYS_LARGE | P | W | A | D | LARGE;
	for (unsigned n = 1; n < DIRECTORIES; n++)
		memcpy(directory(directory_address(n)), first, 4096);
	spaces_reset();
}

static void large_fill(uint32_t first, uint32_t words)
{
	uint32_t *word = physical(PHYS_LARGE);

	for (uint32_t i = first; i < first + words; i++)
		word[i] = (i + 77) * 0x85ebca6b;
}

/* Fill the large page.  Code differs between the builds.  User code runs here, and cannot copy it
 * elsewhere; kernel code could, so it runs elsewhere. */
static void large_reset(void)
{
	if (large_written)
		large_fill(0, LARGE_WORDS);
	large_written = false;
	if (sequence.user)
		memcpy(physical(PHYS_LARGE + AREA_CODE * 4096), frame_words(FRAME_CODE), 2 * 4096);
	else
		large_fill(AREA_CODE * 1024, 2 * 1024);
}

void spaces_reset(void)
{
	set_tenant(PHYS_PAGE_DIR, TENANT_FIRST);
	write_cr3(PHYS_PAGE_DIR, 0, false);
	for (unsigned number = 0; number < NUMBERS; number++)
		kept[number].valid = false;
	if (!sequence.spaces)
		return;
	for (unsigned n = 1; n < DIRECTORIES; n++)
		set_tenant(directory_address(n), (enum tenant)n);
	for (unsigned page = 0; page < AREA_PAGES; page++)
		*other_entry(page) = (PHYS_FRAMES + FRAME_FIRST * 4096) | W | U;
	for (unsigned i = 0; i < ARRAY_LEN(other); i++)
		*other_entry(other[i].page) =
			(PHYS_FRAMES + other[i].frame * 4096) | other[i].flags;
	large_reset();
}

static bool is_code(unsigned page) { return page == AREA_CODE || page == AREA_CODE + 1; }

void spaces_record(void)
{
	if (!sequence.spaces)
		return;
	for (unsigned n = 0; n < DIRECTORIES; n++)
		record("user table", *user_entry(directory_address(n)), ~0u);
	for (unsigned page = 0; page < AREA_PAGES; page++)
		record("other page",
		       is_code(page) ? *other_entry(page) & ~(uint32_t)A : *other_entry(page), ~0u);
	for (unsigned page = 0; page < AREA_PAGES; page++)
		if (!is_code(page)) /* which differs by build */
			record_memory("large", physical(PHYS_LARGE + page * 4096), 1024);
}
