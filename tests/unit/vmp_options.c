/* vmp_options.c - tests of the command line: its options, its help, and the console's escape
 * key. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/limits.h"
#include "tests/unit/options_line.h"
#include "tests/unit/unit.h"
#include "vmm/cli/options_private.h"
#include "vmm/cli/query/status.h"
#include "vmm/cli/terminal.h"

/* ---- options ---- */

static void good_lines(void)
{
	static const struct {
		const char *line;
		enum verb verb;
		uint32_t hosts, cpus, mem;
		const char *command;
	} lines[] = {
		{ "vmp run", VERB_RUN, 1, 4, 256, NULL },
		{ "vmp run -- nproc", VERB_RUN, 1, 4, 256, "nproc" },
		{ "vmp run nproc --all", VERB_RUN, 1, 4, 256, "nproc" },
		{ "vmp run --hosts 8 -- x", VERB_RUN, 8, 8, 256, "x" },
		{ "vmp run --hosts=3 --cpus=4 --mem 1M -- x", VERB_COUNT, 0, 0, 0, "too small" },
		{ "vmp run --hosts=3 --cpus=4 --mem 512M -- x", VERB_RUN, 3, 4, 512, "x" },
		{ "vmp run --hosts 2 --checkpoint 500ms -- x", VERB_RUN, 2, 4, 256, "x" },
		{ "vmp run --hosts 2 --checkpoint 5s --disk i,ro -- x", VERB_RUN, 2, 4, 256, "x" },
		{ "vmp run --hosts 1 --checkpoint 5s -- x", VERB_COUNT, 0, 0, 0,
		  "needs --hosts 2" },
		{ "vmp run --hosts 2 --checkpoint 5x -- x", VERB_COUNT, 0, 0, 0, "not a time" },
		{ "vmp run --hosts 2 --checkpoint 100ms -- x", VERB_COUNT, 0, 0, 0, "from 200ms" },
		{ "vmp run --hosts 2 --checkpoint 5s --disk i -- x", VERB_RUN, 2, 4, 256, "x" },
		{ "vmp run --hosts 2 --checkpoint 5s --checkpoint-file f --disk i -- x", VERB_COUNT,
		  0, 0, 0, "i,snapshot" },
		{ "vmp run --cluster f --checkpoint 5s -- x", VERB_RUN, 0, 0, 256, "x" },
		{ "vmp run --peers 3 -- x", VERB_RUN, 0, 4, 256, "x" },
		{ "vmp run --peers 3 --cpus 9 --spread -- x", VERB_RUN, 0, 9, 256, "x" },
		{ "vmp run --peers 3 --cpus 2 --concentrate -- x", VERB_RUN, 0, 2, 256, "x" },
		{ "vmp up --peers 1 --near --min-memory 1G", VERB_UP, 0, 2, 256, NULL },
		{ "vmp run --peers 0 -- x", VERB_COUNT, 0, 0, 0, "from 1 to" },
		{ "vmp run --peers 3 --cpus 3 -- x", VERB_COUNT, 0, 0, 0, "--concentrate" },
		{ "vmp run --peers 3 --hosts 2 -- x", VERB_COUNT, 0, 0, 0, "leave --hosts away" },
		{ "vmp run --peers 3 --cluster f -- x", VERB_COUNT, 0, 0, 0,
		  "leave --cluster away" },
		{ "vmp run --peers 3 --near --spread -- x", VERB_COUNT, 0, 0, 0, "one of them" },
		{ "vmp run --peers 3 --min-memory x -- x", VERB_COUNT, 0, 0, 0, "not a size" },
		{ "vmp run --concentrate -- x", VERB_COUNT, 0, 0, 0, "for --peers N" },
		{ "vmp snapshot load f --peers 2", VERB_SNAPSHOT, 0, 0, 256, NULL },
		{ "vmp snapshot save f --peers 2", VERB_COUNT, 0, 0, 0, "has one option" },
		{ "vmp run --hosts 2 --checkpoint 5s --checkpoint-file f -- x", VERB_RUN, 2, 4, 256,
		  "x" },
		{ "vmp run --hosts 2 --checkpoint-file f -- x", VERB_COUNT, 0, 0, 0,
		  "needs --checkpoint TIME" },
		{ "vmp snapshot save f --checkpoint 5s", VERB_COUNT, 0, 0, 0, "has one option" },
		{ "vmp run --mem 0.5G --hosts 2 --checkpoint 1.5s -- x", VERB_RUN, 2, 4, 512, "x" },
		{ "vmp run --mem 16.5G", VERB_COUNT, 0, 0, 0,
		  "too large; must be from 32M to 16384M" },
		{ "vmp run --cpus 32 --hosts 32 --mem 3G", VERB_RUN, 32, 32, 3072, NULL },
		{ "vmp run --mem 65536K -- x --cpus 0", VERB_RUN, 1, 4, 64, "x" },
		{ "vmp help", VERB_HELP, 0, 0, 256, NULL },
		{ "vmp --help", VERB_HELP, 0, 0, 256, NULL },
		{ "vmp --version", VERB_VERSION, 1, 4, 256, NULL },
		{ "vmp console --name a-b.c_1", VERB_CONSOLE, 1, 4, 256, NULL },
		{ "vmp pages --top 5 --json", VERB_PAGES, 1, 4, 256, NULL },
		{ "vmp up --name lab --hosts 2 --cpus 8 --mem 64M", VERB_UP, 2, 8, 64, NULL },
		{ "vmp up --log f --verbose", VERB_UP, 1, 4, 256, NULL },
		{ "vmp status --json", VERB_STATUS, 1, 4, 256, NULL },
		{ "vmp top --name x", VERB_TOP, 1, 4, 256, NULL },
		{ "vmp down --name x", VERB_DOWN, 1, 4, 256, NULL },
		{ "vmp up nproc", VERB_COUNT, 0, 0, 0, "takes no argument nproc" },
		{ "vmp up --log -", VERB_COUNT, 0, 0, 0, "--log FILE" },
		{ "vmp up --verbose", VERB_COUNT, 0, 0, 0, "--log FILE" },
		{ "vmp up --timeout 3", VERB_COUNT, 0, 0, 0, "not an option of `vmp up`" },
		{ "vmp", VERB_COUNT, 0, 0, 0, "what shall I do" },
		{ "vmp fly", VERB_COUNT, 0, 0, 0, "no such command: fly" },
		{ "vmp run --fly", VERB_COUNT, 0, 0, 0, "no such option: --fly" },
		{ "vmp run -x", VERB_COUNT, 0, 0, 0, "no such option: -x" },
		{ "vmp run --", VERB_COUNT, 0, 0, 0, "no command after --" },
		{ "vmp run --cpus", VERB_COUNT, 0, 0, 0, "needs a value" },
		{ "vmp run --cpus 0", VERB_COUNT, 0, 0, 0, "from 1 to 32" },
		{ "vmp run --cpus 33", VERB_COUNT, 0, 0, 0, "from 1 to 32" },
		{ "vmp run --cpus -1", VERB_COUNT, 0, 0, 0, "not a whole number" },
		{ "vmp run --cpus 2x", VERB_COUNT, 0, 0, 0, "not a whole number" },
		{ "vmp run --cpus 99999999999999999999", VERB_COUNT, 0, 0, 0, "from 1 to 32" },
		{ "vmp run --hosts 3 --cpus 2", VERB_COUNT, 0, 0, 0, "more than --cpus 2" },
		{ "vmp run --hosts 33", VERB_COUNT, 0, 0, 0, "from 1 to 32" },
		{ "vmp run --mem 16385M", VERB_COUNT, 0, 0, 0, "too large" },
		{ "vmp run --mem 100G", VERB_COUNT, 0, 0, 0, "too large" },
		{ "vmp run --mem 17K", VERB_COUNT, 0, 0, 0, "whole number of MiB" },
		{ "vmp run --mem lots", VERB_COUNT, 0, 0, 0, "not a size" },
		{ "vmp run --engine kvm", VERB_COUNT, 0, 0, 0, "no such engine" },
		{ "vmp run --gdb=:1", VERB_COUNT, 0, 0, 0, "only addresses of this computer" },
		{ "vmp run --gdb 1234", VERB_COUNT, 0, 0, 0, "write it as 127.0.0.1:1234" },
		{ "vmp snapshot save f --gdb 127.0.0.1:1", VERB_COUNT, 0, 0, 0, "has one option" },
		{ "vmp regs --gdb 127.0.0.1:1", VERB_COUNT, 0, 0, 0,
		  "not an option of `vmp regs`" },
		{ "vmp run --summary=1", VERB_COUNT, 0, 0, 0, "takes no value" },
		{ "vmp run --log= x", VERB_COUNT, 0, 0, 0, "needs a value" },
		{ "vmp run --env NONE_SUCH", VERB_COUNT, 0, 0, 0, "NAME=VALUE" },
		{ "vmp run --env =x", VERB_COUNT, 0, 0, 0, "NAME=VALUE" },
		{ "vmp run --timeout 0", VERB_COUNT, 0, 0, 0, "from 1ms to 1000000s" },
		{ "vmp run --name ../x", VERB_COUNT, 0, 0, 0, "only letters" },
		{ "vmp regs x y", VERB_COUNT, 0, 0, 0, "no argument y" },
		{ "vmp doctor x", VERB_COUNT, 0, 0, 0, "takes no argument x" },
		{ "vmp regs --hosts 2", VERB_COUNT, 0, 0, 0, "not an option of `vmp regs`" },
	};
	struct options o;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		int error = parse_line(&o, lines[i].line);
		bool bad = lines[i].verb == VERB_COUNT, ok;

		if (bad)
			ok = error == -EINVAL && strstr(o.error, lines[i].command) &&
			     !strchr(o.error, '\n');
		else
			ok = !error && o.verb == lines[i].verb &&
			     o.machine.hosts == lines[i].hosts && o.machine.cpus == lines[i].cpus &&
			     o.machine.mem_mib == lines[i].mem && !o.command == !lines[i].command &&
			     (!o.command || !strcmp(o.command[0], lines[i].command));
		if (!ok)
			printf("\n    %s: %d %s\n", lines[i].line, error, o.error);
		CU_ASSERT(ok);
	}
}

