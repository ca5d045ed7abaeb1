/* guest_agent.c - the guest's agent: runs the commands of `vmp exec`.
 *
 * init forks it once; it sleeps until frames come (base/agent_abi.h).  A session is a command with
 * pipes for its three streams, or on a terminal of its own.  The agent never waits for one of them:
 * it keeps what a command does not read yet, at most a window, and reads a command's output only as
 * far as `vmp exec` has room for it.
 *
 * A command that has ended may have left processes that hold its pipes.  What lies in the pipes is
 * still sent, then the status; nobody waits for those processes.
 */
#include "guest/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include "base/agent_abi.h"

#define DEVICE_IN "/dev/vmp-agent-in"
#define DEVICE_OUT "/dev/vmp-agent-out"

enum { OUT, ERR, OUTPUTS };
/* A pipe holds 64 KiB: what a command has left there when it ends. */
enum { LAST_BYTES = 65536, DRAIN_TURNS = 16, EOF_KEY = 4 };

static struct session {
	uint32_t id; /* 0: free */
	char *spec;
	size_t spec_bytes;
	pid_t pid;		/* 0: the command has not started, or has been waited for */
	bool ended;		/* with this status: */
	int status;
	int in, from[OUTPUTS];	/* our ends, or -1 */
	uint32_t room[OUTPUTS]; /* bytes that may be sent */
	uint32_t last[OUTPUTS]; /* once it has ended: bytes that are still read */
	bool terminal, in_ends; /* in_ends: behind what is in `input` */
	struct winsize window;
	size_t n_input;
	char input[AGENT_IN_WINDOW];
} *sessions[AGENT_SESSIONS];

static int device_in, device_out;
static char frames[2 * AGENT_FRAME_MAX]; /* what has come: whole frames, and a part of one */
static size_t n_frames;

/* One write: a frame and its bytes. */
static void send_frame(uint32_t id, enum agent_kind kind, uint32_t value, const void *bytes,
		       size_t n)
{
	struct {
		struct agent_frame head;
		char bytes[AGENT_PAYLOAD];
	} whole = { .head = { id, (uint16_t)kind, (uint16_t)n, value } };

	if (n)
		memcpy(whole.bytes, bytes, n);
	write_all(device_out, &whole, sizeof whole.head + n);
}

