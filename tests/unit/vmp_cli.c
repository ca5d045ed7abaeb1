/* vmp_cli.c - the command line's pure parts: options, archive, image, what a program needs, host limits, page heat. */
#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/limits.h"
#include "vmm/cli/run/checks.h"
#include "vmm/shared/hostmem.h"
#include "vmm/cli/guest/elfdeps.h"
#include "vmm/cli/guest/ldcache.h"
#include "vmm/cli/guest/guestprog.h"
#include "vmm/cli/guest/guest_image.h"
#include "vmm/cli/guest/initramfs.h"
#include "vmm/cli/options.h"
#include "vmm/cli/query/dumptext.h"
#include "vmm/cli/query/pageheat.h"
#include "vmm/cli/query/report.h"
#include "vmm/cli/query/status.h"
#include "vmm/cli/terminal.h"

static char work[] = "/tmp/vmp-test-XXXXXX";

/* Path below the work folder; a few live at once. */
static const char *at(const char *name)
{
	static char paths[8][256];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof paths[0], "%s/%s", work, name);
	return path;
}

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
	char command[2048];
	va_list args;
	int n = snprintf(command, sizeof command, "cd %s && ", work);

	va_start(args, format);
	vsnprintf(command + n, sizeof command - n, format, args);
	va_end(args);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
}

/* ---- options ---- */

static int parse(struct options *o, const char *line)
{
	static char words[512];
	static char *argv[32];
	int argc = 0;

	snprintf(words, sizeof words, "%s", line);
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	return options_parse(o, argc, argv, 4);
}

static void good_lines(void)
{
	static const struct { const char *line; enum verb verb; uint32_t hosts, cpus, mem; const char *command; } lines[] = {
		{ "vmp run", VERB_RUN, 1, 4, 256, NULL },
		{ "vmp run -- nproc", VERB_RUN, 1, 4, 256, "nproc" },
		{ "vmp run nproc --all", VERB_RUN, 1, 4, 256, "nproc" },
		{ "vmp run --hosts 8 -- x", VERB_RUN, 8, 8, 256, "x" },
		{ "vmp run --hosts=3 --cpus=4 --mem 1M -- x", VERB_COUNT, 0, 0, 0, "too small" },
		{ "vmp run --hosts=3 --cpus=4 --mem 512M -- x", VERB_RUN, 3, 4, 512, "x" },
		{ "vmp run --hosts 2 --checkpoint 500ms -- x", VERB_RUN, 2, 4, 256, "x" },
		{ "vmp run --hosts 2 --checkpoint 5s --disk i,ro -- x", VERB_RUN, 2, 4, 256, "x" },
		{ "vmp run --hosts 1 --checkpoint 5s -- x", VERB_COUNT, 0, 0, 0, "needs --hosts 2" },
		{ "vmp run --hosts 2 --checkpoint 5x -- x", VERB_COUNT, 0, 0, 0, "not a time" },
		{ "vmp run --hosts 2 --checkpoint 100ms -- x", VERB_COUNT, 0, 0, 0, "from 200ms" },
		{ "vmp run --hosts 2 --checkpoint 5s --disk i -- x", VERB_COUNT, 0, 0, 0, "i,snapshot" },
		{ "vmp run --cluster f --checkpoint 5s -- x", VERB_RUN, 0, 0, 256, "x" },
		{ "vmp run --hosts 2 --checkpoint 5s --checkpoint-file f -- x", VERB_RUN, 2, 4, 256, "x" },
		{ "vmp run --hosts 2 --checkpoint-file f -- x", VERB_COUNT, 0, 0, 0, "needs --checkpoint TIME" },
		{ "vmp snapshot save f --checkpoint 5s", VERB_COUNT, 0, 0, 0, "has one option" },
		{ "vmp run --mem 0.5G --hosts 2 --checkpoint 1.5s -- x", VERB_RUN, 2, 4, 512, "x" },
		{ "vmp run --mem 1.5G", VERB_COUNT, 0, 0, 0, "too large; must be from 32M to 1024M" },
		{ "vmp run --cpus 32 --hosts 32 --mem 1G", VERB_RUN, 32, 32, 1024, NULL },
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
		{ "vmp run --cpus -1", VERB_COUNT, 0, 0, 0, "not a number" },
		{ "vmp run --cpus 2x", VERB_COUNT, 0, 0, 0, "not a number" },
		{ "vmp run --cpus 99999999999999999999", VERB_COUNT, 0, 0, 0, "from 1 to 32" },
		{ "vmp run --hosts 3 --cpus 2", VERB_COUNT, 0, 0, 0, "more than --cpus 2" },
		{ "vmp run --hosts 33", VERB_COUNT, 0, 0, 0, "from 1 to 32" },
		{ "vmp run --mem 1025M", VERB_COUNT, 0, 0, 0, "too large" },
		{ "vmp run --mem 100G", VERB_COUNT, 0, 0, 0, "too large" },
		{ "vmp run --mem 17K", VERB_COUNT, 0, 0, 0, "whole number of MiB" },
		{ "vmp run --mem lots", VERB_COUNT, 0, 0, 0, "not a size" },
		{ "vmp run --engine kvm", VERB_COUNT, 0, 0, 0, "no such engine" },
		{ "vmp run --gdb=:1", VERB_COUNT, 0, 0, 0, "only addresses of this computer" },
		{ "vmp run --gdb 1234", VERB_COUNT, 0, 0, 0, "write it as 127.0.0.1:1234" },
		{ "vmp snapshot save f --gdb 127.0.0.1:1", VERB_COUNT, 0, 0, 0, "has one option" },
		{ "vmp regs --gdb 127.0.0.1:1", VERB_COUNT, 0, 0, 0, "not an option of `vmp regs`" },
		{ "vmp run --summary=1", VERB_COUNT, 0, 0, 0, "takes no value" },
		{ "vmp run --log= x", VERB_COUNT, 0, 0, 0, "needs a value" },
		{ "vmp run --env PATH", VERB_COUNT, 0, 0, 0, "NAME=VALUE" },
		{ "vmp run --timeout 0", VERB_COUNT, 0, 0, 0, "from 1" },
		{ "vmp run --name ../x", VERB_COUNT, 0, 0, 0, "only letters" },
		{ "vmp regs x", VERB_COUNT, 0, 0, 0, "takes no argument" },
		{ "vmp regs --hosts 2", VERB_COUNT, 0, 0, 0, "not an option of `vmp regs`" },
	};
	struct options o;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		int error = parse(&o, lines[i].line);
		bool bad = lines[i].verb == VERB_COUNT, ok;

		if (bad)
			ok = error == -EINVAL && strstr(o.error, lines[i].command) && !strchr(o.error, '\n');
		else
			ok = !error && o.verb == lines[i].verb && o.machine.hosts == lines[i].hosts && o.machine.cpus == lines[i].cpus &&
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

	CU_ASSERT_EQUAL(parse(&o, "vmp run --disk d,ro --share s --stats=st --log l --env A=1 --env B= --summary -- c -x --y"), 0);
	CU_ASSERT_STRING_EQUAL(o.machine.disk, "d,ro");
	CU_ASSERT_STRING_EQUAL(o.share, "s");
	CU_ASSERT_STRING_EQUAL(o.stats, "st");
	CU_ASSERT_STRING_EQUAL(o.log, "l");
	CU_ASSERT_EQUAL(o.n_env, 2);
	CU_ASSERT_STRING_EQUAL(o.env[1], "B=");
	CU_ASSERT(o.summary && !o.machine.verbose);
	CU_ASSERT_STRING_EQUAL(o.command[2], "--y");
	CU_ASSERT_PTR_NULL(o.command[3]);
	CU_ASSERT(parse(&o, "vmp help run") == 0 && o.verb == VERB_RUN && o.help);
	CU_ASSERT(parse(&o, "vmp run --help") == 0 && o.verb == VERB_RUN && o.help);
}

