/* What --net may say: base/netspec.c. */
#include <arpa/inet.h>
#include <string.h>
#include "base/netspec.h"
#include "tests/unit/unit.h"

static void test_right(void)
{
	struct netspec net;
	char why[320], text[INET6_ADDRSTRLEN];

	CU_ASSERT(!netspec_parse(&net, "none", why, sizeof why) && !net.user);
	CU_ASSERT(!netspec_parse(&net, "user", why, sizeof why) && net.user && !net.loopback &&
		  !net.n_forwards);
	CU_ASSERT_EQUAL(netspec_parse(&net,
				      "user,forward=127.0.0.1:2222:22,loopback,"
				      "forward=udp:0.0.0.0:53:5353,forward=[::1]:1:65535",
				      why, sizeof why),
			0);
	CU_ASSERT(net.user && net.loopback && net.n_forwards == 3);
	CU_ASSERT(!net.forward[0].udp && net.forward[0].guest_port == 22 &&
		  ntohs(net.forward[0].host.v4.sin_port) == 2222);
	CU_ASSERT(net.forward[0].host.v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	CU_ASSERT(!strncmp(net.forward[0].text, "127.0.0.1:2222:22,", 18));
	CU_ASSERT(net.forward[1].udp && net.forward[1].guest_port == 5353 &&
		  !net.forward[1].host.v4.sin_addr.s_addr);
	CU_ASSERT(net.forward[2].host.any.sa_family == AF_INET6 &&
		  net.forward[2].guest_port == 65535);
	CU_ASSERT_STRING_EQUAL(
		inet_ntop(AF_INET6, &net.forward[2].host.v6.sin6_addr, text, sizeof text), "::1");
}

static void test_wrong(void)
{
	static const char *const wrong[] = {
		"",
		"x",
		"none,",
		"none,forward=127.0.0.1:1:1",
		"users",
		"user,",
		"user,x",
		"user,forward=",
		"user,forward=22",
		"user,forward=22:22",
		"user,forward=127.0.0.1:22",
		"user,forward=127.0.0:1:1",
		"user,forward=127.0.0.1:0:1",
		"user,forward=127.0.0.1:1:0",
		"user,forward=127.0.0.1:65536:1",
		"user,forward=127.0.0.1:1:x",
		"user,forward=127.0.0.1: 1:1",
		"user,forward=localhost:1:1",
		"user,forward=[::1:1:1",
		"user,forward=::1:1:1",
		"user,forward=[]:1:1",
		"user,forward=tcp:127.0.0.1:1:1",
		"user,user",
		"user,loopback=1",
		"user,,loopback",
		"user,forward=["
		"0000000000000000000000000000000000000000000000000000000000000000000000000000000000"
		"0000000000::1]:1:1",
	};
	struct netspec net;
	char why[320], many[1024] = "user";

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		*why = 0;
		CU_ASSERT(netspec_parse(&net, wrong[i], why, sizeof why) &&
			  strstr(why, "--net") == why && !strchr(why, '\n'));
	}
	for (unsigned i = 0; i <= NET_FORWARDS; i++)
		strcat(many, ",forward=127.0.0.1:1:1");
	CU_ASSERT(netspec_parse(&net, many, why, sizeof why) && strstr(why, "there can be 16"));
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "right", test_right },
		{ "wrong", test_wrong },
		UNIT_END
	};

	return UNIT_RUN("netspec", tests);
}
