/* The server of a shared folder: what the guest's driver asks for, what a hostile guest does. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/ninep_client.h"

static char outside[] = "/tmp/vmp-secret-XXXXXX";

static void test_files(void)
{
	char path[128];
	struct stat st;

	start(false);
	CU_ASSERT(!walk(1, 2, NULL) && !lcreate(2, "f \377\n", O_RDWR, 06755));
	CU_ASSERT(!put_bytes(2, 5, "hello") && answer(0, 4) == 5);
	CU_ASSERT(!get_bytes(2, 0, 100) && answer(0, 4) == 10 && !memcmp(reply + 16, "hello", 5));
	snprintf(path, sizeof path, "%s/f \377\n", folder);
	CU_ASSERT(!stat(path, &st) && st.st_size == 10 && (st.st_mode & 07777) == 0755);
	CU_ASSERT(!with_fid(120, 2) && with_fid(120, 2) == EBADF);
	/* A large offset; a size; times; what may not be given away. */
	CU_ASSERT(!walk(1, 3, "f \377\n") && !lopen(3, O_RDWR));
	CU_ASSERT(!put_bytes(3, 5ull << 30, "far") && !get_bytes(3, 5ull << 30, 10));
	CU_ASSERT(answer(0, 4) == 3 && get_bytes(3, ~0ull, 1) == EINVAL);
	CU_ASSERT(!setattr(3, 8 | 1 | 0x20 | 0x100, 04711, 0, 4, 1000000000));
	CU_ASSERT(!stat(path, &st) && st.st_size == 4 && st.st_mtime == 1000000000);
	CU_ASSERT((st.st_mode & 07777) == 0711);
	CU_ASSERT(!setattr(3, 2, 0, 0, 0, 0) && setattr(3, 2, 0, 12345, 0, 0) == EPERM);
	begin(24);
	number(3, 4);
	number(0x7ff, 8);
	CU_ASSERT(!ask() && answer(21, 4) == (S_IFREG | 0711) && answer(25, 4) == 0);
	CU_ASSERT_EQUAL(answer(8 + 13 + 4 + 4 + 4 + 8 + 8, 8), 4);
	begin(50);
	number(3, 4);
	number(1, 4);
	CU_ASSERT(!ask() && !with_fid(8, 3));
	CU_ASSERT(with_fid(30, 3) == EOPNOTSUPP); /* extended attributes */
	CU_ASSERT(!with_fid(120, 3) && !unlink_at(1, "f \377\n", 0) && stat(path, &st));
	end();
}

static void test_folders(void)
{
	unsigned found = 0;

	start(false);
	CU_ASSERT(!make(72, 1, "d", 0755) && make(72, 1, "d", 0755) == EEXIST);
	CU_ASSERT(!walk(1, 2, "d") && !make(72, 2, "e", 0700));
	CU_ASSERT(!make(18, 2, "fifo", S_IFIFO | 0644) && make(18, 2, "null", S_IFCHR) == EPERM);
	CU_ASSERT(!walk(2, 3, "fifo") && lopen(3, O_RDONLY) == ENXIO && !with_fid(120, 3));
	begin(16);
	number(2, 4);
	string("link");
	string("/etc/passwd");
	number(0, 4);
	CU_ASSERT(!ask() && answer(0, 1) == 2);
	CU_ASSERT(!walk(2, 4, "link") && !with_fid(22, 4) && !memcmp(reply + 9, "/etc/passwd", 11));
	CU_ASSERT(lopen(4, O_RDONLY) == ENXIO);
	/* All of them are listed, each once, however little is asked for. */
	CU_ASSERT(!walk(2, 5, NULL) && !lopen(5, O_RDONLY | O_DIRECTORY));
	for (uint64_t offset = 0;;) {
		begin(40);
		number(5, 4);
		number(offset, 8);
		number(40, 4);
		CU_ASSERT_FATAL(!ask());
		if (!answer(0, 4))
			break;
		for (size_t at = 4; at < 4 + answer(0, 4); at += 24 + answer(at + 22, 2)) {
			offset = answer(at + 13, 8);
			found++;
		}
	}
	CU_ASSERT_EQUAL(found, 5);
	/* Names, and the same file by two of them. */
	CU_ASSERT(!walk(1, 6, NULL) && !lcreate(6, "a", O_RDWR | O_EXCL, 0644));
	CU_ASSERT(!walk(1, 7, NULL) && lcreate(7, "a", O_RDWR | O_EXCL, 0644) == EEXIST);
	begin(70);
	number(2, 4);
	number(6, 4);
	string("b");
	CU_ASSERT(!ask() && !rename_at(2, "b", 1, "c") && walk(2, 8, "b") == ENOENT);
	CU_ASSERT(!walk(1, 8, "c") && !unlink_at(1, "c", 0) && !unlink_at(1, "a", 0));
	CU_ASSERT(!put_bytes(6, 0, "still there") && !get_bytes(6, 0, 5));
	/* A lock is the host's, too. */
	CU_ASSERT(!lopen(8, O_RDWR) && !lock(6, 1) && answer(0, 1) == 0);
	CU_ASSERT(!lock(8, 1) && answer(0, 1) == 1 && !lock(6, 2) && !lock(8, 1) && !answer(0, 1));
	CU_ASSERT(lock(8, 3) == EINVAL);
	CU_ASSERT(unlink_at(1, "d", 0) == EISDIR && unlink_at(1, "d", 0x200) == ENOTEMPTY);
	CU_ASSERT(!unlink_at(2, "e", 0x200) && !unlink_at(2, "fifo", 0));
	CU_ASSERT(!unlink_at(2, "link", 0));
	CU_ASSERT(!unlink_at(1, "d", 0x200));
	end();
}