static void snapshots(void)
{
	static const struct { const char *line, *complaint; } wrong[] = {
		{ "vmp snapshot", "one file" }, { "vmp snapshot save", "one file" }, { "vmp snapshot load a b", "one file" },
		{ "vmp snapshot forget a", "no such command" }, { "vmp snapshot save a --hosts 2", "belong to load" },
		{ "vmp snapshot save a --engine direct", "belong to load" }, { "vmp snapshot save a --strict", "belong to load" },
		{ "vmp snapshot load a --strict --engine direct", "mode of --engine ptrace" },
		{ "vmp snapshot load a --hosts 0", "from 1 to" }, { "vmp snapshot load a --cpus 2", "not an option" },
	};
	struct options o;

	CU_ASSERT(parse(&o, "vmp snapshot save f --name lab") == 0 && o.verb == VERB_SNAPSHOT && o.save);
	CU_ASSERT_STRING_EQUAL(o.file, "f");
	CU_ASSERT_STRING_EQUAL(o.name, "lab");
	CU_ASSERT(parse(&o, "vmp snapshot load f") == 0 && !o.save && o.machine.hosts == 0);
	CU_ASSERT(parse(&o, "vmp snapshot load f --engine ptrace") == 0 && o.machine.engine == ENGINE_PTRACE);
	CU_ASSERT(parse(&o, "vmp snapshot load f --strict") == 0 && o.machine.strict && o.machine.engine == ENGINE_PTRACE);
	CU_ASSERT(parse(&o, "vmp snapshot load --hosts 32 f --timeout 5") == 0 && o.machine.hosts == 32 && o.timeout_s == 5);
	CU_ASSERT(parse(&o, "vmp snapshot --help") == 0 && o.help);
	for (size_t n = 0; n < ARRAY_LEN(wrong); n++) {
		CU_ASSERT(parse(&o, wrong[n].line) != 0);
		CU_ASSERT(strstr(o.error, wrong[n].complaint) != NULL);
	}
}

