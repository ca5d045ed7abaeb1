/* report.h - what the nodes counted, which they send as they end: --stats and --summary. */
#ifndef VMM_CLI_QUERY_REPORT_H
#define VMM_CLI_QUERY_REPORT_H

#include <stdio.h>
#include "vmm/cli/client.h"
#include "vmm/cli/options.h"
#include "vmm/cli/query/pageheat.h"
#include "vmm/shared/stats.h"

struct report {
	uint32_t hosts; /* bit set of those that are to answer */
	uint64_t parts_seen[MAX_NODES]; /* bit set of the parts that came */
	uint32_t parts[MAX_NODES];	/* 0: none came yet */
	bool pages_seen[MAX_NODES];
	struct node_stats node[MAX_NODES];
	struct cpu_stats cpu[MAX_CPUS];
	bool cpu_seen[MAX_CPUS];
	struct pageheat heat; /* of all nodes together */
	FILE *stats;	      /* --stats FILE, or NULL */
};

/* Opens --stats FILE, if that is asked for; what it holds stays until the report is written. */
int report_open(struct report *report, const struct options *o, struct problem *p);

/* These will send theirs. */
void report_expect(struct report *report, uint32_t hosts /* bit set */);
/* Of those, only these are still there. */
void report_keep_hosts(struct report *report, uint32_t hosts);
void report_on_stats(struct report *report, const void *body, size_t bytes);
void report_on_pages(struct report *report, const void *body, size_t bytes);
/* The statistics alone, and whether every host has sent its. */
void report_ask_stats(struct report *report, struct client *client, uint32_t hosts);
bool report_has_stats(const struct report *report);
bool report_is_complete(const struct report *report);
/* Writes --stats FILE and prints --summary, as asked for. */
void report_write(struct report *report, const struct options *o, uint64_t start_ns, int status);
void report_free(struct report *report);

#endif
