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

/* Claims a range of ports for this process, by binding the first one. */
static int claim_ports(void)
{
	enum { FIRST = 20000, RANGES = 20, PORTS = 600 };
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	for (int i = 0; i < RANGES; i++) {
		base_port = FIRST + ((int)getpid() + i) % RANGES * PORTS;
		in.sin_port = htons((uint16_t)base_port);
		if (bind(fd, (struct sockaddr *)&in, sizeof in) == 0)
			return 0;
	}
	return -1;
}

#ifdef __SANITIZE_THREAD__
enum { TIME_LIMIT = 250 };
#else
enum { TIME_LIMIT = 90 };
#endif

void run_roles(int (*role)(int), int n)
{
	pid_t pids[MAX_ROLES];
	int status;

	base_port += 10;
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

/* Role 0 asks, role 1 answers, with sizes around the limit of every buffer. */
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
			ph_send(role ? 3 : 40, buf, stream_len(i), i % 2 ? 6 : 5);
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

static int role_ssh(int role)
{
	start(role ? 0 : 1, 0, NULL);
	if (role) {
		setenv("PHNX_SSH", "/proc/self/exe", 1);
		ph_add_port_ssh("gateway", base_port + 1, "user");
	}
	return ask_and_answer(role);
}

/* Sets the text with which ssh fails from now on; "": it connects. */
static int let_ssh_say(const char *text)
{
	char temp[64];

	snprintf(temp, sizeof temp, "%s/ssh-says.new", folder);
	FILE *f = fopen(temp, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0 &&
	      rename(temp, getenv("PHNX_TEST_SAYS")) == 0);
	return 0;
}

static int ssh_complains(int nth, const char *says, const char *want)
{
	CHECK(let_ssh_say(says) == 0);
	for (int i = 0; i < PATIENCE / 10000 && errors[-PH_EHOST] < nth; i++)
		ph_timed_recv(PH_MSG_ANY_TAG, 10000);
	if (errors[-PH_EHOST] != nth || strcmp(told, want))
		printf("\ntold %d times, at last '%s', but not '%s'\n", errors[-PH_EHOST], told,
		       want);
	CHECK(errors[-PH_EHOST] == nth && !strcmp(told, want));
	return 0;
}

/* Writes more than a pipe holds, a line that is too long, and then the reason. */
static char *much_said(const char *why)
{
	enum { LINES = 5000, LONG = 1000 };
	char *text = calloc(1, 40 * LINES + LONG + 100), *end = text;

	for (int i = 0; i < LINES; i++)
		end += sprintf(end, "debug1: that is line %d of many\r\n", i);
	memset(end, 'x', LONG);
	sprintf(end + LONG, "\r\n%s\r\nstdio forwarding failed\r\n", why);
	return text;
}

/* Returns whether ssh has written nothing there; shows what it has. */
static bool is_silent(const char *file)
{
	FILE *f = fopen(file, "r");
	char line[400];
	bool silent = f != NULL;

	while (f && fgets(line, sizeof line, f)) {
		silent &= !strstr(line, "ssh") && !strstr(line, "gateway") &&
			  !strstr(line, "debug1") && !strstr(line, "yyy");
		fprintf(stderr, "on standard error: %s", line);
	}
	if (f)
		fclose(f);
	return silent;
}

static int role_ssh_fails(int role)
{
	static const char unknown[] =
		"ssh: Could not resolve hostname gateway: Name or service not known";
	char says[64], silence[64], line[300] = "", want[300] = "ssh to gateway: ";

	snprintf(says, sizeof says, "%s/ssh-says", folder);
	snprintf(silence, sizeof silence, "%s/silence", folder);
	setenv("PHNX_TEST_SAYS", says, 1);
	setenv("PHNX_SSH", "/proc/self/exe", 1);
	start(role ? 0 : 1, 0, NULL);
	if (role == 1) {
		char *much = much_said("user@gateway: Permission denied (publickey).");
		int terminal = dup(2);
		CHECK(freopen(silence, "w", stderr) && let_ssh_say(unknown) == 0);
		ph_add_port_ssh("gateway", base_port + 1, "user");
		CHECK(ssh_complains(1, unknown, strcat(strcpy(line, want), unknown)) == 0);
		/* it is tried again and again, and fails for the same reason */
		ph_timed_recv(PH_MSG_ANY_TAG, 1000000);
		CHECK(ssh_complains(
			      2, much,
			      "ssh to gateway: user@gateway: Permission denied (publickey).") == 0);
		memset(line, 'y', sizeof line - 1);
		memset(want + strlen(want), 'y', 200);
		CHECK(ssh_complains(3, line, want) == 0);
		CHECK(ssh_complains(4, "\n", "ssh to gateway: status 255") == 0);
		CHECK(dup2(terminal, 2) == 2 && is_silent(silence));
		free(much);
		CHECK(let_ssh_say("") == 0);
	}
	return ask_and_answer(role);
}

/* Starts ssh as an application does that runs it elsewhere: a process between the library and ssh
 * reports its status. */
static int start_elsewhere(void *arg, const char *login, int port, int carry, int say)
{
	char target[32];
	int ends[2], status;
	pid_t between;

	(*(int *)arg)++;
	if (strcmp(login, "user@gateway") || port != base_port + 1)
		return -EINVAL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	snprintf(target, sizeof target, "127.0.0.1:%d", port);
	between = fork();
	if (between == 0) {
		pid_t ssh = fork();

		if (ssh == 0) {
			dup2(carry, 0), dup2(carry, 1), dup2(say, 2);
			execl("/proc/self/exe", "ssh", "-o", "x", "-W", target, NULL);
			_exit(1);
		}
		close(carry), close(say), close(ends[0]);
		(void)!read(ends[1], &status, 1);
		kill(ssh, SIGTERM);
		waitpid(ssh, &status, 0);
		(void)!write(ends[1], &status, sizeof status);
		_exit(0);
	}
	close(ends[1]);
	return ends[0];
}

static int start_nowhere(void *arg, const char *login, int port, int carry, int say)
{
	(void)arg, (void)login, (void)port, (void)carry, (void)say;
	return -EAGAIN;
}

/* The application starts ssh: not at all, with a reason; so that it fails; so that it connects. */
static int role_ssh_elsewhere(int role)
{
	char says[64];
	int calls = 0;

	snprintf(says, sizeof says, "%s/ssh-says", folder);
	setenv("PHNX_TEST_SAYS", says, 1);
	start(role ? 0 : 1, 0, NULL);
	if (role) {
		CHECK(let_ssh_say("ssh: no route") == 0);
		ph_set_ssh_starter(start_nowhere, NULL);
		ph_add_port_ssh("gateway", base_port + 1, "user");
		for (int i = 0; i < PATIENCE / 10000 && !errors[-PH_ESYSTEM]; i++)
			ph_timed_recv(PH_MSG_ANY_TAG, 10000);
		CHECK(strstr(told, "cannot run ssh") && strstr(told, strerror(EAGAIN)));
		ph_set_ssh_starter(start_elsewhere, &calls);
		CHECK(ssh_complains(1, "ssh: no route", "ssh to gateway: ssh: no route") == 0);
		CHECK(calls > 0 && let_ssh_say("") == 0);
	}
	return ask_and_answer(role);
}

static void test_ssh(void)
{
	run_roles(role_ssh, 2);
	run_roles(role_ssh_fails, 2);
	run_roles(role_ssh_elsewhere, 2);
}

/* Fails as ssh does. */
static bool complains_as_ssh(void)
{
	FILE *f = getenv("PHNX_TEST_SAYS") ? fopen(getenv("PHNX_TEST_SAYS"), "r") : NULL;
	bool any = false;

	for (int c; f && (c = getc(f)) != EOF; any = true)
		putc(c, stderr);
	return any;
}

/* Does what ssh -W does, without the encryption. */
static int play_ssh(char **argv)
{
	const char *target = NULL;
	struct sockaddr_in in = { .sin_family = AF_INET };
	char buf[65536];

	if (complains_as_ssh())
		return 255;
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
	CHECK(errors[-PH_EREFUSED] > 0);	/* both sides report the reason */
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
	CHECK(memmem(reply, n, "protocol version 5 here, 77 there", 33));
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
		{ "SSH tunnel", test_ssh },
		{ "another secret is refused", test_strangers },
		{ "few descriptors", test_few_descriptors },
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
	status = UNIT_RUN("phnx_net", tests, tests_of_calls, tests_of_crews, tests_of_threads);
	snprintf(rm, sizeof rm, "rm -rf %s", folder);
	return system(rm) || status;
}
