/* pingpong.c - the bare price of a page between two processes: a 32-byte request, a 4 KiB answer, over the same kind of
 * socket that node daemons use (AF_UNIX, SOCK_SEQPACKET), the two bound to processors as the hosts of a machine are.
 *
 *   pingpong [ROUND-TRIPS]
 *
 * What pagebounce shows above this is the price of the page protocol, the faults and the virtual processors.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
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

static int answer(int fd, long n)
{
	static char request[REQUEST_BYTES], page[PAGE];

	for (long i = 0; i < n; i++)
		if (read(fd, request, sizeof request) != sizeof request || write(fd, page, sizeof page) != sizeof page)
			return 1;
	return 0;
}

static int ask(int fd, long n)
{
	static char request[REQUEST_BYTES], page[PAGE];

	for (long i = 0; i < n; i++)
		if (write(fd, request, sizeof request) != sizeof request || read(fd, page, sizeof page) != sizeof page)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 20000;
	struct timespec start, end;
	int fd[2], failed, status;

	if (n < 1 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd) < 0) {
		fprintf(stderr, "usage: pingpong [ROUND-TRIPS]\n");
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
	printf("%.0f ns per page\n", ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / (double)n);
	return failed || status;
}
