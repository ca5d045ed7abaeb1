/* checkpoint.h - `--checkpoint S`: the process that owns a machine takes a checkpoint of it every S
 * seconds, and keeps the last one.  Also, with --checkpoint or without, the checkpoint that is
 * taken when the machine's first host leaves (run/yield.c).
 *
 * A checkpoint is a snapshot (freeze.h) that is pulled into this process's memory (kept.h), or with
 * --checkpoint-parts passed on to the hosts (parts.h).  The first one is whole; later ones hold
 * only what has changed since.  This process is no host of the machine.  So whichever host is lost,
 * with the I/O server or not, the checkpoint is complete.  run/go_back.c then ends what is left of
 * the machine's processes and loads the checkpoint on the remaining hosts.  For a cluster, this
 * computer has a copy that all hosts but the first can be lost without.
 *
 * The loss of this process, which is the daemons' parent, ends most machines.  A machine of `vmp up
 * --cluster` survives it, since a standby on another computer has a copy of the checkpoint
 * (vmm/cli/standby/).  Other machines may leave a file (keptfile.h).
 *
 * When host 0 leaves, nothing is lost.  A checkpoint is taken while the machine runs, if there is
 * none yet; then a last one, after which the machine does not go on.
 *
 * Output of the command's streams is held until a checkpoint contains that it was written.  Input
 * that was read since is remembered as long (streams.h).  So each byte is written once, however
 * often the machine goes back.
 */
#ifndef VMM_CLI_SNAPSHOT_CHECKPOINT_H
#define VMM_CLI_SNAPSHOT_CHECKPOINT_H

#include "vmm/cli/parts/parts.h"
#include "vmm/cli/snapshot/kept.h"
#include "vmm/cli/snapshot/pull.h"

struct checkpoint {
	struct pull pull;
	struct kept *kept;
	struct parts *parts; /* NULL: all of the checkpoint is in this process */
	bool seals;	     /* all has come, and is on its way to the holders */
	struct loop loop;
	struct loop_event *timer;
	uint32_t interval_ms; /* 0: checkpoints are taken only on request */
	enum { LAST_NOT, LAST_WANTED, LAST_UNDER_WAY } last;
	uint64_t began_ns, cut_ns;	/* of the current checkpoint, CLOCK_MONOTONIC */
	uint64_t took_ms, last_bytes;	/* of the last one, from its cut on */
	uint64_t kept_cut_ns;		/* when the kept checkpoint was cut; 0: there is none */
	uint64_t taken, bytes, pause_ns; /* sums over all complete checkpoints */
	bool whole;			/* the next one cannot hold changes alone */
	void *context;
	/* on_begin: a checkpoint begins. on_cut: all output until now belongs to it. on_kept: it is
	 * complete. */
	void (*on_begin)(void *context);
	void (*on_cut)(void *context);
	void (*on_kept)(void *context);
	/* the last checkpoint is complete; the machine stands still, and can be ended */
	void (*on_last)(void *context);
	/* a checkpoint could not be taken; a line for the log */
	void (*on_trouble)(void *context, const char *line);
	/* true: the kept checkpoint must not be replaced yet.  May be NULL */
	bool (*is_in_use)(void *context);
};

/* Returns the time from the beginning of a checkpoint to that of the next one.  The guest runs
 * without one as long as this one took, but not for longer than its bytes need at a low rate: what
 * takes long because a network or a process stood still is no reason to wait. */
uint64_t checkpoint_every_ms(uint32_t interval_ms, uint64_t took_ms, uint64_t bytes);

/* Prepares checkpoints, in `parts` or (NULL) in this process; checkpoint_go() starts them when the
 * machine runs.  Returns 0 or -ENOMEM. */
int checkpoint_start(struct checkpoint *c, const struct loop *loop, uint32_t interval_ms,
		     struct parts *parts);
/* Puts the next checkpoints into parts: of an owner that has taken over a machine. */
void checkpoint_use_parts(struct checkpoint *c, struct parts *parts);
/* The parts are sealed, or the one that comes fails for this reason. */
void checkpoint_sealed(struct checkpoint *c);
void checkpoint_fails(struct checkpoint *c, const char *line);
void checkpoint_go(struct checkpoint *c, struct client *client, const char *kernel);
void checkpoint_hosts(struct checkpoint *c, uint32_t hosts);
void checkpoint_on_item(struct checkpoint *c, const void *body, size_t bytes);
void checkpoint_soon(struct checkpoint *c); /* take one now, since output waits for it */
/* Takes a checkpoint after which the machine does not go on. on_last() follows, or on_trouble(). */
void checkpoint_last(struct checkpoint *c);
/* Takes checkpoint_last() back, if the last checkpoint has not begun.  If it has, on_last() or
 * on_trouble() still follows. */
void checkpoint_not_last(struct checkpoint *c);
/* After on_last(): lets the machine go on where it is. */
void checkpoint_stays(struct checkpoint *c);
/* The machine is lost.  Takes no checkpoint until the next checkpoint_go(). */
void checkpoint_stop(struct checkpoint *c);
void checkpoint_close(struct checkpoint *c);

/* Prints a line for --summary on standard error, if a checkpoint was taken. */
void checkpoint_report(const struct checkpoint *c);

/* Returns the machine to go back to, or NULL. */
const struct saved_machine *checkpoint_machine(const struct checkpoint *c);

#endif
