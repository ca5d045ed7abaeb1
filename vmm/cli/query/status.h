/* status.h - what `vmp status` and `vmp top` print, from two samples of the same machine. */
#ifndef VMM_CLI_QUERY_STATUS_H
#define VMM_CLI_QUERY_STATUS_H

#include <stdio.h>
#include "vmm/cli/cluster/host_names.h"
#include "vmm/cli/query/report.h"
#include "vmm/cli/rundir.h"

/* A sample: what every host answered, and when the last one did (ns of CLOCK_MONOTONIC). */
struct status_look {
	struct report report;
	struct msg_hosts hosts;
	struct host_names names; /* in a cluster */
	struct move_note note[MOVE_NOTES]; /* the last moves, the oldest first */
	unsigned n_notes;
	bool has_notes; /* node 0 has said them, be it that there are none */
	uint64_t at_ns; /* 0: some hosts have not answered yet */
};

/* Prints the status.  Loads and rates are those between the two samples. */
void status_print(FILE *out, const char *name, const struct machine_info *info,
		  const struct status_look *before, const struct status_look *now, bool json);

/* Takes the payload of a MOVE_NOTES.  Those that name no CPU or host are left out; every text is
 * ended by a zero.  Pure. */
void status_take_notes(struct status_look *look, const void *payload, size_t bytes);

/* What a host did between two samples.  Pure. */
struct host_figures {
	uint32_t cpus; /* bit set */
	double load;   /* average of its processors, per cent */
	double ram_mib, share_mib; /* holds, and may hold */
	double pages_in, pages_out, sent, received; /* the last four per second */
};
struct host_figures status_host_figures(uint32_t host, const struct status_look *before,
					const struct status_look *now);

/* Returns the share of the time between two samples in which a processor did not sleep: 0 to 100
 * per cent.  Pure. */
double status_cpu_load(const struct cpu_stats *before, const struct cpu_stats *now,
		       uint64_t interval_ns);

#endif
