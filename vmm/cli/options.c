/* options.c - see options.h. The tables first; the parser is a loop over them. */
#include "vmm/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/limits.h"
#include "base/netspec.h"
#include "base/quantity.h"
#include "vmm/cli/cluster/cluster_file.h"
#include "vmm/cli/foreign.h"
#include "vmm/cli/gdb/gdb_server.h"
#include "vmm/shared/placement.h"

enum option_kind {
	OPTION_FLAG,   /* no value: sets a bool */
	OPTION_TEXT,   /* value: a string */
	OPTION_NUMBER, /* value: min..max */
	OPTION_TIME,   /* value: a time, min..max ms */
	OPTION_LIST,   /* value: NAME=VALUE, may be repeated */
};

struct option_rule {
	const char *name;
	const char *value; /* the value's name in the help text, or NULL */
	unsigned verbs;	   /* bits 1 << enum verb */
	enum option_kind kind;
	size_t offset; /* in struct options */
	uint32_t min, max;
	const char *help;
};

#define ON(verb) (1u << (verb))
#define ON_BOOT (ON(VERB_RUN) | ON(VERB_UP))
#define ON_START (ON_BOOT | ON(VERB_SNAPSHOT))
#define ASKS 1u
#define PASSES 2u
#define BOOTS 0u
#define NONE 0u
enum {
	ON_MACHINE = 0
#define COMMAND(verb, word, machine, ...) | (machine & ASKS) << VERB_##verb
#include "vmm/cli/commands.def"
#undef COMMAND
	,
	ON_PASSED = 0
#define COMMAND(verb, word, machine, ...) | (machine & PASSES) / PASSES << VERB_##verb
#include "vmm/cli/commands.def"
#undef COMMAND
};
#define FIELD(name) offsetof(struct options, name)
#define STRING(number) STRING_OF(number)
#define STRING_OF(number) #number

