/* keptfile.h - `--checkpoint-file FILE`: the last checkpoint also as a file, which `vmp snapshot
 * load` takes.
 *
 * The checkpoint is in the memory of the process that owns the machine (checkpoint.h), and is lost
 * with that process's computer.  A file in a folder on another computer is not.
 *
 * A child process writes the file.  It has the memory of the moment of its fork, so that the
 * machine and its next checkpoint go on meanwhile.  The two hold the ends of a socket.  The child
 * reports through it why there is no file, and gives up when the other end is closed, by
 * keptfile_stop() or by the owner's death.  The old file stays until the new one is complete
 * (snapfile.h).
 */
#ifndef VMM_CLI_SNAPSHOT_KEPTFILE_H
#define VMM_CLI_SNAPSHOT_KEPTFILE_H

#include <sys/types.h>
#include "vmm/shared/loop.h"
#include "vmm/cli/snapshot/kept.h"

struct keptfile {
	/* set by the caller */
	const char *path; /* NULL: no file is written */
	struct loop loop;
	void *context;
	void (*on_trouble)(void *context, const char *line);
	pid_t (*fork)(void); /* starts the child, as fork() does; NULL: fork() itself */

	struct loop_event *heard; /* reads from the child; NULL: there is none */
	int end;		  /* its socket */
	struct problem said;
};

/* Checks whether the file can be written.  Returns 0, or -1 with the reason. */
int keptfile_check(const char *path, struct problem *p);
/* Starts a child that writes the checkpoint.  While one is running, further checkpoints get no
 * file. */
void keptfile_write(struct keptfile *f, const struct kept *kept);
void keptfile_stop(struct keptfile *f);

#endif
