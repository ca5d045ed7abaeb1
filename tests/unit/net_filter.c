/* Which frames of the guest reach libslirp: iosrv/net_filter.c. */
#include <arpa/inet.h>
#include <string.h>
#include "base/types.h"
#include "iosrv/net_filter.h"
#include "tests/unit/unit.h"

enum { ETHERNET = 14, IPV4 = 34, IPV6 = 54 };

static bool v4_passes(const char *to, size_t bytes)
{
	uint8_t frame[IPV4 + 8] = { [12] = 8, [ETHERNET] = 0x45 };

	inet_pton(AF_INET, to, frame + ETHERNET + 16);
	return net_filter_passes(frame, bytes);
}

static bool v6_passes(const char *to, size_t bytes)
{
	uint8_t frame[IPV6 + 8] = { [12] = 0x86, [13] = 0xdd, [ETHERNET] = 0x60 };

	inet_pton(AF_INET6, to, frame + ETHERNET + 24);
	return net_filter_passes(frame, bytes);
}

static void test_destinations(void)
{
	static const struct { const char *to; bool passes; } v4[] = {
		{ "127.0.0.1", false }, { "127.0.0.53", false },      { "127.255.255.255", false },
		{ "0.0.0.0", false },	{ "0.255.255.255", false },   { "1.0.0.0", true },
		{ "126.1.1.1", true },	{ "128.0.0.1", true },	      { "10.0.2.2", true },
		{ "10.0.2.3", true },	{ "255.255.255.255", true },  { "10.127.0.0", true },
	};
	static const struct { const char *to; bool passes; } v6[] = {
		{ "::", false },	   { "::1", false },	   { "::127.0.0.1", false },
		{ "::1:2", false },	   { "::ffff:127.0.0.1", false },
		{ "::ffff:0.0.0.0", false }, { "::ffff:192.0.2.1", false },
		{ "::ffff:0:0:1", true },  { "::1:0:0", true },
		{ "::fffe:0:1", true },	   { "fec0::2", true },	   { "fec0::3", true },
		{ "ff02::1", true },	   { "2001:db8::1", true },
	};

	for (unsigned i = 0; i < ARRAY_LEN(v4); i++)
		CU_ASSERT_EQUAL(v4_passes(v4[i].to, IPV4 + 8), v4[i].passes);
	for (unsigned i = 0; i < ARRAY_LEN(v6); i++)
		CU_ASSERT_EQUAL(v6_passes(v6[i].to, IPV6 + 8), v6[i].passes);
}

/* Each length is tried in an array of that length, for the sanitizer. */
static void test_short(void)
{
	uint8_t arp[ETHERNET] = { [12] = 8, [13] = 6 };

	for (size_t n = 0; n < ETHERNET; n++)
		CU_ASSERT_FALSE(net_filter_passes(arp, n));
	CU_ASSERT_TRUE(net_filter_passes(arp, sizeof arp));
	for (size_t n = 0; n < IPV4; n++)
		CU_ASSERT_FALSE(v4_passes("10.0.2.2", n));
	CU_ASSERT_TRUE(v4_passes("10.0.2.2", IPV4));
	for (size_t n = 0; n < IPV6; n++)
		CU_ASSERT_FALSE(v6_passes("fec0::2", n));
	CU_ASSERT_TRUE(v6_passes("fec0::2", IPV6));
}

/* VLAN tags of both kinds, a length in the place of the type, NC-SI, which libslirp parses. */
static void test_other_protocols(void)
{
	static const uint8_t types[][2] = { { 0x81, 0 },     { 0x88, 0xa8 }, { 0, 46 },
					    { 0x88, 0xf8 }, { 0x86, 0xde }, { 8, 1 } };

	for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
		uint8_t frame[IPV6 + 8] = { [12] = types[i][0], [13] = types[i][1],
					    [ETHERNET + 16] = 10, [ETHERNET + 24] = 0xfe };

		CU_ASSERT_FALSE(net_filter_passes(frame, sizeof frame));
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "destinations", test_destinations },
		{ "short frames", test_short },
		{ "other protocols", test_other_protocols },
		UNIT_END
	};

	return UNIT_RUN("network filter", tests);
}
