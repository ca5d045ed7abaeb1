/* The saved state of the server of a shared folder: what the guest has open works on after the
 * load, what is gone answers ESTALE, and a state that was tampered with is refused. */
#include <errno.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include "tests/unit/ninep_client.h"

static uint8_t *state;
static size_t state_bytes;
static char why[200];

static const char *in(const char *top, const char *name)
{
	static char paths[2][160];
	static unsigned turn;
	char *path = paths[turn ^= 1];

	snprintf(path, sizeof paths[0], "%s/%s", top, name);
	return path;
}

static const char *path(const char *name) { return in(folder, name); }

static void make_file(const char *name, const char *text)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);

	CU_ASSERT_FATAL(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void save(void)
{
	free(state);
	state_bytes = ninep_save(server, &state);
	CU_ASSERT_FATAL(state_bytes != 0 && state_bytes <= NINEP_STATE_BYTES);
}

static int load_into(const char *top, bool read_only)
{
	start_new(top, read_only);
	return ninep_load(server, state, state_bytes, why, sizeof why);
}

/* The server is saved, and ends; another one loads the state. */
static void save_and_load(void)
{
	save();
	end();
	CU_ASSERT_FATAL(!load_into(folder, false));
}

static void open_files_work_on(void)
{
	struct stat st;

	start(false);
	make_file(path("f"), "0123456789");
	CU_ASSERT(!make(72, 1, "d", 0755) && !walk(1, 2, "d"));
	CU_ASSERT(!walk(1, 3, "f") && !lopen(3, O_RDONLY) && !get_bytes(3, 2, 3));
	CU_ASSERT(!walk(2, 4, NULL) && !lcreate(4, "new", O_RDWR | O_EXCL | O_APPEND, 0644));
	CU_ASSERT(!put_bytes(4, 0, "one"));
	CU_ASSERT(!symlink("anywhere", path("link")) && !walk(1, 5, "link"));
	CU_ASSERT(!walk(2, 6, NULL) && !lopen(6, O_RDONLY | O_DIRECTORY));
	/* without the right to write, for whom opens it now */
	CU_ASSERT(!walk(1, 7, NULL) && !lcreate(7, "secret", O_WRONLY, 0400));
	CU_ASSERT(!rename(path("d"), path("moved"))); /* by the host; the fids go with it */
	save_and_load();
	CU_ASSERT(!get_bytes(3, 2, 3) && !memcmp(reply + 11, "234", 3));
	CU_ASSERT(put_bytes(3, 0, "x") == EBADF);
	CU_ASSERT(!put_bytes(4, 0, "two") && !get_bytes(4, 0, 10) && answer(0, 4) == 6);
	CU_ASSERT(!memcmp(reply + 11, "onetwo", 6)); /* still O_APPEND */
	CU_ASSERT(!with_fid(22, 5) && !memcmp(reply + 9, "anywhere", 8));
	begin(40);
	number(6, 4);
	number(0, 8);
	number(1000, 4);
	CU_ASSERT(!ask() && answer(0, 4) > 0);
	CU_ASSERT(!put_bytes(7, 0, "kept") && get_bytes(7, 0, 4) == EBADF);
	CU_ASSERT(!stat(path("secret"), &st) && st.st_size == 4 && (st.st_mode & 0777) == 0400);
	CU_ASSERT(!walk(2, 8, "new") && !walk(1, 9, "moved"));
	CU_ASSERT(walk(2, 3, NULL) == EBADF); /* its numbers are in use, as before */
	CU_ASSERT(!with_fid(120, 3) && !walk(1, 3, "f"));
	end();
	unlink(path("f"));
	unlink(path("link"));
	unlink(path("secret"));
	unlink(path("moved/new"));
	CU_ASSERT(!rmdir(path("moved")));
}

/* The length of messages is what was agreed with the guest. */
static void messages_keep_their_length(void)
{
	start(false);
	begin(100);
	number(4096, 4);
	string("9P2000.L");
	CU_ASSERT(!ask());
	begin(104);
	number(1, 4);
	number(~0u, 4);
	string("");
	string("");
	number(0, 4);
	CU_ASSERT(!ask() && !walk(1, 2, NULL) && !lcreate(2, "f", O_RDWR, 0644));
	CU_ASSERT(!setattr(2, 8, 0, 0, 100000, 0));
	save_and_load();
	CU_ASSERT(!get_bytes(2, 0, 60000) && answered == 4096);
	end();
	unlink(path("f"));
}

static void what_is_gone_is_stale(void)
{
	start(false);
	make_file(path("removed"), "text");
	make_file(path("replaced"), "text");
	make_file(path("kind"), "text");
	make_file(path("later"), "text");
	CU_ASSERT(!walk(1, 2, NULL) && !lcreate(2, "unlinked", O_RDWR, 0644));
	CU_ASSERT(!unlink_at(1, "unlinked", 0) && !put_bytes(2, 0, "goes on"));
	CU_ASSERT(!walk(1, 3, "removed") && !lopen(3, O_RDWR));
	CU_ASSERT(!walk(1, 4, "replaced") && !walk(1, 5, "kind") && !walk(1, 6, "later"));
	CU_ASSERT(!lopen(6, O_RDONLY));
	/* a name that looks like that of a file which was removed */
	make_file(path("f (deleted)"), "there");
	CU_ASSERT(!walk(1, 7, "f (deleted)") && !lopen(7, O_RDONLY));
	save();
	/* The machine that was saved goes on as if nothing had been. */
	CU_ASSERT(!get_bytes(2, 0, 10) && answer(0, 4) == 7);
	end();
	make_file(path("another"), "other");
	CU_ASSERT(!unlink(path("removed")) && !rename(path("another"), path("replaced")));
	CU_ASSERT(!unlink(path("kind")) && !mkdir(path("kind"), 0755));
	CU_ASSERT_FATAL(!load_into(folder, false));
	for (uint32_t fid = 2; fid <= 5; fid++) {
		CU_ASSERT(get_bytes(fid, 0, 10) == ESTALE && with_fid(8, fid) == ESTALE);
		CU_ASSERT(walk(fid, 9, NULL) == ESTALE && lock(fid, 1) == ESTALE);
		CU_ASSERT(setattr(fid, 8, 0, 0, 0, 0) == ESTALE);
	}
	CU_ASSERT(rename_at(1, "later", 5, "x") == ESTALE);
	CU_ASSERT(!get_bytes(6, 0, 10) && answer(0, 4) == 4);
	CU_ASSERT(!get_bytes(7, 0, 10) && answer(0, 4) == 5);
	/* They are as lost in a later state; and each number can be given back. */
	save_and_load();
	for (uint32_t fid = 2; fid <= 5; fid++)
		CU_ASSERT(with_fid(24, fid) == ESTALE && !with_fid(120, fid) &&
			  with_fid(24, fid) == EBADF);
	end();
	unlink(path("replaced"));
	unlink(path("later"));
	unlink(path("f (deleted)"));
	CU_ASSERT(!rmdir(path("kind")));
}

/* A copy of the folder: other inodes, the same names. */
static void a_copy_elsewhere(void)
{
	char copy[] = "/tmp/vmp-ninep-XXXXXX";

	CU_ASSERT_FATAL(mkdtemp(copy) != NULL);
	start(false);
	make_file(path("f"), "here");
	make_file(in(copy, "f"), "there");
	CU_ASSERT(!walk(1, 2, "f") && !lopen(2, O_RDWR));
	save();
	end();
	CU_ASSERT_FATAL(!load_into(copy, false));
	CU_ASSERT(!get_bytes(2, 0, 10) && answer(0, 4) == 5);
	end();
	/* where the folder may only be read, nothing is open for writing */
	CU_ASSERT(load_into(copy, true) == -EINVAL && strstr(why, "read only"));
	end();
	unlink(path("f"));
	unlink(in(copy, "f"));
	rmdir(copy);
}

static bool is_locked(const char *name, off_t start, off_t bytes, short kind)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = start, .l_len = bytes };
	int fd = open(path(name), O_RDWR);
	bool locked = !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type == kind;

	close(fd);
	return locked;
}

