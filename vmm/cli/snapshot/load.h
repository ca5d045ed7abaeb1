/* load.h - sends a saved machine to its daemons (restore.h): from its file for `vmp snapshot load`,
 * or from a checkpoint (run/go_back.c).  Pages of hosts on this computer are written into their
 * memory; all else goes to node 0.
 *
 * Rules of use: load_open() reads the whole file once, so that nothing is started for a damaged
 * one; or load_kept(), again if need be.  Call load_start() when node 0 says that all hosts are
 * connected, and load_taken() for each SNAPSHOT_TAKEN. Then one of the two callbacks is called.
 */
#ifndef VMM_CLI_SNAPSHOT_LOAD_H
#define VMM_CLI_SNAPSHOT_LOAD_H

#include "vmm/cli/client.h"
#include "vmm/cli/parts/parts.h"
#include "vmm/cli/snapshot/kept.h"
#include "vmm/cli/snapshot/saved.h"
#include "vmm/shared/hostcpu.h"

struct load {
	const char *path;
	struct saved_machine saved;
	struct snapfile_reader *reader;
	const struct kept *kept; /* a checkpoint instead of a file, or NULL */
	struct parts *parts;	 /* with `kept`: where its pages are, or NULL */
	struct kept_cursor cursor;
	struct client *client;
	struct loop_event *more;
	unsigned hosts;
	uint32_t here; /* bit set of the hosts whose memory is open */
	int ram[MAX_NODES];
	uint32_t ram_pages;
	gfn_t run_first; /* first of the `run` consecutive pages that will be written together */
	uint32_t run;
	uint32_t untaken; /* items and SYNCs that have not been answered yet */
	uint32_t pages; /* pages that were sent */
	bool all_sent;
	void *context;
	void (*on_loaded)(void *context); /* the machine has been told to start */
	void (*on_failed)(void *context, const char *line);
};

/* Opens a file.  Returns 0 with the processor that the guest has seen; or -1 with one line if the
 * file is damaged, no snapshot, of another version, or of another processor. */
int load_open(struct load *load, const char *path, struct hostcpu *cpu, struct problem *p);
/* Checks whether a guest that has seen `cpu` can run on this computer's processor.  Returns 0, or
 * -1 with a reason that follows "this computer's ". */
int load_check_processor(struct hostcpu *cpu, struct problem *p);
/* Loads from a checkpoint, which must stay until load_close().  `parts`: where its pages are, which
 * parts_check() has found; or NULL. */
void load_kept(struct load *load, const struct kept *kept, struct parts *parts);
/* `rundir`: the folder where the hosts of this computer offer their memory. */
void load_start(struct load *load, struct client *client, unsigned hosts, const char *rundir);
void load_taken(struct load *load);
/* More of a checkpoint in parts has come (parts.h). */
void load_go_on(struct load *load);
void load_close(struct load *load);

#endif
