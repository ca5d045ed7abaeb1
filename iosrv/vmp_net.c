/* vmp_net.c - vmp-net, the machine's way to the host's network: libslirp, in a process of its own.
 *
 *   vmp-net --socket FD --net SPEC (base/netspec.h) [--patient]
 *
 * The guest's network card (virtio_net.c) is in the I/O server, which may not reach any network.
 * This process may, but has no guest memory, no disk, and no file except the list of name servers.
 * A socket connects the two; a packet on it is an Ethernet frame.  This process sends the first
 * packet: a zero byte, or one line that says why there is no network.
 *
 * The guest's network: 10.0.2.0/24 and fec0::/64; the guest is .15, the gateway .2, the name server
 * .3.  Frames that the I/O server does not accept at once are queued, up to MOST_WAITING; further
 * frames are dropped.
 *
 * A machine that returns to a checkpoint gets a new vmp-net.  The old one may still be ending, and
 * hold its ports.  So the new one is --patient: it retries for some seconds to bind a port.
 * Connections are not saved: libslirp answers a packet of an unknown connection with a reset.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <slirp/libslirp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/confine.h"
#include "base/log.h"
#include "base/netspec.h"
#include "base/netframe.h"
#include "iosrv/net_answers.h"
#include "iosrv/net_filter.h"
#include "iosrv/refuse.h"

enum { MOST_WAITING = 256, MOST_POLLED = 4096, IN_A_ROW = 64 };
enum { PATIENT_TRIES = 100, PATIENT_NS = 50000000 }; /* five seconds */

struct waiting {
	struct waiting *next;
	size_t bytes;
	uint8_t frame[];
};

struct timer {
	SlirpTimerCb function;
	void *of;
	int64_t at_ms; /* -1: not set */
};

static struct {
	int socket;
	Slirp *slirp;
	bool loopback; /* the guest may reach it: no frame is dropped */
	struct net_answers answers;
	struct timer timer; /* of the router's advertisements: libslirp has no other */
	struct waiting *first, *last;
	unsigned n_waiting;
	struct pollfd polled[MOST_POLLED]; /* the first is the I/O server's */
	unsigned n_polled;
} net;

static int64_t now_ns(void *of)
{
	(void)of;
	return (int64_t)clock_now_ns();
}

/* --- frames to the guest --- */

static void keep(const void *frame, size_t bytes)
{
	struct waiting *w = net.n_waiting < MOST_WAITING ? malloc(sizeof *w + bytes) : NULL;

	if (!w)
		return; /* a network may lose frames */
	w->next = NULL;
	w->bytes = bytes;
	memcpy(w->frame, frame, bytes);
	*(net.last ? &net.last->next : &net.first) = w;
	net.last = w;
	net.n_waiting++;
}

static bool give(const void *frame, size_t bytes)
{
	ssize_t n;

	do
		n = send(net.socket, frame, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN && errno != ENOBUFS)
		exit(0); /* the I/O server has gone, and the machine with it */
	return n >= 0;
}

static void give_waiting(void)
{
	struct waiting *w;

	while ((w = net.first) && give(w->frame, w->bytes)) {
		net.first = w->next;
		if (!net.first)
			net.last = NULL;
		net.n_waiting--;
		free(w);
	}
}

static ssize_t on_packet(const void *frame, size_t bytes, void *of)
{
	uint8_t changed[NET_FRAME_BYTES];

	(void)of;
	if (bytes <= sizeof changed &&
	    net_answers_to_guest(&net.answers, frame, bytes, changed, clock_now_ns()))
		frame = changed;
	if (bytes <= NET_FRAME_BYTES && (net.first || !give(frame, bytes)))
		keep(frame, bytes);
	return (ssize_t)bytes;
}

/* --- libslirp's callbacks --- */

static void on_guest_error(const char *line, void *of)
{
	(void)of;
	log_info("%s", line);
}

static void *timer_new(SlirpTimerCb function, void *its, void *of)
{
	(void)of;
	net.timer = (struct timer){ function, its, -1 };
	return &net.timer;
}

static void timer_free(void *timer, void *of)
{
	(void)of;
	((struct timer *)timer)->at_ms = -1;
}

