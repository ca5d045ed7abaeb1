/* phnx_misuse.c - arguments that are missing or impossible, and handlers that keep their own
 * node busy: an error code or a report, never a crash. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "phnx/phnx.h"
#include "tests/unit/unit.h"

enum { SPACE = 10, BRIEFLY = 20000 };
static int reported[32];

static void count_error(void *arg, int error, const char *text)
{
	(void)arg;
	reported[text && *text ? -error : 0]++;
}

/* Returns how often `error` was reported since the last call. */
static int reports(int error)
{
	int n = reported[-error];

	reported[-error] = 0;
	return n;
}

static void never(void *arg)
{
	(void)arg;
	CU_FAIL("a page was released that was never sent");
}

static void add_up(void *into, const void *from, size_t len)
{
	(void)into;
	(void)from;
	(void)len;
}

/* ---- every call without a running library ---- */

static ph_vp_t calls_nothing(void)
{
	static char config[] = "listen_port 30000";
	struct iovec piece = { "x", 1 };
	ph_vps_t some = ph_vps_create_range(0, 5);
	int value = 1, bad = 0;

	/* These calls report. */
	ph_finalize(NULL, 0);
	ph_assume_vps(some);
	ph_assume_vp(1);
	ph_release_vps(some);
	ph_release_vp(1);
	ph_vps_destroy(some);
	ph_vps_t none = ph_get_assumed_vps();
	bad += !ph_vps_is_empty(none);
	ph_vps_destroy(none);
	bad += ph_get_resource_name() != PH_INVALID_VP;
	ph_send(1, "x", 1, 1);
	ph_timed_send(1, "x", 1, 1, 1000);
	bad += ph_recv(1) != PH_MSG_INVALID;
	bad += ph_rcv(1) != PH_MSG_INVALID;
	bad += ph_try_recv(1) != PH_MSG_INVALID;
	bad += ph_try_rcv(1) != PH_MSG_INVALID;
	bad += ph_timed_recv(1, BRIEFLY) != PH_MSG_INVALID;
	bad += ph_timed_rcv(1, BRIEFLY) != PH_MSG_INVALID;
	ph_add_port_tcp("localhost", 1);
	ph_add_port_ssh("localhost", 1, NULL);
	ph_add_port_ssl("localhost", 1);
	ph_load_msgs("/dev/null");
	ph_set_listen_port(1, 2);
	ph_set_session_id("misuse");
	ph_read_config(config, sizeof config - 1, NULL);
	ph_finalize_runtime();
	ph_invalidate_routing();
	bad += ph_mqueue_is_empty() != 1;
	ph_store_msgs("/dev/null");
	ph_prefer_ssl();
	ph_flush(1);
	ph_cork();
	ph_uncork();
	ph_break_connections();
	ph_set_failure_timeout(1, PH_GONE_RESEND, NULL, NULL);
	ph_set_migration(NULL);
	bad += ph_is_held(1) != 0;
	enum { REPORT = 33 };
	/* These calls report, and return the error. */
	int error[] = {
		ph_sendx(1, "x", 1, 1, 0),
		ph_sendv(1, &piece, 1, 1),
		ph_send_page(1, "x", 1, 1, never, NULL),
		ph_send_sealed(1, "x", 1, 1, never, NULL),
		ph_set_handler(1, NULL, NULL),
		ph_get_fd(),
		(int)ph_get_rtt(1),
		(int)ph_get_silence(1),
		ph_listen_unix("/nonexistent"),
		ph_add_port_unix("/nonexistent"),
		ph_get_listen_port(),
		ph_join_vps(1),
		ph_leave_vps(1),
		ph_take_over(1, 1, 1),
		ph_hand_over(1, 1, 1),
		ph_multicast(0, 1, "x", 1, 1),
		ph_reduce(0, 1, 1, &value, sizeof value, add_up, 1),
		ph_barrier(0, 1, 1, 1),
	};
	enum { RETURN = sizeof error / sizeof *error };
	int expected = error[0];
	for (size_t i = 0; i < RETURN; i++)
		bad += error[i] != expected;
	bad += expected != PH_ENOTINIT && expected != PH_EFORK;
	bad += reports(expected) != REPORT + RETURN;
	/* These calls need no runtime. */
	bad += ph_get_vp_lower_bound() != 0 || ph_get_vp_upper_bound() != 0 ||
	       ph_get_random_vp() != PH_INVALID_VP;
	return bad ? -1 : expected;
}

