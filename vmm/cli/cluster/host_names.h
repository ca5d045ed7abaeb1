/* host_names.h - the names of a cluster's hosts.  A host has a number for the daemons and a name
 * for people.  RUNDIR/names holds them, in lines "NUMBER NAME".
 */
#ifndef VMM_CLI_CLUSTER_HOST_NAMES_H
#define VMM_CLI_CLUSTER_HOST_NAMES_H

#include "base/types.h"
#include "vmm/cli/cluster/cluster_file.h"

struct host_names { char name[MAX_NODES][MAX_HOST_NAME]; /* "": not known */ };

void names_write(const struct host_names *names, const char *rundir);
/* no names if there is no such file */
void names_read(struct host_names *names, const char *rundir);
/* Returns the number of the host of this name, or -1. */
int names_find(const struct host_names *names, const char *name);
/* Copies a line for people; each "host 2" in it becomes "host 2 (harp)" unless that is there
 * already.  Pure. */
void names_explain(const struct host_names *names, const char *line, char *out, size_t bytes);

#endif