static void timer_mod(void *timer, int64_t at_ms, void *of)
{
	(void)of;
	((struct timer *)timer)->at_ms = at_ms;
}

static void ignore_fd(int fd, void *of)
{
	(void)fd, (void)of;
}

static void ignore(void *of)
{
	(void)of;
}

static const SlirpCb callbacks = {
	.send_packet = on_packet,
	.guest_error = on_guest_error,
	.clock_get_ns = now_ns,
	.timer_new = timer_new,
	.timer_free = timer_free,
	.timer_mod = timer_mod,
	.register_poll_fd = ignore_fd,
	.unregister_poll_fd = ignore_fd,
	.notify = ignore,
};

static const struct {
	int slirp, poll;
} events[] = {
	{ SLIRP_POLL_IN, POLLIN },   { SLIRP_POLL_OUT, POLLOUT }, { SLIRP_POLL_PRI, POLLPRI },
	{ SLIRP_POLL_ERR, POLLERR }, { SLIRP_POLL_HUP, POLLHUP },
};

static int add_polled(int fd, int wanted, void *of)
{
	struct pollfd *p = &net.polled[net.n_polled];

	(void)of;
	if (net.n_polled == MOST_POLLED)
		return -1;
	*p = (struct pollfd){ .fd = fd };
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		p->events |= wanted & events[i].slirp ? (short)events[i].poll : 0;
	return (int)net.n_polled++;
}

static int polled_events(int number, void *of)
{
	int come = 0;

	(void)of;
	for (size_t i = 0; number > 0 && i < ARRAY_LEN(events); i++)
		come |= net.polled[number].revents & events[i].poll ? events[i].slirp : 0;
	return come;
}

/* --- the loop --- */

static void take_frames(void)
{
	uint8_t frame[NET_FRAME_BYTES];

	for (unsigned i = 0; i < IN_A_ROW; i++) {
		ssize_t n = recv(net.socket, frame, sizeof frame, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			exit(0); /* the I/O server has gone */
		if (n < 0)
			return;
		if (net_answers_from_guest(&net.answers, frame, (size_t)n, clock_now_ns()) ||
		    net.loopback || net_filter_passes(frame, (size_t)n))
			slirp_input(net.slirp, frame, (int)n);
	}
}

static int wait_ms(uint32_t slirp_ms)
{
	int64_t left = net.timer.at_ms - now_ns(NULL) / 1000000;

	if (net.timer.at_ms >= 0 && left < (int64_t)slirp_ms)
		return left < 0 ? 0 : (int)left;
	return slirp_ms > INT32_MAX ? -1 : (int)slirp_ms;
}

static void run_timer(void)
{
	if (net.timer.at_ms < 0 || now_ns(NULL) / 1000000 < net.timer.at_ms)
		return;
	net.timer.at_ms = -1;
	net.timer.function(net.timer.of);
}

static void run_once(void)
{
	uint32_t slirp_ms = UINT32_MAX;
	int n;

	net.polled[0] = (struct pollfd){ .fd = net.socket, .events = POLLIN };
	if (net.first)
		net.polled[0].events |= POLLOUT;
	net.n_polled = 1;
	slirp_pollfds_fill(net.slirp, &slirp_ms, add_polled, NULL);
	n = poll(net.polled, net.n_polled, wait_ms(slirp_ms));
	if (n < 0 && errno != EINTR)
		die("cannot wait for the network: %s", strerror(errno));
	give_waiting();
	/* First the frames: one may tell the guest's address, for which libslirp's queue waits. */
	if (net.polled[0].revents)
		take_frames();
	slirp_pollfds_poll(net.slirp, n < 0, polled_events, NULL);
	run_timer();
}

/* --- the start --- */

static struct in_addr v4(const char *text)
{
	struct in_addr address;

	inet_pton(AF_INET, text, &address);
	return address;
}

static struct in6_addr v6(const char *text)
{
	struct in6_addr address;

	inet_pton(AF_INET6, text, &address);
	return address;
}

static void start_slirp(const struct netspec *spec)
{
	const SlirpConfig config = {
		.version = 1,
		.in_enabled = true,
		.vnetwork = v4("10.0.2.0"),
		.vnetmask = v4("255.255.255.0"),
		.vhost = v4("10.0.2.2"),
		.in6_enabled = true,
		.vprefix_addr6 = v6("fec0::"),
		.vprefix_len = 64,
		.vhost6 = v6("fec0::2"),
		.vhostname = "guest",
		.vdhcp_start = v4("10.0.2.15"),
		.vnameserver = v4("10.0.2.3"),
		.vnameserver6 = v6("fec0::3"),
		.if_mtu = NET_MTU,
		.if_mru = NET_MTU,
		.disable_host_loopback = !spec->loopback,
	};

	net.loopback = spec->loopback;
	net.slirp = slirp_new(&config, &callbacks, NULL);
	if (!net.slirp)
		refuse_to_start(net.socket, "--net user: libslirp does not start");
}

/* Forward a port.  Returns 0, or -1 with errno. */
static int try_forward(const struct net_forward *f)
{
	struct sockaddr_in guest = { .sin_family = AF_INET,
				     .sin_port = htons(f->guest_port),
				     .sin_addr = v4("10.0.2.15") };
	struct sockaddr_in6 guest6 = { .sin6_family = AF_INET6,
				       .sin6_port = htons(f->guest_port),
				       .sin6_addr = v6(NET_GUEST_V6) };
	bool is_v6 = f->host.any.sa_family == AF_INET6;
	int flags = (f->udp ? SLIRP_HOSTFWD_UDP : 0) | (is_v6 ? SLIRP_HOSTFWD_V6ONLY : 0);

	return is_v6 ? slirp_add_hostxfwd(net.slirp, &f->host.any, sizeof f->host.v6,
					  (struct sockaddr *)&guest6, sizeof guest6, flags)
		     : slirp_add_hostxfwd(net.slirp, &f->host.any, sizeof f->host.v4,
					  (struct sockaddr *)&guest, sizeof guest, flags);
}

static void forward(const struct net_forward *f, bool patient)
{
	int result = try_forward(f);

	for (unsigned i = 0; result && errno == EADDRINUSE && patient && i < PATIENT_TRIES; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = PATIENT_NS }, NULL);
		result = try_forward(f);
	}
	if (result)
		refuse_to_start(net.socket, "--net: forward=%.*s: %s%s",
				(int)strcspn(f->text, ","), f->text,
				strerror(errno), errno == EADDRINUSE ? "; take another port" : "");
}

