/* complete.c - see complete.h. Commands and options come from the tables that `--help` is made
 * of. */
#include "vmm/cli/completion/complete.h"

#include <string.h>

struct completion {
	FILE *out;
	const char *word; /* the word to complete */
	const struct completion_facts *facts;
};

static void offer(const struct completion *c, const char *candidate, const char *what)
{
	if (!strncmp(candidate, c->word, strlen(c->word)))
		fprintf(c->out, "%s\t%.*s\n", candidate, (int)strcspn(what, "\n"), what);
}

static void offer_all(const struct completion *c, const char *const *names, const char *what)
{
	for (size_t i = 0; names && names[i]; i++)
		if (*names[i])
			offer(c, names[i], what);
}

static void offer_numbers(const struct completion *c, uint32_t n, const char *what)
{
	char number[16];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(number, sizeof number, "%u", i);
		offer(c, number, what);
	}
}

static void offer_place(const struct completion *c, const char *place)
{
	fprintf(c->out, "%s\n", place);
}

/* Offers all commands, each with the first clause of its help text. */
static void offer_commands(const struct completion *c)
{
	char what[128];

	for (unsigned verb = 0; verb < VERB_COUNT; verb++) {
		const char *text = options_verb_what(verb);

		snprintf(what, sizeof what, "%.*s", (int)strcspn(text, ".:;\n"), text);
		if (options_is_typed(verb))
			offer(c, options_verb_word(verb), what);
	}
}

/* ---- options ---- */

static void offer_options(const struct completion *c, enum verb verb)
{
	struct option_info info;
	char text[64];

	for (size_t i = 0; options_describe(verb, i, &info); i++) {
		snprintf(text, sizeof text, "--%s", info.name);
		offer(c, text, info.help);
	}
}

/* Returns true if `word` is an option that takes the next word as its value. */
static bool wants_value(enum verb verb, const char *word, struct option_info *info)
{
	for (size_t i = 0; !strncmp(word, "--", 2) && options_describe(verb, i, info); i++)
		if (info->value && !strcmp(info->name, word + 2))
			return true;
	return false;
}

static void offer_value(const struct completion *c, const struct option_info *info)
{
	static const char *const sizes[] = { "64M", "128M", "256M", "512M", "1G", "2G", NULL };
	static const char *const users[] = { "root", "nobody", NULL };

	if (info->choices)
		offer_all(c, info->choices, info->name);
	else if (!strcmp(info->name, "name"))
		offer_all(c, c->facts->machines, "a running machine");
	else if (!strcmp(info->name, "share"))
		offer_place(c, ":folders");
	else if (!strcmp(info->name, "user"))
		offer_all(c, users, "a user of the guest");
	else if (!strcmp(info->value, "SIZE"))
		offer_all(c, sizes, "a size");
	else if (!strcmp(info->name, "root") || !strncmp(info->value, "FILE", 4) ||
		 !strncmp(info->value, "IMAGE", 5))
		offer_place(c, ":files");
}

/* ---- words ---- */

static void offer_host(const struct completion *c) { offer_all(c, c->facts->hosts, "a host"); }

static void offer_word(const struct completion *c, enum verb verb, char *const *before, size_t n)
{
	static const char *const save_load[] = { "save", "load", NULL };
	static const char *const add_remove[] = { "add", "remove", NULL };
	static const char *const peer[] = { "start", "stop", "status", "invite", "join", "list",
					    "revoke", "dial", "limits", NULL };
	static const char *const move[] = { "move", NULL };
	static const char *const images[] = { "debian", "pack", NULL };

	switch (verb) {
	case VERB_CPU:
		if (n == 0)
			offer_all(c, move, "to another host");
		else if (n == 1)
			offer_numbers(c, c->facts->cpus, "a processor");
		else if (n == 2)
			offer_host(c);
		return;
	case VERB_HOST:
		if (n == 0)
			offer_all(c, add_remove, "a host");
		else if (n == 1 && !strcmp(before[0], "remove"))
			offer_host(c);
		return;
	case VERB_POLICY:
		if (n == 0)
			offer_all(c, policy_names, "a policy");
		return;
	case VERB_PEER:
		if (n == 0)
			offer_all(c, peer, "the network of your computers");
		return;
	case VERB_IMAGE:
		if (n == 0)
			offer_all(c, images, "a root image");
		else
			offer_place(c, ":files");
		return;
	case VERB_SNAPSHOT:
		if (n == 0)
			offer_all(c, save_load, "a machine");
		else if (n == 1)
			offer_place(c, ":files");
		return;
	case VERB_REPORT:
		if (n == 0)
			offer_place(c, ":files");
		return;
	case VERB_HELP:
		if (n == 0)
			offer_commands(c);
		return;
	default:
		if (n == 0 && options_takes_name(verb))
			offer_all(c, c->facts->machines, "a running machine");
	}
}

/* Offers the first word of the guest's command: a program of the guest, or a file of this
 * computer. */
static void offer_guest_word(const struct completion *c, size_t n)
{
	if (n == 0)
		offer_all(c, c->facts->programs, "a program of the guest");
	offer_place(c, ":files");
}

/* Joins what bash has taken apart: --name=lab comes as three words. */
static size_t join_equals(char *const *words, size_t n, const char **joined, size_t room)
{
	size_t count = 0;

	for (size_t i = 0; i < n && count < room; i++)
		if (strcmp(words[i], "="))
			joined[count++] = words[i];
		else if (i + 1 == n)
			joined[count++] = "";
	return count;
}

void completion_print(FILE *out, char *const *words, size_t n, const struct completion_facts *facts)
{
	enum { MAX_WORDS = 256 };
	const char *joined[MAX_WORDS], *plain[MAX_WORDS];
	size_t count = join_equals(words, n, joined, MAX_WORDS), n_plain = 0;
	struct completion c = { .out = out,
				.word = count ? joined[count - 1] : "",
				.facts = facts };
	struct option_info info;
	int verb = count > 1 ? options_find_verb(joined[0]) : -1;

	if (count <= 1)
		return offer_commands(&c);
	if (verb < 0)
		return;
	for (size_t i = 1; i + 1 < count; i++) {
		if ((verb == VERB_RUN || verb == VERB_EXEC) && !strcmp(joined[i], "--"))
			return offer_guest_word(&c, count - i - 2);
		if (wants_value((enum verb)verb, joined[i], &info)) {
			if (i + 2 == count)
				return offer_value(&c, &info);
			i++;
		} else if (joined[i][0] != '-') {
			plain[n_plain++] = joined[i];
		}
	}
	if (c.word[0] == '-')
		offer_options(&c, (enum verb)verb);
	else if (verb == VERB_RUN)
		offer_guest_word(&c, n_plain);
	else if (verb == VERB_EXEC && n_plain)
		offer_guest_word(&c, n_plain - 1);
	else
		offer_word(&c, (enum verb)verb, (char *const *)plain, n_plain);
}

const char *completion_machine(char *const *words, size_t n)
{
	for (size_t i = 0; i + 2 < n; i++) {
		if (!strcmp(words[i], "--name"))
			return words[i + 1 + !strcmp(words[i + 1], "=")];
		if (!strncmp(words[i], "--name=", 7))
			return words[i] + 7;
	}
	return NULL;
}
