/* confine.c - see confine.h. */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/types.h"

/* See confine.h: a sanitizer's runtime must not be confined. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

/* A limit of one byte instead of none: the kernel ignores a limit of 0 when dumps go to a program,
 * and obeys this one. */
enum { NO_DUMP = 1 };

int confine_privileges(void)
{
	struct rlimit limit;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || getrlimit(RLIMIT_CORE, &limit))
		return -errno;
	if (limit.rlim_max > NO_DUMP)
		limit.rlim_max = NO_DUMP;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_CORE, &limit) ? -errno : 0;
}

/* --- Landlock: numbers of its own, since the C library's headers are older than what kernels know
 * --- */

enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD, LANDLOCK_RESTRICT = 446, LANDLOCK_VERSION_FLAG = 1 };

/* The kernel's struct landlock_ruleset_attr. Each version of the interface knows more of it; a
 * longer struct that ends in zeros is accepted by older kernels. */
struct ruleset { uint64_t files, tcp, scope; };

static struct ruleset everything_of(long version, bool signals)
{
	/* Rights on files: 13 in the first version, then REFER, TRUNCATE, and from version 5 on
	 * IOCTL_DEV. */
	unsigned rights = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;

	return (struct ruleset){
		.files = (1ull << rights) - 1,
		.tcp = version >= 4 ? 3 : 0,	/* bind, connect */
		/* abstract sockets of others, signals to others */
		.scope = version >= 6 ? (signals ? 1 : 3) : 0,
	};
}

/* 0 or -errno. */
static int let_open(int rules, const struct confine_file *file)
{
	enum { EXECUTE = 1, READ = 4, BENEATH_PATH = 1 };
	struct { uint64_t rights; int32_t fd; } __attribute__((packed)) rule = {
		.rights = READ | (file->execute ? EXECUTE : 0), .fd = open(file->path, O_PATH | O_CLOEXEC),
	};
	int error = 0;

	if (rule.fd < 0 || syscall(LANDLOCK_ADD, rules, BENEATH_PATH, &rule, 0))
		error = -errno;
	if (rule.fd >= 0)
		close(rule.fd);
	return error;
}

int confine_files(const struct confine_file *file, unsigned n, bool signals)
{
	struct ruleset ruleset;
	int fd, error = 0;
	long version;

	if (SANITIZED)
		return 0;
	version = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION_FLAG);
	if (version < 0)
		return -errno;
	ruleset = everything_of(version, signals);
	fd = (int)syscall(LANDLOCK_CREATE, &ruleset, sizeof ruleset, 0);
	if (fd < 0)
		return -errno;
	for (unsigned i = 0; i < n && !error; i++)
		error = let_open(fd, &file[i]);
	if (!error && syscall(LANDLOCK_RESTRICT, fd, 0))
		error = -errno;
	close(fd);
	return error;
}

/* --- seccomp --- */

enum { MOST_PER_CALL = 9 }; /* instructions */

struct program {
	struct sock_filter code[CONFINE_MAX_CALLS * MOST_PER_CALL + 8];
	unsigned length;
};

static void put(struct program *p, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false)
{
	p->code[p->length++] = (struct sock_filter){ code, if_true, if_false, k };
}

static void put_load(struct program *p, size_t offset)
{
	put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* Lets the call go if it is this one; else falls through to what comes next. */
static void put_call(struct program *p, const struct confine_call *call)
{
	size_t argument = offsetof(struct seccomp_data, args) + call->argument * sizeof(uint64_t);

	put_load(p, offsetof(struct seccomp_data, nr));
	put(p, BPF_JMP | BPF_JEQ | BPF_K, call->number, 0, call->conditional ? 7 : 1);
	if (call->conditional) { /* both halves of the argument */
		put_load(p, argument);
		put(p, BPF_ALU | BPF_AND | BPF_K, (uint32_t)call->mask, 0, 0);
		put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call->value, 0, 4);
		put_load(p, argument + sizeof(uint32_t));
		put(p, BPF_ALU | BPF_AND | BPF_K, (uint32_t)(call->mask >> 32), 0, 0);
		put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(call->value >> 32), 0, 1);
	}
	put(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

int confine_calls(const struct confine_call *calls, unsigned n)
{
	struct program p = { .length = 0 };
	struct sock_fprog filter = { .filter = p.code };
	long result;

	if (SANITIZED)
		return 0;
	if (n > CONFINE_MAX_CALLS)
		return -E2BIG;
	put_load(&p, offsetof(struct seccomp_data, arch));
	put(&p, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	put(&p, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	for (unsigned i = 0; i < n; i++)
		put_call(&p, &calls[i]);
	put(&p, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	filter.len = (uint16_t)p.length;
	/* For all threads: -1 if it fails for this one, or the number of a thread that has a
	 * filter of its own. */
	result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
	return result > 0 ? -EBUSY : result ? -errno : 0;
}
