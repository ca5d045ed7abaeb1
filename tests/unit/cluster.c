/* cluster.c - tests of the pure parts of machines on several computers: the cluster file, which
 * computers fit together, the errors of those that fail, names and numbers, clocks, and the archive
 * of programs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/beside.h"
#include "base/hostclock.h"
#include "tests/unit/unit.h"
#include "vmm/cli/cluster/bundle.h"
#include "vmm/cli/cluster/cluster.h"
#include "vmm/node/clock/drift.h"

static struct cluster_file file;
static struct problem p;

static int parse(const char *text) { return cluster_file_parse(&file, text, strlen(text), &p); }

/* ---- the file ---- */

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
		{ "a memory=4G", "not a size from 1M to 3072M" },
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
		"a memory=3G",
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

/* ---- which computers fit together ---- */

static void test_facts(void)
{
	static struct host_facts a = {
		.cpu = { "AuthenticAMD", true, { { 1, 2, 3, 4, 5, 6, 7, 0xffffffff, 9 } } },
		.processors = 2,
		/* padding is zero */
		.memory = { 4321, true },
		.address = "fe80::1"
	};
	struct host_facts b;
	char line[512];

	facts_print(&a, line, sizeof line);
	CU_ASSERT_EQUAL(facts_parse(&b, line), 0);
	CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof a), 0);
	a.address[0] = 0;
	facts_print(&a, line, sizeof line);
	CU_ASSERT_EQUAL(facts_parse(&b, line), 0);
	CU_ASSERT_STRING_EQUAL(b.address, "");
	strcat(line, " more");
	CU_ASSERT_NOT_EQUAL(facts_parse(&b, line), 0);
	CU_ASSERT_NOT_EQUAL(facts_parse(&b, "here"), 0);
	CU_ASSERT_NOT_EQUAL(facts_parse(&b, ""), 0);
	CU_ASSERT_NOT_EQUAL(facts_parse(&b, "here vendor=x hides=0 features=0,0,0,0,0,0,0,0 "
					    "processors=1 memory=1 group=0 address=-"),
			    0);
	CU_ASSERT_NOT_EQUAL(facts_parse(&b, "here vendor=x hides=0 features=0,0,0,0,0,0,0,0,0 "
					    "processors=0 memory=1 group=0 address=-"),
			    0);
}

enum { AVX2 = 1 << 5, SHA = 1 << 29 }; /* of word 2 */

