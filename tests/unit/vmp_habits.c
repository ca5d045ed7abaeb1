/* vmp_habits.c - what people type at a prompt: options and their values, names, `vmp doctor`, `vmp
 * ps`. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/options_line.h"
#include "tests/unit/unit.h"
#include "vmm/cli/completion/complete.h"
#include "vmm/cli/doctor/doctor.h"
#include "vmm/cli/guest/guestplace.h"
#include "vmm/cli/options.h"
#include "vmm/cli/query/history.h"
#include "vmm/cli/query/query.h"
#include "vmm/cli/run/run_log.h"

static char work[] = "/tmp/vmp-test-XXXXXX";

static void shell(const char *commands)
{
	char line[1024];

	snprintf(line, sizeof line, "cd %s && %s", work, commands);
	CU_ASSERT_EQUAL_FATAL(system(line), 0);
}

/* ---- doctor ---- */

static struct finding looked(unsigned row)
{
	struct finding f = { 0 };

	doctor_rows[row].look(&f, work);
	CU_ASSERT(f.text[0] && !strchr(f.text, '\n'));
	return f;
}

static void doctor_reads_the_computer(void)
{
	setenv("PATH", "::/nonesuch:/bin", 1);
	shell("/bin/mkdir -p bin proc/sys/kernel/yama proc/sys/vm lib usr/lib32");
	CU_ASSERT(!looked(DOCTOR_ROW_ssh).good && !looked(DOCTOR_ROW_compiler).good &&
		  !looked(DOCTOR_ROW_libraries).good);
	/* this kernel has no such limits */
	CU_ASSERT(looked(DOCTOR_ROW_ptrace).good && looked(DOCTOR_ROW_maps).good);
	CU_ASSERT(looked(DOCTOR_ROW_memory).good);
	shell("echo 3 >proc/sys/kernel/yama/ptrace_scope; echo 1000 >proc/sys/vm/max_map_count; "
	      "printf 'MemAvailable: 1024 kB\\n' >proc/meminfo; echo x >bin/ssh; echo x >bin/gcc; "
	      "/bin/chmod +x bin/ssh bin/gcc; "
	      "echo x >lib/ld-linux.so.2; /bin/chmod +x lib/ld-linux.so.2");
	CU_ASSERT(!looked(DOCTOR_ROW_ptrace).good &&
		  strstr(looked(DOCTOR_ROW_ptrace).text, "is 3"));
	CU_ASSERT(!looked(DOCTOR_ROW_maps).good && strstr(looked(DOCTOR_ROW_maps).text, "1000"));
	CU_ASSERT(!looked(DOCTOR_ROW_memory).good &&
		  strstr(looked(DOCTOR_ROW_memory).text, "is 1 MiB"));
	CU_ASSERT(looked(DOCTOR_ROW_ssh).good && looked(DOCTOR_ROW_libraries).good);
	CU_ASSERT(!looked(DOCTOR_ROW_compiler).good &&
		  strstr(looked(DOCTOR_ROW_compiler).text, "-m32"));
	shell("echo x >usr/lib32/crt1.o; echo 1 >proc/sys/kernel/yama/ptrace_scope");
	CU_ASSERT(looked(DOCTOR_ROW_compiler).good && looked(DOCTOR_ROW_ptrace).good);
	shell("echo 2 >proc/sys/kernel/yama/ptrace_scope");
	CU_ASSERT(!looked(DOCTOR_ROW_ptrace).good);
}

/* Returns what is printed for these findings, and doctor_print()'s result in *all. */
static const char *printed(const struct finding *found, bool json, bool *all)
{
	static char text[16384];
	FILE *out = fmemopen(text, sizeof text, "w");

	*all = doctor_print(out, found, json);
	fclose(out);
	return text;
}

