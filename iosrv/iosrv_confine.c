/* iosrv_confine.c - what the I/O server may still do once everything is open: the second wall
 * behind the chips' own checks.
 *
 * Who takes over the server, by a guest's access or a snapshot's file, holds the machine's disk
 * and its console already. It must not reach the host's files, processes or network.  After
 * iosrv_confine() the server can use what it has open, get memory that cannot be executed, and
 * make the memory files that keep a disk's writes apart; nothing else.
 *
 * A forbidden call kills the server by SIGSYS, and so ends the machine.  The daemon's message
 * names it (base/killed.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/confine.h"
#include "base/log.h"
#include "iosrv/iosrv.h"

void iosrv_confine_files(void)
{
	int error = confine_privileges();

	if (error)
		die("cannot confine the I/O server: %s", strerror(-error));
	error = confine_files(NULL, 0, false);
	if (error == -EOPNOTSUPP || error == -ENOSYS)
		log_info("this kernel has no Landlock; the I/O server goes without");
	else if (error)
		die("cannot confine the I/O server's files: %s", strerror(-error));
}

void iosrv_confine_calls(void)
{
	const struct confine_call calls[] = {
		/* The socket of the daemon, the threads' sockets, the log. */
		CONFINE_CALL(read), CONFINE_CALL(write), CONFINE_CALL(writev), CONFINE_CALL(recvfrom),
		CONFINE_CALL(recvmsg), CONFINE_CALL(sendto), CONFINE_CALL(sendmsg), CONFINE_CALL(poll),
		CONFINE_CALL(ppoll),
		/* The loop. */
		CONFINE_CALL(epoll_wait), CONFINE_CALL(epoll_pwait), CONFINE_CALL(epoll_pwait2),
		CONFINE_CALL(epoll_ctl), CONFINE_CALL(clock_gettime), CONFINE_CALL(gettimeofday),
		CONFINE_CALL(restart_syscall),
		/* The disk's image, and the memory files of a snapshot. */
		CONFINE_CALL(pread64), CONFINE_CALL(pwrite64), CONFINE_CALL(fdatasync),
		CONFINE_CALL(ftruncate), CONFINE_CALL(memfd_create), CONFINE_CALL(close),
		CONFINE_CALL(fstat),
		/* fstat(), of some C libraries */
		CONFINE_CALL_IF(newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH),
		/* Memory, never to be executed. */
		CONFINE_CALL(brk), CONFINE_CALL(munmap), CONFINE_CALL(mremap), CONFINE_CALL(madvise),
		CONFINE_CALL_IF(mmap, 2, PROT_EXEC, 0), CONFINE_CALL_IF(mprotect, 2, PROT_EXEC, 0),
		CONFINE_CALL(getrandom),
		/* The threads, and the end: exit(), or abort() behind bug(). */
		CONFINE_CALL(futex), CONFINE_CALL(sched_yield), CONFINE_CALL(rt_sigreturn),
		CONFINE_CALL(rt_sigprocmask), CONFINE_CALL(rt_sigaction), CONFINE_CALL(getpid),
		CONFINE_CALL(gettid), CONFINE_CALL_IF(tgkill, 0, ~0ull, (uint64_t)getpid()),
		CONFINE_CALL(exit), CONFINE_CALL(exit_group),
	};
	int error = confine_calls(calls, ARRAY_LEN(calls));

	if (error)
		die("cannot confine the I/O server's system calls: %s; is seccomp in this kernel?",
		    strerror(-error));
}
