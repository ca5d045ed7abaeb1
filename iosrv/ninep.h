/* ninep.h - a 9P2000.L server of one folder: takes a request of the guest and makes its reply.
 *
 * The guest is not trusted.  Each request's fields are checked against its length.  No path leads
 * out of the folder: a request names one entry of a folder that is open, never a path; an entry is
 * opened with RESOLVE_BENEATH and without following symbolic links (openat2, Linux 5.6), so a name
 * that the host replaces meanwhile leads nowhere else.  A name "..", or with a slash, is refused;
 * the guest's driver asks for neither.
 *
 * The server acts with the rights of its own user.  That user's files belong to root in the guest,
 * and files of the host's root to nobody.  A set-user-ID or set-group-ID bit is never set: the
 * guest could let other users of the host run its code as this one.
 *
 * Callers: iosrv/vmp_share.c; tests/unit/ninep.c and tests/fuzz/ninep.c.
 */
#ifndef IOSRV_NINEP_H
#define IOSRV_NINEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NINEP_MESSAGE_BYTES = 64 << 10, /* the longest request or reply */
	NINEP_HEADER_BYTES = 7,
	NINEP_FIDS = 16384, /* files that the guest has in use, at most */
};

struct ninep;

/* `folder` is open (O_PATH), `own` is /proc/self/fd, open (O_PATH).  Both stay the caller's.  NULL:
 * no memory. */
struct ninep *ninep_new(int folder, int own, bool read_only);
void ninep_free(struct ninep *s);
/* Serve one request.  Returns the reply's length in `reply`, which has NINEP_MESSAGE_BYTES; 0: the
 * request is not even a header, and gets no reply. */
size_t ninep_serve(struct ninep *s, const void *request, size_t bytes, void *reply);

#endif