static void doctor_says_what_is_missing(void)
{
	static struct finding found[DOCTOR_ROWS];
	bool all;

	for (unsigned i = 0; i < DOCTOR_ROWS; i++)
		found[i] = (struct finding){ true, "it is \"there\"" };
	CU_ASSERT(strstr(printed(found, false, &all), "nothing is missing") && all);
	CU_ASSERT(strstr(printed(found, true, &all), "\"found\": \"it is \\\"there\\\"\"") && all);
	found[DOCTOR_ROW_ssh].good = false;
	CU_ASSERT(strstr(printed(found, false, &all), "lacks   ssh") && all);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(printed(found, false, &all), "apt-get install openssh-client"));
	found[DOCTOR_ROW_seccomp].good = false;
	CU_ASSERT(strstr(printed(found, false, &all), "MISSING seccomp") && !all);
	CU_ASSERT_PTR_NOT_NULL(strstr(printed(found, false, &all), "No machine runs here yet"));
	CU_ASSERT(strstr(printed(found, true, &all),
			 "\"check\": \"seccomp\", \"ok\": false, \"needed_by_all\": true") &&
		  !all);
}

/* ---- options ---- */

static void check_wrong(const char *line, const char *complaint)
{
	struct options o;
	bool ok = parse_line(&o, line) == -EINVAL && strstr(o.error, complaint) &&
		  !strchr(o.error, '\n');

	if (!ok)
		printf("\n    %s: %s\n", line, o.error);
	CU_ASSERT(ok);
}

static void values_that_are_missing(void)
{
	static const char *const options[] = { "stats", "log",	"env",	"mem",	  "cpus", "timeout",
					       "share", "disk", "name", "append", "gdb" };
	struct options o;
	char line[64];

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		snprintf(line, sizeof line, "vmp run --%s -- nproc", options[i]);
		check_wrong(line, "needs a value before --");
		snprintf(line, sizeof line, "vmp run --%s --summary -- nproc", options[i]);
		check_wrong(line, "and --summary is an option");
	}
	CU_ASSERT(parse_line(&o, "vmp run --append=--x --log - -- nproc") == 0);
	CU_ASSERT_STRING_EQUAL(o.append, "--x");
	CU_ASSERT_STRING_EQUAL(o.log, "-");
}

static void sizes_and_times(void)
{
	static const struct { const char *line; uint32_t mem, timeout_ms;
	} good[] = {
		{ "vmp run --mem 0.5G --timeout 1.5", 512, 1500 },
		{ "vmp run --mem 512m --timeout 2m", 512, 120000 },
		{ "vmp run --mem 512MB --timeout 1.5s", 512, 1500 },
		{ "vmp run --mem 1gib --timeout 500ms", 1024, 500 },
		{ "vmp run --mem 64 --timeout 1h", 64, 3600000 },
	};
	struct options o;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CU_ASSERT_EQUAL(parse_line(&o, good[i].line), 0);
		CU_ASSERT(o.machine.mem_mib == good[i].mem && o.timeout_ms == good[i].timeout_ms);
	}
	check_wrong("vmp run --mem 99999999999999999999G", "too large; must be from 32M");
	check_wrong("vmp run --mem 1.5", "which a number alone counts");
	check_wrong("vmp run --cpus 1.5", "not a whole number");
	check_wrong("vmp run --timeout soon", "not a time");
	check_wrong("vmp run --timeout 0.0001", "whole number of milliseconds");
	check_wrong("vmp run --timeout 9999999999999999999999h", "must be from 1ms to 1000000s");
}

/* Tries all forms of an option whose value is a size or a time. */
static void try_forms(const char *verb, const char *name, const char *const *forms)
{
	static const char *const wrong[] = { "x", "1.5.2", "-1", "1q", "1,5" };
	struct options o;
	char line[160];

	for (; *forms; forms++) {
		bool refused;

		snprintf(line, sizeof line, "vmp %s --peers 1 --%s %s", verb, name, *forms);
		refused = parse_line(&o, line) && strstr(o.error, name);
		if (refused)
			printf("\n    %s: %s\n", line, o.error);
		CU_ASSERT(!refused);
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		snprintf(line, sizeof line, "vmp %s --peers 1 --%s=%s", verb, name, wrong[i]);
		CU_ASSERT_NOT_EQUAL(parse_line(&o, line), 0);
	}
}