static void tell(const struct session *s, enum agent_kind kind, uint32_t value)
{
	send_frame(s->id, kind, value, NULL, 0);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- Sessions ---- */

static struct session *find_session(uint32_t id)
{
	for (unsigned i = 0; i < AGENT_SESSIONS; i++)
		if (sessions[i] && sessions[i]->id == id)
			return sessions[i];
	return NULL;
}

/* NULL: none is free; the machine opens no more than there are. */
static struct session *new_session(uint32_t id)
{
	for (unsigned i = 0; i < AGENT_SESSIONS; i++)
		if (!sessions[i]) {
			sessions[i] = calloc(1, sizeof *sessions[i]);
			if (!sessions[i])
				return NULL;
			*sessions[i] = (struct session){
				.id = id, .in = -1, .from = { -1, -1 },
				.room = { AGENT_OUT_WINDOW, AGENT_OUT_WINDOW },
				.last = { LAST_BYTES, LAST_BYTES },
			};
			return sessions[i];
		}
	return NULL;
}

static void free_session(struct session *s)
{
	close_fd(&s->in);
	for (unsigned i = 0; i < OUTPUTS; i++)
		close_fd(&s->from[i]);
	free(s->spec);
	for (unsigned i = 0; i < AGENT_SESSIONS; i++)
		if (sessions[i] == s)
			sessions[i] = NULL;
	free(s);
}

/* ---- Starting a command ---- */

/* A session's specification, taken apart; it points into the text. */
struct spec {
	const char *user;
	char *folder;
	char **variables, **argv;
	size_t n_variables;
};

static bool read_spec(struct session *s, struct spec *spec)
{
	char **strings = NULL;
	size_t n = 0, variables;

	if (s->spec_bytes && !s->spec[s->spec_bytes - 1])
		strings = split_strings(s->spec, s->spec_bytes);
	while (strings && strings[n])
		n++;
	if (n <= AGENT_SPEC_FIRST)
		return false;
	variables = strtoul(strings[AGENT_SPEC_VARIABLES], NULL, 10);
	if (variables >= n - AGENT_SPEC_FIRST)
		return false;
	*spec = (struct spec){ strings[AGENT_SPEC_USER], strings[AGENT_SPEC_FOLDER],
			       strings + AGENT_SPEC_FIRST, strings + AGENT_SPEC_FIRST + variables,
			       variables };
	return true;
}

/* In the child, whose streams are open: never returns. */
static void run(const struct session *s, const struct spec *spec, const struct user *machine)
{
	struct user user = *machine;

	forget_signals();
	if (*spec->user) {
		user_of_text(&user, spec->user);
		user_to_environment(&user);
	}
	if (*spec->folder) {
		make_folders(spec->folder);
		if (chdir(spec->folder) < 0) {
			complain("cannot start in", spec->folder);
			_exit(STATUS_CANNOT_EXECUTE);
		}
	}
	for (size_t i = 0; i < spec->n_variables; i++)
		if (strchr(spec->variables[i], '='))
			putenv(spec->variables[i]);
	if (s->terminal && fchown(0, user.uid, user.gid) < 0)
		complain("cannot give away", "the terminal");
	become(&user);
	exec_or_explain(spec->argv);
}

static void child_on_streams(const int give[3])
{
	setsid();
	for (int fd = 0; fd < 3; fd++)
		dup2(give[fd], fd);
	ioctl(0, TIOCSCTTY, 0); /* if it is a terminal */
}

/* Opens a terminal: `give` for the command, our end in the session. */
static bool open_terminal(struct session *s, int give[3])
{
	int ours = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK), zero = 0, theirs;

	if (ours < 0 || ioctl(ours, TIOCSPTLCK, &zero) < 0 ||
	    (theirs = ioctl(ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
		close_fd(&ours);
		return false;
	}
	if (s->window.ws_row && s->window.ws_col)
		ioctl(ours, TIOCSWINSZ, &s->window);
	give[0] = give[1] = give[2] = theirs;
	s->in = fcntl(ours, F_DUPFD_CLOEXEC, 0);
	s->from[OUT] = ours;
	return true;
}

static bool open_pipes(struct session *s, int give[3])
{
	int in[2], out[2] = { -1, -1 }, err[2] = { -1, -1 };

	if (pipe2(in, O_CLOEXEC) < 0)
		return false;
	s->in = in[1];
	give[0] = in[0];
	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0) {
		close_fd(&out[0]);
		close_fd(&out[1]);
		close_fd(&give[0]);
		return false;
	}
	s->from[OUT] = out[0];
	s->from[ERR] = err[0];
	give[1] = out[1];
	give[2] = err[1];
	fcntl(s->in, F_SETFL, O_NONBLOCK);
	fcntl(s->from[OUT], F_SETFL, O_NONBLOCK);
	fcntl(s->from[ERR], F_SETFL, O_NONBLOCK);
	return true;
}

static void end_at_once(struct session *s, const char *why)
{
	send_frame(s->id, AGENT_ERROR, 0, why, strlen(why));
	tell(s, AGENT_EXIT, STATUS_CANNOT_EXECUTE);
	free_session(s);
}

static void start(struct session *s, bool terminal, const struct user *machine)
{
	struct spec spec;
	int give[3] = { -1, -1, -1 };

	s->terminal = terminal;
	if (!read_spec(s, &spec)) {
		end_at_once(s, "agent: what shall run is incomplete\n");
		return;
	}
	if (terminal ? !open_terminal(s, give) : !open_pipes(s, give)) {
		end_at_once(s, "agent: the guest has no terminal or pipe left\n");
		return;
	}
	s->pid = fork();
	if (s->pid == 0) {
		child_on_streams(give);
		run(s, &spec, machine);
	}
	close_fd(&give[0]);
	if (!terminal) {
		close_fd(&give[1]);
		close_fd(&give[2]);
	}
	free(s->spec);
	s->spec = NULL;
	if (s->pid < 0) {
		s->pid = 0;
		end_at_once(s, "agent: the guest has no room for another process\n");
		return;
	}
	tell(s, AGENT_STARTED, 0);
}

/* ---- Input and output ---- */

static void add_spec(struct session *s, const char *bytes, size_t n)
{
	char *more = NULL;

	if (s->spec_bytes + n <= AGENT_SPEC_MAX && !s->pid)
		more = realloc(s->spec, s->spec_bytes + n + 1);
	if (!more) {
		end_at_once(s, "agent: the command's arguments and variables are too long\n");
		return;
	}
	s->spec = more;
	memcpy(s->spec + s->spec_bytes, bytes, n);
	s->spec_bytes += n;
	tell(s, AGENT_TAKEN, (uint32_t)n);
}

/* Gives the command what it takes now. */
static void feed(struct session *s)
{
	ssize_t n;

	while (s->in >= 0 && s->n_input && (n = write(s->in, s->input, s->n_input)) != 0) {
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) { /* it reads no more: the rest is dropped */
			n = (ssize_t)s->n_input;
			close_fd(&s->in);
		}
		s->n_input -= (size_t)n;
		memmove(s->input, s->input + n, s->n_input);
		tell(s, AGENT_TAKEN, (uint32_t)n);
	}
	if (s->in_ends && !s->n_input)
		close_fd(&s->in);
}

