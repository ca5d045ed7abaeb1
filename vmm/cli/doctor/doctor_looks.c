/* doctor_looks.c - see doctor.h: a function for each row of doctor.def. */
#include "vmm/cli/doctor/doctor.h"

#include <errno.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/limits.h"
#include "vmm/cli/rundir.h"
#include "vmm/cli/run/checks.h"
#include "vmm/shared/hostcpu.h"
#include "vmm/shared/hostmem.h"

enum {
	/* defined here, since the C library's headers may be older */
	LANDLOCK_CREATE_RULESET = 444, LANDLOCK_ASKS_VERSION = 1,
	PTRACE_SCOPE_ADMIN = 2,
	LEAST_MAPS = 65530,
	LEAST_FILES = 128, LEAST_PROCESSES = 256,
	GUEST_ADDRESSES_MIB = 4096 + DEFAULT_RAM_MIB,
	LEAST_DISK_MIB = 3072,
};

static void say(struct finding *f, bool good, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void say(struct finding *f, bool good, const char *format, ...)
{
	va_list args;

	f->good = good;
	va_start(args, format);
	vsnprintf(f->text, sizeof f->text, format, args);
	va_end(args);
}

/* Returns the number that a file holds, or `otherwise`. */
static long read_number(const char *root, const char *name, long otherwise)
{
	char path[PATH_MAX];
	long number = otherwise;
	FILE *file;

	snprintf(path, sizeof path, "%s%s", root, name);
	file = fopen(path, "re");
	if (file && fscanf(file, "%ld", &number) != 1)
		number = otherwise;
	if (file)
		fclose(file);
	return number;
}

static bool is_there(const char *root, const char *name, int how)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof path, "%s%s", root, name) < (int)sizeof path &&
	       !access(path, how);
}

/* Finds a program in the folders of PATH. */
static bool find_program(const char *root, const char *name, char *found, size_t bytes)
{
	const char *path = getenv("PATH") ?: "/usr/bin:/bin";

	for (size_t n; *path; path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		if (n && snprintf(found, bytes, "%.*s/%s", (int)n, path, name) < (int)bytes &&
		    is_there(root, found, X_OK))
			return true;
	}
	return false;
}

static void look_program(struct finding *f, const char *root, const char *name)
{
	char found[PATH_MAX];

	if (find_program(root, name, found, sizeof found))
		say(f, true, "%.300s", found);
	else
		say(f, false, "there is no %s", name);
}

void doctor_look_programs(struct finding *f, const char *root)
{
	static const char *const names[] = { "vmp-node", "vmp-monitor", "vmproc", "vmp-iosrv",
					     "vmp-host" };
	char path[PATH_MAX];

	(void)root;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (beside_path(names[i], path, sizeof path) || access(path, X_OK)) {
			say(f, false, "cannot run %s beside this program", names[i]);
			return;
		}
	}
	say(f, true, "%.300s", beside_folder(path, sizeof path) ? "" : path);
}

static void look_guest(struct finding *f, uint32_t mem_mib)
{
	struct host_files files;
	struct problem p;

	if (checks_guest(NULL, NULL, mem_mib, &files, &p))
		say(f, false, "%.390s", p.line);
	else
		say(f, true, "%.300s", files.kernel);
}

void doctor_look_guest(struct finding *f, const char *root)
{
	(void)root;
	look_guest(f, DEFAULT_RAM_MIB);
}

void doctor_look_guest_pae(struct finding *f, const char *root)
{
	(void)root;
	look_guest(f, MAX_RAM_MIB);
}

void doctor_look_code(struct finding *f, const char *root)
{
	struct utsname kernel;
	struct problem p;

	(void)root;
	if (hostcpu_check(false, &p))
		say(f, false, "%.390s", p.line);
	else
		say(f, true, "Linux %s runs it", uname(&kernel) ? "" : kernel.release);
}

void doctor_look_ptrace(struct finding *f, const char *root)
{
	long scope = read_number(root, "/proc/sys/kernel/yama/ptrace_scope", 0);

	if (scope > PTRACE_SCOPE_ADMIN || (scope == PTRACE_SCOPE_ADMIN && (geteuid() || *root)))
		say(f, false, "kernel.yama.ptrace_scope is %ld, which forbids it", scope);
	else
		say(f, true, "kernel.yama.ptrace_scope is %ld", scope);
}

void doctor_look_memfd(struct finding *f, const char *root)
{
	int fd = memfd_create("vmp-doctor", MFD_CLOEXEC);

	(void)root;
	say(f, fd >= 0, "%s", fd >= 0 ? "memory files can be made" : strerror(errno));
	if (fd >= 0)
		close(fd);
}

void doctor_look_seccomp(struct finding *f, const char *root)
{
	static const uint32_t actions[] = { SECCOMP_RET_TRAP, SECCOMP_RET_TRACE,
					    SECCOMP_RET_KILL_PROCESS };

	(void)root;
	for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
		if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &actions[i])) {
			say(f, false, "this kernel's seccomp cannot do what the jail needs: %s",
			    strerror(errno));
			return;
		}
	}
	say(f, true, "filters can trap, trace and kill");
}