/* The options of the command itself. base/machine.def has those that describe the machine. */
static const struct option_rule rules[] = {
	{ "cluster", "FILE", ON_START, OPTION_TEXT, FIELD(cluster), 0, 0,
	  "make the machine of the hosts that FILE names, reached by ssh; see vmp-cluster(5)" },
	{ "peers", "N", ON_BOOT, OPTION_NUMBER, FIELD(peers), 1, MAX_NODES - 1,
	  "make the machine of this computer and N others of your network, which are chosen and "
	  "reserved; see vmp-peer(1)" },
	{ "near", NULL, ON_BOOT, OPTION_FLAG, FIELD(peers_near), 0, 0,
	  "with --peers: one processor of each computer, the rest of the nearest ones (the "
	  "default)" },
	{ "spread", NULL, ON_BOOT, OPTION_FLAG, FIELD(peers_spread), 0, 0,
	  "with --peers: of each computer one processor in turn" },
	{ "concentrate", NULL, ON_BOOT, OPTION_FLAG, FIELD(peers_concentrate), 0, 0,
	  "with --peers: all processors of the nearest computer, then the next one; N at most" },
	{ "min-memory", "SIZE", ON_BOOT, OPTION_TEXT, FIELD(min_memory), 0, 0,
	  "with --peers: only computers that have so much memory free" },
	{ "share", "DIR[,live[,ro]]", ON_BOOT, OPTION_TEXT, FIELD(share), 0, 0,
	  "copy DIR into the guest as /share, the current folder, or, live, let the guest work "
	  "in it; ro: read only" },
	{ "root", "DIR|TAR|IMAGE[,ro|,snapshot]", ON_BOOT, OPTION_TEXT, FIELD(root), 0, 0,
	  "the guest's files are those of a folder, an archive or an image of ext4; without "
	  "COMMAND its own init runs" },
	{ "no-reboot", NULL, ON_BOOT, OPTION_FLAG, FIELD(no_reboot), 0, 0,
	  "with a root that has its own init: when the guest restarts, the machine ends" },
	{ "workdir", "DIR", ON_BOOT | ON(VERB_EXEC), OPTION_TEXT, FIELD(workdir), 0, 0,
	  "the folder of the guest in which the command starts, made if need be; default: /share "
	  "or the user's home" },
	{ "user", "NAME|UID[:GID]", ON_BOOT | ON(VERB_EXEC), OPTION_TEXT, FIELD(user), 0, 0,
	  "who the command or shell is in the guest; default root" },
	{ "hostname", "NAME", ON_BOOT, OPTION_TEXT, FIELD(hostname), 0, 0,
	  "the guest's host name; default: that of --name, or vmp" },
	{ "env", "NAME[=VALUE]", ON_BOOT | ON(VERB_EXEC), OPTION_LIST, FIELD(env), 0, 0,
	  "put a variable into the command's environment (NAME alone: as it is here); may be "
	  "repeated" },
	{ "checkpoint-file", "FILE", ON_START, OPTION_TEXT, FIELD(checkpoint_file), 0, 0,
	  "write each checkpoint to FILE, too, for vmp snapshot load: in another computer's folder "
	  "it outlives this one" },
	{ "timeout", "TIME", ON(VERB_RUN) | ON(VERB_SNAPSHOT), OPTION_TIME, FIELD(timeout_ms), 1,
	  1000000000, "give up after TIME (as 90, 1.5s or 2m), with status 125" },
	{ "stats", "FILE", ON(VERB_RUN) | ON(VERB_SNAPSHOT), OPTION_TEXT, FIELD(stats), 0, 0,
	  "when the command has ended, write what was counted, as JSON" },
	{ "trace", "FILE", ON(VERB_RUN) | ON(VERB_SNAPSHOT), OPTION_TEXT, FIELD(trace), 0, 0,
	  "when the command has ended, write every fetch of a page, as JSON for ui.perfetto.dev" },
	{ "report", "FILE", ON_START, OPTION_TEXT, FIELD(report), 0, 0,
	  "when the machine has ended, write what it did as a page for a browser; FILE.json: as a "
	  "record for `vmp report --from`" },
	{ "for", "TIME", ON(VERB_REPORT), OPTION_TIME, FIELD(for_ms), 1, 1000000000,
	  "look for so long, or until the machine ends or Ctrl-C; default 10s" },
	{ "from", "FILE.json", ON(VERB_REPORT), OPTION_TEXT, FIELD(from), 0, 0,
	  "make the page of this record of a run, instead of a running machine" },
	{ "summary", NULL, ON(VERB_RUN) | ON(VERB_SNAPSHOT), OPTION_FLAG, FIELD(summary), 0, 0,
	  "when the command has ended, print a short account on standard error" },
	{ "log", "FILE", ON_START, OPTION_TEXT, FIELD(log), 0, 0,
	  "write kernel messages and the daemons' log there (- is standard error)" },
	{ "name", "NAME", ON_BOOT | ON_MACHINE, OPTION_TEXT, FIELD(name), 0, 0,
	  "the machine's name, for the other commands; the only running machine needs none" },
	{ "append", "TEXT", ON_BOOT, OPTION_TEXT, FIELD(append), 0, 0,
	  "add to the guest kernel's command line" },
	{ "kernel", "FILE", ON_BOOT, OPTION_TEXT, FIELD(kernel), 0, 0,
	  "boot this vmlinux instead of the one that make built" },
	{ "image", "FILE", ON_BOOT, OPTION_TEXT, FIELD(image), 0, 0,
	  "unpack this cpio archive (gzip too) instead of the guest image that make built" },
	{ "gdb", "HOST:PORT[,nowait]", ON_START, OPTION_TEXT, FIELD(gdb), 0, 0,
	  "serve a GDB on this port of this computer, as 127.0.0.1:1234; the machine waits for it "
	  "unless nowait" },
	{ "tty", NULL, ON(VERB_EXEC), OPTION_FLAG, FIELD(tty), 0, 0,
	  "give the command a terminal, as large as this one; also -t, -it" },
	{ "top", "N", ON(VERB_PAGES), OPTION_NUMBER, FIELD(top), 1, 100000,
	  "how many pages to list; default 20" },
	{ "listen", "HOST:PORT", ON(VERB_METRICS) | ON(VERB_WEB), OPTION_TEXT, FIELD(listen), 0, 0,
	  "serve on this port of this computer, as 127.0.0.1:9100; port 0: a free one" },
	{ "token", "FILE", ON(VERB_METRICS) | ON(VERB_WEB), OPTION_TEXT, FIELD(token), 0, 0,
	  "the file with the token that a request must show, made if there is none; default: "
	  "metrics: ~/.config/vmp/token; web: a new one each time" },
	{ "all", NULL, ON(VERB_DOWN), OPTION_FLAG, FIELD(all), 0, 0,
	  "every machine of yours that runs" },
	{ "follow", NULL, ON(VERB_LOGS), OPTION_FLAG, FIELD(follow), 0, 0,
	  "go on with what comes, until the machine ends or Ctrl-C" },
	{ "json", NULL,
	  ON(VERB_STATUS) | ON(VERB_REGS) | ON(VERB_PAGES) | ON(VERB_DOCTOR) | ON(VERB_PS),
	  OPTION_FLAG, FIELD(json), 0, 0, "print JSON" },
	{ "help", NULL, ~0u, OPTION_FLAG, FIELD(help), 0, 0, "this text" },
};

static const struct {
	const char *name, *usage, *what;
} verbs[VERB_COUNT] = {
#define COMMAND(verb, word, machine, function, usage, what) [VERB_##verb] = { word, usage, what },
#include "vmm/cli/commands.def"
#undef COMMAND
};

