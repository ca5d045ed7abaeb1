/* phnx_strangers.c - who is refused, and what many strangers cannot use up.  A part of phnx_net. */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/unit/phnx_net.h"

/* ---- strangers ---- */

static int role_stranger(int role)
{
	setenv("PHNX_SECRET", role ? "one" : "another", 1);
	start(role + 1, role ? 1 : 2, "tests");
	for (int i = 0; i < PATIENCE / 10000 && !errors[-PH_EREFUSED]; i++)
		CHECK(ph_timed_recv(PH_MSG_ANY_TAG, 10000) == PH_MSG_INVALID);
	CHECK(errors[-PH_EREFUSED] > 0);	/* both sides report the reason */
	ph_timed_recv(PH_MSG_ANY_TAG, 300000);		/* the other node sees it, too */
	ph_finalize(NULL, 0);
	return 0;
}

/* A refusal names the peer: the host that this node has dialed, or the address that it came
 * from; and its resource name. */
static int role_named(int role)
{
	char dialed[80];

	setenv("PHNX_SECRET", role ? "one" : "another", 1);
	snprintf(dialed, sizeof dialed, "the peer at 127.0.0.1:%d, resource name ", base_port + 1);
	start(role ? 0 : 1, role ? 1 : 0, "tests");
	for (int i = 0; i < PATIENCE / 10000 && !errors[-PH_EREFUSED]; i++)
		ph_timed_recv(PH_MSG_ANY_TAG, 10000);
	CHECK(!strncmp(told, role ? dialed : "the peer at 127.0.0.1, resource name ",
		       role ? strlen(dialed) : 37));
	ph_timed_recv(PH_MSG_ANY_TAG, 300000);		/* gives the other node time to try again */
	ph_finalize(NULL, 0);
	return 0;
}

/* TLS fails before either side has sent a frame; both report the same reason all the same. */
static int role_tls_stranger(int role)
{
	char want[100], port[16] = "";

	setenv("PHNX_SECRET", role ? "one" : "another", 1);
	start(role ? 0 : 1, 0, "tests");
	if (role)
		ph_add_port_ssl("127.0.0.1", base_port + 1);
	for (int i = 0; i < PATIENCE / 10000 && !errors[-PH_EREFUSED]; i++)
		ph_timed_recv(PH_MSG_ANY_TAG, 10000);
	if (role)
		snprintf(port, sizeof port, ":%d", base_port + 1);
	snprintf(want, sizeof want,
		 "TLS with the peer at 127.0.0.1%s: the secrets of session 'tests' differ", port);
	CHECK(!strcmp(told, want));
	ph_timed_recv(PH_MSG_ANY_TAG, 300000);		/* gives the other node time to try again */
	ph_finalize(NULL, 0);
	return 0;
}

/* Without a session only a process that can read the same user's file is accepted. */
static int role_other_user(int role)
{
	char home[64];

	snprintf(home, sizeof home, "%s/user%d", folder, role);
	setenv("XDG_CONFIG_HOME", home, 1);
	start(role + 1, role ? 1 : 2, NULL);
	CHECK(ph_timed_recv(PH_MSG_ANY_TAG, 700000) == PH_MSG_INVALID);
	CHECK(errors[-PH_EREFUSED] > 0);
	ph_finalize(NULL, 0);
	return 0;
}

static int refuse_one(void)
{
	start(1, 0, NULL);
	for (int i = 0; i < 600 && !errors[-PH_EREFUSED]; i++)
		ph_timed_recv(PH_MSG_ANY_TAG, 100000);
	CHECK(errors[-PH_EREFUSED] == 1 && strstr(told, "the peer at 127.0.0.1"));
	ph_finalize(NULL, 0);
	return 0;
}

static int connect_bare(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)(base_port + 1)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int s;

	while (s = socket(AF_INET, SOCK_STREAM, 0),
	       connect(s, (struct sockaddr *)&in, sizeof in) && close(s) == 0)
		usleep(10000);
	return s;
}

/* Speaks a later version of the protocol, and is told this one. */
static int role_later_version(int role)
{
	enum { HELLO = 1, LATER = 77 };
	unsigned char hello[8 + 4] = { 'P', 'H', HELLO, LATER, 4 };
	char reply[2000] = "";
	size_t n = 0;
	ssize_t got;
	int s;

	if (role == 0)
		return refuse_one();
	s = connect_bare();
	CHECK(write(s, hello, sizeof hello) == sizeof hello);
	while (n < sizeof reply - 1 && (got = read(s, reply + n, sizeof reply - 1 - n)) > 0)
		n += (size_t)got;
	CHECK(memmem(reply, n, "protocol version 6 here, 77 there", 33));
	return 0;
}

