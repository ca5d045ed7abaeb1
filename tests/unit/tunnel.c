/* tunnel.c - tests of vmp-tunnel (vmm/shared/sshtunnel.h).  This program stands in for ssh. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/limits.h"
#include "base/types.h"
#include "tests/unit/unit.h"
#include "vmm/shared/sshtunnel.h"

static char self[4096], program[4096];

/* ---- the other end of a door ---- */

struct door { int fd; pid_t pid; };

static struct door open_door(void)
{
	struct door d;
	char number[16];
	int ends[2];

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	snprintf(number, sizeof number, "%d", ends[1]);
	d.pid = fork();
	if (d.pid == 0) {
		execl(program, program, number, NULL);
		_exit(1);
	}
	d.fd = ends[0];
	close(ends[1]);
	return d;
}

/* Returns the exit status of vmp-tunnel when its daemon is gone. */
static int close_door(struct door d)
{
	int status;

	close(d.fd);
	CU_ASSERT_EQUAL(waitpid(d.pid, &status, 0), d.pid);
	return status;
}

struct asked { int carry, say, control; };

/* Sends a request of these bytes with `n` descriptors. */
static struct asked ask(struct door d, const void *request, size_t bytes, unsigned n)
{
	int carry[2], say[2], control[2], fd[5];
	union {
		char bytes[CMSG_SPACE(sizeof fd)];
		struct cmsghdr aligned;
	} room = { { 0 } };
	struct iovec iov = { (void *)request, bytes };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &room,
				  .msg_controllen = CMSG_SPACE(n * sizeof(int)) };

	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, carry) &&
			!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) &&
			!pipe2(say, O_CLOEXEC));
	fd[0] = carry[1], fd[1] = say[1], fd[2] = control[1], fd[3] = fd[4] = control[1];
	if (n) {
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fd, n * sizeof(int));
	} else {
		message.msg_control = NULL, message.msg_controllen = 0;
	}
	CU_ASSERT_EQUAL(sendmsg(d.fd, &message, MSG_NOSIGNAL), (ssize_t)bytes);
	close(carry[1]), close(say[1]), close(control[1]);
	return (struct asked){ carry[0], say[0], control[0] };
}

static struct asked ask_for(struct door d, const char *login, int port)
{
	struct tunnel_request r = { .port = port };

	snprintf(r.login, sizeof r.login, "%s", login);
	return ask(d, &r, sizeof r, TUNNEL_DESCRIPTORS);
}

