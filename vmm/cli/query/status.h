/* status.h - what `vmp status` and `vmp top` print, from two looks at the same machine. */
#ifndef VMM_CLI_QUERY_STATUS_H
#define VMM_CLI_QUERY_STATUS_H

#include <stdio.h>
#include "vmm/cli/cluster/host_names.h"
#include "vmm/cli/query/report.h"
#include "vmm/cli/rundir.h"

/* One look: what every host answered, and when the last one did (ns of CLOCK_MONOTONIC). */
struct status_look {
	struct report report;
	struct msg_hosts hosts;
	struct host_names names; /* of a cluster */
	uint64_t at_ns; /* 0: not all have answered yet */
};

/* Loads and rates are those between the two looks. */
void status_print(FILE *out, const char *name, const struct machine_info *info, const struct status_look *before,
		  const struct status_look *now, bool json);

/* Per cent of the time between two looks that a processor did not sleep: 0 to 100. Pure. */
double status_cpu_load(const struct cpu_stats *before, const struct cpu_stats *now, uint64_t interval_ns);

#endif
