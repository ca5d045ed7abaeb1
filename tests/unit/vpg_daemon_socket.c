/* A shell's connection to its daemon, and why it breaks: vpg/wire/daemon_socket.c. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "vpg/wire/daemon_socket.h"

static char folder[] = "/tmp/vpg-socket-XXXXXX";

static void say(int fd, enum vpg_type type, const void *fields)
{
	unsigned char frame[256];
	size_t n = message_put(type, fields, frame, sizeof frame);

	if (send(fd, frame, n, MSG_NOSIGNAL) != (ssize_t)n)
		_exit(1);
}

/* A daemon that knows one question alone; whoever sends something else is cut off.  To ASK_STOP it
 * answers what no version sends. */
static void serve_one(int fd)
{
	const struct vpg_SAID row = { "A: process 1" };
	const struct vpg_DONE done = { 0, "" };
	unsigned char frame[256];
	union vpg_any m;
	ssize_t n = recv(fd, frame, sizeof frame, 0);
	int type = n > 0 ? message_get(frame, (size_t)n, &m) : -1;

	if (type == VPG_ASK_STATUS) {
		say(fd, VPG_SAID, &row);
		say(fd, VPG_DONE, &done);
	} else if (type == VPG_ASK_STOP) {
		send(fd, "\1\0\0\0\377", 5, MSG_NOSIGNAL);
		while (recv(fd, frame, sizeof frame, 0) > 0)
			;
	}
	close(fd);
}

/* Starts that daemon.  Returns its process; it listens already. */
static pid_t start_daemon(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	pid_t pid;

	snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", folder);
	unlink(at.sun_path);
	CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	CU_ASSERT_EQUAL(listen(fd, 8), 0);
	pid = fork();
	if (pid == 0)
		for (;;)
			serve_one(accept(fd, NULL, NULL));
	close(fd);
	return pid;
}

static void stop_daemon(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A shell attaches a pipe, which this daemon does not know. */
static void test_an_old_daemon(void)
{
	pid_t pid = start_daemon();
	struct daemon_socket s;
	struct why why;
	union vpg_any m;

	CU_ASSERT_EQUAL(daemon_socket_open(&s, &why), 0);
	CU_ASSERT_EQUAL(daemon_socket_attach(&s, 1, 0), 0);
	CU_ASSERT_EQUAL(daemon_socket_next(&s, &m, true), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(daemon_socket_failure(&s), "another version of vmp"));
	stop_daemon(pid);
	CU_ASSERT_STRING_EQUAL(daemon_socket_failure(&s), "the daemon has ended");
	daemon_socket_close(&s);
}

static void test_a_newer_daemon(void)
{
	const struct vpg_ASK_STOP question = { 0 };
	pid_t pid = start_daemon();
	struct daemon_socket s;
	struct why why;
	union vpg_any m;

	CU_ASSERT_EQUAL(daemon_socket_open(&s, &why), 0);
	CU_ASSERT_EQUAL(daemon_socket_send(&s, VPG_ASK_STOP, &question), 0);
	CU_ASSERT_EQUAL(daemon_socket_next(&s, &m, true), -1);
	CU_ASSERT_PTR_NOT_NULL(strstr(daemon_socket_failure(&s), "another version of vmp"));
	daemon_socket_close(&s);
	stop_daemon(pid);
}

static void test_no_daemon(void)
{
	struct daemon_socket s;
	struct why why;

	CU_ASSERT_EQUAL(daemon_socket_open(&s, &why), -1);
	CU_ASSERT_STRING_EQUAL(why.line, "no daemon runs here: vmp peer start");
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "no daemon runs", test_no_daemon },
		{ "a daemon that does not know a message", test_an_old_daemon },
		{ "a daemon whose message is not known", test_a_newer_daemon },
		UNIT_END
	};
	char path[64];
	int status;

	if (!mkdtemp(folder) || setenv("VMP_PEER_DIR", folder, 1))
		return 1;
	status = UNIT_RUN("vpg_daemon_socket", tests);
	snprintf(path, sizeof path, "%s/socket", folder);
	unlink(path);
	rmdir(folder);
	return status;
}
