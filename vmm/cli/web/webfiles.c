/* webfiles.c - the files of `vmp web`: the page itself, which is a part of this program, and the
 * terminal of the console, xterm.js, which `make web` fetches and which lies beside the program.
 * Without it the page says so in the console's place. */
#include "vmm/cli/web/web_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/beside.h"

enum { LIBRARY_MOST_BYTES = 4 << 20 };

#define HTML "text/html; charset=utf-8"
#define CSS "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"

/* webfiles_text.S */
extern const char page_html_begin[], page_html_end[], charts_css_begin[], charts_css_end[],
	charts_js_begin[], charts_js_end[], web_css_begin[], web_css_end[], web_js_begin[],
	web_js_end[];

static const struct {
	const char *path, *type, *begin, *end;
} own[] = {
	{ "/", HTML, page_html_begin, page_html_end },
	{ "/charts.css", CSS, charts_css_begin, charts_css_end },
	{ "/charts.js", SCRIPT, charts_js_begin, charts_js_end },
	{ "/web.css", CSS, web_css_begin, web_css_end },
	{ "/web.js", SCRIPT, web_js_begin, web_js_end },
};

static const struct {
	const char *path, *type, *file;
} libraries[WEB_LIBRARIES] = {
	{ "/xterm.css", CSS, "web/xterm.css" },
	{ "/xterm.js", SCRIPT, "web/xterm.js" },
	{ "/addon-fit.js", SCRIPT, "web/addon-fit.js" },
};

static void read_library(struct weblibrary *library, const char *name)
{
	char path[4096];
	FILE *file = beside_path(name, path, sizeof path) ? NULL : fopen(path, "re");

	if (!file)
		return;
	library->text = malloc(LIBRARY_MOST_BYTES + 1);
	if (library->text)
		library->bytes = fread(library->text, 1, LIBRARY_MOST_BYTES + 1, file);
	if (!library->bytes || library->bytes > LIBRARY_MOST_BYTES || ferror(file)) {
		free(library->text);
		*library = (struct weblibrary){ 0 };
	}
	fclose(file);
}

void webfiles_open(struct web *w)
{
	for (unsigned i = 0; i < WEB_LIBRARIES; i++)
		read_library(&w->library[i], libraries[i].file);
}

void webfiles_close(struct web *w)
{
	for (unsigned i = 0; i < WEB_LIBRARIES; i++)
		free(w->library[i].text);
}

void webfiles_serve(struct web *w, struct evhttp_request *request)
{
	const char *path = evhttp_request_get_uri(request);

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (!strcmp(path, own[i].path))
			return web_reply(request, 200, own[i].type, own[i].begin,
					 (size_t)(own[i].end - own[i].begin));
	for (unsigned i = 0; i < WEB_LIBRARIES; i++)
		if (!strcmp(path, libraries[i].path) && w->library[i].text)
			return web_reply(request, 200, libraries[i].type, w->library[i].text,
					 w->library[i].bytes);
	web_reply_line(request, 404, "this vmp was built or installed without xterm.js: make web");
}
