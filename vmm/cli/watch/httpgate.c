/* httpgate.c - see httpgate.h. */
#include "vmm/cli/watch/httpgate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- requests ---- */

void httpgate_set(struct httpgate *gate, const char *own, uint16_t port, const char *token)
{
	const char *colon = strrchr(own, ':');

	*gate = (struct httpgate){ .authority = { "" } };
	snprintf(gate->authority[0], sizeof gate->authority[0], "127.0.0.1:%u", port);
	snprintf(gate->authority[1], sizeof gate->authority[1], "localhost:%u", port);
	/* 127.0.0.2, or [::1] */
	snprintf(gate->authority[2], sizeof gate->authority[2], "%.*s:%u",
		 colon && colon - own < 20 ? (int)(colon - own) : 0, own, port);
	if (!digest_of(token, strlen(token), gate->digest))
		memset(gate->digest, 0, sizeof gate->digest);	/* nobody has the token, then */
}

static bool names_this_server(const struct httpgate *gate, const char *authority)
{
	for (size_t i = 0; i < sizeof gate->authority / sizeof *gate->authority; i++)
		if (!strcasecmp(authority, gate->authority[i]))
			return true;
	return false;
}

static bool is_own_origin(const struct httpgate *gate, const char *origin)
{
	return !strncasecmp(origin, "http://", 7) && names_this_server(gate, origin + 7);
}

/* The time that this takes does not depend on where two tokens differ, since their digests are
 * compared, and all bytes of them. */
static bool has_token(const struct httpgate *gate, const char *authorization)
{
	unsigned char digest[TOKEN_DIGEST], differs = 0;

	if (!authorization || strncasecmp(authorization, "Bearer ", 7))
		return false;
	if (!digest_of(authorization + 7, strlen(authorization + 7), digest))
		return false;
	for (size_t i = 0; i < sizeof digest; i++)
		differs |= digest[i] ^ gate->digest[i];
	return !differs;
}

static int refuse(int status, const char *line, const char **why)
{
	*why = line;
	return status;
}

static bool is_at(const struct httpgate_page *page, const char *target)
{
	size_t n = strlen(page->path);

	return !strncmp(target, page->path, n) &&
	       (!target[n] || (page->takes_query && target[n] == '?'));
}

/* Finds the page of a path, if possible one that the request's method may ask for.  Returns its
 * number, or -1. */
static int find_page(const struct httpgate_request *r, const struct httpgate_page *pages,
		     unsigned n_pages)
{
	int found = -1;

	for (unsigned i = 0; r->target && i < n_pages; i++)
		if (is_at(&pages[i], r->target) && (found < 0 || pages[i].posts == r->posts))
			found = (int)i;
	return found;
}

int httpgate_check(const struct httpgate *gate, const struct httpgate_request *r,
		   const struct httpgate_page *pages, unsigned n_pages, unsigned *page,
		   const char **why)
{
	int found = find_page(r, pages, n_pages);

	*why = "";
	if (r->twice)
		return refuse(400, "a header stands twice", why);
	if (!r->host || !names_this_server(gate, r->host))
		return refuse(403, "Host is not this server's address", why);
	if (r->origin && !is_own_origin(gate, r->origin))
		return refuse(403, "Origin is another page's", why);
	if ((found < 0 || !pages[found].is_public) && !has_token(gate, r->authorization))
		return refuse(401, "this needs the header Authorization: Bearer TOKEN", why);
	if (found < 0)
		return refuse(404, "there is no such page", why);
	if (pages[found].posts ? !r->posts : !r->reads)
		return refuse(405, pages[found].posts ? "only POST is served" :
			      "only GET and HEAD are served", why);
	*page = (unsigned)found;
	return 200;
}

/* ---- the token's file ---- */

static bool is_token(const char *token)
{
	size_t n = strlen(token);

	return n >= TOKEN_LEAST && n <= TOKEN_MOST &&
	       strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			     "-._~+/=") == n;
}

static int read_token(int fd, const char *path, char token[TOKEN_MOST + 1], struct problem *p)
{
	char text[TOKEN_MOST + 2];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return problem(p, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return problem(p, "%s must be a file of yours that nobody else can read: chmod 600 "
			       "%s", path, path);
	n = read(fd, text, sizeof text);
	if (n > 0 && text[n - 1] == '\n')
		n--;
	snprintf(token, TOKEN_MOST + 1, "%.*s", n > 0 && n <= TOKEN_MOST ? (int)n : 0, text);
	if (is_token(token))
		return 0;
	return problem(p, "%s is no token: it needs %d to %d letters and digits, alone on its "
		       "first line; without the file, vmp makes one", path, TOKEN_LEAST,
		       TOKEN_MOST);
}

int httpgate_new_token(char token[TOKEN_MOST + 1], struct problem *p)
{
	unsigned char random[32];

	if (getrandom(random, sizeof random, 0) != sizeof random)
		return problem(p, "no random numbers: %s", strerror(errno));
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(token + 2 * i, 3, "%02x", random[i]);
	return 0;
}

/* Writes a new token into a file beside `path`, and gives it that name unless there is one by now,
 * so that nobody ever reads half a token. */
static int make_token(const char *path, struct problem *p)
{
	char text[TOKEN_MOST + 2], beside[4096 + 32];
	bool written;
	int fd, error;

	if (httpgate_new_token(text, p))
		return -1;
	strcat(text, "\n");
	snprintf(beside, sizeof beside, "%s.%d", path, getpid());
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return problem(p, "cannot make the token %s: %s", path, strerror(errno));
	written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	error = written ? 0 : errno;
	if (!error && link(beside, path) && errno != EEXIST)
		error = errno;
	close(fd);
	unlink(beside);
	return error ? problem(p, "cannot make the token %s: %s", path, strerror(error)) : 0;
}

/* The default: $XDG_CONFIG_HOME/vmp/token, or ~/.config/vmp/token; makes the folders. */
static int default_path(char path[4096], struct problem *p)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n;

	if (config && *config == '/') {
		n = snprintf(path, 4000, "%s", config);
	} else if (home && *home == '/') {
		n = snprintf(path, 4000, "%s/.config", home);
	} else {
		return problem(p, "HOME is not set: name the token's file with --token FILE");
	}
	if (n >= 4000)
		return problem(p, "the path of the configuration folder is too long: name the "
			       "token's file with --token FILE");
	mkdir(path, 0700);
	strcat(path, "/vmp");
	if (mkdir(path, 0700) && errno != EEXIST)
		return problem(p, "cannot make the folder %s: %s", path, strerror(errno));
	strcat(path, "/token");
	return 0;
}

int httpgate_token(const char *path, char token[TOKEN_MOST + 1], char used[4096],
		   struct problem *p)
{
	int fd, result;

	if (path)
		snprintf(used, 4096, "%s", path);
	else if (default_path(used, p))
		return -1;
	fd = open(used, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT) {
		if (make_token(used, p))
			return -1;
		fd = open(used, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	}
	if (fd < 0)
		return problem(p, "cannot read %s: %s", used, strerror(errno));
	result = read_token(fd, used, token, p);
	close(fd);
	return result;
}
