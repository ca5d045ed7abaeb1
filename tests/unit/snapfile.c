/* snapfile.c - the file of a saved machine (vmm/cli/snapshot/snapfile.c) and what must be in it
 * (vmm/cli/snapshot/saved.c): what was written can be read; files that are cut, damaged, foreign or
 * prolonged are refused with a line; a file is complete or not there.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include "tests/unit/unit.h"
#include "vmm/cli/snapshot/saved.h"
#include "vmm/cli/snapshot/snapfile.h"

enum { CPUS = 2, PAGES = 40 };

static char folder[] = "/tmp/vmp-snapfile-XXXXXX", path[64];
static uint8_t data[MAX_MSG_PAYLOAD], whole[1 << 20];
static struct problem p;

static uint32_t random_state = 1;
static uint8_t random_byte(void)
{
	random_state = random_state * 1103515245 + 12345;
	return random_state >> 16;
}

static const struct snapshot_machine machine = { .machine = "hosts 1\ncpus 2\nmem 64M\n",
						 .clock_ns = 5 };

/* Returns the records of a small machine, in order; false at the end. */
static bool make_record(unsigned n, struct snapfile_record *record)
{
	*record = (struct snapfile_record){ 0 };
	if (n == 0) {
		record->bytes = saved_describe(&machine, "pci=off loglevel=3",
					       "/k", data);
		record->kind = SNAPSHOT_MACHINE;
		return true;
	}
	record->bytes = n <= CPUS + 1 ? 700 : PAGE_BYTES;
	record->kind = n <= CPUS ? SNAPSHOT_CPU : n == CPUS + 1 ? SNAPSHOT_CHIP : SNAPSHOT_PAGE;
	record->index = n <= CPUS ? n - 1 : n == CPUS + 1 ? 0 : n * 3;
	random_state = n;
	for (unsigned i = 0; i < record->bytes; i++)
		data[i] = random_byte();
	return n < 2 + CPUS + PAGES;
}

static int write_file(void)
{
	struct snapfile_writer *w = snapfile_create(path, &p);
	struct snapfile_record record;
	int result = w ? 0 : -1;

	for (unsigned n = 0; !result && make_record(n, &record); n++)
		result = snapfile_write(w, &record, data, &p);
	if (!result)
		return snapfile_commit(w, &p);
	snapfile_abandon(w);
	return -1;
}

enum { OTHER_RECORD = -2 };

/* Returns 0 for a complete machine; -1 with a reason.  A damaged record may be returned before the
 * checksum behind it is checked. */
static int read_file(void)
{
	static uint8_t got[MAX_MSG_PAYLOAD];
	struct snapfile_reader *r = snapfile_open(path, &p);
	struct snapfile_record record, expected;
	struct saved_machine saved = { 0 };
	unsigned n = 0;
	int result = r ? 1 : -1;

	while (result == 1 && (result = snapfile_read(r, &record, got, &p)) == 1) {
		bool more = make_record(n++, &expected);

		if (!more || memcmp(&record, &expected, sizeof record) ||
		    memcmp(got, data, record.bytes) || saved_add(&saved, &record, got, &p))
			result = OTHER_RECORD;
	}
	if (!result)
		result = saved_complete(&saved, &p);
	saved_free(&saved);
	snapfile_close(r);
	return result;
}

static size_t load_whole(void)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, whole, sizeof whole);

	close(fd);
	return n > 0 ? n : 0;
}

static void store(size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CU_ASSERT(write(fd, whole, bytes) == (ssize_t)bytes);
	close(fd);
}