/* Every option of every command takes the forms of its value that people type. */
static void forms_of_all_options(void)
{
	static const char *const sizes[] = { "0.5G", "512M", "512m", "512MB", "512MiB", "524288K",
					     "512", NULL };
	static const char *const times[] = { "1.5s", "1500ms", "2m", "90", "0.5h", "2.5",
					     "1m30s", NULL };
	struct option_info info;
	unsigned seen = 0;

	for (unsigned verb = 0; verb < VERB_COUNT; verb++)
		for (size_t i = 0; options_describe(verb, i, &info); i++) {
			bool size = info.value && !strcmp(info.value, "SIZE");

			if (size || (info.value && !strcmp(info.value, "TIME"))) {
				try_forms(options_verb_word(verb), info.name, size ? sizes : times);
				seen++;
			}
		}
	CU_ASSERT(seen >= 10);
}

/* Options that users of other programs type. */
static void habits(void)
{
	struct options o;

	CU_ASSERT(parse_line(&o, "vmp run --rm -i -m 512m -e A=1 -w /tmp -u 1000:100 "
				 "--hostname a-b.c -- sh") == 0);
	CU_ASSERT(o.machine.mem_mib == 512 && o.n_env == 1 && !strcmp(o.workdir, "/tmp") &&
		  !strcmp(o.user, "1000:100"));
	CU_ASSERT_STRING_EQUAL(o.command[0], "sh");
	CU_ASSERT(parse_line(&o, "vmp run -m512m -smp 3 -nographic -hda d,ro -kernel k -append x "
			    "-initrd=i --memory=64m") == 0);
	CU_ASSERT(o.machine.mem_mib == 64 && o.machine.cpus == 3 &&
		  !strcmp(o.machine.disk.item[0], "d,ro") && !strcmp(o.image, "i"));
	CU_ASSERT(parse_line(&o, "vmp logs -f lab") == 0 && o.follow);
	CU_ASSERT(parse_line(&o, "vmp run -- ls -v -it") == 0); /* the command's own */
	CU_ASSERT(parse_line(&o, "vmp exec lab -it -u 5 -e A=1 -w /tmp ls -l") == 0);
	CU_ASSERT(o.tty && !strcmp(o.name, "lab") && o.n_env == 1 && !strcmp(o.user, "5"));
	CU_ASSERT(!strcmp(o.command[0], "ls") && !strcmp(o.command[1], "-l"));
	CU_ASSERT(parse_line(&o, "vmp exec -- ls -t") == 0 && !o.tty && !o.name);
	CU_ASSERT_STRING_EQUAL(o.command[1], "-t");
	CU_ASSERT(parse_line(&o, "vmp exec --name=lab --tty ls") == 0 && o.tty);
	CU_ASSERT_STRING_EQUAL(o.command[0], "ls");
	check_wrong("vmp exec lab", "what shall run? vmp exec lab -- COMMAND");
	check_wrong("vmp exec lab --", "what shall run?");
	check_wrong("vmp exec lab -d -- ls", "leave it away");
	check_wrong("vmp exec lab --share x -- ls", "--share is not an option of `vmp exec`");
	check_wrong("vmp run --tty sh", "no such option: --tty; without COMMAND");
	check_wrong("vmp run -it sh", "no such option: -it; without COMMAND");
	check_wrong("vmp run -v /a:/b sh", "--share DIR");
	check_wrong("vmp run -p 80:80 sh", "--append");
	check_wrong("vmp run -d sh", "`vmp up`");
	check_wrong("vmp run -drive file=x", "--disk IMAGE");
	check_wrong("vmp run --network=host", "no such option: --network;");
	check_wrong("vmp run -m", "--mem needs a value");
	check_wrong("vmp run -m -- sh", "--mem needs a value before --");
	check_wrong("vmp run -f", "no such option: -f; leave it away");
	check_wrong("vmp run -m9lots", "--mem 9lots: not a size");
	check_wrong("vmp run -mlots", "no such option: -mlots"); /* a word, as QEMU has them */
	check_wrong("vmp run -z", "no such option: -z; see `vmp help run`");
	check_wrong("vmp stop lab", "no such command: stop; `vmp down NAME`");
	check_wrong("vmp images", "--share DIR");
}

