/* iosrv_undo.c - a writable disk goes back to a checkpoint: random histories against a model,
 * writers that were killed at each step, a full disk, files that are not the log.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/undofile.h"
#include "iosrv/diskimage.h"
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

enum { SECTORS = 1003, BYTES = SECTORS * 512, ROUNDS = 30, STEPS = 60 };

static char path[] = "/tmp/vmp-undo-XXXXXX", file[64], why[4500];
static struct diskimage *image;
static uint8_t disk[BYTES]; /* what the image must hold */

static void start(bool restored)
{
	image = diskimage_open(path, why, sizeof why);
	CU_ASSERT_FATAL(image != NULL);
	CU_ASSERT_EQUAL_FATAL(diskimage_keep_undo(image, restored, why, sizeof why), 0);
}

static void stop(void)
{
	diskimage_close(image);
	image = NULL;
}

static void make_image(void)
{
	int fd = open(path, O_RDWR | O_TRUNC);

	for (unsigned i = 0; i < BYTES; i++)
		disk[i] = i / 40000 % 2 ? 0 : rand();
	CU_ASSERT_FATAL(write(fd, disk, BYTES) == BYTES);
	close(fd);
	unlink(file);
}

static void check_image(void)
{
	static uint8_t is[BYTES];

	CU_ASSERT_EQUAL_FATAL(diskimage_read(image, 0, SECTORS, is), 0);
	CU_ASSERT_FATAL(!memcmp(is, disk, BYTES));
}

static void write_some(void)
{
	static uint8_t data[BYTES];
	unsigned at = rand() % SECTORS, n = 1 + rand() % (rand() % 4 ? 20 : 400);

	if (n > SECTORS - at)
		n = SECTORS - at;
	if (rand() % 5 == 0) {
		memset(data, 0, n * 512);
		CU_ASSERT_EQUAL(diskimage_zero(image, at, n, rand() % 2), 0);
	} else {
		memset(data, rand(), n * 512);
		CU_ASSERT_EQUAL(diskimage_write(image, at, n, data), 0);
	}
	memcpy(disk + at * 512, data, n * 512);
	CU_ASSERT_EQUAL(diskimage_discard(image, at, n), 0); /* content is kept */
}

static int go_back(uint64_t cut)
{
	int error = diskimage_seek(image, cut);

	if (!error)
		error = diskimage_prepare_back(image);
	return error ? error : diskimage_go_back(image);
}

/* A client keeps each checkpoint or fails to.  It goes back to the one that it kept last. */
static void random_histories(void)
{
	static uint8_t kept[BYTES], taken[BYTES];

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t kept_cut = 0, cut;
		bool whole = true;

		srand(round);
		make_image();
		start(false);
		for (unsigned step = 0; step < STEPS; step++) {
			unsigned what = rand() % 12;

			if (what < 8) {
				write_some();
			} else if (what < 11) {
				cut = diskimage_cut(image,
						    whole ? CHECKPOINT_WHOLE : CHECKPOINT_CHANGES);
				CU_ASSERT(cut != 0);
				memcpy(taken, disk, BYTES);
				if (rand() % 2)
					write_some();
				whole = rand() % 4 == 0; /* it fails */
				if (whole)
					continue;
				kept_cut = cut;
				memcpy(kept, taken, BYTES);
			} else if (kept_cut) {
				stop();
				start(true);
				CU_ASSERT_EQUAL_FATAL(go_back(kept_cut), 0);
				memcpy(disk, kept, BYTES);
				whole = true;
			}
			check_image();
		}
		stop();
	}
}

/* The file's space does not grow with the number of checkpoints. */
static void old_cuts_are_dropped(void)
{
	uint64_t cut[40];
	struct stat st;

	make_image();
	start(false);
	for (unsigned i = 0; i < ARRAY_LEN(cut); i++) {
		cut[i] = diskimage_cut(image, i ? CHECKPOINT_CHANGES : CHECKPOINT_WHOLE);
		memset(disk, i + 1, BYTES);
		CU_ASSERT_EQUAL(diskimage_write(image, 0, SECTORS, disk), 0);
	}
	CU_ASSERT(!stat(file, &st) && st.st_blocks * 512 < 3 * BYTES + 65536);
	stop();
	start(true);
	CU_ASSERT_EQUAL(go_back(cut[37]), -ENOENT);
	CU_ASSERT_EQUAL(go_back(12345), -ENOENT);
	CU_ASSERT_EQUAL(go_back(cut[38]), 0);
	memset(disk, 38, BYTES);
	check_image();
	CU_ASSERT_EQUAL(go_back(cut[39]), -ENOENT); /* it was undone */
	stop();
	diskimage_remove_undo(image = diskimage_open(path, why, sizeof why));
	stop();
	CU_ASSERT(access(file, F_OK));
}

/* The server was killed in the middle of a record, before it wrote to the image. */
static void a_record_is_cut_short(void)
{
	uint64_t cut;
	struct stat st;

	for (unsigned less = 1; less < 9000; less += 300) {
		make_image();
		start(false);
		cut = diskimage_cut(image, CHECKPOINT_WHOLE);
		CU_ASSERT_EQUAL(diskimage_write(image, 8, 8, disk), 0);
		CU_ASSERT_FATAL(!stat(file, &st));
		CU_ASSERT_EQUAL(diskimage_write(image, 16, 1, disk), 0);
		CU_ASSERT_EQUAL(diskimage_write(image, 16, 1, disk + 16 * 512), 0);
		stop();
		if (less < 4096)
			CU_ASSERT(!truncate(file, st.st_size + less));
		start(true);
		CU_ASSERT_EQUAL(go_back(cut), 0);
		check_image();
		stop();
	}
}