static void hosts_to_come_and_go(void)
{
	static const struct { const char *line, *complaint; } wrong[] = {
		{ "vmp host", "needs add, or remove and a host" }, { "vmp host remove", "needs add, or remove and a host" },
		{ "vmp host remove 1 2", "needs add, or remove and a host" }, { "vmp host move 1", "no such command" },
		{ "vmp host remove .x", "neither the number nor the name" }, { "vmp host remove 99999999999", "neither the number nor" },
		{ "vmp host add a b", "needs add, or remove and a host" }, { "vmp snapshot save f --cluster c", "has one option" },
		{ "vmp policy", "needs one of" },
		{ "vmp policy spread auto", "needs one of" }, { "vmp policy away", "no such policy" },
		{ "vmp run --policy away -- true", "no such policy" }, { "vmp snapshot save f --policy auto", "has one option" },
	};
	struct options o;

	CU_ASSERT(parse(&o, "vmp host add --name lab") == 0 && o.verb == VERB_HOST && o.add && !strcmp(o.host, ""));
	CU_ASSERT(parse(&o, "vmp host add harp") == 0 && o.add && !strcmp(o.host, "harp"));
	CU_ASSERT(parse(&o, "vmp host remove 3") == 0 && !o.add && o.to_host == 3 && !o.host);
	CU_ASSERT(parse(&o, "vmp host remove harp") == 0 && !o.add && !strcmp(o.host, "harp"));
	CU_ASSERT(parse(&o, "vmp run --cluster f") == 0 && !strcmp(o.cluster, "f") && !o.machine.hosts && !o.machine.cpus);
	CU_ASSERT(parse(&o, "vmp policy auto") == 0 && o.verb == VERB_POLICY && o.machine.policy == POLICY_AUTO);
	CU_ASSERT(parse(&o, "vmp up --policy spread") == 0 && o.machine.policy == POLICY_SPREAD);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CU_ASSERT_EQUAL(parse(&o, wrong[i].line), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(o.error, wrong[i].complaint));
	}
}

static void processors_to_move(void)
{
	static const struct { const char *line, *complaint; } wrong[] = {
		{ "vmp cpu", "needs a processor and a host" }, { "vmp cpu move", "needs a processor and a host" },
		{ "vmp cpu move 1", "needs a processor and a host" }, { "vmp cpu move 1 2 3 4", "and nothing else" },
		{ "vmp cpu shake 1 2", "no such command" }, { "vmp cpu move x 2", "not the number of a processor" },
		{ "vmp cpu move 1 99999999999", "neither the number nor the name" },
	};
	struct options o;

	CU_ASSERT(parse(&o, "vmp cpu move 3 1 --name lab") == 0 && o.verb == VERB_CPU && o.cpu == 3 && o.to_host == 1);
	CU_ASSERT_STRING_EQUAL(o.name, "lab");
	CU_ASSERT(parse(&o, "vmp cpu --help") == 0 && o.help);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CU_ASSERT_EQUAL(parse(&o, wrong[i].line), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(o.error, wrong[i].complaint));
	}
}

static void loads(void)
{
	struct cpu_stats before = { .time_ns = { [TIME_NATIVE] = 100, [TIME_IDLE] = 700 } }, now = before;

	CU_ASSERT_EQUAL(status_cpu_load(&before, &now, 1000), 0);
	CU_ASSERT_EQUAL(status_cpu_load(&before, &now, 0), 0);
	now.time_ns[TIME_IDLE] += 500;
	now.time_ns[TIME_NATIVE] += 200;
	now.time_ns[TIME_EMULATION] += 50;
	CU_ASSERT_EQUAL(status_cpu_load(&before, &now, 1000), 25);
	now.time_ns[TIME_SHARED_MEMORY] += 5000; /* begun before the first look */
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
	}
}

/* ---- the escape ---- */

static void escapes(void)
{
	static const struct { const char *typed, *sent; bool quit; } cells[] = {
		{ "ls\r", "ls\r", false }, { "a\035q", "a", true }, { "\035Qxyz", "", true }, { "\035\035", "\035", false },
		{ "\035x", "\035x", false }, { "\035\035q", "\035q", false }, { "q", "q", false },
	};
	char out[64];

	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		for (int apart = 0; apart < 2; apart++) { /* in one read, and byte by byte */
			struct escape escape = { false };
			size_t n = strlen(cells[i].typed), got = 0;
			bool quit = false;

			if (!apart)
				got = escape_filter(&escape, cells[i].typed, n, out, &quit);
			for (size_t k = 0; apart && k < n && !quit; k++)
				got += escape_filter(&escape, cells[i].typed + k, 1, out + got, &quit);
			CU_ASSERT(got == strlen(cells[i].sent) && !memcmp(out, cells[i].sent, got));
			CU_ASSERT_EQUAL(quit, cells[i].quit);
		}
	}
}

/* ---- archive and image ---- */

static void write_sample(const char *path)
{
	struct initramfs archive;
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	CU_ASSERT_FATAL(fd >= 0);
	initramfs_start(&archive, fd);
	initramfs_add_bytes(&archive, "/vmp/command", 0644, "ls\0-l\0", 6);
	initramfs_add_tree(&archive, "/share", at("tree"));
	initramfs_add_link(&archive, "/lib/x", "y");
	CU_ASSERT_EQUAL(initramfs_finish(&archive), 0);
	CU_ASSERT_EQUAL((uint64_t)lseek(fd, 0, SEEK_END), archive.bytes);
	close(fd);
}