static void places(void)
{
	static const struct { const char *option, *value, *complaint;
	} wrong[] = {
		{ "workdir", "tmp", "must begin with /" },
		{ "hostname", "a_b", "only letters" },
		{ "hostname", "-a", "only letters" },
		{ "hostname", "a-", "only letters" },
		{ "hostname", "a..b", "only letters" },
		{ "hostname", "a.", "only letters" },
		{ "hostname", "0123456789012345678901234567890123456789012345678901234567890123",
		  "longer than" },
		{ "user", "1000:x", "must be a name" },
		{ "user", "1000:", "must be a name" },
		{ "user", ":5", "must be a name" },
		{ "user", "4294967295", "must be a name" },
		{ "user", "99999999999999999999", "must be a name" },
		{ "user", "a:b", "must be" },
		{ "user", "-1", "must be a name" },
	};
	struct options o;
	char line[160];

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		snprintf(line, sizeof line, "vmp run --%s=%s", wrong[i].option, wrong[i].value);
		check_wrong(line, wrong[i].complaint);
	}
	CU_ASSERT(parse_line(&o, "vmp up --user nobody --hostname 9a --workdir /") == 0);
	CU_ASSERT_STRING_EQUAL(guestplace_folder(&o), "/");
	CU_ASSERT(parse_line(&o, "vmp run --user 0") == 0);
	CU_ASSERT_STRING_EQUAL(guestplace_folder(&o), "");
	CU_ASSERT(parse_line(&o, "vmp run --share d --user 1") == 0);
	CU_ASSERT_STRING_EQUAL(guestplace_folder(&o), "/share");
	CU_ASSERT(parse_line(&o, "vmp run") == 0);
	CU_ASSERT_STRING_EQUAL(guestplace_folder(&o), "/root");
	unsetenv("LC_ALL"), unsetenv("LC_CTYPE"), unsetenv("LANG");
	CU_ASSERT_PTR_NULL(guestplace_language());
	setenv("LANG", "de_DE.utf8", 1);
	CU_ASSERT_STRING_EQUAL(guestplace_language(), "LANG=C.UTF-8");
	setenv("LC_ALL", "C", 1);
	CU_ASSERT_PTR_NULL(guestplace_language());
}

static void a_name_stands_alone(void)
{
	struct options o;

	CU_ASSERT(parse_line(&o, "vmp down lab") == 0 && !strcmp(o.name, "lab") && !o.all);
	CU_ASSERT(parse_line(&o, "vmp logs --follow lab") == 0 && !strcmp(o.name, "lab") &&
		  o.follow);
	CU_ASSERT(parse_line(&o, "vmp status lab --name lab") == 0 && !strcmp(o.name, "lab"));
	CU_ASSERT(parse_line(&o, "vmp down --all") == 0 && o.all);
	CU_ASSERT(parse_line(&o, "vmp ps --json") == 0 && o.json && o.verb == VERB_PS);
	check_wrong("vmp down a b", "no argument b");
	check_wrong("vmp down ../x", "only letters");
	check_wrong("vmp down a --name b", "which of the two");
	check_wrong("vmp down a --all", "not a alone");
	check_wrong("vmp ps x", "takes no argument x");
}