static void test_before_and_after(void)
{
	int status;

	ph_finalize(NULL, 0);
	CU_ASSERT_EQUAL(calls_nothing(), PH_ENOTINIT);
	ph_init(0, 0, NULL, NULL, "misuse", NULL);
	pid_t child = fork();
	if (child == 0)
		_exit(calls_nothing() == PH_EFORK ? 0 : 1);
	CU_ASSERT(waitpid(child, &status, 0) == child && status == 0);
	/* the parent's runtime goes on */
	CU_ASSERT_NOT_EQUAL(ph_get_resource_name(), PH_INVALID_VP);
	ph_finalize(NULL, 0);
	ph_init(0, SPACE, NULL, NULL, "misuse", NULL);
}

/* ---- a running library ---- */

static int start(void)
{
	setenv("PHNX_SECRET", "for the test", 1);
	ph_set_error_callback(count_error, NULL);
	ph_init(0, SPACE, NULL, NULL, "misuse", NULL);
	return reported[-PH_ENOTINIT];
}

static int stop(void)
{
	ph_finalize(NULL, 0);
	return reported[0];		/* an error without a text */
}

/* Without the user's own secret a NULL session gets a secret that nobody knows. */
static void test_no_home(void)
{
	setenv("HOME", "/nonexistent", 1);
	unsetenv("XDG_CONFIG_HOME");
	ph_finalize(NULL, 0);
	ph_init(0, SPACE, NULL, NULL, NULL, NULL);
	CU_ASSERT_EQUAL(reports(PH_ESYSTEM), 1);
	ph_finalize(NULL, 0);
	ph_init(0, SPACE, NULL, NULL, "misuse", NULL);
	CU_ASSERT_EQUAL(reports(PH_ESYSTEM), 0);
}

/* A session whose secret is an empty line does not get one that others could know. */
static void test_empty_secret(void)
{
	ph_finalize(NULL, 0);
	setenv("PHNX_SECRET", "\n", 1);
	ph_init(0, SPACE, NULL, NULL, "misuse", NULL);
	CU_ASSERT_EQUAL(reports(PH_ECONFIG), 1);
	/* so there is no secret, and there is no home folder either */
	CU_ASSERT_EQUAL(reports(PH_ESYSTEM), 1);
	ph_finalize(NULL, 0);
	setenv("PHNX_SECRET", "for the test", 1);
	ph_init(0, SPACE, NULL, NULL, "misuse", NULL);
	CU_ASSERT_EQUAL(reports(PH_ECONFIG), 0);
}

/* Resource names are above the virtual nodes, and never below 2^62. */
static void test_names(void)
{
	static const ph_vp_t uppers[] = { 0, SPACE, (1LL << 62) + 1, INT64_MAX - 100 };

	for (size_t i = 0; i < sizeof uppers / sizeof *uppers; i++) {
		ph_finalize(NULL, 0);
		ph_init(0, uppers[i], NULL, NULL, "misuse", NULL);
		ph_vp_t name = ph_get_resource_name();
		CU_ASSERT(name >= 1LL << 62 && name >= uppers[i]);
	}
	ph_finalize(NULL, 0);
	ph_init(SPACE, 0, NULL, NULL, "misuse", NULL);
	ph_init(-1, SPACE, NULL, NULL, "misuse", NULL);
	CU_ASSERT_EQUAL(reports(PH_EINVAL), 2);
	ph_init(0, SPACE, NULL, NULL, "misuse", NULL);
	CU_ASSERT_EQUAL(reports(PH_EINVAL), 0);
	ph_init(0, SPACE, NULL, NULL, "misuse", NULL);	/* the second time */
	CU_ASSERT_EQUAL(reports(PH_EINVAL), 1);
}

