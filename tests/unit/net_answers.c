/* Which frames of the guest are answers to datagrams from loopback: iosrv/net_answers.c. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "base/netframe.h"
#include "iosrv/net_answers.h"
#include "tests/unit/unit.h"

enum { ETHERNET = 14, LONGEST = 100, MORE = 0x2000, S = 1000000000 };

static struct net_answers a;
static uint8_t frame[LONGEST], changed[LONGEST];

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* The sum that is zero where a checksum is right. */
static uint16_t sum(const uint8_t *bytes, size_t n, uint32_t start)
{
	for (size_t i = 0; i < n; i += 2)
		start += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	while (start >> 16)
		start = (start & 0xffff) + (start >> 16);
	return (uint16_t)~start;
}

static uint16_t udp_sum(const uint8_t *f)
{
	bool six = f[12] == 0x86;
	const uint8_t *udp = f + ETHERNET + (six ? 40 : 20);

	return sum(udp, 12, 17 + 12u + (uint16_t)~sum(f + ETHERNET + (six ? 8 : 12),
						     six ? 32 : 8, 0));
}

/* A datagram of four bytes, in `frame`; returns its bytes. */
static size_t datagram(const char *from, uint16_t port, const char *to, uint16_t to_port,
		       unsigned fragment)
{
	bool six = strchr(from, ':');
	uint8_t *ip = frame + ETHERNET, *udp = ip + (six ? 40 : 20);

	memset(frame, 0, sizeof frame);
	put16(frame + 12, six ? 0x86dd : 0x800);
	ip[0] = six ? 0x60 : 0x45;
	ip[six ? 6 : 9] = 17;
	put16(ip + (six ? 4 : 2), six ? 12 : 32);
	inet_pton(six ? AF_INET6 : AF_INET, from, ip + (six ? 8 : 12));
	inet_pton(six ? AF_INET6 : AF_INET, to, ip + (six ? 24 : 16));
	put16(udp, port);
	put16(udp + 2, to_port);
	put16(udp + 4, 12);
	memcpy(udp + 8, "text", 4);
	put16(udp + 6, udp_sum(frame));
	if (six)
		return ETHERNET + 52;
	put16(ip + 4, 77);
	put16(ip + 6, fragment);
	put16(ip + 10, sum(ip, 20, 0));
	return ETHERNET + 32;
}

static bool is_from(const uint8_t *f, const char *address)
{
	uint8_t wanted[16];
	bool six = strchr(address, ':');

	inet_pton(six ? AF_INET6 : AF_INET, address, wanted);
	return !memcmp(f + ETHERNET + (six ? 8 : 12), wanted, six ? 16 : 4) && !udp_sum(f) &&
	       (six || !sum(f + ETHERNET, 20, 0));
}

static bool is_to(const char *address)
{
	uint8_t wanted[16];
	bool six = strchr(address, ':');

	inet_pton(six ? AF_INET6 : AF_INET, address, wanted);
	return !memcmp(frame + ETHERNET + (six ? 24 : 16), wanted, six ? 16 : 4) &&
	       !udp_sum(frame) && (six || !sum(frame + ETHERNET, 20, 0));
}

static void start(const char *spec)
{
	struct netspec net;
	char why[320];

	CU_ASSERT_FATAL(!netspec_parse(&net, spec, why, sizeof why));
	net_answers_start(&a, &net);
}

static bool comes(const char *from, uint16_t port, uint16_t guest_port)
{
	const char *guest = strchr(from, ':') ? NET_GUEST_V6 : "10.0.2.15";
	size_t bytes = datagram(from, port, guest, guest_port, 0);

	return net_answers_to_guest(&a, frame, bytes, changed, 1);
}

static bool answers(uint16_t guest_port, const char *to, uint16_t port, uint64_t now_ns)
{
	const char *guest = strchr(to, ':') ? NET_GUEST_V6 : "10.0.2.15";

	return net_answers_from_guest(&a, frame, datagram(guest, guest_port, to, port, 0), now_ns);
}

