/* phnx_ssh.c - links through ssh, which this program plays itself: it connects, it fails with many
 * reasons, and an application starts it elsewhere.  A part of phnx_net. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/phnx_net.h"

static int role_ssh(int role)
{
	start(role ? 0 : 1, 0, NULL);
	if (role) {
		setenv("PHNX_SSH", "/proc/self/exe", 1);
		ph_add_port_ssh("gateway", base_port + 1, "user");
	}
	return ask_and_answer(role);
}

/* Sets the text with which ssh fails from now on; "": it connects. */
static int let_ssh_say(const char *text)
{
	char temp[64];

	snprintf(temp, sizeof temp, "%s/ssh-says.new", folder);
	FILE *f = fopen(temp, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0 &&
	      rename(temp, getenv("PHNX_TEST_SAYS")) == 0);
	return 0;
}

static int ssh_complains(int nth, const char *says, const char *want)
{
	CHECK(let_ssh_say(says) == 0);
	for (int i = 0; i < PATIENCE / 10000 && errors[-PH_EHOST] < nth; i++)
		ph_timed_recv(PH_MSG_ANY_TAG, 10000);
	if (errors[-PH_EHOST] != nth || strcmp(told, want))
		printf("\ntold %d times, at last '%s', but not '%s'\n", errors[-PH_EHOST], told,
		       want);
	CHECK(errors[-PH_EHOST] == nth && !strcmp(told, want));
	return 0;
}

/* Writes more than a pipe holds, a line that is too long, and then the reason. */
static char *much_said(const char *why)
{
	enum { LINES = 5000, LONG = 1000 };
	char *text = calloc(1, 40 * LINES + LONG + 100), *end = text;

	for (int i = 0; i < LINES; i++)
		end += sprintf(end, "debug1: that is line %d of many\r\n", i);
	memset(end, 'x', LONG);
	sprintf(end + LONG, "\r\n%s\r\nstdio forwarding failed\r\n", why);
	return text;
}

/* Returns whether ssh has written nothing there; shows what it has. */
static bool is_silent(const char *file)
{
	FILE *f = fopen(file, "r");
	char line[400];
	bool silent = f != NULL;

	while (f && fgets(line, sizeof line, f)) {
		silent &= !strstr(line, "ssh") && !strstr(line, "gateway") &&
			  !strstr(line, "debug1") && !strstr(line, "yyy");
		fprintf(stderr, "on standard error: %s", line);
	}
	if (f)
		fclose(f);
	return silent;
}

static int role_ssh_fails(int role)
{
	static const char unknown[] =
		"ssh: Could not resolve hostname gateway: Name or service not known";
	char says[64], silence[64], line[300] = "", want[300] = "ssh to gateway: ";

	snprintf(says, sizeof says, "%s/ssh-says", folder);
	snprintf(silence, sizeof silence, "%s/silence", folder);
	setenv("PHNX_TEST_SAYS", says, 1);
	setenv("PHNX_SSH", "/proc/self/exe", 1);
	start(role ? 0 : 1, 0, NULL);
	if (role == 1) {
		char *much = much_said("user@gateway: Permission denied (publickey).");
		int terminal = dup(2);
		CHECK(freopen(silence, "w", stderr) && let_ssh_say(unknown) == 0);
		ph_add_port_ssh("gateway", base_port + 1, "user");
		CHECK(ssh_complains(1, unknown, strcat(strcpy(line, want), unknown)) == 0);
		/* it is tried again and again, and fails for the same reason */
		ph_timed_recv(PH_MSG_ANY_TAG, 1000000);
		CHECK(ssh_complains(
			      2, much,
			      "ssh to gateway: user@gateway: Permission denied (publickey).") == 0);
		memset(line, 'y', sizeof line - 1);
		memset(want + strlen(want), 'y', 200);
		CHECK(ssh_complains(3, line, want) == 0);
		CHECK(ssh_complains(4, "\n", "ssh to gateway: status 255") == 0);
		CHECK(dup2(terminal, 2) == 2 && is_silent(silence));
		free(much);
		CHECK(let_ssh_say("") == 0);
	}
	return ask_and_answer(role);
}

