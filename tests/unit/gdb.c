/* gdb.c - tests of GDB's connection: the address, who connects, the command to paste. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "vmm/cli/loopback_peer.h"
#include "vmm/cli/gdb/gdb_server.h"

/* ---- addresses ---- */

static void addresses(void)
{
	static const struct {
		const char *text;
		unsigned port;
		bool nowait;
		const char *wrong;
	} cases[] = {
		{ "127.0.0.1:1234", 1234, false, NULL },
		{ "127.9.8.7:1,nowait", 1, true, NULL },
		{ "localhost:65535", 65535, false, NULL },
		{ "[::1]:1234", 1234, false, NULL },
		{ "127.0.0.1:0", 0, false, NULL },
		{ "0.0.0.0:1234", 0, false, "only addresses of this computer" },
		{ "192.168.1.1:1234", 0, false, "only addresses" },
		{ "[::]:1234", 0, false, "only addresses" },
		{ ":1234", 0, false, "only addresses" },
		{ "host:1234", 0, false, "only addresses" },
		{ "128.0.0.1:1", 0, false, "only addresses" },
		{ "1234", 0, false, "write it as" },
		{ "127.0.0.1", 0, false, "write it as" },
		{ "127.0.0.1:65536", 0, false, "write it as" },
		{ "127.0.0.1:", 0, false, "write it as" },
		{ "127.0.0.1:-1", 0, false, "write it as" },
		{ "127.0.0.1:12,wait", 0, false, "write it as" },
		{ ",nowait", 0, false, "write it as" },
		{ "127.0.0.1:99999999999999999999", 0, false, "write it as" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct gdb_address a;
		struct problem p = { "" };

		CU_ASSERT_EQUAL(gdb_address_parse(cases[i].text, &a, &p) != 0,
				cases[i].wrong != NULL);
		CU_ASSERT(!cases[i].wrong || strstr(p.line, cases[i].wrong));
		CU_ASSERT(cases[i].wrong || (ntohs(a.own.at.v4.sin_port) == cases[i].port &&
					     a.nowait == cases[i].nowait));
	}
}

/* ---- who connects ---- */

static const char table[] =
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
	"timeout inode\n"
	"   0: 0100007F:04D2 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        "
	"0 11 1 0 100 0 0 10 0\n"
	"   1: 0100007F:04D2 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        "
	"0 12 1 0 20 4 0 10 -1\n"
	"   2: 0100007F:C001 0100007F:04D2 01 00000000:00000000 00:00000000 00000000  1001        "
	"0 13 1 0 20 4 0 10 -1\n"
	"   3: 0100007F:C002 0100007F:04D2 04 00000000:00000000 00:00000000 00000000     0        "
	"0 0 1 0 20 4 0 10 -1\n"
	"   4: 0100007F:C003 0100007F:04D2 01 00000000:00000000 00:00000000 00000000     0        "
	"0 0 1 0 20 4 0 10 -1\n"
	"   5: 0000000000000000FFFF00000100007F:C004 0000000000000000FFFF00000100007F:04D2 01 "
	"00000000:00000000 00:00000000 "
	"00000000  1004        0 14 1 0 20 4 0 10 -1\n"
	"   6: 00000000000000000000000001000000:C005 00000000000000000000000001000000:04D2 01 "
	"00000000:00000000 00:00000000 "
	"00000000  1005        0 15 1 0 20 4 0 10 -1\n"
	"   7: 01000000:C006 01000000:04D2 01 00000000:00000000 00:00000000 00000000  1006        "
	"0 16 1 0 20 4 0 10 -1\n"
	"nonsense\n";

static union loopback_peer end_at(bool v6, unsigned port)
{
	union loopback_peer end = { .v4 = { .sin_family = AF_INET, .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };

	if (v6)
		end.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port),
						.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	return end;
}

static void peers(void)
{
	static const struct { bool v6; unsigned port; bool found; uid_t user; } rows[] = {
		{ false, 0xc001, true, 1001 }, /* the peer's end, not ours */
		/* closed: without a user */
		{ false, 0xc002, false, 0 }, { false, 0xc003, false, 0 },
		{ false, 0xc004, true, 1004 }, { true, 0xc005, true, 1005 },
		{ true, 0xc006, false, 0 }, /* another family's address */
		{ false, 0xc009, false, 0 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		union loopback_peer peer = end_at(rows[i].v6, rows[i].port),
			       own = end_at(rows[i].v6, 0x4d2);
		FILE *file = fmemopen((void *)(uintptr_t)table, sizeof table - 1, "r");
		uid_t user = 0;

		CU_ASSERT_EQUAL(loopback_peer_find(file, &peer, &own, &user), rows[i].found);
		CU_ASSERT_EQUAL(user, rows[i].user);
		fclose(file);
	}
}

/* Whose connection is made, and how: of `mapped`, an IPv4 address is written as one of IPv6. */
struct connection { bool v6, mapped, closed; uid_t other; };

/* Connects, in a process of another user or of ours, until `go` has no writer.  `closed`: the
 * process closes the connection at once. */
static void connect_and_wait(const struct connection *c, union loopback_peer at, socklen_t bytes,
			     int go)
{
	char byte;
	int mine;

	if (c->other && setuid(c->other))
		_exit(1);
	if (c->mapped) {
		at.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
					       .sin6_port = at.v4.sin_port,
					       .sin6_addr.s6_addr = { [10] = 255, 255, 127,
								      [15] = 1 } };
		bytes = sizeof at.v6;
	}
	mine = socket(at.any.sa_family, SOCK_STREAM, 0);
	if (connect(mine, &at.any, bytes))
		_exit(1);
	if (c->closed)
		close(mine);
	_exit(read(go, &byte, 1) != 0);
}

/* Makes a real connection, and returns the result of the check. */
static int said_of_connection(struct connection c)
{
	union loopback_peer at = end_at(c.v6, 0);
	socklen_t bytes = c.v6 ? sizeof at.v6 : sizeof at.v4;
	int listener = socket(at.any.sa_family, SOCK_STREAM, 0), fd, result, go[2];
	uid_t user = 0;
	pid_t pid;

	CU_ASSERT_FATAL(!bind(listener, &at.any, bytes) && !listen(listener, 1) &&
			!getsockname(listener, &at.any, &bytes) && !pipe(go));
	pid = fork();
	if (!pid) {
		close(go[1]);
		connect_and_wait(&c, at, bytes, go[0]);
	}
	close(go[0]);
	fd = accept(listener, NULL, NULL);
	if (c.closed) { /* the close was noticed */
		char byte;

		CU_ASSERT_EQUAL(read(fd, &byte, 1), 0);
	}
	result = loopback_peer_check(fd, &user);
	CU_ASSERT(result == -ESRCH || user == (c.other ? c.other : geteuid()));
	close(go[1]);
	CU_ASSERT(waitpid(pid, NULL, 0) == pid);
	close(fd);
	close(listener);
	return result;
}

static bool has_ipv6(void)
{
	union loopback_peer at = end_at(true, 0);
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool has = fd >= 0 && !bind(fd, &at.any, sizeof at.v6);

	if (fd >= 0)
		close(fd);
	return has;
}

static void connections(void)
{
	for (int form = 0; form < (has_ipv6() ? 3 : 1); form++) {
		struct connection c = { .v6 = form == 1, .mapped = form == 2 };

		CU_ASSERT_EQUAL(said_of_connection(c), 0);
		c.closed = true;
		CU_ASSERT_EQUAL(said_of_connection(c), -ESRCH);
		c.closed = false;
		c.other = 65534;
		if (geteuid() == 0) /* only root can become another user */
			CU_ASSERT_EQUAL(said_of_connection(c), -EPERM);
	}
}

/* The path of a kernel may come from a snapshot; it is printed as a command to paste. */
static void pasted(void)
{
	static const struct { const char *kernel, *line;
	} rows[] = {
		{ "/k/vmlinux-6.1", "gdb /k/vmlinux-6.1 -ex 'target " },
		{ "", "gdb '' -ex 'target " },
		{ "/a b;$(reboot)", "gdb '/a b;$(reboot)' -ex 'target " },
		{ "/it's", "gdb '/it'\\''s' -ex 'target " },
		{ "/a\nb\033c", "gdb '/a?b?c' -ex 'target " },
		{ "/a\302\233c\303\244", "gdb '/a??c\303\244' -ex 'target " },
		/* gdb would run the commands of an option */
		{ "--command=/a", "gdb ./--command=/a -ex 'target " },
		{ "-ex=shell reboot", "gdb './-ex=shell reboot' -ex 'target " },
	};
	struct gdb_address a;
	struct gdbserver g;
	struct problem p;
	char line[4200], word[4096];

	CU_ASSERT_FATAL(!gdb_address_parse("127.0.0.1:0", &a, &p) && !gdbserver_listen(&g, &a, &p));
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		gdbserver_describe(&g, rows[i].kernel, line, sizeof line);
		CU_ASSERT(!strncmp(line, rows[i].line, strlen(rows[i].line)));
	}
	memset(word, '\'', sizeof word - 1);
	word[sizeof word - 1] = 0;
	gdbserver_describe(&g, word, line, sizeof line);
	CU_ASSERT(strlen(line) < sizeof line);
	close(g.fd);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "addresses", addresses },
		{ "who connects", peers },
		{ "connections", connections },
		{ "a line to paste", pasted },
		UNIT_END
	};

	return UNIT_RUN("GDB connections", tests);
}
