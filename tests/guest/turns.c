/* turns.c - two processes on different hosts that take turns end up on one processor
 * (guest-patches/22-wake-together.patch).
 *
 *   turns ROUNDS
 *
 * Each begins bound to a processor of its own, and is let go then.  A message goes to and fro, each
 * with the sender's processor.  Prints whether most of them came from the receiver's.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void allow(unsigned first, unsigned last)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned cpu = first; cpu <= last; cpu++)
		CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		fail("sched_setaffinity");
}

static void say(int fd)
{
	int cpu = sched_getcpu();

	if (send(fd, &cpu, sizeof cpu, 0) != sizeof cpu)
		fail("send");
}

static int hear(int fd)
{
	int cpu;

	if (recv(fd, &cpu, sizeof cpu, 0) != sizeof cpu)
		fail("recv");
	return cpu;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
	unsigned together = 0;
	int fd[2], status;
	pid_t child;

	if (!rounds || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		fprintf(stderr, "usage: turns ROUNDS, on two processors\n");
		return 2;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd))
		fail("socketpair");
	child = fork();
	if (child < 0)
		fail("fork");
	allow(!child, !child);
	if (!child) {
		hear(fd[1]); /* both are where they were bound to */
		say(fd[1]);
		allow(0, 1);
		for (unsigned i = 0; i < rounds; i++) {
			hear(fd[1]);
			say(fd[1]);
		}
		return 0;
	}
	say(fd[0]);
	if (hear(fd[0]) == sched_getcpu()) {
		printf("they begin on one processor\n");
		return 1;
	}
	allow(0, 1);
	for (unsigned i = 0; i < rounds; i++) {
		say(fd[0]);
		together += hear(fd[0]) == sched_getcpu();
	}
	printf("%s\n", together > rounds / 2 ? "together" : "apart");
	return waitpid(child, &status, 0) == child && !status ? 0 : 1;
}
