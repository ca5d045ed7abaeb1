/* bundle.h - what a computer needs to be a host, in one archive: the programs, their loader and their libraries.
 *
 * So a host needs no library, and not this computer's version of any.  The programs are started by the loader that came along
 * (base/beside.h).  The archive is a tar, which the far side unpacks into a folder that is named by its contents.
 *
 * It is all that the machine's first host needs, too, except a guest kernel to boot: who has a copy can lead a machine that goes
 * on from what was saved, and bring other hosts what they need.  The archive that is made there is the same to the last byte, and
 * so has the same name.  For people there is a script beside the programs, `run-vmp ARGUMENT...`.
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

/* Of the programs beside this one. 0, or -1 with the problem; free in both cases. */
int bundle_make(struct bundle *bundle, struct problem *p);
void bundle_free(struct bundle *bundle);

/* The pieces of make() that the tests call. Of the programs of this folder. */
int bundle_make_of(struct bundle *bundle, const char *folder, struct problem *p);
/* A file of these contents, as tar keeps it. -1: out of memory, or the name is too long. */
int bundle_put(struct bundle *bundle, const char *name, const void *data, size_t bytes);

#endif
