/* httpd.h - a small HTTP server on a loopback address, by libevent's evhttp.  httpgate.h says to
 * whom it serves its pages. */
#ifndef VMM_CLI_WATCH_HTTPD_H
#define VMM_CLI_WATCH_HTTPD_H

#include <event2/buffer.h>
#include <event2/http.h>
#include "vmm/cli/loopback.h"
#include "vmm/cli/watch/httpcrowd.h"
#include "vmm/cli/watch/httpgate.h"

struct httpd {
	struct evhttp *http; /* or NULL */
	struct httpcrowd crowd;
	struct httpgate gate;
	const struct httpgate_page *pages;
	unsigned n_pages;
	/* processes of this user and root are served, and this one's; 0: no other */
	uid_t also_user;
	bool browses;	 /* send the headers that tell a browser what the pages may do */
	uint16_t port;
	void *context;
	/* A request that the gate has let through; httpd_send() answers it, perhaps later. */
	void (*on_request)(void *context, struct evhttp_request *request, unsigned page);
};

enum { HTTPD_MOST_BODY = 4096 };

/* Listens.  The fields from `pages` to `browses`, `context` and `on_request` are the caller's to
 * set.  Returns 0, or -1 with the problem. */
int httpd_open(struct httpd *h, struct event_base *base, const char *address, const char *token,
	       struct problem *p);
/* Answers a request, without the body if it is a HEAD.  Frees `body`. */
void httpd_send(struct evhttp_request *request, int status, const char *reason,
		struct evbuffer *body);
/* Says that the answer may take long: the connection stays. */
void httpd_wait(struct evhttp_request *request);
/* Begin and end an answer of bytes that come over time, by evhttp_send_reply_chunk(). */
void httpd_start_stream(struct evhttp_request *request);
void httpd_end_stream(struct evhttp_request *request);
void httpd_close(struct httpd *h);

#endif
