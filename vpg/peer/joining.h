/* joining.h - `vmp peer join`: this computer becomes part of the inviter's network. */
#ifndef VPG_JOINING_H
#define VPG_JOINING_H

#include "vpg/peer/network.h"

struct join_order {
	const char *invitation, *nick;
	const char *ssh;	/* [USER@]HOST whose loopback the inviter listens on; or NULL */
	unsigned port;		/* 0: the daemon chooses */
	bool anywhere;
};

/* Returns 0, or -1 with one line. */
int join_network(const struct join_order *o, struct why *why);

#endif