static void test_common_subset(void)
{
	static const struct {
		const char *what, *vendor; /* of the new host */
		bool guest_hides, hides, shrinks;
		/* word 2 of the machine, of the new host, and of the machine afterwards */
		uint32_t guest, word, left;
		const char *complaint;
	} cases[] = {
		{ "alike", "AuthenticAMD", 0, 0, 1, AVX2, AVX2, AVX2, NULL },
		{ "another vendor", "GenuineIntel", 1, 1, 1, AVX2, AVX2, AVX2,
		  "another vendor's (GenuineIntel) than the guest's (AuthenticAMD)" },
		{ "lacks, and nobody hides", "AuthenticAMD", 0, 0, 1, AVX2, 0, AVX2,
		  "processor has no AVX2" },
		{ "lacks, and the others do not hide", "AuthenticAMD", 0, 1, 1, AVX2, 0, AVX2,
		  "no AVX2" },
		{ "lacks, and need not hide", "AuthenticAMD", 1, 0, 1, AVX2, 0, 0, NULL },
		{ "lacks, and both hide", "AuthenticAMD", 1, 1, 1, AVX2 | SHA, SHA, SHA, NULL },
		{ "lacks, and the guest runs", "AuthenticAMD", 1, 1, 0, AVX2 | SHA, SHA, AVX2 | SHA,
		  "no AVX2" },
		{ "has more, and cannot hide it", "AuthenticAMD", 1, 0, 1, AVX2, AVX2 | SHA, AVX2,
		  "has SHA, which the guest has not" },
		{ "has more, and hides it", "AuthenticAMD", 0, 1, 0, AVX2, AVX2 | SHA, AVX2, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct hostcpu guest = { "AuthenticAMD",
					 cases[i].guest_hides,
					 { { [2] = cases[i].guest } } };
		struct hostcpu host = { .hides = cases[i].hides,
					.features = { { [2] = cases[i].word } } };
		int error;

		strcpy(host.vendor, cases[i].vendor);
		error = hostcpu_agree(&guest, &host, cases[i].shrinks, &p);
		CU_ASSERT_EQUAL(error, cases[i].complaint ? -1 : 0);
		CU_ASSERT_EQUAL(guest.features.word[2], cases[i].left);
		if (!error)
			CU_ASSERT_EQUAL(guest.hides, cases[i].guest_hides && cases[i].hides);
		if (cases[i].complaint)
			CU_ASSERT_PTR_NOT_NULL(strstr(p.line, cases[i].complaint));
		if (error != (cases[i].complaint ? -1 : 0))
			printf("\n    %s: %s\n", cases[i].what, error ? p.line : "");
	}
}

/* ---- errors ---- */

static void test_explanations(void)
{
	static const struct { int status; const char *said, *line;
	} cases[] = {
		{ 255 << 8, "user@b: Permission denied (publickey).",
		  "host b: user@b: Permission denied (publickey).; ssh must log in there without a "
		  "password; set up a key with ssh-copy-id" },
		{ 255 << 8, "ssh: connect to host b port 22: Connection refused",
		  "does sshd run there" },
		{ 255 << 8, "ssh: connect to host b port 22: Connection timed out",
		  "switched on and reachable" },
		{ 255 << 8, "ssh: Could not resolve hostname b: Name or service not known",
		  "is its name right?" },
		{ 255 << 8, "Host key verification failed.", "connect once by hand" },
		{ 1 << 8, "tar: vmproc: Wrote only 2048 of 10240 bytes: No space left on device",
		  "need 30 MB" },
		{ 126 << 8, "sh: 1: exec: /home/u/.cache/vmp/bin-1/ld.so: Permission denied",
		  "host b: sh: 1: exec: /home/u/.cache/vmp/bin-1/ld.so: Permission denied; "
		  "~/.cache must be writable there" },
		{ 1 << 8, "mkdir: cannot create directory '/home/u/.cache': Permission denied",
		  "~/.cache must be writable there" },
		{ 1 << 8, "mkdir: cannot create directory '/home/u/.cache': Read-only file system",
		  "need 30 MB" },
		{ 255 << 8, "kex_exchange_identification: Connection closed by remote host",
		  "too many logins" },
		{ 255 << 8,
		  "Received disconnect from 192.0.2.1 port 22:2: Too many authentication failures",
		  "IdentityFile" },
		{ 125 << 8, "cannot run ssh: No such file or directory",
		  "install ssh on this computer" },
		{ 255 << 8, "", "host b: its ssh connection ended" },
		{ 3 << 8, "",
		  "host b: what ssh started there ended with status 3; does `ssh b true`" },
		{ 9, "", "host b: its ssh died of signal 9 (Killed)" },
	};
	const struct cluster_host host = { .name = "b" };
	char why[FAR_LINE];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		far_explain(&host, cases[i].status, cases[i].said, why, sizeof why);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, cases[i].line));
	}
}

static void test_losses(void)
{
	static const struct { int status; const char *ended; bool lost;
	} cases[] = {
		{ 0, "", false }, /* its daemon has ended in order */
		{ 125 << 8, "with status 125; try --log FILE", false },
		{ 137 << 8, "died of signal 9 (Killed)", true },
		{ 139 << 8, "died of signal 11 (Segmentation fault)", true },
		{ 9, "", true },
		{ 15, "", true }, /* its ssh was killed */
		/* the connection broke; vmp-host was killed */
		{ 255 << 8, "", true },
		{ 137 << 8, "", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CU_ASSERT_EQUAL(far_is_lost(cases[i].status, cases[i].ended), cases[i].lost);
}

static void test_destinations(void)
{
	static const struct { struct cluster_host host; const char *text;
	} cases[] = {
		{ { .name = "harp" }, "ssh://harp" },
		{ { .name = "harp", .user = "u" }, "ssh://u@harp" },
		{ { .name = "harp", .user = "u", .port = 2222 }, "ssh://u@harp:2222" },
		{ { .name = "fe80::1", .port = 22 }, "ssh://[fe80::1]:22" },
	};
	char text[160];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		far_destination(&cases[i].host, text, sizeof text);
		CU_ASSERT_STRING_EQUAL(text, cases[i].text);
	}
}

static void test_names(void)
{
	static const struct host_names names = { .name = { "here", "harp", "", [12] = "csc10" } };
	static const struct { const char *line, *out;
	} cases[] = {
		{ "host 1 is gone after 3 ms", "host 1 (harp) is gone after 3 ms" },
		{ "the daemon of host 12 died: host 0 hears nothing",
		  "the daemon of host 12 (csc10) died: host 0 (here) hears nothing" },
		{ "host 2 stays", "host 2 stays" },
		{ "host 99 stays", "host 99 stays" },
		{ "ghost 1", "ghost 1" },
		{ "host x", "host x" },
		{ "host 1", "host 1 (harp)" },
		{ "", "" },
		{ "host 1 (b) is lost, and host 0", "host 1 (b) is lost, and host 0 (here)" },
	};
	char out[128];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		names_explain(&names, cases[i].line, out, sizeof out);
		CU_ASSERT_STRING_EQUAL(out, cases[i].out);
		for (size_t room = 1; room < 12; room++) {
			names_explain(&names, cases[i].line, out, room);
			CU_ASSERT(strlen(out) < room);
		}
	}
	CU_ASSERT(names_find(&names, "csc10") == 12 && names_find(&names, "") == -1 &&
		  names_find(&names, "x") == -1);
}