static void test_answers(void)
{
	start("user,forward=udp:127.0.0.1:1000:53,forward=udp:[::1]:1000:54");
	CU_ASSERT_FALSE(answers(53, "10.0.2.2", 4000, 2)); /* nothing has come from there */
	CU_ASSERT_FALSE(comes("10.0.2.2", 4000, 53));
	CU_ASSERT(answers(53, "10.0.2.2", 4000, 2) && is_to("127.0.0.1"));
	CU_ASSERT(comes("127.0.0.1", 4000, 53) && is_from(changed, "10.0.2.2"));
	CU_ASSERT(comes("127.0.0.9", 4001, 53) && is_from(changed, "10.0.2.2"));
	CU_ASSERT(answers(53, "10.0.2.2", 4001, 2) && is_to("127.0.0.9"));
	CU_ASSERT_FALSE(comes("fec0::2", 4000, 54));
	CU_ASSERT(answers(54, "fec0::2", 4000, 2) && is_to("::1"));
	CU_ASSERT(comes("::1", 4000, 54) && is_from(changed, "fec0::2"));
}

static void test_no_answers(void)
{
	size_t bytes;

	start("user,forward=udp:127.0.0.1:1000:53,forward=udp:[::1]:1000:54,"
	      "forward=udp:0.0.0.0:1001:55,forward=udp:127.0.0.1:1002:56,"
	      "forward=udp:192.0.2.1:1003:56,forward=127.0.0.1:1004:57");
	comes("10.0.2.2", 4000, 53);
	CU_ASSERT_FALSE(answers(53, "10.0.2.2", 4001, 2));
	CU_ASSERT_FALSE(answers(52, "10.0.2.2", 4000, 2));
	CU_ASSERT_FALSE(answers(53, "10.0.2.3", 4000, 2));
	CU_ASSERT_FALSE(answers(53, "fec0::2", 4000, 2));
	CU_ASSERT_FALSE(answers(53, "10.0.2.2", 4000, 1 + (uint64_t)NET_ANSWER_S * S));
	CU_ASSERT_TRUE(answers(53, "10.0.2.2", 4000, (uint64_t)NET_ANSWER_S * S));
	bytes = datagram("10.0.2.16", 53, "10.0.2.2", 4000, 0); /* not by the forwarded socket */
	CU_ASSERT_FALSE(net_answers_from_guest(&a, frame, bytes, 2));
	bytes = datagram("10.0.2.15", 53, "10.0.2.2", 4000, 0x8000);
	CU_ASSERT_FALSE(net_answers_from_guest(&a, frame, bytes, 2));
	bytes = datagram("10.0.2.15", 53, "10.0.2.2", 4000, 0);
	frame[ETHERNET] = 0x46;
	CU_ASSERT_FALSE(net_answers_from_guest(&a, frame, bytes, 2));
	/* libslirp's own servers, other addresses, ports not forwarded or not here alone */
	static const struct { const char *from; uint16_t port, guest_port; } others[] = {
		{ "10.0.2.2", 69, 53 },	  { "10.0.2.2", 67, 53 },	{ "fec0::2", 547, 54 },
		{ "10.0.2.3", 5000, 53 }, { "192.0.2.1", 5000, 53 },	{ "10.0.2.2", 5000, 54 },
		{ "10.0.2.2", 5000, 55 }, { "10.0.2.2", 5000, 56 },	{ "10.0.2.2", 5000, 57 },
		{ "fec0::3", 5000, 54 },  { "2001:db8::1", 5000, 54 },	{ "fec0::2", 5000, 53 },
	};
	for (unsigned i = 0; i < ARRAY_LEN(others); i++) {
		const char *gateway = strchr(others[i].from, ':') ? "fec0::2" : "10.0.2.2";

		CU_ASSERT_FALSE(comes(others[i].from, others[i].port, others[i].guest_port));
		CU_ASSERT_FALSE(answers(others[i].guest_port, gateway, others[i].port, 2));
	}
	start("user,loopback,forward=udp:127.0.0.1:1000:53");
	CU_ASSERT_FALSE(comes("10.0.2.2", 4000, 53) || answers(53, "10.0.2.2", 4000, 2));
}

