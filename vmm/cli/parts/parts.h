/* parts.h - a checkpoint in parts, the owner's side: its pages and disk blocks are in holders
 * (part_holder.c), one on each of the hosts' computers, so that no computer has to hold all of
 * them.
 *
 * Each page is in two holders (parts_layout.h).  So the loss of any one loses nothing, and the
 * machine goes back on the others.  After that, and when hosts come or go, the next checkpoint is
 * whole, in a new layout; until it is complete the one before stays where it is.  Two neighbours of
 * a layout that are lost before that take a part with them.
 *
 * Rules of use: parts_hold() for each host.  A checkpoint is parts_begin(), parts_add() for each
 * record, parts_seal(), and after sealed() parts_commit(); or parts_abandon().  To load the last
 * one: parts_read(), then parts_next() until it returns 0.
 *
 * A holder that is lost, or takes or says nothing for a while where it should, is given up, and
 * lost() is called: the checkpoint that is being taken or loaded fails.
 */
#ifndef VMM_CLI_PARTS_PARTS_H
#define VMM_CLI_PARTS_PARTS_H

#include "base/limits.h"
#include "vmm/cli/cluster/ssh_streams.h"
#include "vmm/cli/parts/part.h"
#include "vmm/shared/loop.h"
#include "vmm/shared/presence.h"
#include "vmm/shared/problem.h"

enum { MAX_HOLDERS = 2 * MAX_NODES, MAX_PARTS_TEXT = MAX_NODES * (MAX_HOST_NAME + 1) + 1 };

struct parts;
struct holder {
	struct parts *parts;
	struct cluster_host host;
	enum { HOLDER_OFF, HOLDER_STARTS, HOLDER_READY } state;
	bool retires; /* its host is none of the machine's any more */
	bool sealed;  /* it has all of the checkpoint that comes */
	uint32_t has; /* the number of the checkpoint that it has a part of */
	unsigned due; /* so many answers to GIVE have not ended yet */
	struct ssh_streams ssh;
	size_t queued;	      /* at the last look */
	unsigned still_looks; /* looks in a row at which nothing had moved */
};

/* The holders of a checkpoint, in their order; n 0: there is none. */
struct parts_layout { uint32_t n; uint8_t holder[MAX_NODES]; };

struct parts {
	/* set by the caller */
	char id[PRESENCE_ID + 1]; /* of the machine, whoever owns it */
	bool lingers; /* when this owner is lost, another one may come (parts_adopt()) */
	struct event_base *base;
	struct loop loop;
	uint32_t look_ms; /* a holder that was still for twenty of these is given up */
	int log_fd;
	void *context;
	/* there is room again, after parts_is_full() */
	void (*has_room)(void *context);
	void (*sealed)(void *context);
	/* parts_next() may have something */
	void (*has_more)(void *context);
	/* A holder is lost, or has refused: `why`.  `needed`: the checkpoint that is being taken or
	 * read fails. */
	void (*lost)(void *context, const struct cluster_host *host, const char *why, bool needed);

	/* private */
	struct holder holder[MAX_HOLDERS];
	/* before: its parts are kept until parts_forget_before() */
	struct parts_layout is, comes, before;
	bool has_before;
	uint32_t number, is_number; /* of checkpoints */
	enum { PARTS_IDLE, PARTS_COME, PARTS_SEAL, PARTS_READ } state;
	bool was_full;
	struct loop_event *look;
};

/* Prepares.  Returns 0, or -1 without memory. */
int parts_open(struct parts *parts);
/* Ends all holders, and waits for that for a while. */
void parts_end(struct parts *parts);
void parts_close(struct parts *parts); /* may be called twice, or for zeroes */

/* Starts a holder on a host's computer, which may have to hold so many MiB.  If there is one of
 * this machine already, which has lost its owner's connection, it is used, with what it has.
 * `hash` is the version of the programs there (bundle.h); NULL: it is this computer.  Returns 0, or
 * -1 with the problem. */
int parts_hold(struct parts *parts, const struct cluster_host *host, const char *hash, uint32_t mib,
	       struct problem *p);
/* Returns whether a host has a holder. */
bool parts_has(const struct parts *parts, const char *host);
/* Hosts that are none any more: their holders end when the last checkpoint does not need them.  Or
 * they are lost: their holders end at once, and lost() is not called. */
void parts_retire(struct parts *parts, bool (*is_host)(void *context, const char *host));
void parts_lose(struct parts *parts, bool (*is_host)(void *context, const char *host));
/* Returns whether some holder is being started. */
bool parts_settle(const struct parts *parts);
/* Returns whether a checkpoint can begin: there is a holder, none is being started, and the one
 * before the last is not needed. */
bool parts_are_ready(const struct parts *parts);
/* Returns whether the next checkpoint can be changes to the last one. */
bool parts_stay(const struct parts *parts);

void parts_begin(struct parts *parts, bool changes);
void parts_add(struct parts *parts, const struct snapfile_record *record, const void *data);
void parts_seal(struct parts *parts);
/* It is the last one now.  The one before stays until parts_forget_before(), for a standby that
 * does not know of the last one yet. */
void parts_commit(struct parts *parts);
void parts_forget_before(struct parts *parts);
void parts_abandon(struct parts *parts);
/* Returns whether the holders are slow: nothing more should be added for now. */
bool parts_is_full(struct parts *parts);

/* Returns 0 if all parts of the last checkpoint are there; or -1 with the reason, which follows
 * "the last checkpoint ". */
int parts_check(const struct parts *parts, struct problem *p);
void parts_read(struct parts *parts);
/* Gives the next record and its data (room for MAX_MSG_PAYLOAD), in no order.  Returns 1; 0 at the
 * end; PARTS_LATER: nothing has come yet, and has_more() follows. */
enum { PARTS_LATER = 2 };
int parts_next(struct parts *parts, struct snapfile_record *record, void *data);

/* Another owner, a standby, needs the number of the last checkpoint and the names of its hosts: a
 * line each.  parts_print() returns the number.  parts_adopt() takes both, before anything else;
 * parts_hold() for the hosts that can be reached follows.  parts_lacks() returns whether the last
 * checkpoint has a part on this host whose holder is not connected. */
uint32_t parts_print(const struct parts *parts, char *text, size_t bytes);
void parts_adopt(struct parts *parts, uint32_t number, const char *text);
bool parts_lacks(const struct parts *parts, const char *host);

/* Writes the local processes of the holders, with a 0 at the end. */
void parts_processes(const struct parts *parts, pid_t pids[MAX_HOLDERS + 1]);

#endif
