/* presence.c - tests of vmm/shared/presence.h: a name belongs to one process; a standby takes the
 * message only from this user's processes. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/confine.h"
#include "base/filepass.h"
#include "tests/unit/unit.h"
#include "vmm/shared/presence.h"

static char name[MAX_PRESENCE];

static void a_name_is_held_while_its_holder_lives(void)
{
	int fd = presence_hold(name);

	CU_ASSERT(fd >= 0);
	CU_ASSERT_TRUE(presence_is_held(name));
	CU_ASSERT_EQUAL(presence_hold(name), -1);
	close(fd);
	CU_ASSERT_FALSE(presence_is_held(name));
}

static void who_stands_by_is_told(void)
{
	int fd;

	CU_ASSERT_FALSE(presence_tell(name)); /* nobody is there */
	fd = presence_listen(name);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(presence_listen(name), -1);
	CU_ASSERT_FALSE(presence_is_held(name));
	CU_ASSERT_FALSE(presence_heard(fd));
	CU_ASSERT_TRUE(presence_tell(name));
	CU_ASSERT_TRUE(presence_tell(name));
	CU_ASSERT_TRUE(presence_heard(fd));
	CU_ASSERT_FALSE(presence_heard(fd));
	close(fd); /* as when the process is killed */
	CU_ASSERT_FALSE(presence_tell(name));
	fd = presence_listen(name);
	CU_ASSERT(fd >= 0);
	CU_ASSERT_FALSE(presence_heard(fd));
	presence_unlisten(fd, name);
}

/* A daemon tells it when it is confined; it makes no folder for that. */
static int confined_tells(bool wanted)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (confine_privileges() || confine_calls_of(CONFINE_NODE, false))
			_exit(2);
		_exit(presence_tell(name) != wanted);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_confined_daemon_tells(void)
{
	int fd = presence_listen(name);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(confined_tells(true), 0);
	CU_ASSERT_TRUE(presence_heard(fd));
	presence_unlisten(fd, name);
	CU_ASSERT_EQUAL(confined_tells(false), 0);
}

/* only root can be another user */
static void another_user_says_nothing(void)
{
	int fd = presence_listen(name), status;

	if (geteuid() == 0) {
		pid_t pid = fork();
		if (pid == 0) {
			if (setuid(65534))
				_exit(1);
			presence_tell(name);
			_exit(0);
		}
		CU_ASSERT(waitpid(pid, &status, 0) == pid && status == 0);
		CU_ASSERT_FALSE(presence_heard(fd));
		rmdir("/tmp/vmp-65534");
	}
	presence_unlisten(fd, name);
}

/* A standby must not take over because another user has made the folder. */
static void who_cannot_look_is_in_doubt(void)
{
	int status;
	pid_t pid;

	CU_ASSERT_TRUE(presence_is_held("a/b"));
	if (geteuid() || mkdir("/tmp/vmp-65534", 0700))
		return;
	pid = fork();
	if (pid == 0)
		_exit(setuid(65534) || !presence_is_held(name) || presence_hold("a/b") != -1);
	CU_ASSERT(waitpid(pid, &status, 0) == pid && status == 0);
	CU_ASSERT_EQUAL(rmdir("/tmp/vmp-65534"), 0);
}

/* An abstract socket would show its name in /proc/net/unix, and anybody could take it when its
 * holder has died. */