/* No name and no symbolic link leads out, not even one that the host puts there meanwhile. */
static void test_no_way_out(void)
{
	static const char *const names[] = { "..", ".", "", "../secret", "d/../..", "/etc" };
	char path[128], away[128], long_name[300];

	start(false);
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		CU_ASSERT(walk(1, 2, names[i]) == EINVAL);
		CU_ASSERT(lcreate(1, names[i], O_RDWR, 0644) == EINVAL);
		CU_ASSERT(make(72, 1, names[i], 0755) == EINVAL);
		CU_ASSERT(unlink_at(1, names[i], 0) == EINVAL);
		CU_ASSERT(rename_at(1, "a", 1, names[i]) == EINVAL);
	}
	memset(long_name, 'x', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = 0;
	CU_ASSERT(walk(1, 2, long_name) == ENAMETOOLONG);
	snprintf(path, sizeof path, "%s/way", folder);
	snprintf(away, sizeof away, "%s/away", folder);
	CU_ASSERT_FATAL(!mkdir(path, 0755) && !walk(1, 2, "way"));
	CU_ASSERT_FATAL(!rename(path, away) && !symlink(outside, path));
	/* The fid is still the folder's, under its new name; the link leads nowhere. */
	CU_ASSERT(!walk(2, 3, NULL) && !lcreate(3, "new", O_RDWR, 0644));
	begin(110);
	number(1, 4);
	number(4, 4);
	number(2, 2);
	string("way");
	string("secret");
	CU_ASSERT(!ask() && answer(0, 2) == 1); /* as far as the link itself */
	CU_ASSERT(!walk(1, 4, "way") && lopen(4, O_RDONLY) == ENXIO);
	CU_ASSERT(lcreate(4, "new", O_RDWR, 0644) == ENOTDIR && make(72, 4, "new", 0) == ENOTDIR);
	CU_ASSERT(lcreate(1, "way", O_RDWR, 0644) == ELOOP); /* a link's name: not followed */
	unlink(path);
	snprintf(path, sizeof path, "%s/away/new", folder);
	CU_ASSERT(!unlink(path) && !rmdir(away));
	end();
}

static void test_read_only(void)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/r", folder);
	fd = open(path, O_CREAT | O_RDWR, 0644);
	CU_ASSERT_FATAL(fd >= 0 && write(fd, "text", 4) == 4);
	close(fd);
	start(true);
	CU_ASSERT(!walk(1, 2, "r") && lopen(2, O_RDWR) == EROFS && lopen(2, O_TRUNC) == EROFS);
	CU_ASSERT(!lopen(2, O_RDONLY) && !get_bytes(2, 0, 9) && answer(0, 4) == 4);
	CU_ASSERT(put_bytes(2, 0, "x") == EBADF && setattr(2, 8, 0, 0, 0, 0) == EROFS);
	CU_ASSERT(make(72, 1, "d", 0755) == EROFS && unlink_at(1, "r", 0) == EROFS);
	CU_ASSERT(lcreate(1, "n", O_RDWR, 0644) == EROFS && rename_at(1, "r", 1, "s") == EROFS);
	unlink(path);
	end();
}

/* Lengths that lie, requests cut anywhere, fids without end. */
static void test_malformed(void)
{
	uint8_t whole[200];
	size_t n;
	int error = 0;

	start(false);
	CU_ASSERT_EQUAL(ninep_serve(server, request, 6, reply), 0);
	begin(110);
	number(1, 4);
	number(2, 4);
	number(1, 2);
	string("name");
	n = length;
	memcpy(whole, request, n);
	for (length = 7; length < n; length++) {
		memcpy(request, whole, n);
		CU_ASSERT(ask() != 0);
	}
	request[0]++;
	CU_ASSERT(ninep_serve(server, request, n, reply) && reply[4] == ERROR);
	CU_ASSERT(walk(9, 2, NULL) == EBADF && with_fid(6, 1) == EOPNOTSUPP);
	begin(118);
	number(1, 4);
	number(0, 8);
	number(0xffffffff, 4);
	CU_ASSERT_EQUAL(ask(), EPROTO);
	for (uint32_t i = 2; !error && i < NINEP_FIDS + 10; i++)
		error = walk(1, i, NULL);
	CU_ASSERT(error == ENFILE || error == EMFILE);
	begin(100); /* a new beginning forgets all */
	number(8192, 4);
	string("9P2000.u");
	CU_ASSERT(!ask() && with_fid(24, 1) == EBADF);
	end();
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "files", test_files },
		{ "folders, links, locks", test_folders },
		{ "no way out", test_no_way_out },
		{ "read only", test_read_only },
		{ "malformed requests", test_malformed },
		UNIT_END
	};
	int status;

	umask(0);
	if (!mkdtemp(folder) || !mkdtemp(outside))
		return 1;
	status = UNIT_RUN("ninep", tests);
	rmdir(folder);
	rmdir(outside);
	return status;
}