/* All processes were killed while the image went back; the next machine completes that, whatever
 * its options are. */
static void killed_on_the_way_back(void)
{
	static const uint8_t other[BYTES] = { 1 };
	static char spec[80];

	for (unsigned partly = 0; partly < 3; partly++) {
		uint64_t cut;
		int fd;

		make_image();
		start(false);
		cut = diskimage_cut(image, CHECKPOINT_WHOLE);
		CU_ASSERT_EQUAL(diskimage_write(image, 0, SECTORS, other), 0);
		stop();
		start(true);
		CU_ASSERT_EQUAL(diskimage_seek(image, cut), 0);
		CU_ASSERT_EQUAL(diskimage_prepare_back(image), 0);
		stop();
		fd = open(path, O_WRONLY);
		CU_ASSERT(pwrite(fd, disk, partly * BYTES / 2, 0) == partly * BYTES / 2);
		close(fd);
		undofile_remove_unlocked(path); /* the owner ends in order */
		CU_ASSERT(!access(file, F_OK));
		snprintf(spec, sizeof spec, "%s,ro", path);
		CU_ASSERT(!diskimage_open(spec, why, sizeof why) && strstr(why, "was killed"));
		start(partly);
		check_image();
		CU_ASSERT_EQUAL(go_back(cut), partly ? 0 : -ENOENT);
		check_image();
		stop();
		undofile_remove_unlocked(path);
		CU_ASSERT(access(file, F_OK));
	}
}

static void limit(rlim_t bytes)
{
	struct rlimit r = { bytes, RLIM_INFINITY };

	CU_ASSERT_FATAL(!setrlimit(RLIMIT_FSIZE, &r));
}

/* There is no room for the log: the guest's writes go on, and a later checkpoint is good again. */
static void no_room(void)
{
	uint64_t cut[4];

	make_image();
	signal(SIGXFSZ, SIG_IGN);
	start(false);
	cut[0] = diskimage_cut(image, CHECKPOINT_WHOLE);
	cut[1] = diskimage_cut(image, CHECKPOINT_CHANGES);
	memset(disk, 1, BYTES);
	limit(BYTES);
	CU_ASSERT_EQUAL(diskimage_write(image, 0, 500, disk), 0);
	cut[2] = diskimage_cut(image, CHECKPOINT_CHANGES); /* in the room that is left */
	memset(disk + BYTES / 2, 2, BYTES / 2);
	CU_ASSERT_EQUAL(diskimage_write(image, 0, SECTORS, disk), 0);
	limit(RLIM_INFINITY);
	check_image();
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(go_back(cut[i]), -EFBIG);
	stop();
	start(true);
	CU_ASSERT_EQUAL(go_back(cut[2]), -EFBIG); /* another process knows why, too */
	cut[3] = diskimage_cut(image, CHECKPOINT_CHANGES);
	CU_ASSERT_EQUAL(diskimage_write(image, 0, 100, disk + BYTES / 2), 0);
	CU_ASSERT_EQUAL(go_back(cut[3]), 0);
	check_image();
	stop();
}

static void put_file(const void *bytes, size_t n)
{
	int fd;

	unlink(file);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	CU_ASSERT(write(fd, bytes, n) == (ssize_t)n);
	close(fd);
}

static void files_that_are_no_log(void)
{
	static uint8_t bytes[20000];
	struct undo_head head = { .state = UNDO_GOES_BACK, .image_bytes = BYTES, .target = 4096,
				  .end = 1ull << 40, .boot = "x" };

	make_image();
	memcpy(head.magic, undo_magic, sizeof undo_magic);
	for (unsigned seed = 0; seed < 40; seed++) { /* noise: is overwritten */
		srand(seed);
		for (unsigned i = 0; i < sizeof bytes; i++)
			bytes[i] = rand() % 3 ? 0 : rand();
		if (seed % 2)
			memcpy(bytes, undo_magic, sizeof undo_magic);
		put_file(bytes, seed * 500);
		image = diskimage_open(path, why, sizeof why);
		if (image)
			CU_ASSERT(!diskimage_keep_undo(image, true, why, sizeof why));
		stop();
	}
	put_file(&head, sizeof head); /* it has less than it says */
	CU_ASSERT(!diskimage_open(path, why, sizeof why) && strstr(why, "Input/output error"));
	head.image_bytes *= 2;
	put_file(&head, sizeof head);
	CU_ASSERT(!diskimage_open(path, why, sizeof why) && strstr(why, "is not of this image"));
	unlink(file);
	CU_ASSERT(!symlink("/tmp/vmp-undo-elsewhere", file));
	image = diskimage_open(path, why, sizeof why);
	CU_ASSERT_FATAL(image != NULL);
	CU_ASSERT(diskimage_keep_undo(image, false, why, sizeof why) && strstr(why, "remove it"));
	CU_ASSERT(access("/tmp/vmp-undo-elsewhere", F_OK));
	stop();
	unlink(file);
	/* what is read from the image alone is as it was */
	start(true);
	check_image();
	stop();
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "random histories", random_histories },
		{ "old cuts are dropped", old_cuts_are_dropped },
		{ "a record is cut short", a_record_is_cut_short },
		{ "killed on the way back", killed_on_the_way_back },
		{ "no room", no_room },
		{ "files that are no log", files_that_are_no_log },
		UNIT_END
	};
	int status, fd = mkstemp(path);

	close(fd);
	snprintf(file, sizeof file, "%s" UNDO_SUFFIX, path);
	status = UNIT_RUN("undo", tests);
	unlink(path);
	unlink(file);
	return status;
}
