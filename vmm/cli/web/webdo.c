/* webdo.c - the commands that the page of `vmp web` asks for.  Each is what a user would type, as
 * `vmp cpu move 1 0 --name lab`, run by a `vmp` of its own; the answer is its line, its output and
 * its status, as JSON:
 *
 *   { "command": "vmp cpu move 1 0 --name lab", "status": 0, "text": "CPU 1 runs on host 0; ..." }
 *
 * A command goes on when its browser goes away; the end of `vmp web` ends it. */
#include "vmm/cli/web/web_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/jsontext.h"

static void put_answer(FILE *out, const struct webjob *job, int status)
{
	char line[WEBWORDS_MOST * (WEBWORDS_BYTES + 1) + MAX_NAME + 16] = "vmp";
	size_t at = strlen(line);

	for (unsigned i = 0; i < job->words.n; i++)
		at += (size_t)snprintf(line + at, sizeof line - at, " %s", job->words.word[i]);
	snprintf(line + at, sizeof line - at, " --name %s", job->web->watch.rundir.name);
	fputs("{\"command\": ", out);
	json_put_string(out, line);
	fprintf(out, ", \"status\": %d, \"text\": ", status);
	json_put_string(out, job->output);
	fputs("}\n", out);
}

static void answer(struct webjob *job, int status)
{
	struct evhttp_request *request = job->request;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		die("no memory");
	put_answer(out, job, status);
	if (fclose(out))
		die("no memory");
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
	web_reply(request, 200, "application/json", text, bytes);
	free(text);
}

/* The command has closed its output, so it ends. */
static void finish(struct webjob *job)
{
	int status;

	while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
		;
	event_free(job->readable);
	close(job->fd);
	job->pid = 0;
	job->output[job->output_bytes] = 0;
	if (job->request)
		answer(job, WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_VMP_FAILURE);
	job->request = NULL;
}

/* Keeps the beginning of what the command says. */
static void on_output(evutil_socket_t fd, short events, void *context)
{
	struct webjob *job = context;
	char bytes[512];
	ssize_t n = read(fd, bytes, sizeof bytes);
	size_t room = sizeof job->output - 1 - job->output_bytes;

	(void)events;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		return finish(job);
	room = room < (size_t)n ? room : (size_t)n;
	memcpy(job->output + job->output_bytes, bytes, room);
	job->output_bytes += room;
}

static void on_gone(struct evhttp_connection *connection, void *context)
{
	struct webjob *job = context;

	(void)connection;
	job->request = NULL;
}

/* In the new process: becomes the command.  Only async-signal-safe functions would be safe if this
 * process had threads; it has none. */
static void become(struct webjob *job, int output)
{
	char path[4096], name[MAX_NAME], *argv[WEBWORDS_MOST + 4] = { "vmp" };
	int null = open("/dev/null", O_RDONLY), n = 1;
	sigset_t none;

	for (unsigned i = 0; i < job->words.n; i++)
		argv[n++] = job->words.word[i];
	snprintf(name, sizeof name, "%s", job->web->watch.rundir.name);
	argv[n++] = "--name";
	argv[n] = name;
	for (int signal_number = 1; signal_number < NSIG; signal_number++)
		signal(signal_number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0 && dup2(null, 0) == 0 && dup2(output, 1) == 1 && dup2(output, 2) == 2 &&
	    !close_range(3, ~0u, 0) && !beside_path("vmp", path, sizeof path))
		beside_exec(path, argv);
	_exit(EXIT_VMP_FAILURE);
}

static int start(struct webjob *job)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	job->pid = fork();
	if (!job->pid)
		become(job, ends[1]);
	close(ends[1]);
	job->fd = ends[0];
	job->readable = job->pid > 0 ? event_new(job->web->watch.base, ends[0],
						 EV_READ | EV_PERSIST, on_output, job) : NULL;
	if (job->pid > 0 && (!job->readable || event_add(job->readable, NULL)))
		die("no memory");
	if (job->pid > 0)
		return 0;
	job->pid = 0;
	close(ends[0]);
	return -EAGAIN;
}

/* Returns a line if the request cannot be carried out, or NULL. */
static const char *prepare(struct webjob *job, struct evhttp_request *request, int *status)
{
	char form[HTTPD_MOST_BODY];
	int n = evbuffer_remove(evhttp_request_get_input_buffer(request), form, sizeof form);
	const char *why;

	*status = 400;
	if (webwords_parse(form, n > 0 ? (size_t)n : 0, &job->words, &why))
		return why;
	*status = 409;
	if (job->words.file && !access(job->words.word[job->words.file], F_OK))
		return "there is a file of that name already";
	*status = 503;
	return start(job) ? "no new process can be started just now" : NULL;
}

void webdo_serve(struct web *w, struct evhttp_request *request)
{
	struct webjob *job = w->job;
	const char *why;
	int status;

	while (job < w->job + WEB_JOBS && job->pid)
		job++;
	if (job == w->job + WEB_JOBS)
		return web_reply_line(request, 503, "too many commands run already");
	*job = (struct webjob){ .web = w };
	why = prepare(job, request, &status);
	if (why)
		return web_reply_line(request, status, why);
	job->request = request;
	httpd_wait(request);
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_gone, job);
}

void webdo_close(struct web *w)
{
	for (unsigned i = 0; i < WEB_JOBS; i++)
		if (w->job[i].pid) {
			kill(w->job[i].pid, SIGTERM);
			finish(&w->job[i]);
		}
}
