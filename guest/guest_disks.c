/* guest_disks.c - the end of the machine: disks are unmounted, so that their file systems are
 * clean. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include "guest/guest.h"

/* Replaces \ooo, as the kernel writes blanks and backslashes in names. */
static void decode(char *text)
{
	char *to = text;

	for (const char *at = text; *at; to++)
		if (*at == '\\' && strspn(at + 1, "01234567") >= 3) {
			*to = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
			at += 4;
		} else {
			*to = *at++;
		}
	*to = 0;
}

bool disks_take_last(char *table, size_t *bytes, char **device, char **where)
{
	while (*bytes) {
		size_t at = *bytes - 1; /* of the end of the line */
		char *rest;

		table[at] = 0;
		while (at && table[at - 1] != '\n')
			at--;
		*bytes = at;
		*device = strtok_r(table + at, " ", &rest);
		*where = *device ? strtok_r(NULL, " ", &rest) : NULL;
		if (*where) {
			decode(*device);
			decode(*where);
			return true;
		}
	}
	return false;
}

/* Reads the whole table at once: it changes with each that is unmounted. */
static char *read_mounts(size_t *bytes)
{
	size_t room = 1 << 16, n = 0;
	char *table = malloc(room), *more;
	int fd = open("/proc/mounts", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	while (fd >= 0 && table && (got = read(fd, table + n, room - n)) > 0) {
		n += (size_t)got;
		if (n < room)
			continue;
		more = realloc(table, room *= 2);
		if (!more)
			break;
		table = more;
	}
	if (fd >= 0)
		close(fd);
	*bytes = table ? n : 0;
	return table;
}

/* What was mounted last goes first: it may lie in what was mounted before. */
void disks_leave(void)
{
	char *table, *device, *where;
	size_t bytes;
	bool killed = false;

	sync();
	table = read_mounts(&bytes);
	while (disks_take_last(table, &bytes, &device, &where)) {
		if (strncmp(device, "/dev/", 5) || umount(where) == 0)
			continue;
		if (!killed)
			kill(-1, SIGKILL);
		killed = true;
		for (int tries = 0; umount(where) < 0 && errno == EBUSY && tries < 50; tries++)
			usleep(20000);
	}
	free(table);
}
