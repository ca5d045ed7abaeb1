/* bundle.h - what a computer needs to be a host, in one archive: the programs, their loader and
 * their libraries.
 *
 * A host therefore needs no library, and no particular version of any.  The programs are started by
 * the loader in the archive (base/beside.h).  The archive is a tar; the remote side unpacks it into
 * a folder that is named by a hash of the contents.
 *
 * The archive also holds all that a machine's first host needs, except a guest kernel.  A computer
 * that has a copy can therefore lead a machine that goes on from a checkpoint, and copy the
 * programs to other hosts.  The archive that it makes is equal to this one to the last byte, and so
 * has the same name.  For people there is a script beside the programs, `run-vmp ARGUMENT...`.
 */
#ifndef VMM_CLI_CLUSTER_BUNDLE_H
#define VMM_CLI_CLUSTER_BUNDLE_H

#include "base/types.h"
#include "vmm/shared/problem.h"

enum { BUNDLE_HASH = 16 };

struct bundle {
	uint8_t *data; /* the archive; owned */
	size_t bytes, room;
	char hash[BUNDLE_HASH + 1]; /* hexadecimal */
};

/* Makes the archive of the programs beside this one.  Returns 0, or -1 with the problem.  Call
 * bundle_free() in both cases. */
int bundle_make(struct bundle *bundle, struct problem *p);
void bundle_free(struct bundle *bundle);

/* Parts of bundle_make() that the tests call. bundle_make_of() takes the programs from `folder`. */
int bundle_make_of(struct bundle *bundle, const char *folder, struct problem *p);
/* Appends a file of these contents as tar stores it.  Returns -1 if there is no memory or the name
 * is too long. */
int bundle_put(struct bundle *bundle, const char *name, const void *data, size_t bytes);

#endif