static void other_options_are_kept(void)
{
	struct options o;

	CU_ASSERT_EQUAL(parse_line(&o, "vmp run --disk d,ro --disk e,ide --share s --stats=st "
				  "--log l --env A=1 --env B= --summary -- c -x --y"),
			0);
	CU_ASSERT(o.machine.disk.n == 2 && !strcmp(o.machine.disk.item[0], "d,ro") &&
		  !strcmp(o.machine.disk.item[1], "e,ide"));
	CU_ASSERT_STRING_EQUAL(o.share, "s");
	CU_ASSERT_STRING_EQUAL(o.stats, "st");
	CU_ASSERT_STRING_EQUAL(o.log, "l");
	CU_ASSERT_EQUAL(o.n_env, 2);
	CU_ASSERT_STRING_EQUAL(o.env[1], "B=");
	CU_ASSERT(o.summary && !o.machine.verbose);
	CU_ASSERT_STRING_EQUAL(o.command[2], "--y");
	CU_ASSERT_PTR_NULL(o.command[3]);
	CU_ASSERT(parse_line(&o, "vmp help run") == 0 && o.verb == VERB_RUN && o.help);
	CU_ASSERT(parse_line(&o, "vmp run --help") == 0 && o.verb == VERB_RUN && o.help);
}

