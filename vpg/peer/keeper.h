/* keeper.h - a process that keeps one command: its parent, and the end of all that it leaves.
 *
 * The daemon starts a keeper, the keeper the command, in a process group of its own.  Processes
 * that the command leaves become children of the keeper (PR_SET_CHILD_SUBREAPER).  When the daemon
 * closes the control socket, or has died, the keeper kills them all; so nothing stays behind.
 */
#ifndef VPG_KEEPER_H
#define VPG_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>
#include "vpg/wire/message.h"

/* One standard stream: a descriptor, or what to open in the keeper (enum vpg_io). */
struct keeper_stream { int fd; enum vpg_io io; const char *path; };

struct keeper_order {
	char **words;
	const char *folder;		/* "": the user's home */
	const char *nick;		/* of this computer: the command sees it as VMP_PEER */
	struct keeper_stream stream[3];	/* a descriptor of -1: io says what */
	const char *terminal;		/* TERM, if the streams are a terminal; or "" */
	bool stays;			/* closing *control does not kill the command */
};

enum { KEEPER_STOPPED = 0x10000 };

/* Starts one.  *control: each byte sent is a signal for the command; a number of four bytes comes
 * back when the command has ended, the status as a shell counts it, or KEEPER_STOPPED when a
 * command with a terminal was stopped.  Returns the keeper's process, or -errno. */
pid_t keeper_start(const struct keeper_order *o, int *control);

#endif
