/* keptfile.h - `--checkpoint-file FILE`: the last checkpoint as a file, too, that `vmp snapshot load` takes.
 *
 * What a machine goes back to is in the memory of the process that owns it (checkpoint.h), and lost with that one's computer.  A file
 * in a folder that lies on another computer is not.
 *
 * A child writes it: it has the memory of the moment of its fork, so that the machine and its next checkpoint go on meanwhile.  The
 * two hold the ends of a socket: the child says why there is no file, if so, and gives up when the other end is closed, by
 * keptfile_stop() or by the owner's death.  The file before stands until the new one is whole (snapfile.h).
 */
#ifndef VMM_CLI_SNAPSHOT_KEPTFILE_H
#define VMM_CLI_SNAPSHOT_KEPTFILE_H

#include <event2/event.h>
#include "vmm/cli/snapshot/kept.h"

struct keptfile {
	/* by the caller */
	const char *path; /* NULL: none is written */
	struct event_base *base;
	void *context;
	void (*on_trouble)(void *context, const char *line);

	struct event *heard; /* of the child; NULL: there is none */
	struct problem said;
};

/* Can it be written? 0, or -1 with the reason. */
int keptfile_check(const char *path, struct problem *p);
/* A checkpoint stands. While one is being written, those that come get no file. */
void keptfile_write(struct keptfile *f, const struct kept *kept);
void keptfile_stop(struct keptfile *f);

#endif
