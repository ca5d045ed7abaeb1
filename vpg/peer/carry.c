/* carry.c - see carry.h.
 *
 * There is a process for each direction, so that neither waits for the other.
 */
#include "vpg/peer/carry.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/limits.h"
#include "base/log.h"

enum { PIECE = 64 << 10 };

/* Copies until one of the two ends. */
static void copy(int from, int to)
{
	static char bytes[PIECE];
	ssize_t n;

	while ((n = read(from, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))
		for (ssize_t at = 0, done; at < n; at += done) {
			done = write(to, bytes + at, (size_t)(n - at));
			if (done < 0 && errno != EINTR)
				return;
			done = done < 0 ? 0 : done;
		}
}

static int connect_here(unsigned port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at)) {
		log_error("port %u: %s", port, strerror(errno));
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
	return fd;
}

int carry_connection(unsigned port)
{
	int fd = connect_here(port);
	pid_t parent = getpid(), there = fd < 0 ? -1 : fork();

	if (there < 0)
		return EXIT_VMP_FAILURE;
	if (!there) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			copy(0, fd);
		shutdown(fd, SHUT_WR);
		_exit(0);
	}
	close(0);
	copy(fd, 1);
	return 0;
}
