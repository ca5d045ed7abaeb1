/* phnx_loop.c - nodes in a caller's event loop, over local sockets: order while connections
 * break, messages in pieces, handlers that answer, a wrong secret, the sudden death of a daemon. */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "phnx/phnx.h"
#include "tests/unit/unit.h"

enum {
	MESSAGES = 20000,
	BREAKS = 15,
	WINDOW = 100,
	ASK = 7,
	ANSWER = 8,
	BLOCK = 4096,
	PATIENCE_S = 90
};

static char folder[] = "/tmp/phnx-loop-XXXXXX";
static struct event_base *base;
static int refused, gone;
static long next_in, next_out;
static char page[BLOCK];
static unsigned writes;		/* to sockets; linked with --wrap */

ssize_t __real_send(int fd, const void *buf, size_t n, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t n, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);

ssize_t __wrap_send(int fd, const void *buf, size_t n, int flags)
{
	writes++;
	return __real_send(fd, buf, n, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	writes++;
	return __real_sendmsg(fd, msg, flags);
}

/* A role runs in its own process; it fails by returning a line number. */
#define CHECK(x) do { if (!(x)) return __LINE__; } while (0)

static void path_of(char path[128], const char *name)
{
	snprintf(path, 128, "%s/%s", folder, name);
}

static void write_secret(const char *name, mode_t mode)
{
	char path[128];

	path_of(path, name);
	FILE *f = fopen(path, "w");
	if (!f || fputs(name, f) < 0 || fclose(f) || chmod(path, mode))
		exit(2);
}

static void on_error(void *arg, int error, const char *text)
{
	(void)arg;
	if (getenv("PHNX_VERBOSE"))
		fprintf(stderr, "[%d] %s: %s\n", (int)getpid(), ph_strerror(error), text);
	refused += error == PH_EREFUSED;
}

static void on_gone(void *arg, ph_vp_t name, const struct ph_msg *returned)
{
	(void)arg, (void)name, (void)returned;
	gone++;
	event_base_loopbreak(base);
}

/* Starts node `me` of two; node 1 dials. */
static int start(int me, const char *secret)
{
	char path[128];

	base = event_base_new();
	ph_set_error_callback(on_error, NULL);
	path_of(path, secret);
	CHECK(ph_init_in_loop(0, 2, "test", path, base) == 0);
	path_of(path, "0.sock");
	CHECK((me ? ph_add_port_unix(path) : ph_listen_unix(path)) == 0);
	ph_assume_vp(me);
	return 0;
}

static int ask(void)
{
	struct iovec pieces[] = { { &next_out, sizeof next_out },
				  { NULL, 0 },
				  { page, next_out % 3 ? 0 : sizeof page } };

	next_out++;
	return ph_sendv(0, pieces, 3, ASK);
}

static void on_ask(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	long n;

	(void)arg, (void)source;
	memcpy(&n, msg->body, sizeof n);
	if (n != next_in + 1 || (size_t)(uintptr_t)msg->body % 16 ||
	    msg->len != sizeof n + ((n - 1) % 3 ? 0 : BLOCK))
		_exit(1);
	next_in++;
	struct iovec piece = { &n, sizeof n };
	if (ph_sendv(1, &piece, 1, ANSWER))
		_exit(2);
	if (n % (MESSAGES / BREAKS) == 0)
		ph_break_connections();
}

static void on_answer(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	long n;

	(void)arg, (void)source;
	memcpy(&n, msg->body, sizeof n);
	if (msg->len != sizeof n || n != ++next_in)
		_exit(3);
	if (next_in == MESSAGES)
		event_base_loopbreak(base);
	else if (next_out < MESSAGES && ask())
		_exit(4);
}

static int role_asks(void)
{
	CHECK(start(1, "secret") == 0);
	CHECK(ph_set_handler(ANSWER, on_answer, NULL) == 0);
	for (int i = 0; i < WINDOW; i++)
		CHECK(ask() == 0);
	event_base_dispatch(base);
	CHECK(next_in == MESSAGES && next_out == MESSAGES);
	ph_finalize(NULL, 5);
	event_base_free(base);
	return 0;
}

/* The link is up when the first answer comes.  Then WINDOW messages leave in a few writes, and not
 * before ph_uncork(); so do their answers. */
static void on_corked_answer(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	unsigned before = writes;

	(void)arg, (void)msg, (void)source;
	if (next_in++ == 0) {
		ph_cork();
		ph_cork();
		while (next_out < WINDOW)
			if (ask())
				_exit(5);
		ph_uncork();
		if (ask() || writes > before + WINDOW / 4)
			_exit(6);
		ph_uncork();
		if (writes == before)
			_exit(7);
	} else if (next_in == next_out) {
		event_base_loopbreak(base);
	}
}

static int role_corks(void)
{
	CHECK(start(1, "secret") == 0);
	ph_uncork();			/* without a ph_cork(): nothing happens */
	CHECK(ph_set_handler(ANSWER, on_corked_answer, NULL) == 0);
	CHECK(ask() == 0);
	event_base_dispatch(base);
	CHECK(next_in == WINDOW + 1);
	ph_finalize(NULL, 5);
	event_base_free(base);
	return 0;
}

static int role_answers_corked(void)
{
	CHECK(start(0, "secret") == 0);
	CHECK(ph_set_handler(ASK, on_ask, NULL) == 0);
	ph_set_failure_timeout(1000000, PH_GONE_DISCARD, on_gone, NULL);
	event_base_dispatch(base);	/* until the other node has left */
	CHECK(next_in == WINDOW + 1);
	ph_finalize(NULL, 1);
	event_base_free(base);
	return 0;
}

static int role_answers(void)
{
	CHECK(start(0, "secret") == 0);
	CHECK(ph_set_handler(ASK, on_ask, NULL) == 0);
	ph_set_failure_timeout(1000000, PH_GONE_DISCARD, on_gone, NULL);
	event_base_dispatch(base);	/* until the other node has left or died */
	CHECK(next_in == MESSAGES);
	ph_finalize(NULL, 1);
	event_base_free(base);
	return 0;
}

/* Node `me`, whose peer has another secret: everything is refused for a while. */
static int is_refused(int me, const char *secret)
{
	struct timeval t = { 0, 500000 };

	CHECK(start(me, secret) == 0);
	while (!refused)
		CHECK(event_base_loop(base, EVLOOP_ONCE) == 0);
	event_base_loopexit(base, &t);
	event_base_dispatch(base);
	ph_finalize(NULL, 0);
	event_base_free(base);
	return 0;
}

static int role_stranger(void) { return is_refused(1, "other"); }
static int role_host(void) { return is_refused(0, "secret"); }

/* Dies within the handler of a message. */
static void on_last(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	(void)arg, (void)msg, (void)source;
	raise(SIGKILL);
}

static int role_dies(void)
{
	CHECK(start(1, "secret") == 0);
	CHECK(ph_set_handler(ASK, on_last, NULL) == 0);
	event_base_dispatch(base);
	return 0;
}

static int role_notices(void)
{
	struct iovec piece = { page, 1 };

	CHECK(start(0, "secret") == 0);
	ph_set_failure_timeout(1500000, PH_GONE_DISCARD, on_gone, NULL);
	CHECK(ph_sendv(1, &piece, 1, ASK) == 0);
	event_base_dispatch(base);
	CHECK(gone == 1);
	ph_finalize(NULL, 0);
	event_base_free(base);
	return 0;
}

/* Longer than a busy host keeps a process waiting, and shorter than the time for which both are
 * stopped. */
enum { SILENCE_US = 3000000, STANDSTILL_US = 4500000, RUN_S = 8 };

static int stops_as(int node)
{
	struct timeval t = { RUN_S, 0 };

	CHECK(start(node, "secret") == 0);
	ph_set_failure_timeout(SILENCE_US, PH_GONE_DISCARD, on_gone, NULL);
	event_base_loopexit(base, &t);
	event_base_dispatch(base);
	CHECK(gone == 0);
	return 0;
}

static int role_host_that_stops(void)
{
	return stops_as(0);
}

/* It runs until it is killed, since its peer may begin later. */
static int role_guest_that_stops(void)
{
	int status = stops_as(1);

	while (!status)
		event_base_dispatch(base);
	return status;
}

static pid_t run_role(int (*role)(void))
{
	fflush(stdout);
	pid_t pid = fork();

	if (pid == 0) {
		alarm(PATIENCE_S);
		_exit(role() % 256);
	}
	return pid;
}

static void run_pair(int (*a)(void), int (*b)(void), int status_of_b)
{
	pid_t first = run_role(a), second = run_role(b);
	int status;

	waitpid(first, &status, 0);
	if (status)
		printf("\nline %d (mod 256), signal %d\n", WEXITSTATUS(status), WTERMSIG(status));
	CU_ASSERT_EQUAL(status, 0);
	waitpid(second, &status, 0);
	if (status != status_of_b)
		printf("\nline %d (mod 256), signal %d\n", WEXITSTATUS(status), WTERMSIG(status));
	CU_ASSERT_EQUAL(status, status_of_b);
}

static void test_breaks(void)
{
	run_pair(role_answers, role_asks, 0);
}

static void test_cork(void)
{
	run_pair(role_answers_corked, role_corks, 0);
}

static void test_stranger(void)
{
	run_pair(role_host, role_stranger, 0);
}

static void test_death(void)
{
	run_pair(role_notices, role_dies, SIGKILL);
}

/* Both processes are stopped, as when their host is suspended: neither may declare the other
 * gone. */
static void test_standstill(void)
{
	pid_t host = run_role(role_host_that_stops), guest = run_role(role_guest_that_stops);
	int status;

	usleep(500000);
	kill(host, SIGSTOP);
	kill(guest, SIGSTOP);
	usleep(STANDSTILL_US);
	kill(host, SIGCONT);
	kill(guest, SIGCONT);
	waitpid(host, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	kill(guest, SIGKILL);
	waitpid(guest, &status, 0);
	CU_ASSERT_EQUAL(status, SIGKILL);
}

static void test_bad_input(void)
{
	char path[128];

	base = event_base_new();
	ph_set_error_callback(on_error, NULL);
	path_of(path, "open");
	/* others can read it */
	CU_ASSERT_EQUAL(ph_init_in_loop(0, 2, "test", path, base), PH_ECONFIG);
	path_of(path, "none");
	CU_ASSERT_EQUAL(ph_init_in_loop(0, 2, "test", path, base), PH_ECONFIG);
	CU_ASSERT_EQUAL(ph_listen_unix(path), PH_ENOTINIT);
	path_of(path, "secret");
	CU_ASSERT_EQUAL(ph_init_in_loop(0, 2, "test", path, NULL), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_init_in_loop(0, 2, "test", path, base), 0);
	CU_ASSERT_EQUAL(ph_listen_unix(path), PH_EPORT);	/* it exists already */
	CU_ASSERT_EQUAL(ph_add_port_unix(""), PH_EINVAL);
	path_of(path, "sock");
	CU_ASSERT_EQUAL(ph_listen_unix(path), 0);
	CU_ASSERT_EQUAL(access(path, F_OK), 0);
	ph_finalize(NULL, 0);
	CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
	event_base_free(base);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "all arrive once and in order while connections break", test_breaks },
		{ "messages of one cork leave together", test_cork },
		{ "another secret is refused", test_stranger },
		{ "a death is noticed", test_death },
		{ "all stand still, and none is taken for dead", test_standstill },
		{ "bad input", test_bad_input },
		UNIT_END
	};
	char command[64];
	int status;

	if (!mkdtemp(folder))
		return 2;
	write_secret("secret", 0600);
	write_secret("other", 0600);
	write_secret("open", 0644);
	status = UNIT_RUN("Phoenix in a caller's loop", tests);
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command) || status;
}
