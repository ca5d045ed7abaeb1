/* editor.c - see editor.h. */
#include "vpg/shell/editor.h"

#include <dlfcn.h>
#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/log.h"
#include "vpg/shell/completion.h"
#include "vpg/shell/job_table.h"
#include "vpg/shell/pipeline.h"
#include "vpg/wire/folder.h"

enum { HISTORY_LINES = 1000 };

/* libedit and the libraries that it needs take a third of the time in which this program starts,
 * and most uses of the program are single lines.  So libedit is loaded only when it is needed. */
#define LIBEDIT "libedit.so.2"
#define FUNCTIONS(F) F(el_init) F(el_end) F(el_set) F(el_gets) F(el_source) F(el_line) \
	F(el_cursor) F(el_deletestr) F(el_insertstr) F(history_init) F(history_end) F(history)
#define POINTER(name) __typeof__(&name) name;
static struct { FUNCTIONS(POINTER) } edit;

static int load_library(void)
{
	void *library = dlopen(LIBEDIT, RTLD_NOW);
	const char *why = library ? NULL : dlerror();

#define FIND(name) \
	if (!why && !(*(void **)&edit.name = dlsym(library, #name))) \
		why = dlerror();
	FUNCTIONS(FIND)
	if (why)
		log_error("cannot edit lines: %s; install Debian's package libedit2", why);
	return why ? -1 : 0;
}

static struct executor *shell;	/* for libedit's callbacks, to which it cannot be passed */

static char *prompt(EditLine *e)
{
	(void)e;
	return "vmp> ";
}

/* Ctrl-C at the prompt: the line is given up. */
static unsigned char on_interrupt(EditLine *e, int key)
{
	const LineInfo *line = edit.el_line(e);

	(void)key;
	edit.el_cursor(e, (int)(line->lastchar - line->cursor));
	edit.el_deletestr(e, (int)(line->lastchar - line->buffer));
	printf("^C\n");
	fflush(stdout);
	return CC_REDISPLAY;
}

/* Several nicknames fit: they are listed, and the line is shown again. */
static unsigned char list_matches(const struct group *g, const char *begin, size_t n)
{
	printf("\n");
	for (size_t i = 0; i < g->n; i++)
		if (!strncmp(g->nicks[i], begin, n))
			printf("%s  ", g->nicks[i]);
	printf("\n");
	fflush(stdout);
	return CC_REDISPLAY;
}

static unsigned char complete(EditLine *e, const struct group *g)
{
	const LineInfo *line = edit.el_line(e);
	const char *first, *begin = completion_start(line->buffer,
						     (size_t)(line->cursor - line->buffer));
	char rest[NICK_BYTES + 1];
	size_t n, found, common;

	if (!begin)
		return CC_ERROR;
	n = (size_t)(line->cursor - begin);
	found = completion_match(g, begin, n, &first, &common);
	if (!found)
		return CC_ERROR;
	if (found > 1 && common == n)
		return list_matches(g, begin, n);
	snprintf(rest, sizeof rest, "%.*s%s", (int)(common - n), first + n, found > 1 ? "" : " ");
	return edit.el_insertstr(e, rest) ? CC_ERROR : CC_REFRESH;
}

static unsigned char on_tab(EditLine *e, int key)
{
	struct group g = { 0 };
	unsigned char what = CC_ERROR;

	(void)key;
	if (!pipeline_peers(shell, &g))
		what = complete(e, &g);
	group_free(&g);
	return what;
}

static EditLine *open_editor(History *past)
{
	EditLine *e = edit.el_init("vmp", stdin, stdout, stderr);

	if (!e)
		return NULL;
	edit.el_set(e, EL_PROMPT, prompt);
	edit.el_set(e, EL_HIST, edit.history, past);
	edit.el_set(e, EL_EDITOR, "emacs");
	edit.el_set(e, EL_ADDFN, "vmp-complete", "complete a nickname", on_tab);
	edit.el_set(e, EL_ADDFN, "vmp-interrupt", "give the line up", on_interrupt);
	edit.el_source(e, NULL);	/* ~/.editrc */
	edit.el_set(e, EL_BIND, "^I", "vmp-complete", NULL);
	edit.el_set(e, EL_BIND, "^C", "vmp-interrupt", NULL);
	edit.el_set(e, EL_SETTY, "-d", "-isig", NULL);	/* keys are keys while a line is edited */
	return e;
}

static void run_lines(struct executor *x, EditLine *e, History *past)
{
	HistEvent event;
	const char *line;
	int n = 0;

	while (!x->exits) {
		jobs_print(false);
		line = edit.el_gets(e, &n);
		if (!line || n <= 0)
			break;
		if (strspn(line, " \t\n") < (size_t)n)
			edit.history(past, &event, H_ENTER, line);
		execute_text(x, line, (size_t)n);
	}
}

int editor_run(struct executor *x)
{
	char folder[FOLDER_PATH], path[FOLDER_PATH + 16] = "";
	HistEvent event;
	History *past;
	struct why why;
	EditLine *e;

	if (load_library())
		return 125;
	past = edit.history_init();
	setlocale(LC_CTYPE, "");
	shell = x;
	x->interactive = true;
	signal(SIGTTOU, SIG_IGN);	/* it takes the terminal back from its jobs */
	e = past ? open_editor(past) : NULL;
	if (!e) {
		log_error("cannot edit lines on this terminal");
		return 125;
	}
	edit.history(past, &event, H_SETSIZE, HISTORY_LINES);
	edit.history(past, &event, H_SETUNIQUE, 1);
	if (!folder_path(folder, &why)) {
		snprintf(path, sizeof path, "%s/history", folder);
		edit.history(past, &event, H_LOAD, path);
	}
	run_lines(x, e, past);
	umask(077);
	if (*path)
		edit.history(past, &event, H_SAVE, path);
	edit.el_end(e);
	edit.history_end(past);
	execute_end(x);
	return x->status;
}
