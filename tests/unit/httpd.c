/* httpd.c - the HTTP server of `vmp metrics` and `vmp web`: who gets a page, and that nobody can
 * keep it busy.  The clients are a process of their own, since the server is this one. */
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/types.h"
#include "tests/unit/unit.h"
#include "vmm/cli/watch/httpd.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define BEARER "Authorization: Bearer " TOKEN "\r\n"

static const struct httpgate_page pages[] = {
	{ "/", false, false, true }, { "/secret", false, true, false },
	{ "/do", true, false, false },
};
static struct httpd server;
static struct event_base *base;

/* ---- the server ---- */

static void on_request(void *context, struct evhttp_request *request, unsigned page)
{
	struct evbuffer *body = evbuffer_new();

	(void)context;
	evbuffer_add_printf(body, "page %u", page);
	httpd_send(request, 200, "OK", body);
}

static void on_child(evutil_socket_t fd, short events, void *context)
{
	(void)fd, (void)events, (void)context;
	event_base_loopbreak(base);
}

/* Serves while `client` runs in a process of its own; returns what it returns.  As root, the client
 * has user number `user`. */
static int while_served(int (*client)(void), uid_t user, uid_t also_user)
{
	struct problem p;
	struct event *ended;
	int status;
	pid_t pid;

	base = event_base_new();
	server = (struct httpd){ .pages = pages, .n_pages = ARRAY_LEN(pages),
				 .also_user = also_user, .browses = true,
				 .on_request = on_request };
	ended = evsignal_new(base, SIGCHLD, on_child, NULL);
	CU_ASSERT_FATAL(!event_add(ended, NULL));
	CU_ASSERT_FATAL(!httpd_open(&server, base, "127.0.0.1:0", TOKEN, &p));
	pid = fork();
	if (!pid) {
		struct rlimit files;

		alarm(600);
		getrlimit(RLIMIT_NOFILE, &files);	/* the server alone has few */
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
		_exit(user && setuid(user) ? 99 : client());
	}
	event_base_dispatch(base);
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	httpd_close(&server);
	event_free(ended);
	event_base_free(base);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/* ---- clients ---- */

static int connect_to_it(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(server.port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return connect(fd, (struct sockaddr *)&to, sizeof to) ? -1 : fd;
}

/* Sends all that the server takes; one that has closed the connection takes no more. */
static void send_text(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		text += n;
		bytes -= (size_t)n;
	}
}

/* Returns the status of the answer, or 0 if there is none. */
static int answer(int fd, char *text, size_t bytes)
{
	size_t at = 0;
	ssize_t n;

	while (at < bytes - 1 && (n = read(fd, text + at, bytes - 1 - at)) > 0)
		at += (size_t)n;
	text[at] = 0;
	close(fd);
	return strncmp(text, "HTTP/1.1 ", 9) ? 0 : atoi(text + 9);
}

static int ask(const char *first, const char *more)
{
	char text[4096];
	int fd = connect_to_it();

	snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%sConnection: close\r\n"
		 "\r\n", first, server.port, more);
	send_text(fd, text, strlen(text));
	return answer(fd, text, sizeof text);
}