/* ---- clocks ---- */

static double between(double low, double high) { return low + (high - low) * rand() / RAND_MAX; }

/* An answer may take any time each way.  The true difference is always within the known bounds,
 * which are never wider than this answer alone gives. */
static void test_clock_bounds(void)
{
	srand(3);
	for (int round = 0; round < 1000; round++) {
		int64_t ahead = ((int64_t)rand() << 20) - (1ll << 50), error;
		uint64_t now = 1ull << 60, least = UINT64_MAX;
		struct drift drift = { 0 };

		for (int i = 0; i < 24; i++) {
			uint64_t there = 1000 + (uint64_t)rand() % 100000,
				 back = 1000 + (uint64_t)rand() % 100000;

			CU_ASSERT(drift_add(&drift, now, now + there + (uint64_t)ahead,
					    now + there + back));
			now += there + back;
			least = there + back < least ? there + back : least;
		}
		error = drift_ahead(&drift, now) - ahead;
		CU_ASSERT((uint64_t)llabs(error) <= drift_doubt(&drift, now));
		CU_ASSERT(drift_doubt(&drift, now) <= least / 2 + 5000);
	}
}

/* Two computers whose clocks drift apart.  Every two seconds one asks the other, and steers.  Time
 * is the asker's. */
struct clocks {
	/* apart: ns that the other clock gains in each ns. way_ns: the most that a message usually
	 * takes. */
	double apart, way_ns;
	int64_t other_ns;     /* how far the other clock is ahead */
	uint64_t now_ns;
	struct drift drift;
	struct host_clock shown;
	uint64_t last_ns;
	unsigned forgotten;
};
static struct clocks world;

static void pass(double ns)
{
	world.now_ns += (uint64_t)ns;
	world.other_ns += (int64_t)(ns * world.apart);
}

static uint64_t world_ns(void) { return world.now_ns; }
static uint64_t world_now(const void *context)
{
	(void)context;
	return world.now_ns;
}

static void ask_and_steer(unsigned answers)
{
	struct clock_line line;
	int64_t behind;

	for (unsigned i = 0; i < answers; i++) {
		uint64_t asked = world.now_ns, answered;

		pass(between(100e3, rand() % 8 ? world.way_ns : 30e6)); /* some are late */
		answered = world.now_ns + (uint64_t)world.other_ns;
		pass(between(100e3, rand() % 8 ? world.way_ns : 30e6));
		world.forgotten += !drift_add(&world.drift, asked, answered, world.now_ns);
	}
	line = hostclock_line(&world.shown);
	behind = (int64_t)(world.now_ns + (uint64_t)drift_ahead(&world.drift, world.now_ns) -
			   clock_line_at(&line, world.now_ns));
	hostclock_turn(&world.shown, world_now, NULL,
		       drift_steer(behind, drift_rate(&world.drift)));
}

/* Runs for that long.  Checks that the shown clock never goes back, and never runs much too fast or
 * slow.  Returns its largest error. */