static void cpio_reads_what_we_write(void)
{
	shell("mkdir -p tree/deep/empty && seq 5000 >tree/numbers && ln -s numbers tree/link && echo >tree/deep/one && "
	      "printf x >tree/odd && chmod 755 tree/odd && mkfifo tree/pipe && touch tree/nothing && "
	      "ln tree/odd tree/deep/again && touch -d '2001-02-03 04:05:06' tree/odd tree/deep/empty");
	write_sample(at("sample.cpio"));
	shell("mkdir out && cd out && cpio --quiet -idm <../sample.cpio");
	shell("diff -r --exclude=pipe tree out/share && [ -x out/share/odd ] && [ $(readlink out/lib/x) = y ]");
	shell("[ -p out/share/pipe ] && [ out/share/odd -ef out/share/deep/again ]");
	shell("cd tree && find . -type f -exec sh -c 'for f; do "
	      "[ $(stat -c %%Y $f) = $(stat -c %%Y ../out/share/$f) ] || exit 1; done' - {} +");
	shell("[ -d out/share/deep/empty ] && [ $(readlink out/share/link) = numbers ]");
	shell("printf 'ls\\0-l\\0' | cmp - out/vmp/command");
	/* the same input, the same archive */
	write_sample(at("again.cpio"));
	shell("cmp sample.cpio again.cpio");
}

static void what_cannot_be_copied_is_counted(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct initramfs archive;
	int fd = open("/dev/null", O_WRONLY), listener = socket(AF_UNIX, SOCK_STREAM, 0);

	shell("mkdir uncopied");
	snprintf(address.sun_path, sizeof address.sun_path, "%s", at("uncopied/socket"));
	CU_ASSERT_EQUAL_FATAL(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	initramfs_start(&archive, fd);
	initramfs_add_tree(&archive, "/share", at("uncopied"));
	CU_ASSERT_EQUAL(initramfs_finish(&archive), 0);
	CU_ASSERT_EQUAL(archive.left_out, 1);
	CU_ASSERT(strstr(archive.first_left_out, "uncopied/socket") != NULL);
	close(listener);
	close(fd);
}

static void a_tree_is_counted_up_to_a_limit(void)
{
	int64_t all = initramfs_tree_bytes(at("tree"), INT64_MAX / 2);

	CU_ASSERT(all > 23893 && all < 26000);
	CU_ASSERT(initramfs_tree_bytes(at("tree"), 1000) > 1000);
	CU_ASSERT_EQUAL(initramfs_tree_bytes(at("nonesuch"), 1), -ENOENT);
}

static void a_full_disk_is_an_error(void)
{
	struct initramfs archive;
	int fd = open("/dev/full", O_WRONLY);

	initramfs_start(&archive, fd);
	initramfs_add_bytes(&archive, "/a", 0644, "x", 1);
	CU_ASSERT_EQUAL(initramfs_finish(&archive), -ENOSPC);
	close(fd);
	initramfs_start(&archive, -1);
	initramfs_add_file(&archive, "/a", at("nonesuch"));
	CU_ASSERT(initramfs_finish(&archive) != 0);
}

static void an_image_is_read_back(void)
{
	struct image image;
	struct problem p;
	char found[64];

	shell("mkdir -p root/bin root/usr/sbin && touch root/bin/ls root/usr/sbin/who && cd root && "
	      "find . | cpio --quiet -o -H newc | gzip >../image.gz");
	CU_ASSERT_EQUAL_FATAL(image_load(&image, at("image.gz"), &p), 0);
	CU_ASSERT(image_has(&image, "/bin/ls") && !image_has(&image, "/bin/l"));
	CU_ASSERT_STRING_EQUAL(image_find_command(&image, "who", found, sizeof found), "/usr/sbin/who");
	CU_ASSERT_PTR_NULL(image_find_command(&image, "nonesuch", found, sizeof found));
	image_free(&image);
	shell("head -c 90 image.gz >cut.gz; echo junk >junk.gz");
	CU_ASSERT_EQUAL(image_load(&image, at("cut.gz"), &p), -1);
	CU_ASSERT_EQUAL(image_load(&image, at("junk.gz"), &p), -1);
	CU_ASSERT(strstr(p.line, "damaged") != NULL);
	CU_ASSERT_EQUAL(image_load(&image, at("nonesuch"), &p), -1);
}

/* ---- what a program needs ---- */

static void files_are_told_apart(void)
{
	struct problem p;

	shell("echo 'int main(void) { return 0; }' >m.c && gcc -m32 -o prog32 m.c && gcc -m32 -static -o static32 m.c && "
	      "gcc -o prog64 m.c && printf '#!/bin/sh -e \\necho\\n' >script && echo text >text && : >empty && "
	      "head -c 18 prog32 >short && printf '\\177ELF\\001\\002\\001' >other && head -c 40 /dev/zero >>other");
	CU_ASSERT_EQUAL(file_kind(at("prog32"), &p), FILE_ELF32);
	CU_ASSERT_EQUAL(file_kind(at("prog64"), &p), FILE_ELF64);
	CU_ASSERT_EQUAL(file_kind(at("script"), &p), FILE_SCRIPT);
	CU_ASSERT_EQUAL(file_kind(at("text"), &p), FILE_OTHER);
	CU_ASSERT_EQUAL(file_kind(at("empty"), &p), FILE_OTHER);
	CU_ASSERT_EQUAL(file_kind(at("short"), &p), FILE_OTHER);
	CU_ASSERT_EQUAL(file_kind(at("other"), &p), FILE_ELF_OTHER);
	CU_ASSERT_EQUAL(file_kind(at("nonesuch"), &p), -1);
	CU_ASSERT_EQUAL(file_kind(work, &p), -1);
}

static void interpreters(void)
{
	static const struct { const char *line, *interpreter, *argument; } cells[] = {
		{ "#!/bin/sh", "/bin/sh", "" }, { "#! /bin/sh -e ", "/bin/sh", "-e" },
		{ "#!/usr/bin/env  python3 -u", "/usr/bin/env", "python3 -u" }, { "#!", NULL, NULL }, { "echo", NULL, NULL },
	};
	char interpreter[64], argument[64];
	struct problem p;

	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		shell("echo '%s' >line", cells[i].line);
		if (cells[i].interpreter) {
			CU_ASSERT_EQUAL(script_interpreter(at("line"), interpreter, argument, 64, &p), 0);
			CU_ASSERT_STRING_EQUAL(interpreter, cells[i].interpreter);
			CU_ASSERT_STRING_EQUAL(argument, cells[i].argument);
		} else {
			CU_ASSERT_EQUAL(script_interpreter(at("line"), interpreter, argument, 64, &p), -1);
		}
	}
}

