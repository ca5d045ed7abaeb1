/* iosrv_main.c - the I/O server's process: its socket, its loop, its timers.
 *
 *   vmp-iosrv --socket FD [--files-socket FD] [OPTION]...    options: base/machine.def
 *
 * Node 0's daemon starts it; it ends when the daemon closes the socket.  All messages that wait in
 * the socket are served together (serve.c); collected output is sent before the server sleeps.
 */
#include "iosrv/iosrv.h"

#include <errno.h>
#include <event2/event.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>
#include <unistd.h>
#include "base/filepass.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/schedule.h"
#include "iosrv/diskimage.h"
#include "iosrv/virtio.h"
#include "iosrv/worker.h"

static struct server {
	int socket, files; /* files: -1, or where offer_files() sends them */
	unsigned n_cpus;
	struct event_base *loop;
	struct event *readable;
	struct {
		struct event *event; /* NULL: not watched */
		short waits;	     /* EV_READ, EV_WRITE: what `event` waits for */
	} watched[N_WATCHED];
	struct event *timer[N_CHIPS]; /* NULL: this chip has no on_timer() */
} server;

unsigned iosrv_cpus(void)
{
	return server.n_cpus;
}

void iosrv_send(enum msg_type type, vnode_t to, const void *body, size_t body_bytes,
		const void *payload, size_t payload_bytes)
{
	struct msg_header header = packet_header(type, to, 0,
						 (uint32_t)(body_bytes + payload_bytes));

	if (packet_send(server.socket, &header, body, (uint32_t)body_bytes, payload,
			(uint32_t)payload_bytes, true))
		exit(EXIT_VMP_FAILURE); /* the daemon has ended, and the machine with it */
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
		serve_timer(chip); /* no timer: too early is better than never */
}

static void on_net(evutil_socket_t fd, short what, void *context)
{
	(void)what, (void)context;
	if (serve_stands_still())
		iosrv_watch(WATCH_NET, fd, false, false); /* net_start() after the thaw */
	else
		net_on_ready();
	chips_flush();
}

/* A frozen machine has no request under way, so all that can come then is the end of vmp-share. */
static void on_share(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what, (void)context;
	virtio9p_on_ready();
	chips_flush();
}

void iosrv_watch(enum watched which, int socket, bool read, bool write)
{
	static const event_callback_fn functions[] = { on_net, on_share };
	short wanted = (short)((read ? EV_READ : 0) | (write ? EV_WRITE : 0));
	struct event *event = server.watched[which].event;

	if (wanted == server.watched[which].waits)
		return;
	if (event)
		event_free(event);
	event = wanted ? event_new(server.loop, socket, wanted | EV_PERSIST, functions[which], NULL)
		       : NULL;
	server.watched[which].event = event;
	server.watched[which].waits = wanted;
	if (wanted && (!event || event_add(event, NULL)))
		die("no event for a device's socket: %s", strerror(errno));
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct packet_buffer buffer;
	struct message m;
	char why[200];
	int result;

	(void)what;
	(void)context;
	while ((result = packet_receive(fd, &buffer, LINK_NODE_TO_IOSRV, &m, false, why,
					sizeof why))) {
		if (result > 0) {
			serve(&m);
			continue;
		}
		if (result != -EPROTO && result != -EPROTONOSUPPORT) {
			/* the daemon has closed the socket */
			event_base_loopbreak(server.loop);
			break;
		}
		iosrv_fail("the I/O server received a bad message: %s; this is a bug in vmp", why);
	}
	chips_flush();
}

static struct machine parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "files-socket", required_argument, NULL, 'f' },
		{ 0 },
	};
	struct machine machine;
	char why[200];
	int c;

	server.socket = server.files = -1;
	machine_defaults(&machine);
	if (machine_take_words(&machine, MACHINE_IOSRV, &argc, argv, why, sizeof why))
		die("%s", why);
	server.n_cpus = machine.cpus;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's': server.socket = atoi(optarg); break;
		case 'f': server.files = atoi(optarg); break;
		default: exit(EXIT_VMP_FAILURE);
		}
	if (server.socket < 0 || !server.n_cpus)
		die("vmp-iosrv is started by vmp-node, not by hand");
	return machine;
}

