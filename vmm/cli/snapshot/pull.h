/* pull.h - a client's side of a snapshot (freeze.h has the machine's): asks for a cut, pulls its
 * parts, and hands them over as records.
 *
 * Hosts send only what was asked for, so that a slow client fills no queue.  `done` or `failed` is
 * called, once.  The machine has then been told to drop its copies; except that after a
 * CHECKPOINT_LAST the machine stands still until pull_thaw().
 */
#ifndef VMM_CLI_SNAPSHOT_PULL_H
#define VMM_CLI_SNAPSHOT_PULL_H

#include "vmm/cli/client.h"
#include "vmm/cli/snapshot/snapfile.h"

struct pull {
	struct client *client;
	const char *kernel;  /* path of the guest kernel's file */
	uint32_t hosts;	     /* bit set of the machine's hosts; the user keeps it up to date */
	void *context;
	/* called now and then while something else must finish first.  May be NULL */
	void (*waits)(void *context, const char *line);
	/* The cut is made, and the machine runs again as a rule; output until now came before the
	 * cut.  May be NULL. */
	void (*cut)(void *context);
	/* Takes a record; the first is the machine's description.  Returns 0, or -1 with the
	 * reason, which ends the snapshot. */
	int (*keep)(void *context, const struct snapfile_record *record, const void *data,
		    struct problem *p);
	/* true: nothing more should come until pull_go_on().  May be NULL */
	bool (*is_full)(void *context);
	void (*done)(void *context);
	void (*failed)(void *context, const char *line, bool nothing_happened);
	/* private */
	bool active, is_cut;
	enum snapshot_mode mode;
	uint32_t seq, part, asked, came;
};

void pull_start(struct pull *p, enum snapshot_mode mode);
/* Takes a MSG_SNAPSHOT_ITEM.  pull_go_on(): is_full() is false again. */
void pull_on_item(struct pull *p, const void *body, size_t body_bytes);
void pull_go_on(struct pull *p);
/* Ends a snapshot that is not wanted any more.  No callback is called. */
void pull_stop(struct pull *p);
/* After a CHECKPOINT_LAST: lets the machine go on where it is. */
void pull_thaw(struct pull *p);

#endif
