/* takeover_private.h - a standby, for takeover.c and takeover_records.c alone. */
#ifndef VMM_CLI_RUN_TAKEOVER_PRIVATE_H
#define VMM_CLI_RUN_TAKEOVER_PRIVATE_H

#include "vmm/cli/run/hearing.h"
#include "vmm/cli/run/run_private.h"
#include "vmm/cli/run/standby_life.h"
#include "vmm/cli/standby/orders.h"
#include "vmm/cli/standby/record.h"

struct takeover {
	struct bufferevent *from;
	int to;			     /* lines for the owner; -1: there is no owner any more */
	struct record_reader reader;
	struct event *silence, *look, *alive, *word, *ask;
	const struct silence *times;
	enum standby_state life;
	struct hearing hearing;	     /* of the owner */
	bool silent;		     /* it was lost by its silence: perhaps the network is cut */
	/* when the hosts were first asked for their votes; 0: not yet.  voted: enough hosts have
	 * given this standby their vote */
	uint64_t asks_since_ns;
	bool voted;
	unsigned gone_looks; /* checks in a row at which no process held the name */
	char text[MAX_ORDERS];	     /* of the orders that are arriving */
	size_t text_bytes;
	struct orders orders;
	struct options options;	     /* from the orders */
	/* where the pages of the copy are, and of the one that is arriving (parts_print()) */
	struct { uint32_t number; char text[MAX_PARTS_TEXT]; } places, places_come;
	struct problem trouble;	     /* why the checkpoint that is arriving cannot be kept */
	char owner[MAX_HOST_NAME];   /* the owner's computer, as seen from here */
	char cluster[RUNDIR_PATH + 16]; /* the cluster file's path */
};

/* The owner was heard now. */
void takeover_hears(struct run *run);
/* Set how long owner and standby may be silent, from now on.  Returns 0, or -1 without memory. */
int takeover_keep_times(struct run *run, const struct silence *times);
/* Write a line to the owner, if there is one. */
void takeover_say(struct takeover *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Something happens to the standby: enter the next state, and return what is to be done. */
enum standby_action takeover_happens(struct run *run, enum standby_event event);
/* Begin to prepare the other hosts.  Returns 0, or -1 if it cannot.  Then the owner has its
 * answer, or, without an owner, this standby has ended. */
int takeover_prepare(struct run *run);
/* Give the prepared hosts up. */
void takeover_release(struct run *run);
/* A neighbour's message about the owner has come (an event of libevent). */
void takeover_on_word(evutil_socket_t fd, short what, void *run);
/* A record of the owner's is whole.  Returns false if its sender may not send it now. */
bool takeover_on_record(void *run, const struct snapfile_record *record, const void *data);
/* Bytes have come from the owner (a callback of libevent). */
void takeover_on_bytes(struct bufferevent *from, void *run);

#endif
