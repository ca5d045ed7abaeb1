/* peer.c - the program vmp-peer: the daemon, and `vmp peer` and `vmp peers`, which ask it. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/limits.h"
#include "base/log.h"
#include "base/quantity.h"
#include "vpg/peer/asking.h"
#include "vpg/peer/borrowing.h"
#include "vpg/peer/carry.h"
#include "vpg/peer/choose.h"
#include "vpg/peer/invitation.h"
#include "vpg/peer/joining.h"
#include "vpg/peer/lending.h"
#include "vpg/peer/serving.h"

struct words {
	const char *verb, *name, *address, *ssh;
	char **rest;
	int n_rest;
	unsigned port;
	int anywhere;
	uint32_t for_ms;
	uint64_t processors, memory_mib, machines;	/* LIMIT_AS_IT_IS: not given */
	bool foreground, json;
};

static const char usage[] =
	"vmp peer start [--name NICK] [--port PORT] [--listen near|all] [--foreground]\n"
	"vmp peer invite [--for TIME] [--address HOST]\n"
	"vmp peer join INVITATION|- [--name NICK] [--ssh [USER@]HOST] [--port PORT]\n"
	"              [--listen near|all]\n"
	"vmp peer list [--json] | revoke NICK\n"
	"vmp peer dial [--ssh] [USER@]HOST:PORT\n"
	"vmp peer limits [--processors N|all] [--memory SIZE|all] [--machines N|all] [--json]\n"
	"vmp peer status | stop\n"
	"vmp peers [--json]\n"
	"\n"
	"Connects your computers into a network of their own. See vmp-peer(1).\n";

static int wrong(const char *what, const char *word)
{
	log_error("%s%s; see vmp peer --help", what, word);
	return EXIT_VMP_FAILURE;
}

/* ---- the commands ---- */

static int peer_start(const struct words *w)
{
	struct serve_order o = { w->name, w->port, w->anywhere, w->foreground };

	return serve_peer(&o);
}

/* Takes the invitation, which is a password: for "-" from standard input.  All users of a computer
 * see the words of its processes, so the word itself is overwritten. */
static void take_invitation(char *word, char text[INVITATION_TEXT])
{
	if (strcmp(word, "-")) {
		snprintf(text, INVITATION_TEXT, "%s", word);
		memset(word, '*', strlen(word));
		return;
	}
	if (isatty(0))
		fputs("invitation: ", stderr);
	if (!fgets(text, INVITATION_TEXT, stdin))
		*text = 0;
	text[strcspn(text, "\r\n")] = 0;
}

static int peer_join(const struct words *w)
{
	char host[256] = "", nick[NICK_BYTES], invitation[INVITATION_TEXT];
	struct join_order o = { invitation, w->name, w->ssh, w->port, w->anywhere > 0 };
	struct why why;

	take_invitation(w->rest[0], invitation);
	gethostname(host, sizeof host - 1);
	nick_of_host(host, nick);
	o.nick = w->name ? w->name : nick;
	if (join_network(&o, &why)) {
		log_error("%s", why.line);
		return EXIT_VMP_FAILURE;
	}
	printf("joined as %s; vmp peer start starts the daemon\n", o.nick);
	return fflush(stdout) ? EXIT_VMP_FAILURE : 0;
}

static int peer_invite(const struct words *w)
{
	return ask_invite(w->for_ms ? (w->for_ms + 999) / 1000 : INVITE_SECONDS,
			  w->address ? w->address : "");
}

/* [USER@]HOST:PORT */
static int peer_dial(const struct words *w)
{
	char *word = w->rest[0], *colon = strrchr(word, ':'), *at = strchr(word, '@');
	uint32_t port = 0;

	if (!colon || quantity_parse_number(colon + 1, &port) || !port || port > 65535)
		return wrong("not HOST:PORT: ", word);
	if (at && !w->ssh)
		return wrong("a user needs --ssh: ", word);
	*colon = 0;
	if (at)
		*at = 0;
	return ask_dial(at ? at + 1 : word, port, !w->ssh ? "" : at ? word : "-");
}

static int peer_connect(const struct words *w)
{
	uint32_t port = 0;

	if (quantity_parse_number(w->rest[0], &port) || !port || port > 65535)
		return wrong("not a port: ", w->rest[0]);
	return carry_connection(port);
}

static int peer_limits(const struct words *w)
{
	return ask_limits(w->processors, w->memory_mib, w->machines, w->json);
}

/* OTHERS PROCESSORS MIB MIN_MIB HOW [NICK | !NICK,NICK...] */
static int peer_borrow(const struct words *w)
{
	uint32_t n[4];
	enum choose_how how = choose_by_word(w->rest[4]);

	for (int i = 0; i < 4; i++)
		if (quantity_parse_number(w->rest[i], n + i))
			return wrong("not a number: ", w->rest[i]);
	if (how == CHOOSE_KINDS)
		return wrong("not near, spread or concentrate: ", w->rest[4]);
	const struct vpg_ASK_BORROW ask = { n[0], n[1], n[2], n[3], how,
					    w->n_rest > 5 ? w->rest[5] : "" };
	return borrow_for_machine(&ask);
}

static int peer_give_back(const struct words *w) { return borrow_give_back(w->rest[0]); }

static int peer_list(const struct words *w) { return ask_members(w->json); }
static int peer_revoke(const struct words *w) { return ask_revoke(w->rest[0]); }
static int peer_peers(const struct words *w) { return ask_peers(w->json); }
static int peer_status(const struct words *w) { return (void)w, ask_status(); }
static int peer_stop(const struct words *w) { return (void)w, ask_stop(); }

