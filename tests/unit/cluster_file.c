/* cluster_file.c - tests of the cluster file (vmm/cli/cluster/cluster_file.h): what its lines mean,
 * which are refused, how they are printed, and what follows from them: the first host, the places
 * of processors, and how much memory a host must have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"
#include "vmm/cli/cluster/cluster.h"

static struct cluster_file file;
static struct problem p;

static int parse(const char *text) { return cluster_file_parse(&file, text, strlen(text), &p); }

static void test_file(void)
{
	static const char text[] = "# a comment\n"
				   "localhost\n"
				   "\n"
				   "harp user=kaneda port=2222 cpus=4 memory=512M # the fast one\n"
				   "\tcsc10.example.org  phoenix=\"dest harp:30000 ssh user\" "
				   "phoenix=\"listen_port 30000\"\n"
				   "192.0.2.7 cpus=2\n"
				   "fe80::1\n"
				   "memory-alone cpus=0";

	CU_ASSERT_EQUAL_FATAL(parse(text), 0);
	CU_ASSERT_EQUAL_FATAL(file.n, 6);
	CU_ASSERT_STRING_EQUAL(file.host[0].name, "localhost");
	CU_ASSERT(!file.host[0].user[0] && !file.host[0].port && file.host[0].cpus == 1 &&
		  !file.host[0].memory_mib && !file.host[0].n_phoenix);
	CU_ASSERT_STRING_EQUAL(file.host[1].name, "harp");
	CU_ASSERT_STRING_EQUAL(file.host[1].user, "kaneda");
	CU_ASSERT(file.host[1].port == 2222 && file.host[1].cpus == 4 &&
		  file.host[1].memory_mib == 512);
	CU_ASSERT_EQUAL_FATAL(file.host[2].n_phoenix, 2);
	CU_ASSERT_STRING_EQUAL(file.host[2].phoenix[0], "dest harp:30000 ssh user");
	CU_ASSERT_STRING_EQUAL(file.host[2].phoenix[1], "listen_port 30000");
	CU_ASSERT_STRING_EQUAL(file.host[4].name, "fe80::1");
	CU_ASSERT(cluster_file_find(&file, "harp") == 1 && cluster_file_find(&file, "har") == -1);
	CU_ASSERT_EQUAL(cluster_file_cpus(file.host, 5), 1 + 4 + 1 + 2 + 1);
	CU_ASSERT_EQUAL(cluster_file_cpus(file.host, 2), 5);
	CU_ASSERT(cluster_file_cpus(file.host, 6) == 9 && cluster_file_askers(file.host, 6) == 5 &&
		  !cluster_file_askers(file.host + 5, 1));
	CU_ASSERT_EQUAL(cluster_file_memory(file.host, 5, 0), 0);
	CU_ASSERT_EQUAL(cluster_file_memory(file.host, 5, 100), 4 * 100 + 512);
	CU_ASSERT_EQUAL(cluster_file_memory(file.host + 1, 1, 0), 512);
}

static void test_wrong_files(void)
{
	static const struct { const char *text, *complaint;
	} files[] = {
		{ "", "1:1: there is no host" },
		{ "# nothing\n\n", "1:1: there is no host" },
		{ "-oProxyCommand=x\n", "1:1: '-oProxyCommand=x' is no host's name" },
		{ "a\nb;reboot\n", "2:1: 'b;reboot' is no host's name" },
		{ "a\n b c\n", "2:4: 'c' is no setting" },
		{ "a speed=3", "1:3: 'speed' is no setting" },
		{ "a\na\n", "2:1: host a stands in line 1 already" },
		{ "a address=a;b", "1:3: 'a;b' is no address" },
		{ "a address=", "no address" },
		{ "a port=0", "1:3: port=0: must be from 1 to 65535" },
		{ "a port=65536", "must be from 1 to 65535" },
		{ "a port=x", "port=x: not a number" },
		{ "a port=", "port=: not a number" },
		{ "a cpus=33", "cpus=33: must be from 0 to 32" },
		{ "a cpus=-1", "cpus=-1: not a number" },
		{ "a memory=lots", "memory=lots: not a size" },
		{ "a memory=17G", "not a size from 1M to 16384M" },
		{ "a memory=0", "not a size" },
		{ "a user=", "1:3: '' is no user's name" },
		{ "a user=-x", "no user's name" },
		{ "a user=abcdefghijklmnopqrstuvwxyzabcdefg", "at most 32 characters" },
		{ "a phoenix=", "phoenix= needs a line" },
		{ "a phoenix=\"\"", "phoenix= needs a line" },
		{ "a\nb phoenix=\"dest x\n", "2:3: the quotation mark is not closed" },
		{ "a\rb\n", "1:3: 'b' is no setting" },
		{ "a b\001c", "1:4: a control character" },
		{ "a =", "1:3: '' is no setting" },
		{ "a phoenix=1 phoenix=2 phoenix=3 phoenix=4 phoenix=5 phoenix=6 phoenix=7 "
		  "phoenix=8 phoenix=9",
		  "at most 8 lines" },
	};
	char many[40 * 8] = "";

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		CU_ASSERT_EQUAL(parse(files[i].text), -1);
		CU_ASSERT_PTR_NOT_NULL(strstr(p.line, files[i].complaint));
		if (!strstr(p.line, files[i].complaint))
			printf("\n    %s: %s\n", files[i].text, p.line);
	}
	for (unsigned i = 0; i <= MAX_NODES; i++)
		snprintf(many + strlen(many), sizeof many - strlen(many), "h%u\n", i);
	CU_ASSERT_EQUAL(parse(many), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(p.line, "33:1: more than 32 hosts"));
}

static bool is_same_host(const struct cluster_host *a, const struct cluster_host *b)
{
	bool same = !strcmp(a->name, b->name) && !strcmp(a->user, b->user) && a->port == b->port &&
		    a->cpus == b->cpus && a->memory_mib == b->memory_mib &&
		    a->n_phoenix == b->n_phoenix;

	for (uint32_t i = 0; same && i < a->n_phoenix; i++)
		same = !strcmp(a->phoenix[i], b->phoenix[i]);
	return same;
}

/* Parses, prints and parses again. */
static bool comes_back(void)
{
	static struct cluster_file again;
	static char text[MAX_NODES * (CLUSTER_LINE + 1)];
	bool same;
	size_t n = 0;

	for (uint32_t i = 0; i < file.n; i++) {
		cluster_file_print_line(&file.host[i], text + n);
		n += strlen(text + n);
		text[n++] = '\n';
	}
	same = !cluster_file_parse(&again, text, n, &p) && again.n == file.n;
	for (uint32_t i = 0; same && i < file.n; i++)
		same = is_same_host(&file.host[i], &again.host[i]);
	if (!same)
		printf("\n    %.*s: %s\n", (int)n, text, p.line);
	return same;
}

