/* cluster_ssh.h - a command that the system's ssh runs on another computer, with pipes for its
 * standard streams.
 *
 * ssh asks no questions: it must log in without a password.  It ends when this process ends.  The
 * program is `ssh`, or the one in the environment variable VMP_SSH.
 */
#ifndef VMM_CLI_CLUSTER_CLUSTER_SSH_H
#define VMM_CLI_CLUSTER_CLUSTER_SSH_H

#include <stdbool.h>
#include <sys/types.h>
#include "vmm/cli/cluster/cluster_file.h"

/* The program is vmp-rsh (peers.h): what it starts uses vmp-rsh too, where that lies there. */
extern bool ssh_is_rsh;

/* this process's ends of the pipes: nonblocking; the caller closes them */
struct ssh { pid_t pid; int in, out, err; };

/* Starts an ssh.  `options` are further options of ssh, NULL-terminated, or NULL.  A command that
 * `stays` goes on when the connection is lost.  Returns 0; or -1 with all descriptors -1 and pid 0,
 * if there are too many processes or open files. */
int ssh_start(struct ssh *ssh, const struct cluster_host *host, const char *const *options,
	      const char *command, bool stays);

/* The same for any child: it calls become(), which takes the pipes' `ends` for standard input,
 * output and error, and executes a program, unless `parent` is not its parent any more. */
int ssh_fork(struct ssh *ssh, void (*become)(void *context, const int ends[3], pid_t parent),
	     void *context);

/* Sets $d in a shell to the folder of this version's programs, on any host. %s is the bundle's hash
 * (bundle.h). */
#define SSH_FOLDER "d=${XDG_CACHE_HOME:-$HOME/.cache}/vmp/bin-%s; "

#endif
