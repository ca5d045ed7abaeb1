/* phnx_net.c - real processes on this machine: TCP, TLS, an SSH tunnel (this program plays ssh), sessions and secrets,
 * message logs, migration with state, handlers, and every call at the wrong time. */
#include <CUnit/Basic.h>
#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "phnx/phnx.h"

enum { SPACE = 64, PATIENCE = 60000000, MAX_ROLES = 8 };

static int base_port;
static char folder[] = "/tmp/phnx-net-XXXXXX";
static int errors[32];

static void count_error(void *arg, int error, const char *text)
{
	(void)arg;
	if (getenv("PHNX_VERBOSE"))
		fprintf(stderr, "[%d] %s: %s\n", (int)getpid(), ph_strerror(error), text);
	errors[-error]++;
}

/* A role runs in its own process; it fails by returning a line number. */
#define CHECK(x) do { if (!(x)) return __LINE__; } while (0)

static void run_roles(int (*role)(int), int n)
{
	pid_t pids[MAX_ROLES];
	int status;

	base_port += 10;
	fflush(stdout);
	for (int i = 0; i < n; i++)
		if ((pids[i] = fork()) == 0) {
			alarm(90);
			_exit(role(i) % 256);
		}
	for (int i = 0; i < n; i++) {
		waitpid(pids[i], &status, 0);
		if (status)
			printf("\nrole %d: line %d (mod 256), signal %d\n", i, WEXITSTATUS(status), WTERMSIG(status));
		CU_ASSERT_EQUAL(status, 0);
	}
}

static void assume_range(ph_vp_t lo, ph_vp_t hi)
{
	ph_vps_t vps = ph_vps_create_range(lo, hi);

	ph_assume_vps(vps);
	ph_vps_destroy(vps);
}

static void start(int listen, int dial, const char *session)
{
	ph_set_error_callback(count_error, NULL);
	ph_init_runtime(0, SPACE);
	if (session)
		ph_set_session_id(session);
	if (listen)
		ph_set_listen_port(base_port + listen, base_port + listen + 1);
	if (dial)
		ph_add_port_tcp("127.0.0.1", base_port + dial);
}

/* Role 0 asks, role 1 answers; sizes around every buffer's border. */
static int ask_and_answer(int role)
{
	static const size_t sizes[] = { 0, 1, 100, 4096, 65535, 65536, 65537, 1000000, 5000000 };
	enum { N = sizeof sizes / sizeof *sizes };
	char *buf = calloc(1, sizes[N - 1]);

	if (role == 0)
		assume_range(0, 32);
	else
		assume_range(32, SPACE);
	for (int i = 0; i < N; i++) {
		if (role == 0) {
			memset(buf, 'a' + i, sizes[i]);
			ph_send(40, buf, sizes[i], i + 1);
		}
		ph_msg_t m = ph_timed_recv(i + 1, PATIENCE);
		CHECK(m && m->len == sizes[i] && m->tag == i + 1);
		for (size_t k = 0; k < sizes[i]; k += 997)
			CHECK(((char *)m->body)[k] == 'a' + i);
		if (role == 1)
			ph_send(3, m->body, m->len, m->tag);
		ph_msg_destroy(m);
	}
	free(buf);
	ph_finalize(NULL, 10);
	return 0;
}

static int role_tcp(int role)
{
	start(role + 1, role ? 1 : 2, NULL);
	return ask_and_answer(role);
}

static void test_tcp(void)
{
	run_roles(role_tcp, 2);
}

static int role_tls(int role)
{
	setenv("PHNX_SECRET", "for tests", 1);
	start(role ? 0 : 1, 0, "tests");
	if (role)
		ph_add_port_ssl("127.0.0.1", base_port + 1);
	return ask_and_answer(role);
}

static void test_tls_with_secret(void)
{
	run_roles(role_tls, 2);
}

/* ---- many messages of all sizes: every byte, also when the sender writes over its buffer at once ---- */

enum { STREAM = 600, STREAM_MOST = 300000 };
static unsigned handled, handled_bad;

static size_t stream_len(unsigned i)
{
	static const size_t some[] = { 0, 1, 60, 2040, 4096, 4097, 16300, 16384, 65536, 131072, STREAM_MOST };
	unsigned pick = i * 2654435761u >> 20;

	return pick % 3 ? some[pick % (sizeof some / sizeof *some)] : pick % 9000;
}