static int fail(struct options *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int fail(struct options *o, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(o->error, sizeof o->error, format, args);
	va_end(args);
	return -EINVAL;
}

#define IDE_SUFFIX ",ide"

bool options_disk_is_ide(const char *spec)
{
	size_t n = strlen(spec), suffix = strlen(IDE_SUFFIX);

	return n > suffix && !strcmp(spec + n - suffix, IDE_SUFFIX);
}

unsigned options_ide_disks(const struct machine *m)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->disk.n; i++)
		n += options_disk_is_ide(m->disk.item[i]);
	return n;
}

const char *options_disk_written(const struct machine *m)
{
	size_t ignored;

	for (unsigned i = 0; i < m->disk.n; i++)
		if (options_disk_mode(m->disk.item[i], &ignored) == DISK_READ_WRITE)
			return m->disk.item[i];
	return NULL;
}

bool options_root_boots(const struct options *o)
{
	return o->verb == VERB_UP || !o->command;
}

enum disk_mode options_disk_mode(const char *spec, size_t *path_bytes)
{
	static const struct { const char *suffix; enum disk_mode mode; } modes[] = {
		{ ",ro", DISK_READ_ONLY }, { ",snapshot", DISK_SNAPSHOT },
	};
	size_t n = strlen(spec) - (options_disk_is_ide(spec) ? strlen(IDE_SUFFIX) : 0);

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		size_t suffix = strlen(modes[i].suffix);

		if (n > suffix && !strncmp(spec + n - suffix, modes[i].suffix, suffix)) {
			*path_bytes = n - suffix;
			return modes[i].mode;
		}
	}
	*path_bytes = n;
	return DISK_READ_WRITE;
}

static int set_number(struct options *o, const struct option_rule *rule, const char *value)
{
	uint32_t number = 0;
	int error = quantity_parse_number(value, &number);

	if (error == -EINVAL)
		return fail(o, "--%s %s: not a whole number", rule->name, value);
	if (error || number < rule->min || number > rule->max)
		return fail(o, "--%s %s: must be from %u to %u", rule->name, value, rule->min,
			    rule->max);
	*(uint32_t *)((char *)o + rule->offset) = number;
	return 0;
}

static int set_time(struct options *o, const struct option_rule *rule, const char *value)
{
	char least[16], most[16];
	uint32_t ms = 0;
	int error = quantity_parse_ms(value, &ms);

	quantity_print_ms(rule->min, least, sizeof least);
	quantity_print_ms(rule->max, most, sizeof most);
	if (error == -EINVAL)
		return fail(o, "--%s %s: not a time; write it as 90, 1.5s or 2m", rule->name,
			    value);
	if (error == -EDOM)
		return fail(o, "--%s %s: must be a whole number of milliseconds", rule->name,
			    value);
	if (error || ms < rule->min || ms > rule->max)
		return fail(o, "--%s %s: must be from %s to %s", rule->name, value, least, most);
	*(uint32_t *)((char *)o + rule->offset) = ms;
	return 0;
}

