/* vmp_host.c - vmp-host: what ssh runs on a computer that is to be a host (far.h).  It sends the
 * facts of its computer, starts the node daemon when it is told to, and waits.  When its standard
 * input or the daemon ends, it ends everything that was started here, and itself.  Nothing stays
 * behind: the daemon's secret is in a file only while the daemon starts.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/beside.h"
#include "base/confine.h"
#include "base/faultpoint.h"
#include "base/limits.h"
#include "base/log.h"
#include "vmm/shared/facts.h"
#include "vmm/shared/presence.h"
#include "vmm/shared/private_folder.h"
#include "vmm/shared/reaper.h"

enum {
	SILENCE_MS = 60000, /* before the daemon runs, vmp sends an empty line every few seconds */
	GRACE_MS = 1500,    /* the daemon's time to end by itself */
	STEP_MS = 5,
	ASK_MS = 50,	    /* between two attempts to get this computer's vote */
	HELD_ASKS = 4,	    /* so many "held" in a row count: a reader locks the file, too */
	VOTE_LIMIT_MS = 20000, /* from "go" on */
	MAX_ARGUMENTS = 64, MAX_REQUEST = 8192, MAX_PATH = 256,
};

static struct {
	char text[MAX_REQUEST]; /* the arguments, each with its NUL */
	size_t bytes;
	char *argument[MAX_ARGUMENTS + 1];
	int n;
	char secret_file[MAX_PATH];
	char present[MAX_PRESENCE];
	int presence; /* the descriptor that holds it, or -1 */
	bool go; /* it is complete */
	/* this computer's vote, and the owner that asks for it (presence.h) */
	char ballot[MAX_PRESENCE], owner[PRESENCE_ID + 1];
	enum vote vote, said; /* said: what this program has told vmp */
	int held;	      /* the descriptor that holds it, or -1 */
	unsigned held_asks;
} request = { .presence = -1, .held = -1 };

static void refuse(const char *why) __attribute__((noreturn));
static void refuse(const char *why)
{
	printf("refused %s\n", why);
	fflush(stdout);
	exit(EXIT_VMP_FAILURE);
}

/* ---- the facts of this computer ---- */

/* (TRICKS: port-comes-back) */
static void say_what_it_is(void)
{
	struct host_facts facts = { .processors = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) };
	/* client's address and port, then ours */
	const char *connection = getenv("SSH_CONNECTION");
	char line[512];
	struct problem p;

	if (hostcpu_check(true, &p))
		refuse(p.line);
	hostcpu_look(&facts.cpu);
	hostmem_look(&facts.memory, "");
	if (connection)
		sscanf(connection, "%*s %*s %63s", facts.address);
	facts_print(&facts, line, sizeof line);
	puts(line);
	fflush(stdout);
}

/* ---- the request ---- */

static const char *secret_folder(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	return runtime && *runtime == '/' && strlen(runtime) < MAX_PATH - 32 &&
			       !access(runtime, W_OK)
		       ? runtime
		       : "/tmp";
}

static void forget_secret(void)
{
	if (request.secret_file[0])
		unlink(request.secret_file);
	request.secret_file[0] = 0;
}

static void refuse_secret(int error) __attribute__((noreturn));
static void refuse_secret(int error)
{
	char why[MAX_PATH + 128];

	snprintf(why, sizeof why, "it cannot write a file to %s: %s", secret_folder(),
		 strerror(error));
	refuse(why);
}