static int own_user(void)
{
	static const struct { const char *first, *more; int status; } cases[] = {
		{ "GET /", "", 200 }, { "HEAD /", "", 200 }, { "POST /", "", 405 },
		{ "GET /secret", BEARER, 200 }, { "GET /secret?a=b", BEARER, 200 },
		{ "GET /secret", "", 401 }, { "GET /secret", "Authorization: Bearer x\r\n", 401 },
		{ "GET /secret", BEARER BEARER, 400 },
		{ "GET /secret", BEARER "Origin: http://example.org\r\n", 403 },
		{ "GET /", "Origin: http://example.org\r\n", 403 },
		{ "GET /", "Host: example.org\r\n", 400 },
		{ "POST /do", BEARER "Content-Length: 0\r\n", 200 },
		{ "POST /do", "Content-Length: 0\r\n", 401 },
		{ "GET /do", BEARER, 405 }, { "GET /none", BEARER, 404 },
		{ "GET http://example.org/secret", BEARER, 404 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int status = ask(cases[i].first, cases[i].more);

		if (status != cases[i].status) {
			fprintf(stderr, "%s %s: %d\n", cases[i].first, cases[i].more, status);
			return 1;
		}
	}
	return 0;
}

static int other_user(void)
{
	return ask("GET /", "") != 403 || ask("GET /secret", BEARER) != 403 ||
	       ask("POST /do", BEARER "Content-Length: 0\r\n") != 403;
}

/* Headers and bodies that are too large, and what is no HTTP. */
static int too_much(void)
{
	static char text[1 << 20];
	static const char *const begins[] = {
		"GET / HTTP/1.1\r\nX: ", "GET /", "",
		"POST /do HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
		"POST /do HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
		int fd = connect_to_it(), status;

		memset(text, 'x', sizeof text);
		memcpy(text, begins[i], strlen(begins[i]));
		send_text(fd, text, sizeof text);
		shutdown(fd, SHUT_WR);
		status = answer(fd, text, sizeof text);
		if (status == 200 || ask("GET /", "") != 200) {
			fprintf(stderr, "%s...: %d\n", begins[i], status);
			return 1;
		}
	}
	return 0;
}

/* Clients that say nothing, or half a request, are dropped; others are served meanwhile. */
static int slow(void)
{
	static const char half[] = "GET / HTTP/1.1\r\nHo";
	int fd[100];
	char text[4096];

	for (size_t i = 0; i < ARRAY_LEN(fd); i++) {
		fd[i] = connect_to_it();
		if (i % 2)
			send_text(fd[i], half, sizeof half - 1);
	}
	if (ask("GET /", "") != 200 || ask("GET /secret", BEARER) != 200)
		return 1;
	for (size_t i = 0; i < ARRAY_LEN(fd); i++)
		if (fd[i] < 0 || answer(fd[i], text, sizeof text) == 200)
			return 2;
	return 0;
}

/* ---- more clients than there may be ---- */

enum { CROWD = 400, REGULARS = 1100, FEW_FILES = 200 };

/* Opens connections, as many as the server takes, and sends a byte on each now and then, for ever:
 * none of them is silent. */
static void trickle(uid_t user, int begun)
{
	static const char begin[] = "GET / HTTP/1.1\r\nX: ";
	static const struct timeval most = { 10, 0 };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(server.port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd[CROWD];
	size_t n;

	if (user && setuid(user))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (n = 0; n < CROWD; n++) {
		fd[n] = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(fd[n], SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
		if (connect(fd[n], (struct sockaddr *)&to, sizeof to))
			break;
		send_text(fd[n], begin, sizeof begin - 1);
	}
	if (write(begun, "", 1) != 1)
		_exit(2);
	while (true) {
		for (size_t i = 0; i < n; i++)
			send_text(fd[i], "x", 1);
		usleep(50000);
	}
}

/* One that comes again whenever the server has closed its connection. */
static void come_again(struct pollfd *one)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(server.port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	if (one->fd >= 0)
		close(one->fd);
	one->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	one->events = POLLOUT;
	/* poll() says how it went */
	(void)!connect(one->fd, (struct sockaddr *)&to, sizeof to);
}

static void on_event_of(struct pollfd *one)
{
	static const char begin[] = "GET / HTTP/1.1\r\nX: ";
	char text[1024];

	if (one->revents & (POLLERR | POLLHUP) ||
	    (one->revents & POLLIN && read(one->fd, text, sizeof text) <= 0)) {
		come_again(one);
	} else if (one->revents & POLLOUT) {
		send_text(one->fd, begin, sizeof begin - 1);
		one->events = POLLIN;
	}
}

/* Keeps as many connections as it can, each of which begins a request, for ever. */
static void storm(uid_t user, int begun)
{
	static struct pollfd all[REGULARS];

	if (user && setuid(user))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < REGULARS; i++) {
		all[i].fd = -1;
		come_again(&all[i]);
	}
	if (write(begun, "", 1) != 1)
		_exit(2);
	while (poll(all, REGULARS, -1) > 0)
		for (size_t i = 0; i < REGULARS; i++)
			if (all[i].revents)
				on_event_of(&all[i]);
}

static uid_t crowds_user;
static void (*crowd)(uid_t user, int begun);

/* Whoever fills the server with connections that ask for nothing keeps nobody from being served. */
static int crowded(void)
{
	int begun[2], result = 0;
	char byte;
	pid_t pid;

	if (pipe(begun))
		return 3;
	pid = fork();
	if (!pid)
		crowd(crowds_user, begun[1]);
	close(begun[1]);
	if (read(begun[0], &byte, 1) != 1)
		result = 4;
	for (int i = 0; i < 10 && !result; i++)
		result = ask("GET /", "") != 200 || ask("GET /secret", BEARER) != 200;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return result;
}

/* ---- tests ---- */

static void who_is_served(void) { CU_ASSERT_EQUAL(while_served(own_user, 0, 0), 0); }

static void another_user(void)
{
	if (getuid())
		puts("\nskipped: needs root, to become another user");
	else
		CU_ASSERT_EQUAL(while_served(other_user, 65534, 0), 0);
}

/* Another user who is let in needs the token; a third one is refused. */
static void named_user(void)
{
	if (getuid()) {
		puts("\nskipped: needs root, to become another user");
		return;
	}
	CU_ASSERT_EQUAL(while_served(own_user, 65534, 65534), 0);
	CU_ASSERT_EQUAL(while_served(other_user, 65533, 65534), 0);
}

static void large_requests(void) { CU_ASSERT_EQUAL(while_served(too_much, 0, 0), 0); }
static void slow_clients(void) { CU_ASSERT_EQUAL(while_served(slow, 0, 0), 0); }

/* The server has fewer file descriptors than there are clients. */
static void with_few_files(void (*clients)(uid_t user, int begun))
{
	struct rlimit whole, few;

	getrlimit(RLIMIT_NOFILE, &whole);
	few = whole;
	few.rlim_cur = FEW_FILES;
	crowd = clients;
	for (int of_another = 0; of_another < 2; of_another++) {
		if (of_another && getuid()) {
			puts("\nskipped: needs root, to become another user");
			continue;
		}
		crowds_user = of_another ? 65534 : 0;
		setrlimit(RLIMIT_NOFILE, &few);
		CU_ASSERT_EQUAL(while_served(crowded, 0, 0), 0);
		setrlimit(RLIMIT_NOFILE, &whole);
	}
}

static void many_clients(void) { with_few_files(trickle); }
static void clients_that_come_again(void) { with_few_files(storm); }

int main(void)
{
	static const struct unit_test tests[] = {
		{ "who is served", who_is_served },
		{ "another user", another_user },
		{ "a named user", named_user },
		{ "large requests", large_requests },
		{ "slow clients", slow_clients },
		{ "many clients", many_clients },
		{ "clients that come again", clients_that_come_again },
		UNIT_END
	};

	signal(SIGPIPE, SIG_IGN);
	return UNIT_RUN("httpd", tests);
}
