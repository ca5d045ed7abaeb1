/* ssh_streams.h - the three streams of a command that ssh runs on another computer (cluster_ssh.h),
 * or of a child on this one, in the event loop of libevent.
 *
 * The end of any of them ends the connection: then all that had been sent before has been read, and
 * `said` is the last line of standard error, which says why, if anything does.
 */
#ifndef VMM_CLI_CLUSTER_SSH_STREAMS_H
#define VMM_CLI_CLUSTER_SSH_STREAMS_H

#include <event2/bufferevent.h>
#include "vmm/cli/cluster/cluster_ssh.h"

enum { SSH_LINE = 400 };

struct ssh_streams {
	/* set by the caller */
	struct event_base *base;
	int log_fd; /* gets standard error; -1: nobody does */
	/* below so many bytes that wait to be sent, on_room() is called */
	size_t low_bytes;
	void *context;
	void (*on_bytes)(void *context, struct evbuffer *input); /* from standard output */
	void (*on_room)(void *context);
	void (*on_end)(void *context); /* the streams are still open: close them */

	pid_t pid; /* 0: there is no command */
	struct bufferevent *to, *from, *err;
	char said[SSH_LINE];
	bool is_full; /* private: too much has not been taken yet, and no more is read */
};

/* Takes over the descriptors.  Returns 0, or -1 without memory, and the descriptors are closed. */
int ssh_streams_open(struct ssh_streams *s, const struct ssh *ssh);
/* May be called by the callbacks, and twice. */
void ssh_streams_close(struct ssh_streams *s);

#endif
