/* facts.c - see facts.h. */
#include "vmm/shared/facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int facts_print(const struct host_facts *f, char *line, size_t bytes)
{
	char features[CPU_FEATURES_TEXT];

	cpufeatures_print(&f->cpu.features, features);
	return snprintf(line, bytes, "here vendor=%s hides=%d features=%s processors=%u "
			"memory=%llu group=%d address=%s", f->cpu.vendor, f->cpu.hides, features,
			f->processors, (unsigned long long)f->memory.mib, f->memory.group,
			f->address[0] ? f->address : "-");
}

int facts_parse(struct host_facts *f, const char *line)
{
	char features[CPU_FEATURES_TEXT];
	unsigned long long mib = 0;
	int hides = 0, group = 0, end = 0;

	_Static_assert(sizeof features == 81 && sizeof f->cpu.vendor == 13 &&
		       sizeof f->address == 64, "sscanf()'s format has these sizes");
	memset(f, 0, sizeof *f);
	if (sscanf(line, "here vendor=%12s hides=%d features=%80s processors=%u memory=%llu "
		   "group=%d address=%63s%n", f->cpu.vendor, &hides, features, &f->processors,
		   &mib, &group, f->address, &end) != 7 ||
	    line[end] || cpufeatures_parse(&f->cpu.features, features))
		return -EPROTO;
	f->cpu.hides = hides;
	f->memory.mib = mib;
	f->memory.group = group;
	if (!strcmp(f->address, "-"))
		f->address[0] = 0;
	return f->processors ? 0 : -EPROTO;
}
