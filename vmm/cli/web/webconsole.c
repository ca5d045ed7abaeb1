/* webconsole.c - the console of `vmp web`.  Each page that shows it has a connection of its own to
 * the machine, as a `vmp console` has, and reads its output as a response without an end.  What is
 * typed is posted.
 *
 * A browser that does not read what it has asked for loses its stream; the page asks again and gets
 * the last 64 KiB anew. */
#include "vmm/cli/web/web_private.h"

#include <event2/bufferevent.h>
#include <string.h>
#include "base/log.h"

enum { BACKLOG = 64 << 10, MOST_BEHIND = 1 << 20 };

static void forget(struct webstream *s)
{
	if (s->web->newest == s)
		s->web->newest = NULL;
	client_close(&s->client);
	s->request = NULL;
}

static void on_gone(struct evhttp_connection *connection, void *context)
{
	(void)connection;
	forget(context);
}

/* Ends the response in order. */
static void end(struct webstream *s)
{
	struct evhttp_request *request = s->request;

	evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
	forget(s);
	httpd_end_stream(request);
}

/* Drops the connection of a browser that does not read. */
static void drop(struct webstream *s)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(s->request);

	evhttp_connection_set_closecb(connection, NULL, NULL);
	forget(s);
	evhttp_connection_free(connection);
}

static void send_output(struct webstream *s, const struct message *m)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(s->request);
	struct bufferevent *bev = evhttp_connection_get_bufferevent(connection);
	struct evbuffer *chunk;

	if (evbuffer_get_length(bufferevent_get_output(bev)) > MOST_BEHIND)
		return drop(s);
	chunk = evbuffer_new();
	if (!chunk || evbuffer_add(chunk, m->payload, m->payload_bytes))
		die("no memory");
	if (m->payload_bytes)
		evhttp_send_reply_chunk(s->request, chunk);
	evbuffer_free(chunk);
}

static void on_message(void *context, const struct message *m)
{
	struct msg_console_attach attach = { .backlog = BACKLOG };
	struct webstream *s = context;

	if (!s->request)
		return;
	if (m->header.type == MSG_HOSTS && !s->attached) {
		s->attached = true;
		client_send(&s->client, MSG_CONSOLE_ATTACH, VNODE_IOSRV, &attach, sizeof attach,
			    NULL, 0);
	} else if (m->header.type == MSG_CONSOLE) {
		send_output(s, m);
	}
}

static void on_closed(void *context) { end(context); }

void webconsole_serve(struct web *w, struct evhttp_request *request)
{
	struct webstream *s = w->stream;

	while (s < w->stream + WEB_STREAMS && s->request)
		s++;
	if (s == w->stream + WEB_STREAMS)
		return web_reply_line(request, 503, "too many pages show the console");
	if (evhttp_request_get_command(request) != EVHTTP_REQ_GET)
		return web_reply_line(request, 405, "only GET is served");
	*s = (struct webstream){ .web = w, .client = { .fd = -1, .context = s,
						       .link = LINK_NODE_TO_QUERY,
						       .on_message = on_message,
						       .on_closed = on_closed } };
	if (client_connect(&s->client, w->watch.base, w->watch.rundir.path, CLIENT_CONSOLE))
		return web_reply_line(request, 503, "the machine is not there just now");
	s->request = request;
	w->newest = s;
	httpd_start_stream(request);
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_gone, s);
}

/* Returns the connection for what the user does at the console, or NULL. */
static struct client *any_client(struct web *w)
{
	for (unsigned i = 0; !w->newest && i < WEB_STREAMS; i++)
		if (w->stream[i].request)
			w->newest = &w->stream[i];
	return w->newest && w->newest->attached ? &w->newest->client : NULL;
}

void webconsole_type(struct web *w, struct evhttp_request *request)
{
	struct evbuffer *typed = evhttp_request_get_input_buffer(request);
	struct client *client = any_client(w);
	struct msg_console body = { 0 };
	char bytes[256];
	int n;

	if (!client)
		return web_reply_line(request, 409, "no page shows the console");
	if (!client_has_room(client))
		return web_reply_line(request, 503, "the console does not take so much");
	while ((n = evbuffer_remove(typed, bytes, sizeof bytes)) > 0)
		client_send(client, MSG_CONSOLE, VNODE_IOSRV, &body, sizeof body, bytes,
			    (size_t)n);
	web_reply_line(request, 200, "typed");
}

void webconsole_resize(struct web *w, struct evhttp_request *request)
{
	struct evbuffer *form = evhttp_request_get_input_buffer(request);
	struct client *client = any_client(w);
	struct msg_console_size size = { 0 };
	char text[HTTPD_MOST_BODY];
	int n = evbuffer_remove(form, text, sizeof text);

	if (n <= 0 || !webwords_size(text, (size_t)n, &size.columns, &size.rows))
		return web_reply_line(request, 400, "write it as columns=80&rows=24");
	if (!client)
		return web_reply_line(request, 409, "no page shows the console");
	client_send(client, MSG_CONSOLE_SIZE, VNODE_IOSRV, &size, sizeof size, NULL, 0);
	web_reply_line(request, 200, "resized");
}

void webconsole_close(struct web *w)
{
	for (unsigned i = 0; i < WEB_STREAMS; i++)
		if (w->stream[i].request)
			end(&w->stream[i]);
}
