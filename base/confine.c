/* confine.c - see confine.h. */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
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

/* --- Landlock --------------------------------------------------------------------------------- */

/* Defined here, since the C library's headers may be older than the kernel. */
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD, LANDLOCK_RESTRICT = 446, LANDLOCK_VERSION_FLAG = 1 };

/* The kernel's struct landlock_ruleset_attr.  Each version of the interface adds fields; an older
 * kernel accepts a longer struct that ends in zeros. */
struct ruleset { uint64_t files, tcp, scope; };

static struct ruleset everything_of(long version, unsigned keep)
{
	/* Rights on files: 13 in the first version, then REFER, TRUNCATE, from version 5 on
	 * IOCTL_DEV, and from version 9 on RESOLVE_UNIX. */
	unsigned rights = version >= 9 ? 17 : version >= 5 ? 16 : version >= 3 ? 15 :
			  version == 2 ? 14 : 13;

	return (struct ruleset){
		.files = (1ull << rights) - 1,
		/* bind, connect */
		.tcp = version < 4 ? 0
				   : (keep & CONFINE_KEEP_BIND ? 0 : 1) |
					     (keep & CONFINE_KEEP_CONNECT ? 0 : 2),
		/* abstract sockets of others, signals to others */
		.scope = version >= 6 ? (keep & CONFINE_KEEP_SIGNALS ? 1 : 3) : 0,
	};
}

/* Add a rule that allows this file, as far as this kernel knows the rights.  Returns 0 or
 * -errno. */
static int let_open(int rules, const struct confine_file *file, uint64_t known)
{
	enum {
		EXECUTE = 1, WRITE = 2, READ = 4, READ_FOLDER = 8, REMOVE_FOLDER = 0x10,
		REMOVE_FILE = 0x20, MAKE_FOLDER = 0x80, MAKE_FILE = 0x100, MAKE_SOCKET = 0x200,
		MAKE_FIFO = 0x400, MAKE_SYMLINK = 0x1000, MOVE = 0x2000, TRUNCATE = 0x4000,
		REACH_SOCKET = 0x10000,
		BENEATH_PATH = 1,
	};
	static const uint64_t rights[] = {
		[CONFINE_READ] = READ,
		[CONFINE_EXECUTE] = READ | EXECUTE,
		[CONFINE_WRITE] = READ | WRITE,
		[CONFINE_OWN_FOLDER] = READ | WRITE | READ_FOLDER | REMOVE_FILE | MAKE_FILE |
				       MAKE_SOCKET | MAKE_SYMLINK | REACH_SOCKET,
		[CONFINE_READ_FOLDER] = READ | READ_FOLDER,
		[CONFINE_REMOVE] = REMOVE_FOLDER | REMOVE_FILE,
		[CONFINE_SHARE] = READ | WRITE | READ_FOLDER | REMOVE_FOLDER | REMOVE_FILE |
				  MAKE_FOLDER | MAKE_FILE | MAKE_SOCKET | MAKE_FIFO | MAKE_SYMLINK |
				  MOVE | TRUNCATE,
	};
	struct { uint64_t rights; int32_t fd; } __attribute__((packed)) rule = {
		.rights = rights[file->use] & known, .fd = open(file->path, O_PATH | O_CLOEXEC),
	};
	int error = 0;

	if (rule.fd < 0 && errno == ENOENT)
		return 0; /* a file that does not exist needs no rule */
	if (rule.fd < 0 || syscall(LANDLOCK_ADD, rules, BENEATH_PATH, &rule, 0))
		error = -errno;
	if (rule.fd >= 0)
		close(rule.fd);
	return error;
}

int confine_files(const struct confine_file *file, unsigned n, unsigned keep)
{
	struct ruleset ruleset;
	int fd, error = 0;
	long version;

	if (SANITIZED)
		return 0;
	version = syscall(LANDLOCK_CREATE, NULL, 0, LANDLOCK_VERSION_FLAG);
	if (version < 0)
		return -errno;
	ruleset = everything_of(version, keep);
	fd = (int)syscall(LANDLOCK_CREATE, &ruleset, sizeof ruleset, 0);
	if (fd < 0)
		return -errno;
	for (unsigned i = 0; i < n && !error; i++)
		error = let_open(fd, &file[i], ruleset.files);
	if (!error && syscall(LANDLOCK_RESTRICT, fd, 0))
		error = -errno;
	close(fd);
	return error;
}

/* --- seccomp --- */

enum { MOST_PER_CALL = 16, MOST_BEFORE = 16 }; /* instructions */

struct program {
	struct sock_filter code[CONFINE_MAX_CALLS * MOST_PER_CALL + MOST_BEFORE];
	unsigned length;
	uint32_t refuse;
};

static void put(struct program *p, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false)
{
	p->code[p->length++] = (struct sock_filter){ code, if_true, if_false, k };
}

static void put_load(struct program *p, size_t offset)
{
	put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void put_return(struct program *p, uint32_t what)
{
	put(p, BPF_RET | BPF_K, what, 0, 0);
}

/* Emit the check of one row, whose number matches: allow the call if the condition holds, else fall
 * through. */
static void put_row(struct program *p, const struct confine_call *call)
{
	size_t argument = offsetof(struct seccomp_data, args) + call->argument * sizeof(uint64_t);

	if (call->conditional) { /* both halves of the argument */
		put_load(p, argument);
		put(p, BPF_ALU | BPF_AND | BPF_K, (uint32_t)call->mask, 0, 0);
		put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call->value, 0, 4);
		put_load(p, argument + sizeof(uint32_t));
		put(p, BPF_ALU | BPF_AND | BPF_K, (uint32_t)(call->mask >> 32), 0, 0);
		put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(call->value >> 32), 0, 1);
	}
	put_return(p, SECCOMP_RET_ALLOW);
}