static void confine(void)
{
	const struct confine_file names[] = { { "/etc/resolv.conf", CONFINE_READ } };
	int error = confine_privileges();

	if (!error)
		error = confine_files(names, access(names[0].path, R_OK) ? 0 : 1,
				      CONFINE_KEEP_CONNECT | CONFINE_KEEP_BIND);
	if (error == -EOPNOTSUPP || error == -ENOSYS)
		error = 0; /* no Landlock here */
	if (!error)
		error = confine_calls_of(CONFINE_VMP_NET, false);
	if (error)
		refuse_to_start(net.socket, "--net user: cannot confine vmp-net: %s",
				strerror(-error));
}

static void parse(int argc, char **argv, struct netspec *spec, bool *patient)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "net", required_argument, NULL, 'n' },
		{ "patient", no_argument, NULL, 'p' },
		{ 0 },
	};
	char why[320];
	int c, given = 0;

	net.socket = -1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's': net.socket = atoi(optarg); break;
		case 'n': given = netspec_parse(spec, optarg, why, sizeof why) ? -1 : 1; break;
		case 'p': *patient = true; break;
		default: exit(EXIT_FAILURE);
		}
	if (net.socket < 0 || given < 1)
		die("vmp-net is started by vmp-iosrv, not by hand");
}

int main(int argc, char **argv)
{
	struct netspec spec;
	bool patient = false;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	log_open("vmp-net", 2, LOG_WARN);
	parse(argc, argv, &spec, &patient);
	start_slirp(&spec);
	net_answers_start(&net.answers, &spec);
	for (unsigned i = 0; i < spec.n_forwards; i++)
		forward(&spec.forward[i], patient);
	confine();
	send(net.socket, "", 1, MSG_NOSIGNAL);
	for (;;)
		run_once();
}
