/* keeper.h - a process that keeps one command: it is the command's parent, and kills what the
 * command leaves.
 *
 * The daemon starts a keeper, and the keeper the command, in a process group of its own.  Processes
 * that the command leaves become children of the keeper (PR_SET_CHILD_SUBREAPER).  When the daemon
 * closes the control socket, or has died, the keeper kills them all, unless the command is to stay
 * (`stays`, for nohup).
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

/* Starts a keeper. *control gets a socket: each byte sent to it is the number of a signal for the
 * command.  When the command has ended, four bytes come back: the status as a shell counts it.
 * They are KEEPER_STOPPED when a command with a terminal was stopped.  Returns the keeper's
 * process, or -errno. */
pid_t keeper_start(const struct keeper_order *o, int *control);

#endif
