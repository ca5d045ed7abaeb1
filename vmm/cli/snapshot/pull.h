/* pull.h - a client's side of a snapshot (freeze.h has the machine's): asks for a cut, pulls its parts, hands them over as records.
 *
 * Hosts send only what was asked for, so that whoever is slow fills no queue.  One of `done` and `failed` comes, once; the machine
 * has then been told to forget its copies.  But when a CHECKPOINT_LAST is done the machine stands still, until pull_thaw().
 */
#ifndef VMM_CLI_SNAPSHOT_PULL_H
#define VMM_CLI_SNAPSHOT_PULL_H

#include "vmm/cli/client.h"
#include "vmm/cli/snapshot/snapfile.h"

struct pull {
	struct client *client;
	const char *kernel;  /* the guest kernel's file */
	uint32_t hosts;	     /* bit set of those that there are: the user keeps it up to date */
	void *context;
	void (*waits)(void *context, const char *line); /* for what; now and then while something else comes first. May be NULL */
	void (*cut)(void *context); /* the machine goes on, as a rule; what it said before was before the cut. May be NULL */
	/* 0, or -1 with the reason, and it ends. The first record is the machine. */
	int (*keep)(void *context, const struct snapfile_record *record, const void *data, struct problem *p);
	void (*done)(void *context);
	void (*failed)(void *context, const char *line, bool nothing_happened);
	/* its own */
	bool active;
	enum snapshot_mode mode;
	uint32_t seq, part, asked, came;
};

void pull_start(struct pull *p, enum snapshot_mode mode);
/* MSG_SNAPSHOT_ITEM came. */
void pull_on_item(struct pull *p, const void *body, size_t body_bytes);
/* Not wanted any more: nothing is called. */
void pull_stop(struct pull *p);
/* After a CHECKPOINT_LAST: the machine goes on where it is. */
void pull_thaw(struct pull *p);

#endif
