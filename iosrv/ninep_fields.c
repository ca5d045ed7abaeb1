/* ninep_fields.c - the fields of requests and replies: numbers, strings, names of entries, and a
 * file's identity (qid). */
#include "iosrv/ninep_private.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

uint64_t ninep_get(struct ninep *s, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(s->in_end - s->in) < bytes) {
		s->short_of = true;
		s->in = s->in_end;
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)*s->in++ << 8 * i;
	return value;
}

void ninep_put(struct ninep *s, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*s->out++ = (uint8_t)(value >> 8 * i);
}

int ninep_get_string(struct ninep *s, char *to, size_t room)
{
	size_t n = ninep_get(s, 2);

	if (n > (size_t)(s->in_end - s->in))
		s->short_of = true;
	if (s->short_of)
		return -EPROTO;
	memcpy(to, s->in, n < room ? n : 0);
	to[n < room ? n : 0] = 0;
	s->in += n;
	if (n >= room)
		return -ENAMETOOLONG;
	return strlen(to) == n ? 0 : -EINVAL;
}

void ninep_put_string(struct ninep *s, const char *text)
{
	size_t n = strlen(text);

	ninep_put(s, n, 2);
	memcpy(s->out, text, n);
	s->out += n;
}

int ninep_get_name(struct ninep *s, char name[NAME_MAX + 1])
{
	int error = ninep_get_string(s, name, NAME_MAX + 1);

	if (error)
		return error;
	return !*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..") ? -EINVAL
											: 0;
}

size_t ninep_room(const struct ninep *s)
{
	return s->message_bytes - (size_t)(s->out - s->reply);
}

uint64_t ninep_number_of(uint64_t device, uint64_t inode)
{
	return inode ^ device << 48 ^ device >> 16 << 32;
}

void ninep_put_qid(struct ninep *s, const struct stat *st)
{
	ninep_put(s,
		  S_ISDIR(st->st_mode)	 ? QID_DIR
		  : S_ISLNK(st->st_mode) ? QID_SYMLINK
					 : QID_FILE,
		  1);
	ninep_put(s, 0, 4);
	ninep_put(s, ninep_number_of(st->st_dev, st->st_ino), 8);
}