static void test_printed_lines(void)
{
	static const char *const files[] = {
		"localhost",
		"a user=u",
		"a port=1",
		"a port=65535",
		"a cpus=0",
		"a cpus=1",
		"a cpus=32",
		"a memory=1M",
		"a memory=16G",
		"_:-. user=_:-.",
		"fe80::1 port=22 phoenix=x user=u memory=7M cpus=3",
		"a\nb user=u\n\n# a comment\nc phoenix=\"dest a:30000 ssh u\"\n",
		"a phoenix=word",
		"a phoenix=\"two words\"",
		"a phoenix=\"a\ttab \"",
		"a phoenix=#",
		"a phoenix=\"# x\"",
		"a phoenix==",
		"a phoenix=\\",
		"a phoenix=b\"c d\"e",
		"a phoenix=\"b c\"d\"e f\"",
		"a phoenix=\"\"b\"\"",
		"a phoenix=\"b \"\" c\"",
		"a phoenix=b\"\"",
		"a phoenix=\"\"\"\"",
		"a phoenix=1 phoenix=\"2 2\" phoenix=3\"3 3\" phoenix=4 phoenix=5 phoenix=6 "
		"phoenix=7 phoenix=\"8 \"",
		"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk "
		"user=abcdefghijklmnopqrstuvwxyzabcdef",
	};
	static char longest[CLUSTER_LINE];
	size_t n = (size_t)sprintf(longest, "%063d user=%032d port=65535 cpus=32 memory=1024M", 0,
				   0);

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		CU_ASSERT_EQUAL_FATAL(parse(files[i]), 0);
		CU_ASSERT(comes_back());
	}
	for (int i = 0; i < MAX_PHOENIX_LINES; i++)
		n += (size_t)sprintf(longest + n, " phoenix=\"%0*d\"", MAX_PHOENIX_LINE - 1, i);
	CU_ASSERT_EQUAL_FATAL(parse(longest), 0);
	CU_ASSERT(comes_back());
}