static void add_input(struct session *s, const char *bytes, size_t n)
{
	static const char end[] = { EOF_KEY };

	if (s->in < 0) {
		if (n)
			tell(s, AGENT_TAKEN, (uint32_t)n);
		return;
	}
	if (!n && s->terminal) { /* it stays open for what the terminal writes */
		bytes = end;
		n = sizeof end;
	} else if (!n) {
		s->in_ends = true;
	}
	if (n > sizeof s->input - s->n_input)
		n = sizeof s->input - s->n_input; /* more than the window */
	memcpy(s->input + s->n_input, bytes, n);
	s->n_input += n;
	feed(s);
}

/* Sends what the command has written, as far as there is room. */
static void drain(struct session *s, unsigned which)
{
	static const enum agent_kind kinds[] = { AGENT_OUTPUT, AGENT_ERROR };
	char bytes[AGENT_PAYLOAD];
	unsigned turns = 0;

	/* Then the others get their turn. */
	while (s->from[which] >= 0 && s->room[which] && (turns++ < DRAIN_TURNS || s->ended)) {
		size_t most = s->room[which] < sizeof bytes ? s->room[which] : sizeof bytes;
		ssize_t n = read(s->from[which], bytes, most);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && !s->ended)
			return;
		if (n <= 0) { /* the end; of a terminal EIO says so */
			close_fd(&s->from[which]);
			return;
		}
		s->room[which] -= (uint32_t)n;
		send_frame(s->id, kinds[which], 0, bytes, (size_t)n);
		if (!s->ended)
			continue;
		s->last[which] -= (uint32_t)n < s->last[which] ? (uint32_t)n : s->last[which];
		if (!s->last[which])
			close_fd(&s->from[which]);
	}
}

/* ---- The end of a command ---- */

static void finish_if_done(struct session *s)
{
	if (!s->ended || s->from[OUT] >= 0 || s->from[ERR] >= 0)
		return;
	tell(s, AGENT_EXIT, (uint32_t)s->status);
	free_session(s);
}

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < AGENT_SESSIONS; i++)
			if (sessions[i] && sessions[i]->pid == pid) {
				sessions[i]->pid = 0;
				sessions[i]->ended = true;
				sessions[i]->status = exit_status(status);
				close_fd(&sessions[i]->in);
			}
}

/* Nobody waits for the command any more: as when its terminal is closed. */
static void hang_up(struct session *s)
{
	if (s->pid) {
		kill(-s->pid, SIGHUP);
		kill(-s->pid, SIGCONT);
	}
	free_session(s); /* a command without a session is waited for all the same */
}

/* ---- Frames ---- */

static void gone(struct session *s, unsigned which)
{
	if (!s->terminal) /* a terminal has one descriptor for both ways: vmp exec drops the rest */
		close_fd(&s->from[which]);
}

static void add_room(struct session *s, unsigned which, uint32_t bytes)
{
	uint32_t most = AGENT_OUT_WINDOW - s->room[which];

	s->room[which] += bytes < most ? bytes : most;
	drain(s, which);
}

static void resize(struct session *s, uint32_t value)
{
	s->window = (struct winsize){ .ws_row = (unsigned short)value,
				      .ws_col = (unsigned short)(value >> 16) };
	if (s->terminal && s->from[OUT] >= 0)
		ioctl(s->from[OUT], TIOCSWINSZ, &s->window);
}

static void reset_all(void)
{
	for (unsigned i = 0; i < AGENT_SESSIONS; i++)
		if (sessions[i])
			hang_up(sessions[i]);
}

