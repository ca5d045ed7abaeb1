/* phnx_config.c - the configuration language: the examples of the appendix, ranges, patterns,
 * and where errors are. */
#include <stdio.h>
#include <string.h>
#include "phoenix/calls/netconf.h"
#include "tests/unit/unit.h"

static struct netconf c;

static int parse(const char *text, const char *tag)
{
	netconf_free(&c);
	return netconf_parse(&c, text, strlen(text), tag);
}

static void contact_is(size_t i, const char *host, int port, enum phnx_protocol protocol)
{
	CU_ASSERT_FATAL(i < c.n_contacts);
	CU_ASSERT_STRING_EQUAL(c.contacts[i].host, host);
	CU_ASSERT_EQUAL(c.contacts[i].port, port);
	CU_ASSERT_EQUAL(c.contacts[i].protocol, protocol);
}

static void test_example_1(void)
{
	CU_ASSERT_EQUAL(
		parse("listen_port [30000-30002]\ndest        localhost:[30000-30002]\n", NULL), 0);
	CU_ASSERT_EQUAL(c.n_ports, 2);
	CU_ASSERT(c.ports[0] == 30000 && c.ports[1] == 30001);
	CU_ASSERT_EQUAL(c.n_contacts, 2);
	contact_is(0, "localhost", 30000, PHNX_TCP);
	contact_is(1, "localhost", 30001, PHNX_TCP);
}

static void test_example_2(void)
{
	CU_ASSERT_EQUAL(
		parse("listen_port 30000\ndest        node[000-128].domain.com:30000\n", NULL), 0);
	CU_ASSERT_EQUAL(c.n_contacts, 128);
	contact_is(0, "node000.domain.com", 30000, PHNX_TCP);
	contact_is(127, "node127.domain.com", 30000, PHNX_TCP);
}

static void test_example_3(void)
{
	CU_ASSERT_EQUAL(parse("listen_port [30000-30002]\n"
			      "dest        node[000-128].domain.com:[30000-30002]\n", NULL), 0);
	CU_ASSERT_EQUAL(c.n_contacts, 256);
	contact_is(0, "node000.domain.com", 30000, PHNX_TCP);
	contact_is(1, "node000.domain.com", 30001, PHNX_TCP);
	contact_is(255, "node127.domain.com", 30001, PHNX_TCP);
}

static void test_example_4(void)
{
	const char *text =
		"listen_port 30000\nmatch begin\n  x000      -> dest y00:30000 ssh user\n"
		"             dest x[000-128]:30000\n| x[001-128] -> dest x[000-128]:30000\n"
		"| y[00-64]  -> dest y[00-64]:30000\nend\n";

	CU_ASSERT_EQUAL(parse(text, "x000"), 0);
	CU_ASSERT_EQUAL(c.n_contacts, 129);
	contact_is(0, "y00", 30000, PHNX_SSH);
	CU_ASSERT_STRING_EQUAL(c.contacts[0].user, "user");
	CU_ASSERT_EQUAL(parse(text, "x127"), 0);
	CU_ASSERT_EQUAL(c.n_contacts, 128);
	CU_ASSERT_EQUAL(parse(text, "x128"), 0);	/* half-open */
	CU_ASSERT_EQUAL(c.n_contacts, 0);
	CU_ASSERT_EQUAL(parse(text, "y63"), 0);
	CU_ASSERT_EQUAL(c.n_contacts, 64);
	contact_is(63, "y63", 30000, PHNX_TCP);
	CU_ASSERT_EQUAL(parse(text, "y7"), 0);		/* digits are fixed */
	CU_ASSERT_EQUAL(c.n_contacts, 0);
	CU_ASSERT_EQUAL(parse(text, NULL), 0);
	CU_ASSERT_EQUAL(c.n_contacts, 0);
	CU_ASSERT_EQUAL(c.n_ports, 1);
}