static void locks_are_taken_again(void)
{
	enum { READ, WRITE, NONE };
	struct flock other = { .l_type = F_WRLCK };
	int fd;

	start(false);
	make_file(path("f"), "0123456789");
	CU_ASSERT(!walk(1, 2, "f") && !lopen(2, O_RDWR) && !walk(1, 3, "f") && !lopen(3, O_RDWR));
	/* 10..19 and 30.. for writing, 20..24 for reading; in pieces that touch and overlap */
	CU_ASSERT(!lock_range(2, READ, 5, 30) && !lock_range(2, WRITE, 10, 5));
	CU_ASSERT(!lock_range(2, WRITE, 15, 5) && !lock_range(2, NONE, 0, 10));
	CU_ASSERT(!lock_range(2, WRITE, 30, 0) && !lock_range(2, NONE, 25, 5));
	CU_ASSERT(lock_range(2, WRITE, ~0ull, 1) == EINVAL);
	CU_ASSERT(lock_range(2, WRITE, 5, INT64_MAX) == EINVAL);
	save_and_load();
	CU_ASSERT(is_locked("f", 0, 10, F_UNLCK) && is_locked("f", 10, 10, F_WRLCK));
	CU_ASSERT(is_locked("f", 20, 5, F_RDLCK) && is_locked("f", 25, 5, F_UNLCK));
	CU_ASSERT(is_locked("f", 1ll << 40, 1, F_WRLCK));
	CU_ASSERT(!lock_range(3, WRITE, 12, 1) && answer(0, 1) == 1);
	CU_ASSERT(!lock_range(2, NONE, 0, 0) && !lock(3, WRITE) && answer(0, 1) == 0);
	/* Somebody has the lock by the time of the load: the guest does not believe it has it. */
	save();
	end();
	fd = open(path("f"), O_RDWR);
	CU_ASSERT(!fcntl(fd, F_OFD_SETLK, &other));
	CU_ASSERT_FATAL(!load_into(folder, false));
	CU_ASSERT(put_bytes(3, 0, "x") == ESTALE && !get_bytes(2, 0, 3));
	CU_ASSERT(!with_fid(120, 3));
	end();
	close(fd);
	unlink(path("f"));
}