static void variables(void)
{
	struct options o;

	setenv("VMP_TEST_INHERITED", "a=b", 1);
	CU_ASSERT(parse_line(&o, "vmp run --env VMP_TEST_INHERITED --env X= --env Y=1=2") == 0 &&
		  o.n_env == 3);
	CU_ASSERT_STRING_EQUAL(o.env[0], "VMP_TEST_INHERITED=a=b");
	CU_ASSERT_STRING_EQUAL(o.env[2], "Y=1=2");
	check_wrong("vmp run --env VMP_TEST_INHERITE", "there is no such variable here");
	check_wrong("vmp run --env =x", "must be NAME=VALUE");
}

/* ---- completion ---- */

/* Returns what is offered for these words, of which the last may be "_" for an empty one; without
 * the explanations, each followed by a space. */
static const char *offered(const char *line)
{
	static const char *const machines[] = { "lab", "two", NULL }, *const hosts[] = { "0", "1",
											 "harp",
											 NULL };
	static const char *const programs[] = { "nproc", "ls", NULL };
	static const struct completion_facts facts = { machines, hosts, 3, programs };
	static char text[8192], words[256];
	char *word[32], *to = text, *at;
	size_t n = 0;
	FILE *out = fmemopen(text, sizeof text, "w");

	text[0] = 0;
	snprintf(words, sizeof words, "%s", line);
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
		word[n++] = strcmp(w, "_") ? w : "";
	completion_print(out, word, n, &facts);
	fclose(out);
	for (at = text; *at; at += strcspn(at, "\n") + 1) {
		size_t bytes = strcspn(at, "\t\n");

		memmove(to, at, bytes);
		to += bytes;
		*to++ = ' ';
		if (!strchr(at, '\n'))
			break;
	}
	*to = 0;
	return text;
}

static void completion(void)
{
	static const struct { const char *line, *offered;
	} cases[] = {
		{ "sta", "status " },
		{ "d", "down doctor " },
		{ "stand", "" },
		{ "comp", "" },
		{ "nonesuch _", "" },
		{ "run --pol", "--policy " },
		{ "run --policy _", "auto fixed spread concentrate " },
		{ "run --engine d", "direct " },
		{ "run --engine = p", "ptrace " },
		{ "run --engine =", "direct ptrace " },
		{ "run --share _", ":folders " },
		{ "run --disk _", ":files " },
		{ "run --timeout _", "" },
		{ "run --mem 1", "128M 1G " },
		{ "run --user n", "nobody " },
		{ "run -- n", "nproc :files " },
		{ "run -- nproc _", ":files " },
		{ "run nproc --a", "--append " },
		{ "run --summary l", "ls :files " },
		{ "down _", "lab two " },
		{ "down lab _", "" },
		{ "logs --name t", "two " },
		{ "logs --f", "--follow " },
		{ "cpu _", "move " },
		{ "cpu move _", "0 1 2 " },
		{ "cpu move 1 _", "0 1 harp " },
		{ "cpu --name lab move 1 h", "harp " },
		{ "cpu move 1 0 _", "" },
		{ "host r", "remove " },
		{ "host remove _", "0 1 harp " },
		{ "host add _", "" },
		{ "policy s", "spread " },
		{ "snapshot l", "load " },
		{ "snapshot load _", ":files " },
		{ "help st", "status " },
		{ "ps _", "" },
	};
	char *const named[] = { "cpu", "--name", "=", "lab", "move", "" }, *const joined[] = {
		"cpu", "--name=two", "move", ""
	};
	struct option_info info;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *found = offered(cases[i].line);

		if (strcmp(found, cases[i].offered))
			printf("\n    %s: %s\n", cases[i].line, found);
		CU_ASSERT_STRING_EQUAL(found, cases[i].offered);
	}
	CU_ASSERT_STRING_EQUAL(completion_machine(named, 6), "lab");
	CU_ASSERT_STRING_EQUAL(completion_machine(joined, 4), "two");
	CU_ASSERT_PTR_NULL(completion_machine(joined, 0));
	for (unsigned verb = 0; verb < VERB_COUNT; verb++) /* each option of the help is offered */
		for (size_t i = 0; options_describe(verb, i, &info); i++) {
			char line[64], wanted[64];

			snprintf(line, sizeof line, "%s --%s", options_verb_word(verb), info.name);
			snprintf(wanted, sizeof wanted, "--%s ", info.name);
			CU_ASSERT_PTR_NOT_NULL(strstr(offered(line), wanted));
		}
}