static void keep_secret(const char *hex)
{
	unsigned char secret[64];
	size_t n = 0;
	unsigned byte;
	int fd, error;

	for (; n < sizeof secret && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		secret[n] = (unsigned char)byte;
	snprintf(request.secret_file, sizeof request.secret_file, "%s/vmp-secret.XXXXXX",
		 secret_folder());
	fd = mkostemp(request.secret_file, O_CLOEXEC);
	if (fd < 0) {
		error = errno;
		request.secret_file[0] = 0;
		refuse_secret(error);
	}
	if (write(fd, secret, n) == (ssize_t)n && !close(fd))
		return;
	error = errno;
	forget_secret();
	refuse_secret(error);
}

static void add_argument(const char *text)
{
	size_t n = strlen(text) + 1;

	if (request.n == MAX_ARGUMENTS || request.bytes + n > sizeof request.text)
		refuse("its daemon has too many arguments; this is a bug in vmp");
	request.argument[request.n++] = memcpy(request.text + request.bytes, text, n);
	request.bytes += n;
}

/* Asks for this computer's vote, if it was not given yet, and tells vmp what is new.
 * (TRICKS: one-vote) */
static void ask_for_vote(void)
{
	enum vote vote;

	if (request.vote == VOTE_UNASKED || request.vote == VOTE_GIVEN)
		return;
	vote = presence_vote(&request.held, request.ballot, request.owner);
	request.held_asks = vote == VOTE_HELD || vote == VOTE_TAKEN ? request.held_asks + 1 : 0;
	request.vote = request.held_asks && request.held_asks < HELD_ASKS ? VOTE_WAITS : vote;
	if (request.vote == request.said)
		return;
	request.said = request.vote;
	printf("vote %s\n", vote_word(request.vote));
	fflush(stdout);
}

/* vmp has asked for the vote, and did not get it yet: nothing may be started here. */
static bool waits_for_vote(void)
{
	return request.vote == VOTE_WAITS || request.vote == VOTE_HELD ||
	       request.vote == VOTE_TAKEN;
}

/* Takes "OWNER NAME". */
static void take_vote(const char *text)
{
	size_t n = strcspn(text, " ");

	if (!text[n] || n > PRESENCE_ID || request.vote != VOTE_UNASKED)
		return;
	snprintf(request.owner, sizeof request.owner, "%.*s", (int)n, text);
	snprintf(request.ballot, sizeof request.ballot, "%.*s", MAX_PRESENCE - 1, text + n + 1);
	request.vote = VOTE_WAITS;
	ask_for_vote();
}

static void take_line(const char *line)
{
	if (!strncmp(line, "arg ", 4))
		add_argument(line + 4);
	else if (!strncmp(line, "vote ", 5))
		take_vote(line + 5);
	else if (!strncmp(line, "secret ", 7))
		keep_secret(line + 7);
	else if (!strncmp(line, "present ", 8)) {
		snprintf(request.present, sizeof request.present, "%.*s", MAX_PRESENCE - 1,
			 line + 8);
		/* held until this process ends */
		request.presence = presence_hold(request.present);
	}
	request.go |= !strcmp(line, "go");
}

/* Waits until vmp has sent something.  Meanwhile asks for the vote, if that is not decided.
 * Returns false if vmp is silent for too long. */
static bool wait_for_input(struct pollfd *input)
{
	for (unsigned waited = 0; waited < SILENCE_MS; waited += ASK_MS) {
		bool asks = waits_for_vote();
		int n = poll(input, 1, asks ? ASK_MS : SILENCE_MS);

		if (n || !asks)
			return n > 0;
		ask_for_vote();
		if (request.go && !waits_for_vote())
			return true;
		if (request.go && waited >= VOTE_LIMIT_MS)
			refuse("another owner of this machine has that computer");
	}
	return false;
}

/* Reads the request up to the line "go", and until this computer's vote is given, if vmp has asked
 * for it.  Returns false if vmp is gone. */
static bool read_request(void)
{
	static char line[1024];
	struct pollfd input = { .fd = 0, .events = POLLIN };
	size_t n = 0;

	add_argument("vmp-node");
	while (!request.go || waits_for_vote()) {
		if (!wait_for_input(&input))
			return false;
		if (!(input.revents & (POLLIN | POLLHUP)))
			continue;
		if (read(0, line + n, 1) != 1)
			return false;
		if (line[n] != '\n') {
			n += n < sizeof line - 1;
			continue;
		}
		line[n] = 0;
		n = 0;
		take_line(line);
	}
	return true;
}

/* ---- running ---- */

static pid_t start_node(void)
{
	pid_t parent = getpid(), pid;
	char path[4096];
	sigset_t none;

	add_argument("--secret");
	add_argument(request.secret_file);
	if (request.presence >= 0 && request.present[0]) {
		add_argument("--present");
		add_argument(request.present);
	}
	if (beside_path("vmp-node", path, sizeof path))
		refuse("the path of vmp's programs is too long");
	pid = fork();
	if (pid)
		return pid;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && dup2(open("/dev/null", O_RDONLY), 0) == 0)
		beside_exec(path, request.argument);
	fprintf(stderr, "cannot run %s: %s\n", path, strerror(errno));
	_exit(EXIT_VMP_FAILURE);
}