void doctor_look_memory(struct finding *f, const char *root)
{
	uint64_t needed = hostmem_needed_mib(DEFAULT_RAM_MIB, 1, 1);
	struct hostmem has;

	hostmem_look(&has, root);
	if (has.mib == UINT64_MAX)
		say(f, true, "no limit is known");
	else
		say(f, has.mib >= needed, "%s is %llu MiB; a machine of %uM takes %llu MiB",
		    hostmem_name(&has), (unsigned long long)has.mib, DEFAULT_RAM_MIB,
		    (unsigned long long)needed);
}

/* Returns 0 if the limit is high enough; otherwise writes the finding and returns -1. */
static int check_limit(struct finding *f, int resource, rlim_t least, const char *name, char flag)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_max == RLIM_INFINITY ||
	    limit.rlim_max >= least)
		return 0;
	say(f, false, "%s: limited to %llu (ulimit -%c), a machine may need %llu", name,
	    (unsigned long long)limit.rlim_max, flag, (unsigned long long)least);
	return -1;
}

void doctor_look_limits(struct finding *f, const char *root)
{
	(void)root;
	if (check_limit(f, RLIMIT_NOFILE, LEAST_FILES, "open files", 'n') ||
	    check_limit(f, RLIMIT_NPROC, LEAST_PROCESSES, "processes", 'u') ||
	    check_limit(f, RLIMIT_AS, (rlim_t)GUEST_ADDRESSES_MIB << 20, "bytes of address space",
			'v') ||
	    check_limit(f, RLIMIT_FSIZE, (rlim_t)DEFAULT_RAM_MIB << 20, "bytes of a file", 'f'))
		return;
	say(f, true, "open files, processes, address space and size of files are enough");
}

void doctor_look_runtime(struct finding *f, const char *root)
{
	struct rundir_list list;
	struct problem p;

	(void)root;
	if (rundir_list(&list, &p))
		say(f, false, "%.390s", p.line);
	else
		say(f, true, "%u machine%s of yours run%s", list.n, list.n == 1 ? "" : "s",
		    list.n == 1 ? "s" : "");
}

void doctor_look_maps(struct finding *f, const char *root)
{
	long maps = read_number(root, "/proc/sys/vm/max_map_count", LEAST_MAPS);

	say(f, maps >= LEAST_MAPS, "vm.max_map_count is %ld", maps);
}

void doctor_look_hosts(struct finding *f, const char *root)
{
	struct problem p;

	(void)root;
	if (hostcpu_check(true, &p))
		say(f, false, "%.390s", p.line);
	else
		say(f, true, "userfaultfd write-protects shared pages");
}

void doctor_look_landlock(struct finding *f, const char *root)
{
	long version = syscall(LANDLOCK_CREATE_RULESET, NULL, 0, LANDLOCK_ASKS_VERSION);

	(void)root;
	if (version < 0)
		say(f, false, "this kernel has none: %s", strerror(errno));
	else
		say(f, true, "version %ld of its interface", version);
}

void doctor_look_cpuid(struct finding *f, const char *root)
{
	bool traps = hostcpu_has_cpuid_faulting();

	(void)root;
	say(f, traps, "this processor %s make CPUID trap", traps ? "can" : "cannot");
}

void doctor_look_libraries(struct finding *f, const char *root)
{
	bool has = is_there(root, "/lib/ld-linux.so.2", X_OK);

	say(f, has, "%s", has ? "/lib/ld-linux.so.2" : "there is no /lib/ld-linux.so.2");
}

/* gcc -m32 needs files of its own, and those of the 32-bit C library. */
void doctor_look_compiler(struct finding *f, const char *root)
{
	bool start = is_there(root, "/usr/lib32/crt1.o", R_OK) ||
		     is_there(root, "/usr/lib/i386-linux-gnu/crt1.o", R_OK);

	look_program(f, root, "gcc");
	if (f->good && !start)
		say(f, false, "gcc is there, what it needs for -m32 is not");
}

void doctor_look_ssh(struct finding *f, const char *root) { look_program(f, root, "ssh"); }
void doctor_look_gdb(struct finding *f, const char *root) { look_program(f, root, "gdb"); }
void doctor_look_qemu(struct finding *f, const char *root)
{
	look_program(f, root, "qemu-system-i386");
}

/* If the cache's folder is not there yet, the folder above it counts. */
void doctor_look_disk(struct finding *f, const char *root)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME") ?: "/";
	const char *folder = cache && *cache ? cache : home;
	struct statvfs room;
	unsigned long long mib;

	(void)root;
	if (statvfs(folder, &room) && statvfs(folder = home, &room)) {
		say(f, false, "cannot look at %.300s: %s", folder, strerror(errno));
		return;
	}
	mib = (unsigned long long)room.f_bavail * room.f_frsize >> 20;
	say(f, mib >= LEAST_DISK_MIB, "%llu MiB are free in %.300s", mib, folder);
}