static unsigned files(void)
{
	DIR *dir = opendir(folder);
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void refused(const char *word)
{
	p.line[0] = 0;
	CU_ASSERT_EQUAL(read_file(), -1);
	CU_ASSERT(strstr(p.line, word) != NULL);
}

static void round_trip(void)
{
	CU_ASSERT_EQUAL(write_file(), 0);
	CU_ASSERT_EQUAL(read_file(), 0);
	CU_ASSERT_EQUAL(write_file(), 0); /* over itself */
	CU_ASSERT_EQUAL(read_file(), 0);
	CU_ASSERT_EQUAL(files(), 1);
}

/* The file holds the guest's memory: nobody else may read it, whatever the umask allows, even if it
 * replaces an older file. */
static void nobody_else_reads_it(void)
{
	mode_t before = umask(0);
	struct stat st;

	CU_ASSERT_EQUAL(write_file(), 0);
	CU_ASSERT(!stat(path, &st) && (st.st_mode & 07777) == 0600);
	chmod(path, 0644);
	CU_ASSERT_EQUAL(write_file(), 0);
	CU_ASSERT(!stat(path, &st) && (st.st_mode & 07777) == 0600);
	umask(before);
}

static void cut_anywhere(void)
{
	size_t bytes;

	CU_ASSERT_EQUAL(write_file(), 0);
	bytes = load_whole();
	for (size_t cut = 0; cut < bytes; cut += cut < 64 || bytes - cut < 80 ? 1 : 397) {
		store(cut);
		refused(cut < 8 ? "not a snapshot" : "cut short");
	}
}

static void damaged_anywhere(void)
{
	size_t bytes;

	CU_ASSERT_EQUAL(write_file(), 0);
	bytes = load_whole();
	for (size_t at = 0; at < bytes; at += at < 64 || bytes - at < 80 ? 1 : 211) {
		whole[at] ^= 0x10;
		store(bytes);
		CU_ASSERT_NOT_EQUAL(read_file(), 0);
		whole[at] ^= 0x10;
	}
	memcpy(whole + bytes, "more", 4);
	store(bytes + 4);
	refused("behind its end");
}

static void foreign(void)
{
	strcpy((char *)whole, "#!/bin/sh\necho hello, I am somebody else\n");
	store(42);
	refused("not a snapshot");
	unlink(path);
	refused("No such file");
}

/* The sum of the head is right, as a vmp of another version has written it. */
static void of_another_version(void)
{
	size_t bytes;
	uint32_t sum;

	for (uint32_t version = 0; version < 2 * SNAPFILE_VERSION; version++) {
		CU_ASSERT_EQUAL(write_file(), 0);
		bytes = load_whole();
		memcpy(whole + 8, &version, sizeof version);
		sum = crc32(0, whole, 12);
		memcpy(whole + 12, &sum, sizeof sum);
		store(bytes);
		if (version == SNAPFILE_VERSION) {
			CU_ASSERT_EQUAL(read_file(), 0);
			continue;
		}
		refused("of another version of vmp (format");
		CU_ASSERT_PTR_NULL(strchr(p.line, '\n'));
	}
}

static void abandoned_leaves_nothing(void)
{
	struct snapfile_record record;
	struct snapfile_writer *w;

	unlink(path);
	w = snapfile_create(path, &p);
	make_record(0, &record);
	CU_ASSERT_EQUAL(snapfile_write(w, &record, data, &p), 0);
	snapfile_abandon(w);
	CU_ASSERT_EQUAL(files(), 0);
}

/* In a child process, since limits cannot be raised again.  A limit on file sizes acts like a full
 * disk. */
static void full_disk_leaves_the_old_file(void)
{
	const struct rlimit limit = { 20000, 20000 };
	int status;
	pid_t pid;

	CU_ASSERT_EQUAL(write_file(), 0);
	pid = fork();
	if (!pid) {
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(write_file() == -1 && strstr(p.line, "File too large") ? 0 : 1);
	}
	CU_ASSERT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CU_ASSERT_EQUAL(files(), 1);
	CU_ASSERT_EQUAL(read_file(), 0);
}

/* A writer that was killed leaves a file.  The next writer of the same name removes it, and nothing
 * else. */
static void what_is_left_goes(void)
{
	static const struct {
		const char *name;
		enum { SNAPSHOT, LOCKED, TEXT, EMPTY, LINK, FOLDER } is;
		bool stays;
	} rows[] = {
		{ "machine.vmp-000001", SNAPSHOT, false },
		{ "machine.vmp-999999", SNAPSHOT, false },
		{ "machine.vmp-000002", LOCKED, true },
		{ "machine.vmp-000003", TEXT, true },
		{ "machine.vmp-000004", EMPTY, true },
		{ "machine.vmp-000005", LINK, true },
		{ "machine.vmp-000006", FOLDER, true },
		{ "machine.vmp-12345", SNAPSHOT, true },
		{ "machine.vmp-1234567", SNAPSHOT, true },
		{ "machine.vmp--12345", SNAPSHOT, true },
		{ "machine.vmp-backup", SNAPSHOT, true },
		{ "machine.000001", SNAPSHOT, true },
		{ "machine2.vmp-000001", SNAPSHOT, true },
		{ "achine.vmp-000001", SNAPSHOT, true },
	};
	char name[128];

	CU_ASSERT_EQUAL(write_file(), 0);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		size_t bytes = rows[i].is <= LOCKED ? load_whole() : rows[i].is == TEXT ? 30 : 0;
		int fd = -1;

		snprintf(name, sizeof name, "%s/%s", folder, rows[i].name);
		if (rows[i].is != LINK && rows[i].is != FOLDER)
			fd = open(name, O_RDWR | O_CREAT, 0600);
		CU_ASSERT(rows[i].is != LINK || !symlink("machine", name));
		CU_ASSERT(rows[i].is != FOLDER || !mkdir(name, 0700));
		if (rows[i].is == TEXT)
			memset(whole, 'x', bytes);
		CU_ASSERT(!bytes || write(fd, whole, bytes) == (ssize_t)bytes);
		CU_ASSERT(rows[i].is != LOCKED || !flock(fd, LOCK_EX));
		CU_ASSERT_EQUAL(write_file(), 0);
		CU_ASSERT_EQUAL(!faccessat(AT_FDCWD, name, F_OK, AT_SYMLINK_NOFOLLOW),
				rows[i].stays);
		if (fd >= 0)
			close(fd);
		remove(name);
	}
	CU_ASSERT_EQUAL(files(), 1);
}