static bool has_library(const struct elfdeps *deps, const char *name)
{
	for (size_t i = 0; i < deps->n; i++)
		if (!strcmp(deps->library[i].name, name))
			return true;
	return false;
}

static void libraries_are_found_recursively(void)
{
	static struct elfdeps deps;
	char folder[64];
	struct problem p;

	/* prog needs libone by RUNPATH $ORIGIN/l, libone needs libtwo by its own RUNPATH, both need libc. */
	shell("mkdir -p l && echo 'int two(void) { return 2; }' >two.c && gcc -m32 -shared -fPIC -o l/libtwo.so two.c && "
	      "echo 'int two(void); int one(void) { return two(); }' >one.c && "
	      "gcc -m32 -shared -fPIC -Wl,-rpath,'$ORIGIN' -o l/libone.so one.c -Ll -ltwo && "
	      "echo 'int one(void); int main(void) { return one(); }' >p.c && "
	      "gcc -m32 -Wl,-rpath,'$ORIGIN/l' -o needs p.c -Ll -lone -Wl,-rpath-link,l");
	memset(&deps, 0, sizeof deps);
	CU_ASSERT_EQUAL(elfdeps_add(&deps, at("needs"), "", &p), 0);
	CU_ASSERT_STRING_EQUAL(deps.loader, "/lib/ld-linux.so.2");
	CU_ASSERT(has_library(&deps, "libone.so") && has_library(&deps, "libtwo.so") && has_library(&deps, "libc.so.6"));
	elfdeps_add_optional(&deps, "libgcc_s.so.1", "");
	elfdeps_add_optional(&deps, "libnonesuch.so.1", "");
	CU_ASSERT(has_library(&deps, "libgcc_s.so.1") && !has_library(&deps, "libnonesuch.so.1"));
	CU_ASSERT_EQUAL(*elfdeps_folder(&deps, folder, sizeof folder), '/');
	/* a 64-bit file of the right name is passed over; then the library is missing, and named */
	shell("echo 'int two(void) { return 2; }' >two.c && gcc -shared -fPIC -o l/libtwo.so two.c");
	memset(&deps, 0, sizeof deps);
	CU_ASSERT_EQUAL(elfdeps_add(&deps, at("needs"), "", &p), -1);
	CU_ASSERT(strstr(p.line, "libtwo.so") != NULL);
	memset(&deps, 0, sizeof deps);
	CU_ASSERT_EQUAL(elfdeps_add(&deps, at("static32"), "", &p), 0);
	CU_ASSERT(deps.n == 0 && !*deps.loader);
}