/* Reads a frame from a bare socket.  Returns its length with its head; 0: no valid frame. */
static size_t read_frame(int s, unsigned char *frame, size_t room)
{
	enum { HEAD = 8 };
	size_t n = 0, len = HEAD;
	ssize_t got;

	while (n < len && (got = read(s, frame + n, len - n)) > 0) {
		n += (size_t)got;
		if (n >= HEAD)
			len = HEAD + (frame[4] | (size_t)frame[5] << 8);
		if (len > room)
			return 0;
	}
	return n < len ? 0 : len;
}

/* A peer that greets but has no proof gets only what it cannot read: not even the node's
 * address. */
static int role_curious(int role)
{
	enum { AUTH = 2, ASKS = 8 + 5, SESSION = 8 + 7, PROOF = 8 + 32 };
	unsigned char frame[1200];
	size_t len;
	int s;

	if (role == 0)
		return refuse_one();
	s = connect_bare();
	CHECK(write(s, "P", 1) == 1);			/* no TLS */
	CHECK((len = read_frame(s, frame, sizeof frame)) > 0);
	frame[ASKS] ^= 1;
	frame[SESSION + 1 + frame[SESSION] + 8 + 8] ^= 1;	/* another name */
	CHECK(write(s, frame + 1, len - 1) == (ssize_t)len - 1);
	CHECK((len = read_frame(s, frame, sizeof frame)) > PROOF && frame[2] == AUTH);
	CHECK(!memmem(frame, len, "127.0.0.1", 9));
	/* nor does it accept the node's own proof */
	CHECK(write(s, frame, len) == (ssize_t)len);
	CHECK(read_frame(s, frame, sizeof frame) > 0 && memmem(frame, sizeof frame, "differ", 6));
	close(s);
	return 0;
}

static void test_strangers(void)
{
	run_roles(role_stranger, 2);
	run_roles(role_named, 2);
	run_roles(role_tls_stranger, 2);
	run_roles(role_other_user, 2);
	run_roles(role_later_version, 2);
	run_roles(role_curious, 2);
}

/* ---- few descriptors ---- */

enum { FEW = 64, CROWD = 200 };

/* Many peers connect and send nothing, or the beginning of a frame: they do not use up all
 * descriptors. */
static int role_crowded(int role)
{
	struct rlimit few = { FEW, FEW };
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)(base_port + 1)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fds[CROWD];

	if (role == 0) {
		CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
		start(1, 0, NULL);
		for (int i = 0; i < 50; i++) {
			ph_timed_recv(9, 20000);
			int fd = dup(0);
			CHECK(fd >= 0 && close(fd) == 0);
		}
	} else {
		for (int i = 0; i < CROWD; i++) {
			while (fds[i] = socket(AF_INET, SOCK_STREAM, 0),
			       connect(fds[i], (struct sockaddr *)&in, sizeof in) && !close(fds[i]))
				usleep(10000);
			(void)!send(fds[i], "PH", i % 3, MSG_NOSIGNAL);
		}
		usleep(1000000);
		for (int i = 0; i < CROWD; i++)
			close(fds[i]);
		start(0, 1, NULL);
	}
	return ask_and_answer(role);
}

/* Peers that send too little and stay connected do not keep others out until their time is up. */
static int role_besieged(int role)
{
	enum { AT_ONCE = 3500000 };		/* their time is 5 seconds */
	struct rlimit few = { FEW, FEW };
	ph_msg_t m;

	if (role == 0) {
		CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
		start(1, 0, NULL);
		ph_send(40, "", 1, 30);
	} else {
		for (int i = 0; i < FEW; i++)
			(void)!send(connect_bare(), i % 2 ? "PH\1\5" : "\x16\3\1\2",
				    (size_t)(i % 5), MSG_NOSIGNAL);
		usleep(200000);
		start(0, 1, NULL);
		assume_range(32, SPACE);
		CHECK((m = ph_timed_recv(30, AT_ONCE)));
		ph_msg_destroy(m);
	}
	return ask_and_answer(role);
}

/* A node without free descriptors does not spin on new connections, and accepts again when there
 * is one. */
static int role_full(int role)
{
	struct rlimit few = { FEW, FEW };
	int fds[FEW], n = 0;

	if (role == 1) {
		start(0, 1, NULL);
		return ask_and_answer(role);
	}
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	start(1, 0, NULL);
	while ((fds[n] = dup(0)) >= 0)
		n++;
	clock_t before = clock();
	ph_timed_recv(9, 500000);
	CHECK(clock() - before < CLOCKS_PER_SEC / 4);
	while (n > 0)
		close(fds[--n]);
	return ask_and_answer(role);
}

static void test_few_descriptors(void)
{
	run_roles(role_crowded, 2);
	run_roles(role_besieged, 2);
	run_roles(role_full, 2);
}

const struct unit_test tests_of_strangers[] = {
	{ "another secret is refused", test_strangers },
	{ "few descriptors", test_few_descriptors },
	UNIT_END
};
