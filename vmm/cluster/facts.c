/* facts.c - see facts.h. */
#include "vmm/cluster/facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int facts_print(const struct host_facts *f, char *line, size_t bytes)
{
	const uint32_t *w = f->features;

	return snprintf(line, bytes, "here vendor=%s hides=%d features=%x,%x,%x,%x,%x,%x,%x,%x processors=%u address=%s", f->vendor, f->hides,
			w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], f->processors, f->address[0] ? f->address : "-");
}

int facts_parse(struct host_facts *f, const char *line)
{
	uint32_t *w = f->features;
	int hides = 0, end = 0;

	memset(f, 0, sizeof *f);
	if (sscanf(line, "here vendor=%12s hides=%d features=%x,%x,%x,%x,%x,%x,%x,%x processors=%u address=%63s%n", f->vendor, &hides, &w[0],
		   &w[1], &w[2], &w[3], &w[4], &w[5], &w[6], &w[7], &f->processors, f->address, &end) != 12 || line[end])
		return -EPROTO;
	f->hides = hides;
	if (!strcmp(f->address, "-"))
		f->address[0] = 0;
	return f->processors ? 0 : -EPROTO;
}

int facts_agree(const struct host_facts *first, const struct host_facts *facts, const char *name, bool shrinks,
		uint32_t common[HOSTCPU_FEATURES], struct problem *p)
{
	bool hides = first->hides && facts->hides;
	char feature[64];

	if (strcmp(first->vendor, facts->vendor))
		return problem(p, "host %s: its processor is another vendor's (%s) than host 0's (%s)", name, facts->vendor, first->vendor);
	if ((!hides || !shrinks) && hostcpu_lacking(common, facts->features, feature, sizeof feature))
		return problem(p, "host %s: its processor has no %s, which the guest's programs may use", name, feature);
	if (!hides && hostcpu_lacking(facts->features, common, feature, sizeof feature))
		return problem(p, "host %s: its processor has %s, which host 0's has not, and it cannot be hidden from the guest's programs",
			       name, feature);
	for (unsigned i = 0; i < HOSTCPU_FEATURES; i++)
		common[i] &= facts->features[i];
	return 0;
}