/* libslirp then shows other senders as the gateway, too. */
static void test_broadcast(void)
{
	size_t bytes;

	start("user,forward=udp:127.0.0.1:1000:53,forward=udp:127.0.0.1:1001:54");
	CU_ASSERT_FALSE(answers(53, "10.0.2.255", 9, 2));
	comes("10.0.2.2", 4000, 53);
	CU_ASSERT_FALSE(answers(53, "10.0.2.2", 4000, 2));
	CU_ASSERT_TRUE(comes("127.0.0.1", 4000, 53));
	CU_ASSERT_TRUE(answers(53, "10.0.2.2", 4000, 2));
	bytes = datagram("10.0.2.15", 99, "10.0.2.255", 9, 0);
	frame[ETHERNET] = 0x46;
	net_answers_from_guest(&a, frame, bytes, 2);
	comes("10.0.2.2", 4000, 54);
	CU_ASSERT_FALSE(answers(54, "10.0.2.2", 4000, 2));
}

static bool fragment(uint16_t port, unsigned fragment, size_t less)
{
	size_t bytes = datagram("10.0.2.15", 53, "10.0.2.2", port, fragment);

	return net_answers_from_guest(&a, frame, bytes - less, 2);
}

static void test_fragments(void)
{
	start("user,forward=udp:127.0.0.1:1000:53");
	comes("10.0.2.2", 4000, 53);
	CU_ASSERT_FALSE(fragment(4000, 1, 0)); /* the first one has not come */
	CU_ASSERT_TRUE(fragment(4000, MORE, 0) && is_to("127.0.0.1"));
	CU_ASSERT_TRUE(fragment(0, MORE | 1, 0));
	CU_ASSERT_TRUE(fragment(0, 2, 0));
	CU_ASSERT_FALSE(fragment(4001, MORE, 0)); /* it would be the datagram's beginning */
	CU_ASSERT_TRUE(fragment(4000, 0, 0));
	CU_ASSERT_FALSE(fragment(0, 3, 0)); /* of a datagram that had none */
	CU_ASSERT_FALSE(fragment(4000, 0, 5)); /* cut in the header of UDP */
	datagram("127.0.0.1", 0, "10.0.2.15", 0, 5);
	CU_ASSERT_TRUE(net_answers_to_guest(&a, frame, ETHERNET + 32, changed, 2));
	CU_ASSERT(!memcmp(changed + ETHERNET + 12, "\12\0\2\2", 4) &&
		  !sum(changed + ETHERNET, 20, 0) &&
		  !memcmp(changed + ETHERNET + 20, frame + ETHERNET + 20, 12));
}

/* The sender that has been silent for longest is forgotten. */
static void test_many(void)
{
	start("user,forward=udp:127.0.0.1:1000:53");
	for (unsigned i = 0; i < NET_PEERS + 1; i++) {
		size_t bytes = datagram("10.0.2.2", (uint16_t)(4000 + i), "10.0.2.15", 53, 0);

		net_answers_to_guest(&a, frame, bytes, changed, 1 + i);
	}
	CU_ASSERT_FALSE(answers(53, "10.0.2.2", 4000, 2));
	CU_ASSERT_TRUE(answers(53, "10.0.2.2", 4001, 2));
	CU_ASSERT_TRUE(answers(53, "10.0.2.2", 4000 + NET_PEERS, 2));
}

/* Each length in an array of that length, for the sanitizer. */
static void test_short(void)
{
	start("user,forward=udp:127.0.0.1:1000:53,forward=udp:[::1]:1000:54");
	for (unsigned six = 0; six < 2; six++)
		for (size_t n = 0; n < (six ? ETHERNET + 48u : ETHERNET + 28u); n++) {
			uint8_t *cut = malloc(n + !n);

			datagram(six ? "fec0::2" : "10.0.2.2", 4000,
				 six ? NET_GUEST_V6 : "10.0.2.15", 53 + six, 0);
			memcpy(cut, frame, n);
			CU_ASSERT_FALSE(net_answers_to_guest(&a, cut, n, changed, 1));
			CU_ASSERT_FALSE(net_answers_from_guest(&a, cut, n, 2));
			free(cut);
		}
	CU_ASSERT_FALSE(answers(53, "10.0.2.2", 4000, 2) || answers(54, "fec0::2", 4000, 2));
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "answers", test_answers },
		{ "no answers", test_no_answers },
		{ "after a broadcast", test_broadcast },
		{ "fragments", test_fragments },
		{ "many senders", test_many },
		{ "short frames", test_short },
		UNIT_END
	};

	return UNIT_RUN("answers", tests);
}
