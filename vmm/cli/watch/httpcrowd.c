/* httpcrowd.c - see httpcrowd.h.
 *
 * evhttp makes no call when it accepts a connection, but for the function that makes the
 * connection's bufferevent, which has no socket yet.  So `look` finds the socket out right after
 * that.  The crowd keeps a reference of each bufferevent: the socket's number stays its own until
 * the crowd has seen that evhttp has freed it. */
#include "vmm/cli/watch/httpcrowd.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { LOOK_AGAIN_MS = 500, REST_MS = 200 };

struct httpcrowd_one {
	struct httpcrowd_one *older;
	struct bufferevent *bev;
	bool known;	/* its user has been looked at */
	bool stranger;	/* its user is not served */
	bool asked;	/* it has sent a whole request */
	bool closed;	/* by the crowd */
};

static void look_after(struct httpcrowd *c, long ms)
{
	const struct timeval pause = { 0, ms * 1000 };

	event_add(c->look, &pause);
}

/* evhttp clears the functions of a bufferevent when it frees it. */
static bool is_freed(const struct httpcrowd_one *one)
{
	bufferevent_data_cb on_read, on_write;
	bufferevent_event_cb on_event;

	bufferevent_getcb(one->bev, &on_read, &on_write, &on_event, NULL);
	return !on_read && !on_write && !on_event;
}

static void forget_freed(struct httpcrowd *c)
{
	for (struct httpcrowd_one **at = &c->newest, *one; (one = *at);) {
		if (!one->known || !is_freed(one)) {
			at = &one->older;
			continue;
		}
		*at = one->older;
		bufferevent_decref(one->bev);
		free(one);
	}
}

static void know_new_ones(struct httpcrowd *c)
{
	for (struct httpcrowd_one *one = c->newest; one && !one->known; one = one->older) {
		int fd = bufferevent_getfd(one->bev);

		one->known = true;
		one->stranger = fd < 0 || !c->is_served(c->context, fd);
	}
}

/* Chooses the oldest connection that `strangers` and `silent` allow; returns how many connections
 * these are. */
static unsigned oldest(struct httpcrowd *c, bool strangers, bool silent,
		       struct httpcrowd_one **chosen)
{
	unsigned n = 0;

	for (struct httpcrowd_one *one = c->newest; one; one = one->older) {
		if (one->closed || (strangers && !one->stranger) || (silent && one->asked))
			continue;
		*chosen = one;
		n++;
	}
	return n;
}

static void close_one(struct httpcrowd_one *one)
{
	one->closed = true;	/* evhttp sees its end, and frees it */
	if (bufferevent_getfd(one->bev) >= 0)
		shutdown(bufferevent_getfd(one->bev), SHUT_RDWR);
}

static void close_too_many(struct httpcrowd *c)
{
	struct httpcrowd_one *one = NULL;

	while (oldest(c, true, false, &one) > HTTPCROWD_MOST_STRANGERS)
		close_one(one);
	while (oldest(c, false, false, &one) > HTTPCROWD_MOST) {
		if (!oldest(c, true, false, &one) && !oldest(c, false, true, &one))
			oldest(c, false, false, &one);
		close_one(one);
	}
}

static void on_look(evutil_socket_t fd, short events, void *context)
{
	struct httpcrowd *c = context;

	(void)fd, (void)events;
	know_new_ones(c);
	forget_freed(c);
	close_too_many(c);
	c->unknown = 0;
	if (!event_pending(c->resume, EV_TIMEOUT, NULL))
		evconnlistener_enable(c->listener);
	if (c->newest)
		look_after(c, LOOK_AGAIN_MS);
}

static void on_resume(evutil_socket_t fd, short events, void *context)
{
	struct httpcrowd *c = context;

	(void)fd, (void)events;
	evconnlistener_enable(c->listener);
}

void httpcrowd_rest(struct httpcrowd *c)
{
	static const struct timeval pause = { 0, REST_MS * 1000 };

	evconnlistener_disable(c->listener);
	event_add(c->resume, &pause);
}

/* Makes the bufferevent of a connection that evhttp has accepted. */
static struct bufferevent *on_new(struct event_base *base, void *context)
{
	struct httpcrowd *c = context;
	struct bufferevent *bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	struct httpcrowd_one *one = bev ? calloc(1, sizeof *one) : NULL;

	if (!one)
		return bev;
	*one = (struct httpcrowd_one){ .older = c->newest, .bev = bev };
	bufferevent_incref(bev);
	c->newest = one;
	if (++c->unknown == HTTPCROWD_AT_A_TIME)
		evconnlistener_disable(c->listener);
	look_after(c, 0);
	return bev;
}

int httpcrowd_start(struct httpcrowd *c, struct event_base *base, struct evhttp *http,
		    struct evconnlistener *listener)
{
	c->newest = NULL;
	c->base = base;
	c->listener = listener;
	c->unknown = 0;
	c->look = event_new(base, -1, 0, on_look, c);
	c->resume = event_new(base, -1, 0, on_resume, c);
	if (!c->look || !c->resume)
		return -ENOMEM;
	evhttp_set_bevcb(http, on_new, c);
	return 0;
}

void httpcrowd_asked(struct httpcrowd *c, const struct bufferevent *bev)
{
	for (struct httpcrowd_one *one = c->newest; one; one = one->older)
		if (one->bev == bev)
			one->asked = true;
}

void httpcrowd_end(struct httpcrowd *c)
{
	for (struct httpcrowd_one *one; (one = c->newest);) {
		c->newest = one->older;
		bufferevent_decref(one->bev);
		free(one);
	}
	if (c->look)
		event_free(c->look);
	if (c->resume)
		event_free(c->resume);
	c->look = NULL;
	c->resume = NULL;
}