/* As the host's own ldconfig reads it, in the order that its binary search needs. */
static void the_loaders_cache(void)
{
	static const char *const ascending[] = { "ld.so", "lib.so", "liba.so", "lib2.so", "lib10.so", "lib10.so.1", "lib10.so.12" };
	static struct elfdeps deps;
	static uint8_t cache[LDCACHE_BYTES];
	char listed[1024];
	size_t n;
	FILE *f;

	for (unsigned i = 0; i < ARRAY_LEN(ascending); i++) {
		for (unsigned k = 0; k < ARRAY_LEN(ascending); k++)
			CU_ASSERT_EQUAL((ldcache_compare(ascending[i], ascending[k]) > 0) - (ldcache_compare(ascending[i], ascending[k]) < 0),
					(i > k) - (i < k));
		snprintf(deps.library[(i * 3) % ARRAY_LEN(ascending)].name, MAX_LIBRARY_NAME, "%s", ascending[i]);
	}
	deps.n = ARRAY_LEN(ascending);
	f = fopen(at("cache"), "w");
	fwrite(cache, ldcache_build(&deps, "/lib32", cache), 1, f);
	fclose(f);
	shell("PATH=$PATH:/sbin ldconfig -p -C cache | sed 1d | tr -d '\\t\\n' >listed");
	f = fopen(at("listed"), "r");
	n = fread(listed, 1, sizeof listed - 1, f);
	listed[n] = '\0';
	fclose(f);
	CU_ASSERT_STRING_EQUAL(listed, "lib10.so.12 (libc6) => /lib32/lib10.so.12"
			       "lib10.so.1 (libc6) => /lib32/lib10.so.1" "lib10.so (libc6) => /lib32/lib10.so"
			       "lib2.so (libc6) => /lib32/lib2.so" "liba.so (libc6) => /lib32/liba.so"
			       "lib.so (libc6) => /lib32/lib.so" "ld.so (libc6) => /lib32/ld.so");
}

static void a_missing_loader_names_its_package(void)
{
	static struct elfdeps deps;
	struct problem p;

	CU_ASSERT_EQUAL(elfdeps_add(&deps, at("prog32"), at("root"), &p), -1);
	CU_ASSERT(strstr(p.line, "/lib/ld-linux.so.2") && strstr(p.line, "libc6-i386"));
	/* with the loader but without libc */
	shell("mkdir -p root/lib root/conf root/etc && cp -L /lib/ld-linux.so.2 root/lib/");
	CU_ASSERT_EQUAL(elfdeps_add(&deps, at("prog32"), at("root"), &p), -1);
	CU_ASSERT(strstr(p.line, "libc.so.6") && strstr(p.line, "libc6-i386"));
	/* libc in a folder that only ld.so.conf names, by an include */
	shell("echo 'include /etc/more/*.conf' >root/etc/ld.so.conf && mkdir root/etc/more && "
	      "echo '/conf # here' >root/etc/more/a.conf && cp -L /lib32/libc.so.6 root/conf/");
	memset(&deps, 0, sizeof deps);
	CU_ASSERT_EQUAL(elfdeps_add(&deps, at("prog32"), at("root"), &p), 0);
	CU_ASSERT(has_library(&deps, "libc.so.6"));
}

/* Lists what the archive of a command line would hold; -1 and the problem if it is refused. */
static int archive_of(const char *line, struct problem *p)
{
	struct options o;
	struct image image;
	int fd;

	CU_ASSERT_EQUAL_FATAL(parse(&o, line), 0);
	CU_ASSERT_EQUAL_FATAL(image_load(&image, at("image.gz"), p), 0);
	fd = guestprog_archive(&o, &image, p);
	image_free(&image);
	if (fd < 0)
		return -1;
	shell("rm -rf got && mkdir got && cd got && cpio --quiet -id </proc/%d/fd/%d", getpid(), fd);
	close(fd);
	return 0;
}

static void commands_reach_the_guest(void)
{
	char line[512];
	struct problem p;

	CU_ASSERT_EQUAL(archive_of("vmp run --env A=b -- ls -l", &p), 0);
	shell("printf 'ls\\0-l\\0' | cmp - got/vmp/command && tr '\\0' '\\n' <got/vmp/environ | grep -qx A=b");
	CU_ASSERT_EQUAL(archive_of("vmp run", &p), 0);
	shell("[ ! -e got/vmp/command ] && [ -e got/vmp/cwd ]");
	snprintf(line, sizeof line, "vmp run -- %s x", at("prog32"));
	CU_ASSERT_EQUAL(archive_of(line, &p), 0);
	shell("cmp prog32 got/vmp/bin/prog32 && [ -e got/lib/ld-linux.so.2 ] && find got -name libc.so.6 | grep -q . && "
	      "printf '/vmp/bin/prog32\\0x\\0' | cmp - got/vmp/command");
	shell("mkdir -p s/sub && cp prog32 s/sub/ && cp static32 s/name");
	snprintf(line, sizeof line, "vmp run --share %s -- sub/prog32", at("s"));
	CU_ASSERT_EQUAL(archive_of(line, &p), 0);
	shell("cmp prog32 got/share/sub/prog32 && [ ! -e got/vmp/bin ] && printf 'sub/prog32\\0' | cmp - got/vmp/command && "
	      "printf '/share\\0' | cmp - got/vmp/cwd");
	snprintf(line, sizeof line, "vmp run --share %s -- name", at("s"));
	CU_ASSERT_EQUAL(archive_of(line, &p), 0);
	shell("printf '/share/name\\0' | cmp - got/vmp/command && [ -e got/lib/ld-linux.so.2 ]");
}