static void test_bodies(void)
{
	struct iovec missing = { NULL, 5 }, huge[2] = { { "x", SIZE_MAX }, { "x", 2 } };

	ph_send(1, NULL, 5, 1);
	ph_timed_send(1, NULL, 5, 1, 1000);
	CU_ASSERT_EQUAL(reports(PH_EINVAL), 2);
	CU_ASSERT_EQUAL(ph_sendx(1, NULL, 5, 1, 0), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_sendx(1, "x", (size_t)PH_MSG_MAX + 1, 1, 0), PH_ETOOBIG);
	CU_ASSERT_EQUAL(ph_send_page(1, NULL, 5, 1, never, NULL), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_send_page(1, "x", 1, 1, NULL, NULL), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_send_sealed(1, "x", 1, 1, NULL, NULL), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_send_page(SPACE, "x", 1, 1, never, NULL), PH_EBOUND);
	CU_ASSERT_EQUAL(ph_send_page(1, "x", (size_t)PH_MSG_MAX + 1, 1, never, NULL), PH_ETOOBIG);
	CU_ASSERT_EQUAL(ph_sendv(1, &missing, 1, 1), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_sendv(1, NULL, 1, 1), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_sendv(1, &missing, -1, 1), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_sendv(1, huge, 2, 1), PH_ETOOBIG);
	ph_send(1, NULL, 0, 1);		/* an empty message is a message */
	CU_ASSERT_EQUAL(reports(PH_EINVAL), 0);
}

static void test_virtual_nodes(void)
{
	static const ph_vp_t outside[] = { -1, SPACE, INT64_MAX, INT64_MIN };
	ph_vps_t none = ph_vps_create_singleton(INT64_MAX);

	CU_ASSERT(ph_vps_is_empty(none));
	ph_vps_destroy(none);
	for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
		ph_assume_vp(outside[i]);
		ph_release_vp(outside[i]);
	}
	/* nothing is above the largest number: an empty set, which is allowed */
	CU_ASSERT(reports(PH_EBOUND) >= 6);
	ph_assume_vps(NULL);
	ph_release_vps(NULL);
	CU_ASSERT_EQUAL(reports(PH_EINVAL), 2);
	CU_ASSERT(ph_vps_is_empty(NULL) && !ph_vps_is_member(NULL, 1) && ph_vps_is_sub(NULL, NULL));
	ph_vps_destroy(NULL);
	ph_msg_destroy(NULL);
}

static void test_files_and_points(void)
{
	char config[] = "listen_port {1-2\n dest {}", *no_config = NULL;

	ph_read_config(no_config, 0, NULL);
	ph_load_msgs(NULL);
	ph_store_msgs(NULL);
	CU_ASSERT_EQUAL(reports(PH_EINVAL), 3);
	ph_read_config(config, strlen(config), NULL);
	CU_ASSERT_EQUAL(reports(PH_ECONFIG), 1);
	ph_load_msgs("/nonexistent");
	ph_store_msgs("/nonexistent/log");
	ph_store_msgs("/dev/null");	/* the log must not take its place */
	CU_ASSERT_EQUAL(reports(PH_ELOG), 3);
	ph_add_port_tcp(NULL, 80);
	ph_add_port_tcp("", 80);
	ph_add_port_tcp("localhost", 0);
	ph_add_port_ssl("localhost", 70000);
	ph_add_port_ssh("-oProxyCommand=x", 80, NULL);
	ph_set_listen_port(5, 5);
	ph_set_listen_port(70000, 80000);
	ph_set_listen_port(-3, 4);
	ph_set_session_id("a/b");
	CU_ASSERT_EQUAL(reports(PH_EINVAL), 9);
	CU_ASSERT_EQUAL(ph_add_port_unix(NULL), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_listen_unix(NULL), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_init_in_loop(0, 1, NULL, NULL, NULL), PH_EINVAL);
	reports(PH_EINVAL);
}

