/* processes.c - fork, exec, wait, exit statuses, orphans, copy-on-write, spawn, process groups,
 * kill -9. */
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include "tests/guest/check.h"

extern char **environ;

static int wait_for(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void test_statuses(void)
{
	bool all = true;

	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(i);
		status = wait_for(pid);
		all = all && WIFEXITED(status) && WEXITSTATUS(status) == i;
	}
	expect("fifty children, each with its own exit status", all);
}

static void test_copy_on_write(void)
{
	enum { PAGES = 64 };
	static volatile char memory[PAGES * 4096];
	bool kept = true;
	pid_t pid;

	for (int i = 0; i < PAGES; i++)
		memory[i * 4096] = (char)i;
	pid = fork();
	if (pid == 0) {
		bool good = true;

		for (int i = 0; i < PAGES; i++)
			good = good && memory[i * 4096] == (char)i;
		for (int i = 0; i < PAGES; i++)
			memory[i * 4096] = 99;
		_exit(good ? 0 : 1);
	}
	expect("a child sees its parent's memory", wait_for(pid) == 0);
	for (int i = 0; i < PAGES; i++)
		kept = kept && memory[i * 4096] == (char)i;
	expect("a child's writes are its own", kept);
}

static void test_exec(const char *self)
{
	pid_t pid = fork();
	char *const argv[] = { (char *)self, "child", "a b", "", NULL };

	if (pid == 0) {
		execv(self, argv);
		_exit(126);
	}
	expect("exec passes arguments", WEXITSTATUS(wait_for(pid)) == 42);
	pid = fork();
	if (pid == 0) {
		execl("/no/such/file", "x", NULL);
		_exit(errno == ENOENT ? 7 : 8);
	}
	expect("exec of a missing file says so", WEXITSTATUS(wait_for(pid)) == 7);
	expect("posix_spawn starts a program",
	       posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0);
	expect("the spawned program ran", WEXITSTATUS(wait_for(pid)) == 42);
	expect("a shell pipeline", system("echo one two three | wc -w | grep -qx 3") == 0);
}

static void test_kill(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		for (;;)
			pause();
	kill(pid, SIGKILL);
	status = wait_for(pid);
	expect("kill -9 ends a sleeping process",
	       WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	pid = fork();
	if (pid == 0)
		for (;;)
			;
	usleep(20000);
	kill(pid, SIGKILL);
	status = wait_for(pid);
	expect("kill -9 ends a spinning process",
	       WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	expect("a dead process cannot be signalled", kill(pid, 0) < 0 && errno == ESRCH);
}

static void test_stop(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		for (;;)
			pause();
	kill(pid, SIGSTOP);
	waitpid(pid, &status, WUNTRACED);
	expect("SIGSTOP stops", WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	kill(pid, SIGCONT);
	waitpid(pid, &status, WCONTINUED);
	expect("SIGCONT continues", WIFCONTINUED(status));
	kill(pid, SIGTERM);
	expect("SIGTERM ends", WTERMSIG(wait_for(pid)) == SIGTERM);
}

/* A grandchild whose parent is gone belongs to init. */
static void test_orphan(void)
{
	int fd[2];
	pid_t parent = 0, pid;

	if (pipe(fd) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		if (fork() == 0) {
			pid_t now;

			while ((now = getppid()) != 1)
				usleep(1000);
			_exit(write(fd[1], &now, sizeof now) != sizeof now);
		}
		_exit(0);
	}
	wait_for(pid);
	expect("an orphan says who its parent is",
	       read(fd[0], &parent, sizeof parent) == sizeof parent);
	expect("it is init", parent == 1);
}

static void test_many(void)
{
	enum { MANY = 30 };
	int ended = 0, status;

	for (int i = 0; i < MANY; i++)
		if (fork() == 0) {
			usleep(1000 * (unsigned)(i % 5));
			_exit(0);
		}
	while (wait(&status) > 0)
		ended += status == 0;
	expect("thirty children at once", ended == MANY);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "child"))
		return !strcmp(argv[2], "a b") && !*argv[3] ? 42 : 1;
	test_statuses();
	test_copy_on_write();
	test_exec("/proc/self/exe");
	test_kill();
	test_stop();
	test_orphan();
	test_many();
	return check_result();
}
