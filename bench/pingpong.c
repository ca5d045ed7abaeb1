/* pingpong.c - measures the bare price of a page between two processes: a 32-byte request and a 4
 * KiB answer, over the same kind of socket that node daemons use (AF_UNIX, SOCK_SEQPACKET).  The
 * two are bound to processors as the hosts of a machine are.
 *
 *   pingpong [--tcp] [ROUND-TRIPS]
 *
 * --tcp: over TCP on the loopback device, both ends blocking.
 *
 * What pagebounce takes in addition is the price of the page protocol, of the faults and of the
 * virtual processors.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { REQUEST_BYTES = 32, PAGE = 4096 };

static void bind_to(long cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)(cpu % sysconf(_SC_NPROCESSORS_ONLN)), &set);
	sched_setaffinity(0, sizeof set, &set);
}

/* Reads all bytes, which TCP may bring in parts. */
static int read_whole(int fd, char *to, size_t bytes)
{
	size_t got = 0;

	while (got < bytes) {
		ssize_t n = read(fd, to + got, bytes - got);

		if (n <= 0)
			return -1;
		got += (size_t)n;
	}
	return 0;
}

/* Like socketpair(), over TCP. */
static int tcp_pair(int fd[2])
{
	struct sockaddr_in here = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof here;
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || fd[0] < 0 || bind(listener, (struct sockaddr *)&here, bytes) ||
	    listen(listener, 1) || getsockname(listener, (struct sockaddr *)&here, &bytes) ||
	    connect(fd[0], (struct sockaddr *)&here, bytes))
		return -1;
	fd[1] = accept(listener, NULL, NULL);
	close(listener);
	return fd[1] < 0 || setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) ||
	       setsockopt(fd[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) ? -1 : 0;
}

static int answer(int fd, long n)
{
	static char request[REQUEST_BYTES], page[PAGE];

	for (long i = 0; i < n; i++)
		if (read_whole(fd, request, sizeof request) ||
		    write(fd, page, sizeof page) != sizeof page)
			return 1;
	return 0;
}

static int ask(int fd, long n)
{
	static char request[REQUEST_BYTES], page[PAGE];

	for (long i = 0; i < n; i++)
		if (write(fd, request, sizeof request) != sizeof request ||
		    read_whole(fd, page, sizeof page))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	int tcp = argc > 1 && !strcmp(argv[1], "--tcp");
	long n = argc > 1 + tcp ? atol(argv[1 + tcp]) : 20000;
	struct timespec start, end;
	int fd[2], failed, status;

	if (n < 1 || (tcp ? tcp_pair(fd) : socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd)) < 0) {
		fprintf(stderr, "usage: pingpong [--tcp] [ROUND-TRIPS]\n");
		return 2;
	}
	if (fork() == 0) {
		bind_to(1);
		_exit(answer(fd[1], n));
	}
	bind_to(0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	failed = ask(fd[0], n);
	clock_gettime(CLOCK_MONOTONIC, &end);
	wait(&status);
	printf("%.0f ns per page\n",
	       ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) /
		       (double)n);
	return failed || status;
}
