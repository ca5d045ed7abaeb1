/* saved.h - what a snapshot must hold to be a machine: pure bookkeeping over its records, for
 * writers and readers.
 *
 * Rules of use: saved_add() for each record in the file's order, then saved_complete().  Each
 * returns 0, or -1 with a reason that follows the file's name: "names page 12 twice".
 */
#ifndef VMM_CLI_SNAPSHOT_SAVED_H
#define VMM_CLI_SNAPSHOT_SAVED_H

#include "base/cpufeatures.h"
#include "base/wire.h"
#include "vmm/cli/snapshot/snapfile.h"
#include "vmm/shared/problem.h"
#include "vmm/shared/snapshot_machine.h"

enum { SAVED_DISK_BYTES = 4200 }; /* a path and how it is used */

struct saved_machine {
	struct snapshot_machine machine;
	struct machine was; /* parsed from `machine` */
	char command_line[MAX_CMDLINE], kernel[4096];
	struct snapshot_disk disk[MAX_DISKS]; /* as of --disk; bytes 0: none */
	struct snapshot_folder folder;	      /* of --share DIR,live; path "": none */
	uint32_t file_parts;		      /* of what was open in it */
	uint32_t cpus;			      /* bit set of processors whose state has arrived */
	uint32_t chip_parts;
	uint64_t pages, blocks;
	uint8_t *page_seen; /* one bit for each page */
	bool started;
	/* set before the first record: of a checkpoint of changes, where a page without data is
	 * zero, and which may have no pages */
	bool changes;
	bool elsewhere; /* its pages are, as far as this process knows (kept_put_elsewhere()) */
};

int saved_add(struct saved_machine *s, const struct snapfile_record *record, const void *data,
	      struct problem *p);
/* Returns whether this page has arrived already.  Two hosts send the same page if it moved from one
 * to the other without a CPU waiting for it, when the first had marked its pages and the second had
 * not.  Both copies are as at the cut; a file has it once. */
bool saved_has(const struct saved_machine *s, const struct snapfile_record *record);
int saved_complete(const struct saved_machine *s, struct problem *p);
void saved_free(struct saved_machine *s);

/* Writes the first record's data, of at most MAX_MSG_PAYLOAD bytes.  Returns its length. */
size_t saved_describe(const struct snapshot_machine *machine, const char *command_line,
		      const char *kernel, void *to);
/* Returns true if the machine was started without a command, with a shell on the guest's console.
 * The start of its kernel's command line says so. */
bool saved_is_interactive(const struct saved_machine *s);
/* Returns whether a guest that reads the processor's counter as its clock can go on: the counter
 * must have kept counting since.  `tsc` and `now_ns` (since the epoch) are the current values. */
bool saved_counter_goes_on(const struct saved_machine *s, uint64_t tsc, uint64_t now_ns);
unsigned saved_disks(const struct saved_machine *s); /* how many disks it has */
/* Writes what --disk said: "PATH", with ",ro" or ",snapshot", and with ",ide".  Returns NULL if
 * that is too long. */
const char *saved_disk(const struct snapshot_disk *disk, char *spec, size_t bytes);
/* Writes the image to open for a disk at the load, as saved_disk() does.  A path in the file is
 * opened without --disk only if that can do no harm: the machine does not write to the image, and
 * the file is `own`: this user made it, and nobody else can write it.  Otherwise the user must give
 * --disk (`given`, or NULL), which is the image's path, perhaps a new one; the mode stays as it
 * was. */
int saved_choose_disk(const struct snapshot_disk *disk, const char *given, bool own, char *spec,
		      size_t bytes, struct problem *p);
/* Checks that --disk was given for no disk or for each of them.  Returns 0, or -1 with the
 * problem. */
int saved_check_disks(const struct saved_machine *s, unsigned given, struct problem *p);
/* Checks --net (`net`, or NULL) for a saved machine: it must be `user` if the machine has a network
 * card, since no file may decide about the way out.  Returns 0, or -1 with the problem. */
int saved_check_net(const struct saved_machine *s, const char *net, struct problem *p);
/* Writes the live folder to serve, as DIR[,ro]; "" if the machine has none.  `given`: DIR of
 * --share DIR,live (NULL: not given), which is where the folder is now; given_ro: it said ,ro.  A
 * folder that the file names is served without --share under the conditions of
 * saved_choose_disk(). */
int saved_choose_folder(const struct saved_machine *s, const char *given, bool given_ro, bool own,
			char *spec, size_t bytes, struct problem *p);
/* Sets the devices: the disks, as `spec` says of each, the live folder, and those that the kernel
 * was told of. */
void saved_devices(const struct saved_machine *s, struct machine *m,
		   char spec[][SAVED_DISK_BYTES], const char *folder);

#endif