static void a_link_stays(void)
{
	char link[] = "/tmp/vmp-link.XXXXXX", target[64];
	struct stat st;
	struct problem p;
	struct snapfile_writer *w;

	close(mkstemp(link));
	snprintf(target, sizeof target, "%s.target", link);
	CU_ASSERT(!rename(link, target) && !symlink(target, link));
	w = snapfile_create(link, &p);
	CU_ASSERT_PTR_NOT_NULL_FATAL(w);
	CU_ASSERT_EQUAL(snapfile_commit(w, &p), 0);
	CU_ASSERT(!lstat(link, &st) && S_ISLNK(st.st_mode));
	CU_ASSERT(!stat(target, &st) && st.st_size > 0);
	unlink(link);
	unlink(target);
}

static void cannot_be_created(void)
{
	CU_ASSERT_PTR_NULL(snapfile_create("/nowhere/at/all", &p));
	CU_ASSERT(strstr(p.line, "/nowhere/at/all") != NULL);
	CU_ASSERT_PTR_NULL(snapfile_create(folder, &p));
}

/* ---- what must be in it ---- */

static int add(struct saved_machine *s, uint32_t kind, uint32_t index, uint32_t bytes)
{
	return saved_add(s, &(struct snapfile_record){ kind, index, bytes }, data, &p);
}

static void what_cannot_be_a_machine(void)
{
	static const struct { uint32_t kind, index, bytes; const char *word;
	} wrong[] = {
		{ SNAPSHOT_PAGE, 64 << 8, PAGE_BYTES, "not the machine's" },
		{ SNAPSHOT_PAGE, 1, 100, "not the machine's" },
		{ SNAPSHOT_PAGE, 7, PAGE_BYTES, "twice" },
		{ SNAPSHOT_CPU, 0, 10, "twice" },
		{ SNAPSHOT_CPU, CPUS, 10, "not the machine's" },
		{ SNAPSHOT_BLOCK, 0, PAGE_BYTES, "disk" },
		{ SNAPSHOT_DISK, 0, 5, "disk" },
		{ SNAPSHOT_MACHINE, 0, 5, "machine" },
		{ SNAPSHOT_KINDS, 0, 0, "kind" },
	};
	struct saved_machine s = { 0 };
	struct snapfile_record record;

	CU_ASSERT(add(&s, SNAPSHOT_PAGE, 0, PAGE_BYTES));
	CU_ASSERT(saved_complete(&s, &p) && strstr(p.line, "empty"));
	make_record(0, &record);
	for (uint32_t bytes = 0; bytes < record.bytes; bytes++)
		CU_ASSERT(add(&s, SNAPSHOT_MACHINE, 0, bytes));
	CU_ASSERT_EQUAL(add(&s, SNAPSHOT_MACHINE, 0, record.bytes), 0);
	CU_ASSERT_STRING_EQUAL(s.kernel, "/k");
	CU_ASSERT_FALSE(saved_is_interactive(&s));
	CU_ASSERT_EQUAL(add(&s, SNAPSHOT_PAGE, 7, PAGE_BYTES), 0);
	CU_ASSERT_EQUAL(add(&s, SNAPSHOT_CPU, 0, 10), 0);
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++)
		CU_ASSERT(add(&s, wrong[i].kind, wrong[i].index, wrong[i].bytes) &&
			  strstr(p.line, wrong[i].word));
	CU_ASSERT(saved_complete(&s, &p) && strstr(p.line, "lacks processor 1"));
	CU_ASSERT_EQUAL(add(&s, SNAPSHOT_CPU, 1, 10), 0);
	CU_ASSERT(saved_complete(&s, &p) && strstr(p.line, "devices"));
	CU_ASSERT_EQUAL(add(&s, SNAPSHOT_CHIP, 0, 10), 0);
	CU_ASSERT_EQUAL(saved_complete(&s, &p), 0);
	saved_free(&s);
}

