/* vmp_cli.c - tests of what the command prepares for the guest: the image, a program and its
 * libraries; and of its checks before the start. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/limits.h"
#include "tests/unit/unit.h"
#include "vmm/cli/run/checks.h"
#include "vmm/shared/hostmem.h"
#include "tests/unit/options_line.h"
#include "tests/unit/work_folder.h"
#include "base/mechanisms.h"
#include "vmm/cli/guest/elfdeps.h"
#include "vmm/cli/guest/ldcache.h"
#include "vmm/cli/guest/libgomp.h"
#include "vmm/cli/guest/guestprog.h"
#include "vmm/cli/guest/guest_image.h"
#include "vmm/cli/guest/initramfs.h"
#include "vmm/cli/image/rootdisk.h"
#include "vmm/cli/options.h"

/* ---- the image ---- */

static void an_image_is_read_back(void)
{
	struct image image;
	struct problem p;
	char found[64];

	shell("mkdir -p root/bin root/usr/sbin && touch root/bin/ls root/usr/sbin/who && cd root "
	      "&& "
	      "find . | cpio --quiet -o -H newc | gzip >../image.gz");
	CU_ASSERT_EQUAL_FATAL(image_load(&image, at("image.gz"), &p), 0);
	CU_ASSERT(image_has(&image, "/bin/ls") && !image_has(&image, "/bin/l"));
	CU_ASSERT_STRING_EQUAL(image_find_command(&image, "who", found, sizeof found),
			       "/usr/sbin/who");
	CU_ASSERT_PTR_NULL(image_find_command(&image, "nonesuch", found, sizeof found));
	image_free(&image);
	shell("head -c 90 image.gz >cut.gz; echo junk >junk.gz");
	CU_ASSERT_EQUAL(image_load(&image, at("cut.gz"), &p), -1);
	CU_ASSERT_EQUAL(image_load(&image, at("junk.gz"), &p), -1);
	CU_ASSERT(strstr(p.line, "no whole cpio archive") != NULL);
	CU_ASSERT_EQUAL(image_load(&image, at("nonesuch"), &p), -1);
}

/* ---- what a program needs ---- */

static void files_are_told_apart(void)
{
	struct problem p;

	shell("echo 'int main(void) { return 0; }' >m.c && gcc -m32 -o prog32 m.c && gcc -m32 "
	      "-static -o static32 m.c && "
	      "gcc -o prog64 m.c && printf '#!/bin/sh -e \\necho\\n' >script && echo text >text && "
	      ": >empty && "
	      "head -c 18 prog32 >short && printf '\\177ELF\\001\\002\\001' >other && head -c 40 "
	      "/dev/zero >>other");
	CU_ASSERT_EQUAL(elfdeps_file_kind(at("prog32"), &p), FILE_ELF32);
	CU_ASSERT_EQUAL(elfdeps_file_kind(at("prog64"), &p), FILE_ELF64);
	CU_ASSERT_EQUAL(elfdeps_file_kind(at("script"), &p), FILE_SCRIPT);
	CU_ASSERT_EQUAL(elfdeps_file_kind(at("text"), &p), FILE_OTHER);
	CU_ASSERT_EQUAL(elfdeps_file_kind(at("empty"), &p), FILE_OTHER);
	CU_ASSERT_EQUAL(elfdeps_file_kind(at("short"), &p), FILE_OTHER);
	CU_ASSERT_EQUAL(elfdeps_file_kind(at("other"), &p), FILE_ELF_OTHER);
	CU_ASSERT_EQUAL(elfdeps_file_kind(at("nonesuch"), &p), -1);
	CU_ASSERT_EQUAL(elfdeps_file_kind(work, &p), -1);
}

