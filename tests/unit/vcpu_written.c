/* vcpu_written.c - which pages are requested to write to although they are read first
 * (vcpu/written.h). */
#include "tests/unit/unit.h"
#include "vcpu/written.h"

enum { READER = 0x8048000, OTHER = 0x8049123 };

static struct written written;

/* The instruction reads `pages` pages from `first` on, each of which is written to later. */
static void learns(uint32_t eip, uint32_t first, uint32_t pages)
{
	for (uint32_t page = first; page < first + pages; page++) {
		CU_ASSERT(!written_read(&written, eip, page));
		written_upgraded(&written, page);
	}
}

static void begin(void)
{
	written = (struct written){ 0 };
}

static void an_instruction_earns_it(void)
{
	begin();
	learns(READER, 100, WRITTEN_ON);
	CU_ASSERT(written_read(&written, READER, 500));
	CU_ASSERT(!written_read(&written, OTHER, 501));
}

static void what_is_only_read_costs(void)
{
	begin();
	learns(READER, 100, WRITTEN_ON - 1);
	CU_ASSERT(!written_read(&written, READER, 200));
	CU_ASSERT(!written_read(&written, READER, 200 + WRITTEN_PAGES)); /* 200 was only read */
	learns(READER, 300, 1);
	CU_ASSERT(!written_read(&written, READER, 400));
	learns(READER, 301, 1);
	CU_ASSERT(written_read(&written, READER, 401));
}

/* A page counts for the instruction that read it last, and once. */
static void a_page_counts_once(void)
{
	begin();
	for (uint32_t page = 0; page < 2 * WRITTEN_ON; page++) {
		written_read(&written, READER, page);
		written_read(&written, OTHER, page);
		written_upgraded(&written, page);
		written_upgraded(&written, page);
	}
	CU_ASSERT(!written_read(&written, READER, 900));
	CU_ASSERT(written_read(&written, OTHER, 901));
	begin();
	for (unsigned i = 0; i < 2 * WRITTEN_ON; i++)
		written_upgraded(&written, 5); /* nobody has read it */
	CU_ASSERT(!written_read(&written, READER, 5));
}

static void vain_requests_cost_more(void)
{
	begin();
	learns(READER, 100, WRITTEN_ON);
	CU_ASSERT(written_read(&written, READER, 200));
	written_vain(&written, 777); /* not read lately */
	CU_ASSERT(written_read(&written, READER, 201));
	written_vain(&written, 200);
	CU_ASSERT(!written_read(&written, READER, 202));
	learns(READER, 300, WRITTEN_VAIN);
	CU_ASSERT(written_read(&written, READER, 203));
}

/* Pages that are requested to write to miss no right later, which must not cost. */
static void what_is_on_stays_on(void)
{
	begin();
	learns(READER, 100, WRITTEN_ON);
	for (uint32_t page = 0; page < 5 * WRITTEN_PAGES; page++)
		CU_ASSERT(written_read(&written, READER, page));
}

static void credit_has_bounds(void)
{
	begin();
	for (uint32_t page = 0; page < 100 * WRITTEN_PAGES; page += WRITTEN_PAGES)
		written_read(&written, READER, page);
	learns(READER, 100, WRITTEN_ON - WRITTEN_LEAST - 1);
	CU_ASSERT(!written_read(&written, READER, 5));
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(an_instruction_earns_it),
		UNIT_TEST(what_is_only_read_costs),
		UNIT_TEST(a_page_counts_once),
		UNIT_TEST(vain_requests_cost_more),
		UNIT_TEST(what_is_on_stays_on),
		UNIT_TEST(credit_has_bounds),
		UNIT_END
	};

	return UNIT_RUN("pages that are read and then written to", tests);
}