/* A wall between what ssh and the other computer send from now on and this user's files: what is
 * left to do is to wait, to end processes and to remove names.  Files can still be removed from
 * /tmp, where the last user of the private folder removes it. */
static void confine(void)
{
	char names[32];
	const struct confine_file files[] = { { "/proc", CONFINE_READ_FOLDER },
					      { names, CONFINE_OWN_FOLDER },
					      { secret_folder(), CONFINE_REMOVE },
					      { "/tmp", CONFINE_REMOVE } };
	int error = confine_privileges();

	snprintf(names, sizeof names, PRIVATE_TMP_FORMAT, geteuid());
	if (!error)
		error = confine_files(files, sizeof files / sizeof *files, CONFINE_KEEP_SIGNALS);
	if (!error || error == -EOPNOTSUPP || error == -ENOSYS) /* without Landlock */
		error = confine_calls_of(CONFINE_VMP_HOST, false);
	if (error)
		die("cannot confine vmp-host: %s", strerror(-error));
}

/* Reports how the daemon ended.  Returns its exit status, or 128 and its signal. */
static int say_how_it_ended(int status)
{
	if (WIFSIGNALED(status))
		printf("ended died of signal %d (%s)\n", WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		printf("ended with status %d; try --log FILE\n", WEXITSTATUS(status));
	fflush(stdout);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Returns -1 while the daemon runs; otherwise its status, as say_how_it_ended(). */
static int look_at(pid_t node)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == node)
			return say_how_it_ended(status);
	return -1;
}

/* Takes a byte of what vmp sends while the daemon runs.  Returns false if vmp is gone.
 * (TRICKS: stdin-is-life) */
static bool hear(void)
{
	static char line[16];
	static size_t n;
	char c;

	if (read(0, &c, 1) != 1)
		return false;
	line[n] = c;
	n += n < sizeof line - 1;
	if (c == '\n') {
		line[n - 1] = 0;
		n = 0;
		if (!strcmp(line, "over")) {
			puts(presence_tell(request.present) ? "told" : "alone");
			fflush(stdout);
		}
	}
	return true;
}

/* Takes what has arrived and was not read yet. */
static void hear_all(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	while (poll(&input, 1, 0) > 0 && hear())
		;
}

/* Waits until the daemon has ended or vmp is gone.  In the second case the daemon gets GRACE_MS to
 * end in order.  Returns the exit status. */
static int wait_for(pid_t node, int signals)
{
	struct pollfd polled[2] = { { .fd = 0, .events = POLLIN },
				    { .fd = signals, .events = POLLIN } };
	struct signalfd_siginfo info;
	int result = -1;

	while ((result = look_at(node)) < 0) {
		if (poll(polled, 2, -1) < 0 && errno != EINTR)
			break;
		if (polled[1].revents && read(signals, &info, sizeof info) == sizeof info &&
		    info.ssi_signo != SIGCHLD)
			break;
		if (polled[0].revents && !hear())
			break;
	}
	hear_all();
	if (result >= 0)
		return result;
	kill(node, SIGTERM);
	for (unsigned waited = 0; waited < GRACE_MS && (result = look_at(node)) < 0;
	     waited += STEP_MS)
		reaper_sleep_ms(STEP_MS);
	return result < 0 ? EXIT_VMP_FAILURE : result;
}

int main(void)
{
	sigset_t set;
	int signals, result;
	pid_t node;

	log_open("vmp-host", 2, LOG_WARN);
	fault_open();
	signal(SIGPIPE, SIG_IGN);
	say_what_it_is();
	if (!read_request()) {
		forget_secret();
		presence_unvote(request.held, request.ballot);
		return EXIT_VMP_FAILURE;
	}
	presence_vote_runs(request.held);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (reaper_become() || signals < 0 || (node = start_node()) < 0)
		refuse("it cannot start a process");
	confine();
	result = wait_for(node, signals);
	reaper_end_all(NULL);
	presence_release(request.presence, request.present);
	presence_unvote(request.held, request.ballot);
	forget_secret();
	return result;
}