static void interpreters(void)
{
	static const struct { const char *line, *interpreter, *argument;
	} cells[] = {
		{ "#!/bin/sh", "/bin/sh", "" },
		{ "#! /bin/sh -e ", "/bin/sh", "-e" },
		{ "#!/usr/bin/env  python3 -u", "/usr/bin/env", "python3 -u" },
		{ "#!", NULL, NULL },
		{ "echo", NULL, NULL },
	};
	char interpreter[64], argument[64];
	struct problem p;

	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		shell("echo '%s' >line", cells[i].line);
		if (cells[i].interpreter) {
			CU_ASSERT_EQUAL(elfdeps_script_interpreter(at("line"), interpreter,
								   argument, 64, &p),
					0);
			CU_ASSERT_STRING_EQUAL(interpreter, cells[i].interpreter);
			CU_ASSERT_STRING_EQUAL(argument, cells[i].argument);
		} else {
			CU_ASSERT_EQUAL(elfdeps_script_interpreter(at("line"), interpreter,
								   argument, 64, &p),
					-1);
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

	/* prog needs libone by RUNPATH $ORIGIN/l, libone needs libtwo by its own RUNPATH, both need
	 * libc. */
	shell("mkdir -p l && echo 'int two(void) { return 2; }' >two.c && gcc -m32 -shared -fPIC "
	      "-o l/libtwo.so two.c && "
	      "echo 'int two(void); int one(void) { return two(); }' >one.c && "
	      "gcc -m32 -shared -fPIC -Wl,-rpath,'$ORIGIN' -o l/libone.so one.c -Ll -ltwo && "
	      "echo 'int one(void); int main(void) { return one(); }' >p.c && "
	      "gcc -m32 -Wl,-rpath,'$ORIGIN/l' -o needs p.c -Ll -lone -Wl,-rpath-link,l");
	memset(&deps, 0, sizeof deps);
	CU_ASSERT_EQUAL(elfdeps_add(&deps, at("needs"), "", &p), 0);
	CU_ASSERT_STRING_EQUAL(deps.loader, "/lib/ld-linux.so.2");
	CU_ASSERT(has_library(&deps, "libone.so") && has_library(&deps, "libtwo.so") &&
		  has_library(&deps, "libc.so.6"));
	elfdeps_add_optional(&deps, "libgcc_s.so.1", "");
	elfdeps_add_optional(&deps, "libnonesuch.so.1", "");
	CU_ASSERT(has_library(&deps, "libgcc_s.so.1") && !has_library(&deps, "libnonesuch.so.1"));
	CU_ASSERT_EQUAL(*elfdeps_folder(&deps, folder, sizeof folder), '/');
	/* a 64-bit file of the right name is skipped; then the library is missing, and named */
	shell("echo 'int two(void) { return 2; }' >two.c && gcc -shared -fPIC -o l/libtwo.so "
	      "two.c");
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
	static const char *const ascending[] = { "ld.so",    "lib.so",	   "liba.so",	 "lib2.so",
						 "lib10.so", "lib10.so.1", "lib10.so.12" };
	static struct elfdeps deps;
	static uint8_t cache[LDCACHE_BYTES];
	char listed[1024];
	size_t n;
	FILE *f;

	for (unsigned i = 0; i < ARRAY_LEN(ascending); i++) {
		for (unsigned k = 0; k < ARRAY_LEN(ascending); k++)
			CU_ASSERT_EQUAL((ldcache_compare(ascending[i], ascending[k]) > 0) -
						(ldcache_compare(ascending[i], ascending[k]) < 0),
					(i > k) - (i < k));
		snprintf(deps.library[(i * 3) % ARRAY_LEN(ascending)].name, MAX_LIBRARY_NAME, "%s",
			 ascending[i]);
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
				       "lib10.so.1 (libc6) => /lib32/lib10.so.1"
				       "lib10.so (libc6) => /lib32/lib10.so"
				       "lib2.so (libc6) => /lib32/lib2.so"
				       "liba.so (libc6) => /lib32/liba.so"
				       "lib.so (libc6) => /lib32/lib.so"
				       "ld.so (libc6) => /lib32/ld.so");
}

/* The first reason that holds counts; all cells. */
static void who_gets_which_libgomp(void)
{
	const uint32_t off = 1u << MECHANISM_GOMP;
	const char *system = "/usr/lib32/libgomp.so.1", *own = "/home/me/libgomp.so.1";
	const struct { struct libgomp_facts facts; enum libgomp_reason reason;
	} cells[] = {
		{ { 2, 0, system, true, true }, LIBGOMP_OURS },
		{ { 2, ~off, "/lib/i386-linux-gnu/libgomp.so.1", true, true }, LIBGOMP_OURS },
		{ { 2, 0, system, true, false }, LIBGOMP_OLDER },
		{ { 2, 0, system, false, false }, LIBGOMP_ABSENT },
		{ { 2, 0, own, true, true }, LIBGOMP_PRIVATE },
		{ { 2, 0, own, false, false }, LIBGOMP_PRIVATE },
		{ { 2, off, system, true, true }, LIBGOMP_OFF },
		{ { 2, off, own, false, false }, LIBGOMP_OFF },
		{ { 1, 0, system, true, true }, LIBGOMP_ONE_HOST },
		{ { 0, off, own, false, false }, LIBGOMP_ONE_HOST },
	};

	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		CU_ASSERT_EQUAL(libgomp_decide(&cells[i].facts), cells[i].reason);
		CU_ASSERT_EQUAL(libgomp_is_ours(cells[i].reason),
				cells[i].reason == LIBGOMP_OURS);
	}
}

