/* facts.h - what a host says about itself before it may join a machine.  Pure.
 *
 * One line of text, `here KEY=VALUE...`, from vmp-host to vmp.
 */
#ifndef VMM_SHARED_FACTS_H
#define VMM_SHARED_FACTS_H

#include "base/types.h"
#include "vmm/shared/hostcpu.h"
#include "vmm/shared/hostmem.h"

struct host_facts {
	struct hostcpu cpu;
	uint32_t processors;
	struct hostmem memory;
	char address[64]; /* the address by which ssh reached the host; "": not known */
};

/* returns the length, as snprintf() */
int facts_print(const struct host_facts *facts, char *line, size_t bytes);
int facts_parse(struct host_facts *facts, const char *line); /* 0 or -EPROTO */

#endif
