/* secret.c - where keys come from.
 *
 * The secret of a session is in $PHNX_SECRET, or in ~/.config/phnx/SESSION with mode 0600.  Without
 * a session the secret is a file that only this user can read, mixed with the identity of this boot
 * of the host, so that it proves nothing on another host.
 */
#include <ctype.h>
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
#include "phoenix/core/secret.h"

enum { MAX_SECRET = 4096, PATH_ROOM = 4096 };

void secret_mac(const unsigned char key[32], const void *data, size_t len, unsigned char mac[32])
{
	unsigned n = 32;

	HMAC(EVP_sha256(), key, 32, data, len, mac, &n);
}

/* Writes the path of the folder of secrets, which it creates if need be.  Returns 0, or -1 with
 * text. */
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
		snprintf(text, room,
			 "%.200s must belong to this user, and only this user may write to it",
			 path);
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

/* Creates a file with random contents in one step: no other process ever sees half a secret.
 * Returns 0, or -errno with text. */
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
	if (*session && strlen(session) < MAX_SESSION && *session != '.' && *session != '-' &&
	    !strchr(session, '/'))
		return 0;
	snprintf(text, room,
		 "a session's name has 1 to %d characters, no '/', and does not begin with '.' or "
		 "'-'", MAX_SESSION - 1);
	return -1;
}

int secret_create(const char *session, char *text, size_t room)
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

/* Derives a key from a secret, without the end of its line.  Returns 0.  An empty secret, which
 * everybody knows, is an error with text. */
static int make_key(const char *secret, size_t len, unsigned char key[32], char *text, size_t room)
{
	static const unsigned char purpose[32] = "phnx session key";

	while (len && (secret[len - 1] == '\n' || secret[len - 1] == '\r'))
		len--;
	if (!len) {
		snprintf(text, room, "the secret is empty");
		return PH_ECONFIG;
	}
	secret_mac(purpose, secret, len, key);
	return 0;
}

/* 64 hexadecimal digits, as create_secret() writes them. */
static bool is_random(const char *secret, size_t len)
{
	size_t digits = 0;

	while (digits < len && isxdigit((unsigned char)secret[digits]))
		digits++;
	while (len && (secret[len - 1] == '\n' || secret[len - 1] == '\r'))
		len--;
	return digits == 64 && len == 64;
}

/* Replaces a key by one whose secret is dear to guess; the salt is the session's name.  Returns 0,
 * or PH_ENOMEM with text. */
static int stretch(const char *session, unsigned char key[32], char *text, size_t room)
{
	enum { N = 1 << 15, R = 8, P = 1, MEMORY = 64 << 20 };
	unsigned char stretched[32];

	if (EVP_PBE_scrypt((const char *)key, 32, (const unsigned char *)session, strlen(session),
			   N, R, P, MEMORY, stretched, sizeof stretched) != 1) {
		snprintf(text, room, "no memory to make a key of the secret: 32 MiB");
		return PH_ENOMEM;
	}
	memcpy(key, stretched, sizeof stretched);
	return 0;
}

int secret_of_session(const char *session, unsigned char key[32], bool *shared, char *text,
		      size_t room)
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
	if (!error && session && !is_random(secret, len))
		error = stretch(session, key, text, room);
	*shared = session && !error;
	return error;
}

int secret_from_file(const char *path, unsigned char key[32], char *text, size_t room)
{
	char secret[MAX_SECRET];
	size_t len;

	if (read_secret(path, secret, &len, text, room))
		return PH_ECONFIG;
	return make_key(secret, len, key, text, room);
}