static int64_t most_wrong(double seconds, unsigned answers)
{
	int64_t most = 0;

	for (double left = seconds; left > 0; left -= DRIFT_PERIOD_S) {
		for (int i = 0; i < 20; i++) {
			uint64_t before = world.now_ns, shown;
			int64_t wrong, passed;

			pass(DRIFT_PERIOD_S * 5e7);
			shown = hostclock_now(&world.shown, world_ns);
			passed = (int64_t)(shown - world.last_ns);
			CU_ASSERT(passed > (int64_t)(world.now_ns - before) * 15 / 16 - 2);
			CU_ASSERT(i == 0 ||
				  passed < (int64_t)(world.now_ns - before) * 17 / 16 + 2);
			world.last_ns = shown;
			wrong = llabs((int64_t)(world.now_ns + (uint64_t)world.other_ns - shown));
			most = wrong > most ? wrong : most;
		}
		ask_and_steer(answers);
	}
	return most;
}

static void test_clock_drift(void)
{
	static const double rates[] = { 0, 1e-6, -40e-6, 100e-6, -450e-6, 900e-6 };

	srand(4);
	for (unsigned i = 0; i < ARRAY_LEN(rates); i++) {
		world = (struct clocks){ .apart = rates[i],
					 .way_ns = 400e3,
					 .now_ns = 1ull << 50,
					 .other_ns = -(1ll << 48) };
		hostclock_set(&world.shown,
			      (struct clock_line){ world.now_ns,
						   world.now_ns + (uint64_t)world.other_ns, 0 });
		/* a slow answer */
		drift_add(&world.drift, world.now_ns - 300000000,
			  world.now_ns + (uint64_t)world.other_ns, world.now_ns);
		ask_and_steer(24);
		CU_ASSERT(drift_doubt(&world.drift, world.now_ns) < 300000);
		world.last_ns = hostclock_now(&world.shown, world_ns);
		CU_ASSERT(most_wrong(20, 4) < 2500000); /* at first the rate is not known */
		CU_ASSERT(fabs(drift_rate(&world.drift) - rates[i]) < 50e-6);
		CU_ASSERT(most_wrong(3600, 4) < 300000);
		CU_ASSERT(most_wrong(20, 0) < 300000); /* nobody answers */
		CU_ASSERT(most_wrong(60, 4) < 300000);
		CU_ASSERT_EQUAL(world.forgotten, 0);
		world.apart += 30e-6; /* the other clock changes its rate */
		CU_ASSERT(most_wrong(60, 4) < 1000000);
		CU_ASSERT(most_wrong(600, 4) < 300000);
		/* and this computer, or the other one, stands still for half a second */
		world.other_ns += 500000000;
		CU_ASSERT(most_wrong(120, 4) < 501000000);
		CU_ASSERT(most_wrong(600, 4) < 300000);
		world.other_ns -= 500000000;
		CU_ASSERT(most_wrong(120, 4) < 501000000);
		CU_ASSERT(most_wrong(600, 4) < 300000);
		CU_ASSERT(world.forgotten >= 2);
	}
}

static void test_clock_line(void)
{
	static const struct clock_line lines[] = { { 1000, 5000, 0 },
						   { 1ull << 60, 7, 1 << 28 },
						   { 5, 1ull << 60, -(1 << 28) },
						   { 0, 0, 4295 } };

	for (unsigned i = 0; i < ARRAY_LEN(lines); i++) {
		const struct clock_line *line = &lines[i];

		CU_ASSERT_EQUAL(clock_line_at(line, line->from_ns), line->machine_ns);
		for (int64_t passed = -4000000000; passed < 4000000000; passed += 12345678) {
			uint64_t at = line->from_ns + (uint64_t)passed,
				 shows = clock_line_at(line, at),
				 when = clock_line_when(line, shows);
			int64_t early = (int64_t)(at - when);

			CU_ASSERT((int64_t)(clock_line_at(line, at + 1000) - shows) > 900);
			CU_ASSERT(passed < 0 || (early >= -1 && early <= passed / 200 + 1));
		}
	}
}

/* ---- the archive ---- */

/* Returns tar's own messages about an archive.  Nothing follows an archive's end, since tar does
 * not wait for it; an archive without an end is allowed. */
static void unpack(const struct bundle *b, const char *folder)
{
	char command[200];
	FILE *tar;

	snprintf(command, sizeof command, "tar xf - -C '%s'", folder);
	tar = popen(command, "w");
	CU_ASSERT_FATAL(tar != NULL);
	CU_ASSERT_EQUAL(fwrite(b->data, 1, b->bytes, tar), b->bytes);
	CU_ASSERT_EQUAL_FATAL(pclose(tar), 0);
}

