/* answers.c - a UDP server in the guest behind a forwarded port, and who asks it, on the host.
 *
 *   answers serve PORT		in the guest: prints "up", and answers each datagram.  Before that,
 *				it sends where the gateway has nothing to pass on: to the port that
 *				the datagram names, and to the sender's own from another port.
 *   answers ask ADDRESS PORT TRIES
 *				on the host: asks until an answer comes, twice with one socket, and
 *				prints how often it asked first.  Fails if anything else comes.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include "tests/guest/check.h"

enum { TEXT = 40, TRY_MS = 1000, WAIT_MS = 60000 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t bytes_of(const union address *a)
{
	return a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
}

static union address address_of(const char *text, unsigned port)
{
	union address a = { .v4 = { .sin_family = AF_INET, .sin_port = htons(port) } };

	if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1)
		return a;
	a.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
	inet_pton(AF_INET6, text, &a.v6.sin6_addr);
	return a;
}

/* Returns a socket; its address is in `a` then, too. */
static int socket_at(union address *a)
{
	int fd = socket(a->any.sa_family, SOCK_DGRAM, 0);
	socklen_t bytes = sizeof *a;

	if (bind(fd, &a->any, bytes_of(a)) || getsockname(fd, &a->any, &bytes)) {
		perror("cannot bind");
		exit(3);
	}
	return fd;
}

static int serve(unsigned port)
{
	union address here = address_of("::", port), other = address_of("::", 0), peer, wrong;
	int fd = socket_at(&here), other_fd = socket_at(&other);
	char text[TEXT + 1];

	printf("up\n");
	fflush(stdout);
	for (;;) {
		socklen_t bytes = sizeof peer;
		ssize_t n = recvfrom(fd, text, TEXT, 0, &peer.any, &bytes);

		if (n < 0)
			return 1;
		text[n] = 0;
		wrong = peer;
		wrong.v6.sin6_port = htons((uint16_t)atoi(text));
		sendto(fd, "wrong port", 10, 0, &wrong.any, bytes);
		sendto(other_fd, "from a wrong port", 17, 0, &peer.any, bytes);
		sendto(fd, text, (size_t)n, 0, &peer.any, bytes);
	}
}

/* Returns how often it asked until there was an answer; 0: there was none. */
static unsigned ask(int fd, const union address *to, const char *text, unsigned tries)
{
	char answer[TEXT + 1];

	for (unsigned i = 1; i <= tries; i++) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		sendto(fd, text, strlen(text), 0, &to->any, bytes_of(to));
		if (poll(&p, 1, i < tries ? TRY_MS : WAIT_MS) != 1)
			continue;
		n = recv(fd, answer, TEXT, 0);
		answer[n < 0 ? 0 : n] = 0;
		if (expect("an answer is what was asked", !strcmp(answer, text)))
			return i;
		printf("%s\n", answer);
	}
	return 0;
}

static int ask_twice(const char *address, unsigned port, unsigned tries)
{
	union address to = address_of(address, port), here = address_of(address, 0), other = here;
	int fd = socket_at(&here), other_fd = socket_at(&other);
	char text[TEXT];
	unsigned asked;

	/* The port is at the same place in both kinds of address. */
	snprintf(text, sizeof text, "%u", ntohs(other.v4.sin_port));
	printf("asked %u\n", asked = ask(fd, &to, text, tries));
	expect("it answers", asked);
	expect("it answers again", ask(fd, &to, text, tries));
	expect("nothing comes to another port", recv(other_fd, text, TEXT, MSG_DONTWAIT) < 0);
	return check_result();
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve((unsigned)atoi(argv[2]));
	if (argc == 5 && !strcmp(argv[1], "ask"))
		return ask_twice(argv[2], (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
	fprintf(stderr, "usage: answers serve PORT | answers ask ADDRESS PORT TRIES\n");
	return 2;
}
