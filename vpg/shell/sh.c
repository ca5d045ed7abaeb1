/* sh.c - the program vmp-sh: `vmp sh`, `vmp @`, `vmp rsh` and `vmp cp`.  Under the name vmp-rsh it
 * is `vmp rsh` alone, for programs that accept the name of one program in place of ssh. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/limits.h"
#include "base/log.h"
#include "vpg/shell/editor.h"
#include "vpg/shell/own_terminal.h"
#include "vpg/shell/rsh.h"
#include "vpg/wire/message.h"
#include "vpg/wire/nick.h"

static const char usage[] =
	"vmp sh                 a shell over several computers\n"
	"vmp sh [-t] -c LINE    run a line of commands; -t: with a terminal\n"
	"vmp sh FILE            run each line of FILE\n"
	"vmp @ [-t] LINE        as vmp sh -c\n"
	"vmp rsh [-n] [-t] NICK [COMMAND]    run a command on one computer, as ssh does\n"
	"vmp cp FROM[@NICK] TO[@NICK]    copy a file\n"
	"\n"
	"A line: ps@B; tar@E -c dir | tar@G x; sort@B < in@C > out.  See vmp-sh(1).\n";

static int wrong(const char *what, const char *word)
{
	log_error("%s%s; see vmp sh --help", what, word);
	return EXIT_VMP_FAILURE;
}

/* ---- lines ---- */

static int run_text(struct executor *x, const char *text)
{
	execute_text(x, text, strlen(text));
	execute_leave(x);
	return x->status;
}

static int run_file(struct executor *x, FILE *f)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while (!x->exits && (n = getline(&line, &room, f)) > 0)
		execute_text(x, line, (size_t)n);
	free(line);
	execute_leave(x);
	return x->status;
}

/* Takes -t, if it is the first word. */
static void take_terminal(struct executor *x, int *argc, char ***argv)
{
	if (*argc < 2 || strcmp((*argv)[1], "-t"))
		return;
	x->terminal = true;
	++*argv;
	--*argc;
}

static int shell(struct executor *x, int argc, char **argv)
{
	FILE *f = stdin;

	take_terminal(x, &argc, &argv);
	if (argc > 1 && !strcmp(argv[1], "-c"))
		return argc == 3 ? run_text(x, argv[2]) : wrong("-c needs one line", "");
	if (argc > 2 || (argc == 2 && argv[1][0] == '-'))
		return wrong("vmp sh takes -c LINE or one file, not ", argv[argc - 1]);
	if (argc == 2)
		f = fopen(argv[1], "re");
	if (!f) {
		log_error("%s: %s", argv[1], strerror(errno));
		return EXIT_VMP_FAILURE;
	}
	if (argc < 2 && terminal_is_own())
		return editor_run(x);
	if (argc < 2)	/* the commands must not read the lines */
		x->no_input = true;
	return run_file(x, f);
}

static int at(struct executor *x, int argc, char **argv)
{
	take_terminal(x, &argc, &argv);
	return argc == 2 ? run_text(x, argv[1]) : wrong("vmp @ needs one line, in quotes", "");
}

/* ---- one command ---- */

static int run_stages(struct executor *x, struct line_stage *stages, size_t n)
{
	struct line l = { .stages = stages, .n_stages = n };

	return execute_line(x, &l);
}

static int rsh(struct executor *x, int argc, char **argv)
{
	char port[8], *words[] = { "nohup", "/bin/sh", "-c", NULL, NULL },
	     *carries[] = { PEER_PROGRAM, "connect", port, NULL };
	struct line_stage stage = { .words = words + 1, .n_words = 3 };
	struct rsh_order o;

	if (rsh_parse(&o, argc, argv))
		return wrong(o.error, "");
	stage.nick = o.nick;
	x->no_input = o.no_input;
	x->terminal = o.terminal || (!*o.command && !o.port);
	snprintf(port, sizeof port, "%u", o.port);
	if (o.port)
		stage.words = carries;
	else
		words[3] = rsh_script(&o);
	if (o.stays)
		stage.words = words, stage.n_words = 4, x->keeps_streams = true;
	return words[3] || o.port ? run_stages(x, &stage, 1) : EXIT_VMP_FAILURE;
}