static void snapshots(void)
{
	static const struct { const char *line, *complaint;
	} wrong[] = {
		{ "vmp snapshot", "one file" },
		{ "vmp snapshot save", "one file" },
		{ "vmp snapshot load a b", "one file" },
		{ "vmp snapshot forget a", "no such command" },
		{ "vmp snapshot save a --hosts 2", "belong to load" },
		{ "vmp snapshot save a --engine direct", "belong to load" },
		{ "vmp snapshot save a --strict", "belong to load" },
		{ "vmp snapshot load a --hosts 0", "from 1 to" },
		{ "vmp snapshot load a --cpus 2", "not an option" },
	};
	struct options o;

	CU_ASSERT(parse_line(&o, "vmp snapshot save f --name lab") == 0 &&
		  o.verb == VERB_SNAPSHOT && o.save);
	CU_ASSERT_STRING_EQUAL(o.file, "f");
	CU_ASSERT_STRING_EQUAL(o.name, "lab");
	CU_ASSERT(parse_line(&o, "vmp snapshot load f") == 0 && !o.save && o.machine.hosts == 0);
	CU_ASSERT(parse_line(&o, "vmp snapshot load f --engine ptrace") == 0 &&
		  o.machine.engine == ENGINE_PTRACE);
	CU_ASSERT(parse_line(&o, "vmp snapshot load f --strict") == 0 && o.machine.strict &&
		  o.machine.engine == ENGINE_DIRECT);
	CU_ASSERT(parse_line(&o, "vmp snapshot load f --strict --engine ptrace") == 0 &&
		  o.machine.strict && o.machine.engine == ENGINE_PTRACE);
	CU_ASSERT(parse_line(&o, "vmp snapshot load --hosts 32 f --timeout 5") == 0 &&
		  o.machine.hosts == 32 && o.timeout_ms == 5000);
	CU_ASSERT(parse_line(&o, "vmp snapshot --help") == 0 && o.help);
	for (size_t n = 0; n < ARRAY_LEN(wrong); n++) {
		CU_ASSERT(parse_line(&o, wrong[n].line) != 0);
		CU_ASSERT(strstr(o.error, wrong[n].complaint) != NULL);
	}
}

