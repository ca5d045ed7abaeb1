/* httpcrowd.h - the connections of an HTTP server, and which of them are closed when there are too
 * many: those that other users of this computer have opened, and those that ask for nothing.  A
 * client that sends a byte now and then keeps evhttp's time limit from closing its connection.
 *
 * Clients may connect faster than their connections are closed.  So connections are accepted some
 * at a time, and the next ones when it has been looked at whose these are.  The others wait in the
 * kernel's queue, which is long enough that it drops nobody's. */
#ifndef VMM_CLI_WATCH_HTTPCROWD_H
#define VMM_CLI_WATCH_HTTPCROWD_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include "base/types.h"

enum { HTTPCROWD_MOST = 64, HTTPCROWD_MOST_STRANGERS = 4, HTTPCROWD_AT_A_TIME = 32 };
enum { HTTPCROWD_QUEUE = 4096 };	/* what Linux allows, unless its user says otherwise */

struct httpcrowd {
	struct httpcrowd_one *newest;	/* or NULL */
	struct event_base *base;
	struct event *look;		/* at new connections, and at those that are gone */
	struct event *resume;		/* accepts again after an error */
	struct evconnlistener *listener;
	unsigned unknown;		/* connections that have not been looked at */
	/* Returns whether the other end of a connection belongs to a user who is served. */
	bool (*is_served)(void *context, int fd);
	void *context;
};

/* Counts the connections of `http` from now on, which come from `listener`.  The fields `is_served`
 * and `context` are the caller's to set.  Returns 0 or -ENOMEM. */
int httpcrowd_start(struct httpcrowd *c, struct event_base *base, struct evhttp *http,
		    struct evconnlistener *listener);
/* A connection could not be accepted, perhaps because this process has no file descriptor left:
 * accepts none for a while.  The listener would try again at once, for ever. */
void httpcrowd_rest(struct httpcrowd *c);
/* Notes that the connection has sent a whole request.  `bev` may be NULL. */
void httpcrowd_asked(struct httpcrowd *c, const struct bufferevent *bev);
/* Call this after evhttp_free(), which frees the listener. */
void httpcrowd_end(struct httpcrowd *c);

#endif