static const struct verb {
	const char *word;
	int n_words;
	const char *options;
	int (*function)(const struct words *);
} verbs[] = {
	{ "start", 0, "npLf", peer_start },
	{ "stop", 0, "", peer_stop },
	{ "status", 0, "", peer_status },
	{ "invite", 0, "ta", peer_invite },
	{ "join", 1, "nspL", peer_join },
	{ "list", 0, "j", peer_list },
	{ "revoke", 1, "", peer_revoke },
	{ "dial", 1, "S", peer_dial },
	{ "peers", 0, "j", peer_peers },
	{ "limits", 0, "PMNj", peer_limits },
	{ "connect", 1, "", peer_connect },	/* a daemon starts it */
	{ "borrow", 5, "", peer_borrow },	/* vmp starts these two */
	{ "give-back", 1, "", peer_give_back },
};

/* ---- the command line ---- */

static const struct option long_options[] = {
	{ "name", required_argument, NULL, 'n' },    { "port", required_argument, NULL, 'p' },
	{ "listen", required_argument, NULL, 'L' },  { "foreground", no_argument, NULL, 'f' },
	{ "for", required_argument, NULL, 't' },     { "address", required_argument, NULL, 'a' },
	{ "ssh", required_argument, NULL, 's' },     { "json", no_argument, NULL, 'j' },
	{ "processors", required_argument, NULL, 'P' }, { "memory", required_argument, NULL, 'M' },
	{ "machines", required_argument, NULL, 'N' }, { "help", no_argument, NULL, 'h' },
	{ 0 },
};
/* `vmp peer dial --ssh HOST:PORT`: the host is a word of its own. */
static const struct option dial_options[] = {
	{ "ssh", no_argument, NULL, 'S' }, { "help", no_argument, NULL, 'h' }, { 0 },
};

/* Takes a limit: a number, a size in MiB, or "all" for all that the computer has. */
static int take_limit(int letter, uint64_t *limit)
{
	uint32_t number = 0;
	int error = 0;

	if (!strcmp(optarg, "all"))
		number = LIMIT_MOST;
	else if (letter == 'M')
		error = quantity_parse_mib(optarg, &number);
	else
		error = quantity_parse_number(optarg, &number);
	*limit = number;
	return error || number > LIMIT_MOST ?
		wrong(letter == 'M' ? "not a size, as 512M or 2G: " : "not a number: ", optarg) : 0;
}

static int take_option(struct words *w, int letter)
{
	uint32_t port = 0;

	switch (letter) {
	case 'n':
		w->name = optarg;
		return nick_is_valid(optarg) ? 0 : wrong("not a nickname (letters, digits, -_.; at "
							 "most 32): ", optarg);
	case 'p':
		if (quantity_parse_number(optarg, &port) || !port || port > 65534)
			return wrong("not a port from 1 to 65534: ", optarg);
		w->port = port;
		return 0;
	case 'L':
		w->anywhere = !strcmp(optarg, "all");
		return w->anywhere || !strcmp(optarg, "near") ? 0 :
			wrong("--listen is near or all, not ", optarg);
	case 't':
		return quantity_parse_ms(optarg, &w->for_ms) || !w->for_ms ?
			wrong("not a time, as 90, 1.5s or 1m30s: ", optarg) : 0;
	case 'P': return take_limit(letter, &w->processors);
	case 'M': return take_limit(letter, &w->memory_mib);
	case 'N': return take_limit(letter, &w->machines);
	case 'a': w->address = optarg; return 0;
	case 's': w->ssh = optarg; return 0;
	case 'S': w->ssh = ""; return 0;
	case 'f': w->foreground = true; return 0;
	case 'j': w->json = true; return 0;
	default: return -1;
	}
}

/* Returns 0; 1 if help is asked for; or another number for an error. */
static int parse(struct words *w, const struct verb *v, int argc, char **argv)
{
	const struct option *table = v->function == peer_dial ? dial_options : long_options;
	int letter;

	opterr = 0;
	while ((letter = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (letter == 'h')
			return 1;
		if (letter == '?' || !strchr(v->options, letter))
			return wrong("no such option, or its value is missing: ", argv[optind - 1]);
		if (take_option(w, letter))
			return -1;
	}
	w->rest = argv + optind;
	w->n_rest = argc - optind;
	if (w->n_rest != v->n_words && !(v->function == peer_borrow && w->n_rest == 6))
		return wrong(w->n_rest < v->n_words ? "a word is missing after "
						    : "too much after ", v->word);
	return 0;
}

static int say_usage(void)
{
	return fputs(usage, stdout) < 0 || fflush(stdout) ? EXIT_VMP_FAILURE : 0;
}

int main(int argc, char **argv)
{
	struct words w = { .anywhere = -1, .processors = LIMIT_AS_IT_IS,
			   .memory_mib = LIMIT_AS_IT_IS, .machines = LIMIT_AS_IT_IS };
	const struct verb *v = NULL;
	int error;

	/* `vmp peer VERB ...` and `vmp peers ...` arrive as they were typed behind vmp */
	log_open("vmp", 2, LOG_WARN);
	umask(077);
	if (argc > 1 && !strcmp(argv[1], "peer"))
		argc--, argv++;
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return argc < 2 ? wrong("what shall I do?", "") : say_usage();
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (!strcmp(argv[1], verbs[i].word))
			v = verbs + i;
	if (!v)
		return wrong("no such command: vmp peer ", argv[1]);
	error = parse(&w, v, argc - 1, argv + 1);
	return error == 1 ? say_usage() : error ? EXIT_VMP_FAILURE : v->function(&w);
}
