/* devio.c - measures how fast a disk and a network are.  It runs in a guest; the other end of the
 * network runs natively.
 *
 *   devio disk DEVICE        sequential and random, past the page cache; "write 4k+fsync" is with a
 *                            flush after each block.  Overwrites the device's first 32 MiB.
 *   devio net ADDRESS PORT   against `devio serve`: one byte there and back, 8 MiB in and out
 *   devio serve PORTFILE     on 127.0.0.1; writes the port's number into the file, ends when killed
 *
 * Prints lines "NAME: VALUE UNIT".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, CHUNK = 64 << 10, DISK = 32 << 20, STREAM = 8 << 20, TURNS = 1000 };

static char buffer[256 << 10] __attribute__((aligned(4096)));

static void fail(const char *what)
{
	fprintf(stderr, "devio: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double mib_s(double bytes, double seconds) { return bytes / (1 << 20) / seconds; }

/* --- a disk --- */

static void transfer(int fd, ssize_t bytes, long at, int write_it)
{
	if ((write_it ? pwrite(fd, buffer, bytes, at) : pread(fd, buffer, bytes, at)) != bytes)
		fail("a transfer");
}

static double sequential(int fd, int write_it)
{
	double begin = now();

	for (long at = 0; at < DISK; at += CHUNK)
		transfer(fd, CHUNK, at, write_it);
	if (write_it && fdatasync(fd))
		fail("fdatasync");
	return mib_s(DISK, now() - begin);
}

/* Transfers blocks at random places.  Returns their number in a second. */
static double random_blocks(int fd, int write_it, int turns, int flush)
{
	unsigned seed = 1;
	double begin = now();

	for (int i = 0; i < turns; i++) {
		long at = (long)((seed = seed * 1103515245 + 12345) >> 8) % (DISK / BLOCK) * BLOCK;

		transfer(fd, BLOCK, at, write_it);
		if (flush && fdatasync(fd))
			fail("fdatasync");
	}
	return turns / (now() - begin);
}

static int test_disk(const char *device)
{
	int fd = open(device, O_RDWR | O_DIRECT);

	if (fd < 0)
		fail(device);
	memset(buffer, 0x5a, sizeof buffer);
	sequential(fd, 1);
	printf("disk write 64k: %.1f MiB/s\n", sequential(fd, 1));
	printf("disk read 64k: %.1f MiB/s\n", sequential(fd, 0));
	printf("disk random write 4k: %.0f /s\n", random_blocks(fd, 1, 2 * TURNS, 0));
	printf("disk random read 4k: %.0f /s\n", random_blocks(fd, 0, 2 * TURNS, 0));
	printf("disk write 4k+fsync: %.0f /s\n", random_blocks(fd, 1, TURNS / 4, 1));
	return 0;
}

/* --- the network --- */

static size_t least(long bytes)
{
	return bytes < (long)sizeof buffer ? (size_t)bytes : sizeof buffer;
}

static void take(int fd, long bytes)
{
	for (ssize_t n; bytes > 0; bytes -= n) {
		n = recv(fd, buffer, least(bytes), 0);
		if (n <= 0)
			fail("receiving");
	}
}

static void give(int fd, long bytes)
{
	for (ssize_t n; bytes > 0; bytes -= n) {
		n = send(fd, buffer, least(bytes), MSG_NOSIGNAL);
		if (n <= 0)
			fail("sending");
	}
}

/* Each byte that arrives is an order.  The answer to e(cho) is one byte; to d(own), STREAM bytes;
 * to u(p), one byte after STREAM bytes have arrived. */
static void serve_one(int fd)
{
	char order;

	while (recv(fd, &order, 1, 0) == 1) {
		if (order == 'u')
			take(fd, STREAM);
		give(fd, order == 'd' ? STREAM : 1);
	}
	close(fd);
}

static int serve(const char *port_file)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM, 0), peer, one = 1;
	FILE *file;

	if (fd < 0 || bind(fd, (void *)&at, sizeof at) || listen(fd, 8) ||
	    getsockname(fd, (void *)&at, &bytes) || !(file = fopen(port_file, "w")))
		fail("serving");
	fprintf(file, "%d\n", ntohs(at.sin_port));
	fclose(file);
	signal(SIGCHLD, SIG_IGN);
	while ((peer = accept(fd, NULL, NULL)) >= 0) {
		setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		if (!fork()) {
			serve_one(peer);
			exit(0);
		}
		close(peer);
	}
	return 1;
}

static int test_net(const char *address, const char *port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	double begin;

	inet_pton(AF_INET, address, &to.sin_addr);
	if (fd < 0 || connect(fd, (void *)&to, sizeof to))
		fail(address);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	begin = now();
	for (int i = 0; i < TURNS; i++) {
		buffer[0] = 'e';
		give(fd, 1);
		take(fd, 1);
	}
	printf("net there and back: %.0f us\n", (now() - begin) / TURNS * 1e6);
	for (const char *order = "du"; *order; order++) {
		begin = now();
		buffer[0] = *order;
		give(fd, 1);
		if (*order == 'u')
			give(fd, STREAM);
		take(fd, *order == 'd' ? STREAM : 1);
		printf("net %s: %.1f MiB/s\n", *order == 'd' ? "in" : "out",
		       mib_s(STREAM, now() - begin));
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "disk"))
		return test_disk(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "net"))
		return test_net(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	fprintf(stderr, "usage: devio disk DEVICE | net ADDRESS PORT | serve PORTFILE\n");
	return 2;
}
