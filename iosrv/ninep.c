/* ninep.c - see ninep.h: which function serves which request, and the frame of its reply.  The
 * protocol: Linux, include/net/9p/9p.h, and diod's protocol.md. */
#include "iosrv/ninep_private.h"

#include <errno.h>
#include <stdlib.h>

/* A request's type; its reply's is one more. */
enum type {
	ERROR_REPLY = 7,
	T_STATFS = 8,
	T_LOPEN = 12,
	T_LCREATE = 14,
	T_SYMLINK = 16,
	T_MKNOD = 18,
	T_READLINK = 22,
	T_GETATTR = 24,
	T_SETATTR = 26,
	T_READDIR = 40,
	T_FSYNC = 50,
	T_LOCK = 52,
	T_GETLOCK = 54,
	T_LINK = 70,
	T_MKDIR = 72,
	T_RENAMEAT = 74,
	T_UNLINKAT = 76,
	T_VERSION = 100,
	T_ATTACH = 104,
	T_FLUSH = 108,
	T_WALK = 110,
	T_READ = 116,
	T_WRITE = 118,
	T_CLUNK = 120,
};

static int serve(struct ninep *s, unsigned type)
{
	switch (type) {
	case T_VERSION: return ninep_on_version(s);
	case T_ATTACH: return ninep_on_attach(s);
	case T_FLUSH: return 0; /* requests are served in order: the old one has been answered */
	case T_WALK: return ninep_on_walk(s);
	case T_CLUNK: return ninep_on_clunk(s);
	case T_LOPEN: return ninep_on_lopen(s);
	case T_LCREATE: return ninep_on_lcreate(s);
	case T_MKDIR: return ninep_on_mkdir(s);
	case T_SYMLINK: return ninep_on_symlink(s);
	case T_MKNOD: return ninep_on_mknod(s);
	case T_LINK: return ninep_on_link(s);
	case T_RENAMEAT: return ninep_on_renameat(s);
	case T_UNLINKAT: return ninep_on_unlinkat(s);
	case T_READLINK: return ninep_on_readlink(s);
	case T_GETATTR: return ninep_on_getattr(s);
	case T_SETATTR: return ninep_on_setattr(s);
	case T_STATFS: return ninep_on_statfs(s);
	case T_READ: return ninep_on_read(s);
	case T_WRITE: return ninep_on_write(s);
	case T_READDIR: return ninep_on_readdir(s);
	case T_FSYNC: return ninep_on_fsync(s);
	case T_LOCK: return ninep_on_lock(s);
	case T_GETLOCK: return ninep_on_getlock(s);
	default: return -EOPNOTSUPP; /* extended attributes; rename and remove by fid alone */
	}
}

size_t ninep_serve(struct ninep *s, const void *request, size_t bytes, void *reply)
{
	uint32_t length, tag;
	unsigned type;
	int error;

	s->in = request;
	s->in_end = s->in + bytes;
	s->short_of = s->lost = false;
	length = (uint32_t)ninep_get(s, 4);
	type = (unsigned)ninep_get(s, 1);
	tag = (uint32_t)ninep_get(s, 2);
	if (s->short_of)
		return 0;
	s->reply = reply;
	s->out = s->reply + NINEP_HEADER_BYTES;
	error = length != bytes ? -EPROTO : serve(s, type);
	if (error && s->lost)
		error = -ESTALE;
	if (error) {
		s->out = s->reply + NINEP_HEADER_BYTES;
		ninep_put(s, (uint64_t)-error, 4);
	}
	length = (uint32_t)(s->out - s->reply);
	s->out = s->reply;
	ninep_put(s, length, 4);
	ninep_put(s, error ? ERROR_REPLY : type + 1, 1);
	ninep_put(s, tag, 2);
	return length;
}

struct ninep *ninep_new(int folder, int own, bool read_only)
{
	struct ninep *s = calloc(1, sizeof *s);

	if (s)
		*s = (struct ninep){ .folder = folder, .own = own, .read_only = read_only,
				     .message_bytes = NINEP_MESSAGE_BYTES };
	return s;
}

void ninep_free(struct ninep *s)
{
	ninep_drop_all(s);
	free(s);
}
