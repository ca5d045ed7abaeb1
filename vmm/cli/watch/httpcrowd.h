/* httpcrowd.h - the connections of an HTTP server, and which of them are closed when there are too
 * many: those that other users of this computer have opened, and those that ask for nothing.  A
 * client that sends a byte now and then keeps evhttp's time limit from closing its connection. */
#ifndef VMM_CLI_WATCH_HTTPCROWD_H
#define VMM_CLI_WATCH_HTTPCROWD_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include "base/types.h"

enum { HTTPCROWD_MOST = 64, HTTPCROWD_MOST_STRANGERS = 4 };

struct httpcrowd {
	struct httpcrowd_one *newest;	/* or NULL */
	struct event_base *base;
	struct event *look;		/* at new connections, and at those that are gone */
	/* Returns whether the other end of a connection belongs to a user who is served. */
	bool (*is_served)(void *context, int fd);
	void *context;
};

/* Counts the connections of `http` from now on.  The fields `is_served` and `context` are the
 * caller's to set.  Returns 0 or -ENOMEM. */
int httpcrowd_start(struct httpcrowd *c, struct event_base *base, struct evhttp *http);
/* Notes that the connection has sent a whole request.  `bev` may be NULL. */
void httpcrowd_asked(struct httpcrowd *c, const struct bufferevent *bev);
/* Call this after evhttp_free(). */
void httpcrowd_end(struct httpcrowd *c);

#endif
