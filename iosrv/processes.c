/* processes.c - starts vmp-net (vmp_net.c) and vmp-share (vmp_share.c), before the I/O server gives
 * up starting programs. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/beside.h"
#include "iosrv/iosrv.h"

/* A program, and the option that asks for it. */
struct program {
	const char *name, *option;
};

/* In the child: execute the program.  The first three of `arguments` are free, for the path,
 * --socket and the socket's number. */
static void run(const struct program *program, int socket, char **arguments)
{
	char path[4096], number[16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close_range(3, ~0u, CLOSE_RANGE_CLOEXEC); /* the daemon's socket above all */
	fcntl(socket, F_SETFD, 0);
	snprintf(number, sizeof number, "%d", socket);
	arguments[0] = path;
	arguments[1] = "--socket";
	arguments[2] = number;
	if (!beside_path(program->name, path, sizeof path))
		beside_exec(path, arguments);
	dprintf(socket, "cannot run %s: %s; build it with make", program->name, strerror(errno));
	_exit(EXIT_VMP_FAILURE);
}

/* Receive the program's first packet: a zero byte, or the reason why it cannot run.  Returns 0, or
 * -EIO with a line in `why`. */
static int hear(const struct program *program, int socket, char *why, size_t why_bytes)
{
	ssize_t n;

	do
		n = recv(socket, why, why_bytes - 1, 0);
	while (n < 0 && errno == EINTR);
	if (n == 1 && !*why)
		return 0;
	why[n > 0 ? n : 0] = 0;
	if (n <= 0)
		snprintf(why, why_bytes, "%s: %s ended at once; the log may say why",
			 program->option, program->name);
	return -EIO;
}

/* Start the program.  Returns the socket to it, or -errno with a line in `why`. */
static int start(const struct program *program, char **arguments, char *why, size_t why_bytes)
{
	int pair[2], room = 1 << 20;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair)) {
		snprintf(why, why_bytes, "%s: no socket: %s", program->option, strerror(errno));
		return -EIO;
	}
	fcntl(pair[0], F_SETFD, FD_CLOEXEC);
	for (unsigned i = 0; i < 2; i++)
		setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	pid = fork();
	if (!pid)
		run(program, pair[1], arguments);
	close(pair[1]);
	if (pid > 0)
		return hear(program, pair[0], why, why_bytes) ? -EIO : pair[0];
	snprintf(why, why_bytes, "%s: cannot start %s: %s; see ulimit -u", program->option,
		 program->name, strerror(errno));
	return -EIO;
}

int processes_open_net(const char *spec, bool restored, char *why, size_t why_bytes)
{
	static const struct program program = { "vmp-net", "--net user" };
	char *arguments[] = { NULL, NULL, NULL, "--net", (char *)spec,
			      restored ? "--patient" : NULL, NULL };
	int socket = start(&program, arguments, why, why_bytes);

	if (socket < 0)
		return socket;
	net_attach(socket);
	return 0;
}

int processes_open_share(const char *spec, char *why, size_t why_bytes)
{
	static const struct program program = { "vmp-share", "--share" };
	const char *comma = strrchr(spec, ',');
	bool read_only = comma && !strcmp(comma, ",ro");
	struct snapshot_folder folder = { .read_only = read_only };
	char *arguments[] = { NULL, NULL, NULL, "--folder", folder.path,
			      read_only ? "--read-only" : NULL, NULL };
	struct stat st;
	int socket;

	snprintf(folder.path, sizeof folder.path, "%.*s",
		 read_only ? (int)(comma - spec) : (int)strlen(spec), spec);
	socket = start(&program, arguments, why, why_bytes);
	if (socket < 0)
		return socket;
	folder.inode = stat(folder.path, &st) ? 0 : st.st_ino;
	virtio9p_attach(socket, &folder);
	return 0;
}
