/* The shell's grammar, vpg/shell/line.c: each line is printed in one form, and compared. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"
#include "vpg/shell/line.h"

static void print_file(FILE *f, const char *sign, const struct line_file *file)
{
	if (!file->path)
		return;
	fprintf(f, " %s%s[%s]", sign, file->append ? ">" : "", file->path);
	if (file->nick)
		fprintf(f, "@%s", file->nick);
}

static void print_stage(FILE *f, const struct line_stage *s)
{
	static const char *const after[] = { "", " | ", " && ", " || ", " ; ", " & " };

	for (size_t i = 0; i < s->n_words; i++) {
		fprintf(f, "%s[%s]", i ? " " : "", s->words[i]);
		if (!i && s->nick)
			fprintf(f, "@%s", s->nick);
	}
	CU_ASSERT_PTR_NULL(s->words[s->n_words]);
	print_file(f, "<", &s->in);
	print_file(f, ">", &s->out);
	print_file(f, "2>", &s->err);
	fprintf(f, "%s%s", s->err_to_out ? " 2>&1" : "", after[s->after]);
}

static void print(const struct line *l, char *to, size_t room)
{
	FILE *f = fmemopen(to, room, "w");

	for (size_t i = 0; i < l->n_stages; i++)
		print_stage(f, l->stages + i);
	fclose(f);
}

static const struct { const char *line, *is; } right[] = {
	{ "", "" },
	{ "  \t # nothing", "" },
	{ "\n\n", "" },
	{ "ps@B", "[ps]@B" },
	{ "tar@E -c file | tar@G x", "[tar]@E [-c] [file] | [tar]@G [x]" },
	{ "wc < in@C > out@D", "[wc] <[in]@C >[out]@D" },
	{ "wc@B<in>out", "[wc]@B <[in] >[out]" },
	{ "< in wc", "[wc] <[in]" },
	{ "a>>x@B 2>y@C", "[a] >>[x]@B 2>[y]@C" },
	{ "a 2>>y", "[a] 2>>[y]" },
	{ "a 2>&1 | b", "[a] 2>&1 | [b]" },
	{ "a2>y", "[a2] >[y]" },
	{ "a 2 >y", "[a] [2] >[y]" },
	{ "a && b || c; d & e", "[a] && [b] || [c] ; [d] & [e]" },
	{ "a;", "[a]" },
	{ "a &", "[a] & " },
	{ "a\nb", "[a] ; [b]" },
	{ "a |\n\n b", "[a] | [b]" },
	{ "a \\\n b", "[a] [b]" },
	{ "a # b | c", "[a]" },
	{ "a b#c", "[a] [b#c]" },
	{ "/bin/ls@gate-1.x_y user@example.org", "[/bin/ls]@gate-1.x_y [user@example.org]" },
	{ "a@b@C", "[a@b]@C" },
	{ "'a@b'", "[a@b]" },
	{ "a\\@b", "[a@b]" },
	{ "\"a@b\"@C '' \"\"", "[a@b]@C [] []" },
	{ "echo 'a b'\"c d\"e\\ f", "[echo] [a bc de f]" },
	{ "echo '$x `y` *'", "[echo] [$x `y` *]" },
	{ "echo \"\\\"\\\\\\$\\x\"", "[echo] [\"\\$\\x]" },
	{ "echo \\* a~ [x] {1}", "[echo] [*] [a~] [[x]] [{1}]" },
	{ "a < 'x@B'", "[a] <[x@B]" },
};

static void test_right(void)
{
	for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
		char is[512] = "";
		struct line l;

		CU_ASSERT_EQUAL(line_parse(&l, right[i].line, strlen(right[i].line)), 0);
		print(&l, is, sizeof is);
		if (strcmp(is, right[i].is) || *l.error)
			printf("%s: %s %s\n", right[i].line, is, l.error);
		CU_ASSERT_STRING_EQUAL(is, right[i].is);
		line_free(&l);
	}
}

static const struct { const char *line, *says; } wrong[] = {
	{ "| a", "no command before |" },
	{ "a |", "no command after |" },
	{ "a && ; b", "no command after &&" },
	{ "a | | b", "no command after |" },
	{ "a ;; b", "no command before ;" },
	{ "& a", "no command before &" },
	{ "a >", "no file after >" },
	{ "a > | b", "no file after >" },
	{ "a < x < y", "< stands twice" },
	{ "a > x >> y", ">> stands twice" },
	{ "a 2>&1 2>x", "2> stands twice" },
	{ "a 2>x 2>&1", "2> stands twice" },
	{ "> x", "a redirection without a command" },
	{ "a << x", "<< is not known" },
	{ "a >& x", ">& is not known" },
	{ "@B", "no command before @B" },
	{ "a@", "no nickname after @" },
	{ "a@-x", "no nickname after @" },
	{ "a@b/c", "no nickname after @" },
	{ "a > x@", "no nickname after @" },
	{ "a > ''", "the name of a file is empty" },
	{ "'' x", "the name of a command is empty" },
	{ "a 'b", "a quote ' has no end" },
	{ "a \"b\\\"", "a quote \" has no end" },
	{ "a \\", "nothing follows the last \\" },
	{ "a $x", "$ has no meaning here" },
	{ "a \"$x\"", "$ has no meaning here" },
	{ "a `b`", "` has no meaning here" },
	{ "a *.c", "* has no meaning here" },
	{ "(a)", "( has no meaning here" },
	{ "a ~/x", "~ has no meaning here" },
};

static void test_wrong(void)
{
	struct line l;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		CU_ASSERT_EQUAL(line_parse(&l, wrong[i].line, strlen(wrong[i].line)), -EINVAL);
		if (!strstr(l.error, wrong[i].says))
			printf("%s: %s\n", wrong[i].line, l.error);
		CU_ASSERT_PTR_NOT_NULL(strstr(l.error, wrong[i].says));
		line_free(&l);
	}
	CU_ASSERT_EQUAL(line_parse(&l, "a\0b", 3), -EINVAL);
	line_free(&l);
}

static void test_bounds(void)
{
	char *text = malloc(LINE_MAX_BYTES + 1);
	struct line l;

	memset(text, 'a', LINE_MAX_BYTES + 1);
	CU_ASSERT_EQUAL(line_parse(&l, text, LINE_MAX_BYTES + 1), -EINVAL);
	line_free(&l);
	CU_ASSERT_EQUAL(line_parse(&l, text, LINE_MAX_BYTES), 0);
	CU_ASSERT_EQUAL(strlen(l.stages[0].words[0]), LINE_MAX_BYTES);
	line_free(&l);
	for (size_t i = 0; i < LINE_MAX_BYTES; i++)
		text[i] = i % 2 ? '|' : 'a';
	CU_ASSERT_EQUAL(line_parse(&l, text, 2 * LINE_MAX_STAGES - 1), 0);
	CU_ASSERT_EQUAL(l.n_stages, LINE_MAX_STAGES);
	line_free(&l);
	CU_ASSERT_EQUAL(line_parse(&l, text, 2 * LINE_MAX_STAGES + 1), -EINVAL);
	line_free(&l);
	for (size_t i = 0; i < LINE_MAX_BYTES; i++)
		text[i] = i % 2 ? ' ' : 'a';
	CU_ASSERT_EQUAL(line_parse(&l, text, LINE_MAX_BYTES), -EINVAL);
	line_free(&l);
	free(text);
}

static void test_ends(void)
{
	const char *text = "a | b && c | d ; e & f || g";
	struct line l;

	CU_ASSERT_EQUAL(line_parse(&l, text, strlen(text)), 0);
	CU_ASSERT_EQUAL(line_pipeline_end(&l, 0), 2);
	CU_ASSERT_EQUAL(line_list_end(&l, 0), 4);
	CU_ASSERT_EQUAL(line_pipeline_end(&l, 2), 4);
	CU_ASSERT_EQUAL(line_list_end(&l, 4), 5);
	CU_ASSERT_EQUAL(line_pipeline_end(&l, 5), 6);
	CU_ASSERT_EQUAL(line_list_end(&l, 5), 7);
	line_free(&l);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "lines of the grammar", test_right },
		{ "what is refused, and how", test_wrong },
		{ "bounds", test_bounds },
		{ "where pipelines and lists end", test_ends },
		UNIT_END
	};

	return UNIT_RUN("vpg_line", tests);
}
