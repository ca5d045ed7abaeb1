/* hostcpu.c - see hostcpu.h. A probe costs about 1 ms, most of it the fork. */
#include "vmm/shared/hostcpu.h"

#include <asm/ldt.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/faultpoint.h"

/* The C library's headers may be older than these (Linux 6.4). */
#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP ((__u64)1 << 1)
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum probe_result { PROBE_OK, PROBE_NO_LDT, PROBE_NO_SEGMENT, PROBE_NO_INT80, PROBE_NO_PTRACE };

static const char *const probe_texts[] = {
	[PROBE_NO_LDT] = "this host's kernel has no modify_ldt (CONFIG_MODIFY_LDT_SYSCALL), which "
			 "the guest's segments need",
	[PROBE_NO_SEGMENT] = "this host's kernel refuses a 32-bit code segment in the LDT, which "
			     "guest code needs",
	[PROBE_NO_INT80] = "this host cannot run 32-bit programs: IA-32 emulation is off "
			   "(CONFIG_IA32_EMULATION, or ia32_emulation=0 on its command line)",
	[PROBE_NO_PTRACE] = "this host forbids ptrace, which the ptrace engine needs (a "
			    "container's filter, or kernel.yama.ptrace_scope=3)",
};

/* Runs in the child; its exit status is the result.  If it dies of a signal, the result is
 * PROBE_NO_INT80. */
static enum probe_result probe(void)
{
	struct user_desc code = {
		.entry_number = 0, .limit = 0xfffff, .seg_32bit = 1,
		.contents = MODIFY_LDT_CONTENTS_CODE, .limit_in_pages = 1,
	};
	static const struct rlimit no_core;
	long pid;

	setrlimit(RLIMIT_CORE, &no_core);
	if (syscall(SYS_modify_ldt, 1, &code, sizeof code))
		return errno == ENOSYS || errno == EPERM ? PROBE_NO_LDT : PROBE_NO_SEGMENT;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		return PROBE_NO_PTRACE;
	/* Call 20 of i386 is getpid.  A kernel without IA-32 emulation has no gate there, and ends
	 * this process by a signal. */
	__asm__ volatile("int $0x80" : "=a"(pid) : "a"(20L) : "r8", "r9", "r10", "r11", "memory");
	return pid == getpid() ? PROBE_OK : PROBE_NO_INT80;
}

static int check_segments(struct problem *p)
{
	pid_t pid = fork();
	int status, result;

	if (pid < 0)
		return problem(p, "cannot start a process: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(probe());
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSTOPPED(status)) { /* it is traced, so it stops before SIGSEGV ends it */
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	result = WIFEXITED(status) ? WEXITSTATUS(status) : PROBE_NO_INT80;
	if (result == PROBE_OK)
		return 0;
	return problem(p, "%s",
		probe_texts[(size_t)result < ARRAY_LEN(probe_texts) ? result : PROBE_NO_INT80]);
}

/* Fills a page through another mapping and maps it write-protected, as a read copy is mapped. */
static bool try_continue(int uffd, int memory, char *page)
{
	struct uffdio_register range = {
		.range = { (uintptr_t)page, PAGE_BYTES },
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR |
			UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_continue show = { .range = range.range, .mode = UFFDIO_CONTINUE_MODE_WP };

	if (ioctl(uffd, UFFDIO_REGISTER, &range) || pwrite(memory, "x", 1, 0) != 1)
		return false;
	return !ioctl(uffd, UFFDIO_CONTINUE, &show) && *page == 'x';
}

static int check_userfaultfd(struct problem *p)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM |
			    UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_PAGEFAULT_FLAG_WP |
			    UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	int memory = memfd_create("vmp-probe", MFD_CLOEXEC), result = 0;
	char *page = MAP_FAILED;

	if (memory >= 0 && !ftruncate(memory, PAGE_BYTES))
		page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (uffd < 0)
		result = problem(p, "this host forbids userfaultfd (%s), which several hosts need; "
				 "use --hosts 1, or lift the container's filter", strerror(errno));
	else if (page == MAP_FAILED)
		result = problem(p, "cannot make a memory file: %s", strerror(errno));
	else if (ioctl(uffd, UFFDIO_API, &api) || !try_continue(uffd, memory, page))
		result = problem(p, "this host's kernel is older than 6.4: its userfaultfd cannot "
				 "write-protect the pages that several hosts share; use --hosts 1");
	if (page != MAP_FAILED)
		munmap(page, PAGE_BYTES);
	if (memory >= 0)
		close(memory);
	if (uffd >= 0)
		close(uffd);
	return result;
}

int hostcpu_check(bool several_hosts, struct problem *p)
{
	if (check_segments(p))
		return -1;
	return several_hosts ? check_userfaultfd(p) : 0;
}

bool hostcpu_has_cpuid_faulting(void)
{
	FILE *info = fopen("/proc/cpuinfo", "re");
	char word[64];
	bool found = false;

	while (info && !found && fscanf(info, "%63s", word) == 1)
		found = !strcmp(word, "cpuid_fault");
	if (info)
		fclose(info);
	return found;
}

void hostcpu_look(struct hostcpu *cpu)
{
	uint32_t lacks = fault_on(FAULT_CPU_LACKS) - 1;

	cpufeatures_vendor(cpu->vendor);
	cpu->hides = hostcpu_has_cpuid_faulting() || fault_on(FAULT_CPU_HIDES);
	cpufeatures_look(&cpu->features);
	if (lacks < 32 * CPU_FEATURE_WORDS)
		cpu->features.word[lacks / 32] &= ~(1u << lacks % 32);
}

int hostcpu_agree(struct hostcpu *guest, const struct hostcpu *host, bool shrinks,
		  struct problem *p)
{
	char feature[64];

	if (strcmp(guest->vendor, host->vendor))
		return problem(p, "processor is another vendor's (%s) than the guest's (%s)",
			       host->vendor, guest->vendor);
	if (cpufeatures_lacking(&guest->features, &host->features, feature, sizeof feature) &&
	    !(shrinks && guest->hides))
		return problem(p, "processor has no %s, which the guest's programs may use",
			       feature);
	if (cpufeatures_lacking(&host->features, &guest->features, feature, sizeof feature) &&
	    !host->hides)
		return problem(p, "processor has %s, which the guest has not, and it cannot be "
			       "hidden from the guest's programs",
			       feature);
	guest->hides &= host->hides;
	for (unsigned i = 0; i < CPU_FEATURE_WORDS; i++)
		guest->features.word[i] &= host->features.word[i];
	return 0;
}
