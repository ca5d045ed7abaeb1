/* options.c - see options.h. The tables first; the parser is a loop over them. */
#include "vmm/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/limits.h"
#include "base/quantity.h"
#include "vmm/cli/cluster/cluster_file.h"
#include "vmm/cli/gdb/gdb_server.h"
#include "vmm/shared/placement.h"

enum option_kind {
	OPTION_FLAG,   /* no value: sets a bool */
	OPTION_TEXT,   /* value: a string */
	OPTION_NUMBER, /* value: min..max */
	OPTION_LIST,   /* value: NAME=VALUE, may be repeated */
};

struct option_rule {
	const char *name;
	const char *value; /* its name in the help, or NULL */
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
#define BOOTS 0u
#define NONE 0u
enum {
	ON_MACHINE = 0
#define COMMAND(verb, word, machine, ...) | machine << VERB_##verb
#include "vmm/cli/commands.def"
#undef COMMAND
};
#define FIELD(name) offsetof(struct options, name)
#define STRING(number) STRING_OF(number)
#define STRING_OF(number) #number

/* What concerns the command alone; what the machine is like, see base/machine.def. */
static const struct option_rule rules[] = {
	{ "cluster", "FILE", ON_START, OPTION_TEXT, FIELD(cluster), 0, 0,
	  "make the machine of the hosts that FILE names, reached by ssh; see vmp-cluster(5)" },
	{ "share", "DIR", ON_BOOT, OPTION_TEXT, FIELD(share), 0, 0,
	  "copy DIR into the guest as /share, the current folder; at most a quarter of the guest's memory" },
	{ "env", "NAME=VALUE", ON_BOOT, OPTION_LIST, FIELD(env), 0, 0,
	  "put a variable into the command's environment; may be repeated" },
	{ "checkpoint-file", "FILE", ON_START, OPTION_TEXT, FIELD(checkpoint_file), 0, 0,
	  "write each checkpoint to FILE, too, for vmp snapshot load: in another computer's folder it outlives this one" },
	{ "timeout", "S", ON(VERB_RUN) | ON(VERB_SNAPSHOT), OPTION_NUMBER, FIELD(timeout_s), 1, 1000000,
	  "give up after S seconds, with status 125" },
	{ "stats", "FILE", ON(VERB_RUN) | ON(VERB_SNAPSHOT), OPTION_TEXT, FIELD(stats), 0, 0,
	  "when the command has ended, write what was counted, as JSON" },
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
	  "serve a GDB on this port of this computer, as 127.0.0.1:1234; the machine waits for it unless nowait" },
	{ "top", "N", ON(VERB_PAGES), OPTION_NUMBER, FIELD(top), 1, 100000,
	  "how many pages to list; default 20" },
	{ "json", NULL, ON(VERB_STATUS) | ON(VERB_REGS) | ON(VERB_PAGES), OPTION_FLAG, FIELD(json), 0, 0,
	  "print JSON" },
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

enum disk_mode options_disk_mode(const char *spec, size_t *path_bytes)
{
	static const struct { const char *suffix; enum disk_mode mode; } modes[] = {
		{ ",ro", DISK_READ_ONLY }, { ",snapshot", DISK_SNAPSHOT },
	};
	size_t n = strlen(spec);

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		size_t suffix = strlen(modes[i].suffix);

		if (n > suffix && !strcmp(spec + n - suffix, modes[i].suffix)) {
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
		return fail(o, "--%s %s: not a number", rule->name, value);
	if (error || number < rule->min || number > rule->max)
		return fail(o, "--%s %s: must be from %u to %u", rule->name, value, rule->min, rule->max);
	*(uint32_t *)((char *)o + rule->offset) = number;
	return 0;
}

static int set_list(struct options *o, const struct option_rule *rule, const char *value)
{
	if (!strchr(value, '=') || value[0] == '=')
		return fail(o, "--%s %s: must be NAME=VALUE", rule->name, value);
	if (o->n_env == MAX_ENV_OPTIONS)
		return fail(o, "--%s: at most %d variables", rule->name, MAX_ENV_OPTIONS);
	o->env[o->n_env++] = value;
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
			return fail(o, "--%s needs a value: --%s %s", rule->name, rule->name, rule->value);
		*(const char **)((char *)o + rule->offset) = value;
		return 0;
	case OPTION_NUMBER:
		return set_number(o, rule, value);
	case OPTION_LIST:
		return set_list(o, rule, value);
	}
	return -EINVAL;
}

/* An option of either table. */
struct option {
	const char *name, *value, *help;
	unsigned verbs;
	const struct machine_row *row;	/* of the machine, or NULL */
	const struct option_rule *rule; /* otherwise */
};

enum { N_OPTIONS = MACHINE_ROWS + ARRAY_LEN(rules) };

static struct option option_at(size_t i)
{
	static const unsigned verbs_of[] = {
		[MACHINE_TYPED_NO] = 0, [MACHINE_TYPED_BOOT] = ON_BOOT, [MACHINE_TYPED_START] = ON_START,
	};

