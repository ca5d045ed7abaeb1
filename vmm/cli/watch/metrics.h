/* metrics.h - a machine's counters as OpenMetrics text, which Prometheus reads. */
#ifndef VMM_CLI_WATCH_METRICS_H
#define VMM_CLI_WATCH_METRICS_H

#include <stdio.h>
#include "vmm/cli/query/status.h"
#include "vmm/cli/rundir.h"

#define METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Writes all metrics of one sample, up to the line "# EOF". */
void metrics_print(FILE *out, const char *name, const struct machine_info *info,
		   const struct status_look *now);

#endif