static void commands_are_refused(void)
{
	static const struct { const char *file, *why; } cells[] = {
		{ "prog64", "gcc -m32" }, { "text", "not executable" }, { "other", "not executable" }, { "nonesuch", "no such command" },
		{ "tree", "is a folder" }, { "script", "needs /bin/sh" },
	};
	struct problem p;
	char line[512];

	shell("chmod +x script");
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		snprintf(line, sizeof line, "vmp run -- %s", at(cells[i].file));
		CU_ASSERT_EQUAL(archive_of(line, &p), -1);
		if (!strstr(p.line, cells[i].why))
			printf("\n    %s: %s\n", cells[i].file, p.line);
		CU_ASSERT(strstr(p.line, cells[i].why) != NULL);
	}
	CU_ASSERT_EQUAL(archive_of("vmp run -- nonesuch", &p), -1);
	shell("truncate -s 13M s/large");
	snprintf(line, sizeof line, "vmp run --mem 48M --share %s -- ls", at("s"));
	CU_ASSERT_EQUAL(archive_of(line, &p), -1);
	CU_ASSERT(strstr(p.line, "quarter") != NULL);
	shell("rm s/large");
}

/* ---- checks ---- */

static void checksums(void)
{
	struct problem p;

	shell("mkdir -p k && echo kernel >k/vmlinux && cd k && sha256sum vmlinux >SHA256SUMS && ln -sf k/vmlinux ../link");
	CU_ASSERT_EQUAL(check_checksum(at("k/vmlinux"), &p), 0);
	CU_ASSERT_EQUAL(check_checksum(at("link"), &p), 0);
	shell("cd k && sha256sum -b ./vmlinux >SHA256SUMS");
	CU_ASSERT_EQUAL(check_checksum(at("k/vmlinux"), &p), 0);
	shell("echo more >>k/vmlinux");
	CU_ASSERT_EQUAL(check_checksum(at("k/vmlinux"), &p), -1);
	CU_ASSERT(strstr(p.line, "damaged") != NULL);
	shell("echo 12 vmlinux >k/SHA256SUMS");
	CU_ASSERT_EQUAL(check_checksum(at("k/vmlinux"), &p), -1);
	shell("rm k/SHA256SUMS");
	CU_ASSERT_EQUAL(check_checksum(at("k/vmlinux"), &p), -1);
	CU_ASSERT_EQUAL(check_checksum(at("k/nonesuch"), &p), -1);
}

static void disks(void)
{
	char spec[256];
	struct problem p;
	int fd;

	shell("truncate -s 4096 disk && truncate -s 100 odd && : >none");
	CU_ASSERT_EQUAL(check_disk(at("disk"), &p), 0);
	snprintf(spec, sizeof spec, "%s,snapshot", at("disk"));
	CU_ASSERT_EQUAL(check_disk(spec, &p), 0);
	CU_ASSERT_EQUAL(check_disk(at("odd"), &p), -1);
	CU_ASSERT_EQUAL(check_disk(at("none"), &p), -1);
	CU_ASSERT_EQUAL(check_disk(at("nonesuch"), &p), -1);
	CU_ASSERT_EQUAL(check_disk("/dev/null", &p), -1);
	fd = open(at("disk"), O_RDONLY);
	flock(fd, LOCK_SH);
	CU_ASSERT_EQUAL(check_disk(spec, &p), 0); /* readers share */
	CU_ASSERT_EQUAL(check_disk(at("disk"), &p), -1);
	close(fd);
}

static struct hostmem memory;

static uint64_t memory_mib(const char *folder)
{
	hostmem_look(&memory, at(folder));
	return memory.mib;
}

static void memory_limits(void)
{
	shell("mkdir -p h/proc/self h/sys/fs/cgroup/a/b h/sys/fs/cgroup/memory/v1 && "
	      "printf 'MemTotal: 9 kB\\nMemAvailable:    1048576 kB\\n' >h/proc/meminfo && echo 0::/a/b >h/proc/self/cgroup");
	CU_ASSERT_EQUAL(memory_mib("h"), 1024);
	shell("cd h/sys/fs/cgroup && echo max >a/b/memory.max && echo 0 >a/b/memory.current && echo 536870912 >a/memory.max && "
	      "echo 104857600 >a/memory.current");
	CU_ASSERT_EQUAL(memory_mib("h"), 412);
	CU_ASSERT(strstr(hostmem_name(&memory), "cgroup") != NULL);
	shell("echo 4:memory:/v1 >h/proc/self/cgroup && cd h/sys/fs/cgroup/memory && "
	      "echo 9223372036854771712 >memory.limit_in_bytes && echo 1 >memory.usage_in_bytes && "
	      "echo 104857600 >v1/memory.limit_in_bytes && echo 52428800 >v1/memory.usage_in_bytes");
	CU_ASSERT_EQUAL(memory_mib("h"), 50);
	shell("echo 209715200 >h/sys/fs/cgroup/memory/v1/memory.usage_in_bytes");
	CU_ASSERT_EQUAL(memory_mib("h"), 0);
	CU_ASSERT_EQUAL(memory_mib("nonesuch"), UINT64_MAX);
}

/* ---- page heat ---- */

