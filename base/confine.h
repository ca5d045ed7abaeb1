/* confine.h - a process gives up the rights that it will not need, so that an attacker who controls
 * it has none of them.
 *
 * Rules of use: open everything first.  Then confine_privileges(), confine_files(), start all
 * threads, confine_calls(). Nothing of this can be undone.  Each function returns 0 or -errno.
 *
 * Built with the address or thread sanitizer, confine_files() and confine_calls() do nothing: the
 * sanitizers' runtimes open files, start programs and make calls of their own, in particular when
 * they report.
 */
#ifndef BASE_CONFINE_H
#define BASE_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

/* From this call on, no program that the process executes gains privileges (no_new_privs), and a
 * crash leaves no dump of memory. */
int confine_privileges(void);

/* Give up files: only the `n` files named here can be opened, made or removed by name.  Unless
 * `keep` has them, no TCP port can be bound or connected to, and no signal can be sent to a process
 * outside.  From Linux 7.1 on no socket with a name can be reached that another process has made,
 * but for those in a CONFINE_OWN_FOLDER.  All that holds as far as this kernel's Landlock supports
 * it, for this thread, the threads that it will start, and its children.  Open descriptors stay
 * usable.  -EOPNOTSUPP or -ENOSYS: this kernel has no Landlock (before Linux 5.13, or disabled). */
enum confine_use {
	CONFINE_READ,	    /* read the file, or all files below the folder */
	CONFINE_EXECUTE,    /* execute and read */
	CONFINE_WRITE,	    /* write and read a file that exists */
	/* read, write, make and remove the files, sockets and symbolic links in a folder, and reach
	 * the sockets */
	CONFINE_OWN_FOLDER,
	CONFINE_READ_FOLDER, /* read files and folders below it */
	CONFINE_REMOVE, /* remove files and folders below it; nothing else */
	/* all of what a folder allows, and make, remove and move files, folders, links, FIFOs and
	 * sockets below it */
	CONFINE_SHARE,
};
/* A file that does not exist is left out. */
struct confine_file { const char *path; enum confine_use use; };
enum { CONFINE_KEEP_SIGNALS = 1, CONFINE_KEEP_CONNECT = 2, CONFINE_KEEP_BIND = 4 };
int confine_files(const struct confine_file *file, unsigned n, unsigned keep);

/* A system call that stays allowed; with `conditional`, if (its argument & mask) == value. */
struct confine_call {
	uint32_t number;
	bool conditional;
	uint8_t argument; /* 0 to 5 */
	uint64_t mask, value;
};
enum { CONFINE_MAX_CALLS = 192 };
#define CONFINE_CALL(name) { SYS_##name, false, 0, 0, 0 }
#define CONFINE_CALL_IF(name, argument, mask, value) { SYS_##name, true, argument, mask, value }

/* Kinds of processes (base/calls.def).  An I/O server, vmp-net, vmp-share, a holder, and vmp-host
 * once its daemon runs, start no other process; any other call of any thread of theirs kills them
 * by SIGSYS.  A monitor and a daemon start others, which inherit the filter; another call kills
 * them by SIGSYS, too, or, if VM processes are `traced` (the ptrace engine), fails with ENOSYS. */
enum confine_kind {
	CONFINE_IOSRV, CONFINE_VMP_NET, CONFINE_VMP_SHARE, CONFINE_VMP_HOST, CONFINE_MONITOR,
	CONFINE_NODE, CONFINE_HOLDER, CONFINE_FAR_NODE /* of a machine of several computers */
};

/* Needs confine_privileges(). Rows in any order. */
int confine_calls(const struct confine_call *calls, unsigned n, enum confine_kind kind,
		  bool traced);
/* The table's rows for this kind. */
int confine_calls_of(enum confine_kind kind, bool traced);

#endif