/* Returns NAME=VALUE from this process's environment, or NULL. */
static const char *inherited(const char *name)
{
	size_t n = strlen(name);

	for (char **e = environ; *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e;
	return NULL;
}

static int set_list(struct options *o, const struct option_rule *rule, const char *value)
{
	const char *variable = strchr(value, '=') ? value : inherited(value);

	if (!*value || value[0] == '=')
		return fail(o, "--%s %s: must be NAME=VALUE", rule->name, value);
	if (!variable)
		return fail(o, "--%s %s: there is no such variable here; write it as NAME=VALUE",
			    rule->name, value);
	if (o->n_env == MAX_ENV_OPTIONS)
		return fail(o, "--%s: at most %d variables", rule->name, MAX_ENV_OPTIONS);
	o->env[o->n_env++] = variable;
	return 0;
}

static int apply(struct options *o, const struct option_rule *rule, const char *value)
{
	switch (rule->kind) {
	case OPTION_FLAG:
		*(bool *)((char *)o + rule->offset) = true;
		return 0;
	case OPTION_TEXT:
		if (!*value)
			return fail(o, "--%s needs a value: --%s %s", rule->name, rule->name,
				    rule->value);
		*(const char **)((char *)o + rule->offset) = value;
		return 0;
	case OPTION_NUMBER:
		return set_number(o, rule, value);
	case OPTION_TIME:
		return set_time(o, rule, value);
	case OPTION_LIST:
		return set_list(o, rule, value);
	}
	return -EINVAL;
}

/* An option of either table: machine_rows (base/machine.def) or rules. */
struct option {
	const char *name, *value, *help;
	unsigned verbs;
	const struct machine_row *row;	/* the row in machine_rows, or NULL */
	const struct option_rule *rule; /* the row in rules, if `row` is NULL */
};

enum { N_OPTIONS = MACHINE_ROWS + ARRAY_LEN(rules) };

static struct option option_at(size_t i)
{
	static const unsigned verbs_of[] = {
		[MACHINE_TYPED_NO] = 0,
		[MACHINE_TYPED_BOOT] = ON_BOOT,
		[MACHINE_TYPED_START] = ON_START,
	};

	if (i < MACHINE_ROWS) {
		const struct machine_row *row = &machine_rows[i];

		return (struct option){ row->word, row->value, row->help, verbs_of[row->typed],
					row, NULL };
	}
	const struct option_rule *rule = &rules[i - MACHINE_ROWS];

	return (struct option){ rule->name, rule->value, rule->help, rule->verbs, NULL, rule };
}

static int apply_option(struct options *o, const struct option *option, const char *value)
{
	if (strcmp(option->name, "name") && strcmp(option->name, "help"))
		o->typed++;
	if (option->row)
		return machine_set(&o->machine, option->row, value, o->error, sizeof o->error);
	return apply(o, option->rule, value);
}

/* Takes the next word as the option's value.  A word that looks like an option is an error: in
 * `--stats -- nproc` the user has forgotten the value. */
static int take_value(struct options *o, const struct option *option, int argc, char **argv, int *i,
		      const char **value)
{
	if (*i + 1 >= argc)
		return fail(o, "--%s needs a value: --%s %s", option->name, option->name,
			    option->value);
	*value = argv[++*i];
	if (!strcmp(*value, "--"))
		return fail(o, "--%s needs a value before --: --%s %s", option->name, option->name,
			    option->value);
	if (!strncmp(*value, "--", 2))
		return fail(o, "--%s needs a value, and %s is an option; a value that begins with "
			    "-- is written as --%s=%s",
			    option->name, *value, option->name, *value);
	return 0;
}

/* Finds the option whose name has `n` bytes.  Returns false if there is none. */
static bool find_option(const char *name, size_t n, struct option *option)
{
	for (size_t at = 0; at < N_OPTIONS; at++) {
		*option = option_at(at);
		if (option->verbs && strlen(option->name) == n && !memcmp(option->name, name, n))
			return true;
	}
	return false;
}

/* Applies an option.  `value` comes from the option's own word, or is NULL. Leaves *i at the last
 * word that the option uses. */
static int take_option(struct options *o, const struct option *option, const char *value, int argc,
		       char **argv, int *i)
{
	if (!(option->verbs & ON(o->verb)))
		return fail(o, "--%s is not an option of `vmp %s`; see `vmp help %s`", option->name,
			    verbs[o->verb].name, verbs[o->verb].name);
	if (!option->value && value)
		return fail(o, "--%s takes no value", option->name);
	if (option->value && !value && take_value(o, option, argc, argv, i, &value))
		return -EINVAL;
	return apply_option(o, option, value);
}

/* Takes an option under the name that another program has for it (foreign.def). */
static int take_foreign(struct options *o, int argc, char **argv, int *i)
{
	const char *word = argv[*i], *value;
	const struct foreign *row = foreign_option(word, o->verb == VERB_EXEC, &value);
	struct option option;

	if (!row)
		return fail(o, "no such option: %.*s; see `vmp help %s`", (int)strcspn(word, "="),
			    word, verbs[o->verb].name);
	if (row->kind == FOREIGN_NOTHING)
		return 0;
	if (row->kind == FOREIGN_SAME && find_option(row->text, strlen(row->text), &option))
		return take_option(o, &option, value, argc, argv, i);
	return fail(o, "no such option: %s; %s", row->word, row->text);
}

/* Parses one option at argv[*i].  Leaves *i at its last word. */
static int parse_option(struct options *o, int argc, char **argv, int *i)
{
	const char *word = argv[*i] + 2, *equals = strchr(word, '=');
	size_t n = equals ? (size_t)(equals - word) : strlen(word);
	const char *ignored;
	struct option option;

	if (!strncmp(argv[*i], "--", 2) && find_option(word, n, &option) &&
	    ((option.verbs & ON(o->verb)) || !foreign_option(argv[*i], false, &ignored)))
		return take_option(o, &option, equals ? equals + 1 : NULL, argc, argv, i);
	return take_foreign(o, argc, argv, i);
}

bool options_describe(enum verb verb, size_t i, struct option_info *info)
{
	for (size_t at = 0; at < N_OPTIONS; at++) {
		const struct option option = option_at(at);

		if (!(option.verbs & ON(verb)) || !option.help || i--)
			continue;
		*info = (struct option_info){ option.name, option.value, option.help,
					      option.row ? option.row->names : NULL };
		return true;
	}
	return false;
}

const char *options_verb_word(enum verb verb) { return verbs[verb].name; }
const char *options_verb_what(enum verb verb) { return verbs[verb].what; }

bool options_is_typed(enum verb verb)
{
	return verb != VERB_STANDBY && verb != VERB_COMPLETE && verb != VERB_VERSION;
}

bool options_takes_name(enum verb verb)
{
	return ON(verb) & ON_MACHINE &
	       ~(ON(VERB_CPU) | ON(VERB_HOST) | ON(VERB_POLICY) | ON(VERB_SNAPSHOT) |
		 ON(VERB_REPORT));
}

int options_find_verb(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (!strcmp(word, verbs[i].name))
			return (int)i;
	return -1;
}

static int parse_verb(struct options *o, const char *word)
{
	static const struct { const char *word; enum verb verb; } words[] = {
		{ "--version", VERB_VERSION }, { "-V", VERB_VERSION },
		{ "--help", VERB_HELP }, { "-h", VERB_HELP },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(word, words[i].word)) {
			o->verb = words[i].verb;
			return 0;
		}
	if (options_find_verb(word) >= 0) {
		o->verb = (enum verb)options_find_verb(word);
		return 0;
	}
	if (foreign_command(word))
		return fail(o, "no such command: %s; %s", word, foreign_command(word));
	return fail(o, "no such command: %s; see `vmp help`", word);
}

static int check_name(struct options *o)
{
	size_t n = strlen(o->name);

	if (n >= MAX_NAME)
		return fail(o, "--name %.16s...: longer than %d characters", o->name, MAX_NAME - 1);
	for (size_t i = 0; i < n; i++) {
		char c = o->name[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (i && strchr("-_.", c))))
			return fail(o, "--name %s: only letters, digits, and -_. after the first",
				    o->name);
	}
	return 0;
}