static void test_together(void)
{
	int value = 1;

	CU_ASSERT_EQUAL(ph_multicast(5, 2, "x", 1, 1), PH_EBOUND);
	CU_ASSERT_EQUAL(ph_multicast(0, SPACE + 1, "x", 1, 1), PH_EBOUND);
	CU_ASSERT_EQUAL(ph_multicast(0, SPACE, NULL, 1, 1), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_reduce(0, SPACE + 1, 1, &value, sizeof value, add_up, BRIEFLY),
			PH_EBOUND);
	CU_ASSERT_EQUAL(ph_reduce(0, SPACE, 1, NULL, sizeof value, add_up, BRIEFLY), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_reduce(0, SPACE, 1, &value, sizeof value, NULL, BRIEFLY), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_reduce(0, SPACE, 1, &value, (size_t)PH_MSG_MAX, add_up, BRIEFLY),
			PH_ETOOBIG);
	CU_ASSERT_EQUAL(ph_take_over(0, 1, BRIEFLY), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_hand_over(-1, 1, BRIEFLY), PH_EINVAL);
	/* it has nothing to hand over, which is fine */
	CU_ASSERT_EQUAL(ph_leave_vps(BRIEFLY), 0);
	CU_ASSERT_EQUAL(ph_join_vps(BRIEFLY), PH_ETIMEDOUT);	/* there is no other node */
	CU_ASSERT_EQUAL(ph_get_rtt(5), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_get_silence(5), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_get_silence(ph_get_resource_name()), PH_EINVAL);
	CU_ASSERT_EQUAL(ph_is_held(SPACE - 1), 0);
	ph_assume_vp(SPACE - 1);
	CU_ASSERT_EQUAL(ph_is_held(SPACE - 1), 1);
	CU_ASSERT_EQUAL(ph_is_held(ph_get_resource_name()), 1);
	ph_release_vp(SPACE - 1);
	CU_ASSERT_EQUAL(ph_is_held(SPACE - 1), 0);
	CU_ASSERT_EQUAL(ph_is_held(-1), 0);
	CU_ASSERT_EQUAL(ph_get_source(NULL), PH_INVALID_VP);
	ph_set_migration(NULL);
}

/* A message goes in circles within one node: a handler sends it on. */
static void pass_on(void *arg, const struct ph_msg *m, ph_vp_t source)
{
	int left;

	(void)source;
	memcpy(&left, m->body, sizeof left);
	++*(atomic_int *)arg;
	left--;
	if (left > 0)
		ph_send(left % 3 ? m->dest : (m->dest + 1) % SPACE, &left, sizeof left, m->tag);
}

static void test_handler_sends_to_itself(void)
{
	int rounds = 10000;
	atomic_int seen = 0;
	ph_vps_t all = ph_vps_create_range(0, SPACE);

	ph_assume_vps(all);
	ph_set_handler(9, pass_on, &seen);
	ph_send(1, &rounds, sizeof rounds, 9);
	for (int i = 0; i < 500 && seen < rounds; i++)
		ph_timed_recv(10, BRIEFLY);
	CU_ASSERT_EQUAL(seen, rounds);
	ph_set_handler(9, NULL, NULL);
	ph_release_vps(all);
	ph_vps_destroy(all);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "every call before initialisation, after finalisation, after fork",
		  test_before_and_after },
		{ "a home that is not there", test_no_home },
		{ "a secret that is none", test_empty_secret },
		{ "resource names, bounds", test_names },
		{ "bodies", test_bodies },
		{ "virtual nodes", test_virtual_nodes },
		{ "files, contact points, ports", test_files_and_points },
		{ "collective operations and migration", test_together },
		{ "a handler that sends to its own node", test_handler_sends_to_itself },
		UNIT_END
	};

	return start() || UNIT_RUN("wrong arguments", tests) || stop();
}
