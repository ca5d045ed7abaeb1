/* cluster_ssh.h - a command that the system's ssh runs on another computer, with pipes for its standard streams.
 *
 * Nobody is asked anything: ssh must log in without a password.  It ends with this process.  The program is `ssh`, or what the
 * environment's VMP_SSH names.
 */
#ifndef VMM_CLI_CLUSTER_CLUSTER_SSH_H
#define VMM_CLI_CLUSTER_CLUSTER_SSH_H

#include <sys/types.h>
#include "vmm/cli/cluster/cluster_file.h"

struct ssh { pid_t pid; int in, out, err; }; /* our ends: nonblocking, and to be closed by the caller */

/* `options`: more of ssh's own, NULL-terminated, or NULL. 0, or -1 with everything -1 and pid 0: no more processes or open files. */
int ssh_start(struct ssh *ssh, const struct cluster_host *host, const char *const *options, const char *command);

/* The folder of this version's programs on any host, as $d of a shell; printf's %s is the bundle's hash (bundle.h). */
#define SSH_FOLDER "d=${XDG_CACHE_HOME:-$HOME/.cache}/vmp/bin-%s; "

#endif