static bool stream_right(const struct ph_msg *m, unsigned i)
{
	bool right = m->len == stream_len(i) && (uintptr_t)m->body % 16 == 0;

	for (size_t k = 0; right && k < m->len; k++)
		right = ((unsigned char *)m->body)[k] == (unsigned char)(i + k * 7);
	return right;
}

static void on_stream(void *arg, const struct ph_msg *m, ph_vp_t source)
{
	(void)arg;
	handled_bad += source < SPACE || !stream_right(m, 2 * handled);
	handled++;
}

/* Even messages go to a handler, odd ones to a receive; each side sends as it receives. */
static int stream(int role)
{
	unsigned char *buf = malloc(STREAM_MOST);
	ph_msg_t m;

	handled = handled_bad = 0;
	assume_range(role ? 32 : 0, role ? SPACE : 32);
	ph_set_handler(5, on_stream, NULL);
	for (unsigned i = 0, received = 0; i < STREAM || received < STREAM / 2; i++) {
		if (i < STREAM) {
			for (size_t k = 0; k < stream_len(i); k++)
				buf[k] = (unsigned char)(i + k * 7);
			ph_send(role ? 3 : 40, buf, stream_len(i), i % 2 ? 6 : 5);
			memset(buf, 0xee, stream_len(i));
		}
		for (long long wait = i < STREAM ? 0 : PATIENCE; (m = ph_timed_recv(6, wait)); received++) {
			CHECK(stream_right(m, 2 * received + 1));
			ph_msg_destroy(m);
			if (received + 1 == STREAM / 2)
				wait = 0;
		}
		CHECK(i < STREAM || received == STREAM / 2);
	}
	ph_send(role ? 3 : 40, "", 1, 7);
	CHECK((m = ph_timed_recv(7, PATIENCE)));
	ph_msg_destroy(m);
	CHECK(handled == STREAM / 2 && !handled_bad);
	free(buf);
	ph_finalize(NULL, 10);
	return 0;
}

static int role_stream(int role)
{
	start(role + 1, role ? 1 : 2, NULL);
	return stream(role);
}

static int role_tls_stream(int role)
{
	setenv("PHNX_SECRET", "for tests", 1);
	start(role ? 0 : 1, 0, "tests");
	if (role)
		ph_add_port_ssl("127.0.0.1", base_port + 1);
	return stream(role);
}

static void test_stream(void)
{
	run_roles(role_stream, 2);
	run_roles(role_tls_stream, 2);
}

/* ---- addresses: IPv6; a name's second address when nobody answers at the first ---- */

/* Passes the bytes of one connection to 127.0.0.1:from on to 127.0.0.1:to. */
static void relay(int from, int to)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)from), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int l = socket(AF_INET, SOCK_STREAM, 0), on = 1, ends[2];
	char buf[4096];
	ssize_t n;

	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(l, (struct sockaddr *)&in, sizeof in) || listen(l, 1) || (ends[0] = accept(l, NULL, NULL)) < 0)
		_exit(1);
	in.sin_port = htons((uint16_t)to);
	do {
		ends[1] = socket(AF_INET, SOCK_STREAM, 0);
	} while (connect(ends[1], (struct sockaddr *)&in, sizeof in) && usleep(10000) == 0);
	for (;;) {
		struct pollfd p[2] = { { ends[0], POLLIN, 0 }, { ends[1], POLLIN, 0 } };
		poll(p, 2, -1);
		for (int i = 0; i < 2; i++)
			if (p[i].revents && ((n = read(ends[i], buf, sizeof buf)) <= 0 || write(ends[!i], buf, (size_t)n) != n))
				_exit(0);
	}
}

static int role_second_address(int role)
{
	if (role == 2) {
		relay(base_port + 5, base_port + 1);
	} else if (role == 1) {
		start(0, 0, NULL);
		ph_add_port_tcp("localhost", base_port + 5);
	} else {
		start(1, 0, NULL);
	}
	return ask_and_answer(role);
}

static int role_ipv6(int role)
{
	start(role ? 0 : 1, 0, NULL);
	if (role)
		ph_add_port_tcp("::1", base_port + 1);
	return ask_and_answer(role);
}

