/* printable.c - a guest's text on the way to a terminal (base/printable.h). */
#include "tests/unit/unit.h"

#include <string.h>

#include "base/printable.h"

static void becomes(const char *text, const char *expected)
{
	char copy[100];

	snprintf(copy, sizeof copy, "%s", text);
	printable_text(copy, strlen(copy));
	CU_ASSERT_STRING_EQUAL(copy, expected);
}

static void plain_text_stays(void)
{
	becomes("", "");
	becomes("a\tb\nc\r\n~", "a\tb\nc\r\n~");
	/* U+00F6, U+00DF, U+20AC, U+1F600 */
	becomes("gr\xc3\xb6\xc3\x9f" "er \xe2\x82\xac \xf0\x9f\x98\x80",
		"gr\xc3\xb6\xc3\x9f" "er \xe2\x82\xac \xf0\x9f\x98\x80");
	becomes("\xc2\xa0\xc3\x80", "\xc2\xa0\xc3\x80"); /* U+00A0, U+00C0 */
}

static void control_characters_show(void)
{
	becomes("\x1b]0;title\x07\x1b[2J", "?]0;title??[2J");
	becomes("over\rwritten\x08\x7f", "over?written??");
	becomes("\r", "?");
}

static void so_do_those_of_c1(void)
{
	becomes("\x9b" "2J\x80", "?2J?");
	becomes("\xc2\x9b" "2J\xc2\x80\xc2\x9f", "??2J????");
}

static void what_is_not_utf8_hides_nothing(void)
{
	becomes("\xc3", "?");		      /* cut */
	becomes("\xc3\x1b[m", "??[m");	      /* not followed by its second byte */
	becomes("\xe2\x82\x1b[m", "???[m");
	becomes("\xc1\x9b\xc0\x9b\xf5\x9b\xff", "???????");
	becomes("\xe2\x9b", "??");
}

static void a_line_is_one(void)
{
	char line[] = "a\nb\tc\r\nd\x1b";

	printable_line(line);
	CU_ASSERT_STRING_EQUAL(line, "a?b?c??d?");
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(plain_text_stays),
		UNIT_TEST(control_characters_show),
		UNIT_TEST(so_do_those_of_c1),
		UNIT_TEST(what_is_not_utf8_hides_nothing),
		UNIT_TEST(a_line_is_one),
		UNIT_END
	};

	return UNIT_RUN("text for a terminal", tests);
}
