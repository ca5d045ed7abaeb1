/* without.c - runs a program as on a host that lacks a feature: a seccomp filter makes the
 * feature's system calls fail.
 *
 *   without WHAT PROGRAM ARG...
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ANY_CALL = 0xffffffff, STATUS_WRONG_USE = 2, STATUS_NOT_FOUND = 127 };

/* The calls of one architecture that fail: all, or one; if `request` is not 0, only with that
 * second argument. */
static const struct rule {
	const char *what;
	uint32_t architecture, call, request, answer;
} rules[] = {
	{ "modify_ldt", AUDIT_ARCH_X86_64, SYS_modify_ldt, 0, SECCOMP_RET_ERRNO | ENOSYS },
	{ "ldt-code-segments", AUDIT_ARCH_X86_64, SYS_modify_ldt, 0, SECCOMP_RET_ERRNO | EINVAL },
	{ "ia32-gate", AUDIT_ARCH_I386, ANY_CALL, 0, SECCOMP_RET_KILL_PROCESS },
	{ "ia32-calls", AUDIT_ARCH_I386, ANY_CALL, 0, SECCOMP_RET_ERRNO | ENOSYS },
	{ "ptrace", AUDIT_ARCH_X86_64, SYS_ptrace, 0, SECCOMP_RET_ERRNO | EPERM },
	{ "userfaultfd", AUDIT_ARCH_X86_64, SYS_userfaultfd, 0, SECCOMP_RET_ERRNO | EPERM },
	{ "uffdio-continue", AUDIT_ARCH_X86_64, SYS_ioctl, (uint32_t)UFFDIO_CONTINUE,
	  SECCOMP_RET_ERRNO | EINVAL },
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define OR_ANY(wild, value, skip) \
	BPF_JUMP(BPF_JMP | ((value) == (wild) ? BPF_JGE : BPF_JEQ) | BPF_K, \
		 (value) == (wild) ? 0 : (value), 0, skip)

static int forbid(const struct rule *rule)
{
	struct sock_filter filter[] = {
		LOAD(arch), UNLESS(rule->architecture, 5),
		LOAD(nr), OR_ANY(ANY_CALL, rule->call, 3),
		LOAD(args[1]), OR_ANY(0, rule->request, 1),
		BPF_STMT(BPF_RET | BPF_K, rule->answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 2 && i < sizeof rules / sizeof *rules; i++) {
		if (strcmp(rules[i].what, argv[1]))
			continue;
		if (forbid(&rules[i])) {
			perror("without: seccomp");
			return STATUS_WRONG_USE;
		}
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		return STATUS_NOT_FOUND;
	}
	fprintf(stderr, "usage: without WHAT PROGRAM ARG...\n");
	return STATUS_WRONG_USE;
}
