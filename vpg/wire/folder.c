/* folder.c - see folder.h. */
#include "vpg/wire/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = FOLDER_PATH + 32 };

int folder_path(char path[FOLDER_PATH], struct why *why)
{
	const char *own = getenv("VMP_PEER_DIR"), *config = getenv("XDG_CONFIG_HOME"),
		   *home = getenv("HOME");
	int n;

	if (own && *own)
		n = snprintf(path, FOLDER_PATH, "%s", own);
	else if (config && *config)
		n = snprintf(path, FOLDER_PATH, "%s/vmp/peer", config);
	else if (home && *home)
		n = snprintf(path, FOLDER_PATH, "%s/.config/vmp/peer", home);
	else
		return why_set(why, "neither HOME nor VMP_PEER_DIR is set: set one");
	if (n >= FOLDER_PATH || *path != '/')
		return why_set(why, "%s: set VMP_PEER_DIR to a path that begins with / and has "
			       "less than %d bytes", path, FOLDER_PATH);
	return 0;
}

/* Makes all folders of the path. */
static void make_way(const char *path)
{
	char part[FOLDER_PATH];

	snprintf(part, sizeof part, "%s", path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(part, 0700);
		*slash = '/';
	}
	mkdir(part, 0700);
}

int folder_make(char path[FOLDER_PATH], struct why *why)
{
	struct stat st;

	if (folder_path(path, why))
		return -1;
	make_way(path);
	if (stat(path, &st))
		return why_set(why, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return why_set(why, "%s: must be a folder of yours that nobody else can enter: "
			       "chmod 700", path);
	return 0;
}

long folder_read(const char *folder, const char *name, char *text, size_t room)
{
	char path[PATH_ROOM];
	struct stat st;
	ssize_t n = 0;
	size_t all = 0;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & 077) {
		close(fd);
		return -EACCES;
	}
	while (all < room - 1 && (n = read(fd, text + all, room - 1 - all)) > 0)
		all += (size_t)n;
	close(fd);
	text[all] = 0;
	return n < 0 ? -EIO : (long)all;
}

static int write_all(int fd, const char *text, size_t n)
{
	while (n) {
		ssize_t done = write(fd, text, n);

		if (done < 0)
			return -errno;
		text += done;
		n -= (size_t)done;
	}
	return fsync(fd) ? -errno : 0;
}

int folder_write(const char *folder, const char *name, const char *text, size_t n)
{
	char path[PATH_ROOM], temp[PATH_ROOM + 16];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	snprintf(temp, sizeof temp, "%s.%d", path, (int)getpid());
	unlink(temp);
	int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int error = write_all(fd, text, n);
	if (close(fd) && !error)
		error = -errno;
	if (!error && rename(temp, path))
		error = -errno;
	if (error)
		unlink(temp);
	return error;
}