/* Starts ssh as an application does that runs it elsewhere: a process between the library and ssh
 * reports its status. */
static int start_elsewhere(void *arg, const char *login, int port, int carry, int say)
{
	char target[32];
	int ends[2], status;
	pid_t between;

	atomic_fetch_add((atomic_int *)arg, 1);
	if (strcmp(login, "user@gateway") || port != base_port + 1)
		return -EINVAL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	snprintf(target, sizeof target, "127.0.0.1:%d", port);
	between = fork();
	if (between == 0) {
		pid_t ssh = fork();

		if (ssh == 0) {
			dup2(carry, 0), dup2(carry, 1), dup2(say, 2);
			execl("/proc/self/exe", "ssh", "-o", "x", "-W", target, NULL);
			_exit(1);
		}
		close(carry), close(say), close(ends[0]);
		(void)!read(ends[1], &status, 1);
		kill(ssh, SIGTERM);
		waitpid(ssh, &status, 0);
		(void)!write(ends[1], &status, sizeof status);
		_exit(0);
	}
	close(ends[1]);
	return ends[0];
}

static int start_nowhere(void *arg, const char *login, int port, int carry, int say)
{
	(void)arg, (void)login, (void)port, (void)carry, (void)say;
	return -EAGAIN;
}

/* The application starts ssh: not at all, with a reason; so that it fails; so that it connects. */
static int role_ssh_elsewhere(int role)
{
	char says[64];
	atomic_int calls = 0;	/* the thread of the library counts them */

	snprintf(says, sizeof says, "%s/ssh-says", folder);
	setenv("PHNX_TEST_SAYS", says, 1);
	start(role ? 0 : 1, 0, NULL);
	if (role) {
		CHECK(let_ssh_say("ssh: no route") == 0);
		ph_set_ssh_starter(start_nowhere, NULL);
		ph_add_port_ssh("gateway", base_port + 1, "user");
		for (int i = 0; i < PATIENCE / 10000 && !errors[-PH_ESYSTEM]; i++)
			ph_timed_recv(PH_MSG_ANY_TAG, 10000);
		CHECK(strstr(told, "cannot run ssh") && strstr(told, strerror(EAGAIN)));
		ph_set_ssh_starter(start_elsewhere, &calls);
		CHECK(ssh_complains(1, "ssh: no route", "ssh to gateway: ssh: no route") == 0);
		CHECK(calls > 0 && let_ssh_say("") == 0);
	}
	return ask_and_answer(role);
}

static void test_ssh(void)
{
	run_roles(role_ssh, 2);
	run_roles(role_ssh_fails, 2);
	run_roles(role_ssh_elsewhere, 2);
}

/* Fails as ssh does. */
static bool complains_as_ssh(void)
{
	FILE *f = getenv("PHNX_TEST_SAYS") ? fopen(getenv("PHNX_TEST_SAYS"), "r") : NULL;
	bool any = false;

	for (int c; f && (c = getc(f)) != EOF; any = true)
		putc(c, stderr);
	return any;
}

int play_ssh(char **argv)
{
	const char *target = NULL;
	struct sockaddr_in in = { .sin_family = AF_INET };
	char buf[65536];

	if (complains_as_ssh())
		return 255;
	for (; *argv; argv++)
		if (!strcmp(*argv, "-W"))
			target = argv[1];
	in.sin_port = htons((uint16_t)atoi(strchr(target, ':') + 1));
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int s = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(s, (struct sockaddr *)&in, sizeof in))
		return 255;
	struct pollfd p[2] = { { 0, POLLIN, 0 }, { s, POLLIN, 0 } };
	while (poll(p, 2, -1) > 0)
		for (int i = 0; i < 2; i++) {
			if (!p[i].revents)
				continue;
			ssize_t n = read(p[i].fd, buf, sizeof buf), at = 0, k;
			if (n <= 0)
				return 0;
			for (; at < n; at += k)
				if ((k = write(i ? 1 : s, buf + at, (size_t)(n - at))) < 0)
					return 0;
		}
	return 0;
}

const struct unit_test tests_of_ssh[] = {
	{ "SSH tunnel", test_ssh },
	UNIT_END
};
