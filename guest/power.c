/* power.c - `poweroff`, `halt` and `reboot`: each of them sends init a signal and ends.
 *
 * The signals are blocked except while init waits for its children (power_listen()).  The handler
 * runs nowhere else, so it may call whatever it likes.
 */
#include "guest/guest.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>
#include <sys/reboot.h>
#include <sys/wait.h>

/* What busybox's commands send. */
static const struct {
	int signal, how;
} requests[] = {
	{ SIGUSR1, RB_HALT_SYSTEM },
	{ SIGUSR2, RB_POWER_OFF },
	{ SIGTERM, RB_AUTOBOOT },
};

enum { N_REQUESTS = sizeof requests / sizeof *requests };

/* Reaps until all processes have ended, for a second at most: an orphan is init's child, too. */
static void wait_for_all(void)
{
	enum { STEP_US = 10000, PATIENCE_US = 1000000 };

	for (int waited = 0; waited < PATIENCE_US; waited += STEP_US) {
		pid_t pid;

		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return;
		usleep(STEP_US);
	}
}

static void on_request(int signal)
{
	enum { COMMAND_ENDS_US = 100000 }; /* the command that has asked, with its own status */
	int how = RB_POWER_OFF;

	for (unsigned i = 0; i < N_REQUESTS; i++)
		if (requests[i].signal == signal)
			how = requests[i].how;
	usleep(COMMAND_ENDS_US);
	kill(-1, SIGTERM);
	kill(-1, SIGCONT); /* a stopped process, too, ends in order */
	wait_for_all();
	kill(-1, SIGKILL);
	disks_leave();
	console_drain(STDOUT_FILENO);
	reboot(how);
	for (;;)
		pause();
}

static void requests_set(sigset_t *set)
{
	sigemptyset(set);
	for (unsigned i = 0; i < N_REQUESTS; i++)
		sigaddset(set, requests[i].signal);
}

void power_take_requests(void)
{
	struct sigaction action = { .sa_handler = on_request };

	power_listen(false);
	sigfillset(&action.sa_mask);
	for (unsigned i = 0; i < N_REQUESTS; i++)
		sigaction(requests[i].signal, &action, NULL);
}

void power_listen(bool now)
{
	int before = errno;
	sigset_t set;

	requests_set(&set);
	sigprocmask(now ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
	errno = before;
}

void power_forget(void)
{
	for (unsigned i = 0; i < N_REQUESTS; i++)
		signal(requests[i].signal, SIG_DFL);
}
