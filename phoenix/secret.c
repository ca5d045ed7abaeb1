/* secret.c - where keys come from: $PHNX_SECRET, or ~/.config/phnx/SESSION of mode 0600; without a session a file that
 * only this user can read, mixed with the boot's identity, so that it is no proof on another machine. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "phnx/phnx.h"
#include "phoenix/secret.h"

enum { MAX_SECRET = 4096, PATH_ROOM = 4096 };

void phnx_mac(const unsigned char key[32], const void *data, size_t len, unsigned char mac[32])
{
	unsigned n = 32;

	HMAC(EVP_sha256(), key, 32, data, len, mac, &n);
}

/* The folder of secrets, created if need be. */
static int folder(char path[PATH_ROOM], char *text, size_t room)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (config && *config)
		snprintf(path, PATH_ROOM, "%s", config);
	else if (home && *home)
		snprintf(path, PATH_ROOM, "%s/.config", home);
	else
		snprintf(path, PATH_ROOM, "/tmp/phnx-%u", (unsigned)geteuid());
	mkdir(path, 0700);
	size_t n = strlen(path);
	snprintf(path + n, PATH_ROOM - n, "/phnx");
	struct stat st;
	if (mkdir(path, 0700) && errno != EEXIST) {
		snprintf(text, room, "cannot create %.200s: %s", path, strerror(errno));
		return -1;
	}
	if (stat(path, &st) || st.st_uid != geteuid() || st.st_mode & 022) {
		snprintf(text, room, "%.200s must be this user's alone", path);
		return -1;
	}
	return 0;
}

static int read_secret(const char *path, char *buf, size_t *len, char *text, size_t room)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0) {
		snprintf(text, room, "%.200s: %s", path, strerror(errno));
		return -1;
	}
	ssize_t n = fstat(fd, &st) ? -1 : read(fd, buf, MAX_SECRET);
	close(fd);
	if (n <= 0 || st.st_uid != geteuid() || st.st_mode & 077) {
		snprintf(text, room, "%.200s must hold the secret, with mode 0600", path);
		return -1;
	}
	*len = (size_t)n;
	return 0;
}

/* Creates the file with random contents in one step: no other process ever sees half a secret. */
static int create_secret(const char *path, char *text, size_t room)
{
	unsigned char random[32];
	char hex[65], temp[PATH_ROOM + 32];

	if (getrandom(random, sizeof random, 0) != sizeof random)
		return -1;
	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", random[i]);
	snprintf(temp, sizeof temp, "%s.%d", path, (int)getpid());
	int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool ok = fd >= 0 && write(fd, hex, 64) == 64;
	if (fd >= 0)
		ok = close(fd) == 0 && ok;
	ok = ok && link(temp, path) == 0;
	int error = errno;
	unlink(temp);
	if (!ok)
		snprintf(text, room, "cannot create %.200s: %s", path, strerror(error));
	return ok ? 0 : -error;
}

static int name_is_good(const char *session, char *text, size_t room)
{
	if (*session && strlen(session) < MAX_SESSION && *session != '.' && !strchr(session, '/'))
		return 0;
	snprintf(text, room, "a session's name has 1 to %d characters, no '/', and does not begin with '.'", MAX_SESSION - 1);
	return -1;
}

int phnx_secret_create(const char *session, char *text, size_t room)
{
	char path[PATH_ROOM];

	if (name_is_good(session, text, room) || folder(path, text, room))
		return -1;
	size_t n = strlen(path);
	snprintf(path + n, PATH_ROOM - n, "/%s", session);
	return create_secret(path, text, room) ? -1 : 0;
}

static int local_secret(char *secret, size_t *len, char *text, size_t room)
{
	char path[PATH_ROOM];

	if (folder(path, text, room))
		return PH_ESYSTEM;
	size_t n = strlen(path);
	snprintf(path + n, PATH_ROOM - n, "/.local");
	int error = access(path, F_OK) ? create_secret(path, text, room) : 0;
	if (error && error != -EEXIST)
		return PH_ESYSTEM;
	if (read_secret(path, secret, len, text, room))
		return PH_ESYSTEM;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t more = fd < 0 ? 0 : read(fd, secret + *len, 64);
	if (fd >= 0)
		close(fd);
	*len += more > 0 ? (size_t)more : 0;
	return 0;
}

/* Of the secret without the end of its line.  0, or an error with text, and no key: everybody knows the empty one. */
static int make_key(const char *secret, size_t len, unsigned char key[32], char *text, size_t room)
{
	static const unsigned char purpose[32] = "phnx session key";

	while (len && (secret[len - 1] == '\n' || secret[len - 1] == '\r'))
		len--;
	if (!len) {
		snprintf(text, room, "an empty line is no secret");
		return PH_ECONFIG;
	}
	phnx_mac(purpose, secret, len, key);
	return 0;
}

int phnx_secret(const char *session, unsigned char key[32], bool *shared, char *text, size_t room)
{
	char secret[MAX_SECRET + 64], path[PATH_ROOM];
	const char *from_environment = getenv("PHNX_SECRET");
	size_t len = 0;

	*shared = false;
	if (!session) {
		int error = local_secret(secret, &len, text, room);
		if (error)
			return error;
	} else if (name_is_good(session, text, room)) {
		return PH_EINVAL;
	} else if (from_environment && *from_environment) {
		len = strlen(from_environment) < MAX_SECRET ? strlen(from_environment) : MAX_SECRET;
		memcpy(secret, from_environment, len);
	} else {
		if (folder(path, text, room))
			return PH_ESYSTEM;
		size_t n = strlen(path);
		snprintf(path + n, PATH_ROOM - n, "/%s", session);
		if (read_secret(path, secret, &len, text, room))
			return PH_ECONFIG;
	}
	int error = make_key(secret, len, key, text, room);
	*shared = session && !error;
	return error;
}

int phnx_secret_file(const char *path, unsigned char key[32], char *text, size_t room)
{
	char secret[MAX_SECRET];
	size_t len;

	if (read_secret(path, secret, &len, text, room))
		return PH_ECONFIG;
	return make_key(secret, len, key, text, room);
}