/* Checks a name as networks have it: letters, digits and hyphens, in parts that dots separate. */
static int check_hostname(struct options *o)
{
	size_t n = strlen(o->hostname), part = 0;

	if (n >= MAX_NAME)
		return fail(o, "--hostname %.16s...: longer than %d characters", o->hostname,
			    MAX_NAME - 1);
	for (size_t i = 0; i <= n; i++) {
		char c = o->hostname[i];

		if ((c == '.' || !c) ? !part || o->hostname[i - 1] == '-'
				     : !isalnum((unsigned char)c) && (c != '-' || !part))
			return fail(o, "--hostname %s: only letters and digits, with - and . "
				       "between them", o->hostname);
		part = c == '.' ? 0 : part + 1;
	}
	return 0;
}

/* Checks NAME, UID or UID:GID. The guest's init finds out whether the guest has a user NAME. */
static int check_user(struct options *o)
{
	const char *colon = strchr(o->user, ':');
	char uid[16];
	uint32_t id;

	if (isalpha((unsigned char)*o->user) && !colon && strlen(o->user) < MAX_NAME &&
	    !strpbrk(o->user, " /"))
		return 0;
	snprintf(uid, sizeof uid, "%.*s", colon ? (int)(colon - o->user) : (int)sizeof uid - 1,
		 o->user);
	if (quantity_parse_number(uid, &id) || id == UINT32_MAX ||
	    (colon && (quantity_parse_number(colon + 1, &id) || id == UINT32_MAX)))
		return fail(o, "--user %.64s: must be a name, or numbers as UID or UID:GID",
			    o->user);
	return 0;
}

/* Takes apart --share DIR[,live[,ro]]. */
static int split_share(struct options *o)
{
	static const char *const ends[] = { ",live", ",live,ro" };
	size_t n = strlen(o->share);

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		size_t end = strlen(ends[i]);

		if (n <= end || strcmp(o->share + n - end, ends[i]))
			continue;
		o->share = strndup(o->share, n - end);
		if (!o->share)
			return fail(o, "no memory");
		o->share_live = true;
		o->share_read_only = i == 1;
		return 0;
	}
	return 0;
}

/* Checks the options about the command's surroundings in the guest. */
static int check_place(struct options *o)
{
	if (o->workdir && *o->workdir != '/')
		return fail(o, "--workdir %s: must begin with /, as /tmp", o->workdir);
	if (o->hostname && check_hostname(o))
		return -EINVAL;
	if (o->share && !o->share_live && split_share(o))
		return -EINVAL;
	return o->user ? check_user(o) : 0;
}

/* Checks what checkpoints need.  The machine must be able to go back: to other hosts, and with its
 * disk as it was then (iosrv/undolog.h), which a file elsewhere cannot have. */
