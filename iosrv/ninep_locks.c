/* ninep_locks.c - requests about locks on files.  A lock is the host's own, of the open file, so it
 * also holds between guest and host.  The host does not tell a process which locks it has, so each
 * file's are listed here as well, for ninep_saved.c. */
#include "iosrv/ninep_private.h"

#include <errno.h>
#include <stdlib.h>

enum { LOCK_DONE = 0, LOCK_BLOCKED = 1 };
enum { MOST_MORE = 2 }; /* ranges that one request adds: it splits another one */

/* Append what is left of a range beside a new one. */
static void keep_rest(struct lock_range *to, unsigned *n, const struct lock_range *old,
		      const struct lock_range *new)
{
	if (old->first < new->first) {
		to[*n] = *old;
		if (to[*n].last >= new->first)
			to[*n].last = new->first - 1;
		++*n;
	}
	if (old->last > new->last) {
		to[*n] = *old;
		if (to[*n].first <= new->last)
			to[*n].first = new->last + 1;
		++*n;
	}
}

/* Write the ranges after a change to `to`, which has room for MOST_MORE more than before.  Ranges
 * of one kind that touch become one.  Returns how many there are. */
static unsigned merge(struct lock_range *to, const struct fid *f, struct lock_range new)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->n_locks; i++) {
		const struct lock_range *old = &f->lock[i];

		if (old->kind != new.kind || old->first > new.last + 1 ||
		    new.first > old->last + 1)
			continue;
		new.first = old->first < new.first ? old->first : new.first;
		new.last = old->last > new.last ? old->last : new.last;
	}
	for (unsigned i = 0; i < f->n_locks; i++) {
		const struct lock_range *old = &f->lock[i];

		if (old->last < new.first || old->first > new.last)
			to[n++] = *old;
		else
			keep_rest(to, &n, old, &new);
	}
	if (new.kind != RANGE_NONE)
		to[n++] = new;
	return n;
}

static struct flock for_host(const struct lock_range *range)
{
	static const short kinds[RANGE_KINDS] = { F_RDLCK, F_WRLCK, F_UNLCK };

	return (struct flock){ .l_type = kinds[range->kind],
			       .l_whence = SEEK_SET,
			       .l_start = (off_t)range->first,
			       .l_len = range->last == INT64_MAX
						? 0
						: (off_t)(range->last - range->first + 1) };
}

int ninep_set_lock(struct ninep *s, struct fid *f, struct lock_range range)
{
	struct flock lock = for_host(&range);
	bool all = range.kind == RANGE_NONE && !range.first && range.last == INT64_MAX;
	struct lock_range *list;
	unsigned n;
	int error;

	if (s->n_locks + MOST_MORE > NINEP_LOCKS && !all)
		return -ENOLCK;
	list = calloc(f->n_locks + MOST_MORE, sizeof *list);
	if (!list)
		return -ENOMEM;
	error = ninep_result(fcntl(f->file, F_OFD_SETLK, &lock));
	if (error) {
		free(list);
		return error == -EACCES ? -EAGAIN : error;
	}
	n = merge(list, f, range);
	s->n_locks += n - f->n_locks;
	free(f->lock);
	f->lock = list;
	f->n_locks = n;
	return 0;
}

/* Read start and length of a request; a length of 0 is up to the end. */
static int get_range(struct ninep *s, struct lock_range *range)
{
	uint64_t start = ninep_get(s, 8), bytes = ninep_get(s, 8);

	if (s->short_of || start > INT64_MAX || bytes > INT64_MAX - start + 1)
		return -EINVAL;
	range->first = start;
	range->last = bytes ? start + bytes - 1 : INT64_MAX;
	return 0;
}

int ninep_on_lock(struct ninep *s)
{
	struct fid *f = ninep_get_fid(s);
	struct lock_range range = { .kind = (enum range_kind)ninep_get(s, 1) };
	int error;

	ninep_get(s, 4); /* wait or not: the guest asks again */
	error = get_range(s, &range);
	if (error || range.kind >= RANGE_KINDS)
		return -EINVAL;
	if (!f || f->file < 0)
		return -EBADF;
	error = ninep_set_lock(s, f, range);
	if (error && error != -EAGAIN)
		return error;
	ninep_put(s, error ? LOCK_BLOCKED : LOCK_DONE, 1);
	return 0;
}

int ninep_on_getlock(struct ninep *s)
{
	struct fid *f = ninep_get_fid(s);
	struct lock_range range = { .kind = (enum range_kind)ninep_get(s, 1) };
	int error = get_range(s, &range);
	uint32_t process = (uint32_t)ninep_get(s, 4);
	struct flock lock;
	char client[65];

	if (error || range.kind >= RANGE_KINDS || ninep_get_string(s, client, sizeof client))
		return -EINVAL;
	if (!f || f->file < 0)
		return -EBADF;
	lock = for_host(&range);
	if (fcntl(f->file, F_OFD_GETLK, &lock))
		return -errno;
	ninep_put(s, lock.l_type == F_RDLCK   ? RANGE_READ
		     : lock.l_type == F_WRLCK ? RANGE_WRITE
					      : RANGE_NONE,
		  1);
	ninep_put(s, (uint64_t)lock.l_start, 8);
	ninep_put(s, (uint64_t)lock.l_len, 8);
	ninep_put(s, process, 4);
	ninep_put_string(s, client);
	return 0;
}