static void test_addresses(void)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	run_roles(role_second_address, 3);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&six, sizeof six) == 0)	/* else this computer has no IPv6 */
		run_roles(role_ipv6, 2);
	close(fd);
}

static int write_certificate(const char *cert, const char *key)
{
	EVP_PKEY *k = EVP_EC_gen("P-256");
	X509 *x = X509_new();

	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 86400);
	X509_set_pubkey(x, k);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)"t", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	X509_sign(x, k, EVP_sha256());
	FILE *c = fopen(cert, "w"), *f = fopen(key, "w");
	int ok = c && f && PEM_write_X509(c, x) && PEM_write_PrivateKey(f, k, NULL, NULL, 0, NULL, NULL);
	fclose(c);
	fclose(f);
	X509_free(x);
	EVP_PKEY_free(k);
	return ok;
}

static int role_tls_files(int role)
{
	char config[1024];

	setenv("PHNX_SECRET", "for tests", 1);
	ph_set_error_callback(count_error, NULL);
	ph_init_runtime(0, SPACE);
	ph_set_session_id("tests");
	int n = snprintf(config, sizeof config, "match begin r0 -> listen_port %d\n| _ -> listen_port %d\nend\n"
			 "dest 127.0.0.1:%d ssl %s/cert %s/key\n", base_port + 1, base_port + 2, base_port + 2 - role, folder,
			 folder);
	ph_read_config(config, (size_t)n, role ? "r1" : "r0");
	CHECK(errors[-PH_ECONFIG] == 0);
	return ask_and_answer(role);
}

static void test_tls_with_files(void)
{
	char cert[64], key[64];

	snprintf(cert, sizeof cert, "%s/cert", folder);
	snprintf(key, sizeof key, "%s/key", folder);
	CU_ASSERT_TRUE_FATAL(write_certificate(cert, key));
	run_roles(role_tls_files, 2);
	unlink(cert);
	unlink(key);
}

static int role_ssh(int role)
{
	start(role ? 0 : 1, 0, NULL);
	if (role) {
		setenv("PHNX_SSH", "/proc/self/exe", 1);
		ph_add_port_ssh("gateway", base_port + 1, "user");
	}
	return ask_and_answer(role);
}

static void test_ssh(void)
{
	run_roles(role_ssh, 2);
}

/* What ssh -W does, without the encryption. */
static int play_ssh(char **argv)
{
	const char *target = NULL;
	struct sockaddr_in in = { .sin_family = AF_INET };
	char buf[65536];

	for (; *argv; argv++)
		if (!strcmp(*argv, "-W"))
			target = argv[1];
	in.sin_port = htons((uint16_t)atoi(strchr(target, ':') + 1));
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int s = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(s, (struct sockaddr *)&in, sizeof in))
		return 255;
	struct pollfd p[2] = { { 0, POLLIN, 0 }, { s, POLLIN, 0 } };
	while (poll(p, 2, -1) > 0)
		for (int i = 0; i < 2; i++) {
			if (!p[i].revents)
				continue;
			ssize_t n = read(p[i].fd, buf, sizeof buf), at = 0, k;
			if (n <= 0)
				return 0;
			for (; at < n; at += k)
				if ((k = write(i ? 1 : s, buf + at, (size_t)(n - at))) < 0)
					return 0;
		}
	return 0;
}

/* ---- strangers ---- */

static int role_stranger(int role)
{
	setenv("PHNX_SECRET", role ? "one" : "another", 1);
	start(role + 1, role ? 1 : 2, "tests");
	CHECK(ph_timed_recv(PH_MSG_ANY_TAG, 700000) == PH_MSG_INVALID);
	CHECK(errors[-PH_EREFUSED] > 0);	/* both sides learn why */
	ph_finalize(NULL, 0);
	return 0;
}

/* Without a session only who reads the same user's file is let in. */
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