static void test_archive(void)
{
	static const char block[512] = "x";
	struct bundle b = { 0 };
	char folder[] = "/tmp/vmp-unit.XXXXXX", command[200], text[16] = "";
	FILE *out;

	CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
	CU_ASSERT(!bundle_put(&b, "one", "1", 1) && !bundle_put(&b, "empty", "", 0) &&
		  !bundle_put(&b, "block", block, sizeof block));
	CU_ASSERT_EQUAL(b.bytes, 512 * 5);
	unpack(&b, folder);
	snprintf(command, sizeof command,
		 "cd %s && cat one && wc -c <block && test -x empty && rm -r %s", folder, folder);
	out = popen(command, "r");
	CU_ASSERT(out && fread(text, 1, 5, out) == 5 && pclose(out) == 0);
	CU_ASSERT_STRING_EQUAL(text, "1512\n");
	CU_ASSERT_EQUAL(bundle_put(&b, "a name that is longer than the hundred characters which "
				   "the header of a tar archive has room for, alas",
				   "", 0),
			-1);
	bundle_free(&b);
}

/* Returns how often this command prints a line. */
static int lines_of(const char *command)
{
	FILE *out = popen(command, "r");
	char line[1000];
	int n = 0;

	CU_ASSERT_FATAL(out != NULL);
	while (fgets(line, sizeof line, out))
		n++;
	CU_ASSERT_EQUAL(pclose(out), 0);
	return n;
}

/* A copy has everything that a machine's first host needs, and makes the same copy again. */
static void test_copy_of_a_copy(void)
{
	struct bundle here = { 0 }, there = { 0 }, changed = { 0 };
	char folder[] = "/tmp/vmp unit.XXXXXX", programs[4096], command[300];

	CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
	CU_ASSERT_FATAL(!beside_path("../..", programs, sizeof programs));
	CU_ASSERT_EQUAL_FATAL(bundle_make_of(&here, programs, &p), 0);
	unpack(&here, folder);
	CU_ASSERT_EQUAL_FATAL(bundle_make_of(&there, folder, &p), 0);
	CU_ASSERT_STRING_EQUAL(here.hash, there.hash);
	CU_ASSERT(here.bytes == there.bytes && !memcmp(here.data, there.data, here.bytes));
	/* No program uses anything of the computer's; the vDSO has no path. */
	snprintf(command, sizeof command,
		 "cd '%s' && for p in vmp vmp-host vmp-node vmp-monitor vmp-iosrv; do "
		 "\"$PWD/ld.so\" --library-path \"$PWD\" --list \"./$p\" || echo fails; done | "
		 "grep -vF -e \"$PWD/\" -e linux-vdso; true",
		 folder);
	CU_ASSERT_EQUAL(lines_of(command), 0);
	snprintf(command, sizeof command, "ln -s '%s/run-vmp' '%s/link' && cd / && '%s/link' help",
		 folder, folder, folder);
	CU_ASSERT(lines_of(command) > 3);
	/* And where the computer's loader and libraries are different. */
	snprintf(command, sizeof command,
		 "cd '%s' && mkdir others && for f in *.so*; do echo >>$f && cp $f others; done",
		 folder);
	CU_ASSERT_EQUAL(lines_of(command), 0);
	CU_ASSERT_EQUAL_FATAL(bundle_make_of(&changed, folder, &p), 0);
	unpack(&changed, folder);
	snprintf(command, sizeof command, "cd '%s/others' && for f in *; do cmp $f ../$f; done",
		 folder);
	CU_ASSERT_EQUAL(lines_of(command), 0);
	snprintf(command, sizeof command, "rm -r '%s'", folder);
	CU_ASSERT_EQUAL(lines_of(command), 0);
	bundle_free(&here);
	bundle_free(&there);
	bundle_free(&changed);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "file", test_file },
		{ "wrong files", test_wrong_files },
		{ "printed lines", test_printed_lines },
		{ "first host", test_first_host },
		{ "random files", test_random_files },
		{ "places", test_places },
		{ "memory", test_memory },
		{ "facts", test_facts },
		{ "common subset", test_common_subset },
		{ "explanations", test_explanations },
		{ "losses", test_losses },
		{ "destinations", test_destinations },
		{ "names", test_names },
		{ "clock bounds", test_clock_bounds },
		{ "clock drift", test_clock_drift },
		{ "clock line", test_clock_line },
		{ "archive", test_archive },
		{ "copy of a copy", test_copy_of_a_copy },
		UNIT_END
	};

	return UNIT_RUN("cluster", tests);
}
