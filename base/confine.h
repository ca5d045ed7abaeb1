/* confine.h - a process gives up what it will not need, so that whoever takes it over cannot use
 * it either.
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

/* From here on no program that is executed brings privileges along (no_new_privs), and a crash
 * leaves no dump of memory. */
int confine_privileges(void);

/* No file can be opened, made or removed by its name, but for the `n` that are named here; no TCP port
 * bound or connected to; and, unless `signals`, no signal sent to a process outside, as far as this
 * kernel's Landlock knows of it.  What is open stays usable.  For this thread and those that it will
 * start, and for its children.  -EOPNOTSUPP or -ENOSYS: this kernel has no Landlock (before Linux 5.13,
 * or switched off). */
struct confine_file { const char *path; bool execute; }; /* to be read, or to be executed and read */
int confine_files(const struct confine_file *file, unsigned n, bool signals);

/* A system call that stays allowed; with `conditional`, if (its argument & mask) == value. */
struct confine_call {
	uint32_t number;
	bool conditional;
	uint8_t argument; /* 0 to 5 */
	uint64_t mask, value;
};
enum { CONFINE_MAX_CALLS = 128 };
#define CONFINE_CALL(name) { SYS_##name, false, 0, 0, 0 }
#define CONFINE_CALL_IF(name, argument, mask, value) { SYS_##name, true, argument, mask, value }

/* Any other system call, of any thread of this process, kills the process by SIGSYS.  Needs
 * confine_privileges(). */
int confine_calls(const struct confine_call *calls, unsigned n);

#endif