	if (i < MACHINE_ROWS) {
		const struct machine_row *row = &machine_rows[i];

		return (struct option){ row->word, row->value, row->help, verbs_of[row->typed], row, NULL };
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

/* One option at argv[*i]; leaves *i at its last word. */
static int parse_option(struct options *o, int argc, char **argv, int *i)
{
	const char *word = argv[*i] + 2, *equals = strchr(word, '=');
	size_t n = equals ? (size_t)(equals - word) : strlen(word);

	for (size_t at = 0; at < N_OPTIONS; at++) {
		const struct option option = option_at(at);
		const char *value = equals ? equals + 1 : NULL;

		if (!option.verbs || strlen(option.name) != n || memcmp(option.name, word, n))
			continue;
		if (!(option.verbs & ON(o->verb)))
			return fail(o, "--%s is not an option of `vmp %s`; see `vmp help %s`", option.name,
				    verbs[o->verb].name, verbs[o->verb].name);
		if (!option.value && value)
			return fail(o, "--%s takes no value", option.name);
		if (option.value && !value) {
			if (*i + 1 >= argc)
				return fail(o, "--%s needs a value: --%s %s", option.name, option.name, option.value);
			value = argv[++*i];
		}
		return apply_option(o, &option, value);
	}
	return fail(o, "no such option: --%.*s; see `vmp help %s`", (int)n, word, verbs[o->verb].name);
}

static int parse_verb(struct options *o, const char *word)
{
	static const struct { const char *word; enum verb verb; } words[] = {
		{ "--version", VERB_VERSION }, { "-V", VERB_VERSION }, { "--help", VERB_HELP }, { "-h", VERB_HELP },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(word, words[i].word)) {
			o->verb = words[i].verb;
			return 0;
		}
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (!strcmp(word, verbs[i].name)) {
			o->verb = i;
			return 0;
		}
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
			return fail(o, "--name %s: only letters, digits, and -_. after the first", o->name);
	}
	return 0;
}

/* A machine with checkpoints can go back: to other hosts, and with its disk. */
static int check_checkpoint(struct options *o)
{
	size_t ignored;

	if (!o->machine.checkpoint_ms)
		return o->checkpoint_file ? fail(o, "--checkpoint-file needs --checkpoint TIME: how often it is written") : 0;
	if (o->machine.hosts == 1)
		return fail(o, "--checkpoint needs --hosts 2 or more: when the only host is lost, none is left to go on");
	if (o->machine.disk && options_disk_mode(o->machine.disk, &ignored) == DISK_READ_WRITE)
		return fail(o, "--checkpoint needs --disk %.200s,snapshot (or ,ro): what is written to an image cannot be taken back",
			    o->machine.disk);
	return 0;
}

/* None was given. */
static int choose_engine(struct options *o)
{
	const char *name = getenv("VMP_ENGINE");

	if (!o->machine.strict && name)
		return machine_set(&o->machine, &machine_rows[MACHINE_ROW_engine], name, o->error, sizeof o->error);
	o->machine.engine = o->machine.strict ? ENGINE_PTRACE : ENGINE_DIRECT;
	return 0;
}

/* What no single option can know. */
static int check_together(struct options *o, uint32_t host_cpus)
{
	struct gdb_address gdb;
	struct problem p;

	if (!o->machine.hosts && !o->cluster && o->verb != VERB_SNAPSHOT)
		o->machine.hosts = 1;
	if (!o->machine.engine && choose_engine(o))
		return -EINVAL;
	if (o->machine.strict && o->machine.engine != ENGINE_PTRACE)
		return fail(o, "--strict is a mode of --engine ptrace: leave --engine %s away", engine_name(o->machine.engine));
	if (o->verb == VERB_UP && (o->log ? !strcmp(o->log, "-") : o->machine.verbose))
		return fail(o, "`vmp up` returns before the machine ends: give its log a file with --log FILE");
	if (o->gdb && gdb_address_parse(o->gdb, &gdb, &p))
		return fail(o, "%s", p.line);
	if ((o->name && check_name(o)) || check_checkpoint(o))
		return -EINVAL;
	if (o->verb == VERB_SNAPSHOT)
		return 0; /* the file says how many processors there are */
	if (o->cluster && (o->verb == VERB_RUN || o->verb == VERB_UP))
		return 0; /* that file says how many hosts there are */
	if (!o->machine.cpus) {
		o->machine.cpus = o->machine.hosts > host_cpus ? o->machine.hosts : host_cpus;
		if (o->machine.cpus > MAX_CPUS)
			o->machine.cpus = MAX_CPUS;
	}
	if (o->machine.hosts > o->machine.cpus)
		return fail(o, "--hosts %u is more than --cpus %u: each host needs a processor", o->machine.hosts, o->machine.cpus);
	if (o->machine.host_mem_mib && (uint64_t)o->machine.hosts * o->machine.host_mem_mib < o->machine.mem_mib)
		return fail(o, "--host-mem %uM on %u host%s is less than --mem %uM", o->machine.host_mem_mib, o->machine.hosts,
			    o->machine.hosts == 1 ? "" : "s", o->machine.mem_mib);
	return 0;
}

/* A number, or a name: which hosts a machine has, it knows itself. */
static int take_host(struct options *o, const char *word, const char *command)
{
	int error = quantity_parse_number(word, &o->to_host);

	if (error && (!isalpha((unsigned char)*word) || strlen(word) >= MAX_HOST_NAME))
		return fail(o, "%s: %.64s is neither the number nor the name of a host", command, word);
	o->host = error ? word : NULL;
	return 0;
}

/* What follows `vmp cpu`: move CPU HOST. Whether the machine has them, the machine knows. */
static int take_cpu_words(struct options *o, char **words, unsigned n)
{
	if (n && strcmp(words[0], "move"))
		return fail(o, "vmp cpu %s: no such command; see `vmp help cpu`", words[0]);
	if (n != 3)
		return fail(o, "`vmp cpu move` needs a processor and a host, and nothing else: vmp cpu move 1 0");
	if (quantity_parse_number(words[1], &o->cpu))
		return fail(o, "vmp cpu move: %s is not the number of a processor", words[1]);
	return take_host(o, words[2], "vmp cpu move");
}

/* What follows `vmp host`: add, remove HOST. */
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
			return fail(o, "vmp host add %.16s...: longer than %d characters", o->host, MAX_HOST_NAME - 1);
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

/* What follows `vmp snapshot`: save FILE, load FILE. */
static int take_snapshot_words(struct options *o, char **words, unsigned n)
{
	o->save = n && !strcmp(words[0], "save");
	if (n && !o->save && strcmp(words[0], "load"))
		return fail(o, "vmp snapshot %s: no such command; see `vmp help snapshot`", words[0]);
	if (n != 2 || !*words[1])
		return fail(o, "`vmp snapshot` needs save or load, and one file: vmp snapshot save FILE");
	if (o->save && o->typed)
		return fail(o, "`vmp snapshot save` has one option, --name; the others belong to load");
	o->file = words[1];
	return 0;
}

/* Words that are not options: what a verb takes them for. */
static int take_words(struct options *o, char **words, unsigned n)
{
	switch (o->verb) {
	case VERB_CPU: return take_cpu_words(o, words, n);
	case VERB_HOST: return take_host_words(o, words, n);
	case VERB_POLICY: return take_policy_words(o, words, n);
	case VERB_SNAPSHOT: return take_snapshot_words(o, words, n);
	default: return 0;
	}
}

static bool takes_words(enum verb verb)
{
	return ON(verb) & (ON(VERB_CPU) | ON(VERB_HOST) | ON(VERB_POLICY) | ON(VERB_SNAPSHOT));
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
	char *words[MAX_WORDS + 1] = { NULL }; /* the last takes what is too much */
	unsigned n_words = 0;

	*o = (struct options){ .top = 20 };
	machine_defaults(&o->machine);
	if (argc < 2) {
		o->verb = VERB_HELP;
		return fail(o, "what shall I do? For example: vmp run -- nproc; see `vmp help`");
	}
	if (parse_verb(o, argv[1]))
		return -EINVAL;
	if (o->verb == VERB_HELP)
		return parse_help_topic(o, argc, argv);
	for (int i = 2; i < argc; i++) {
		bool separator = !strcmp(argv[i], "--");

		if (takes_words(o->verb) && argv[i][0] != '-') {
			words[n_words < MAX_WORDS ? n_words : MAX_WORDS] = argv[i];
			n_words++;
			continue;
		}
		if (!strcmp(argv[i], "-h")) {
			o->help = true;
			continue;
		}
		if (!separator && !strncmp(argv[i], "--", 2)) {
			if (parse_option(o, argc, argv, &i))
				return -EINVAL;
			continue;
		}
		if (o->verb != VERB_RUN)
			return fail(o, "`vmp %s` takes no argument %s", verbs[o->verb].name, argv[i]);
		if (!separator && argv[i][0] == '-')
			return fail(o, "no such option: %s; see `vmp help run`", argv[i]);
		o->command = argv + i + separator;
		if (!o->command[0] || !o->command[0][0])
			return fail(o, "no command after --; leave out -- for a shell");
		break;
	}
	if (o->help)
		return 0;
	if (take_words(o, words, n_words))
		return -EINVAL;
	return check_together(o, host_cpus);
}

/* snprintf's habit, piece by piece */
static size_t put(char *out, size_t bytes, size_t at, const char *format, ...) __attribute__((format(printf, 4, 5)));
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
	size_t at = put(out, bytes, 0, "vmp: one shared-memory IA-32 multiprocessor made of many hosts\n\n");

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (i != VERB_STANDBY) /* nobody types it */
			at = put(out, bytes, at, "  %s\n", verbs[i].usage);
	return put(out, bytes, at, "\n`vmp help COMMAND` says more. A first one to try: vmp run --hosts 2 --cpus 2 -- nproc\n");
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
		snprintf(left, sizeof left, "--%s%s%s", option.name, option.value ? " " : "", option.value ? option.value : "");
		at = put(out, bytes, at, strlen(left) > 18 ? "  %s\n  %18s  %s\n" : "  %-18s%s  %s\n", left, "", option.help);
	}
	return at;
}
