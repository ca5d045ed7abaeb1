/* iosrv_confine.c - the rights that the I/O server keeps once everything is open: the second wall
 * behind the chips' own checks.
 *
 * An attacker who controls the server, by a guest's access or a snapshot's file, has the machine's
 * disk and its console already.  The host's files, processes and network must stay out of reach.
 * After both functions the server can use its open descriptors, allocate memory that cannot be
 * executed, and make the memory files that keep a disk's writes apart; nothing else
 * (base/calls.def).
 *
 * A forbidden call kills the server by SIGSYS, and so ends the machine.  The daemon's message
 * names it (base/killed.h).
 */
#include <errno.h>
#include <string.h>
#include "base/confine.h"
#include "base/log.h"
#include "iosrv/iosrv.h"

void iosrv_confine_files(void)
{
	int error = confine_privileges();

	if (error)
		die("cannot confine the I/O server: %s", strerror(-error));
	error = confine_files(NULL, 0, 0);
	if (error == -EOPNOTSUPP || error == -ENOSYS)
		log_info("this kernel has no Landlock; the I/O server goes without");
	else if (error)
		die("cannot confine the I/O server's files: %s", strerror(-error));
}

void iosrv_confine_calls(void)
{
	int error = confine_calls_of(CONFINE_IOSRV, false);

	if (error)
		die("cannot confine the I/O server's system calls: %s; is seccomp in this kernel?",
		    strerror(-error));
}
