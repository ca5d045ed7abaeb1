/* ninep_names.c - requests that make, rename and remove a folder's entries, and read a link. */
#include "iosrv/ninep_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Put the reply of a request that makes an entry: the entry's kind and number. */
static int put_made(struct ninep *s, int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	ninep_put_qid(s, &st);
	return 0;
}

/* Read the folder and the name of an entry that is to be made or removed: 0 or -errno. */
static int get_entry(struct ninep *s, struct fid **folder, char name[NAME_MAX + 1])
{
	int error;

	*folder = ninep_get_fid(s);
	error = ninep_get_name(s, name);
	if (s->short_of || !*folder)
		return -EBADF;
	return error ? error : s->read_only ? -EROFS : 0;
}

int ninep_on_mkdir(struct ninep *s)
{
	struct fid *f;
	char name[NAME_MAX + 1];
	int error = get_entry(s, &f, name);
	unsigned mode = (unsigned)ninep_get(s, 4) & NINEP_FILE_MODES;

	if (error || s->short_of)
		return error ? error : -EPROTO;
	error = ninep_result(mkdirat(f->place, name, mode));
	return error ? error : put_made(s, f->place, name);
}

int ninep_on_symlink(struct ninep *s)
{
	struct fid *f;
	char name[NAME_MAX + 1], target[PATH_MAX];
	int error = get_entry(s, &f, name), wrong = ninep_get_string(s, target, sizeof target);

	if (error || wrong)
		return error ? error : wrong;
	error = ninep_result(symlinkat(target, f->place, name));
	return error ? error : put_made(s, f->place, name);
}

/* Make a FIFO or a socket, for the guest's programs among themselves; devices are refused. */
int ninep_on_mknod(struct ninep *s)
{
	struct fid *f;
	char name[NAME_MAX + 1];
	int error = get_entry(s, &f, name);
	unsigned mode = (unsigned)ninep_get(s, 4);

	if (error || s->short_of)
		return error ? error : -EPROTO;
	if (!S_ISFIFO(mode) && !S_ISSOCK(mode) && !S_ISREG(mode))
		return -EPERM;
	error = ninep_result(mknodat(f->place, name, mode & (S_IFMT | NINEP_FILE_MODES), 0));
	return error ? error : put_made(s, f->place, name);
}

int ninep_on_link(struct ninep *s)
{
	struct fid *folder = ninep_get_fid(s), *f = ninep_get_fid(s);
	char name[NAME_MAX + 1];
	int error = ninep_get_name(s, name);

	if (s->short_of || !folder || !f)
		return -EBADF;
	if (error || s->read_only)
		return error ? error : -EROFS;
	return ninep_result(linkat(s->own, ninep_name_of(f->place), folder->place, name,
				   AT_SYMLINK_FOLLOW));
}

int ninep_on_renameat(struct ninep *s)
{
	struct fid *from, *to;
	char old[NAME_MAX + 1], new[NAME_MAX + 1];
	int error = get_entry(s, &from, old), wrong = get_entry(s, &to, new);

	if (error || wrong)
		return error ? error : wrong;
	return ninep_result(renameat(from->place, old, to->place, new));
}

int ninep_on_unlinkat(struct ninep *s)
{
	struct fid *f;
	char name[NAME_MAX + 1];
	int error = get_entry(s, &f, name);
	int flags = (int)ninep_get(s, 4) & AT_REMOVEDIR;

	if (error || s->short_of)
		return error ? error : -EPROTO;
	return ninep_result(unlinkat(f->place, name, flags));
}

int ninep_on_readlink(struct ninep *s)
{
	struct fid *f = ninep_get_fid(s);
	char target[PATH_MAX];
	ssize_t n;

	if (s->short_of || !f)
		return -EBADF;
	n = readlinkat(f->place, "", target, sizeof target - 1);
	if (n < 0)
		return -errno;
	target[n] = 0;
	if ((size_t)n + 2 > ninep_room(s))
		return -ENAMETOOLONG;
	ninep_put_string(s, target);
	return 0;
}
