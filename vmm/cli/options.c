/* options.c - see options.h: a command line is read word by word. */
#include "vmm/cli/options_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "vmm/cli/foreign.h"

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

/* Takes the next word as the option's value.  A word that looks like an option is an error: in
 * `--stats -- nproc` the user has forgotten the value. */
static int take_value(struct options *o, const struct option *option, int argc, char **argv, int *i,
		      const char **value)
{
	if (*i + 1 >= argc)
		return options_fail(o, "--%s needs a value: --%s %s", option->name, option->name,
			    option->value);
	*value = argv[++*i];
	if (!strcmp(*value, "--"))
		return options_fail(o, "--%s needs a value before --: --%s %s", option->name,
				    option->name, option->value);
	if (!strncmp(*value, "--", 2))
		return options_fail(o,
				    "--%s needs a value, and %s is an option; a value that begins "
				    "with -- is written as --%s=%s",
				    option->name, *value, option->name, *value);
	return 0;
}

/* Applies an option.  `value` comes from the option's own word, or is NULL. Leaves *i at the last
 * word that the option uses. */
static int take_option(struct options *o, const struct option *option, const char *value, int argc,
		       char **argv, int *i)
{
	if (!(option->verbs & ON(o->verb)))
		return options_fail(o, "--%s is not an option of `vmp %s`; see `vmp help %s`",
				    option->name, options_verbs[o->verb].name,
				    options_verbs[o->verb].name);
	if (!option->value && value)
		return options_fail(o, "--%s takes no value", option->name);
	if (option->value && !value && take_value(o, option, argc, argv, i, &value))
		return -EINVAL;
	return options_apply(o, option, value);
}

static enum foreign_verb foreign_verb(const struct options *o)
{
	switch (o->verb) {
	case VERB_RUN:
	case VERB_UP: return FOREIGN_RUN;
	case VERB_EXEC: return FOREIGN_EXEC;
	case VERB_PS: return FOREIGN_PS;
	case VERB_LOGS: return FOREIGN_LOGS;
	default: return FOREIGN_ANY;
	}
}

/* Adds to the complaint about a value what the option means to another program. */
static int refuse_value(struct options *o, const char *word)
{
	size_t n = strlen(o->error);

	if (foreign_also(word))
		snprintf(o->error + n, sizeof o->error - n, "; for another program's %.*s: %s",
			 (int)strcspn(word, "="), word, foreign_also(word));
	return -EINVAL;
}

/* Takes an option that is ours under another name.  Of QEMU's values that are lists, only the first
 * item counts; the rest is cut off where it stands in argv. */
static int take_same(struct options *o, const struct foreign *row, const struct option *option,
		     const char *value, int argc, char **argv, int *i)
{
	if (option->value && !value && take_value(o, option, argc, argv, i, &value))
		return -EINVAL;
	if (!strcmp(row->word, "-k") && foreign_is_keyboard(value))
		return options_fail(o, "no such option: -k %s; leave it away: a serial console has "
				       "no keyboard layout. A kernel is --kernel FILE", value);
	if (row->first) {
		const char *first = foreign_first(row, argv[*i] + (value - argv[*i]));

		if (!first)
			return options_fail(o, "%s %s: of a list the first item counts, as %s%s; "
					       "or write --%s %s", row->word, value, row->first,
					    option->value, option->name, option->value);
		value = first;
	}
	return take_option(o, option, value, argc, argv, i) ? refuse_value(o, row->word) : 0;
}

/* Returns whether the first `n` characters are an option of ours that lacks a dash. */
static bool lacks_dash(const struct options *o, const char *word, size_t n)
{
	struct option option;

	return n > 2 && options_find(word + 1, n - 1, &option) && option.verbs & ON(o->verb);
}

/* Says how a word is written that lacks a dash. */
static int refuse_one_dash(struct options *o, const struct foreign *two, const char *word)
{
	int n = (int)strcspn(word, "=");

	if (two->kind == FOREIGN_SAME)
		return options_fail(o, "no such option: %.*s; it is written as --%s", n, word,
				    two->text);
	return options_fail(o, "no such option: %.*s; %s%s", n, word,
			    two->kind == FOREIGN_NOTHING ? "leave it away: " : "", two->text);
}

/* Says what may be meant by a word that has no row: a letter whose value stands behind it. */
static int refuse_unknown(struct options *o, const char *word)
{
	const char *verb = options_verbs[o->verb].name, *value;
	int n = (int)strcspn(word, "=");
	const struct foreign *row = foreign_letter(word, foreign_verb(o), &value);

	if (row && row->kind == FOREIGN_SAME)
		return options_fail(o, "no such option: %.*s; if -%c is meant, write -%c %s; see "
				       "`vmp help %s`", n, word, word[1], word[1], value, verb);
	if (row)
		return options_fail(o, "no such option: %.*s; if -%c is meant: %s", n, word,
				    word[1], row->text);
	return options_fail(o, "no such option: %.*s; see `vmp help %s`", n, word, verb);
}