/* A guest cannot make the list of locks grow for ever. */
static void locks_have_a_bound(void)
{
	int error = 0;
	unsigned n = 0;

	start(false);
	make_file(path("f"), "x");
	CU_ASSERT(!walk(1, 2, "f") && !lopen(2, O_RDWR));
	for (; !error && n < 2 * NINEP_LOCKS; n++)
		error = lock_range(2, 1, 2 * n, 1);
	CU_ASSERT(error == ENOLCK && n > NINEP_LOCKS / 2);
	save_and_load();
	CU_ASSERT(lock_range(2, 1, 2 * n, 1) == ENOLCK && !lock_range(2, 2, 0, 0));
	for (n = 0; n < 10; n++) /* neighbours become one */
		CU_ASSERT(!lock_range(2, 1, n, 1));
	save();
	CU_ASSERT(state_bytes < 400);
	end();
	unlink(path("f"));
}

/* --- a hostile state --- */

static void put_number(size_t at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		state[at + i] = (uint8_t)(value >> 8 * i);
}

static bool is_refused(void)
{
	int error = load_into(folder, false);

	/* whichever way: no file of the guest's is left when it was refused */
	CU_ASSERT(!error || with_fid(24, 2) == EBADF);
	end();
	return error == -EINVAL;
}

/* The fid 2, alone: "f", open, with one lock. */
enum { N_FIDS = 24, FID = 28, BITS = FID + 4, TYPE = BITS + 1, PATH = TYPE + 4 + 16,
       FLAGS = PATH + 2 + 1, LOCKS = FLAGS + 4, KIND = LOCKS + 4, FIRST = KIND + 1,
       LAST = FIRST + 8, ALL = LAST + 8 };

static void make_state(void)
{
	start(false);
	CU_ASSERT(!walk(1, 2, "f") && !with_fid(120, 1) && !lopen(2, O_RDWR));
	CU_ASSERT(!lock_range(2, 1, 4, 4));
	save();
	end();
	CU_ASSERT_FATAL(state_bytes == ALL && !memcmp(state + PATH + 2, "f", 1));
}

