/* vmp_share.c - vmp-share, which serves a folder of this computer to the guest: 9P2000.L
 * (ninep.c), in a process of its own.
 *
 *   vmp-share --socket FD --folder DIR [--read-only]
 *
 * The guest's device (virtio_9p.c) is in the I/O server, which may open no file.  This process may,
 * below DIR, and has nothing else: no guest memory, no disk, no network.  Between the two is a
 * socket (shareframe.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/confine.h"
#include "base/log.h"
#include "base/types.h"
#include "iosrv/ninep.h"
#include "iosrv/refuse.h"
#include "iosrv/shareframe.h"

static struct {
	int socket;
	const char *folder;
	bool read_only;
} share = { .socket = -1 };

/* Confine the process: its files to the folder (Landlock, where the kernel has it), then its system
 * calls. */
static void confine(void)
{
	const struct confine_file folder[] = {
		{ share.folder, share.read_only ? CONFINE_READ_FOLDER : CONFINE_SHARE },
	};
	int error = confine_privileges();

	if (!error)
		error = confine_files(folder, 1, 0);
	if (error == -EOPNOTSUPP || error == -ENOSYS)
		error = 0; /* no Landlock here */
	if (!error)
		error = confine_calls_of(CONFINE_VMP_SHARE, false);
	if (error)
		refuse_to_start(share.socket, "--share: cannot confine vmp-share: %s",
				strerror(-error));
}

/* Raise the limit of open files: each file that the guest has in use takes one or two
 * descriptors. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static struct ninep *open_folder(void)
{
	int folder = open(share.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int own = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct ninep *server;

	if (folder < 0)
		refuse_to_start(share.socket, "--share %s: %s", share.folder, strerror(errno));
	if (own < 0)
		refuse_to_start(share.socket, "--share: /proc/self/fd: %s", strerror(errno));
	server = ninep_new(folder, own, share.read_only);
	if (!server)
		refuse_to_start(share.socket, "--share %s: no memory", share.folder);
	return server;
}

/* Send a packet.  If the I/O server has gone, the machine has, too. */
static void answer(const void *bytes, size_t n)
{
	ssize_t sent;

	while ((sent = send(share.socket, bytes, n, MSG_NOSIGNAL)) < 0 && errno == EINTR)
		;
	if (sent < 0)
		exit(0);
}

/* Serve a request of the guest's.  It is answered by one packet, even if there is no reply to
 * send. */
static void on_request(struct ninep *server, const uint8_t *request, size_t n)
{
	static uint8_t reply[NINEP_MESSAGE_BYTES];
	size_t bytes = ninep_serve(server, request, n, reply);

	if (!bytes)
		reply[bytes++] = 0;
	answer(reply, bytes);
}

static void on_save(struct ninep *server)
{
	static const char none[] = "\2no memory";
	static uint8_t part[1 + SHARE_PART_BYTES];
	uint8_t *state;
	size_t bytes = ninep_save(server, &state), at = 0, n;

	_Static_assert(SHARE_FAILED == 2, "the first byte of `none`");
	if (!bytes)
		return answer(none, sizeof none - 1);
	for (; at < bytes; at += n) {
		n = bytes - at < SHARE_PART_BYTES ? bytes - at : SHARE_PART_BYTES;
		part[0] = at + n == bytes ? SHARE_LAST : SHARE_MORE;
		memcpy(part + 1, state + at, n);
		answer(part, 1 + n);
	}
	free(state);
}

/* Append a part of a state; the last one is answered. */
static void on_load(struct ninep *server, const uint8_t *part, size_t n, bool last)
{
	static struct { uint8_t *bytes; size_t n; bool failed; } state;
	uint8_t *more = n <= NINEP_STATE_BYTES - state.n ? realloc(state.bytes, state.n + n + 1)
							 : NULL;
	char why[200] = "its state needs more memory than there is";

	state.failed |= !more;
	if (more) {
		memcpy(more + state.n, part, n);
		state.bytes = more;
		state.n += n;
	}
	if (!last)
		return;
	if (state.failed || ninep_load(server, state.bytes, state.n, why, sizeof why))
		answer(why, strlen(why));
	else
		answer("", 1);
	free(state.bytes);
	memset(&state, 0, sizeof state);
}

static void serve(struct ninep *server)
{
	static uint8_t packet[1 + NINEP_MESSAGE_BYTES];

	for (;;) {
		ssize_t n = recv(share.socket, packet, sizeof packet, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			exit(0); /* the I/O server has gone, and the machine with it */
		switch ((enum share_packet)packet[0]) {
		case SHARE_REQUEST: on_request(server, packet + 1, (size_t)n - 1); break;
		case SHARE_SAVE: on_save(server); break;
		case SHARE_LOAD: on_load(server, packet + 1, (size_t)n - 1, false); break;
		case SHARE_LOAD_LAST: on_load(server, packet + 1, (size_t)n - 1, true); break;
		default: exit(EXIT_FAILURE);
		}
	}
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "folder", required_argument, NULL, 'f' },
		{ "read-only", no_argument, NULL, 'r' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's': share.socket = atoi(optarg); break;
		case 'f': share.folder = optarg; break;
		case 'r': share.read_only = true; break;
		default: exit(EXIT_FAILURE);
		}
	if (share.socket < 0 || !share.folder)
		die("vmp-share is started by vmp-iosrv, not by hand");
}

int main(int argc, char **argv)
{
	struct ninep *server;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit is an error of the guest's */
	signal(SIGINT, SIG_IGN);
	log_open("vmp-share", 2, LOG_WARN);
	parse(argc, argv);
	umask(0); /* the guest has applied its own umask */
	allow_many_files();
	server = open_folder();
	confine();
	send(share.socket, "", 1, MSG_NOSIGNAL);
	serve(server);
}