/* Speaks a later version of the protocol, and is told what this one is. */
static int role_later_version(int role)
{
	enum { HELLO = 1, LATER = 77 };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(base_port + 1)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	unsigned char hello[8 + 4] = { 'P', 'H', HELLO, LATER, 4 };
	char reply[2000] = "";
	size_t n = 0;
	ssize_t got;
	int s;

	if (role == 0) {
		start(1, 0, NULL);
		for (int i = 0; i < 600 && !errors[-PH_EREFUSED]; i++)
			ph_timed_recv(PH_MSG_ANY_TAG, 100000);
		CHECK(errors[-PH_EREFUSED] == 1);
		ph_finalize(NULL, 0);
		return 0;
	}
	while (s = socket(AF_INET, SOCK_STREAM, 0), connect(s, (struct sockaddr *)&in, sizeof in) && close(s) == 0)
		usleep(10000);
	CHECK(write(s, hello, sizeof hello) == sizeof hello);
	while (n < sizeof reply - 1 && (got = read(s, reply + n, sizeof reply - 1 - n)) > 0)
		n += (size_t)got;
	CHECK(memmem(reply, n, "protocol version 2 here, 77 there", 33));
	return 0;
}

static void test_strangers(void)
{
	run_roles(role_stranger, 2);
	run_roles(role_other_user, 2);
	run_roles(role_later_version, 2);
}

/* ---- a session's secret in its file ---- */

static int write_secret_file(mode_t mode)
{
	char path[64];

	snprintf(path, sizeof path, "%s/phnx", folder);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/phnx/filed", folder);
	FILE *f = fopen(path, "w");
	return f && fputs("a secret\n", f) >= 0 && fclose(f) == 0 && chmod(path, mode) == 0;
}

static int role_session_file(int role)
{
	start(role + 1, role ? 1 : 2, "filed");
	CHECK(errors[-PH_ECONFIG] == 0);
	return ask_and_answer(role);
}

static int role_open_file(int role)
{
	(void)role;
	start(0, 0, "filed");
	CHECK(errors[-PH_ECONFIG] == 1);	/* others can read it */
	ph_finalize(NULL, 0);
	return 0;
}

static void test_session_file(void)
{
	CU_ASSERT_TRUE_FATAL(write_secret_file(0600));
	run_roles(role_session_file, 2);
	CU_ASSERT_TRUE_FATAL(write_secret_file(0644));
	run_roles(role_open_file, 1);
}

/* ---- a node in the middle that only forwards; handlers; the descriptor ---- */

static void answer(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	(void)arg;
	ph_send(source, msg->body, msg->len, 9);
	if (ph_recv(PH_MSG_ANY_TAG))	/* refused: a handler must not wait */
		abort();
}

static int role_middle(int role)
{
	start(role == 1, role != 1, NULL);
	if (role == 2) {
		CHECK(ph_set_handler(5, answer, NULL) == 0);
		assume_range(32, SPACE);
		CHECK(ph_timed_recv(77, PATIENCE));
		CHECK(errors[-PH_EINVAL] == 1);
	} else if (role == 0) {
		int fd = ph_get_fd();
		struct pollfd p = { fd, POLLIN, 0 };
		CHECK(fd >= 0 && poll(&p, 1, 0) == 0);
		ph_send(33, "ping", 5, 5);
		CHECK(poll(&p, 1, PATIENCE / 1000) == 1);
		ph_msg_t m = ph_try_recv(PH_MSG_ANY_TAG);
		CHECK(m && m->tag == 9 && !strcmp(m->body, "ping"));
		CHECK(ph_get_source(m) != ph_get_resource_name());
		ph_msg_destroy(m);
		CHECK(poll(&p, 1, 0) == 0);
		ph_send(33, "", 0, 77);
		ph_send(20, "", 0, 78);
	} else {
		assume_range(16, 32);
		CHECK(ph_timed_recv(78, PATIENCE));
		CHECK(ph_timed_recv(79, 300000) == NULL);
	}
	ph_finalize(NULL, 5);
	return 0;
}

static void test_middle(void)
{
	run_roles(role_middle, 3);
}

/* ---- a log carries a message over a time when nobody is there ---- */

