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
 * The server's state can be saved, and loaded into another server, perhaps on another computer
 * (ninep_saved.c): which file each of the guest's numbers means, how it is open, its locks.  Files
 * are saved by their paths in the folder.  A file that has no path, or that is not there when the
 * state is loaded, is lost: every request about it is answered by ESTALE, except the one that gives
 * its number back.
 *
 * Callers: iosrv/vmp_share.c; tests/unit/ninep.c, ninep_saved.c and tests/fuzz/ninep.c.
 */
#ifndef IOSRV_NINEP_H
#define IOSRV_NINEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NINEP_MESSAGE_BYTES = 64 << 10, /* the longest request or reply */
	NINEP_LEAST_MESSAGE = 4096, /* that length may be agreed with the guest */
	NINEP_HEADER_BYTES = 7,
	NINEP_FIDS = 16384, /* files that the guest has in use, at most */
	NINEP_LOCKS = 4096, /* ranges of all files that the guest has locked, at most */
	NINEP_STATE_BYTES = 72 << 20, /* no saved state is longer */
};

struct ninep;

/* `folder` is open (O_PATH), `own` is /proc/self/fd, open (O_PATH).  Both stay the caller's.  NULL:
 * no memory. */
struct ninep *ninep_new(int folder, int own, bool read_only);
/* Frees it, and closes its files.  For tests that make many. */
void ninep_free(struct ninep *s);
/* Serve one request.  Returns the reply's length in `reply`, which has NINEP_MESSAGE_BYTES; 0: the
 * request is not even a header, and gets no reply. */
size_t ninep_serve(struct ninep *s, const void *request, size_t bytes, void *reply);

/* Save the state, between two requests: the length of `*state`, which is the caller's to free; 0:
 * no memory. */
size_t ninep_save(struct ninep *s, uint8_t **state);
/* Load a state, which is not trusted, in place of what the server has.  Returns 0, or -EINVAL with
 * the reason: then the server has no files. */
int ninep_load(struct ninep *s, const void *state, size_t bytes, char *why, size_t why_bytes);

#endif