/* ---- the history of vmp top ---- */

static const char *bars(const float *values, unsigned n, unsigned width, float most, bool blocks)
{
	static char out[3 * HISTORY_LOOKS + 1];
	struct history_line line;

	for (unsigned i = 0; i < n; i++)
		line.value[HISTORY_LOOKS - n + i] = values[i];
	history_bars(&line, n, width, most, blocks, out);
	return out;
}

static void bars_of_history(void)
{
	static const float values[] = { 0, 12, 13, 50, 99, 100, 101, NAN, 25 };

	CU_ASSERT_STRING_EQUAL(bars(values, 9, 20, 100, false), "__.=### :");
	CU_ASSERT_STRING_EQUAL(bars(values, 9, 3, 100, false), "# :");
	CU_ASSERT_STRING_EQUAL(bars(values, 2, 3, 0, false), "__"); /* no scale */
	CU_ASSERT_STRING_EQUAL(bars(values, 4, 2, 50, true), "\xe2\x96\x83\xe2\x96\x88");
}

/* One CPU of two moves; a host's first sample has no rates. */
static void moves_in_history(void)
{
	static struct history h;
	static struct status_look before, now;
	static char text[4096];
	FILE *out = fmemopen(text, sizeof text, "w");

	before.at_ns = 1000000000, now.at_ns = 2000000000;
	before.report.hosts = now.report.hosts = 3;
	now.report.cpu_seen[1] = true;
	now.report.cpu[1].time_ns[TIME_NATIVE] = 500000000;
	now.report.node[1].page_fetches = 40;
	history_add(&h, &before, &now);
	now.report.cpu[1].node = 1;
	history_add(&h, &before, &now);
	CU_ASSERT(h.cpu[1].at_ns == now.at_ns && h.cpu[1].from == 0 && h.cpu[1].host == 1 &&
		  h.n == 2);
	history_print(out, &h, now.at_ns + 3000000000ull, 60, false);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "The last 2 looks"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "host 0 load      = "));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "host 1 pages in  ##  of 40/s"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "CPU 1 load       ==  host 0 to 1, 3s"));
	CU_ASSERT_PTR_NULL(strstr(text, "CPU 0"));
	CU_ASSERT_PTR_NULL(strstr(text, "host 2"));
	for (unsigned i = 0; i < 2 * HISTORY_LOOKS; i++)
		history_add(&h, &before, &now);
	CU_ASSERT_EQUAL(h.n, HISTORY_LOOKS);
}

static void moves_are_told(void)
{
	static struct status_look now = { .at_ns = 9500000000, .n_notes = 7 };
	char text[1024] = "";
	FILE *out = fmemopen(text, sizeof text, "w");

	for (unsigned i = 0; i < 7; i++) {
		now.note[i] = (struct move_note){ .at_ns = (i + 3) * 1000000000ull, .cpu = i,
						  .from = 1, .to = 2 };
		snprintf(now.note[i].why, MOVE_WHY, "reason %u", i);
	}
	now.note[6].at_ns = 10000000000; /* while the hosts answered */
	history_print_moves(out, &now, 0);
	now.n_notes = 1;
	history_print_moves(out, &now, 45); /* a reason goes on in the next line */
	fclose(out);
	CU_ASSERT_STRING_EQUAL(text, "\nThe last moves:\n"
			       "     0 s ago: CPU 6 from host 1 to 2; reason 6\n"
			       "     1 s ago: CPU 5 from host 1 to 2; reason 5\n"
			       "     2 s ago: CPU 4 from host 1 to 2; reason 4\n"
			       "     3 s ago: CPU 3 from host 1 to 2; reason 3\n"
			       "     4 s ago: CPU 2 from host 1 to 2; reason 2\n\nThe last moves:\n"
			       "     6 s ago: CPU 0 from host 1 to 2; reason\n              0\n");
}