static void disks(void)
{
	static const char *const specs[] = { "/d", "/d,ro", "/d,snapshot" };
	struct saved_machine s = { .disk = { { .bytes = 512, .path = "/d" } },
				   .command_line = "pci=conf1,noearly console=ttyS0" };
	static char all[MAX_DISKS][SAVED_DISK_BYTES];
	struct snapshot_disk *d = s.disk;
	struct machine m = { 0 };
	struct problem p;
	char spec[16];

	for (d->mode = 0; d->mode < ARRAY_LEN(specs); d->mode++)
		CU_ASSERT_STRING_EQUAL(saved_disk(d, spec, sizeof spec), specs[d->mode]);
	d->mode = d->ide = 1;
	CU_ASSERT_STRING_EQUAL(saved_disk(d, spec, sizeof spec), "/d,ro,ide");
	d->mode = d->ide = 0;
	CU_ASSERT_PTR_NULL(saved_disk(d, spec, 2));
	CU_ASSERT_TRUE(saved_is_interactive(&s));
	CU_ASSERT_EQUAL(saved_disks(&s), 1);
	s.disk[1] = s.disk[2] = *d;
	CU_ASSERT_EQUAL(saved_disks(&s), 3);
	CU_ASSERT(!saved_check_disks(&s, 0, &p) && !saved_check_disks(&s, 3, &p));
	CU_ASSERT(saved_check_disks(&s, 2, &p) && strstr(p.line, "3 disks"));
	saved_devices(&s, &m, all, "");
	CU_ASSERT(m.disk.n == 3 && m.disk.item[2] == all[2] && !m.live.n);
	saved_devices(&s, &m, all, "/l,ro");
	CU_ASSERT(m.live.n == 1 && !strcmp(m.live.item[0], "/l,ro"));
	d->bytes = 0;
	CU_ASSERT_EQUAL(saved_disks(&s), 0);
	CU_ASSERT(saved_check_disks(&s, 1, &p) && strstr(p.line, "no disk"));
}

/* A file of another user names a disk image of this user's. */
static void a_file_opens_no_disk_of_others(void)
{
	struct snapshot_disk d = { .bytes = 512, .path = "/d" };
	struct problem p;
	char spec[32];

	CU_ASSERT(saved_choose_disk(&d, NULL, true, spec, sizeof spec, &p) &&
		  strstr(p.line, "/d") && strstr(p.line, "--disk"));
	CU_ASSERT(!saved_choose_disk(&d, "new", false, spec, sizeof spec, &p) &&
		  !strcmp(spec, "new"));
	for (d.mode = 1; d.mode <= 2; d.mode++) {
		CU_ASSERT(!saved_choose_disk(&d, NULL, true, spec, sizeof spec, &p) &&
			  !strncmp(spec, "/d,", 3));
		CU_ASSERT(saved_choose_disk(&d, NULL, false, spec, sizeof spec, &p) &&
			  strstr(p.line, "others"));
		CU_ASSERT(!saved_choose_disk(&d, "new", false, spec, sizeof spec, &p) &&
			  !strncmp(spec, "new,", 4));
	}
	d.mode = 2;
	strcpy(d.path, "/\033[2Jd");
	CU_ASSERT(saved_choose_disk(&d, NULL, false, spec, sizeof spec, &p) &&
		  !strchr(p.line, 033));
	CU_ASSERT(saved_choose_disk(&d, "a path that is too long for what follows", false, spec,
				    sizeof spec, &p));
}

