/* frames.c - frames that a guest's root makes itself, to addresses to which its kernel would send
 * none; and, on the host, the servers that they are meant for.
 *
 *   frames send PORT	in the guest: a datagram and the start of a TCP connection to each address
 *			that leads to the host's loopback interface
 *   frames serve	on the host: prints "port N", listens there on the loopback interface until
 *			a line comes on standard input, and prints what has come: "udp ADDRESS" for
 *			each datagram, which names where it was sent, and "tcp N", connections
 *
 * When the gateway has answered a ping that is sent after the frames, what they cause on the host
 * has happened: libslirp takes frames in order, and the loopback interface does not queue.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sys/socket.h>
#include "tests/guest/check.h"

enum { ETHERNET = 14, UDP = 17, TCP = 6, FROM_PORT = 12345, TEXT = 40, LIKELY_PORT = 20000 };

static const char *const to_v4[] = { "127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.2.2",
				     "255.255.255.255" };
static const char *const to_v6[] = { "::1", "::", "::ffff:127.0.0.1", "fec0::2" };

static uint32_t add(const uint8_t *bytes, size_t n, uint32_t sum)
{
	for (size_t i = 0; i < n; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	return sum;
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put_sum(uint8_t *at, uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	put16(at, ~(sum + (sum >> 16)));
}

/* Fills in what follows the IP header.  `sum` is of the pseudo header's addresses.  Returns its
 * bytes. */
static size_t put_payload(uint8_t *at, int protocol, unsigned from, unsigned to, const char *text,
			  uint32_t sum)
{
	size_t bytes = protocol == UDP ? 8 + strlen(text) : 20;

	put16(at, from);
	put16(at + 2, to);
	if (protocol == UDP) {
		put16(at + 4, (uint32_t)bytes);
		memcpy(at + 8, text, strlen(text));
	} else {
		at[12] = 0x50; /* the header's length; SYN; the window */
		at[13] = 2;
		at[14] = 0x20;
	}
	sum += (uint32_t)(protocol + bytes);
	put_sum(at + (protocol == UDP ? 6 : 16), add(at, bytes, sum));
	return bytes;
}

static size_t put_v4(uint8_t *ip, int protocol, const char *to, unsigned from_port, unsigned port)
{
	size_t bytes;

	ip[0] = 0x45;
	ip[8] = 64;
	ip[9] = (uint8_t)protocol;
	inet_pton(AF_INET, "10.0.2.15", ip + 12);
	inet_pton(AF_INET, to, ip + 16);
	bytes = 20 + put_payload(ip + 20, protocol, from_port, port, to, add(ip + 12, 8, 0));
	put16(ip + 2, (uint32_t)bytes);
	put_sum(ip + 10, add(ip, 20, 0));
	return bytes;
}

static size_t put_v6(uint8_t *ip, int protocol, const char *to, unsigned from_port, unsigned port)
{
	size_t bytes;

	ip[0] = 0x60;
	ip[6] = (uint8_t)protocol;
	ip[7] = 64;
	inet_pton(AF_INET6, "fec0::15", ip + 8);
	inet_pton(AF_INET6, to, ip + 24);
	bytes = put_payload(ip + 40, protocol, from_port, port, to, add(ip + 8, 32, 0));
	put16(ip + 4, (uint32_t)bytes);
	return 40 + bytes;
}

static int send_all(unsigned port)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_ifindex = (int)if_nametoindex("eth0") };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	unsigned n4 = sizeof to_v4 / sizeof *to_v4, n6 = sizeof to_v6 / sizeof *to_v6;

	for (unsigned i = 0; i < 2 * (n4 + n6); i++) {
		uint8_t frame[200] = { 0x52, 0x55, 10, 0, 2, 2, 2, 'v', 'm', 'p', 0, 1, 8, 0 };
		int protocol = i % 2 ? TCP : UDP;
		unsigned n = i / 2, from = FROM_PORT + i;
		size_t bytes;

		if (n >= n4)
			put16(frame + 12, 0x86dd);
		bytes = n < n4 ? put_v4(frame + ETHERNET, protocol, to_v4[n], from, port)
			       : put_v6(frame + ETHERNET, protocol, to_v6[n - n4], from, port);
		bytes += ETHERNET;
		if (sendto(fd, frame, bytes, 0, (void *)&at, sizeof at) != (ssize_t)bytes)
			expect("a frame is sent", false);
	}
	return check_failures;
}

/* --- on the host --- */

/* Binds one socket of each kind to one port.  A host without IPv6 does without those two. */
static bool bind_all(int fd[4], unsigned port)
{
	struct sockaddr_in v4 = { AF_INET, htons(port), { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool good = true;

	for (unsigned i = 0; i < 4; i++) {
		bool six = i >= 2;

		fd[i] = socket(six ? AF_INET6 : AF_INET,
			       (i % 2 ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK, 0);
		if (bind(fd[i], six ? (void *)&v6 : (void *)&v4, six ? sizeof v6 : sizeof v4) ||
		    (i % 2 && listen(fd[i], 16)))
			good &= six && errno == EADDRNOTAVAIL;
	}
	for (unsigned i = 0; i < 4 && !good; i++)
		close(fd[i]);
	return good;
}

static int serve(void)
{
	unsigned port = LIKELY_PORT + (unsigned)getpid() % LIKELY_PORT, connections = 0;
	char line[TEXT];
	int fd[4];
	ssize_t n;

	while (!bind_all(fd, port))
		port++;
	printf("port %u\n", port);
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		return 1;
	for (unsigned i = 0; i < 4; i += 2)
		while ((n = recv(fd[i], line, sizeof line, 0)) > 0)
			printf("udp %.*s\n", (int)n, line);
	for (unsigned i = 1; i < 4; i += 2)
		while (accept(fd[i], NULL, NULL) >= 0)
			connections++;
	printf("tcp %u\n", connections);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "serve"))
		return serve();
	if (argc == 3 && !strcmp(argv[1], "send"))
		return send_all((unsigned)atoi(argv[2]));
	fprintf(stderr, "usage: frames send PORT | frames serve\n");
	return 2;
}
