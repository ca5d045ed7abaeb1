/* up.c - `vmp up`: starts the machine's keeper, and waits until userland is there.
 *
 * The keeper is what `vmp run` is (run/run.c), in a session of its own, with a shell on the console
 * as its command.  Its standard error is a socket to this process.  What it writes before the
 * machine is up is the reason for a failure, and goes to our standard error.  A NUL byte says that
 * the machine is up; a line for our standard output follows.  If this process dies before that, the
 * keeper notices that the socket is closed, and ends.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/limits.h"
#include "base/log.h"
#include "vmm/cli/options.h"

/* When a user leaves the shell, a new one starts: the machine outlives it. */
static char *const shell[] = {
	"sh", "-c",
	"t=/dev/hvc0; [ -c $t ] || t=/dev/ttyS0; "
	"while :; do setsid -c sh -l <$t >$t 2>&1; sleep 1; done", NULL,
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

/* Passes on what the keeper writes, to its end.  Returns true if the machine is up. */
static bool listen_to(int keeper)
{
	char bytes[1024];
	bool up = false;
	ssize_t n;

	while ((n = read(keeper, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)) {
		size_t errors = n < 0 ? 0
				: up  ? 0
				      : strnlen(bytes, n),
		       skip = n > 0 && !up && errors < (size_t)n;

		if (n < 0)
			continue;
		up |= skip;
		if ((errors && write(2, bytes, errors) < 0) ||
		    (up && write(1, bytes + errors + skip, n - errors - skip) < 0))
			break; /* a missing reader is no failure of the machine */
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
