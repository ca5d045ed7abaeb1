/* rundir_names.h - the files of a run folder that more than one program names.
 *
 * The folder belongs to one machine (vmm/cli/rundir.h makes it, mode 0700).
 */
#ifndef VMM_SHARED_RUNDIR_NAMES_H
#define VMM_SHARED_RUNDIR_NAMES_H

/* The socket by which ssh connections to one host are shared.  Arguments: the run folder, and the
 * host's name in the cluster file, or "%n", which ssh itself replaces by that name. */
#define RUNDIR_SSH_FORMAT "%s/ssh-%s"

#endif