static void heat_is_added_up(void)
{
	static const struct page_heat first[] = { { 5, 1 }, { 7, 10 } }, second[] = { { 5, 20 }, { 3, 10 } };
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
		{ 0xc1000010, 0x100, "call_it", false }, { 0xc1002800, 0x10, "a_table", true }, { 0xc1002810, 0x10, "deep", false },
	};
	static const char text[] = "cpu 0 level 0\neip c1002814 -> 01002814 kernel\nstack c1000020 00000007 c1002804\n"
				   "stack c1000020 c1002811\n";
	struct symbols symbols = { table, ARRAY_LEN(table) };
	char *printed;
	size_t bytes;
	FILE *out = open_memstream(&printed, &bytes);

	dump_print(out, text, &symbols);
	fclose(out);
	CU_ASSERT_STRING_EQUAL(printed, "cpu 0 level 0\neip c1002814 -> 01002814 kernel deep+0x4\nstack c1000020 00000007 c1002804\n"
					"  c1000020 call_it+0x10\nstack c1000020 c1002811\n  c1002811 deep+0x1\n");
	free(printed);
}

static void symbols_are_found(void)
{
	static struct symbol table[] = {
		{ 0xc1000000, 0, "_stext", false }, { 0xc1000010, 0x2000, "long_one", false }, { 0xc1002800, 0x10, "a", false },
		{ 0xc1002810, 0x10, "b", false }, { 0xc1002820, 0x10, "c", false }, { 0xc1002830, 0x10, "d", false },
	};
	struct symbols symbols = { table, ARRAY_LEN(table) }, loaded;
	char text[128];

	symbols_describe(&symbols, 0xc1001000, 0x1000, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "long_one+0xff0");
	symbols_name(&symbols, 0xc1002810, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "b+0x0");
	symbols_name(&symbols, 0xc1002840, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "");
	symbols_name(&symbols, 0xffffffff, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "");
	symbols_describe(&symbols, 0xc1002000, 0x1000, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "long_one+0x1ff0, a, b, ...");
	symbols_describe(&symbols, 0xc1004000, 0x1000, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "");
	CU_ASSERT_EQUAL(symbols_load(&loaded, at("static32")), 0);
	CU_ASSERT(loaded.n > 500);
	symbols_free(&loaded);
	CU_ASSERT(symbols_load(&loaded, at("nonesuch")) != 0);
	symbols_describe(&loaded, 0xc1000000, 0x1000, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "");
}

/* ---- what the nodes counted ---- */

struct stats_part { struct msg_stats head; struct node_stats node; struct cpu_stats cpu[2]; };

static void reports_are_put_together(void)
{
	static struct report report;
	struct options o = { .machine = { .hosts = 2, .cpus = 3, .mem_mib = 64 }, .stats = at("stats.json") };
	struct stats_part part = { .node = { .node = 0, .parts = 2, .part = 1, .cpus_in_part = 1, .user_monotonic_ns = 3000000,
					     .page_requests = 5 } };
	const size_t one_cpu = offsetof(struct stats_part, cpu[1]);
	struct { struct msg_pages head; struct page_heat heat[2]; } pages = { { 0, 0 }, { { 7, 3 }, { 9, 1 } } };
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
	part.node = (struct node_stats){ .node = 1, .parts = 1, .cpus_in_part = 2, .page_requests = 7 };
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
	shell("yes old | head -n 10000 >stats.json");
	CU_ASSERT_EQUAL(report_open(&report, &o, &p), 0);
	shell("grep -q old stats.json"); /* until there is something to write */
	report_write(&report, &o, 1000000, 0);
	shell("! grep -q old stats.json && tail -n 1 stats.json | grep -qx }");
	shell("tr -d '\n' <stats.json >line && grep -q '\"boot_ms\": 2.000' line && grep -q 'total\": {\"page_requests\": 12' line");
	shell("grep -q '\"address\": \"0x00007000\", \"fetches\": 6' line && grep -o '\"cpu\": ' line | wc -l | grep -qx 3");
	report_free(&report);
}

static int clean(void)
{
	char command[64];

	snprintf(command, sizeof command, "rm -rf %s", work);
	return system(command);
}

int main(void)
{
	static const struct { const char *name; void (*test)(void); } tests[] = {
#define T(name) { #name, name }
		T(hosts_to_come_and_go),
		T(good_lines), T(other_options_are_kept), T(processors_to_move), T(snapshots), T(loads), T(disk_specs), T(every_help_fits_and_is_whole), T(escapes),
		T(cpio_reads_what_we_write), T(what_cannot_be_copied_is_counted),
		T(a_tree_is_counted_up_to_a_limit), T(a_full_disk_is_an_error),
		T(an_image_is_read_back), T(files_are_told_apart), T(interpreters), T(libraries_are_found_recursively), T(the_loaders_cache),
		T(a_missing_loader_names_its_package), T(commands_reach_the_guest), T(commands_are_refused), T(checksums),
		T(disks), T(memory_limits), T(heat_is_added_up), T(symbols_are_found), T(dump_is_named),
		T(reports_are_put_together),
#undef T
	};
	CU_pSuite suite;

	if (!mkdtemp(work))
		return 1;
	unsetenv("LD_LIBRARY_PATH");
	CU_initialize_registry();
	suite = CU_add_suite("vmp_cli", NULL, clean);
	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		CU_add_test(suite, tests[i].name, tests[i].test);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	return CU_get_number_of_failures() || CU_get_error();
}