static void libraries_define_versions(void)
{
	shell("echo 'void f(void); void f(void) {}' >v.c && echo 'V_1 { global: f; };' >v1 && "
	      "echo 'V_1 { global: f; }; V_2 { };' >v2 && for v in 1 2; do gcc -m32 -shared "
	      "-fPIC -Wl,--version-script=v$v -o libv$v.so v.c; done && echo text >libv3.so && "
	      "gcc -m32 -shared -fPIC -o libv0.so v.c");
	CU_ASSERT(elfdeps_defines_all(at("libv2.so"), at("libv1.so")));
	CU_ASSERT(elfdeps_defines_all(at("libv1.so"), at("libv1.so")));
	CU_ASSERT(!elfdeps_defines_all(at("libv1.so"), at("libv2.so")));
	CU_ASSERT(elfdeps_defines_all(at("libv1.so"), at("libv0.so")));
	/* what is no library defines nothing */
	CU_ASSERT(!elfdeps_defines_all(at("libv3.so"), at("libv1.so")));
	CU_ASSERT(!elfdeps_defines_all(at("libnone.so"), at("libv1.so")));
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

	CU_ASSERT_EQUAL_FATAL(parse_line(&o, line), 0);
	CU_ASSERT_EQUAL_FATAL(image_load(&image, at("image.gz"), p), 0);
	fd = guestprog_archive(&o, &image, p);
	image_free(&image);
	if (fd < 0)
		return -1;
	shell("rm -rf got && mkdir got && cd got && cpio --quiet -id </proc/%d/fd/%d", getpid(),
	      fd);
	close(fd);
	return 0;
}

