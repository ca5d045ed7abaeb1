/* httpd.h - a small HTTP server on a loopback address, by libevent's evhttp.  It serves one page;
 * httpgate.h says to whom. */
#ifndef VMM_CLI_WATCH_HTTPD_H
#define VMM_CLI_WATCH_HTTPD_H

#include <event2/buffer.h>
#include <event2/http.h>
#include "vmm/cli/loopback.h"
#include "vmm/cli/watch/httpgate.h"

struct httpd {
	struct evhttp *http; /* or NULL */
	struct evconnlistener *listener;
	struct event *resume; /* accepts again after there were no file descriptors left */
	struct httpgate gate;
	const char *target; /* the page, as "/metrics" */
	uint16_t port;
	void *context;
	/* A request that the gate has let through; httpd_send() answers it, perhaps later. */
	void (*on_request)(void *context, struct evhttp_request *request);
};

/* Listens.  `target`, `context` and `on_request` are the caller's to set.  Returns 0, or -1 with
 * the problem. */
int httpd_open(struct httpd *h, struct event_base *base, const char *address, const char *token,
	       struct problem *p);
/* Answers a request, without the body if it is a HEAD.  Frees `body`. */
void httpd_send(struct evhttp_request *request, int status, const char *reason,
		struct evbuffer *body);
void httpd_close(struct httpd *h);

#endif
