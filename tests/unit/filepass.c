/* Open files on their way from one process to another: base/filepass.c. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/filepass.h"
#include "base/types.h"
#include "tests/unit/unit.h"

static int socket_of[2];

static void start(void)
{
	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socket_of));
}

static void end(void)
{
	close(socket_of[0]);
	close(socket_of[1]);
}

static unsigned open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned n = 0;

	while (folder && readdir(folder))
		n++;
	closedir(folder);
	return n;
}

static bool same(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static void test_passed(void)
{
	int a = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int b = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	const int sent[4] = { -1, a, -1, b };
	int got[4];

	start();
	CU_ASSERT_EQUAL(filepass_send(socket_of[0], sent, 4), 0);
	CU_ASSERT_EQUAL(filepass_receive(socket_of[1], got, 4), 0);
	CU_ASSERT(got[0] == -1 && got[2] == -1);
	CU_ASSERT(same(got[1], a) && same(got[3], b) && !same(got[1], b));
	CU_ASSERT(fcntl(got[1], F_GETFD) == FD_CLOEXEC && fcntl(got[3], F_GETFD) == FD_CLOEXEC);
	for (unsigned i = 1; i < 4; i += 2)
		close(got[i]);
	close(a);
	close(b);
	end();
}

static void test_none(void)
{
	const int none[2] = { -1, -1 };
	int got[2] = { 5, 5 };

	start();
	CU_ASSERT_EQUAL(filepass_receive(socket_of[1], got, 2), -EAGAIN);
	CU_ASSERT(got[0] == -1 && got[1] == -1);
	CU_ASSERT_EQUAL(filepass_send(socket_of[0], none, 2), 0);
	CU_ASSERT_EQUAL(filepass_receive(socket_of[1], got, 2), 0);
	CU_ASSERT(got[0] == -1 && got[1] == -1);
	CU_ASSERT_EQUAL(filepass_send(socket_of[0], none, 0), -EINVAL);
	CU_ASSERT_EQUAL(filepass_send(socket_of[0], none, FILEPASS_MOST + 1), -EINVAL);
	close(socket_of[0]);
	CU_ASSERT_EQUAL(filepass_receive(socket_of[1], got, 2), -EPROTO);
	close(socket_of[1]);
}

/* Send `count` descriptors beside these bytes, as a hostile process may. */
static void send_raw(const void *bytes, size_t n, int fd, unsigned count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE((FILEPASS_MOST + 1) * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)bytes, n };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		for (unsigned i = 0; i < count; i++)
			memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &fd, sizeof fd);
	}
	CU_ASSERT_EQUAL(sendmsg(socket_of[0], &message, 0), (ssize_t)n);
}

/* What is no such packet is refused, and no descriptor stays open. */
static void test_refused(void)
{
	static const struct {
		const char *bytes;
		size_t n;
		unsigned count;
	} rows[] = {
		{ "\1\1", 2, 1 },  { "\1\0", 2, 2 }, { "\0\0", 2, 1 }, { "\1\1", 2, 0 },
		{ "\1", 1, 1 },    { "\1\1\1", 3, 3 },
		{ "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1", 18, FILEPASS_MOST },
		{ "\1\1", 2, FILEPASS_MOST + 1 },
	};
	int got[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned before;

	start();
	before = open_files();
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		send_raw(rows[i].bytes, rows[i].n, null, rows[i].count);
		CU_ASSERT_EQUAL(filepass_receive(socket_of[1], got, 2), -EPROTO);
		CU_ASSERT(got[0] == -1 && got[1] == -1);
		CU_ASSERT_EQUAL(open_files(), before);
	}
	close(null);
	end();
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "passed", test_passed },
		{ "none", test_none },
		{ "refused", test_refused },
		UNIT_END
	};

	return UNIT_RUN("filepass", tests);
}
