/* phnx_wary.c - after ph_prefer_ssl() a node takes connections without TLS from its own computer
 * alone. */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "phnx/phnx.h"
#include "phoenix/calls/runtime.h"
#include "phoenix/core/secret.h"
#include "phoenix/net/net_private.h"
#include "tests/unit/unit.h"

static struct event_base *base;
static int port;

static void addresses_are_near_or_far(void)
{
	static const struct { int family; const char *text; bool near; } rows[] = {
		{ AF_INET, "127.0.0.1", true },	    { AF_INET, "127.9.9.9", true },
		{ AF_INET, "128.0.0.1", false },    { AF_INET, "10.0.0.127", false },
		{ AF_INET6, "::1", true },	    { AF_INET6, "::2", false },
		{ AF_INET6, "fe80::1", false },	    { AF_INET6, "::ffff:127.0.0.1", true },
		{ AF_INET6, "::ffff:10.0.0.1", false },
	};
	struct sockaddr_un local = { .sun_family = AF_UNIX };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sockaddr_in four = { .sin_family = AF_INET };
		struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
		bool is_four = rows[i].family == AF_INET;

		void *number = is_four ? (void *)&four.sin_addr : (void *)&six.sin6_addr;

		CU_ASSERT_EQUAL(inet_pton(rows[i].family, rows[i].text, number), 1);
		CU_ASSERT_EQUAL(conn_is_near(is_four ? (void *)&four : (void *)&six), rows[i].near);
	}
	CU_ASSERT_TRUE(conn_is_near((void *)&local));
	CU_ASSERT_FALSE(conn_is_near(&(struct sockaddr){ .sa_family = AF_UNSPEC }));
}

/* This computer's address that is not loopback's; false: there is none. */
static bool far_address(struct sockaddr_in *address)
{
	struct ifaddrs *all = NULL, *i;

	if (getifaddrs(&all))
		return false;
	for (i = all; i; i = i->ifa_next) {
		bool is_near = i->ifa_flags & IFF_LOOPBACK;

		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && !is_near)
			break;
	}
	if (i)
		memcpy(address, i->ifa_addr, sizeof *address);
	freeifaddrs(all);
	return i != NULL;
}

/* What the node answers to the first byte of a frame: its greeting's length, or 0: it closes. */
static ssize_t answer_to_plain(struct sockaddr_in address)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char bytes[256];
	ssize_t n = -1;

	address.sin_port = htons((uint16_t)port);
	CU_ASSERT_FATAL(fd >= 0 && !connect(fd, (void *)&address, sizeof address));
	CU_ASSERT_EQUAL(write(fd, "P", 1), 1);
	while (n < 0) { /* the answer comes, or the test hangs */
		event_base_loop(base, EVLOOP_NONBLOCK);
		if (poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 1) > 0)
			n = recv(fd, bytes, sizeof bytes, 0);
		if (n < 0 && errno == ECONNRESET)
			n = 0;
	}
	close(fd);
	return n;
}

static void plain_comes_from_near_alone(void)
{
	struct sockaddr_in near = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in far;

	CU_ASSERT(answer_to_plain(near) > 0);
	if (!far_address(&far)) {
		puts("no address but loopback: not tried from elsewhere");
		return;
	}
	CU_ASSERT(answer_to_plain(far) > 0);
	ph_prefer_ssl();
	CU_ASSERT_EQUAL(answer_to_plain(far), 0);
	CU_ASSERT(answer_to_plain(near) > 0);
}

/* Strangers who have had their time wait; when time has passed, they are heard. */
static void strangers_wait(void)
{
	struct sockaddr_in near = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	rt.net->patience = (struct patience){ UINT64_MAX / 1000, net_now() };
	CU_ASSERT_FATAL(fd >= 0 && !connect(fd, (void *)&near, sizeof near));
	while (!rt.net->deaf_until)
		event_base_loop(base, EVLOOP_NONBLOCK);
	for (struct conn *k = rt.net->conns; k; k = k->next)
		CU_ASSERT(k->state == DRAINING); /* those of the other tests */
	close(fd);
	rt.net->patience = (struct patience){ 0 };
	rt.net->deaf_until = 1;
	rt.net->due = 0;
	net_wake(rt.net);
	CU_ASSERT(answer_to_plain(near) > 0);
}

static bool same_key(const char *one, const char *other, const char *session)
{
	unsigned char a[32], b[32];
	char text[200];
	bool shared;

	setenv("PHNX_SECRET", one, 1);
	CU_ASSERT_EQUAL(secret_of_session("first", a, &shared, text, sizeof text), 0);
	setenv("PHNX_SECRET", other, 1);
	CU_ASSERT_EQUAL(secret_of_session(session, b, &shared, text, sizeof text), 0);
	unsetenv("PHNX_SECRET");
	return !memcmp(a, b, sizeof a);
}

/* A secret that a user has chosen gives a key that is dear to make, another one in each session; a
 * random one, as phnx-session writes it, is used as it is. */
static void chosen_secrets_are_dear(void)
{
	static const char random[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	static const char almost[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg";
	unsigned char plain[32], key[32];
	static const unsigned char purpose[32] = "phnx session key";
	char text[200];
	bool shared;

	CU_ASSERT_TRUE(same_key("chosen", "chosen\n", "first"));
	CU_ASSERT_FALSE(same_key("chosen", "chosen", "second"));
	CU_ASSERT_FALSE(same_key("chosen", "Chosen", "first"));
	CU_ASSERT_TRUE(same_key(random, random, "second"));
	CU_ASSERT_FALSE(same_key(almost, almost, "second"));
	setenv("PHNX_SECRET", "chosen", 1);
	CU_ASSERT_EQUAL(secret_of_session("first", key, &shared, text, sizeof text), 0);
	unsetenv("PHNX_SECRET");
	secret_mac(purpose, "chosen", 6, plain);
	CU_ASSERT_NOT_EQUAL(memcmp(plain, key, sizeof key), 0);
}

/* A session's name is that of a file, and a word of command lines. */
static void names_of_sessions(void)
{
	static const char *const bad[] = { "", ".hidden", "a/b", "--help", "-h" };
	unsigned char key[32];
	char text[200];
	bool shared;

	setenv("PHNX_SECRET", "chosen", 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CU_ASSERT_EQUAL(secret_of_session(bad[i], key, &shared, text, sizeof text),
				PH_EINVAL);
	CU_ASSERT_EQUAL(secret_of_session("a-b", key, &shared, text, sizeof text), 0);
	unsetenv("PHNX_SECRET");
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(addresses_are_near_or_far),
		UNIT_TEST(plain_comes_from_near_alone),
		UNIT_TEST(strangers_wait),
		UNIT_TEST(chosen_secrets_are_dear),
		UNIT_TEST(names_of_sessions),
		UNIT_END
	};
	char secret[] = "/tmp/phnx-wary-XXXXXX";
	int fd = mkstemp(secret);
	int status;

	if (fd < 0 || write(fd, "a secret of thirty-two characters", 32) != 32 || close(fd))
		return 1;
	base = event_base_new();
	if (ph_init_in_loop(0, 10, "test", secret, base))
		return 1;
	ph_set_listen_port(20000, 60000);
	unlink(secret);
	port = ph_get_listen_port();
	status = UNIT_RUN("phnx_wary", tests);
	ph_finalize_runtime();
	event_base_free(base);
	return status;
}
