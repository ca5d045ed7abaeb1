/* The command line of `vmp rsh`: vpg/shell/rsh.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"
#include "vpg/shell/rsh.h"

enum { WORDS = 24 };

/* `is`: "NICK USER FLAGS PORT | SCRIPT"; FLAGS: n, t, s or -. Or a part of the error. */
static const struct { const char *line, *is; bool fails; } cases[] = {
	{ "B true", "B - - 0 | true", false },
	{ "B", "B - - 0 | exec \"${SHELL:-/bin/sh}\" -l", false },
	{ "B echo a b", "B - - 0 | echo a b", false },
	{ "-n B cat", "B - n 0 | cat", false },
	{ "-tt B top", "B - t 0 | top", false },
	{ "-Tn B cat -n", "B - n 0 | cat -n", false },
	{ "-- B ls -l", "B - - 0 | ls -l", false },
	{ "B -- ls -l", "B - - 0 | ls -l", false },
	{ "B -t ls", "B - t 0 | ls", false },
	{ "B ls -t", "B - - 0 | ls -t", false },
	{ "B nohup sleep 5", "B - s 0 | sleep 5", false },
	{ "-n B -- nohup cat -t", "B - ns 0 | cat -t", false },
	{ "B nohup", "B - - 0 | nohup", false },
	{ "-l me B", "B me - 0 | ", false },
	{ "me@B", "B me - 0 | ", false },
	{ "-lme -p 22 -p22 B", "B me - 0 | ", false },
	/* what vmp, Phoenix, GNU parallel, Ansible and Open MPI give */
	{ "-T -o BatchMode=yes -o ConnectTimeout=30 -C -- B true", "B - - 0 | true", false },
	{ "-o BatchMode=yes -W 127.0.0.1:28100 -- B", "B - - 28100 | ", false },
	{ "-W localhost:1 B", "B - - 1 | ", false },
	{ "-W [::1]:65535 B", "B - - 65535 | ", false },
	{ "-oControlPath=x ssh://me@B:22", "B me - 0 | ", false },
	{ "-o ControlMaster=auto -S /tmp/x -x B orted", "B - - 0 | orted", false },
	{ "", "needs a nickname", true },
	{ "-n", "needs a nickname", true },
	{ "--", "needs a nickname", true },
	{ "-Z B", "no option -Z", true },
	{ "-L 1:b:2 B", "option of ssh that", true },
	{ "-N B", "option of ssh that", true },
	{ "-nf B", "option of ssh that", true },
	{ "-o", "value of -o is missing", true },
	{ "-l", "value of -l is missing", true },
	{ "-l a'b B", "not a user's name", true },
	{ "@B", "not a user's name", true },
	{ "-l -x B", "not a user's name", true },
	{ "a/b", "not a nickname", true },
	{ "all true", "not a nickname", true },
	{ "B:22 true", "not a nickname", true },
	{ "-W B:80 B", "a port of the computer itself", true },
	{ "-W 127.0.0.1:0 B", "a port of the computer itself", true },
	{ "-W 127.0.0.1:65536 B", "a port of the computer itself", true },
	{ "-W 127.0.0.1:8x B", "a port of the computer itself", true },
	{ "-W 127.0.0.1: B", "a port of the computer itself", true },
	{ "-W 127.0.0.1:80 B true", "cannot run", true },
};

static int split(char *text, char **words)
{
	char *save = NULL;
	int n = 1;

	words[0] = "vmp-rsh";
	for (char *word = strtok_r(text, " ", &save); word && n < WORDS - 1;
	     word = strtok_r(NULL, " ", &save))
		words[n++] = word;
	words[n] = NULL;
	return n;
}

static void test_lines(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[200], is[600], *words[WORDS], *script = NULL;
		struct rsh_order o;

		snprintf(text, sizeof text, "%s", cases[i].line);
		bool fails = rsh_parse(&o, split(text, words), words);
		if (!fails)
			script = rsh_script(&o);
		snprintf(is, sizeof is, "%s %s %s%s%s%s %u | %s", o.nick, *o.user ? o.user : "-",
			 o.no_input ? "n" : "", o.terminal ? "t" : "",
			 o.stays ? "s" : "", o.no_input || o.terminal || o.stays ? "" : "-",
			 o.port,
			 script && !*o.user && !o.port ? script : "");
		bool good = fails == cases[i].fails && (fails ? strstr(o.error, cases[i].is) != NULL
							      : !strcmp(is, cases[i].is));
		if (!good)
			printf("%s: %s\n", cases[i].line, fails ? o.error : is);
		CU_ASSERT(good);
		free(script);
	}
}

static void test_user(void)
{
	char *words[] = { "vmp-rsh", "me@B", "id", NULL };
	struct rsh_order o;

	CU_ASSERT_EQUAL_FATAL(rsh_parse(&o, 3, words), 0);
	char *script = rsh_script(&o);
	CU_ASSERT_PTR_NOT_NULL_FATAL(script);
	CU_ASSERT_PTR_EQUAL(strstr(script, "[ \"$(id -un)\" = 'me' ] || "), script);
	CU_ASSERT_STRING_EQUAL(strrchr(script, '\n'), "\nid");
	free(script);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "ssh's command line", test_lines },
		{ "a user's name is checked there", test_user },
		UNIT_END
	};

	return UNIT_RUN("vpg_rsh", tests);
}