static int role_logger(int role)
{
	char file[64];
	FILE *f;

	(void)role;
	snprintf(file, sizeof file, "%s/log", folder);
	start(0, 0, NULL);
	ph_send(7, "kept", 5, 3);
	CHECK(!ph_mqueue_is_empty());
	ph_finalize(file, 0);
	ph_init(0, SPACE, NULL, NULL, NULL, file);
	assume_range(0, 10);
	ph_msg_t m = ph_timed_recv(3, PATIENCE);
	CHECK(m && m->dest == 7 && !strcmp(m->body, "kept"));
	ph_msg_destroy(m);
	ph_finalize(NULL, 0);
	CHECK(errors[-PH_ELOG] == 0);
	CHECK((f = fopen(file, "r+")));
	fseek(f, 40, SEEK_SET);
	int byte = fgetc(f);
	fseek(f, 40, SEEK_SET);
	fputc(byte ^ 1, f);
	fclose(f);
	ph_init(0, SPACE, NULL, NULL, NULL, file);	/* damaged */
	CHECK(errors[-PH_ELOG] == 1 && ph_mqueue_is_empty());
	ph_store_msgs("/dev/null/nowhere");
	CHECK(errors[-PH_ELOG] == 2);
	struct rlimit little = { 100, RLIM_INFINITY }, all = { RLIM_INFINITY, RLIM_INFINITY };
	signal(SIGXFSZ, SIG_IGN);
	unlink(file);
	ph_send(7, "much too long for what is left of the disk ........................................................", 100, 3);
	CHECK(setrlimit(RLIMIT_FSIZE, &little) == 0);
	ph_store_msgs(file);		/* as when the disk is full: an error, and half a file is no file */
	CHECK(errors[-PH_ELOG] == 3 && access(file, F_OK));
	setrlimit(RLIMIT_FSIZE, &all);
	ph_store_msgs(file);
	CHECK(errors[-PH_ELOG] == 3 && !access(file, F_OK));
	ph_finalize(NULL, 0);
	setenv("PHNX_SECRET", "of another session", 1);
	ph_init(0, SPACE, NULL, NULL, "tests", file);
	CHECK(errors[-PH_ELOG] == 4 && ph_mqueue_is_empty());
	ph_finalize(NULL, 0);
	unlink(file);
	return 0;
}

static void test_log(void)
{
	run_roles(role_logger, 1);
}

/* ---- leaving by the low-level calls (A.6.2), and what waits for a virtual node that is released ---- */

/* What role 0 has sent to virtual nodes that nobody assumes yet comes to role 1 when it assumes them: that to 50 is kept by
 * role 1 itself, that to 40 comes back with a log. */
static int role_leaves(int role)
{
	char file[64];
	ph_msg_t m;

	snprintf(file, sizeof file, "%s/away", folder);
	start(role + 1, role ? 1 : 2, NULL);
	if (role == 0) {
		assume_range(0, 1);
		CHECK((m = ph_timed_recv(1, PATIENCE)));	/* role 1 is there */
		ph_msg_destroy(m);
		ph_send(50, "for good", 9, 2);
		ph_invalidate_routing();
		while (!ph_mqueue_is_empty())
			usleep(10000);
		ph_finalize_runtime();

		start(1, 2, NULL);
		ph_send(40, "for a while", 12, 2);
		ph_invalidate_routing();
		ph_store_msgs(file);
		ph_finalize_runtime();
		start(1, 2, NULL);
		ph_load_msgs(file);
		assume_range(0, 1);
		CHECK((m = ph_timed_recv(3, PATIENCE)));
		ph_msg_destroy(m);
		unlink(file);
	} else {
		ph_send(0, NULL, 0, 1);
		usleep(300000);
		assume_range(50, 51);
		CHECK((m = ph_timed_recv(2, PATIENCE)) && m->dest == 50 && !strcmp(m->body, "for good"));
		ph_msg_destroy(m);
		assume_range(40, 41);
		CHECK((m = ph_timed_rcv(2, PATIENCE)) && m->dest == 40 && !strcmp(m->body, "for a while"));
		ph_msg_destroy(m);
		CHECK(ph_timed_rcv(2, 100000) == NULL);
		ph_send(0, NULL, 0, 3);
	}
	ph_finalize(NULL, 10);
	CHECK(errors[-PH_ELOG] == 0);
	return 0;
}