/* The counter must have counted what has passed on the wall clock, within a minute. */
static void live_folders(void)
{
	struct snapshot_folder folder = { .path = "/live" };
	struct saved_machine s = { .started = true };
	struct snapfile_record record = { SNAPSHOT_FOLDER, 0, sizeof folder };
	struct problem p;
	char spec[32];

	CU_ASSERT(!saved_choose_folder(&s, NULL, false, true, spec, sizeof spec, &p) && !*spec);
	CU_ASSERT(saved_choose_folder(&s, "/d", false, true, spec, sizeof spec, &p) &&
		  strstr(p.line, "no live folder"));
	CU_ASSERT(add(&s, SNAPSHOT_FILES, 0, 10) && strstr(p.line, "live folder"));
	for (unsigned i = 0; i < 5; i++) {
		folder = (struct snapshot_folder){ .read_only = i == 0 ? 2 : 0,
						   .reserved = i == 1, .path = "/live" };
		if (i == 2)
			folder.path[0] = 'x';
		if (i == 3)
			memset(folder.path, '/', sizeof folder.path);
		record.bytes = sizeof folder - (i == 4);
		CU_ASSERT(saved_add(&s, &record, &folder, &p) && !s.folder.path[0]);
	}
	record.bytes = sizeof folder;
	folder = (struct snapshot_folder){ .path = "/live\033" };
	CU_ASSERT(!saved_add(&s, &record, &folder, &p) && saved_add(&s, &record, &folder, &p));
	CU_ASSERT(add(&s, SNAPSHOT_FILES, 1, 10) && add(&s, SNAPSHOT_FILES, 0, 0));
	CU_ASSERT(saved_complete(&s, &p) && strstr(p.line, "files of its live folder"));
	CU_ASSERT(!add(&s, SNAPSHOT_FILES, 0, 10) && add(&s, SNAPSHOT_FILES, 0, 10));
	CU_ASSERT(!add(&s, SNAPSHOT_FILES, 1, 10));
	/* who may say which folder it is */
	CU_ASSERT(saved_choose_folder(&s, NULL, false, true, spec, sizeof spec, &p) &&
		  strstr(p.line, "/live?, in which the machine writes"));
	CU_ASSERT(!saved_choose_folder(&s, "/d", false, false, spec, sizeof spec, &p) &&
		  !strcmp(spec, "/d"));
	CU_ASSERT(saved_choose_folder(&s, "/d", true, true, spec, sizeof spec, &p) &&
		  strstr(p.line, "leave ,ro away"));
	s.folder.read_only = 1;
	CU_ASSERT(!saved_choose_folder(&s, NULL, false, true, spec, sizeof spec, &p) &&
		  !strcmp(spec, "/live\033,ro"));
	CU_ASSERT(saved_choose_folder(&s, NULL, false, false, spec, sizeof spec, &p) &&
		  strstr(p.line, "others"));
	CU_ASSERT(!saved_choose_folder(&s, "/d", false, false, spec, sizeof spec, &p) &&
		  !strcmp(spec, "/d,ro"));
	CU_ASSERT(saved_choose_folder(&s, "/a path that is too long for it", false, false, spec,
				      sizeof spec, &p));
}

static void counters(void)
{
	static const struct {
		uint32_t khz;
		uint64_t saved, now;
		unsigned passed_s;
		bool goes_on;
	} cases[] = {
		{ 0, 9, 0, 0, true },
		{ 1000000, 5000000000, 5000000000, 0, true },
		{ 1000000, 5000000000, 4000000000, 1, false },
		{ 1000000, 0, 3600000000000, 3600, true },
		{ 1000000, 0, 3600000000000, 60, false },
		{ 1000000, 0, 60000000000, 3600, false },
		{ 2000000, 0, 3600000000000, 3600, false },
	};
	struct saved_machine s = { 0 };

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		s.machine.tsc_khz = cases[i].khz;
		s.machine.tsc = cases[i].saved;
		CU_ASSERT_EQUAL(saved_counter_goes_on(&s, cases[i].now,
						      cases[i].passed_s * 1000000000ull),
				cases[i].goes_on);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "round trip", round_trip },
		{ "nobody else reads it", nobody_else_reads_it },
		{ "cut anywhere", cut_anywhere },
		{ "damaged anywhere", damaged_anywhere },
		{ "foreign", foreign },
		{ "of another version", of_another_version },
		{ "abandoned leaves nothing", abandoned_leaves_nothing },
		{ "full disk leaves the old file", full_disk_leaves_the_old_file },
		{ "what is left goes", what_is_left_goes },
		{ "a link stays", a_link_stays },
		{ "cannot be created", cannot_be_created },
		{ "what cannot be a machine", what_cannot_be_a_machine },
		{ "disks", disks },
		{ "a file opens no disk of others", a_file_opens_no_disk_of_others },
		{ "live folders", live_folders },
		{ "counters", counters },
		UNIT_END
	};
	int status;

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/machine", folder);
	status = UNIT_RUN("snapshot files", tests);
	unlink(path);
	rmdir(folder);
	return status;
}
