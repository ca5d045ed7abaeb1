/* main.c - the I/O server's loop: requests from CPUs, bytes from the command line, answers and interrupts out.
 *
 *   vmp-iosrv --socket FD --cpus N [--disk IMAGE[,ro|,snapshot]]
 *
 * Started by node 0's daemon; ends when the daemon closes the socket.  Requests that wait in the socket are served in a
 * row; collected output goes out before the server sleeps.
 */
#include "iosrv/iosrv.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <signal.h>
#include <unistd.h>
#include "base/log.h"
#include "base/schedule.h"

static struct server {
	int socket;
	unsigned n_cpus;
	struct event_base *loop;
	struct event *later; /* the one delayed call that may be due */
	void (*later_call)(void);
	struct event *worked;
	struct work {
		pthread_t thread;
		bool runs;
		int told[2]; /* a pipe: its result, from the thread to the loop */
		int (*work)(void);
		void (*done)(int result);
	} work;
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

void iosrv_fail(const char *format, ...)
{
	struct msg_machine_end end = { .reason = END_FAILURE, .status = EXIT_VMP_FAILURE };
	char line[512];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (n >= (int)sizeof line)
		n = sizeof line - 1;
	iosrv_send(MSG_MACHINE_END, VNODE_DAEMON(0), &end, sizeof end, line, n);
}

void iosrv_raise(unsigned line)
{
	ioapic_raise(line);
}

void iosrv_interrupt(uint32_t cpus, uint8_t vector, bool nmi)
{
	for (; cpus; cpus &= cpus - 1) { /* one message per CPU: each may live elsewhere */
		unsigned cpu = __builtin_ctz(cpus);
		struct msg_interrupt body = { .cpu_mask = 1u << cpu, .vector = vector,
					      .kind = nmi ? INTERRUPT_NMI : INTERRUPT_FIXED };

		iosrv_send(MSG_INTERRUPT, VNODE_CPU(cpu), &body, sizeof body, NULL, 0);
	}
}

static void on_later(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	(void)context;
	server.later_call();
}

void iosrv_call_later(unsigned ms, void (*call)(void))
{
	struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	server.later_call = call;
	if (event_add(server.later, &delay))
		call(); /* too soon is better than never */
}

static void *run_work(void *context)
{
	struct work *work = context;
	int result = work->work();

	while (write(work->told[1], &result, sizeof result) < 0 && errno == EINTR)
		;
	return NULL;
}

static void on_worked(evutil_socket_t fd, short what, void *context)
{
	int result;

	(void)what;
	(void)context;
	if (read(fd, &result, sizeof result) != sizeof result)
		return;
	pthread_join(server.work.thread, NULL);
	server.work.runs = false;
	server.work.done(result); /* may begin the next */
}

void iosrv_work(int (*work)(void), void (*done)(int result))
{
	bug_on(server.work.runs);
	server.work.work = work;
	server.work.done = done;
	server.work.runs = !pthread_create(&server.work.thread, NULL, run_work, &server.work);
	if (!server.work.runs)
		done(work()); /* no thread to be had: then all wait */
}

/* A request that cannot be served ends the machine: its CPU would wait for ever. */
static void on_io_request(const struct packet *p)
{
	struct msg_io_request q;
	struct msg_io_reply reply;
	uint8_t data[PAGE_BYTES];
	size_t bytes, sent = p->header.bytes - sizeof q;
	bool in, string;

	memcpy(&q, p->bytes, sizeof q);
	bytes = (size_t)q.size * q.count;
	if (q.cpu >= server.n_cpus || (q.size != 1 && q.size != 2 && q.size != 4) || !q.count ||
	    q.count > PAGE_BYTES / q.size || q.kind > IO_MMIO_WRITE) {
		iosrv_fail("CPU %u sent a malformed I/O request (%u x %u bytes, kind %u); this is a bug in vmp", q.cpu, q.count,
			   q.size, q.kind);
		return;
	}
	in = q.kind == IO_PORT_IN || q.kind == IO_MMIO_READ;
	string = q.count > 1;
	if (!in && string && sent != bytes) {
		iosrv_fail("an I/O request of CPU %u carries %zu bytes for %zu; this is a bug in vmp", q.cpu, sent, bytes);
		return;
	}
	if (!in && string)
		memcpy(data, p->bytes + sizeof q, bytes);
	reply = (struct msg_io_reply){ .cpu = q.cpu, .seq = q.seq, .count = q.count };
	reply.value = chips_access(&q, data);
	iosrv_send(MSG_IO_REPLY, VNODE_CPU(q.cpu), &reply, sizeof reply, data, in && string ? bytes : 0);
}

static void on_stream(const struct packet *p)
{
	struct msg_stream body;

	memcpy(&body, p->bytes, sizeof body);
	stream_input(&body, p->bytes + sizeof body, p->header.bytes - sizeof body);
}

/* --- a snapshot of the machine: stand still between SAVE and THAW --- */

static bool receive(struct packet *p, int flags, ssize_t *n);
static void dispatch(const struct packet *p);

/* What arrives meanwhile is served after the thaw: it is not part of what was saved. */
static void wait_for_thaw(void)
{
	struct packet *waiting = NULL, p;
	size_t count = 0;
	ssize_t n;

	while (receive(&p, 0, &n)) {
		struct msg_snapshot snapshot;

		memcpy(&snapshot, p.bytes, sizeof snapshot);
		if (p.header.type == MSG_SNAPSHOT && snapshot.step == SNAPSHOT_THAW)
			break;
		waiting = reallocarray(waiting, count + 1, sizeof *waiting);
		if (!waiting)
			die("no memory for what arrives during a snapshot");
		waiting[count++] = p;
	}
	for (size_t i = 0; i < count; i++)
		dispatch(&waiting[i]);
	free(waiting);
}

static void on_worked(evutil_socket_t fd, short what, void *context);

static void on_snapshot(const struct packet *p)
{
	struct msg_snapshot snapshot;

	memcpy(&snapshot, p->bytes, sizeof snapshot);
	switch (snapshot.step) {
	case SNAPSHOT_SAVE:
		while (server.work.runs) /* a flush of the disk: its interrupt belongs to what is saved */
			on_worked(server.work.told[0], EV_READ, NULL);
		snapshot.result = (uint32_t)-snapshot_capture(snapshot.result);
		snapshot.step = SNAPSHOT_SAVED;
		iosrv_send(MSG_SNAPSHOT, VNODE_DAEMON(0), &snapshot, sizeof snapshot, NULL, 0);
		wait_for_thaw();
		return;
	case SNAPSHOT_END:
		snapshot_forget();
		return;
	case SNAPSHOT_THAW: /* of a machine that was loaded */
		return;
	default:
		iosrv_fail("the I/O server was sent step %u of a snapshot; this is a bug in vmp", snapshot.step);
	}
}

static void dispatch(const struct packet *p)
{
	struct msg_snapshot_pull pull;
	struct msg_snapshot_item item;
	struct msg_stream_room room;
	struct msg_console_size size;
	struct msg_console_attach attach;

	switch (p->header.type) {
	case MSG_HELLO:
		return;
	case MSG_IO_REQUEST:
		on_io_request(p);
		return;
	case MSG_STREAM:
		on_stream(p);
		return;
	case MSG_STREAM_ROOM:
		memcpy(&room, p->bytes, sizeof room);
		stream_room(&room);
		return;
	case MSG_CONSOLE:
		uart_input(p->bytes + sizeof(struct msg_console), p->header.bytes - sizeof(struct msg_console));
		return;
	case MSG_CONSOLE_SIZE:
		memcpy(&size, p->bytes, sizeof size);
		stream_window(size.columns, size.rows);
		return;
	case MSG_CONSOLE_ATTACH:
		memcpy(&attach, p->bytes, sizeof attach);
		uart_attach(attach.client, attach.backlog);
		return;
	case MSG_SNAPSHOT:
		on_snapshot(p);
		return;
	case MSG_SNAPSHOT_PULL:
		memcpy(&pull, p->bytes, sizeof pull);
		snapshot_pull(&pull);
		return;
	case MSG_SNAPSHOT_ITEM:
		memcpy(&item, p->bytes, sizeof item);
		snapshot_load(&item, p->bytes + sizeof item, p->header.bytes - sizeof item);
		return;
	default:
		iosrv_fail("the I/O server was sent %s; this is a bug in vmp", wire_type_name(p->header.type));
	}
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
		dispatch(&p);
	uart_flush();
	stream_flush();
	if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
		event_base_loopbreak(server.loop);
}

static const char *parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' }, { "cpus", required_argument, NULL, 'c' },
		{ "disk", required_argument, NULL, 'd' }, { 0 },
	};
	const char *disk = NULL;
	int c;

	server.socket = -1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's': server.socket = atoi(optarg); break;
		case 'c': server.n_cpus = atoi(optarg); break;
		case 'd': disk = optarg; break;
		default: exit(EXIT_VMP_FAILURE);
		}
	if (server.socket < 0 || server.n_cpus < 1 || server.n_cpus > MAX_CPUS)
		die("vmp-iosrv is started by vmp-node, not by hand");
	return disk;
}

/* Until the daemon closes the socket. */
static void serve(void)
{
	struct event *readable = NULL;

	server.loop = event_base_new();
	if (server.loop && !pipe2(server.work.told, O_CLOEXEC)) {
		readable = event_new(server.loop, server.socket, EV_READ | EV_PERSIST, on_readable, NULL);
		server.worked = event_new(server.loop, server.work.told[0], EV_READ | EV_PERSIST, on_worked, NULL);
		server.later = evtimer_new(server.loop, on_later, NULL);
	}
	if (!readable || !server.later || !server.worked || event_add(readable, NULL) || event_add(server.worked, NULL))
		die("no event loop: %s", strerror(errno));
	event_base_dispatch(server.loop);
	if (server.work.runs)
		pthread_join(server.work.thread, NULL);
	event_free(readable);
	event_free(server.worked);
	event_free(server.later);
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
	chips_reset();
	iosrv_send(MSG_HELLO, VNODE_DAEMON(0), &(struct msg_hello){ .wire_version = WIRE_VERSION, .role = PEER_IOSRV },
		   sizeof(struct msg_hello), NULL, 0);
	if (disk && ide_open(disk, why, sizeof why))
		iosrv_fail("%s", why);
	serve();
	ide_close();
	return 0;
}