static int check_checkpoint(struct options *o)
{
	const char *written = options_disk_written(&o->machine);

	if (o->machine.checkpoint_ms && o->share_live)
		return fail(o, "--checkpoint: a machine with a live folder cannot be saved yet; "
			       "--share DIR without ,live copies it");
	if (!o->machine.checkpoint_ms)
		return o->checkpoint_file ? fail(o, "--checkpoint-file needs --checkpoint TIME: "
						    "how often it is written") : 0;
	if (o->machine.hosts == 1)
		return fail(o, "--checkpoint needs --hosts 2 or more: when the only host is lost, "
			       "none is left to go on");
	if (written && o->checkpoint_file)
		return fail(o, "--checkpoint-file needs --disk %.200s,snapshot (or ,ro): the file "
			       "does not have what the machine writes to its image", written);
	return 0;
}

static int check_peers(struct options *o)
{
	int ways = o->peers_near + o->peers_spread + o->peers_concentrate;
	uint32_t mib;

	if (!o->peers)
		return ways || o->min_memory ? fail(o, "--near, --spread, --concentrate and "
						    "--min-memory choose computers for --peers N")
					     : 0;
	if (o->cluster || o->machine.hosts)
		return fail(o, "--peers N chooses the hosts: leave %s away",
			    o->cluster ? "--cluster" : "--hosts");
	if (ways > 1)
		return fail(o, "--near, --spread and --concentrate: one of them");
	if (o->min_memory && quantity_parse_mib(o->min_memory, &mib))
		return fail(o, "--min-memory %s: not a size, as 512M or 2G", o->min_memory);
	if (!o->machine.cpus)
		o->machine.cpus = o->peers + 1;
	if (o->machine.cpus <= o->peers && !o->peers_concentrate)
		return fail(o, "--peers %u is more than --cpus %u: each computer gives a "
			       "processor; with --concentrate fewer computers are taken",
			    o->peers, o->machine.cpus);
	return 0;
}

/* Sets the engine when no --engine was given: from VMP_ENGINE, or the default. */
static int choose_engine(struct options *o)
{
	const char *name = getenv("VMP_ENGINE");

	if (!o->machine.strict && name)
		return machine_set(&o->machine, &machine_rows[MACHINE_ROW_engine], name, o->error,
				   sizeof o->error);
	o->machine.engine = o->machine.strict ? ENGINE_PTRACE : ENGINE_DIRECT;
	return 0;
}

/* Takes VMP_POLICY and VMP_WITHOUT.  It runs before the options are parsed: --policy overrides the
 * one, and --without adds to the other. */
static int take_environment(struct options *o)
{
	static const struct { const char *variable; unsigned row; } from[] = {
		{ "VMP_POLICY", MACHINE_ROW_policy }, { "VMP_WITHOUT", MACHINE_ROW_without },
	};

	for (unsigned i = 0; i < ARRAY_LEN(from); i++) {
		const char *value = getenv(from[i].variable);

		if (value && *value &&
		    machine_set(&o->machine, &machine_rows[from[i].row], value, o->error,
				sizeof o->error))
			return -EINVAL;
	}
	return 0;
}

/* Checks the options against each other and sets the defaults that depend on several of them. */
static int check_together(struct options *o, uint32_t host_cpus)
{
	struct gdb_address gdb;
	struct netspec net;
	struct problem p;

	if (check_peers(o))
		return -EINVAL;
	if (!o->machine.hosts && !o->cluster && !o->peers && o->verb != VERB_SNAPSHOT)
		o->machine.hosts = 1;
	if (!o->machine.engine && choose_engine(o))
		return -EINVAL;
	if (o->verb == VERB_UP && (o->log ? !strcmp(o->log, "-") : o->machine.verbose))
		return fail(o, "`vmp up` returns before the machine ends: give its log a file with "
			       "--log FILE");
	if (o->machine.net && netspec_parse(&net, o->machine.net, o->error, sizeof o->error))
		return -EINVAL;
	if (o->verb == VERB_METRICS && o->token && !o->listen)
		return fail(o, "--token needs --listen HOST:PORT: without it, the metrics are "
			       "printed");
	if (o->gdb && gdb_address_parse(o->gdb, &gdb, &p))
		return fail(o, "%s", p.line);
	if ((o->name && check_name(o)) || check_place(o) || check_checkpoint(o))
		return -EINVAL;
	if (o->verb == VERB_SNAPSHOT)
		return 0; /* the snapshot says how many processors there are */
	if (o->cluster && (o->verb == VERB_RUN || o->verb == VERB_UP))
		return 0; /* the cluster's file says how many hosts there are */
	if (o->peers)
		return 0; /* so do the computers that are borrowed */
	if (!o->machine.cpus) {
		o->machine.cpus = o->machine.hosts > host_cpus ? o->machine.hosts : host_cpus;
		if (o->machine.cpus > MAX_CPUS)
			o->machine.cpus = MAX_CPUS;
	}
	if (o->machine.hosts > o->machine.cpus)
		return fail(o, "--hosts %u is more than --cpus %u: each host needs a processor",
			    o->machine.hosts, o->machine.cpus);
	if (o->machine.host_mem_mib &&
	    (uint64_t)o->machine.hosts * o->machine.host_mem_mib < o->machine.mem_mib)
		return fail(o, "--host-mem %uM on %u host%s is less than --mem %uM",
			    o->machine.host_mem_mib, o->machine.hosts,
			    o->machine.hosts == 1 ? "" : "s", o->machine.mem_mib);
	return 0;
}

