/* checkpoint.h - `--checkpoint S`: the process that owns a machine takes a checkpoint of it every S seconds, and keeps the last;
 * and the one that is taken, with --checkpoint or not, when the machine's first host goes (run/yield.c).
 *
 * It is a snapshot (freeze.h) that is pulled into this process's memory (kept.h); the first one whole, the later ones only what has
 * changed since the one before.  This process is no host of the machine, so whatever host is lost, with the I/O server or not, the
 * checkpoint is here whole; run/go_back.c then ends what is left of the machine's processes and loads it, on the hosts that are
 * left.  Of the hosts of a cluster each has its copy on another computer, then, but the first.
 * The loss of this process, whose children the daemons are, is survived by a cluster's machine of `vmp up`: another process has a copy,
 * on one of the other computers (vmm/cli/standby/).  Of other machines a file may be left (keptfile.h).
 *
 * When host 0 goes there is no loss: a checkpoint is taken while the machine runs, if none stands, then one behind which it does not
 * go on.
 *
 * Output of the command's streams is held until a checkpoint stands in which it has been written, and what was read of its input is
 * remembered as long (streams.h): each byte goes out once, however often the machine goes back.
 */
#ifndef VMM_CLI_SNAPSHOT_CHECKPOINT_H
#define VMM_CLI_SNAPSHOT_CHECKPOINT_H

#include "vmm/cli/snapshot/kept.h"
#include "vmm/cli/snapshot/pull.h"

struct checkpoint {
	struct pull pull;
	struct kept *kept;
	struct event *timer;
	uint32_t interval_ms; /* 0: only when it is asked for */
	enum { LAST_NOT, LAST_WANTED, LAST_UNDER_WAY } last;
	uint64_t began_ns, cut_ns;	/* of the one under way: CLOCK_MONOTONIC */
	uint64_t kept_cut_ns;		/* of the one that stands: its cut; 0: none */
	uint64_t taken, bytes, pause_ns; /* sums of those that stood */
	bool whole;			/* the next one cannot build on what stands */
	void *context;
	/* A checkpoint begins; what was said before belongs to it; it stands. */
	void (*on_begin)(void *context);
	void (*on_cut)(void *context);
	void (*on_kept)(void *context);
	void (*on_last)(void *context); /* it stands, and so does the machine, which is ended now */
	void (*on_trouble)(void *context, const char *line); /* one could not be taken: a line for the log */
	bool (*is_in_use)(void *context); /* the one that stands must stand a while longer. May be NULL */
};

/* 0 or -ENOMEM. Checkpoints begin when the machine runs: checkpoint_go(). */
int checkpoint_start(struct checkpoint *c, struct event_base *base, uint32_t interval_ms);
void checkpoint_go(struct checkpoint *c, struct client *client, const char *kernel);
void checkpoint_hosts(struct checkpoint *c, uint32_t hosts);
void checkpoint_on_item(struct checkpoint *c, const void *body, size_t bytes);
void checkpoint_soon(struct checkpoint *c); /* output waits for it */
/* One behind which the machine does not go on: on_last() comes, or on_trouble(). */
void checkpoint_last(struct checkpoint *c);
/* After on_last(): the machine goes on where it is, after all. */
void checkpoint_stays(struct checkpoint *c);
/* The machine is lost: none is taken before the next checkpoint_go(). */
void checkpoint_stop(struct checkpoint *c);
void checkpoint_close(struct checkpoint *c);

/* For --summary: one line on standard error, if any was taken. */
void checkpoint_report(const struct checkpoint *c);

/* The machine to go back to, or NULL. */
const struct saved_machine *checkpoint_machine(const struct checkpoint *c);

#endif
