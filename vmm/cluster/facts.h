/* facts.h - what a host says of itself before it may belong to a machine, and whether several go together.  Pure.
 *
 * One line of text, `here KEY=VALUE...`, from vmp-host to vmp.
 */
#ifndef VMM_CLUSTER_FACTS_H
#define VMM_CLUSTER_FACTS_H

#include "base/types.h"
#include "vmm/hostcpu.h"
#include "vmm/problem.h"

struct host_facts {
	char vendor[13];  /* of its processors, by CPUID */
	bool hides;	  /* they can make CPUID trap: programs see what we say */
	uint32_t features[HOSTCPU_FEATURES];
	uint32_t processors;
	char address[64]; /* the one by which ssh reached it; "": not known */
};

int facts_print(const struct host_facts *facts, char *line, size_t bytes); /* as snprintf() */
int facts_parse(struct host_facts *facts, const char *line); /* 0 or -EPROTO */

/* May the host `name` belong to a machine whose guest sees (or may see) `common` on processors like `first`'s?  Where both can
 * hide features, `common` loses what this one lacks, if `shrinks`: the machine has not started yet.  -1 with the problem. */
int facts_agree(const struct host_facts *first, const struct host_facts *facts, const char *name, bool shrinks,
		uint32_t common[HOSTCPU_FEATURES], struct problem *p);

#endif