/* Takes an option under the name that another program has for it (foreign.def). */
static int take_foreign(struct options *o, int argc, char **argv, int *i)
{
	const char *word = argv[*i], *value;
	const struct foreign *row = foreign_option(word, foreign_verb(o), &value);
	const struct foreign *two = foreign_lacks_dash(word, foreign_verb(o));
	struct option option;
	size_t n = strcspn(word, "=");
	bool whole;

	if (!row)
		row = foreign_two_dashes(word, &value);
	whole = row && strlen(row->word) >= n;
	if (!whole && lacks_dash(o, word, n))
		return options_fail(o, "no such option: %.*s; it is written as -%.*s", (int)n, word,
				    (int)n, word);
	if (!whole && two)
		return refuse_one_dash(o, two, word);
	if (!row)
		return refuse_unknown(o, word);
	if (row->kind == FOREIGN_NOTHING && value && !strcmp(value, "false"))
		return options_fail(o, "no such option: %s; %s", word, row->text);
	if (row->kind == FOREIGN_NOTHING)
		return 0;
	if (row->kind == FOREIGN_SAME && options_find(row->text, strlen(row->text), &option))
		return take_same(o, row, &option, value, argc, argv, i);
	return options_fail(o, "no such option: %.*s; %s", (int)n, word, row->text);
}

/* Parses one option at argv[*i].  Leaves *i at its last word. */
static int parse_option(struct options *o, int argc, char **argv, int *i)
{
	const char *word = argv[*i] + 2, *equals = strchr(word, '=');
	size_t n = equals ? (size_t)(equals - word) : strlen(word);
	const char *ignored, *typed = argv[*i];
	struct option option;

	if (!strncmp(typed, "--", 2) && options_find(word, n, &option) &&
	    ((option.verbs & ON(o->verb)) || !foreign_option(typed, foreign_verb(o), &ignored)))
		return take_option(o, &option, equals ? equals + 1 : NULL, argc, argv, i)
			       ? refuse_value(o, typed)
			       : 0;
	return take_foreign(o, argc, argv, i);
}

static int parse_verb(struct options *o, const char *word)
{
	static const struct { const char *word; enum verb verb; } words[] = {
		{ "--version", VERB_VERSION }, { "-version", VERB_VERSION },
		{ "-V", VERB_VERSION }, { "-v", VERB_VERSION },
		{ "--help", VERB_HELP }, { "-help", VERB_HELP }, { "-h", VERB_HELP },
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
		return options_fail(o, "no such command: %s; %s", word, foreign_command(word));
	if (word[0] == '-')
		return options_fail(o, "no such command: %s; options follow a command: vmp run %s "
				       "...", word, word);
	return options_fail(o, "no such command: %s; see `vmp help`", word);
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
		return options_fail(o, "what shall I do? For example: vmp run -- nproc; see `vmp "
				       "help`");
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

		if (options_takes_words(o->verb) && argv[i][0] != '-' &&
		    !(o->verb == VERB_EXEC && (n_words || o->name))) {
			words[n_words < MAX_WORDS ? n_words : MAX_WORDS] = argv[i];
			n_words++;
			continue;
		}
		if (!strcmp(argv[i], "-h")) {
			const char *next = i + 1 < argc ? argv[i + 1] : "-";

			if (foreign_verb(o) == FOREIGN_RUN && *next != '-')
				return options_fail(o, "-h %s: -h alone is --help; the guest's "
						       "host name is --hostname %s", next, next);
			o->help = true;
			continue;
		}
		if (!separator && argv[i][0] == '-') {
			if (parse_option(o, argc, argv, &i))
				return -EINVAL;
			continue;
		}
		if (o->verb != VERB_RUN && o->verb != VERB_EXEC && o->verb != VERB_COMPLETE)
			return options_fail(o, "`vmp %s` takes no argument %s",
					    options_verbs[o->verb].name, argv[i]);
		o->command = argv + i + separator;
		if (o->verb == VERB_RUN && (!o->command[0] || !o->command[0][0]))
			return options_fail(o, "no command after --; leave out -- for a shell");
		break;
	}
	if (o->help)
		return 0;
	if (options_take_words(o, words, n_words))
		return -EINVAL;
	if (o->verb == VERB_EXEC && (!o->command || !o->command[0] || !o->command[0][0]))
		return options_fail(o, "what shall run? vmp exec %s -- COMMAND ARG...",
			    o->name ? o->name : "NAME");
	return options_check(o, host_cpus);
}
