/* httpd.c - see httpd.h. */
#include "vmm/cli/watch/httpd.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "vmm/cli/loopback_peer.h"

enum { TIMEOUT_S = 10, MOST_HEADER_BYTES = 8192 };
enum { LONG_TIMEOUT_S = 7 * 24 * 3600 }; /* -1 would be libevent's default */

/* Returns the value of a header, or NULL.  Sets *twice if it stands there more than once: then the
 * server and whoever checks may mean different ones. */
static const char *find(struct evhttp_request *request, const char *name, bool *twice)
{
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
	const char *value = NULL;

	for (const struct evkeyval *h = headers->tqh_first; h; h = h->next.tqe_next) {
		if (strcasecmp(h->key, name))
			continue;
		*twice |= value != NULL;
		value = h->value;
	}
	return value;
}

static void add_header(struct evhttp_request *request, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(request), name, value);
}

static void set_timeout(struct evhttp_request *request, int seconds)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(request);

	if (connection)
		evhttp_connection_set_timeout(connection, seconds);
}

void httpd_wait(struct evhttp_request *request) { set_timeout(request, LONG_TIMEOUT_S); }

void httpd_start_stream(struct evhttp_request *request)
{
	set_timeout(request, LONG_TIMEOUT_S);
	add_header(request, "Content-Type", "application/octet-stream");
	evhttp_send_reply_start(request, 200, "OK");
}

void httpd_end_stream(struct evhttp_request *request)
{
	set_timeout(request, TIMEOUT_S);
	evhttp_send_reply_end(request);
}

void httpd_send(struct evhttp_request *request, int status, const char *reason,
		struct evbuffer *body)
{
	bool has_body = evhttp_request_get_command(request) != EVHTTP_REQ_HEAD;

	set_timeout(request, TIMEOUT_S);
	evhttp_send_reply(request, status, reason, has_body ? body : NULL);
	if (body)
		evbuffer_free(body);
}

static void send_error(struct evhttp_request *request, int status, const char *why)
{
	struct evbuffer *body = evbuffer_new();

	if (status == 401)
		add_header(request, "WWW-Authenticate", "Bearer realm=\"vmp\"");
	if (status == 405)
		add_header(request, "Allow", strstr(why, "POST") ? "POST" : "GET, HEAD");
	add_header(request, "Content-Type", "text/plain; charset=utf-8");
	if (body)
		evbuffer_add_printf(body, "%s\n", why);
	httpd_send(request, status, status == 401 ? "Unauthorized" : "Refused", body);
}

/* Returns whether the connection's other end is a process of a user who is served. */
static bool is_served(void *context, int fd)
{
	const struct httpd *h = context;
	uid_t user;
	int error = fd >= 0 ? loopback_peer_check(fd, &user) : -ESRCH;

	return !error || (error == -EPERM && h->also_user && user == h->also_user);
}

static struct bufferevent *bufferevent_of(struct evhttp_request *request)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(request);

	return connection ? evhttp_connection_get_bufferevent(connection) : NULL;
}

/* A browser shall load nothing from elsewhere, run no script but the server's own, and show these
 * pages in no other page's frame. */
static void add_policy(struct evhttp_request *request)
{
	add_header(request, "Content-Security-Policy",
		   "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
		   "connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; "
		   "base-uri 'none'; form-action 'none'");
	add_header(request, "Cross-Origin-Resource-Policy", "same-origin");
	add_header(request, "Cross-Origin-Opener-Policy", "same-origin");
	add_header(request, "Referrer-Policy", "no-referrer");
}

static void on_any_request(struct evhttp_request *request, void *context)
{
	enum evhttp_cmd_type method = evhttp_request_get_command(request);
	struct httpgate_request r = { .reads = method == EVHTTP_REQ_GET ||
					       method == EVHTTP_REQ_HEAD,
				      .posts = method == EVHTTP_REQ_POST,
				      .target = evhttp_request_get_uri(request) };
	struct httpd *h = context;
	struct bufferevent *bev = bufferevent_of(request);
	unsigned page = 0;
	const char *why;
	int status;

	httpcrowd_asked(&h->crowd, bev);
	r.host = find(request, "Host", &r.twice);
	r.origin = find(request, "Origin", &r.twice);
	r.authorization = find(request, "Authorization", &r.twice);
	status = httpgate_check(&h->gate, &r, h->pages, h->n_pages, &page, &why);
	if (!is_served(h, bev ? bufferevent_getfd(bev) : -1)) {
		status = 403;
		why = "this server is another user's";
	}
	add_header(request, "Cache-Control", "no-store");
	add_header(request, "X-Content-Type-Options", "nosniff");
	if (h->browses)
		add_policy(request);
	if (status == 200)
		h->on_request(h->context, request, page);
	else
		send_error(request, status, why);
}

/* The server of this process: a listener's context is evhttp's own. */
static struct httpd *serving;

static void on_accept_error(struct evconnlistener *listener, void *evhttps)
{
	(void)listener, (void)evhttps;
	httpcrowd_rest(&serving->crowd);
}

static int port_of(int fd)
{
	union { struct sockaddr any; struct sockaddr_in v4; struct sockaddr_in6 v6; } own;
	socklen_t bytes = sizeof own;

	if (getsockname(fd, &own.any, &bytes))
		return 0;
	return ntohs(own.any.sa_family == AF_INET6 ? own.v6.sin6_port : own.v4.sin_port);
}

/* Hands the listening socket to evhttp, which owns it from then on. */
static int serve(struct httpd *h, struct event_base *base, int fd)
{
	struct evhttp_bound_socket *bound;
	struct evconnlistener *listener =
		evconnlistener_new(base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC,
				   0, fd);

	if (!listener) {
		close(fd);
		return -ENOMEM;
	}
	h->http = evhttp_new(base);
	bound = h->http ? evhttp_bind_listener(h->http, listener) : NULL;
	if (!bound) {
		evconnlistener_free(listener);
		return -ENOMEM;
	}
	h->crowd.is_served = is_served;
	h->crowd.context = h;
	if (httpcrowd_start(&h->crowd, base, h->http, listener))
		return -ENOMEM;
	serving = h;
	evconnlistener_set_error_cb(listener, on_accept_error);
	evhttp_set_max_headers_size(h->http, MOST_HEADER_BYTES);
	evhttp_set_max_body_size(h->http, h->browses ? HTTPD_MOST_BODY : 0);
	evhttp_set_timeout(h->http, TIMEOUT_S);
	evhttp_set_gencb(h->http, on_any_request, h);
	/* the gate refuses the others, with a line that says so */
	evhttp_set_allowed_methods(h->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
				   EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS);
	return 0;
}

int httpd_open(struct httpd *h, struct event_base *base, const char *address, const char *token,
	       struct problem *p)
{
	struct loopback at;
	int fd, error = loopback_parse(address, &at);

	if (error == -EINVAL)
		return problem(p, "--listen %s: write it as 127.0.0.1:9100", address);
	if (error)
		return problem(p, "--listen %s: only addresses of this computer, as 127.0.0.1:9100",
			       address);
	fd = loopback_listen(&at, HTTPCROWD_QUEUE);
	if (fd < 0)
		return problem(p, "--listen %s: %s", address, strerror(-fd));
	h->port = (uint16_t)port_of(fd);
	httpgate_set(&h->gate, address, h->port, token);
	return serve(h, base, fd) ? problem(p, "no memory") : 0;
}

void httpd_close(struct httpd *h)
{
	if (h->http)
		evhttp_free(h->http);
	httpcrowd_end(&h->crowd);
	h->http = NULL;
}
