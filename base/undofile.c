/* undofile.c - see undofile.h. */
#include "base/undofile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char undo_magic[8] = "vmpundo1";

bool undofile_path(const char *image, char path[UNDO_PATH])
{
	return snprintf(path, UNDO_PATH, "%s" UNDO_SUFFIX, image) < UNDO_PATH;
}

int undofile_open(const char *image, bool create)
{
	char path[UNDO_PATH];
	struct stat st;
	int fd;

	if (!undofile_path(image, path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (create ? O_CREAT : 0),
		  0600);
	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		return fd;
	close(fd);
	return -EPERM;
}

int undofile_head(int fd, struct undo_head *head)
{
	ssize_t n = pread(fd, head, sizeof *head, 0);

	if (n < 0)
		return -errno;
	return n == sizeof *head && !memcmp(head->magic, undo_magic, sizeof undo_magic) &&
			       head->state <= UNDO_GOES_BACK &&
			       memchr(head->boot, 0, sizeof head->boot)
		       ? 0
		       : -EINVAL;
}

void undofile_remove(const char *image)
{
	int fd = undofile_open(image, false);
	struct undo_head head;
	char path[UNDO_PATH];

	if (fd < 0)
		return;
	if ((undofile_head(fd, &head) || head.state != UNDO_GOES_BACK) &&
	    undofile_path(image, path))
		unlink(path);
	close(fd);
}

void undofile_remove_unlocked(const char *image)
{
	char *real = realpath(image, NULL);
	int fd = real ? open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
		undofile_remove(real);
	if (fd >= 0)
		close(fd);
	free(real);
}
