/* httpgate.c - which HTTP requests are served, the token's file, and addresses of this computer. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/types.h"
#include "tests/unit/unit.h"
#include "vmm/cli/loopback.h"
#include "vmm/cli/watch/httpgate.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define BEARER "Bearer " TOKEN

static char work[] = "/tmp/vmp-test-XXXXXX";

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", work, name);
	return path;
}

static void requests(void)
{
	static const struct {
		int status;
		struct httpgate_request r;
	} cases[] = {
		{ 200, { true, false, "/m", "127.0.0.1:91", NULL, BEARER, false } },
		{ 200, { true, false, "/m", "LOCALHOST:91", NULL, "bearer " TOKEN, false } },
		{ 200, { true, false, "/m", "[::1]:91", NULL, BEARER, false } },
		{ 200, { true, false, "/m", "127.0.0.1:91", "http://localhost:91", BEARER,
			 false } },
		{ 400, { true, true, "/m", "127.0.0.1:91", NULL, BEARER, false } },
		{ 403, { true, false, "/m", NULL, NULL, BEARER, false } },
		{ 403, { true, false, "/m", "", NULL, BEARER, false } },
		{ 403, { true, false, "/m", "127.0.0.1", NULL, BEARER, false } },
		{ 403, { true, false, "/m", "127.0.0.1:912", NULL, BEARER, false } },
		{ 403, { true, false, "/m", "127.0.0.2:91", NULL, BEARER, false } },
		{ 403, { true, false, "/m", "example.org:91", NULL, BEARER, false } },
		{ 403, { true, false, "/m", "127.0.0.1:91", "null", BEARER, false } },
		{ 403, { true, false, "/m", "127.0.0.1:91", "", BEARER, false } },
		{ 403, { true, false, "/m", "127.0.0.1:91", "http://example.org", BEARER, false } },
		{ 403, { true, false, "/m", "127.0.0.1:91", "https://127.0.0.1:91", BEARER,
			 false } },
		{ 403, { true, false, "/m", "127.0.0.1:91", "http://127.0.0.1:91/", BEARER,
			 false } },
		{ 401, { true, false, "/m", "127.0.0.1:91", NULL, NULL, false } },
		{ 401, { true, false, "/m", "127.0.0.1:91", NULL, "", false } },
		{ 401, { true, false, "/m", "127.0.0.1:91", NULL, TOKEN, false } },
		{ 401, { true, false, "/m", "127.0.0.1:91", NULL, BEARER "0", false } },
		{ 401, { true, false, "/m", "127.0.0.1:91", NULL, "Bearer  " TOKEN, false } },
		{ 401, { true, false, "/m", "127.0.0.1:91", NULL, "Basic " TOKEN, false } },
		{ 401, { true, false, "/n", "127.0.0.1:91", NULL, NULL, false } },
		{ 404, { true, false, "/n", "127.0.0.1:91", NULL, BEARER, false } },
		{ 404, { true, false, NULL, "127.0.0.1:91", NULL, BEARER, false } },
		{ 404, { true, false, "/m?", "127.0.0.1:91", NULL, BEARER, false } },
		{ 405, { false, false, "/m", "127.0.0.1:91", NULL, BEARER, false } },
	};
	static const struct httpgate_page page = { "/m", false, false, false };
	struct httpgate gate;
	const char *why;
	unsigned at;

	httpgate_set(&gate, "[::1]:0", 91, TOKEN);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int status = httpgate_check(&gate, &cases[i].r, &page, 1, &at, &why);

		CU_ASSERT_EQUAL(status, cases[i].status);
		if (status != cases[i].status)
			fprintf(stderr, "case %zu: %d %s\n", i, status, why);
		CU_ASSERT_EQUAL(status == 200, !why[0]);
	}
}

/* Of a server with several pages: which one a request gets. */
static void pages(void)
{
	static const struct httpgate_page pages[] = {
		{ "/", false, false, true },	  { "/a", false, true, false },
		{ "/keys", false, false, false }, { "/keys", true, false, false },
		{ "/do", true, true, false },
	};
	static const struct {
		int status;
		unsigned page;
		struct httpgate_request r;
	} cases[] = {
#define HOST "127.0.0.1:91", NULL
		{ 200, 0, { true, false, "/", HOST, NULL, false } },
		{ 200, 0, { true, false, "/", HOST, "Bearer wrong", false } },
		{ 405, 0, { false, false, "/", HOST, NULL, true } },
		{ 405, 0, { false, false, "/", HOST, NULL, false } },
		{ 401, 0, { true, false, "/?a", HOST, NULL, false } },
		{ 404, 0, { true, false, "/?a", HOST, BEARER, false } },
		{ 403, 0, { true, false, "/", "example.org:91", NULL, NULL, false } },
		{ 403, 0, { true, false, "/", "127.0.0.1:91", "http://example.org", NULL, false } },
		{ 400, 0, { true, true, "/", HOST, NULL, false } },
		{ 401, 0, { true, false, "/a", HOST, NULL, false } },
		{ 200, 1, { true, false, "/a", HOST, BEARER, false } },
		{ 200, 1, { true, false, "/a?", HOST, BEARER, false } },
		{ 200, 1, { true, false, "/a?b=1", HOST, BEARER, false } },
		{ 404, 0, { true, false, "/ab", HOST, BEARER, false } },
		{ 404, 0, { true, false, "/a/", HOST, BEARER, false } },
		{ 405, 0, { false, false, "/a", HOST, BEARER, true } },
		{ 200, 2, { true, false, "/keys", HOST, BEARER, false } },
		{ 200, 3, { false, false, "/keys", HOST, BEARER, true } },
		{ 401, 0, { false, false, "/keys", HOST, NULL, true } },
		{ 405, 0, { false, false, "/keys", HOST, BEARER, false } },
		{ 404, 0, { false, false, "/keys?", HOST, BEARER, true } },
		{ 405, 0, { true, false, "/do?x", HOST, BEARER, false } },
		{ 200, 4, { false, false, "/do?x", HOST, BEARER, true } },
#undef HOST
	};
	struct httpgate gate;
	const char *why;

	httpgate_set(&gate, "127.0.0.1:0", 91, TOKEN);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		unsigned page = 0;
		int status = httpgate_check(&gate, &cases[i].r, pages, ARRAY_LEN(pages), &page,
					    &why);

		CU_ASSERT(status == cases[i].status && page == cases[i].page);
		if (status != cases[i].status || page != cases[i].page)
			fprintf(stderr, "case %zu: %d, page %u: %s\n", i, status, page, why);
	}
}

