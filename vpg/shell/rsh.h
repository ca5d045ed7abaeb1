/* rsh.h - the command line of `vmp rsh`, which is ssh's.  Pure.
 *
 * Programs that start ssh give it options that mean nothing here, since `vmp rsh` makes no
 * connection of its own.  These are taken and ignored.  An option of ssh that asks for something
 * that `vmp rsh` does not do is refused.
 */
#ifndef VPG_RSH_H
#define VPG_RSH_H

#include <stdbool.h>
#include <stddef.h>
#include "vpg/wire/nick.h"

enum { RSH_USER = 33, RSH_ERROR = 160, RSH_SCRIPT_EXTRA = 256 };

struct rsh_order {
	char nick[NICK_BYTES];
	char user[RSH_USER];	/* who the command must run as; "": whoever runs the daemon */
	bool no_input, terminal;
	bool stays;		/* the first word is nohup: a lost connection does not end it */
	unsigned port;		/* -W: a port of the computer's loopback interface; 0: none */
	char **command;		/* the word after nohup; *command NULL: a login shell */
	char error[RSH_ERROR];
};

/* Parses the arguments from argv[1] on.  Returns 0, or -EINVAL with one line in `error`. */
int rsh_parse(struct rsh_order *o, int argc, char **argv);

/* Returns what /bin/sh runs: the words of the command joined by blanks, as ssh joins them, behind a
 * check of the user if one was given.  The caller frees it.  Returns NULL if there is no memory. */
char *rsh_script(const struct rsh_order *o);

#endif
