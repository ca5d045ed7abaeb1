/* metrics_command.c - `vmp metrics`: prints a machine's counters once, or serves them over HTTP on
 * a loopback address until the machine ends.
 *
 * A request asks the machine's hosts, so the figures are those of that moment.  Requests that come
 * while an answer is on its way share it.
 */
#include <errno.h>
#include <pwd.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/watch/httpd.h"
#include "vmm/cli/watch/metrics.h"
#include "vmm/cli/watch/watching.h"

enum { MOST_WAITING = 64 };

struct metrics_server {
	struct watch watch;
	struct httpd httpd;
	/* requests that wait for a sample; NULL: free */
	struct evhttp_request *waiting[MOST_WAITING];
};

static struct metrics_server server;

/* Returns the text, which the caller frees, or NULL without memory. */
static char *metrics_text(struct watch *w, size_t *bytes)
{
	struct machine_info now;
	struct problem ignored;
	char *text = NULL;
	FILE *out = open_memstream(&text, bytes);

	if (!out)
		return NULL;
	if (!rundir_read_info(&w->rundir, &now, &ignored))
		w->info = now;
	metrics_print(out, w->rundir.name, &w->info, &w->sampler.now);
	return fclose(out) ? NULL : text;
}

/* ---- once ---- */

static void on_sample_to_print(void *context)
{
	struct watch *w = &server.watch;
	size_t bytes;
	char *text = metrics_text(w, &bytes);

	(void)context;
	if (!text)
		die("no memory");
	if (fwrite(text, 1, bytes, stdout) != bytes || fflush(stdout)) {
		struct problem p;

		problem(&p, "cannot write the metrics: %s", strerror(errno));
		watch_end(w, EXIT_VMP_FAILURE, p.line);
	}
	free(text);
	watch_end(w, 0, "");
}

/* ---- served ---- */

static void reply(struct evhttp_request *request, int status, const char *text, size_t bytes)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	struct evbuffer *body = evbuffer_new();

	if (!body || evbuffer_add(body, text, bytes))
		die("no memory");
	evhttp_add_header(headers, "Content-Type",
			  status == 200 ? METRICS_TYPE : "text/plain; charset=utf-8");
	httpd_send(request, status, status == 200 ? "OK" : "Unavailable", body);
}

/* A request that waits is over before its answer: its client has gone. */
static void on_gone(struct evhttp_connection *connection, void *context)
{
	(void)context;
	for (size_t i = 0; i < MOST_WAITING; i++)
		if (server.waiting[i] &&
		    evhttp_request_get_connection(server.waiting[i]) == connection)
			server.waiting[i] = NULL;
}

static void answer_all(int status, const char *text, size_t bytes)
{
	for (size_t i = 0; i < MOST_WAITING; i++) {
		struct evhttp_request *request = server.waiting[i];

		if (!request)
			continue;
		server.waiting[i] = NULL;
		evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
		reply(request, status, text, bytes);
	}
}

static void on_sample_to_serve(void *context)
{
	size_t bytes;
	char *text;

	(void)context;
	watch_is_answered(&server.watch);
	text = metrics_text(&server.watch, &bytes);
	if (!text)
		die("no memory");
	answer_all(200, text, bytes);
	free(text);
}

static void on_request(void *context, struct evhttp_request *request, unsigned page)
{
	static const char busy[] = "too many requests wait for an answer\n";
	static const char away[] = "the machine goes back to a checkpoint; ask again\n";

	(void)context, (void)page;
	if (!server.watch.sampler.open)
		return reply(request, 503, away, sizeof away - 1);
	for (size_t i = 0; i < MOST_WAITING; i++) {
		if (server.waiting[i])
			continue;
		server.waiting[i] = request;
		evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_gone,
					      NULL);
		sampler_ask(&server.watch.sampler);
		return;
	}
	reply(request, 503, busy, sizeof busy - 1);
}

/* Sets whom the server serves besides this user and root. */
static int choose_user(struct watch *w)
{
	const struct passwd *entry;

	if (!w->o->for_user)
		return 0;
	entry = getpwnam(w->o->for_user);
	if (!entry)
		return problem(&w->why, "--for-user %s: this computer has no such user",
			       w->o->for_user);
	server.httpd.also_user = entry->pw_uid;
	return 0;
}

static int serve(struct watch *w)
{
	static const struct httpgate_page page = { .path = "/metrics" };
	char token[TOKEN_MOST + 1], path[4096];

	if (choose_user(w) || httpgate_token(w->o->token, token, path, &w->why))
		return -1;
	server.httpd.pages = &page;
	server.httpd.n_pages = 1;
	server.httpd.on_request = on_request;
	w->sampler.on_sample = on_sample_to_serve;
	if (httpd_open(&server.httpd, w->base, w->o->listen, token, &w->why))
		return -1;
	printf("http://%s/metrics; token in %s\n", server.httpd.gate.authority[2], path);
	return fflush(stdout) ? problem(&w->why, "cannot write the address") : 0;
}

int metrics_command(const struct options *o)
{
	struct watch *w = &server.watch;

	if (!watch_open(w, o)) {
		w->sampler.on_sample = on_sample_to_print;
		if (!o->listen || !serve(w))
			event_base_dispatch(w->base);
	}
	answer_all(503, "the machine has ended\n", 22);
	httpd_close(&server.httpd);
	return watch_close(w);
}