static void commands_reach_the_guest(void)
{
	char line[512];
	struct problem p;

	CU_ASSERT_EQUAL(archive_of("vmp run --env A=b -- ls -l", &p), 0);
	shell("printf 'ls\\0-l\\0' | cmp - got/vmp/command && tr '\\0' '\\n' <got/vmp/environ | "
	      "grep -qx A=b");
	CU_ASSERT_EQUAL(archive_of("vmp run", &p), 0);
	shell("[ ! -e got/vmp/command ] && [ -e got/vmp/cwd ]");
	snprintf(line, sizeof line, "vmp run -- %s x", at("prog32"));
	CU_ASSERT_EQUAL(archive_of(line, &p), 0);
	shell("cmp prog32 got/vmp/bin/prog32 && [ -e got/lib/ld-linux.so.2 ] && find got -name "
	      "libc.so.6 | grep -q . && "
	      "printf '/vmp/bin/prog32\\0x\\0' | cmp - got/vmp/command");
	shell("mkdir -p s/sub && cp prog32 s/sub/ && cp static32 s/name");
	snprintf(line, sizeof line, "vmp run --share %s -- sub/prog32", at("s"));
	CU_ASSERT_EQUAL(archive_of(line, &p), 0);
	shell("cmp prog32 got/share/sub/prog32 && [ ! -e got/vmp/bin ] && printf 'sub/prog32\\0' | "
	      "cmp - got/vmp/command && "
	      "printf '/share\\0' | cmp - got/vmp/cwd");
	snprintf(line, sizeof line, "vmp run --share %s -- name", at("s"));
	CU_ASSERT_EQUAL(archive_of(line, &p), 0);
	shell("printf '/share/name\\0' | cmp - got/vmp/command && [ -e got/lib/ld-linux.so.2 ]");
}

/* A file of 1 MiB with no more of a file system than its magic number and its name. */
static void make_image(const char *name, const char *label)
{
	static const uint8_t magic[] = { 0x53, 0xef };
	int fd = open(at(name), O_RDWR | O_CREAT | O_TRUNC, 0600);

	CU_ASSERT_FATAL(fd >= 0 && !ftruncate(fd, 1 << 20));
	CU_ASSERT_EQUAL(pwrite(fd, magic, sizeof magic, SUPERBLOCK_AT + 56), 2);
	CU_ASSERT_EQUAL(pwrite(fd, label, strlen(label), SUPERBLOCK_AT + 120),
			(ssize_t)strlen(label));
	close(fd);
}

static void a_disk_is_the_root(void)
{
	static const struct {
		const char *line; /* %s: the folder */
		const char *device, *net;
		bool read_only;
	} cells[] = {
		{ "vmp run --root %1$s/ext -- x", "/dev/vda", NULL, false },
		{ "vmp run --root %1$s/ext,ro", "/dev/vda", "user", true },
		{ "vmp up --root %1$s/ext,snapshot --net none", "/dev/vda", "none", false },
		{ "vmp run --root %1$s/ext --disk %1$s/a --disk %1$s/b", "/dev/vdc", "user",
		  false },
		{ "vmp run --root %1$s/ext --disk %1$s/a,ide", "/dev/vda", "user", false },
		{ "vmp up --disk %1$s/ours", "/dev/vda", "user", false },
		{ "vmp up --disk %1$s/a,ide --disk %1$s/ours,ro", "/dev/vda", "user", true },
		{ "vmp up --disk %1$s/ext --disk %1$s/ours", "", NULL, false },
		{ "vmp run --disk %1$s/ours -- x", "", NULL, false },
		{ "vmp up", "", NULL, false },
	};
	struct options o;
	struct problem p;
	char line[512];

	make_image("ext", "");
	make_image("ours", ROOT_LABEL);
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		snprintf(line, sizeof line, cells[i].line, work);
		CU_ASSERT_EQUAL_FATAL(parse_line(&o, line), 0);
		CU_ASSERT_EQUAL(rootdisk_choose(&o, &p), 0);
		CU_ASSERT_STRING_EQUAL(o.root_device, cells[i].device);
		CU_ASSERT_EQUAL(o.root_read_only, cells[i].read_only);
		CU_ASSERT_STRING_EQUAL(o.machine.net ? o.machine.net : "",
				       cells[i].net ? cells[i].net : "");
	}
	snprintf(line, sizeof line,
		 "vmp up --root %1$s/ext --disk a --disk b --disk c --disk d", work);
	CU_ASSERT_EQUAL_FATAL(parse_line(&o, line), 0);
	CU_ASSERT_EQUAL(rootdisk_choose(&o, &p), -1);
	CU_ASSERT(strstr(p.line, "one more disk") != NULL);
}

