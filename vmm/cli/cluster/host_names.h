/* host_names.h - a host of a cluster has a number, by which the daemons know it, and a name, by which people do.  RUNDIR/names holds
 * them: a line "NUMBER NAME" each.
 */
#ifndef VMM_CLI_CLUSTER_HOST_NAMES_H
#define VMM_CLI_CLUSTER_HOST_NAMES_H

#include "base/types.h"
#include "vmm/cli/cluster/cluster_file.h"

struct host_names { char name[MAX_NODES][MAX_HOST_NAME]; /* "": not known */ };

void names_write(const struct host_names *names, const char *rundir);
void names_read(struct host_names *names, const char *rundir); /* none, if there is no such file */
/* The number of a host of this name, or -1. */
int names_find(const struct host_names *names, const char *name);
/* A line for people: each "host 2" in it becomes "host 2 (harp)", but where it says so already. Pure. */
void names_explain(const struct host_names *names, const char *line, char *out, size_t bytes);

#endif
