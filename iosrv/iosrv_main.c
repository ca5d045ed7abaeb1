/* iosrv_main.c - the I/O server's process: its socket, its loop, its timers.
 *
 *   vmp-iosrv --socket FD --cpus N [--disk IMAGE[,ro|,snapshot]]
 *
 * Started by node 0's daemon; ends when the daemon closes the socket.  Messages that wait in the socket are served in a
 * row (serve.c); collected output goes out before the server sleeps.
 */
#include "iosrv/iosrv.h"

#include <errno.h>
#include <event2/event.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <signal.h>
#include <unistd.h>
#include "base/log.h"
#include "base/machine.h"
#include "base/schedule.h"
#include "iosrv/worker.h"

static struct server {
	int socket;
	unsigned n_cpus;
	struct event_base *loop;
	struct event *readable;
	struct event *timer[N_CHIPS]; /* NULL: this chip has no on_timer() */
} server;

struct packet {
	struct msg_header header;
	uint8_t bytes[256 + MAX_MSG_PAYLOAD];
};

unsigned iosrv_cpus(void)
{
	return server.n_cpus;
}

void iosrv_send(enum msg_type type, vnode_t to, const void *body, size_t body_bytes, const void *payload,
		size_t payload_bytes)
{
	struct msg_header header = { .type = type, .version = WIRE_VERSION, .bytes = body_bytes + payload_bytes, .to = to };
	struct iovec parts[3] = { { &header, sizeof header }, { (void *)body, body_bytes },
				  { (void *)payload, payload_bytes } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = payload_bytes ? 3 : 2 };

	while (sendmsg(server.socket, &message, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			exit(EXIT_VMP_FAILURE); /* the daemon has gone, and the machine with it */
		poll(&(struct pollfd){ .fd = server.socket, .events = POLLOUT }, 1, -1);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	serve_timer(context);
}

void iosrv_start_timer(const struct chip *chip, unsigned ms)
{
	struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	if (event_add(server.timer[chips_number(chip)], &delay))
		serve_timer(chip); /* too soon is better than never */
}

/* One packet that makes sense; false: none (n is what recv() said). */
static bool receive(struct packet *p, int flags, ssize_t *n)
{
	uint32_t least, most;

	while ((*n = recv(server.socket, p, sizeof *p, flags)) > 0 || (*n < 0 && errno == EINTR)) {
		if (*n < 0)
			continue;
		if ((size_t)*n >= sizeof p->header && p->header.version == WIRE_VERSION &&
		    (size_t)*n == sizeof p->header + p->header.bytes && !wire_type_bounds(p->header.type, &least, &most) &&
		    p->header.bytes >= least && p->header.bytes <= most)
			return true;
		iosrv_fail("the I/O server was sent nonsense (%zd bytes); this is a bug in vmp", *n);
	}
	return false;
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct packet p;
	ssize_t n;

	(void)fd;
	(void)what;
	(void)context;
	while (receive(&p, MSG_DONTWAIT, &n))
		serve(&p.header, p.bytes);
	chips_flush();
	if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
		event_base_loopbreak(server.loop);
}

static const char *parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' }, { 0 },
	};
	struct machine machine;
	char why[200];
	int c;

	server.socket = -1;
	machine_defaults(&machine);
	if (machine_take_words(&machine, MACHINE_IOSRV, &argc, argv, why, sizeof why))
		die("%s", why);
	server.n_cpus = machine.cpus;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's': server.socket = atoi(optarg); break;
		default: exit(EXIT_VMP_FAILURE);
		}
	if (server.socket < 0 || !server.n_cpus)
		die("vmp-iosrv is started by vmp-node, not by hand");
	return machine.disk;
}

static void open_loop(void)
{
	struct event *readable = NULL;

	server.loop = event_base_new();
	if (server.loop)
		readable = event_new(server.loop, server.socket, EV_READ | EV_PERSIST, on_readable, NULL);
	if (!readable || event_add(readable, NULL))
		die("no event loop: %s", strerror(errno));
	server.readable = readable;
	for (unsigned i = 0; i < N_CHIPS; i++) {
		if (!chips[i]->on_timer)
			continue;
		server.timer[i] = evtimer_new(server.loop, on_timer, (void *)chips[i]);
		if (!server.timer[i])
			die("no timer for the %s: %s", chips[i]->name, strerror(errno));
	}
	worker_open(server.loop);
}

static void close_loop(void)
{
	worker_close();
	for (unsigned i = 0; i < N_CHIPS; i++)
		if (server.timer[i])
			event_free(server.timer[i]);
	event_free(server.readable);
	event_base_free(server.loop);
}

int main(int argc, char **argv)
{
	const char *disk;
	char why[4200];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	schedule_promptly();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit is an error of the guest's disk */
	signal(SIGINT, SIG_IGN); /* the daemon ends us */
	log_open("vmp-iosrv", 2, LOG_WARN);
	disk = parse(argc, argv);
	serve_start();
	iosrv_send(MSG_HELLO, VNODE_DAEMON(0), &(struct msg_hello){ .wire_version = WIRE_VERSION, .role = PEER_IOSRV },
		   sizeof(struct msg_hello), NULL, 0);
	if (disk && ide_open(disk, why, sizeof why))
		iosrv_fail("%s", why);
	open_loop();
	event_base_dispatch(server.loop); /* until the daemon closes the socket */
	close_loop();
	ide_close();
	return 0;
}
