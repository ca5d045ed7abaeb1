/* serving.h - the daemon's life: `vmp peer start`. */
#ifndef VPG_SERVING_H
#define VPG_SERVING_H

#include <stdbool.h>

struct serve_order {
	const char *nick;	/* of a new network; NULL: the host's name */
	unsigned port;		/* 0: as before, or any */
	int anywhere;		/* 1, 0; -1: as before */
	bool foreground;
};

/* Returns the exit status; in the background, as soon as the daemon is ready. */
int serve_peer(const struct serve_order *o);

#endif
