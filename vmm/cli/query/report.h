/* report.h - --stats and --summary: what the nodes have counted, which they send when they end. */
#ifndef VMM_CLI_QUERY_REPORT_H
#define VMM_CLI_QUERY_REPORT_H

#include <stdio.h>
#include "vmm/cli/client.h"
#include "vmm/cli/options.h"
#include "vmm/cli/query/pageheat.h"
#include "vmm/cli/query/tracefile.h"
#include "vmm/shared/stats.h"

struct report {
	uint32_t hosts; /* bit set of the hosts that must answer */
	uint64_t parts_seen[MAX_NODES]; /* bit set of the parts that have arrived */
	uint32_t parts[MAX_NODES];	/* 0: none has arrived yet */
	bool pages_seen[MAX_NODES];
	struct node_stats node[MAX_NODES];
	struct cpu_stats cpu[MAX_CPUS];
	bool cpu_seen[MAX_CPUS];
	struct pageheat heat; /* of all nodes together */
	FILE *stats;	      /* --stats FILE, or NULL */
	struct tracefile trace;
};

/* The names that --stats and `vmp metrics` give to the kinds of time and of traps. */
extern const char *const report_time_names[TIME_KIND_COUNT];
void report_print_trap(FILE *file, enum trap_kind kind);

/* Opens --stats FILE and --trace FILE, if given.  Old contents stay until the report is written. */
int report_open(struct report *report, const struct options *o, struct problem *p);

/* Says which hosts will send their counters. */
void report_expect(struct report *report, uint32_t hosts /* bit set */);
/* Says which of them are still there. */
void report_keep_hosts(struct report *report, uint32_t hosts);
void report_on_stats(struct report *report, const void *body, size_t bytes);
void report_on_pages(struct report *report, const void *body, size_t bytes);
void report_on_trace(struct report *report, const void *body, size_t bytes);
/* Asks for the counters alone; report_has_stats() returns whether every host has sent them. */
void report_ask_stats(struct report *report, struct client *client, uint32_t hosts);
bool report_has_stats(const struct report *report);
bool report_is_complete(const struct report *report);
/* Writes --stats FILE and --trace FILE and prints --summary, if they were asked for.  `kernel` is
 * the vmlinux, for symbols.  Returns 0, or -1 if a file could not be written; a line has said
 * why. */
int report_write(struct report *report, const struct options *o, const char *kernel,
		 uint64_t start_ns, int status);
void report_free(struct report *report);

#endif