static void open_loop(void)
{
	struct event *readable = NULL;

	server.loop = event_base_new();
	if (server.loop)
		readable = event_new(server.loop, server.socket, EV_READ | EV_PERSIST, on_readable,
				     NULL);
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
	net_start();
	virtio9p_start();
	iosrv_confine_files();
	worker_open(server.loop);
	iosrv_confine_calls();
}

static void close_loop(void)
{
	worker_close();
	for (unsigned i = 0; i < N_CHIPS; i++)
		if (server.timer[i])
			event_free(server.timer[i]);
	for (unsigned i = 0; i < N_WATCHED; i++)
		if (server.watched[i].event)
			event_free(server.watched[i].event);
	event_free(server.readable);
	event_base_free(server.loop);
}

/* Open a disk by the value of --disk: "IMAGE[,ro|,snapshot][,ide]". */
static int open_disk(unsigned disk, const char *spec, char *why, size_t why_bytes)
{
	const char *ide = strrchr(spec, ',');
	char image[4200];

	if (!ide || strcmp(ide, ",ide"))
		return blk_open(disk, spec, why, why_bytes);
	snprintf(image, sizeof image, "%.*s", (int)(ide - spec), spec);
	return ide_open(image, why, why_bytes);
}

/* Keep what the guest overwrites on its disks, if the machine may go back to a checkpoint. */
static int keep_undo(const struct machine *machine, char *why, size_t why_bytes)
{
	int error = 0;

	for (unsigned i = 0; i < machine->disk.n && !error; i++) {
		struct diskimage *image = blk_image(i) ? blk_image(i) : ide_image();

		if (machine->checkpoint_ms)
			error = diskimage_keep_undo(image, machine->restore, why, why_bytes);
		else
			diskimage_remove_undo(image);
	}
	return error;
}

static int open_devices(const struct machine *machine, char *why, size_t why_bytes)
{
	int error = 0;

	for (unsigned i = 0; i < machine->disk.n && !error; i++)
		error = open_disk(i, machine->disk.item[i], why, why_bytes);
	if (!error)
		error = keep_undo(machine, why, why_bytes);
	if (machine->net && strcmp(machine->net, "none") && !error)
		error = processes_open_net(machine->net, machine->restore, why, why_bytes);
	if (machine->live.n && !error)
		error = processes_open_share(machine->live.item[0], why, why_bytes);
	if (machine->rng)
		virtio_add(VIRTIO_RNG, &virtio_rng);
	if (machine->console == CONSOLE_VIRTIO)
		console_attach();
	return error;
}

/* Offer the monitors of this host, by slot, the files of devices that they may use themselves. */
static void offer_files(void)
{
	int fd[VIRTIO_SLOTS], error;

	if (server.files < 0)
		return;
	for (unsigned i = 0; i < VIRTIO_SLOTS; i++)
		fd[i] = -1;
	for (unsigned i = 0; i < MAX_DISKS; i++)
		if (blk_image(i))
			fd[VIRTIO_DISKS + i] = diskimage_open_shared(blk_image(i));
	fd[VIRTIO_NET] = net_share();
	error = filepass_send(server.files, fd, VIRTIO_SLOTS);
	if (error) /* they go without */
		log_warn("cannot give the devices' files to the monitors: %s", strerror(-error));
	for (unsigned i = 0; i < VIRTIO_SLOTS; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	close(server.files);
}

int main(int argc, char **argv)
{
	struct machine machine;
	char why[4500];
	int error;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	schedule_promptly();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit is an error of the guest's disk */
	signal(SIGINT, SIG_IGN); /* the daemon ends this process */
	log_open("vmp-iosrv", 2, LOG_WARN);
	machine = parse(argc, argv);
	error = open_devices(&machine, why, sizeof why);
	serve_start(machine.restore);
	if (!error)
		offer_files();
	iosrv_send(MSG_HELLO, VNODE_DAEMON(0),
		   &(struct msg_hello){ .wire_version = wire_version, .role = PEER_IOSRV },
		   sizeof(struct msg_hello), NULL, 0);
	if (error)
		iosrv_fail("%s", why);
	open_loop();
	event_base_dispatch(server.loop); /* until the daemon closes the socket */
	close_loop();
	ide_close();
	blk_close();
	return 0;
}