/* Reads to the end. */
static void read_all(int fd, char *text, size_t room)
{
	size_t n = 0;
	ssize_t got;

	while (n < room - 1 && (got = read(fd, text + n, room - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = 0;
	close(fd);
}

/* Returns ssh's status; -1: vmp-tunnel has said none. */
static int status_of(int control)
{
	int status;

	if (recv(control, &status, sizeof status, MSG_WAITALL) != sizeof status)
		status = -1;
	close(control);
	return status;
}

/* ---- the tests ---- */

static void ssh_gets_its_command_line(void)
{
	struct door d = open_door();
	struct asked a = ask_for(d, "user@host", 28100);
	char text[400];

	read_all(a.say, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "-o BatchMode=yes -o ConnectTimeout=10 -W 127.0.0.1:28100 "
			       "-- user@host\n");
	CU_ASSERT_EQUAL(WEXITSTATUS(status_of(a.control)), 7);
	close(a.carry);
	CU_ASSERT_EQUAL(close_door(d), 0);
}

static void connections_are_shared(void)
{
	struct door d;
	struct asked a;
	char text[400];

	setenv("PHNX_SSH_CONTROL", "/run/ssh-%n", 1);
	d = open_door();
	a = ask_for(d, "host", 1024);
	read_all(a.say, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "-o BatchMode=yes -o ConnectTimeout=10 -W 127.0.0.1:1024 "
			       "-o ControlPath=/run/ssh-%n -o ControlMaster=no -- host\n");
	status_of(a.control);
	close(a.carry);
	CU_ASSERT_EQUAL(close_door(d), 0);
	unsetenv("PHNX_SSH_CONTROL");
}

/* Whatever else is asked for, no ssh is started, and the next good request is served. */
static void other_requests_are_refused(void)
{
	static const struct { const char *login; int port; } rows[] = {
		{ "host", 22 },	    { "host", 1023 },	 { "host", 0 },	      { "host", -1 },
		{ "host", 65536 },  { "", 28100 },	 { "-oProxyCommand=x", 28100 },
		{ "a b", 28100 },   { "a\nb", 28100 },	 { "a\x7f", 28100 },
		{ "a;b", 28100 },   { "$(b)@a", 28100 }, { "a`b`", 28100 },
	};
	struct door d = open_door();
	struct tunnel_request r = { .port = 28100 };
	struct asked a;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		a = ask_for(d, rows[i].login, rows[i].port);
		CU_ASSERT_EQUAL(status_of(a.control), -1);
		close(a.carry), close(a.say);
	}
	memset(r.login, 'x', sizeof r.login); /* without an end */
	a = ask(d, &r, sizeof r, TUNNEL_DESCRIPTORS);
	CU_ASSERT_EQUAL(status_of(a.control), -1);
	close(a.carry), close(a.say);
	strcpy(r.login, "host");
	for (unsigned n = 0; n <= 5; n++) {
		if (n == TUNNEL_DESCRIPTORS)
			continue;
		a = ask(d, &r, sizeof r, n);
		CU_ASSERT_EQUAL(status_of(a.control), -1);
		close(a.carry), close(a.say);
	}
	a = ask(d, &r, sizeof r - 1, TUNNEL_DESCRIPTORS);
	CU_ASSERT_EQUAL(status_of(a.control), -1);
	close(a.carry), close(a.say);
	a = ask(d, &r, sizeof r, TUNNEL_DESCRIPTORS);
	CU_ASSERT_EQUAL(WEXITSTATUS(status_of(a.control)), 7);
	close(a.carry), close(a.say);
	CU_ASSERT_EQUAL(close_door(d), 0);
}

/* A tunnel carries bytes; the daemon ends it, also if its process was stopped. */
static void daemon_ends_ssh(void)
{
	static const char *const logins[] = { "carries", "stops" };
	struct door d = open_door();
	char c = 0;

	for (unsigned i = 0; i < ARRAY_LEN(logins); i++) {
		struct asked a = ask_for(d, logins[i], 28100);

		CU_ASSERT(write(a.carry, "x", 1) == 1 && read(a.carry, &c, 1) == 1 && c == 'x');
		shutdown(a.control, SHUT_WR);
		CU_ASSERT_EQUAL(WTERMSIG(status_of(a.control)), SIGTERM);
		close(a.carry), close(a.say);
	}
	CU_ASSERT_EQUAL(close_door(d), 0);
}

/* When the daemon is gone, every ssh ends: the other end of its input is closed. */
static void ssh_ends_with_the_daemon(void)
{
	struct door d = open_door();
	struct asked a = ask_for(d, "carries", 28100);
	char c = 0;

	CU_ASSERT(write(a.carry, "x", 1) == 1 && read(a.carry, &c, 1) == 1);
	CU_ASSERT_EQUAL(close_door(d), 0);
	CU_ASSERT_EQUAL(read(a.carry, &c, 1), 0);
	close(a.carry), close(a.say), close(a.control);
}

static void wrong_arguments(void)
{
	static char *const rows[][4] = {
		{ program }, { program, "" }, { program, "x" }, { program, "-1" },
		{ program, "3", "4" }, { program, "99999999999" },
	};
	int status;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		pid_t pid = fork();

		if (pid == 0) {
			dup2(open("/dev/null", O_WRONLY), 2);
			execv(program, rows[i]);
			_exit(1);
		}
		CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
		CU_ASSERT_EQUAL(WEXITSTATUS(status), EXIT_VMP_FAILURE);
	}
}

/* ---- the stand-in for ssh ---- */

static int play_ssh(int argc, char **argv)
{
	const char *login = argv[argc - 1];
	char c;

	if (strcmp(login, "carries") && strcmp(login, "stops")) {
		for (int i = 1; i < argc; i++)
			fprintf(stderr, "%s%c", argv[i], i == argc - 1 ? '\n' : ' ');
		return 7;
	}
	while (read(0, &c, 1) == 1) {
		if (write(1, &c, 1) != 1)
			return 1;
		if (!strcmp(login, "stops"))
			raise(SIGSTOP);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(ssh_gets_its_command_line),
		UNIT_TEST(connections_are_shared),
		UNIT_TEST(other_requests_are_refused),
		UNIT_TEST(daemon_ends_ssh),
		UNIT_TEST(ssh_ends_with_the_daemon),
		UNIT_TEST(wrong_arguments),
		UNIT_END
	};
	ssize_t n;

	if (argc > 1)
		return play_ssh(argc, argv);
	n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n <= 0 || beside_path("../../vmp-tunnel", program, sizeof program))
		return 1;
	setenv("PHNX_SSH", self, 1);
	unsetenv("PHNX_SSH_CONTROL");
	return UNIT_RUN("tunnel", tests);
}