static int role_releases(int role)
{
	enum { N = 50 };
	ph_msg_t m;

	start(role + 1, role ? 1 : 2, NULL);
	if (role == 0) {
		ph_vps_t some = ph_vps_create_range(5, 10);
		assume_range(0, 32);
		CHECK((m = ph_timed_recv(2, PATIENCE)));	/* the last; the others wait here */
		ph_vp_t sender = ph_get_source(m);
		ph_msg_destroy(m);
		ph_release_vps(some);
		ph_send(sender, NULL, 0, 4);
		ph_vps_t mine = ph_get_assumed_vps();
		CHECK(ph_vps_is_exclusive(mine, some) && ph_vps_get_min_elem(mine) == 0 && ph_vps_get_max_elem(mine) == 31);
		ph_vps_destroy(mine);
		ph_vps_destroy(some);
		ph_release_vp(0);
		CHECK((m = ph_timed_recv(3, PATIENCE)) && m->dest == 1);
		ph_msg_destroy(m);
	} else {
		for (int i = 0; i < N; i++)
			ph_send(7, &i, sizeof i, 1);
		ph_send(7, NULL, 0, 2);
		CHECK((m = ph_timed_recv(4, PATIENCE)) && m->dest == ph_get_resource_name());
		ph_msg_destroy(m);
		assume_range(5, 10);
		for (int i = 0; i < N; i++) {
			CHECK((m = ph_timed_recv(1, PATIENCE)) && m->dest == 7 && *(int *)m->body == i);
			ph_msg_destroy(m);
		}
		CHECK(ph_timed_recv(1, 100000) == NULL);
		ph_send(1, NULL, 0, 3);
	}
	ph_finalize(NULL, 10);
	return 0;
}

static void test_leaving(void)
{
	run_roles(role_leaves, 2);
	run_roles(role_releases, 2);
}

/* ---- calls at the wrong time ---- */

static int role_wrong(int role)
{
	int ends[2], own = dup(2);
	char said[200] = "";

	(void)role;
	CHECK(pipe(ends) == 0 && dup2(ends[1], 2) == 2);	/* without a callback: standard error */
	ph_try_recv(1);
	CHECK(dup2(own, 2) == 2 && read(ends[0], said, sizeof said - 1) > 0);
	CHECK(!strcmp(said, "phnx: the library is not initialised: ph_try_recv()\n"));
	CHECK(ph_get_vp_lower_bound() == 0 && ph_get_random_vp() == PH_INVALID_VP);
	ph_set_error_callback(count_error, NULL);
	ph_send(1, "x", 1, 1);
	CHECK(ph_recv(1) == PH_MSG_INVALID);
	ph_finalize(NULL, -1);
	CHECK(errors[-PH_ENOTINIT] == 3);
	ph_init(0, SPACE, "/nonexistent", NULL, NULL, NULL);
	CHECK(errors[-PH_ECONFIG] == 1);
	CHECK(PH_VP_UPPER_BOUND == SPACE && ph_get_vp_upper_bound() == SPACE);
	CHECK(ph_get_resource_name() >= 1LL << 62);
	CHECK(ph_get_vp_lower_bound() == PH_VP_LOWER_BOUND);
	for (int i = 0; i < 1000; i++)
		CHECK(ph_get_random_vp() >= 0 && ph_get_random_vp() < SPACE);
	ph_send(SPACE, "x", 1, 1);	/* the virtual node "adjacent" to the upper bound: an error, and no waiting */
	ph_send(-1, "x", 1, 1);
	CHECK(errors[-PH_EBOUND] == 2);
	ph_assume_vp(SPACE);
	CHECK(errors[-PH_EBOUND] == 3);
	assume_range(0, SPACE);
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(base_port + 8)) };
	int taken = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(bind(taken, (struct sockaddr *)&in, sizeof in) == 0 && listen(taken, 1) == 0);
	ph_set_listen_port(base_port + 8, base_port + 9);	/* in use, and the range is exhausted with it */
	CHECK(errors[-PH_EPORT] == 1);
	ph_set_listen_port(base_port + 8, base_port + 10);
	CHECK(errors[-PH_EPORT] == 1);
	close(taken);
	CHECK(ph_hand_over(1, 1, 1000000) == PH_EBOUND);
	CHECK(ph_sendx(1, "x", PH_MSG_MAX + 1, 1, 0) == PH_ETOOBIG);
	ph_add_port_tcp("no.such.host.invalid", 1);
	CHECK(ph_timed_recv(99, 200000) == NULL);
	pid_t pid = fork();
	if (pid == 0) {
		ph_send(1, "x", 1, 1);
		_exit(errors[-PH_EFORK] != 1);
	}
	int status;
	waitpid(pid, &status, 0);
	CHECK(status == 0);
	ph_timed_send(5, "x", 1, 50, 1000);
	usleep(20000);
	CHECK(ph_try_recv(50) == NULL);
	ph_send(5, "any", 4, PH_MSG_ANY_TAG);
	ph_msg_t m = ph_try_rcv(17);
	CHECK(m && m->tag == PH_MSG_ANY_TAG);
	ph_msg_destroy(m);
	ph_finalize(NULL, 0);
	ph_finalize(NULL, 0);
	CHECK(errors[-PH_ENOTINIT] == 4);
	return 0;
}

