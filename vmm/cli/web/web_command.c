/* web_command.c - `vmp web`: a page that shows a running machine while it runs, on a loopback
 * address, until the machine ends or Ctrl-C.
 *
 * The token is new with each `vmp web`, since the next program that listens on the port is perhaps
 * another user's, and the browser may load the page from there.  It is behind the # of the address,
 * which a browser sends to nobody; the page's script puts it into the header Authorization.  A
 * cookie would go to every server of this computer, on whichever port.
 */
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/web/web_private.h"
#include "vmm/shared/placement.h"

static const struct httpgate_page pages[] = {
#define PAGE(path, posts, takes_query, is_public, serve) { path, posts, takes_query, is_public },
#include "vmm/cli/web/pages.def"
#undef PAGE
};

static void (*const serve_page[])(struct web *, struct evhttp_request *) = {
#define PAGE(path, posts, takes_query, is_public, serve) serve,
#include "vmm/cli/web/pages.def"
#undef PAGE
};

static struct web web;

void web_reply(struct evhttp_request *request, int status, const char *type, const char *text,
	       size_t bytes)
{
	struct evbuffer *body = evbuffer_new();

	if (!body || evbuffer_add(body, text, bytes))
		die("no memory");
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", type);
	httpd_send(request, status, status == 200 ? "OK" : "Refused", body);
}

void web_reply_line(struct evhttp_request *request, int status, const char *line)
{
	char text[200];
	int n = snprintf(text, sizeof text, "%s\n", line);

	web_reply(request, status, "text/plain; charset=utf-8", text, (size_t)n);
}

/* Writes { "policy", "hosts_came", "hosts_went": since the start, "away": the machine goes back to
 * a checkpoint, "cluster": its hosts have names, "record": recording_json.c }. */
static void print_record(FILE *out, struct web *w, uint64_t from)
{
	const struct recording *r = &w->recorder.recording;
	struct recording_about about = { .name = w->watch.rundir.name,
					 .symbols = &w->symbols,
					 .cpus = w->watch.info.machine.cpus,
					 .mem_mib = w->watch.info.machine.mem_mib,
					 .written = time(NULL) };

	fprintf(out, "{\"policy\": \"%s\", \"hosts_came\": %u, \"hosts_went\": %u, \"away\": %s, "
		"\"cluster\": %s, \"record\": ", placement_policy_name(r->last.hosts.policy),
		r->last.hosts.came, r->last.hosts.went,
		w->watch.sampler.open ? "false" : "true",
		r->last.names.name[0][0] ? "true" : "false");
	recording_print(out, r, &about, from);
	fputs("}\n", out);
}

void web_serve_record(struct web *w, struct evhttp_request *request)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		die("no memory");
	print_record(out, w, webwords_from(evhttp_request_get_uri(request)));
	if (fclose(out))
		die("no memory");
	web_reply(request, 200, "application/json", text, bytes);
	free(text);
}

static void on_request(void *context, struct evhttp_request *request, unsigned page)
{
	serve_page[page](context, request);
}

static void on_sample(void *context)
{
	(void)context;
	watch_is_answered(&web.watch);
	recorder_take(&web.recorder);
}

static int choose_token(struct web *w, char token[TOKEN_MOST + 1])
{
	char path[4096];

	if (w->watch.o->token)
		return httpgate_token(w->watch.o->token, token, path, &w->watch.why);
	return httpgate_new_token(token, &w->watch.why);
}

static int serve(struct web *w)
{
	const char *address = w->watch.o->listen ? w->watch.o->listen : "127.0.0.1:0";
	char token[TOKEN_MOST + 1];

	if (choose_token(w, token))
		return -1;
	w->httpd = (struct httpd){ .pages = pages, .n_pages = ARRAY_LEN(pages), .browses = true,
				   .context = w, .on_request = on_request };
	w->watch.sampler.on_sample = on_sample;
	if (httpd_open(&w->httpd, w->watch.base, address, token, &w->watch.why))
		return -1;
	if (recorder_start(&w->recorder, w->watch.base, &w->watch.sampler,
			   w->watch.info.machine.mem_mib))
		return problem(&w->watch.why, "no memory");
	w->recorder.recording.slides = true;
	w->recorder.recording.interval_ms = WEB_INTERVAL_MS;
	printf("http://%s/#%s\n", w->httpd.gate.authority[2], token);
	return fflush(stdout) ? problem(&w->watch.why, "cannot write the address") : 0;
}

int web_command(const struct options *o)
{
	struct web *w = &web;

	webfiles_open(w);
	if (!watch_open(&w->watch, o) && !serve(w)) {
		pageheat_load_symbols(&w->symbols,
				      w->watch.info.kernel); /* without them: no names */
		event_base_dispatch(w->watch.base);
	}
	webconsole_close(w);
	webdo_close(w);
	httpd_close(&w->httpd);
	recorder_free(&w->recorder);
	pageheat_free_symbols(&w->symbols);
	webfiles_close(w);
	return watch_close(&w->watch);
}