static void test_ranges(void)
{
	CU_ASSERT_EQUAL(parse("LISTEN_PORT [3-5]00[0-2]", NULL), 0);
	CU_ASSERT_EQUAL(c.n_ports, 4);
	CU_ASSERT(c.ports[0] == 3000 && c.ports[1] == 3001 && c.ports[2] == 4000 &&
		  c.ports[3] == 4001);
	CU_ASSERT_EQUAL(
		parse("dest 192.168.0.[1-3]:[30000-30002]\n# dest x:1\n dest h[8-11]:1 ssl\n"
		      "dest g:2 ssl c.pem k.pem",
		      NULL),
		0);
	CU_ASSERT_EQUAL(c.n_contacts, 8);
	contact_is(3, "192.168.0.2", 30001, PHNX_TCP);
	contact_is(6, "h10", 1, PHNX_TLS);
	CU_ASSERT_PTR_NULL(c.contacts[6].cert);
	CU_ASSERT_STRING_EQUAL(c.contacts[7].cert, "c.pem");
	CU_ASSERT_STRING_EQUAL(c.contacts[7].key, "k.pem");
}

static void test_match(void)
{
	const char *text =
		"match begin\n n[00-16/x] -> listen_port 300%x\n | m[8-12/a]k -> dest h%a:1%a ssh\n"
		" | _ -> dest other:9 end";

	CU_ASSERT_EQUAL(parse(text, "n05"), 0);
	CU_ASSERT(c.n_ports == 1 && c.ports[0] == 30005 && c.n_contacts == 0);
	CU_ASSERT_EQUAL(parse(text, "m11k"), 0);
	contact_is(0, "h11", 111, PHNX_SSH);
	CU_ASSERT_PTR_NULL(c.contacts[0].user);
	CU_ASSERT_EQUAL(parse(text, "n16"), 0);
	contact_is(0, "other", 9, PHNX_TCP);
	CU_ASSERT_EQUAL(parse("match begin a -> listen_port 1\n | a -> listen_port 2\n end", "a"),
			0);
	CU_ASSERT(c.n_ports == 1 && c.ports[0] == 1);	/* the first match only */
}

static void test_errors(void)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "listen_port", "1:1: listen_port needs a port" },
		{ "listen_port 70000", "1:13: 70000 is not a port number" },
		{ "listen_port 3x", "1:14: 'x' in a port number" },
		{ "\n  lisen_port 3", "2:3: 'lisen_port' is not a declaration" },
		{ "dest host", "1:6: dest needs HOST:PORT" },
		{ "dest h[3-2]:1", "1:7: the range [3-2] is empty" },
		{ "dest h[3-5:1", "1:7: this '[' is not closed" },
		{ "dest h[3-5/x]:1", "1:11: a range names a variable in the pattern" },
		{ "dest h[x]:1", "1:8: a number must stand here" },
		{ "dest h:1 ssl cert", "1:10: ssl takes a certificate and a key" },
		{ "dest h:1 tcp", "1:10: 'tcp' is one word too many" },
		{ "dest h:%q", "1:8: no pattern binds the variable %q" },
		{ "dest h*:1", "1:7: '*' cannot stand here" },
		{ "match begin\n a -> dest h:1\n", "1:1: this match has no end" },
		{ "match\n a", "1:1: 'begin' must follow" },
		{ "match begin\n a dest", "2:3: '->' must follow the pattern" },
		{ "match begin a -> dest :1 end", "1:23: dest needs HOST:PORT" },
		{ "dest n[0-999999999]:1", "1:21: more than 65536 contact points" },
		{ "match begin x -> dest n[0-999999999]:[1-60000] end",
		  "1:38: more than 65536 contact points" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CU_ASSERT_EQUAL(parse(rows[i].text, "t"), -1);
		if (!strstr(c.error, rows[i].error)) {
			printf("\n%s: %s\n", rows[i].text, c.error);
			CU_FAIL("another error");
		}
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "example I", test_example_1 },
		{ "example II", test_example_2 },
		{ "example III", test_example_3 },
		{ "example IV", test_example_4 },
		{ "ranges and protocols", test_ranges },
		{ "patterns and variables", test_match },
		{ "errors with line and column", test_errors },
		UNIT_END
	};
	int status;

	status = UNIT_RUN("phnx_config", tests);
	netconf_free(&c);
	return status;
}
