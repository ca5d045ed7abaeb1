/* saved.h - what a snapshot must hold to be a machine: pure bookkeeping over its records, for who writes and who reads it.
 *
 * Rules of use: saved_add() for each record in the file's order, then saved_complete(). Each gives 0, or -1 with a reason
 * that follows the file's name: "names page 12 twice".
 */
#ifndef VMM_CLI_SNAPSHOT_SAVED_H
#define VMM_CLI_SNAPSHOT_SAVED_H

#include "base/cpufeatures.h"
#include "base/wire.h"
#include "vmm/cli/snapshot/snapfile.h"
#include "vmm/shared/problem.h"
#include "vmm/shared/snapshot_machine.h"

struct saved_machine {
	struct snapshot_machine machine;
	struct machine was; /* read from it */
	char command_line[MAX_CMDLINE], kernel[4096];
	struct snapshot_disk disk; /* bytes 0: none */
	uint32_t cpus;		   /* bit set of those that came */
	uint32_t chip_parts;
	uint64_t pages, blocks;
	uint8_t *page_seen; /* one bit each */
	bool started;
	bool changes; /* set before the first record: of a checkpoint; a page without data is zero, and there may be none */
};

int saved_add(struct saved_machine *s, const struct snapfile_record *record, const void *data, struct problem *p);
/* A page that has come already.  Two hosts send one that went from the one to the other, with nobody waiting for it, when the first
 * had marked its pages and the second had not: both as it was at the cut.  A file has it once. */
bool saved_has(const struct saved_machine *s, const struct snapfile_record *record);
int saved_complete(const struct saved_machine *s, struct problem *p);
void saved_free(struct saved_machine *s);

/* The first record's data, of at most MAX_MSG_PAYLOAD bytes: returns its length. */
size_t saved_describe(const struct snapshot_machine *machine, const char *command_line, const char *kernel, void *to);
/* No command: a shell on the guest's console. Its kernel was told so at the beginning of its command line. */
bool saved_is_interactive(const struct saved_machine *s);
/* A guest may read the processor's counter as its clock: then that must have gone on since. `tsc` and `now_ns` (since the
 * epoch) are now's. */
bool saved_counter_goes_on(const struct saved_machine *s, uint64_t tsc, uint64_t now_ns);
/* What --disk said: "PATH", "PATH,ro" or "PATH,snapshot"; NULL without a disk. */
const char *saved_disk(const struct saved_machine *s, char *spec, size_t bytes);

#endif