/* Takes a host's number or name.  The machine finds out whether it has that host. */
static int take_host(struct options *o, const char *word, const char *command)
{
	int error = quantity_parse_number(word, &o->to_host);

	if (error && (!isalpha((unsigned char)*word) || strlen(word) >= MAX_HOST_NAME))
		return fail(o, "%s: %.64s is neither the number nor the name of a host", command,
			    word);
	o->host = error ? word : NULL;
	return 0;
}

/* Takes what follows `vmp cpu`: move CPU HOST. The machine finds out whether it has them. */
static int take_cpu_words(struct options *o, char **words, unsigned n)
{
	if (n && strcmp(words[0], "move"))
		return fail(o, "vmp cpu %s: no such command; see `vmp help cpu`", words[0]);
	if (n != 3)
		return fail(o, "`vmp cpu move` needs a processor and a host, and nothing else: vmp "
			       "cpu move 1 0");
	if (quantity_parse_number(words[1], &o->cpu))
		return fail(o, "vmp cpu move: %s is not the number of a processor", words[1]);
	return take_host(o, words[2], "vmp cpu move");
}

/* Takes what follows `vmp host`: add [HOST], or remove HOST. */
static int take_host_words(struct options *o, char **words, unsigned n)
{
	o->add = n && !strcmp(words[0], "add");
	if (n && !o->add && strcmp(words[0], "remove"))
		return fail(o, "vmp host %s: no such command; see `vmp help host`", words[0]);
	if (n != 2 && !(o->add && n == 1))
		return fail(o, "`vmp host` needs add, or remove and a host: vmp host remove 1");
	if (o->add) {
		o->host = words[1] ? words[1] : "";
		if (strlen(o->host) >= MAX_HOST_NAME)
			return fail(o, "vmp host add %.16s...: longer than %d characters", o->host,
				    MAX_HOST_NAME - 1);
		return 0;
	}
	return take_host(o, words[1], "vmp host remove");
}

static int take_policy_words(struct options *o, char **words, unsigned n)
{
	if (n != 1)
		return fail(o, "`vmp policy` needs one of spread, concentrate, auto and fixed");
	if (policy_of_name(words[0]) < 0)
		return fail(o, "vmp policy %s: no such policy; see `vmp help policy`", words[0]);
	o->machine.policy = (uint32_t)policy_of_name(words[0]);
	return 0;
}

/* Takes what follows `vmp snapshot`: save FILE, or load FILE. */
static int take_snapshot_words(struct options *o, char **words, unsigned n)
{
	o->save = n && !strcmp(words[0], "save");
	if (n && !o->save && strcmp(words[0], "load"))
		return fail(o, "vmp snapshot %s: no such command; see `vmp help snapshot`",
			    words[0]);
	if (n != 2 || !*words[1])
		return fail(o, "`vmp snapshot` needs save or load, and one file: "
			       "vmp snapshot save FILE");
	if (o->save && o->typed)
		return fail(o, "`vmp snapshot save` has one option, --name; "
			       "the others belong to load");
	o->file = words[1];
	return 0;
}

/* Takes what follows `vmp report`: the file. */
static int take_report_words(struct options *o, char **words, unsigned n)
{
	if (n != 1 || !*words[0])
		return fail(o, "`vmp report` needs one file, and --name NAME for the machine: vmp "
			       "report FILE.html");
	if (o->from && o->typed > 1)
		return fail(o, "`vmp report --from FILE.json` has no other option: the record is "
			       "there");
	o->file = words[0];
	return 0;
}

/* Commands that ask a running machine take words that are not options. */
static bool takes_words(enum verb verb) { return ON(verb) & ON_MACHINE; }

/* Takes a machine's name as a word, which means the same as --name NAME. */
static int take_name_word(struct options *o, char **words, unsigned n)
{
	if (n > 1)
		return fail(o, "`vmp %s` takes one name, and no argument %s", verbs[o->verb].name,
			    words[1]);
	if (n && o->name && strcmp(o->name, words[0]))
		return fail(o, "`vmp %s %s --name %s`: which of the two?", verbs[o->verb].name,
			    words[0], o->name);
	if (n)
		o->name = words[0];
	if (o->all && o->name)
		return fail(o, "--all is every machine, not %s alone", o->name);
	return 0;
}

