/* tcp_pipe.c - a plain pipe over TCP, with which bench/peers compares others: one process sends its
 * standard input, the other writes it to standard output.
 *
 * Usage: tcp_pipe PORT            accept one connection, and write what comes
 *        tcp_pipe HOST PORT       connect, and send
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void copy(int from, int to)
{
	static char bytes[128 << 10];
	ssize_t n, done;

	while ((n = read(from, bytes, sizeof bytes)) > 0)
		for (ssize_t at = 0; at < n; at += done) {
			done = write(to, bytes + at, (size_t)(n - at));
			if (done <= 0)
				exit(1);
		}
	if (n < 0)
		exit(1);
}

static int accept_one(const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 1))
		return -1;
	return accept(fd, NULL, NULL);
}

static int connect_to(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *to;
	int fd = socket(AF_INET, SOCK_STREAM, 0), error = getaddrinfo(host, port, &hints, &to);

	/* tries until the other process listens */
	for (int tries = 0; !error && tries < 500; tries++, usleep(10000))
		if (!connect(fd, to->ai_addr, to->ai_addrlen))
			return fd;
	return -1;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? accept_one(argv[1]) : argc == 3 ? connect_to(argv[1], argv[2]) : -1;

	if (fd < 0) {
		fprintf(stderr, "tcp_pipe: no connection\n");
		return 1;
	}
	argc == 2 ? copy(fd, 1) : copy(0, fd);
	return 0;
}
