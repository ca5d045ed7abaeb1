/* pipes.c - pipes and local sockets: complete contents, end of file, SIGPIPE, poll, non-blocking,
 * descriptors that are passed. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "tests/guest/check.h"

enum { BYTES = 1 << 20 };

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 24;
}

/* Writes BYTES pseudo-random bytes in pieces of odd sizes. */
static void pour(int fd)
{
	static char bytes[BYTES];
	uint32_t seed = 1;
	size_t done = 0;

	for (int i = 0; i < BYTES; i++)
		bytes[i] = (char)next_random(&seed);
	for (size_t piece = 1; done < BYTES; piece = piece * 3 % 9973 + 1) {
		ssize_t n = write(fd, bytes + done, piece < BYTES - done ? piece : BYTES - done);

		if (n <= 0)
			_exit(1);
		done += (size_t)n;
	}
	_exit(0);
}

static bool drain_matches(int fd)
{
	static unsigned char bytes[5000];
	uint32_t seed = 1;
	size_t total = 0;
	ssize_t n;

	while ((n = read(fd, bytes, sizeof bytes)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (bytes[i] != next_random(&seed))
				return false;
		total += (size_t)n;
	}
	return n == 0 && total == BYTES;
}

static bool passes_through(int from, int to)
{
	pid_t pid = fork();
	int status;
	bool good;

	if (pid == 0) {
		close(from);
		pour(to);
	}
	close(to);
	good = drain_matches(from);
	close(from);
	waitpid(pid, &status, 0);
	return good && status == 0;
}

static void test_bytes(void)
{
	int fd[2];

	expect("a pipe", pipe(fd) == 0 && passes_through(fd[0], fd[1]));
	expect("a socket pair",
	       socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0 && passes_through(fd[0], fd[1]));
}

static void test_loopback(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof address;
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0),
	    peer;

	expect("a TCP server on the loopback",
	       bind(server, (struct sockaddr *)&address, sizeof address) == 0 &&
		       listen(server, 1) == 0 &&
		       getsockname(server, (struct sockaddr *)&address, &bytes) == 0);
	expect("a TCP client", connect(client, (struct sockaddr *)&address, sizeof address) == 0);
	peer = accept(server, NULL, NULL);
	expect("TCP over the loopback", peer >= 0 && passes_through(peer, client));
	close(server);
}

static void test_ends(void)
{
	int fd[2];
	char byte;

	signal(SIGPIPE, SIG_IGN);
	if (pipe(fd) < 0)
		return;
	close(fd[1]);
	expect("a pipe without a writer is at its end", read(fd[0], &byte, 1) == 0);
	close(fd[0]);
	if (pipe(fd) < 0)
		return;
	close(fd[0]);
	expect("a pipe without a reader is broken", write(fd[1], "x", 1) < 0 && errno == EPIPE);
	close(fd[1]);
}

static void test_nonblocking(void)
{
	int fd[2];
	char byte = 0;
	size_t room = 0;
	struct pollfd p;

	if (pipe2(fd, O_NONBLOCK) < 0)
		return;
	expect("an empty pipe would block", read(fd[0], &byte, 1) < 0 && errno == EAGAIN);
	while (write(fd[1], &byte, 1) == 1)
		room++;
	expect("a full pipe would block, after 64 KiB", errno == EAGAIN && room == 65536);
	p = (struct pollfd){ fd[0], POLLIN, 0 };
	expect("poll sees the bytes", poll(&p, 1, 1000) == 1 && p.revents == POLLIN);
	close(fd[0]);
	close(fd[1]);
}

static void test_events(void)
{
	int event = eventfd(0, 0), poller = epoll_create1(0);
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = 77 }, got = { 0 };
	uint64_t value = 5;
	pid_t pid;

	epoll_ctl(poller, EPOLL_CTL_ADD, event, &e);
	expect("nothing has happened yet", epoll_wait(poller, &got, 1, 10) == 0);
	pid = fork();
	if (pid == 0) {
		usleep(20000);
		_exit(write(event, &value, sizeof value) != sizeof value);
	}
	expect("epoll wakes on an event",
	       epoll_wait(poller, &got, 1, 10000) == 1 && got.data.u32 == 77);
	expect("the event's count",
	       read(event, &value, sizeof value) == sizeof value && value == 5);
	waitpid(pid, NULL, 0);
}

/* Passes one byte back and forth between two processes. */
static void test_round_trips(void)
{
	enum { TRIPS = 500 };
	int there[2], back[2], done = 0;
	char byte = 0;
	pid_t pid;

	if (pipe(there) < 0 || pipe(back) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < TRIPS; i++)
			if (read(there[0], &byte, 1) != 1 || byte++ != (char)i ||
			    write(back[1], &byte, 1) != 1)
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < TRIPS; i++) {
		byte = (char)i;
		done += write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1 &&
			byte == (char)(i + 1);
	}
	expect("five hundred round trips between two processes", done == TRIPS);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	test_bytes();
	test_loopback();
	test_ends();
	test_nonblocking();
	test_events();
	test_round_trips();
	return check_result();
}
