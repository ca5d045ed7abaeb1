/* load.h - a saved machine's way into its daemons (restore.h): from its file for `vmp snapshot load`, or from a checkpoint
 * (run/go_back.c).  Pages of hosts on this computer are written into their memory, all else goes to node 0.
 *
 * Rules of use: load_open() reads the whole file once, so that nothing is started for one that is damaged; or
 * load_kept(), again if need be.  load_start()
 * when node 0 says that all hosts are connected; load_taken() for each SNAPSHOT_TAKEN; then one of the two calls comes.
 */
#ifndef VMM_CLI_SNAPSHOT_LOAD_H
#define VMM_CLI_SNAPSHOT_LOAD_H

#include "vmm/cli/client.h"
#include "vmm/cli/snapshot/kept.h"
#include "vmm/cli/snapshot/saved.h"
#include "vmm/shared/hostcpu.h"

struct load {
	const char *path;
	struct saved_machine saved;
	struct snapfile_reader *reader;
	const struct kept *kept; /* or a checkpoint, in place of a file */
	struct kept_cursor cursor;
	struct client *client;
	struct event *more;
	unsigned hosts;
	uint32_t here; /* bit set: the hosts whose memory is open */
	int ram[MAX_NODES];
	uint32_t ram_pages;
	gfn_t run_first; /* pages one after the other that will be written together */
	uint32_t run;
	uint32_t untaken; /* items and SYNCs that were not answered yet */
	uint32_t pages; /* that were sent */
	bool all_sent;
	void *context;
	void (*on_loaded)(void *context); /* the machine starts */
	void (*on_failed)(void *context, const char *line);
};

/* 0 with the processor that the guest has seen, or -1 with one line: damaged, foreign, of another version, or for another one. */
int load_open(struct load *load, const char *path, struct hostcpu *cpu, struct problem *p);
/* May a guest that has seen `cpu` go on on this computer's processor? 0, or -1 with why not, to follow "this computer's ". */
int load_check_processor(struct hostcpu *cpu, struct problem *p);
/* The checkpoint must stand until load_close(). */
void load_kept(struct load *load, const struct kept *kept);
/* rundir: where the hosts of this computer offer their memory. */
void load_start(struct load *load, struct client *client, unsigned hosts, const char *rundir);
void load_taken(struct load *load);
void load_close(struct load *load);

#endif
