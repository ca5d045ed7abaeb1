/* vmp_report.c - tests of what the command prints about a machine: page heat, symbols, dumps, and
 * the report of --stats. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "tests/unit/work_folder.h"
#include "vmm/cli/options.h"
#include "vmm/cli/query/dumptext.h"
#include "vmm/cli/query/pageheat.h"
#include "vmm/cli/query/report.h"

/* ---- page heat ---- */

static void heat_is_added_up(void)
{
	static const struct page_heat first[] = { { 5, 1 }, { 7, 10 } },
				      second[] = { { 5, 20 }, { 3, 10 } };
	struct pageheat heat = { 0 };

	pageheat_sort(&heat);
	pageheat_add(&heat, first, 2);
	pageheat_add(&heat, second, 2);
	pageheat_sort(&heat);
	CU_ASSERT_EQUAL_FATAL(heat.n, 3);
	CU_ASSERT(heat.page[0].gfn == 5 && heat.page[0].faults == 21);
	CU_ASSERT(heat.page[1].gfn == 3 && heat.page[2].gfn == 7);
	pageheat_free(&heat);
}

static void dump_is_named(void)
{
	static struct symbol table[] = {
		{ 0xc1000010, 0x100, "call_it", false },
		{ 0xc1002800, 0x10, "a_table", true },
		{ 0xc1002810, 0x10, "deep", false },
	};
	static const char text[] =
		"cpu 0 level 0\neip c1002814 -> 01002814 kernel\nstack c1000020 00000007 c1002804\n"
		"stack c1000020 c1002811\n";
	struct symbols symbols = { .symbol = table, .n = ARRAY_LEN(table) };
	char *printed;
	size_t bytes;
	FILE *out = open_memstream(&printed, &bytes);

	dump_print(out, text, &symbols);
	fclose(out);
	CU_ASSERT_STRING_EQUAL(printed, "cpu 0 level 0\neip c1002814 -> 01002814 kernel "
			       "deep+0x4\nstack c1000020 00000007 c1002804\n  c1000020 "
			       "call_it+0x10\nstack c1000020 c1002811\n  c1002811 deep+0x1\n");
	free(printed);
}

static void symbols_are_found(void)
{
	static struct symbol table[] = {
		{ 0xc1000000, 0, "_stext", false }, { 0xc1000010, 0x2000, "long_one", false },
		{ 0xc1002800, 0x10, "a", false },   { 0xc1002810, 0x10, "b", false },
		{ 0xc1002820, 0x10, "c", false },   { 0xc1002830, 0x10, "d", false },
	};
	struct symbols symbols = { .symbol = table, .n = ARRAY_LEN(table) }, loaded;
	char text[128];

	symbols.init_begin = 0xc1002000, symbols.init_end = 0xc1003000;
	pageheat_describe_symbol(&symbols, 0xc1002000, 0x1000, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "(init section, free since the boot)");
	symbols.init_begin = symbols.init_end = 0;
	pageheat_describe_symbol(&symbols, 0xc1001000, 0x1000, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "long_one+0xff0");
	pageheat_symbol_name(&symbols, 0xc1002810, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "b+0x0");
	pageheat_symbol_name(&symbols, 0xc1002840, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "");
	pageheat_symbol_name(&symbols, 0xffffffff, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "");
	pageheat_describe_symbol(&symbols, 0xc1002000, 0x1000, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "long_one+0x1ff0, a, b, ...");
	pageheat_describe_symbol(&symbols, 0xc1004000, 0x1000, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "");
	shell("echo 'int main(void) { return 0; }' >main.c && gcc -m32 -static -o static32 main.c");
	CU_ASSERT_EQUAL(pageheat_load_symbols(&loaded, at("static32")), 0);
	CU_ASSERT(loaded.n > 500);
	pageheat_free_symbols(&loaded);
	CU_ASSERT(pageheat_load_symbols(&loaded, at("nonesuch")) != 0);
	pageheat_describe_symbol(&loaded, 0xc1000000, 0x1000, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "");
}

/* ---- what the nodes counted ---- */

struct stats_part { struct msg_stats head; struct node_stats node; struct cpu_stats cpu[2]; };

static void reports_are_put_together(void)
{
	static struct report report;
	struct options o = { .machine = { .hosts = 2, .cpus = 3, .mem_mib = 64 },
			     .stats = at("stats.json") };
	struct stats_part part = { .node = { .node = 0,
					     .parts = 2,
					     .part = 1,
					     .cpus_in_part = 1,
					     .user_monotonic_ns = 3000000,
					     .page_requests = 5 } };
	const size_t one_cpu = offsetof(struct stats_part, cpu[1]);
	struct {
		struct msg_pages_here head;
		struct page_heat heat[2];
	} pages = { { 0, 0, 0, 0 }, { { 7, 3 }, { 9, 1 } } };
	struct problem p;

	memset(&report, 0, sizeof report);
	report.hosts = 3; /* 0 and 1 */
	part.cpu[0].cpu = 2;
	part.cpu[0].time_ns[TIME_IDLE] = 11;
	report_on_stats(&report, &part, one_cpu - 1); /* cut short: ignored */
	CU_ASSERT_FALSE(report.cpu_seen[2]);
	report_on_stats(&report, &part, one_cpu);
	CU_ASSERT(report.cpu_seen[2] && !report_is_complete(&report));
	part.node.part = 0;
	part.cpu[0].cpu = 0;
	report_on_stats(&report, &part, one_cpu);
	part.node = (struct node_stats){
		.node = 1, .parts = 1, .cpus_in_part = 2, .page_requests = 7
	};
	part.cpu[0].cpu = 1;
	part.cpu[1].cpu = 1000; /* nonsense: ignored */
	report_on_stats(&report, &part, sizeof part);
	part.node.node = 5; /* no such host */
	report_on_stats(&report, &part, sizeof part);
	CU_ASSERT_FALSE(report_is_complete(&report));
	report_on_pages(&report, &pages, sizeof pages);
	pages.head.node = 1;
	report_on_pages(&report, &pages, sizeof pages);
	CU_ASSERT(report_is_complete(&report));
	shell("yes outdated | head -n 10000 >stats.json");
	CU_ASSERT_EQUAL(report_open(&report, &o, &p), 0);
	shell("grep -q outdated stats.json"); /* until there is something to write */
	report_write(&report, &o, NULL, 1000000, 0);
	shell("! grep -q outdated stats.json && tail -n 1 stats.json | grep -qx }");
	shell("tr -d '\n' <stats.json >line && grep -q '\"boot_ms\": 2.000' line && grep -q "
	      "'total\": {\"page_requests\": 12' line");
	shell("grep -q '\"address\": \"0x00007000\", \"fetches\": 6' line && grep -o '\"cpu\": ' "
	      "line | wc -l | grep -qx 3");
	report_free(&report);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(heat_is_added_up),
		UNIT_TEST(symbols_are_found),
		UNIT_TEST(dump_is_named),
		UNIT_TEST(reports_are_put_together),
		UNIT_END
	};
	int status;

	if (work_folder_make())
		return 1;
	status = UNIT_RUN("vmp_report", tests);
	return work_folder_remove() || status;
}
