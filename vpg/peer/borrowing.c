/* borrowing.c - see borrowing.h. */
#include "vpg/peer/borrowing.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/filepass.h"
#include "base/limits.h"
#include "vpg/wire/daemon_socket.h"

enum { CONNECTION = 3 };

static int refuse(const char *why)
{
	printf("no %s\n", why);
	return fflush(stdout) ? EXIT_VMP_FAILURE : 1;
}

/* Sends "done" together with a descriptor.  Returns 0, or -1 if standard output is no socket. */
static int hand_over(int fd)
{
	union filepass_control control;
	char done[] = "done\n";
	struct iovec iov = { done, sizeof done - 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	filepass_put(&message, &control, &fd, 1);
	return sendmsg(1, &message, MSG_NOSIGNAL) == sizeof done - 1 ? 0 : -1;
}

/* Waits until standard input ends, or the daemon does. */
static void hold(struct daemon_socket *s)
{
	struct pollfd both[] = { { 0, POLLIN, 0 }, { s->fd, POLLIN, 0 } };
	char bytes[64];

	printf("done\n");
	fflush(stdout);
	while (poll(both, 2, -1) >= 0 || errno == EINTR)
		if (both[1].revents || (both[0].revents && read(0, bytes, sizeof bytes) <= 0))
			break;
}

static void print_loan(const struct vpg_LOAN *m)
{
	printf("%s cpus=%" PRIu64 "%s%s\n", m->nick, m->processors,
	       *m->address ? " address=" : "", m->address);
}

int borrow_for_machine(const struct vpg_ASK_BORROW *wanted)
{
	struct daemon_socket s;
	struct why why;
	union vpg_any m;
	int type = -1, status = 0;

	if (daemon_socket_open(&s, &why))
		return refuse(why.line);
	if (!daemon_socket_send(&s, VPG_ASK_BORROW, wanted))
		while ((type = daemon_socket_next(&s, &m, true)) > 0 && type != VPG_DONE)
			if (type == VPG_LOAN)
				print_loan(&m.LOAN);
	if (type != VPG_DONE || m.DONE.status)
		status = refuse(type == VPG_DONE ? m.DONE.line : daemon_socket_failure(&s));
	else if (fflush(stdout))
		status = EXIT_VMP_FAILURE;
	else if (hand_over(s.fd))
		hold(&s);
	daemon_socket_close(&s);
	return status;
}

int borrow_give_back(const char *nick)
{
	struct daemon_socket s = { .fd = CONNECTION };
	const struct vpg_GIVE_BACK m = { nick };

	return daemon_socket_send(&s, VPG_GIVE_BACK, &m) ? EXIT_VMP_FAILURE : 0;
}