static void hosts_to_come_and_go(void)
{
	static const struct { const char *line, *complaint;
	} wrong[] = {
		{ "vmp host", "needs add, or remove and a host" },
		{ "vmp host remove", "needs add, or remove and a host" },
		{ "vmp host remove 1 2", "needs add, or remove and a host" },
		{ "vmp host move 1", "no such command" },
		{ "vmp host remove .x", "neither the number nor the name" },
		{ "vmp host remove 99999999999", "neither the number nor" },
		{ "vmp host add a b", "needs add, or remove and a host" },
		{ "vmp snapshot save f --cluster c", "has one option" },
		{ "vmp policy", "needs one of" },
		{ "vmp policy spread auto", "needs one of" },
		{ "vmp policy away", "no such policy" },
		{ "vmp run --policy away -- true", "no such policy" },
		{ "vmp snapshot save f --policy auto", "has one option" },
	};
	struct options o;

	CU_ASSERT(parse_line(&o, "vmp host add --name lab") == 0 && o.verb == VERB_HOST && o.add &&
		  !strcmp(o.host, ""));
	CU_ASSERT(parse_line(&o, "vmp host add harp") == 0 && o.add && !strcmp(o.host, "harp"));
	CU_ASSERT(parse_line(&o, "vmp host remove 3") == 0 && !o.add && o.to_host == 3 && !o.host);
	CU_ASSERT(parse_line(&o, "vmp host remove harp") == 0 && !o.add && !strcmp(o.host, "harp"));
	CU_ASSERT(parse_line(&o, "vmp run --cluster f") == 0 && !strcmp(o.cluster, "f") &&
		  !o.machine.hosts && !o.machine.cpus);
	CU_ASSERT(parse_line(&o, "vmp policy auto") == 0 && o.verb == VERB_POLICY &&
		  o.machine.policy == POLICY_AUTO);
	CU_ASSERT(parse_line(&o, "vmp up --policy spread") == 0 &&
		  o.machine.policy == POLICY_SPREAD);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CU_ASSERT_EQUAL(parse_line(&o, wrong[i].line), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(o.error, wrong[i].complaint));
	}
}

static void processors_to_move(void)
{
	static const struct { const char *line, *complaint;
	} wrong[] = {
		{ "vmp cpu", "needs a processor and a host" },
		{ "vmp cpu move", "needs a processor and a host" },
		{ "vmp cpu move 1", "needs a processor and a host" },
		{ "vmp cpu move 1 2 3 4", "and nothing else" },
		{ "vmp cpu shake 1 2", "no such command" },
		{ "vmp cpu move x 2", "not the number of a processor" },
		{ "vmp cpu move 1 99999999999", "neither the number nor the name" },
	};
	struct options o;

	CU_ASSERT(parse_line(&o, "vmp cpu move 3 1 --name lab") == 0 && o.verb == VERB_CPU &&
		  o.cpu == 3 && o.to_host == 1);
	CU_ASSERT_STRING_EQUAL(o.name, "lab");
	CU_ASSERT(parse_line(&o, "vmp cpu --help") == 0 && o.help);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CU_ASSERT_EQUAL(parse_line(&o, wrong[i].line), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(o.error, wrong[i].complaint));
	}
}

