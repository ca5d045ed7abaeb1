/* cutter.c - breaks the established TCP connections of some computers of tests/netns, one computer
 * after the other, as a firewall does that has lost its state.
 *
 *   cutter MS FOLDER HOST...
 *
 * Every MS milliseconds the next HOST (a network namespace of /run/netns) loses its connections,
 * until there is a file FOLDER/enough; while there is FOLDER/rest, none is broken.  Then it prints
 * how many cuts there were, in how many milliseconds, and how many sockets were destroyed.  `ss -K`
 * does the same (SOCK_DESTROY), but to start it takes longer than MS on a computer that has other
 * work.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 16, MOST_SOCKETS = 256 };

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 request;
};

static void fail(const char *what)
{
	fprintf(stderr, "cutter: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static bool exists(const char *folder, const char *name)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

/* Returns a socket in the computer's namespace that asks for its sockets. */
static int open_diagnosis(const char *host)
{
	char path[256];
	int space, fd;

	snprintf(path, sizeof path, "/run/netns/%s", host);
	space = open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0 || setns(space, CLONE_NEWNET))
		fail(host);
	close(space);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0)
		fail("socket");
	return fd;
}

static void ask(int fd, struct question *q, int type, int flags)
{
	q->head = (struct nlmsghdr){ .nlmsg_len = sizeof *q,
				     .nlmsg_type = (uint16_t)type,
				     .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) };
	if (send(fd, q, sizeof *q, 0) != sizeof *q)
		fail("send");
}

/* Writes the identities of the established connections of one family.  Returns how many. */
static unsigned list(int fd, int family, struct inet_diag_sockid *ids)
{
	struct question q = { .request = { .sdiag_family = (uint8_t)family,
					   .sdiag_protocol = IPPROTO_TCP,
					   .idiag_states = 1 << TCP_ESTABLISHED } };
	_Alignas(struct nlmsghdr) char answer[32768];
	unsigned n = 0;

	ask(fd, &q, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP);
	for (;;) {
		int len = (int)recv(fd, answer, sizeof answer, 0);
		if (len < 0)
			fail("recv");
		for (struct nlmsghdr *h = (struct nlmsghdr *)answer; NLMSG_OK(h, (unsigned)len);
		     h = NLMSG_NEXT(h, len)) {
			if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
				return n;
			if (n < MOST_SOCKETS)
				ids[n++] = ((struct inet_diag_msg *)NLMSG_DATA(h))->id;
		}
	}
}

/* Destroys one connection.  Returns whether it was there still. */
static bool destroy(int fd, int family, const struct inet_diag_sockid *id)
{
	struct question q = { .request = { .sdiag_family = (uint8_t)family,
					   .sdiag_protocol = IPPROTO_TCP,
					   .idiag_states = 1 << TCP_ESTABLISHED, .id = *id } };
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[512];
	} answer;

	ask(fd, &q, SOCK_DESTROY, NLM_F_ACK);
	return recv(fd, &answer, sizeof answer, 0) > 0 && answer.head.nlmsg_type == NLMSG_ERROR &&
	       answer.error.error == 0;
}

static unsigned cut(int fd)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct inet_diag_sockid ids[MOST_SOCKETS];
	unsigned destroyed = 0;

	for (int f = 0; f < 2; f++) {
		unsigned n = list(fd, families[f], ids);
		for (unsigned i = 0; i < n; i++)
			destroyed += destroy(fd, families[f], ids + i);
	}
	return destroyed;
}

int main(int argc, char **argv)
{
	int64_t every, begin = now_us(), next = begin;
	unsigned long cuts = 0, destroyed = 0;
	int fds[MOST], hosts = argc - 3;

	if (hosts < 1 || hosts > MOST || (every = atoll(argv[1]) * 1000) <= 0) {
		fprintf(stderr, "usage: cutter MS FOLDER HOST...\n");
		return 2;
	}
	for (int i = 0; i < hosts; i++)
		fds[i] = open_diagnosis(argv[3 + i]);
	while (!exists(argv[2], "enough")) {
		next += every;
		int64_t rest = next - now_us();
		if (rest > 0)
			usleep((useconds_t)rest);
		else
			next -= rest;	/* it is late: what is missed is not made up for */
		if (!exists(argv[2], "rest"))
			destroyed += cut(fds[cuts++ % (unsigned)hosts]);
	}
	printf("%lu %lld %lu\n", cuts, (long long)(now_us() - begin) / 1000, destroyed);
	return 0;
}
