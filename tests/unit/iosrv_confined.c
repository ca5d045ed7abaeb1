/* iosrv_confined.c - the I/O server is confined (iosrv/iosrv_confine.c): it is made to call what it
 * does not need.  It is built without sanitizers alone (iosrv/module.mk).
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#undef PAGE_MASK /* <sys/user.h> has another one */
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/iosrv_process.h"
#include "tests/unit/unit.h"

/* Stops the server where it waits for messages, which it does sooner or later. */
static void stop_in_epoll_wait(struct user_regs_struct *regs)
{
	int status;

	for (;;) {
		CU_ASSERT_FATAL(!ptrace(PTRACE_ATTACH, server, NULL, NULL));
		CU_ASSERT_FATAL(waitpid(server, &status, 0) == server && WIFSTOPPED(status));
		CU_ASSERT_FATAL(!ptrace(PTRACE_GETREGS, server, NULL, regs));
		if ((regs->orig_rax == SYS_epoll_wait || regs->orig_rax == SYS_epoll_pwait) &&
		    (long)regs->rax == -EINTR)
			return;
		CU_ASSERT_FATAL(!ptrace(PTRACE_DETACH, server, NULL, NULL));
	}
}

/* Makes the server do a system call where it waits.  Returns the call's result; if the server was
 * killed, minus the signal times 10,000. */
static long make_server_call(long number, const unsigned long long arguments[4])
{
	struct user_regs_struct before, regs;
	int status;

	stop_in_epoll_wait(&before);
	regs = before;
	regs.rip -= 2; /* it stands behind the instruction SYSCALL */
	CU_ASSERT_FATAL((ptrace(PTRACE_PEEKTEXT, server, (void *)regs.rip, NULL) & 0xffff) ==
			0x050f);
	regs.orig_rax = ~0ull; /* nothing to be begun again */
	regs.rax = (unsigned long long)number;
	regs.rdi = arguments[0], regs.rsi = arguments[1], regs.rdx = arguments[2],
	regs.r10 = arguments[3];
	CU_ASSERT_FATAL(!ptrace(PTRACE_SETREGS, server, NULL, &regs));
	CU_ASSERT_FATAL(!ptrace(PTRACE_SINGLESTEP, server, NULL, NULL));
	CU_ASSERT_FATAL(waitpid(server, &status, 0) == server);
	if (WIFSIGNALED(status))
		return -10000l * WTERMSIG(status);
	CU_ASSERT_FATAL(!ptrace(PTRACE_GETREGS, server, NULL, &regs));
	before.orig_rax = ~0ull; /* interrupted: it waits again by itself */
	CU_ASSERT_FATAL(!ptrace(PTRACE_SETREGS, server, NULL, &before));
	CU_ASSERT_FATAL(!ptrace(PTRACE_DETACH, server, NULL, NULL));
	return (long)regs.rax;
}

static void test_forbidden_calls(void)
{
	static const struct { long number; unsigned long long arguments[4]; } rows[] = {
		{ SYS_open, { 0 } },
		{ SYS_openat, { 0 } },
		{ SYS_unlink, { 0 } },
		{ SYS_newfstatat, { 0 } },
		{ SYS_execve, { 0 } },
		{ SYS_clone, { 0 } },
		{ SYS_fork, { 0 } },
		{ SYS_socket, { AF_INET, SOCK_STREAM } },
		{ SYS_ioctl, { 0 } },
		{ SYS_ptrace, { PTRACE_TRACEME } },
		{ SYS_process_vm_readv, { 1 } },
		{ SYS_prctl, { 0 } },
		{ SYS_prlimit64, { 0 } },
		{ SYS_kill, { 1, 0 } },
		{ SYS_tgkill, { 1, 1, 0 } },
		{ SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS } },
		{ SYS_mprotect, { 0, 4096, PROT_EXEC } },
		{ SYS_getpid | 0x40000000 /* an x32 call */, { 0 } },
	};
	int status;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		start(NULL);
		expect_hello();
		CU_ASSERT(answers());
		CU_ASSERT_EQUAL(make_server_call(rows[i].number, rows[i].arguments),
				-10000l * SIGSYS);
		close(daemon_end);
		CU_ASSERT(waitpid(server, &status, WNOHANG) == -1); /* it is gone */
	}
}

/* Checks the test itself: calls that are allowed are made, and the server goes on. */
static void test_allowed_calls(void)
{
	start(NULL);
	expect_hello();
	CU_ASSERT(answers());
	CU_ASSERT_EQUAL(make_server_call(SYS_getpid, (unsigned long long[4]){ 0 }), server);
	CU_ASSERT(answers());
	CU_ASSERT(make_server_call(SYS_mmap,
				   (unsigned long long[4]){ 0, 4096, PROT_READ,
							    MAP_PRIVATE | MAP_ANONYMOUS }) > 0);
	CU_ASSERT(answers());
	stop();
}

/* Each thread has no new privileges and a filter; a crash leaves no dump. */
static void test_all_threads_are_confined(void)
{
	char path[64], line[256], image[64];
	int fd = make_image(image);
	unsigned threads = 0, confined = 0, no_dump = 0;
	struct dirent *entry;
	FILE *file;
	DIR *tasks;

	start(image);
	expect_hello();
	CU_ASSERT(answers());
	snprintf(path, sizeof path, "/proc/%d/task", server);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		snprintf(path, sizeof path, "/proc/%d/task/%.20s/status", server, entry->d_name);
		file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
		threads += file != NULL;
		while (file && fgets(line, sizeof line, file))
			confined += !strcmp(line, "NoNewPrivs:\t1\n") ||
				    !strcmp(line, "Seccomp:\t2\n");
		if (file)
			fclose(file);
	}
	closedir(tasks);
	CU_ASSERT(threads == 2 && confined == 2 * threads);
	snprintf(path, sizeof path, "/proc/%d/limits", server);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof line, file))
		no_dump += sscanf(line, "Max core file size %*1[01] %*1[01] bytes") == 0 &&
			   strstr(line, "core file") && !strstr(line, "unlimited");
	if (file)
		fclose(file);
	CU_ASSERT(no_dump == 1);
	stop();
	remove_image(image, fd);
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "forbidden calls", test_forbidden_calls },
		{ "allowed calls", test_allowed_calls },
		{ "all threads are confined", test_all_threads_are_confined },
		UNIT_END
	};

	(void)argc;
	find_server(argv[0]);
	return UNIT_RUN("confined I/O server", tests);
}