/* Hands the words that are not options to the function of their verb. */
static int take_words(struct options *o, char **words, unsigned n)
{
	switch (o->verb) {
	case VERB_CPU: return take_cpu_words(o, words, n);
	case VERB_HOST: return take_host_words(o, words, n);
	case VERB_POLICY: return take_policy_words(o, words, n);
	case VERB_SNAPSHOT: return take_snapshot_words(o, words, n);
	case VERB_REPORT: return take_report_words(o, words, n);
	default: return takes_words(o->verb) ? take_name_word(o, words, n) : 0;
	}
}

/* `vmp help VERB` is `vmp VERB --help`. */
static int parse_help_topic(struct options *o, int argc, char **argv)
{
	if (argc < 3 || argv[2][0] == '-')
		return 0;
	if (parse_verb(o, argv[2]))
		return -EINVAL;
	o->help = true;
	return 0;
}

int options_parse(struct options *o, int argc, char **argv, uint32_t host_cpus)
{
	enum { MAX_WORDS = 3 };
	/* words[MAX_WORDS] stands for all words that are too many */
	char *words[MAX_WORDS + 1] = { NULL };
	unsigned n_words = 0;

	*o = (struct options){ .top = 20, .for_ms = 10000 };
	machine_defaults(&o->machine);
	if (argc < 2) {
		o->verb = VERB_HELP;
		return fail(o, "what shall I do? For example: vmp run -- nproc; see `vmp help`");
	}
	if (parse_verb(o, argv[1]) || take_environment(o))
		return -EINVAL;
	if (o->verb == VERB_HELP)
		return parse_help_topic(o, argc, argv);
	if (ON(o->verb) & ON_PASSED) { /* another program reads the words */
		o->command = argv + 1;
		return 0;
	}
	for (int i = 2; i < argc; i++) {
		bool separator = !strcmp(argv[i], "--");

		if (takes_words(o->verb) && argv[i][0] != '-' &&
		    !(o->verb == VERB_EXEC && (n_words || o->name))) {
			words[n_words < MAX_WORDS ? n_words : MAX_WORDS] = argv[i];
			n_words++;
			continue;
		}
		if (!strcmp(argv[i], "-h")) {
			o->help = true;
			continue;
		}
		if (!separator && argv[i][0] == '-') {
			if (parse_option(o, argc, argv, &i))
				return -EINVAL;
			continue;
		}
		if (o->verb != VERB_RUN && o->verb != VERB_EXEC && o->verb != VERB_COMPLETE)
			return fail(o, "`vmp %s` takes no argument %s", verbs[o->verb].name,
				    argv[i]);
		o->command = argv + i + separator;
		if (o->verb == VERB_RUN && (!o->command[0] || !o->command[0][0]))
			return fail(o, "no command after --; leave out -- for a shell");
		break;
	}
	if (o->help)
		return 0;
	if (take_words(o, words, n_words))
		return -EINVAL;
	if (o->verb == VERB_EXEC && (!o->command || !o->command[0] || !o->command[0][0]))
		return fail(o, "what shall run? vmp exec %s -- COMMAND ARG...",
			    o->name ? o->name : "NAME");
	return check_together(o, host_cpus);
}

/* Appends a piece of text, as snprintf does: returns the length even if `out` is too small. */
static size_t put(char *out, size_t bytes, size_t at, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static size_t put(char *out, size_t bytes, size_t at, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(at < bytes ? out + at : NULL, at < bytes ? bytes - at : 0, format, args);
	va_end(args);
	return at + (n > 0 ? n : 0);
}

static size_t put_overview(char *out, size_t bytes)
{
	size_t at = put(out, bytes, 0, "vmp: one shared-memory IA-32 multiprocessor made of many "
			"hosts\n\n");

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (options_is_typed(i) || i == VERB_VERSION)
			at = put(out, bytes, at, "  %s\n", verbs[i].usage);
	return put(out, bytes, at, "\n`vmp help COMMAND` says more. A first one to try: vmp run "
		   "--hosts 2 --cpus 2 -- nproc\n");
}

size_t options_help(enum verb verb, char *out, size_t bytes)
{
	size_t at;

	if (verb == VERB_HELP)
		return put_overview(out, bytes);
	at = put(out, bytes, 0, "%s\n\n%s\n\n", verbs[verb].usage, verbs[verb].what);
	for (size_t i = 0; i < N_OPTIONS; i++) {
		const struct option option = option_at(i);
		char left[48];

		if (!(option.verbs & ON(verb)) || !option.help)
			continue;
		snprintf(left, sizeof left, "--%s%s%s", option.name, option.value ? " " : "",
			 option.value ? option.value : "");
		at = put(out, bytes, at,
			 strlen(left) > 18 ? "  %s\n  %18s  %s\n" : "  %-18s%s  %s\n", left, "",
			 option.help);
	}
	return at;
}