/* Emit the checks of the rows of one number; the call's number is loaded. */
static void put_leaf(struct program *p, const struct confine_call *calls, unsigned n)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, calls->number, 1, 0);
	put_return(p, p->refuse);
	for (unsigned i = 0; i < n; i++)
		put_row(p, &calls[i]);
	if (calls[n - 1].conditional)
		put_return(p, p->refuse);
}

/* Emit a binary search over the rows, which are sorted by number: each call of a VM process passes
 * up to three filters. */
static void put_tree(struct program *p, const struct confine_call *calls, unsigned n)
{
	unsigned middle = n / 2, jump;

	while (middle && calls[middle - 1].number == calls[middle].number)
		middle--;
	if (!middle)
		for (middle = n / 2; middle < n && calls[middle].number == calls[0].number;
		     middle++)
			;
	if (middle == n) {
		put_leaf(p, calls, n);
		return;
	}
	put(p, BPF_JMP | BPF_JGE | BPF_K, calls[middle].number, 0, 1);
	jump = p->length;
	put(p, BPF_JMP | BPF_JA, 0, 0, 0);
	put_tree(p, calls, middle);
	p->code[jump].k = p->length - jump - 1;
	put_tree(p, calls + middle, n - middle);
}

static int by_number(const void *a, const void *b)
{
	const struct confine_call *x = a, *y = b;

	if (x->number != y->number)
		return x->number > y->number ? 1 : -1;
	/* A row without a condition is the last of its number: no row behind it is reached. */
	return y->conditional - x->conditional;
}

/* A process of this kind starts no other. */
static bool is_alone(enum confine_kind kind) { return kind < CONFINE_MONITOR; }

/* Emit the check of the architecture: an i386 call is refused, except the one that a VM process
 * needs. */
static void put_architecture(struct program *p, enum confine_kind kind)
{
	enum { I386_SET_THREAD_AREA = 243 };

	put_load(p, offsetof(struct seccomp_data, arch));
	put(p, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 5, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_I386, 0, 3);
	put_load(p, offsetof(struct seccomp_data, nr));
	put(p, BPF_JMP | BPF_JEQ | BPF_K, is_alone(kind) ? UINT32_MAX : I386_SET_THREAD_AREA,
	    0, 1);
	put_return(p, SECCOMP_RET_ALLOW);
	put_return(p, p->refuse);
	put_load(p, offsetof(struct seccomp_data, nr));
}

/* Return the action for a refused call.  A VM process's own filter stops a guest's system calls for
 * its engine to handle, and an outer filter must not be stricter.  With TRAP, any other process
 * that makes such a call is killed by SIGSYS; with TRACE the call fails, because no tracer handles
 * it. */
static uint32_t refusal(enum confine_kind kind, bool traced)
{
	if (is_alone(kind))
		return SECCOMP_RET_KILL_PROCESS;
	return traced ? SECCOMP_RET_TRACE : SECCOMP_RET_TRAP;
}

int confine_calls(const struct confine_call *calls, unsigned n, enum confine_kind kind, bool traced)
{
	static struct program p;
	struct confine_call sorted[CONFINE_MAX_CALLS];
	struct sock_fprog filter = { .filter = p.code };
	long result;

	if (SANITIZED)
		return 0;
	if (!n || n > CONFINE_MAX_CALLS)
		return -E2BIG;
	memcpy(sorted, calls, n * sizeof *calls);
	qsort(sorted, n, sizeof *sorted, by_number);
	p = (struct program){ .refuse = refusal(kind, traced) };
	put_architecture(&p, kind);
	put_tree(&p, sorted, n);
	filter.len = (uint16_t)p.length;
	/* For all threads.  The result is -1, or the number of a thread that has a filter of its
	 * own. */
	result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
	return result > 0 ? -EBUSY : result ? -errno : 0;
}

/* --- the table --- */

enum {
	IOSRV = 1 << CONFINE_IOSRV, NET = 1 << CONFINE_VMP_NET, SHARE = 1 << CONFINE_VMP_SHARE,
	HOST = 1 << CONFINE_VMP_HOST, MONITOR = 1 << CONFINE_MONITOR, NODE = 1 << CONFINE_NODE,
	HOLD = 1 << CONFINE_HOLDER, FAR_NODE = 1 << CONFINE_FAR_NODE,
};
enum { CONFINE_NEW_NAMESPACES = 0x7e020000, CONFINE_PTRACE_SET_THREAD_AREA = 26 };

int confine_calls_of(enum confine_kind kind, bool traced)
{
	const struct { struct confine_call call; unsigned who; } table[] = {
#define CALL(name, who) { CONFINE_CALL(name), who },
#define CALL_IF(name, who, argument, mask, value) \
	{ CONFINE_CALL_IF(name, argument, mask, (uint64_t)(value)), who },
#include "base/calls.def"
	};
	struct confine_call calls[ARRAY_LEN(table)];
	bool daemon = kind == CONFINE_NODE || kind == CONFINE_FAR_NODE;
	unsigned n = 0, who = 1u << kind | (daemon ? NODE | MONITOR : 0);

	for (unsigned i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].who & who)
			calls[n++] = table[i].call;
	return confine_calls(calls, n, kind, traced);
}