static void test_first_host(void)
{
	static const struct { const char *before, *name, *old, *after; int result;
	} cases[] = {
		{ "localhost\nb\nc\n", "b", "192.0.2.1", "b\n192.0.2.1\nc\n", 0 },
		{ "localhost\nb\nc\n", "c", "fe80::1", "c\nfe80::1\nb\n", 0 },
		{ "localhost cpus=2 memory=9M\nb user=u port=3\n", "b", "a",
		  "b user=u port=3\na cpus=2 memory=9M\n", 0 },
		{ "a\nb\nc\n", "c", "192.0.2.1", "c\na\nb\n", 0 }, /* it has a name */
		{ "a\nb\n", "b", "", "b\na\n", 0 },
		{ "a\nb\n", "b", "a", "b\na\n", 0 },
		/* the first by its name, and by ssh again */
		{ "a\nlocalhost\nc\n", "c", "a2", "c\na\na2\n", 0 },
		{ "a\nlocalhost\nc\n", "localhost", "x", "localhost\na\nc\n", 0 },
		/* it is the first already */
		{ "localhost\nb\n", "localhost", "", "localhost\nb\n", 0 },
		{ "b\nc\n", "b", "x", "b\nc\n", 0 },
		{ "localhost\nb\n", "d", "a", NULL, -1 },
		{ "a\nb\n", "", "x", NULL, -1 },
		/* names that are taken */
		{ "localhost\nb\nc\n", "b", "c", NULL, -1 },
		{ "localhost\nb\nc\n", "b", "b", NULL, -1 },
		{ "localhost\nb\n", "b", "localhost", NULL, -1 },
		{ "localhost\nb\n", "b", "", NULL, -1 },
		{ "localhost\nb\n", "b", "-x", NULL, -1 },
		{ "localhost\nb\n", "b", "x y", NULL, -1 },
		{ "localhost\nb\n", "b",
		  "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl", NULL, -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		static struct cluster_file got;
		const char *after = cases[i].after ? cases[i].after : cases[i].before;
		bool same;

		CU_ASSERT_EQUAL_FATAL(parse(cases[i].before), 0);
		CU_ASSERT_EQUAL(cluster_file_make_first(&file, cases[i].name, cases[i].old),
				cases[i].result);
		got = file;
		CU_ASSERT_EQUAL_FATAL(parse(after), 0);
		same = got.n == file.n;
		for (uint32_t host = 0; same && host < file.n; host++)
			same = is_same_host(&got.host[host], &file.host[host]);
		CU_ASSERT(same);
		if (!same)
			printf("\n    case %zu\n", i);
	}
}

/* Any file gives an answer and no access outside of it (the sanitizers check that); and its lines
 * can be printed. */
static void test_random_files(void)
{
	static const char alphabet[] = "ab=\"# \n\tcpus=port=user=memory=phoenix=-1.:\r\0";
	char text[64];

	srand(7);
	for (int i = 0; i < 200000; i++) {
		size_t n = (size_t)rand() % sizeof text;
		char *exact = malloc(n + 1);

		for (size_t k = 0; k < n; k++)
			exact[k] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
		if (cluster_file_parse(&file, exact, n, &p))
			CU_ASSERT_FATAL(p.line[0] != 0)
		else
			CU_ASSERT_FATAL(comes_back());
		free(exact);
	}
}

static void test_places(void)
{
	static const struct {
		const char *text;
		uint32_t hosts, cpus;
		uint8_t place[8];
	} cases[] = {
		{ "a\nb\n", 2, 2, { 0, 1 } },
		{ "a\nb cpus=3\n", 2, 4, { 0, 1, 1, 1 } },
		{ "a cpus=2\nb cpus=2\n", 2, 4, { 0, 1, 0, 1 } },
		{ "a cpus=4\nb\n", 2, 2, { 0, 1 } }, /* fewer than asked for: every host has one */
		{ "a\nb cpus=2\n", 2, 6, { 0, 1, 1, 0, 1, 0 } }, /* more: in turn */
		{ "a\nb\nc\n", 2, 3, { 0, 1, 0 } },
		{ "a cpus=2\nb cpus=0\nc\n", 3, 3, { 0, 2, 0 } },
		/* more, but none for hosts that ask for none */
		{ "a cpus=0\nb\nc cpus=0\n", 3, 3, { 1, 1, 1 } },
		/* a machine that was saved, or has lost hosts */
		{ "a cpus=0\nb cpus=0\n", 2, 3, { 0, 1, 0 } },
		{ "a\nb\nc\n", 3, 2, { 0, 1 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t place[MAX_CPUS];

		CU_ASSERT_EQUAL_FATAL(parse(cases[i].text), 0);
		cluster_file_place(file.host, cases[i].hosts, cases[i].cpus, place);
		CU_ASSERT_EQUAL(memcmp(place, cases[i].place, cases[i].cpus), 0);
	}
}

static void test_memory(void)
{
	static const struct {
		const char *line;
		uint32_t mem, each;
		struct hostmem has;
		const char *complaint;
	} cases[] = {
		{ "a", 256, 0, { 264, false }, NULL },
		{ "a",
		  256,
		  0,
		  { 263, false },
		  "host a: it may come to hold 256 MiB of the guest's memory (--mem), for which it "
		  "needs 264 MiB, and "
		  "there free memory is 263 MiB; with memory= in its line it holds less" },
		{ "a", 256, 0, { UINT64_MAX, false }, NULL },
		{ "a cpus=4",
		  256,
		  0,
		  { 275, true },
		  "needs 276 MiB, and there the control group's limit (cgroup) is 275 MiB" },
		{ "a memory=100M", 800, 0, { 108, false }, NULL }, /* much less than the guest's */
		{ "a memory=100M",
		  800,
		  0,
		  { 107, false },
		  "hold 100 MiB of the guest's memory (memory=), for which it needs 108 MiB" },
		{ "a memory=100M", 800, 50, { 107, false }, "hold 100 MiB" },
		{ "a", 800, 50, { 58, false }, NULL },
		{ "a",
		  800,
		  50,
		  { 57, false },
		  "hold 50 MiB of the guest's memory (--host-mem), for which it needs 58 MiB" },
		{ "a memory=512M", 256, 0, { 264, false }, NULL }, /* more than there is */
		{ "a memory=512M",
		  256,
		  0,
		  { 0, false },
		  "hold 256 MiB of the guest's memory (--mem)" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CU_ASSERT_EQUAL_FATAL(parse(cases[i].line), 0);
		p.line[0] = 0;
		CU_ASSERT_EQUAL(cluster_file_fits(file.host, cases[i].mem, cases[i].each,
						  &cases[i].has, &p),
				cases[i].complaint ? -1 : 0);
		CU_ASSERT_PTR_NOT_NULL(
			strstr(p.line, cases[i].complaint ? cases[i].complaint : ""));
	}
}

/* A host whose control group leaves less than all memory gets a share of it. */
static void test_bounds(void)
{
	static const struct {
		const char *line;
		uint32_t mem, each, memory;
		struct hostmem has;
	} cases[] = {
		{ "a", 1536, 0, 0, { 1544, true } }, /* enough for all, beside 8 MiB */
		{ "a", 1536, 0, 1440, { 1543, true } },
		{ "a", 1536, 0, 473, { 512, true } },
		{ "a cpus=4", 1536, 0, 462, { 512, true } },
		{ "a", 1536, 0, 0, { 512, false } }, /* no group's limit: too small a computer */
		{ "a memory=100M", 1536, 0, 100, { 512, true } },
		{ "a", 1536, 300, 0, { 512, true } }, /* --host-mem decides */
		{ "a", 1536, 0, 0, { 8, true } },
		{ "a", 1536, 0, 1, { 9, true } },
		{ "a", 1536, 0, 0, { UINT64_MAX, false } },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CU_ASSERT_EQUAL_FATAL(parse(cases[i].line), 0);
		cluster_file_bound(file.host, cases[i].mem, cases[i].each, &cases[i].has);
		CU_ASSERT_EQUAL(file.host[0].memory_mib, cases[i].memory);
		if (cases[i].memory) /* then it fits */
			CU_ASSERT_EQUAL(cluster_file_fits(file.host, cases[i].mem, cases[i].each,
							  &cases[i].has, &p), 0);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "file", test_file },
		{ "wrong files", test_wrong_files },
		{ "printed lines", test_printed_lines },
		{ "first host", test_first_host },
		{ "random files", test_random_files },
		{ "bounds", test_bounds },
		{ "places", test_places },
		{ "memory", test_memory },
		UNIT_END
	};

	return UNIT_RUN("cluster file", tests);
}
