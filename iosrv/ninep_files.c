/* ninep_files.c - the guest's numbers for files (fids), and how the host's files are opened. */
#include "iosrv/ninep_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct fid **ninep_find(struct ninep *s, uint32_t number)
{
	struct fid **at = &s->bucket[number % BUCKETS];

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

struct fid *ninep_get_fid(struct ninep *s)
{
	struct fid *f = *ninep_find(s, (uint32_t)ninep_get(s, 4));

	if (!f || f->place >= 0)
		return f;
	s->lost = true;
	return NULL;
}

int ninep_add_fid(struct ninep *s, uint32_t number, int place)
{
	struct fid **at = ninep_find(s, number), *f = NULL;
	int error = *at ? EBADF : s->n_fids == NINEP_FIDS ? ENFILE : 0;

	if (!error && !(f = malloc(sizeof *f)))
		error = ENOMEM;
	if (error) {
		if (place >= 0)
			close(place);
		return -error;
	}
	*f = (struct fid){ .number = number, .place = place, .file = -1 };
	*at = f;
	s->n_fids++;
	return 0;
}

void ninep_drop_fid(struct ninep *s, struct fid **at)
{
	struct fid *f = *at;

	*at = f->next;
	if (f->place >= 0)
		close(f->place);
	if (f->file >= 0)
		close(f->file);
	s->n_locks -= f->n_locks;
	free(f->lock);
	free(f);
	s->n_fids--;
}

void ninep_drop_all(struct ninep *s)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		while (s->bucket[i])
			ninep_drop_fid(s, &s->bucket[i]);
}

int ninep_open_entry(int folder, const char *name, int flags, unsigned mode)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC),
				.mode = flags & O_CREAT ? mode : 0,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	long fd = syscall(SYS_openat2, folder, name, &how, sizeof how);

	return fd < 0 ? -errno : (int)fd;
}

const char *ninep_name_of(int fd)
{
	static char name[16];

	snprintf(name, sizeof name, "%d", fd);
	return name;
}

int ninep_open_again(const struct ninep *s, int place, int flags)
{
	int fd = openat(s->own, ninep_name_of(place), flags | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int ninep_check_kind(int fd, struct stat *st)
{
	if (fstat(fd, st))
		return -errno;
	return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) ? 0 : -ENXIO;
}

int ninep_result(int of)
{
	return of < 0 ? -errno : 0;
}
