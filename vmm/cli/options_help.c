/* options_help.c - the help text of a command, from the tables. */
#include "vmm/cli/options_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"

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

	for (size_t i = 0; i < VERB_COUNT; i++)
		if (options_is_typed(i) || i == VERB_VERSION)
			at = put(out, bytes, at, "  %s\n", options_verbs[i].usage);
	return put(out, bytes, at, "\n`vmp help COMMAND` says more. A first one to try: vmp run "
		   "--hosts 2 --cpus 2 -- nproc\n");
}

size_t options_help(enum verb verb, char *out, size_t bytes)
{
	size_t at;

	if (verb == VERB_HELP)
		return put_overview(out, bytes);
	at = put(out, bytes, 0, "%s\n\n%s\n\n", options_verbs[verb].usage,
		 options_verbs[verb].what);
	for (size_t i = 0; i < N_OPTIONS; i++) {
		const struct option option = options_at(i);
		char left[128];
		int n;

		if (!(option.verbs & ON(verb)) || !option.help)
			continue;
		n = snprintf(left, sizeof left, "--%s%s%s", option.name, option.value ? " " : "",
			     option.value ? option.value : "");
		bug_on(n >= (int)sizeof left);
		at = put(out, bytes, at,
			 strlen(left) > 18 ? "  %s\n  %18s  %s\n" : "  %-18s%s  %s\n", left, "",
			 option.help);
	}
	return at;
}