static void test_wrong_calls(void)
{
	run_roles(role_wrong, 1);
}

/* ---- joining and leaving with state ---- */

static long table[SPACE];

static int give(void *arg, ph_vp_t lo, ph_vp_t hi, void **state, size_t *len)
{
	(void)arg;
	*len = (size_t)(hi - lo) * sizeof *table;
	*state = malloc(*len);
	memcpy(*state, table + lo, *len);
	memset(table + lo, 0, *len);
	return 0;
}

static void take(void *arg, ph_vp_t lo, ph_vp_t hi, const void *state, size_t len)
{
	(void)arg;
	if (len == (size_t)(hi - lo) * sizeof *table)
		memcpy(table + lo, state, len);
}

/* In the library's loop, where no virtual node can move between the message and its count. */
static void count(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	(void)arg;
	(void)source;
	table[msg->dest]++;
}

static long counted(void)
{
	long sum = 0;

	for (int v = 0; v < SPACE; v++)
		sum += table[v];
	return sum;
}

/* A counter per virtual node; every node counts what arrives. Role 0 begins with all, the others join and leave. */
static int role_counter(int role)
{
	enum { MESSAGES = 2000 };
	struct ph_migration m = { give, take, NULL };

	start(role + 1, role ? 1 : 0, NULL);
	ph_set_migration(&m);
	ph_set_handler(1, count, NULL);
	if (role == 0)
		assume_range(0, SPACE);
	else
		CHECK(ph_join_vps(PATIENCE) == 0);
	unsigned seed = (unsigned)role;
	for (int i = 0; i < MESSAGES; i++) {
		ph_send(rand_r(&seed) % SPACE, "", 0, 1);
		if (role && i % 500 == 499) {
			CHECK(ph_leave_vps(PATIENCE) == 0);
			CHECK(ph_join_vps(PATIENCE) == 0);
		}
	}
	/* The joiners leave for good when all that they sent has arrived somewhere; role 0 is left with every count. */
	for (int quiet = 0; role && quiet < 10; quiet = ph_mqueue_is_empty() ? quiet + 1 : 0)
		usleep(20000);
	if (role) {
		CHECK(ph_leave_vps(PATIENCE) == 0);
		ph_finalize(NULL, 5);
		return 0;
	}
	for (int i = 0; counted() < 3 * MESSAGES && i < PATIENCE / 20000; i++)
		usleep(20000);
	CHECK(counted() == 3 * MESSAGES);
	ph_vps_t mine = ph_get_assumed_vps();
	CHECK(ph_vps_get_lower_bound(mine) == 0 && ph_vps_get_upper_bound(mine) == SPACE);
	ph_vps_destroy(mine);
	ph_finalize(NULL, 5);
	return 0;
}

static void test_counters(void)
{
	run_roles(role_counter, 3);
}

/* ---- collective operations ---- */

static void add_long(void *into, const void *from, size_t len)
{
	(void)len;
	*(long *)into += *(const long *)from;
}

static int role_collective(int role)
{
	enum { NODES = 5 };

	start(role + 1, role ? 1 : 0, NULL);
	assume_range(SPACE * role / NODES, SPACE * (role + 1) / NODES);
	for (int round = 1; round <= 20; round++) {
		long value = role + round;
		CHECK(ph_reduce(0, SPACE, round, &value, sizeof value, add_long, PATIENCE) == 0);
		CHECK(value == 0 + 1 + 2 + 3 + 4 + NODES * round);
		if (round % NODES == role)
			CHECK(ph_multicast(0, SPACE, &round, sizeof round, 6) == 0);
		ph_msg_t m = ph_timed_recv(6, PATIENCE);
		CHECK(m && m->dest == SPACE * role / NODES && *(int *)m->body == round);
		ph_msg_destroy(m);
	}
	CHECK(ph_barrier(0, SPACE, 100, PATIENCE) == 0);
	CHECK(ph_timed_recv(PH_MSG_ANY_TAG, 50000) == NULL);	/* nothing came twice */
	CHECK(ph_barrier(0, SPACE, 101, PATIENCE) == 0);
	ph_finalize(NULL, 5);
	return 0;
}

