/* vmp_logs.c - `vmp logs --follow`: each line of a log comes once, also where the log loses its
 * beginning. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "vmm/cli/query/logs.h"
#include "vmm/cli/run/run_log.h"

static struct logs_reader reader;
static char printed[1 << 16];

static void begins(void)
{
	reader = (struct logs_reader){ .fd = memfd_create("log", MFD_CLOEXEC) };
	CU_ASSERT_FATAL(reader.fd >= 0 && !fcntl(reader.fd, F_SETFL, O_APPEND));
}

static void writes(const char *text)
{
	CU_ASSERT_EQUAL(write(reader.fd, text, strlen(text)), (ssize_t)strlen(text));
}

static const char *prints(bool ended)
{
	FILE *out = fmemopen(printed, sizeof printed, "w");
	struct problem p;

	memset(printed, 0, sizeof printed);
	CU_ASSERT_EQUAL(logs_print(&reader, ended, out, &p), 0);
	fclose(out);
	return printed;
}

static void what_is_new(void)
{
	begins();
	CU_ASSERT_STRING_EQUAL(prints(false), "");
	writes("one\ntw");
	CU_ASSERT_STRING_EQUAL(prints(false), "one\ntw");
	CU_ASSERT_STRING_EQUAL(prints(false), "");
	writes("o\n");
	CU_ASSERT_STRING_EQUAL(prints(true), "o\n");
	close(reader.fd);
}

/* The log is shorter than it was, or has grown as long again before anybody looks. */
static void a_cut_log(void)
{
	static const char *const more[] = { "", "new\n",
					    "a line that makes it longer than before\n" };
	char line[32];

	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		begins();
		for (unsigned n = 0; n < 1000; n++) {
			snprintf(line, sizeof line, "line %u\n", n);
			writes(line);
		}
		CU_ASSERT_EQUAL(strlen(prints(false)), 8890);
		CU_ASSERT_EQUAL(run_log_cut(reader.fd, 8000, 5000), 0);
		for (unsigned n = 0; i == 2 && n < 100; n++)
			writes(more[i]);
		writes(more[i]);
		CU_ASSERT_EQUAL(strlen(prints(false)), strlen(more[i]) * (i == 2 ? 101 : 1));
		CU_ASSERT_EQUAL(strncmp(printed, more[i], strlen(more[i])), 0);
		writes("end\n");
		CU_ASSERT_STRING_EQUAL(prints(true), "end\n");
		close(reader.fd);
	}
}

/* Between cutting and writing what is kept, the log is empty. */
static void a_log_that_is_being_cut(void)
{
	begins();
	writes("one\ntwo\n");
	prints(false);
	CU_ASSERT_EQUAL(ftruncate(reader.fd, 0), 0);
	CU_ASSERT_STRING_EQUAL(prints(false), "");
	writes("one\ntwo\nthree\n");
	CU_ASSERT_STRING_EQUAL(prints(false), "three\n");
	close(reader.fd);
}

static void another_text(void)
{
	for (unsigned ended = 0; ended < 2; ended++) {
		begins();
		writes("one\ntwo\n");
		prints(false);
		CU_ASSERT_EQUAL(ftruncate(reader.fd, 0), 0);
		writes("other\n");
		CU_ASSERT_STRING_EQUAL(prints(ended), ended ? "other\n" : "");
		if (!ended)
			CU_ASSERT_STRING_EQUAL(prints(false), "other\n");
		close(reader.fd);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "what is new", what_is_new },
		{ "a log that was cut", a_cut_log },
		{ "a log that is being cut", a_log_that_is_being_cut },
		{ "another text", another_text },
		UNIT_END
	};

	return UNIT_RUN("vmp_logs", tests);
}
