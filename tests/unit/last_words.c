/* last_words.c - what a guest kernel's lines say about its end (vmm/cli/run/last_words.h). */
#include "tests/unit/unit.h"

#include <string.h>

#include "vmm/cli/run/last_words.h"

static struct last_words w;

static void hear(const char *text) { last_words_hear(&w, text, strlen(text)); }

static void forget(void) { memset(&w, 0, sizeof w); }

static void panics(void)
{
	forget();
	hear("Linux version 6.1\n");
	CU_ASSERT(!*w.panic && !*w.bug && !w.over);
	hear("Kernel panic - not syncing: Cannot find place for new RAMDISK of size 42");
	CU_ASSERT_STRING_EQUAL(w.panic, "Cannot find place for new RAMDISK of size 42");
	CU_ASSERT_FALSE(w.over);
	hear("---[ end Kernel panic - not syncing: Cannot find place ]---\n");
	CU_ASSERT_TRUE(w.over);
}

static void first_panic_counts(void)
{
	forget();
	hear("Kernel panic - not syncing: one\nCall Trace:\nKernel panic - not syncing: two\n");
	CU_ASSERT_STRING_EQUAL(w.panic, "one");
	CU_ASSERT_FALSE(w.over);
}

static void latest_error_counts(void)
{
	forget();
	hear("BUG: scheduling while atomic\n");
	hear("------------[ cut here ]------------\nkernel BUG at mm/percpu.c:3281!\nEIP: 0\n");
	CU_ASSERT_STRING_EQUAL(w.bug, "kernel BUG at mm/percpu.c:3281!");
	hear("PANIC: early exception 0x0d IP 10:b0 error 0");
	CU_ASSERT_STRING_EQUAL(w.bug, "PANIC: early exception 0x0d IP 10:b0 error 0");
	CU_ASSERT(!*w.panic && !w.over);
}

static void only_at_a_lines_start(void)
{
	forget();
	hear("he said: Kernel panic - not syncing: no\n ---[ end Kernel panic - not\nA BUG: x\n");
	hear("Kernel panic - not syncing:"); /* without the blank that always follows */
	hear("");
	hear("\n\n");
	CU_ASSERT(!*w.panic && !*w.bug && !w.over);
}

/* The kernel prints names of programs and files, in which users of the guest put what they like. */
static void names_end_no_machine(void)
{
	forget();
	w.up = true;
	hear("x[9]: segfault at 8 ip 8048 sp bf90 error 6 in a\n---[ end Kernel panic[8048000+1]");
	CU_ASSERT_FALSE(w.over);
	hear("Kernel panic - not syncing: sysrq\n");
	CU_ASSERT_STRING_EQUAL(w.panic, "sysrq");
}

static void long_lines_are_cut(void)
{
	char text[1000];

	forget();
	memset(text, 'x', sizeof text);
	memcpy(text, "Kernel panic - not syncing: ", 28);
	last_words_hear(&w, text, sizeof text);
	CU_ASSERT_EQUAL(strlen(w.panic), sizeof w.panic - 1);
	memcpy(text, "BUG: ", 5);
	last_words_hear(&w, text, sizeof text);
	CU_ASSERT_EQUAL(strlen(w.bug), sizeof w.bug - 1);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(panics),
		UNIT_TEST(first_panic_counts),
		UNIT_TEST(latest_error_counts),
		UNIT_TEST(only_at_a_lines_start),
		UNIT_TEST(names_end_no_machine),
		UNIT_TEST(long_lines_are_cut),
		UNIT_END
	};

	return UNIT_RUN("last words of a kernel", tests);
}