/* ---- machines ---- */

static void ages(void)
{
	static const struct { uint64_t seconds; const char *text;
	} cases[] = {
		{ 0, "0s" },
		{ 59, "59s" },
		{ 60, "1m 0s" },
		{ 3599, "59m 59s" },
		{ 3600, "1h 0m" },
		{ 90061, "1d 1h" },
		{ 86400ull * 1000, "1000d 0h" },
	};
	char text[32];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CU_ASSERT_STRING_EQUAL(machines_print_age(cases[i].seconds, text, sizeof text),
				       cases[i].text);
}

static const char *cut(const char *before, size_t most, size_t kept)
{
	static char text[64];
	FILE *file = tmpfile();
	size_t n;

	fputs(before, file);
	fflush(file);
	fcntl(fileno(file), F_SETFL, O_APPEND); /* as logs are */
	CU_ASSERT_EQUAL(run_log_cut(fileno(file), most, kept), 0);
	rewind(file);
	n = fread(text, 1, sizeof text - 1, file);
	text[n] = 0;
	fclose(file);
	return text;
}

static void a_log_is_cut(void)
{
	/* as long as it may be */
	CU_ASSERT_STRING_EQUAL(cut("one\ntwo\nthree\n", 14, 8), "one\ntwo\nthree\n");
	CU_ASSERT_STRING_EQUAL(cut("one\ntwo\nthree\n", 13, 8), "three\n");	/* whole lines */
	CU_ASSERT_STRING_EQUAL(cut("a line without end", 10, 4), " end");
	CU_ASSERT_STRING_EQUAL(cut("", 10, 4), "");
}

static int clean(void)
{
	char command[64];

	snprintf(command, sizeof command, "/bin/rm -rf %s", work);
	return system(command);
}

/* What `vmp top` shows fits into its window. */
static void top_fits(void)
{
	static const struct { uint32_t columns, rows; const char *shown; } cases[] = {
		{ 0, 0, "abcdef\n\xe2\x96\x81\xe2\x96\x81z\n\nlast\n" },
		{ 80, 5, "abcdef\n\xe2\x96\x81\xe2\x96\x81z\n\nlast\n" },
		{ 2, 0, "ab\n\xe2\x96\x81\xe2\x96\x81\n\nla\n" },
		{ 6, 4, "abcdef\n\xe2\x96\x81\xe2\x96\x81z\n"
			"... 2 more lines: make the window higher\n" },
		{ 6, 2, "... 4 more lines: make the window higher\n" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[256] = "";
		FILE *out = fmemopen(text, sizeof text, "w");

		history_fit(out, "abcdef\n\xe2\x96\x81\xe2\x96\x81z\n\nlast\n", cases[i].columns,
			    cases[i].rows);
		fclose(out);
		CU_ASSERT_STRING_EQUAL(text, cases[i].shown);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "values that are missing", values_that_are_missing },
		{ "sizes and times", sizes_and_times },
		{ "forms of all options", forms_of_all_options },
		{ "habits", habits },
		{ "places", places },
		{ "a name stands alone", a_name_stands_alone },
		{ "variables", variables },
		{ "completion", completion },
		{ "bars of history", bars_of_history },
		{ "moves in history", moves_in_history },
		{ "moves are told", moves_are_told },
		{ "ages", ages },
		{ "a log is cut", a_log_is_cut },
		{ "the doctor reads the computer", doctor_reads_the_computer },
		{ "the doctor says what is missing", doctor_says_what_is_missing },
		{ "top fits into its window", top_fits },
		UNIT_END
	};
	int status;

	if (!mkdtemp(work))
		return 1;
	status = UNIT_RUN("vmp_habits", tests);
	return clean() || status;
}
