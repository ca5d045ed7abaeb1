/* phnx_net.c - real processes on this host: how they connect, by TCP, TLS and an SSH tunnel
 * (this program plays ssh), and who is refused.  Calls are tested in phnx_calls.c, what
 * processes do together in phnx_crews.c, threads in phnx_threads.c. */
#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/unit/phnx_net.h"
#include "tests/unit/free_port.h"

int base_port;
char folder[] = "/tmp/phnx-net-XXXXXX";
atomic_int errors[32];
char *_Atomic told = "";

/* Called in the library's thread, as a rule: the text stays valid while the test may read it. */
void count_error(void *arg, int error, const char *text)
{
	static char texts[256][512];
	static unsigned n;
	char *to = texts[n++ % 256];

	(void)arg;
	if (getenv("PHNX_VERBOSE"))
		fprintf(stderr, "[%d] %s: %s\n", (int)getpid(), ph_strerror(error), text);
	snprintf(to, sizeof texts[0], "%s", text);
	told = to;
	errors[-error]++;
}

/* A range of ports for this process; each test has a block of them. */
enum { FIRST = 20000, RANGES = 20, PORTS = 600, BLOCK = 10 };
static int range_end;

/* Claims a range, by binding the first port. */
static int claim_ports(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	for (int i = 0; i < RANGES; i++) {
		base_port = FIRST + ((int)getpid() + i) % RANGES * PORTS;
		in.sin_port = htons((uint16_t)base_port);
		range_end = base_port + PORTS;
		if (bind(fd, (struct sockaddr *)&in, sizeof in) == 0)
			return 0;
	}
	return -1;
}

/* Sets base_port to the next block whose ports are all free. */
static void next_block(void)
{
	int n = 0;

	for (base_port += BLOCK; n < BLOCK; n++)
		if (base_port + BLOCK > range_end) {
			CU_ASSERT_EQUAL_FATAL(claim_ports(), 0);
			base_port += BLOCK;
			n = -1;
		} else if (!port_is_free(base_port + n)) {
			base_port += BLOCK;
			n = -1;
		}
}

#ifdef __SANITIZE_THREAD__
enum { TIME_LIMIT = 900 };
#else
enum { TIME_LIMIT = 600 };
#endif

void run_roles(int (*role)(int), int n)
{
	pid_t pids[MAX_ROLES];
	int status;

	next_block();
	fflush(stdout);
	for (int i = 0; i < n; i++)
		if ((pids[i] = fork()) == 0) {
			alarm(TIME_LIMIT);
			int line = role(i);
			if (line)
				printf("\nrole %d: line %d\n", i, line);
			fflush(stdout);
			_exit(line != 0);
		}
	for (int i = 0; i < n; i++) {
		waitpid(pids[i], &status, 0);
		if (WIFSIGNALED(status))
			printf("\nrole %d: signal %d\n", i, WTERMSIG(status));
		CU_ASSERT_EQUAL(status, 0);
	}
}

void assume_range(ph_vp_t lo, ph_vp_t hi)
{
	ph_vps_t vps = ph_vps_create_range(lo, hi);

	ph_assume_vps(vps);
	ph_vps_destroy(vps);
}

void start(int listen, int dial, const char *session)
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

int ask_and_answer(int role)
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
		if (i < N - 1)		/* the process that sent the last message may have left */
			CHECK(ph_get_rtt(ph_get_source(m)) > 0 &&
			      ph_get_rtt(ph_get_source(m)) < PATIENCE);
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

/* ---- many messages of all sizes: every byte arrives, even if the sender overwrites its buffer
 * at once ---- */

enum { STREAM = 600, STREAM_MOST = 300000 };
static unsigned handled, handled_bad;

