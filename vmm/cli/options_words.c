/* options_words.c - the words of a command that are no options: a processor, a host, a file. */
#include "vmm/cli/options_private.h"

#include <ctype.h>
#include <string.h>
#include "base/quantity.h"
#include "vmm/shared/placement.h"

/* Takes a host's number or name.  The machine finds out whether it has that host. */
static int take_host(struct options *o, const char *word, const char *command)
{
	int error = quantity_parse_number(word, &o->to_host);

	if (error && (!isalpha((unsigned char)*word) || strlen(word) >= MAX_HOST_NAME))
		return options_fail(o, "%s: %.64s is neither the number nor the name of a host",
				    command, word);
	o->host = error ? word : NULL;
	return 0;
}

/* Takes what follows `vmp cpu`: move CPU HOST. The machine finds out whether it has them. */
static int take_cpu_words(struct options *o, char **words, unsigned n)
{
	if (n && strcmp(words[0], "move"))
		return options_fail(o, "vmp cpu %s: no such command; see `vmp help cpu`", words[0]);
	if (n != 3)
		return options_fail(o, "`vmp cpu move` needs a processor and a host, and nothing "
				       "else: vmp cpu move 1 0");
	if (quantity_parse_number(words[1], &o->cpu))
		return options_fail(o, "vmp cpu move: %s is not the number of a processor",
				    words[1]);
	return take_host(o, words[2], "vmp cpu move");
}

/* Takes what follows `vmp host`: add [HOST], or remove HOST. */
static int take_host_words(struct options *o, char **words, unsigned n)
{
	o->add = n && !strcmp(words[0], "add");
	if (n && !o->add && strcmp(words[0], "remove"))
		return options_fail(o, "vmp host %s: no such command; see `vmp help host`",
				    words[0]);
	if (n != 2 && !(o->add && n == 1))
		return options_fail(o, "`vmp host` needs add, or remove and a host: vmp host "
				       "remove 1");
	if (o->add) {
		o->host = words[1] ? words[1] : o->peer ? HOST_ANY_PEER : "";
		if (strlen(o->host) >= MAX_HOST_NAME)
			return options_fail(o, "vmp host add %.16s...: longer than %d characters",
					    o->host, MAX_HOST_NAME - 1);
		return 0;
	}
	if (o->peer)
		return options_fail(o, "--peer is for vmp host add");
	return take_host(o, words[1], "vmp host remove");
}

static int take_policy_words(struct options *o, char **words, unsigned n)
{
	if (n != 1)
		return options_fail(o, "`vmp policy` needs one of spread, concentrate, auto and "
				       "fixed");
	if (placement_policy_of_name(words[0]) < 0)
		return options_fail(o, "vmp policy %s: no such policy; see `vmp help policy`",
				    words[0]);
	o->machine.policy = (uint32_t)placement_policy_of_name(words[0]);
	return 0;
}

/* Takes what follows `vmp snapshot`: save FILE, or load FILE. */
static int take_snapshot_words(struct options *o, char **words, unsigned n)
{
	o->save = n && !strcmp(words[0], "save");
	if (n && !o->save && strcmp(words[0], "load"))
		return options_fail(o, "vmp snapshot %s: no such command; see `vmp help snapshot`",
			    words[0]);
	if (n != 2 || !*words[1])
		return options_fail(o, "`vmp snapshot` needs save or load, and one file: vmp "
				       "snapshot save FILE");
	if (o->save && o->typed)
		return options_fail(o, "`vmp snapshot save` has one option, --name; the others "
				       "belong to load");
	o->file = words[1];
	return 0;
}

/* Takes what follows `vmp report`: the file. */
static int take_report_words(struct options *o, char **words, unsigned n)
{
	if (n != 1 || !*words[0])
		return options_fail(o, "`vmp report` needs one file, and --name NAME for the "
				       "machine: vmp report FILE.html");
	if (o->from && o->typed > 1)
		return options_fail(o, "`vmp report --from FILE.json` has no other option: the "
				       "record is there");
	o->file = words[0];
	return 0;
}

/* Commands that ask a running machine take words that are not options. */
bool options_takes_words(enum verb verb) { return ON(verb) & ON_MACHINE; }

/* Takes a machine's name as a word, which means the same as --name NAME. */
static int take_name_word(struct options *o, char **words, unsigned n)
{
	if (n > 1)
		return options_fail(o, "`vmp %s` takes one name, and no argument %s",
				    options_verbs[o->verb].name, words[1]);
	if (n && o->name && strcmp(o->name, words[0]))
		return options_fail(o, "`vmp %s %s --name %s`: which of the two?",
				    options_verbs[o->verb].name, words[0], o->name);
	if (n)
		o->name = words[0];
	if (o->all && o->name)
		return options_fail(o, "--all is every machine, not %s alone", o->name);
	return 0;
}

/* Hands the words that are not options to the function of their verb. */
int options_take_words(struct options *o, char **words, unsigned n)
{
	switch (o->verb) {
	case VERB_CPU: return take_cpu_words(o, words, n);
	case VERB_HOST: return take_host_words(o, words, n);
	case VERB_POLICY: return take_policy_words(o, words, n);
	case VERB_SNAPSHOT: return take_snapshot_words(o, words, n);
	case VERB_REPORT: return take_report_words(o, words, n);
	default: return options_takes_words(o->verb) ? take_name_word(o, words, n) : 0;
	}
}
