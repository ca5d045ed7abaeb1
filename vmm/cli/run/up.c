/* up.c - `vmp up`: the machine's keeper is started here, and waited for until userland is there.
 *
 * The keeper is what `vmp run` is (run/run.c) in a session of its own, with a shell on the console for a command.  Its standard
 * error is a socket to us: what it writes before the machine is up is why it failed, for our standard error; a NUL byte says
 * that the machine is up, and a line for our standard output follows.  When we die before that, the keeper sees the socket
 * close, and ends.
 */
#include "vmm/cli/run/up.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/run/run.h"

/* Whoever leaves the shell gets another one: the machine outlives it. */
static char *const shell[] = {
	"sh", "-c", "while :; do setsid -c sh -l </dev/ttyS0 >/dev/ttyS0 2>&1; sleep 1; done", NULL,
};

static int keep(const struct options *o, int starter)
{
	char *command[ARRAY_LEN(shell)];
	struct options keeper = *o;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(starter, 2) < 0)
		return EXIT_VMP_FAILURE;
	close(starter);
	memcpy(command, shell, sizeof shell);
	keeper.command = command;
	return run_machine(&keeper);
}

/* Pass on what the keeper says, to its end. True: the machine is up. */
static bool listen_to(int keeper)
{
	char bytes[1024];
	bool up = false;
	ssize_t n;

	while ((n = read(keeper, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)) {
		size_t errors = n < 0 ? 0 : up ? 0 : strnlen(bytes, n), skip = n > 0 && !up && errors < (size_t)n;

		if (n < 0)
			continue;
		up |= skip;
		if ((errors && write(2, bytes, errors) < 0) ||
		    (up && write(1, bytes + errors + skip, n - errors - skip) < 0))
			break; /* nobody reads it: that is no failure of the machine */
	}
	return up;
}

int up_machine(const struct options *o)
{
	int ends[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) || (pid = fork()) < 0) {
		log_error("cannot start the machine's keeper: %s", strerror(errno));
		return EXIT_VMP_FAILURE;
	}
	if (!pid) {
		close(ends[0]);
		_exit(keep(o, ends[1]));
	}
	close(ends[1]);
	if (listen_to(ends[0]))
		return 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status))
		return WEXITSTATUS(status);
	log_error("the machine ended before its userland was there; try --log FILE");
	return EXIT_VMP_FAILURE;
}