static size_t stream_len(unsigned i)
{
	static const size_t some[] = { 0,     1,     60,    2040,   4096,	4097,
				       16300, 16384, 65536, 131072, STREAM_MOST };
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

/* One of three is not encrypted by the link (ph_send_sealed()), between others that are. */
static void stream_send(int role, unsigned char *buf, unsigned i)
{
	size_t len = stream_len(i);
	void *copy = i % 3 ? NULL : malloc(len + 1);

	if (copy && !ph_send_sealed(role ? 3 : 40, memcpy(copy, buf, len), len, i % 2 ? 6 : 5, free,
				    copy))
		return;
	free(copy);
	ph_send(role ? 3 : 40, buf, len, i % 2 ? 6 : 5);
}

/* Even messages go to a handler, odd ones to ph_recv(); each side sends while it receives. */
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
			stream_send(role, buf, i);
			memset(buf, 0xee, stream_len(i));
		}
		for (long long wait = i < STREAM ? 0 : PATIENCE; (m = ph_timed_recv(6, wait));
		     received++) {
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

/* ---- addresses: IPv6; the second address of a name if nobody answers at the first ---- */

/* Passes the bytes of one connection to port `from` on to port `to`. */
static void relay(int from, int to)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)from),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int l = socket(AF_INET, SOCK_STREAM, 0), on = 1, ends[2];
	char buf[4096];
	ssize_t n;

	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(l, (struct sockaddr *)&in, sizeof in) || listen(l, 1) ||
	    (ends[0] = accept(l, NULL, NULL)) < 0)
		_exit(1);
	in.sin_port = htons((uint16_t)to);
	do {
		ends[1] = socket(AF_INET, SOCK_STREAM, 0);
	} while (connect(ends[1], (struct sockaddr *)&in, sizeof in) && usleep(10000) == 0);
	for (;;) {
		struct pollfd p[2] = { { ends[0], POLLIN, 0 }, { ends[1], POLLIN, 0 } };
		poll(p, 2, -1);
		for (int i = 0; i < 2; i++)
			if (p[i].revents && ((n = read(ends[i], buf, sizeof buf)) <= 0 ||
					     write(ends[!i], buf, (size_t)n) != n))
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
	/* otherwise this host has no IPv6 */
	if (fd >= 0 && bind(fd, (struct sockaddr *)&six, sizeof six) == 0)
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
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
				   (const unsigned char *)"t", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	X509_sign(x, k, EVP_sha256());
	FILE *c = fopen(cert, "w"), *f = fopen(key, "w");
	int ok = c && f && PEM_write_X509(c, x) &&
		 PEM_write_PrivateKey(f, k, NULL, NULL, 0, NULL, NULL);
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
	int n = snprintf(config, sizeof config,
			 "match begin r0 -> listen_port %d\n| _ -> listen_port %d\nend\n"
			 "dest 127.0.0.1:%d ssl %s/cert %s/key\n",
			 base_port + 1, base_port + 2, base_port + 2 - role, folder, folder);
	ph_read_config(config, (size_t)n, role ? "r1" : "r0");
	CHECK(errors[-PH_ECONFIG] == 0);
	return ask_and_answer(role);
}

/* Files that do not exist are reported. */
static int role_tls_no_files(int role)
{
	char config[100];
	int n = snprintf(config, sizeof config,
			 "dest 127.0.0.1:%d ssl /nonexistent/cert /nonexistent/key", base_port + 1);

	(void)role;
	start(1, 0, NULL);
	ph_read_config(config, (size_t)n, NULL);
	for (int i = 0; i < PATIENCE / 10000 && !errors[-PH_ECONFIG]; i++)
		ph_timed_recv(PH_MSG_ANY_TAG, 10000);
	CHECK(errors[-PH_ECONFIG] && strstr(told, "/nonexistent/cert"));
	ph_finalize(NULL, 0);
	return 0;
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
	run_roles(role_tls_no_files, 1);
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

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "TCP", test_tcp },
		{ "TLS under the session's secret", test_tls_with_secret },
		{ "many messages of all sizes, both ways", test_stream },
		{ "IPv6, and a name's second address", test_addresses },
		{ "TLS with certificate and key files", test_tls_with_files },
		{ "the session's secret in its file", test_session_file },
		UNIT_END
	};
	char rm[96];
	int status;

	if (argc > 1 && !strcmp(argv[1], "-o"))
		return play_ssh(argv);
	if (claim_ports() || !mkdtemp(folder))
		return 1;
	setenv("XDG_CONFIG_HOME", folder, 1);
	status = UNIT_RUN("phnx_net", tests, tests_of_ssh, tests_of_strangers, tests_of_calls,
			  tests_of_crews, tests_of_threads);
	snprintf(rm, sizeof rm, "rm -rf %s", folder);
	return system(rm) || status;
}