/* The borders between the nodes move all the time; each round's result must hold every node's value once. */
enum { MOVERS = 4, ROUNDS = 30 };
static volatile bool moving;

static void *move_borders(void *role)
{
	for (int i = 0; moving; i++) {
		if (i % 2)
			ph_take_over(2, 1, 100000);
		else if ((long)role < MOVERS - 1)
			ph_hand_over(2, 1, 100000);
		usleep(2000);
	}
	return NULL;
}

static int role_moving_reduction(int role)
{
	pthread_t mover;
	unsigned again = 0;

	start(role + 1, role ? 1 : 0, NULL);
	assume_range(SPACE * role / MOVERS, SPACE * (role + 1) / MOVERS);
	moving = true;
	pthread_create(&mover, NULL, move_borders, (void *)(long)role);
	for (int round = 1; round <= ROUNDS; round++) {
		long value;
		int error;
		do {
			value = 1L << 8 * role;
			error = ph_reduce(0, SPACE, round, &value, sizeof value, add_long, PATIENCE);
		} while (error == PH_EBUSY && ++again < 5000);
		CHECK(error == 0);
		CHECK(value == 0x01010101);
	}
	moving = false;
	pthread_join(mover, NULL);
	ph_finalize(NULL, 5);
	return 0;
}

static void test_collective(void)
{
	run_roles(role_collective, 5);
	run_roles(role_moving_reduction, MOVERS);
}

/* ---- threads ---- */

static void *many_sends(void *arg)
{
	for (int i = 0; i < 1000; i++)
		ph_send(40, &i, sizeof i, (int)(long)arg);
	return NULL;
}

static int role_threads(int role)
{
	pthread_t t[4];

	start(role + 1, role ? 1 : 2, NULL);
	assume_range(role ? 32 : 0, role ? 64 : 32);
	if (role == 0) {
		for (long i = 0; i < 4; i++)
			pthread_create(t + i, NULL, many_sends, (void *)(i + 1));
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
	} else {
		for (int i = 0; i < 1000; i++)
			for (int tag = 4; tag; tag--) {
				ph_msg_t m = ph_timed_recv(tag, PATIENCE);
				CHECK(m && *(int *)m->body == i);
				ph_msg_destroy(m);
			}
	}
	ph_finalize(NULL, 10);
	return 0;
}

static void test_threads(void)
{
	run_roles(role_threads, 2);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "-o"))
		return play_ssh(argv);
	if (!mkdtemp(folder))
		return 1;
	setenv("XDG_CONFIG_HOME", folder, 1);
	base_port = 20000 + (int)(getpid() % 4000) * 3;
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("phnx_net", NULL, NULL);
	CU_add_test(suite, "TCP", test_tcp);
	CU_add_test(suite, "TLS under the session's secret", test_tls_with_secret);
	CU_add_test(suite, "many messages of all sizes, both ways", test_stream);
	CU_add_test(suite, "IPv6, and a name's second address", test_addresses);
	CU_add_test(suite, "TLS with certificate and key files", test_tls_with_files);
	CU_add_test(suite, "SSH tunnel", test_ssh);
	CU_add_test(suite, "another secret is refused", test_strangers);
	CU_add_test(suite, "a node in the middle, a handler, a descriptor", test_middle);
	CU_add_test(suite, "the session's secret in its file", test_session_file);
	CU_add_test(suite, "message log", test_log);
	CU_add_test(suite, "leaving by the low-level calls; a release", test_leaving);
	CU_add_test(suite, "calls at the wrong time", test_wrong_calls);
	CU_add_test(suite, "join and leave with state", test_counters);
	CU_add_test(suite, "multicast, reduce, barrier", test_collective);
	CU_add_test(suite, "threads", test_threads);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	char rm[96];
	snprintf(rm, sizeof rm, "rm -rf %s", folder);
	return failures != 0 || system(rm) != 0;
}
