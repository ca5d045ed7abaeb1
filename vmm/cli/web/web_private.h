/* web_private.h - the state of `vmp web`, and the functions that its files call in each other.
 *
 * The page in the browser asks for new samples once a second (web_command.c), reads the console as
 * a response that does not end (webconsole.c), and posts commands, each of which is carried out by
 * a `vmp` of its own (webdo.c).
 */
#ifndef VMM_CLI_WEB_WEB_PRIVATE_H
#define VMM_CLI_WEB_WEB_PRIVATE_H

#include "vmm/cli/watch/httpd.h"
#include "vmm/cli/watch/recorder.h"
#include "vmm/cli/watch/watching.h"
#include "vmm/cli/web/webwords.h"

enum { WEB_INTERVAL_MS = 1000 };
enum { WEB_STREAMS = 8, WEB_JOBS = 4, WEB_JOB_OUTPUT = 4096, WEB_LIBRARIES = 3 };

/* A browser that shows the console.  request == NULL: free. */
struct webstream {
	struct web *web;
	struct evhttp_request *request;
	struct client client; /* to the machine */
	bool attached;
};

/* A command that runs.  pid == 0: free. */
struct webjob {
	struct web *web;
	struct evhttp_request *request; /* NULL: its client has gone */
	pid_t pid;
	int fd; /* its output */
	struct event *readable;
	struct webwords words;
	char output[WEB_JOB_OUTPUT];
	size_t output_bytes;
};

struct web {
	struct watch watch;
	struct recorder recorder;
	struct httpd httpd;
	struct symbols symbols; /* the guest kernel's */
	struct webstream stream[WEB_STREAMS];
	struct webstream *newest; /* what is typed goes through its connection; or NULL */
	struct webjob job[WEB_JOBS];
	/* files that `make web` fetches; text == NULL: not there */
	struct weblibrary { char *text; size_t bytes; } library[WEB_LIBRARIES];
};

/* web_command.c */
/* Answers with a text.  `type` is the media type. */
void web_reply(struct evhttp_request *request, int status, const char *type, const char *text,
	       size_t bytes);
/* Answers with one line. */
void web_reply_line(struct evhttp_request *request, int status, const char *line);

/* webfiles.c */
void webfiles_open(struct web *w);
void webfiles_close(struct web *w);

/* webconsole.c: ends all streams. */
void webconsole_close(struct web *w);

/* webdo.c: ends all commands. */
void webdo_close(struct web *w);

#define PAGE(path, posts, takes_query, is_public, serve) \
	void serve(struct web *w, struct evhttp_request *request);
#include "vmm/cli/web/pages.def"
#undef PAGE

#endif