/* What the guest's init reads; the root's programs and users are not looked for here. */
static void the_root_reaches_the_guest(void)
{
	struct options o;
	struct image image;
	struct problem p;
	char line[512];
	int fd;

	snprintf(line, sizeof line, "vmp run --user someone --root %s/ext,ro -- nonesuch x", work);
	CU_ASSERT_EQUAL_FATAL(parse_line(&o, line), 0);
	CU_ASSERT_EQUAL_FATAL(rootdisk_choose(&o, &p), 0);
	CU_ASSERT_EQUAL_FATAL(image_load(&image, at("image.gz"), &p), 0);
	fd = guestprog_archive(&o, &image, &p);
	image_free(&image);
	CU_ASSERT_FATAL(fd >= 0);
	shell("rm -rf got && mkdir got && cd got && cpio --quiet -id </proc/%d/fd/%d && "
	      "printf '/dev/vda\\0ro\\0command\\0' | cmp - vmp/root && "
	      "printf 'nonesuch\\0x\\0' | cmp - vmp/command", getpid(), fd);
	close(fd);
}

static void commands_are_refused(void)
{
	static const struct { const char *file, *why;
	} cells[] = {
		{ "prog64", "gcc -m32" },      { "text", "not executable" },
		{ "other", "not executable" }, { "nonesuch", "no such command" },
		{ "tree", "is a folder" },     { "script", "needs /bin/sh" },
	};
	struct problem p;
	char line[512];

	shell("chmod +x script && mkdir tree");
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

	shell("mkdir -p k && echo kernel >k/vmlinux && cd k && sha256sum vmlinux >SHA256SUMS && ln "
	      "-sf k/vmlinux ../link");
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
	      "printf 'MemTotal: 9 kB\\nMemAvailable:    1048576 kB\\n' >h/proc/meminfo && echo "
	      "0::/a/b >h/proc/self/cgroup");
	CU_ASSERT_EQUAL(memory_mib("h"), 1024);
	shell("cd h/sys/fs/cgroup && echo max >a/b/memory.max && echo 0 >a/b/memory.current && "
	      "echo 536870912 >a/memory.max && "
	      "echo 104857600 >a/memory.current");
	CU_ASSERT_EQUAL(memory_mib("h"), 412);
	CU_ASSERT(strstr(hostmem_name(&memory), "cgroup") != NULL);
	shell("echo 4:memory:/v1 >h/proc/self/cgroup && cd h/sys/fs/cgroup/memory && "
	      "echo 9223372036854771712 >memory.limit_in_bytes && echo 1 >memory.usage_in_bytes && "
	      "echo 104857600 >v1/memory.limit_in_bytes && echo 52428800 "
	      ">v1/memory.usage_in_bytes");
	CU_ASSERT_EQUAL(memory_mib("h"), 50);
	shell("echo 209715200 >h/sys/fs/cgroup/memory/v1/memory.usage_in_bytes");
	CU_ASSERT_EQUAL(memory_mib("h"), 0);
	CU_ASSERT_EQUAL(memory_mib("nonesuch"), UINT64_MAX);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(an_image_is_read_back),
		UNIT_TEST(files_are_told_apart),
		UNIT_TEST(interpreters),
		UNIT_TEST(libraries_are_found_recursively),
		UNIT_TEST(the_loaders_cache),
		UNIT_TEST(who_gets_which_libgomp),
		UNIT_TEST(libraries_define_versions),
		UNIT_TEST(a_missing_loader_names_its_package),
		UNIT_TEST(commands_reach_the_guest),
		UNIT_TEST(a_disk_is_the_root),
		UNIT_TEST(the_root_reaches_the_guest),
		UNIT_TEST(commands_are_refused),
		UNIT_TEST(checksums),
		UNIT_TEST(disks),
		UNIT_TEST(memory_limits),
		UNIT_END
	};
	int status;

	if (work_folder_make())
		return 1;
	unsetenv("LD_LIBRARY_PATH");
	status = UNIT_RUN("vmp_cli", tests);
	return work_folder_remove() || status;
}