static int squat(const char *whose)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "vmp-%s-%s", whose,
			 name);

	return bind(socket(AF_UNIX, SOCK_DGRAM, 0), (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
}

/* Only root can be another user.  The child binds what it can, and tries the lock, until its pipe
 * is closed. */
static void another_user_holds_nothing(void)
{
	int ready[2], over[2], status, fd;
	char byte;
	pid_t pid;

	if (geteuid() || pipe(ready) || pipe(over))
		return;
	pid = fork();
	if (pid == 0) {
		close(over[1]);
		if (setuid(65534) || squat("host") || squat("standby"))
			_exit(1);
		(void)!write(ready[1], "", 1);
		(void)!read(over[0], &byte, 1);
		_exit(0);
	}
	close(ready[1]);
	CU_ASSERT_EQUAL(read(ready[0], &byte, 1), 1);
	CU_ASSERT_FALSE(presence_is_held(name));
	fd = presence_hold(name);
	CU_ASSERT(fd >= 0 && presence_is_held(name));
	presence_release(fd, name);
	fd = presence_listen(name);
	CU_ASSERT(fd >= 0);
	presence_unlisten(fd, name);
	close(over[1]);
	CU_ASSERT(waitpid(pid, &status, 0) == pid && status == 0);
}

static void who_was_killed_leaves_nothing_for_ever(void)
{
	char path[64];
	int fd = presence_hold(name);
	pid_t pid;

	snprintf(path, sizeof path, "/tmp/vmp-%u/h-%.30s", geteuid(), name);
	presence_release(fd, name);
	CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
	pid = fork();
	if (pid == 0) {
		presence_hold(name);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	CU_ASSERT_EQUAL(access(path, F_OK), 0);
	fd = presence_hold("another");
	CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
	presence_release(fd, "another");
}

/* Send the listener n descriptors, as presence_pass() sends PRESENCE_PASSED. */
static void pass(int listener, unsigned n)
{
	struct sockaddr_un to;
	socklen_t size = sizeof to;
	int one = open("/dev/null", O_RDONLY | O_CLOEXEC), fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	union filepass_control control;
	struct iovec iov = { "", 1 };
	struct msghdr message = { .msg_name = &to, .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[FILEPASS_MOST];

	for (unsigned i = 0; i < n; i++)
		fds[i] = one;
	CU_ASSERT_EQUAL(getsockname(listener, (struct sockaddr *)&to, &size), 0);
	message.msg_namelen = size;
	filepass_put(&message, &control, fds, n);
	CU_ASSERT_EQUAL(sendmsg(fd, &message, 0), 1);
	close(one);
	close(fd);
}

/* Messages with too few descriptors, and with too many, are dropped, and theirs are closed. */
static void only_a_whole_connection_is_taken(void)
{
	int got[PRESENCE_PASSED] = { -1, -1, -1 }, listener = presence_listen(name);
	int next = dup(0);

	close(next);
	CU_ASSERT_FATAL(listener >= 0);
	for (unsigned n = 1; n <= FILEPASS_MOST; n++) {
		pass(listener, n);
		CU_ASSERT_EQUAL(presence_passed(listener, got), n == PRESENCE_PASSED);
		for (unsigned i = 0; n == PRESENCE_PASSED && i < n; i++) {
			CU_ASSERT_EQUAL(fcntl(got[i], F_GETFD), FD_CLOEXEC);
			close(got[i]);
		}
		CU_ASSERT_EQUAL(fcntl(next, F_GETFD), -1);
	}
	CU_ASSERT_TRUE(presence_pass(name, (int[]){ 0, 1, 2 }));
	CU_ASSERT_TRUE(presence_passed(listener, got));
	for (unsigned i = 0; i < PRESENCE_PASSED; i++)
		close(got[i]);
	presence_unlisten(listener, name);
}

static void a_name_is_no_path(void)
{
	CU_ASSERT_EQUAL(presence_hold("../../tmp/x"), -1);
	CU_ASSERT_EQUAL(presence_listen("a/b"), -1);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(a_name_is_held_while_its_holder_lives),
		UNIT_TEST(who_stands_by_is_told),
		UNIT_TEST(a_confined_daemon_tells),
		UNIT_TEST(another_user_says_nothing),
		UNIT_TEST(who_cannot_look_is_in_doubt),
		UNIT_TEST(another_user_holds_nothing),
		UNIT_TEST(who_was_killed_leaves_nothing_for_ever),
		UNIT_TEST(only_a_whole_connection_is_taken),
		UNIT_TEST(a_name_is_no_path),
		UNIT_END
	};
	char id[PRESENCE_ID + 1];

	snprintf(id, sizeof id, "test%d", (int)getpid());
	presence_name(name, id, "here");
	return UNIT_RUN("presence", tests);
}
