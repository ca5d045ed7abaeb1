/* rsh.c - see rsh.h. */
#include "vpg/shell/rsh.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options of OpenSSH 9. */
static const char idle[] = "46aACgkKqTvxXyY",	/* nothing to do */
	idle_valued[] = "BbcEeFIimoSp",		/* the same, with a value */
	refused[] = "fGMNsVDJLOQRw";

static int wrong(struct rsh_order *o, const char *format, const char *word)
{
	snprintf(o->error, sizeof o->error, format, word);
	return -EINVAL;
}

static int take_user(struct rsh_order *o, const char *user, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (!isalnum((unsigned char)user[i]) && !strchr(i ? "-_." : "_", user[i]))
			return wrong(o, "not a user's name: %.60s", user);
	if (!bytes || bytes >= RSH_USER)
		return wrong(o, "not a user's name: %.60s", user);
	memcpy(o->user, user, bytes);
	o->user[bytes] = 0;
	return 0;
}

/* Takes HOST:PORT, where HOST must be the computer itself. */
static int take_target(struct rsh_order *o, const char *target)
{
	static const char *const here[] = { "127.0.0.1:", "localhost:", "[::1]:" };
	unsigned port = 0;
	int end = 0;

	for (size_t i = 0; i < sizeof here / sizeof *here; i++)
		if (!strncmp(target, here[i], strlen(here[i])) &&
		    sscanf(target + strlen(here[i]), "%5u%n", &port, &end) == 1 &&
		    !target[strlen(here[i]) + (size_t)end] && port > 0 && port < 65536) {
			o->port = port;
			return 0;
		}
	return wrong(o, "-W leads to a port of the computer itself, as 127.0.0.1:8080, not to "
		     "%.60s", target);
}

static int take_valued(struct rsh_order *o, char letter, const char *value)
{
	if (letter == 'l')
		return take_user(o, value, strlen(value));
	return letter == 'W' ? take_target(o, value) : 0;
}

/* Takes one word of options, as -tt, -Tn or -p22. *used gets how many words it took. */
static int take_word(struct rsh_order *o, const char *word, char *next, int *used)
{
	*used = 1;
	for (const char *at = word + 1; *at; at++) {
		if (*at == 'l' || *at == 'W' || strchr(idle_valued, *at)) {
			const char *value = at[1] ? at + 1 : next;

			if (!value)
				return wrong(o, "the value of %.20s is missing", word);
			*used = at[1] ? 1 : 2;
			return take_valued(o, *at, value);
		}
		if (*at == 'n')
			o->no_input = true;
		else if (*at == 't')
			o->terminal = true;
		else if (strchr(refused, *at))
			return wrong(o, "%.20s is an option of ssh that vmp rsh has not", word);
		else if (!strchr(idle, *at))
			return wrong(o, "vmp rsh has no option %.20s", word);
	}
	return 0;
}

/* Takes [ssh://][USER@]NICK[:PORT]. */
static int take_destination(struct rsh_order *o, const char *word)
{
	bool url = !strncmp(word, "ssh://", 6);
	const char *text = url ? word + 6 : word, *at = strrchr(text, '@');
	size_t bytes;

	if (at && take_user(o, text, (size_t)(at - text)))
		return -EINVAL;
	text = at ? at + 1 : text;
	bytes = url ? strcspn(text, ":") : strlen(text);
	if (bytes >= NICK_BYTES)
		return wrong(o, "not a nickname: %.60s", word);
	memcpy(o->nick, text, bytes);
	o->nick[bytes] = 0;
	return nick_is_valid(o->nick) ? 0 : wrong(o, "not a nickname: %.60s", word);
}

int rsh_parse(struct rsh_order *o, int argc, char **argv)
{
	int i = 1, used;

	*o = (struct rsh_order){ .port = 0 };
	while (i < argc && argv[i][0] == '-' && argv[i][1] && strcmp(argv[i], "--")) {
		if (take_word(o, argv[i], argv[i + 1], &used))
			return -EINVAL;
		i += used;
	}
	if (i < argc && !strcmp(argv[i], "--"))
		i++;
	if (i >= argc)
		return wrong(o, "%s", "vmp rsh needs a nickname");
	if (take_destination(o, argv[i]))
		return -EINVAL;
	/* as with ssh, options may also stand behind the destination */
	for (i++; i < argc && argv[i][0] == '-' && argv[i][1]; i += used) {
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		if (take_word(o, argv[i], argv[i + 1], &used))
			return -EINVAL;
	}
	o->stays = i + 1 < argc && !strcmp(argv[i], "nohup");
	o->command = argv + i + o->stays;
	if (o->port && *o->command)
		return wrong(o, "%s", "-W carries a connection: a command beside it cannot run");
	return 0;
}

char *rsh_script(const struct rsh_order *o)
{
	size_t bytes = RSH_SCRIPT_EXTRA;
	char *text;
	int n = 0;

	for (char **word = o->command; *word; word++)
		bytes += strlen(*word) + 1;
	text = malloc(bytes);
	if (!text)
		return NULL;
	if (*o->user)
		n = snprintf(text, bytes, "[ \"$(id -un)\" = '%s' ] || { echo \"vmp: commands run "
			     "here as $(id -un), not as %s\" >&2; exit 125; }\n", o->user, o->user);
	for (char **word = o->command; *word; word++)
		n += snprintf(text + n, bytes - (size_t)n, "%s%s",
			      word == o->command ? "" : " ", *word);
	if (!*o->command)
		snprintf(text + n, bytes - (size_t)n, "exec \"${SHELL:-/bin/sh}\" -l");
	return text;
}