/* ---- a file ---- */

/* Cuts PATH@NICK in two. */
static int cut(char *word, const char **nick)
{
	char *mark = strrchr(word, '@');

	*nick = NULL;
	if (mark && nick_is_valid(mark + 1)) {
		*nick = mark + 1;
		*mark = 0;
	}
	return *word ? 0 : wrong("vmp cp: the name of a file is empty", "");
}

/* The sender adds a dot behind the file's bytes, and the receiver removes it.  So the receiver
 * recognises half a file, which never takes the place of a whole one. */
static char copy_from[] =
	"[ -f \"$1\" ] || { echo \"vmp: $1: no such file\" >&2; exit 1; }\n"
	"cat -- \"$1\" && printf .";
static char copy_to[] =
	"d=$1; [ ! -d \"$d\" ] || d=$d/$2; t=$d.part$$\n"
	"if cat >\"$t\" && [ \"$(tail -c 1 -- \"$t\")\" = . ] && truncate -s -1 -- \"$t\" &&\n"
	"	mv -f -- \"$t\" \"$d\"; then exit 0; fi\n"
	"rm -f -- \"$t\"; exit 1";

/* Returns whether a word is NAME:/PATH, docker's way to name a file in a running machine. */
static bool is_in_machine(const char *word)
{
	size_t n = strcspn(word, ":/@");

	return n && word[n] == ':' && word[n + 1] == '/' && !strchr(word, '@');
}

static int copy(struct executor *x, int argc, char **argv)
{
	char *from[] = { "/bin/sh", "-c", copy_from, "vmp-cp", NULL, NULL },
	     *to[] = { "/bin/sh", "-c", copy_to, "vmp-cp", NULL, NULL, NULL };
	struct line_stage stages[] = { { .words = from, .n_words = 5, .after = AFTER_PIPE },
				       { .words = to, .n_words = 6 } };
	const char *slash;

	if (argc != 3)
		return wrong("vmp cp needs a file and where it goes", "");
	if (is_in_machine(argv[1]) || is_in_machine(argv[2])) {
		log_error("vmp cp copies between computers; into a machine: vmp exec NAME -- sh -c "
			  "'cat >FILE' <FILE, out of it: vmp exec NAME -- cat FILE >FILE");
		return EXIT_VMP_FAILURE;
	}
	if (cut(argv[1], &stages[0].nick) || cut(argv[2], &stages[1].nick))
		return EXIT_VMP_FAILURE;
	slash = strrchr(argv[1], '/');
	from[4] = argv[1];
	to[4] = argv[2];
	to[5] = slash ? (char *)slash + 1 : argv[1];
	x->pipefail = x->no_input = true;
	return run_stages(x, stages, 2);
}

/* ---- the command line ---- */

static const struct verb {
	const char *word;
	int (*function)(struct executor *, int argc, char **argv);
} verbs[] = { { "sh", shell }, { "@", at }, { "rsh", rsh }, { "cp", copy } };

static bool asks_for_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static int help(void)
{
	return fputs(usage, stdout) < 0 || fflush(stdout) ? EXIT_VMP_FAILURE : 0;
}

int main(int argc, char **argv)
{
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	struct executor x = { 0 };

	log_open("vmp", 2, LOG_WARN);
	if (argc && !strcmp(slash ? slash + 1 : argv[0], "vmp-rsh")) {
		if (argc > 1 && asks_for_help(argv[1]))
			return help();
		execute_prepare(&x);
		return rsh(&x, argc, argv);
	}
	if ((argc > 1 && asks_for_help(argv[1])) || (argc > 2 && asks_for_help(argv[2])))
		return help();
	for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof *verbs; i++)
		if (!strcmp(argv[1], verbs[i].word)) {
			execute_prepare(&x);
			return verbs[i].function(&x, argc - 1, argv + 1);
		}
	return wrong("vmp-sh needs one of sh, @, rsh and cp", "");
}