static void put(const char *name, const char *text, mode_t mode)
{
	FILE *file = fopen(at(name), "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
	chmod(at(name), mode);
}

static void token_files(void)
{
	static const struct { const char *text; mode_t mode; const char *wrong; } cases[] = {
		{ TOKEN "\n", 0600, NULL }, { TOKEN, 0400, NULL },
		{ TOKEN "\n", 0640, "nobody else can read" },
		{ TOKEN "\n", 0602, "nobody else can read" },
		{ "", 0600, "is no token" }, { "short\n", 0600, "is no token" },
		{ TOKEN " \n", 0600, "is no token" }, { TOKEN "\nmore\n", 0600, "is no token" },
		{ TOKEN TOKEN TOKEN TOKEN "\n", 0600, NULL },
		{ TOKEN TOKEN TOKEN TOKEN "0\n", 0600, "is no token" },
		{ TOKEN TOKEN TOKEN TOKEN "0123\n", 0600, "is no token" },
	};
	char token[TOKEN_MOST + 1], used[4096];
	struct problem p;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		p.line[0] = 0;
		unlink(at("token"));
		put("token", cases[i].text, cases[i].mode);
		CU_ASSERT_EQUAL(httpgate_token(at("token"), token, used, &p) != 0,
				cases[i].wrong != NULL);
		CU_ASSERT(!cases[i].wrong || strstr(p.line, cases[i].wrong));
		CU_ASSERT(cases[i].wrong ||
			  (strlen(token) >= 32 && !strncmp(token, cases[i].text, strlen(token))));
	}
	CU_ASSERT(httpgate_token(at("no/folder"), token, used, &p) && strstr(p.line, "cannot"));
	CU_ASSERT(httpgate_token(work, token, used, &p) && strstr(p.line, "must be a file"));
}

static void new_token(void)
{
	char first[TOKEN_MOST + 1], second[TOKEN_MOST + 1], used[4096];
	struct problem p;
	struct stat st;

	setenv("XDG_CONFIG_HOME", work, 1);
	CU_ASSERT(!httpgate_token(NULL, first, used, &p) && strlen(first) == 64);
	CU_ASSERT(!strcmp(used, at("vmp/token")) && !stat(used, &st) &&
		  (st.st_mode & 0777) == 0600);
	CU_ASSERT(!httpgate_token(NULL, second, used, &p) && !strcmp(first, second));
	unlink(used);
	CU_ASSERT(!httpgate_token(NULL, second, used, &p) && strcmp(first, second));
	CU_ASSERT(!httpgate_new_token(first, &p) && strlen(first) == 64 && strcmp(first, second));
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("HOME");
	CU_ASSERT(httpgate_token(NULL, second, used, &p) && strstr(p.line, "--token FILE"));
}

static void addresses(void)
{
	static const struct { const char *text; int error; unsigned port; } cases[] = {
		{ "127.0.0.1:80", 0, 80 }, { "localhost:0", 0, 0 }, { "[::1]:65535", 0, 65535 },
		{ "127.9.9.9:1", 0, 1 }, { "0.0.0.0:80", -EPERM, 0 }, { "[::]:80", -EPERM, 0 },
		{ "example.org:80", -EPERM, 0 }, { ":80", -EPERM, 0 }, { "80", -EINVAL, 0 },
		{ "127.0.0.1:", -EINVAL, 0 }, { "127.0.0.1:65536", -EINVAL, 0 },
		{ "127.0.0.1:-1", -EINVAL, 0 }, { "127.0.0.1: 1", -EINVAL, 0 },
	};
	struct loopback a;
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CU_ASSERT_EQUAL(loopback_parse(cases[i].text, &a), cases[i].error);
		CU_ASSERT(cases[i].error || ntohs(a.at.v4.sin_port) == cases[i].port);
	}
	CU_ASSERT(!loopback_parse("127.0.0.1:0", &a));
	fd = loopback_listen(&a, 1);
	CU_ASSERT_FATAL(fd >= 0 && !getsockname(fd, &a.at.any, &a.bytes));
	CU_ASSERT_EQUAL(loopback_listen(&a, 1), -EADDRINUSE);
	close(fd);
}

static int clean(void)
{
	char command[300];

	snprintf(command, sizeof command, "rm -r %s", work);
	return system(command) != 0;
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "which requests are served", requests },
		{ "which of several pages", pages },
		{ "the token's file", token_files },
		{ "a new token", new_token },
		{ "addresses of this computer", addresses },
		UNIT_END
	};
	int status;

	if (!mkdtemp(work))
		return 1;
	status = UNIT_RUN("httpgate", tests);
	return clean() || status;
}