static void loads(void)
{
	struct cpu_stats before = { .time_ns = { [TIME_NATIVE] = 100, [TIME_IDLE] = 700 } },
			 now = before;

	CU_ASSERT_EQUAL(status_cpu_load(&before, &now, 1000), 0);
	CU_ASSERT_EQUAL(status_cpu_load(&before, &now, 0), 0);
	now.time_ns[TIME_IDLE] += 500;
	now.time_ns[TIME_NATIVE] += 200;
	now.time_ns[TIME_EMULATION] += 50;
	CU_ASSERT_EQUAL(status_cpu_load(&before, &now, 1000), 25);
	now.time_ns[TIME_SHARED_MEMORY] += 5000; /* begun before the first sample */
	CU_ASSERT_EQUAL(status_cpu_load(&before, &now, 1000), 100);
}

static void disk_specs(void)
{
	size_t n;

	CU_ASSERT(options_disk_mode("a.img", &n) == DISK_READ_WRITE && n == 5);
	CU_ASSERT(options_disk_mode("a.img,ro", &n) == DISK_READ_ONLY && n == 5);
	CU_ASSERT(options_disk_mode("a,b,snapshot", &n) == DISK_SNAPSHOT && n == 3);
	CU_ASSERT(options_disk_mode(",ro", &n) == DISK_READ_WRITE && n == 3);
}

static void every_help_fits_and_is_whole(void)
{
	char text[8192];

	for (enum verb verb = 0; verb < VERB_COUNT; verb++) {
		size_t n = options_help(verb, text, sizeof text);

		CU_ASSERT(n > 20 && n < sizeof text && text[n - 1] == '\n');
		CU_ASSERT_EQUAL(options_help(verb, text, 10), n);
		for (size_t i = 0; i < N_OPTIONS; i++) {
			const struct option o = options_at(i);

			if (verb == VERB_HELP || !(o.verbs & ON(verb)) || !o.help || !o.value)
				continue;
			options_help(verb, text, sizeof text);
			CU_ASSERT_PTR_NOT_NULL(strstr(text, o.value));
		}
	}
}

/* ---- the escape ---- */

static void escapes(void)
{
	static const struct { const char *typed, *sent; bool quit;
	} cells[] = {
		{ "ls\r", "ls\r", false },   { "a\035q", "a", true },
		{ "\035Qxyz", "", true },    { "\035\035", "\035", false },
		{ "\035x", "\035x", false }, { "\035\035q", "\035q", false },
		{ "q", "q", false },
	};
	char out[64];

	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		for (int apart = 0; apart < 2; apart++) { /* in one read, and byte by byte */
			struct escape escape = { false };
			size_t n = strlen(cells[i].typed), got = 0;
			bool quit = false;

			if (!apart)
				got = terminal_filter(&escape, cells[i].typed, n, out, &quit);
			for (size_t k = 0; apart && k < n && !quit; k++)
				got += terminal_filter(&escape, cells[i].typed + k, 1, out + got,
						     &quit);
			CU_ASSERT(got == strlen(cells[i].sent) && !memcmp(out, cells[i].sent, got));
			CU_ASSERT_EQUAL(quit, cells[i].quit);
		}
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(hosts_to_come_and_go),
		UNIT_TEST(good_lines),
		UNIT_TEST(other_options_are_kept),
		UNIT_TEST(processors_to_move),
		UNIT_TEST(snapshots),
		UNIT_TEST(loads),
		UNIT_TEST(disk_specs),
		UNIT_TEST(every_help_fits_and_is_whole),
		UNIT_TEST(escapes),
		UNIT_END
	};

	return UNIT_RUN("vmp_options", tests);
}
