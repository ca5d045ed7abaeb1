/* libgomp.c - see libgomp.h. */
#include "vmm/cli/guest/libgomp.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/log.h"
#include "base/mechanisms.h"
#include "vmm/cli/run/checks.h"

static const struct { bool ours; const char *text;
} reasons[] = {
#define X(name, ours, text) [LIBGOMP_##name] = { ours, text },
	LIBGOMP_REASONS(X)
#undef X
};

/* Returns whether a library is this computer's; others come by RPATH or LD_LIBRARY_PATH, and
 * whoever sets those wants them. */
static bool is_the_computers(const char *path)
{
	return !strncmp(path, "/lib", 4) || !strncmp(path, "/usr/lib", 8);
}

enum libgomp_reason libgomp_decide(const struct libgomp_facts *facts)
{
	if (facts->hosts <= 1)
		return LIBGOMP_ONE_HOST;
	if (!mechanism_on(facts->without, MECHANISM_GOMP))
		return LIBGOMP_OFF;
	if (!is_the_computers(facts->path))
		return LIBGOMP_PRIVATE;
	if (!facts->there)
		return LIBGOMP_ABSENT;
	return facts->has_all ? LIBGOMP_OURS : LIBGOMP_OLDER;
}

bool libgomp_is_ours(enum libgomp_reason reason)
{
	return reasons[reason].ours;
}

void libgomp_choose(struct elfdeps *deps, uint32_t hosts, uint32_t without)
{
	char ours[MAX_HOST_PATH];
	struct libgomp_facts facts = { hosts, without, NULL, false, false };
	enum libgomp_reason reason;
	struct problem p = { "" };
	struct library *library = NULL;

	for (size_t i = 0; i < deps->n; i++)
		if (!strcmp(deps->library[i].name, LIBGOMP))
			library = &deps->library[i];
	if (!library)
		return;
	facts.path = library->path;
	if (!beside_path("guest/" LIBGOMP, ours, sizeof ours) && !access(ours, R_OK)) {
		facts.there = !check_checksum(ours, &p);
		facts.has_all = facts.there && elfdeps_defines_all(ours, library->path);
		if (!facts.there)
			log_warn("%s", p.line);
	}
	reason = libgomp_decide(&facts);
	if (libgomp_is_ours(reason))
		snprintf(library->path, sizeof library->path, "%s", ours);
	log_info("%s: %s, since %s", LIBGOMP, library->path, reasons[reason].text);
}