static void on_frame(const struct agent_frame *frame, const char *bytes, const struct user *machine)
{
	struct session *s = find_session(frame->session);

	if (frame->kind == AGENT_RESET) {
		reset_all();
		return;
	}
	if (!s && (frame->kind == AGENT_SPEC || frame->kind == AGENT_RESIZE))
		s = new_session(frame->session);
	if (!s) /* it has ended meanwhile */
		return;
	switch (frame->kind) {
	case AGENT_SPEC: add_spec(s, bytes, frame->bytes); return;
	case AGENT_START: start(s, frame->value, machine); return;
	case AGENT_INPUT: add_input(s, bytes, frame->bytes); return;
	case AGENT_RESIZE: resize(s, frame->value); return;
	case AGENT_SIGNAL:
		if (s->pid && frame->value < NSIG)
			kill(-s->pid, (int)frame->value);
		return;
	case AGENT_ROOM_OUT: add_room(s, OUT, frame->value); return;
	case AGENT_ROOM_ERR: add_room(s, ERR, frame->value); return;
	case AGENT_GONE_OUT: gone(s, OUT); return;
	case AGENT_GONE_ERR: gone(s, ERR); return;
	case AGENT_HANGUP: hang_up(s); return;
	default: return;
	}
}

/* What is there now. */
static void read_frames(const struct user *machine)
{
	ssize_t n = read(device_in, frames + n_frames, sizeof frames - n_frames);
	struct agent_frame frame;
	size_t at = 0;

	if (n <= 0)
		return;
	n_frames += (size_t)n;
	while (n_frames - at >= sizeof frame) {
		memcpy(&frame, frames + at, sizeof frame);
		if (frame.bytes > AGENT_PAYLOAD)
			_exit(STATUS_CANNOT_EXECUTE); /* the machine's fault */
		if (n_frames - at < sizeof frame + frame.bytes)
			break;
		on_frame(&frame, frames + at + sizeof frame, machine);
		at += sizeof frame + frame.bytes;
	}
	n_frames -= at;
	memmove(frames, frames + at, n_frames);
}

/* ---- The loop ---- */

static unsigned watch(struct pollfd *fds)
{
	unsigned n = 0;

	fds[n++] = (struct pollfd){ device_in, POLLIN, 0 };
	for (unsigned i = 0; i < AGENT_SESSIONS; i++) {
		const struct session *s = sessions[i];

		if (s && s->in >= 0 && s->n_input)
			fds[n++] = (struct pollfd){ s->in, POLLOUT, 0 };
		for (unsigned k = 0; s && k < OUTPUTS; k++)
			if (s->from[k] >= 0 && s->room[k])
				fds[n++] = (struct pollfd){ s->from[k], POLLIN, 0 };
	}
	return n;
}

static void serve_sessions(void)
{
	for (unsigned i = 0; i < AGENT_SESSIONS; i++) {
		struct session *s = sessions[i];

		if (!s || !(s->pid || s->ended))
			continue;
		feed(s);
		drain(s, OUT);
		drain(s, ERR);
		finish_if_done(s);
	}
}

static void on_child(int signal) { (void)signal; }

/* The machine is switched off: its other processes get the same signal. */
static volatile sig_atomic_t leaves;

static void on_leave(int signal)
{
	(void)signal;
	leaves = 1;
}

static bool has_sessions(void)
{
	for (unsigned i = 0; i < AGENT_SESSIONS; i++)
		if (sessions[i])
			return true;
	return false;
}

__attribute__((noreturn)) static void serve(const struct user *machine)
{
	struct pollfd fds[1 + AGENT_SESSIONS * 3];
	sigset_t none;

	sigemptyset(&none);
	for (;;) {
		unsigned n = watch(fds);

		if (ppoll(fds, n, NULL, &none) < 0 && errno != EINTR)
			_exit(STATUS_CANNOT_EXECUTE);
		reap();
		if (fds[0].revents)
			read_frames(machine);
		serve_sessions();
		if (leaves && !has_sessions()) /* the last one's end has been reported */
			_exit(0);
	}
}

/* The signals are let in by ppoll() alone, so that no death is missed. */
static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_child }, leave = { .sa_handler = on_leave };
	sigset_t caught;

	sigemptyset(&caught);
	sigaddset(&caught, SIGCHLD);
	sigaddset(&caught, SIGTERM);
	sigprocmask(SIG_BLOCK, &caught, NULL);
	sigaction(SIGCHLD, &action, NULL);
	sigaction(SIGTERM, &leave, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void agent_start(const struct user *machine)
{
	device_in = open(DEVICE_IN, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (device_in < 0)
		return; /* another kernel than ours, as the reference machine's */
	device_out = open(DEVICE_OUT, O_WRONLY | O_CLOEXEC);
	if (device_out < 0 || fork() != 0) {
		close(device_in);
		close_fd(&device_out);
		return;
	}
	setsid();
	catch_signals();
	serve(machine);
}
