/* holder_start.h - starts `vmp hold`. */
#ifndef VMM_CLI_PARTS_HOLDER_START_H
#define VMM_CLI_PARTS_HOLDER_START_H

#include "vmm/cli/cluster/cluster_ssh.h"

/* Starts it on a host's computer by ssh, where `hash` names the programs; or, NULL, as a child on
 * this one.  Returns 0, or -1: too many processes or open files. */
int holder_start(struct ssh *ssh, const struct cluster_host *host, const char *hash);

#endif