static void tampered_states_are_refused(void)
{
	static const struct { size_t at; unsigned bytes; uint64_t value; } wrong[] = {
		{ 0, 4, 1 }, { 4, 4, 4095 }, { 4, 4, NINEP_MESSAGE_BYTES + 1 }, { N_FIDS, 4, 0 },
		{ N_FIDS, 4, 2 }, { N_FIDS, 4, NINEP_FIDS + 1 }, { BITS, 1, 4 }, { BITS, 1, 0 },
		{ BITS, 1, 1 }, { PATH, 2, 0 }, { PATH, 2, 0xffff }, { PATH + 2, 1, 0 },
		{ FLAGS, 4, O_TRUNC }, { FLAGS, 4, O_CREAT },
		{ FLAGS, 4, O_PATH }, { LOCKS, 4, 2 }, { LOCKS, 4, 0 },
		{ LOCKS, 4, NINEP_LOCKS + 1 }, { KIND, 1, 2 }, { FIRST, 8, 8 },
		{ LAST, 8, 1ull << 63 },
	};
	static const char *const ways[] = { "/", "." };

	make_file(path("f"), "text");
	make_state();
	CU_ASSERT(!is_refused());
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		make_state();
		put_number(wrong[i].at, wrong[i].value, wrong[i].bytes);
		CU_ASSERT(is_refused());
	}
	make_state();
	for (; state_bytes; state_bytes--) /* cut anywhere */
		CU_ASSERT(state_bytes == ALL || is_refused());
	make_state();
	state = realloc(state, 2 * ALL);
	memcpy(state + ALL, state + FID, ALL - FID); /* the same number twice */
	state_bytes += ALL - FID;
	CU_ASSERT(is_refused());
	put_number(N_FIDS, 2, 4);
	CU_ASSERT(is_refused() && strstr(why, "twice"));
	for (unsigned i = 0; i < 2; i++) { /* another file than was open: lost */
		make_state();
		state[PATH + 2] = (uint8_t)*ways[i];
		CU_ASSERT(!load_into(folder, false) && get_bytes(2, 0, 1) == ESTALE);
		end();
	}
	unlink(path("f"));
}

/* A path of a state leads out of the folder no more than a name of a request does. */
static void no_path_leads_out(void)
{
	static const char *const ways[] = { "../secret", "/tmp/../etc/passwd", "out/passwd",
					    "d/../../secret", "d//../..//secret", "link" };
	char top[160];
	uint8_t one[200];
	size_t n = 0, bytes;

	CU_ASSERT(!mkdir(path("d"), 0755) && !mkdir(path("top"), 0755));
	make_file(path("secret"), "secret");
	CU_ASSERT(!symlink("/etc", path("top/out")) && !mkdir(path("top/d"), 0755));
	CU_ASSERT(!symlink("../secret", path("top/link")));
	snprintf(top, sizeof top, "%s", path("top"));
	make_file(path("f"), "text");
	make_state();
	memcpy(one, state, FID);
	for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
		n = strlen(ways[i]);
		state = realloc(state, ALL + n);
		memcpy(state, one, FID);
		put_number(8, 0, 8); /* another folder: no inode is compared */
		put_number(FID, 2, 4);
		put_number(BITS, 2, 1);
		put_number(TYPE, S_IFREG, 4);
		put_number(PATH, n, 2);
		memcpy(state + PATH + 2, ways[i], n);
		bytes = PATH + 2 + n;
		put_number(bytes, O_RDONLY, 4);
		put_number(bytes + 4, 0, 4);
		state_bytes = bytes + 8;
		CU_ASSERT_FATAL(!load_into(top, false));
		CU_ASSERT(get_bytes(2, 0, 10) == ESTALE);
		end();
	}
	unlink(path("f"));
	unlink(path("secret"));
	unlink(path("top/link"));
	unlink(path("top/out"));
	CU_ASSERT(!rmdir(path("top/d")) && !rmdir(path("top")) && !rmdir(path("d")));
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "open files work on", open_files_work_on },
		{ "messages keep their length", messages_keep_their_length },
		{ "what is gone is stale", what_is_gone_is_stale },
		{ "a copy elsewhere", a_copy_elsewhere },
		{ "locks are taken again", locks_are_taken_again },
		{ "locks have a bound", locks_have_a_bound },
		{ "tampered states are refused", tampered_states_are_refused },
		{ "no path leads out", no_path_leads_out },
		UNIT_END
	};
	int status;

	umask(0);
	if (!mkdtemp(folder))
		return 1;
	status = UNIT_RUN("ninep saved", tests);
	free(state);
	rmdir(folder);
	return status;
}
