/* tamper.c - forwards TCP connections, and tampers with what they carry when it is told to.
 *
 * Usage: tamper PORT HOST FILE     to HOST, port PORT and also PORT + 1, which it listens on itself
 *
 * If FILE is there, it is removed and its first letter says what happens to the next large piece
 * that is forwarded to HOST: (f)lip one bit, (d)rop the piece, (s)wap its halves, (r)epeat it.
 */
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LARGE = 8192 };

static int reach(const char *host, const char *port, int listens)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM,
				  .ai_flags = listens ? AI_PASSIVE : 0 }, *to;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || getaddrinfo(host, port, &hints, &to))
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (listens ? bind(fd, to->ai_addr, to->ai_addrlen) || listen(fd, 16)
		    : connect(fd, to->ai_addr, to->ai_addrlen))
		return -1;
	freeaddrinfo(to);
	return fd;
}

static int put(int fd, const unsigned char *bytes, size_t n)
{
	for (ssize_t done; n; bytes += done, n -= (size_t)done)
		if ((done = write(fd, bytes, n)) <= 0)
			return -1;
	return 0;
}

/* Returns the letter of the deed that is asked for; 0: none is. */
static int next_deed(const char *file)
{
	FILE *f = fopen(file, "r");
	int deed = f ? getc(f) : EOF;

	if (f)
		fclose(f);
	return deed == EOF || unlink(file) ? 0 : deed;
}

static int pass(int from, int to, const char *file)
{
	static unsigned char bytes[64 << 10];
	ssize_t got = read(from, bytes, sizeof bytes);
	size_t n = got > 0 ? (size_t)got : 0;
	int deed = file && n >= LARGE ? next_deed(file) : 0;

	if (!n || deed == 'd')
		return n ? 0 : -1;
	if (deed == 'f')
		bytes[n / 2] ^= 1;
	if (deed == 's')
		return put(to, bytes + n / 2, n - n / 2) || put(to, bytes, n / 2) ? -1 : 0;
	return put(to, bytes, n) || (deed == 'r' && put(to, bytes, n)) ? -1 : 0;
}

/* Forwards one connection until one side ends. */
static void serve(int here, const char *host, const char *port, const char *file)
{
	struct pollfd fds[2] = { { here, POLLIN, 0 }, { reach(host, port, 0), POLLIN, 0 } };

	while (fds[1].fd >= 0 && poll(fds, 2, -1) > 0) {
		if (fds[0].revents && pass(here, fds[1].fd, file))
			break;
		if (fds[1].revents && pass(fds[1].fd, here, NULL))
			break;
	}
}

static void accept_all(const char *port, const char *host, const char *file)
{
	int door = reach(NULL, port, 1), fd;

	if (door < 0) {
		perror(port);
		exit(1);
	}
	signal(SIGCHLD, SIG_IGN);
	while ((fd = accept(door, NULL, NULL)) >= 0) {
		if (fork() == 0) {
			serve(fd, host, port, file);
			_exit(0);
		}
		close(fd);
	}
}

int main(int argc, char **argv)
{
	char second[16];

	if (argc != 4)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	snprintf(second, sizeof second, "%d", atoi(argv[1]) + 1);
	accept_all(fork() ? argv[1] : second, argv[2], argv[3]);
	return 1;
}
