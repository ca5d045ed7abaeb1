/* share_process.c - vmp-share as a process, behind its walls (Landlock, seccomp): it serves a
 * request, gives its state, and another one goes on with that; the same behind two I/O servers. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "base/guest_abi.h"
#include "base/packet.h"
#include "base/virtio_abi.h"
#include "iosrv/shareframe.h"
#include "tests/unit/ninep_client.h"

static char folder_of_programs[4000], program[4096];
static int ours;
static pid_t process;
static uint8_t state[8192];
static size_t state_bytes;

static void start_process(void)
{
	char number[16], first;
	int pair[2];

	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	snprintf(number, sizeof number, "%d", pair[1]);
	process = fork();
	if (!process) {
		close(pair[0]);
		execl(program, "vmp-share", "--socket", number, "--folder", folder, NULL);
		_exit(1);
	}
	close(pair[1]);
	ours = pair[0];
	CU_ASSERT_FATAL(recv(ours, &first, 1, 0) == 1 && !first);
}

/* Returns the status with which the process has ended; SIGSYS: by its filter of system calls. */
static int end_process(void)
{
	int status;

	close(ours);
	return waitpid(process, &status, 0) == process ? status : -1;
}

static void put_packet(enum share_packet kind, const void *bytes, size_t n)
{
	static uint8_t packet[1 + NINEP_MESSAGE_BYTES];

	packet[0] = (uint8_t)kind;
	memcpy(packet + 1, bytes, n);
	CU_ASSERT_FATAL(send(ours, packet, 1 + n, MSG_NOSIGNAL) == (ssize_t)(1 + n));
}

/* Sends the request that has been built: 0, or the errno of the reply. */
static int put_request(void)
{
	uint32_t n = (uint32_t)length;

	memcpy(request, &n, 4);
	put_packet(SHARE_REQUEST, request, length);
	CU_ASSERT_FATAL(recv(ours, reply, sizeof reply, 0) >= NINEP_HEADER_BYTES);
	return reply[4] == ERROR ? (int)answer(0, 4) : 0;
}

static int read_some(uint32_t fid)
{
	begin(116);
	number(fid, 4);
	number(0, 8);
	number(10, 4);
	return put_request();
}

static void open_a_file(const char *name)
{
	begin(104);
	number(1, 4);
	number(~0u, 4);
	string("");
	string("");
	number(0, 4);
	CU_ASSERT(!put_request());
	begin(110);
	number(1, 4);
	number(2, 4);
	number(1, 2);
	string(name);
	CU_ASSERT(!put_request());
	begin(12);
	number(2, 4);
	number(O_RDWR, 4);
	CU_ASSERT(!put_request());
	begin(52);
	number(2, 4);
	number(1, 1);
	number(0, 4);
	number(0, 8);
	number(0, 8);
	number(1, 4);
	string("guest");
	CU_ASSERT(!put_request() && answer(0, 1) == 0);
}

static void save_state(void)
{
	uint8_t part[1 + SHARE_PART_BYTES];
	ssize_t n;

	put_packet(SHARE_SAVE, "", 0);
	n = recv(ours, part, sizeof part, 0);
	CU_ASSERT_FATAL(n > 1 && (size_t)n <= sizeof state && part[0] == SHARE_LAST);
	state_bytes = (size_t)n - 1;
	memcpy(state, part + 1, state_bytes);
}

/* Gives the state in two parts.  Returns the answer: "", or why not. */
static const char *load_state(void)
{
	static char why[256];
	ssize_t n;

	put_packet(SHARE_LOAD, state, 10);
	put_packet(SHARE_LOAD_LAST, state + 10, state_bytes - 10);
	n = recv(ours, why, sizeof why - 1, 0);
	CU_ASSERT_FATAL(n > 0);
	why[n] = 0;
	return why;
}

static void another_process_goes_on(void)
{
	struct flock lock = { .l_type = F_WRLCK };
	char path[64];
	int fd;

	snprintf(path, sizeof path, "%s/f", folder);
	fd = open(path, O_CREAT | O_RDWR, 0600);
	CU_ASSERT_FATAL(fd >= 0 && write(fd, "text", 4) == 4);
	start_process();
	open_a_file("f");
	CU_ASSERT(!read_some(2) && answer(0, 4) == 4);
	save_state();
	CU_ASSERT(!read_some(2)); /* it goes on itself, too */
	CU_ASSERT(!kill(process, SIGKILL) && end_process() == SIGKILL);
	start_process();
	CU_ASSERT_STRING_EQUAL(load_state(), "");
	CU_ASSERT(!read_some(2) && !memcmp(reply + 11, "text", 4));
	CU_ASSERT(fcntl(fd, F_OFD_SETLK, &lock) == -1 && errno == EAGAIN);
	CU_ASSERT_EQUAL(end_process(), 0);
	/* a lock that somebody keeps: it waits for it, and then the file is lost */
	CU_ASSERT(!fcntl(fd, F_OFD_SETLK, &lock));
	start_process();
	CU_ASSERT_STRING_EQUAL(load_state(), "");
	CU_ASSERT_EQUAL(read_some(2), ESTALE);
	CU_ASSERT_EQUAL(end_process(), 0);
	/* a damaged state: one line, and the process still serves */
	state[0] ^= 1;
	start_process();
	CU_ASSERT(strstr(load_state(), "version") != NULL);
	CU_ASSERT_EQUAL(read_some(2), EBADF);
	CU_ASSERT_EQUAL(end_process(), 0);
	close(fd);
	unlink(path);
}

/* ---- behind the I/O server ---- */

static struct packet { struct msg_header header; uint8_t bytes[256 + MAX_MSG_PAYLOAD];
} packet, items[512];

static void send_body(uint16_t type, const void *body, size_t bytes, const void *data, size_t more)
{
	packet.header = packet_header(type, VNODE_IOSRV, 0, (uint32_t)(bytes + more));
	memcpy(packet.bytes, body, bytes);
	memcpy(packet.bytes + bytes, data, more);
	CU_ASSERT_FATAL(send(ours, &packet, sizeof packet.header + bytes + more, 0) > 0);
}

/* Receives the next message of this type; those before it are for others. */
static void receive_type(struct packet *to, uint16_t type)
{
	do {
		CU_ASSERT_FATAL(recv(ours, to, sizeof *to, 0) > 0);
		CU_ASSERT_FATAL(to->header.type != MSG_MACHINE_END);
	} while (to->header.type != type);
}

static void start_server(bool restores)
{
	char number[16], iosrv[4096];
	int pair[2];

	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	snprintf(number, sizeof number, "%d", pair[1]);
	snprintf(iosrv, sizeof iosrv, "%s/vmp-iosrv", folder_of_programs);
	process = fork();
	if (!process) {
		close(pair[0]);
		execl(iosrv, "vmp-iosrv", "--socket", number, "--cpus", "1", "--live", folder,
		      restores ? "--restore" : NULL, NULL);
		_exit(1);
	}
	close(pair[1]);
	ours = pair[0];
	receive_type(&packet, MSG_HELLO);
}

static void set_register(uint32_t offset, uint32_t value)
{
	struct msg_io_request q = { .address = VMP_VIRTIO_GPA + offset +
					       VIRTIO_SHARE * VIRTIO_SLOT_BYTES,
				    .kind = IO_MMIO_WRITE, .size = 4, .count = 1, .value = value };

	send_body(MSG_IO_REQUEST, &q, sizeof q, "", 0);
	receive_type(&packet, MSG_IO_REPLY);
}

static void start_driver(void)
{
	set_register(VIRTIO_DRIVER_FEATURES_SEL, 1);
	set_register(VIRTIO_DRIVER_FEATURES, 1);
	set_register(VIRTIO_STATUS, 11);
	set_register(VIRTIO_QUEUE_SEL, 0);
	set_register(VIRTIO_QUEUE_NUM, 16);
	set_register(VIRTIO_QUEUE_READY, 1);
	set_register(VIRTIO_STATUS, 15);
	set_register(VIRTIO_QUEUE_NOTIFY, 0);
}

/* The request that has been built, as a chain of the device's queue: 0, or the errno. */
static int chain(void)
{
	uint32_t n = (uint32_t)length;
	struct msg_virtio body = { .op = VIRTIO_REQUEST, .slot = VIRTIO_SHARE, .out_bytes = n,
				   .in_bytes = 8192 };

	memcpy(request, &n, 4);
	send_body(MSG_VIRTIO_ASK, &body, sizeof body, request, length);
	do {
		receive_type(&packet, MSG_VIRTIO_TELL);
		memcpy(&body, packet.bytes, sizeof body);
	} while (body.op != VIRTIO_DONE);
	memcpy(reply, packet.bytes + sizeof body, packet.header.bytes - sizeof body);
	return reply[4] == ERROR ? (int)answer(0, 4) : 0;
}

static unsigned save_items(void)
{
	struct msg_snapshot step = { .step = SNAPSHOT_SAVE };
	struct msg_snapshot_pull pull = { .count = 1 };
	struct msg_snapshot_item item = { 0 };
	unsigned n = 0;

	send_body(MSG_SNAPSHOT, &step, sizeof step, "", 0);
	receive_type(&packet, MSG_SNAPSHOT);
	memcpy(&step, packet.bytes, sizeof step);
	CU_ASSERT_FATAL(step.step == SNAPSHOT_SAVED && !step.result);
	while (item.kind != SNAPSHOT_LAST) {
		CU_ASSERT_FATAL(n < sizeof items / sizeof *items);
		send_body(MSG_SNAPSHOT_PULL, &pull, sizeof pull, "", 0);
		receive_type(&items[n], MSG_SNAPSHOT_ITEM);
		memcpy(&item, items[n++].bytes, sizeof item);
	}
	return n;
}

static void build_read(void)
{
	begin(116);
	number(2, 4);
	number(0, 8);
	number(10, 4);
}

static void another_machine_goes_on(void)
{
	struct msg_virtio back = { .op = VIRTIO_BACK };
	char path[64];
	unsigned n;
	int fd;

	snprintf(path, sizeof path, "%s/f", folder);
	fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
	CU_ASSERT_FATAL(fd >= 0 && write(fd, "text", 4) == 4);
	close(fd);
	start_server(false);
	start_driver();
	begin(104);
	number(1, 4);
	number(~0u, 4);
	string("");
	string("");
	number(0, 4);
	CU_ASSERT(!chain());
	begin(110);
	number(1, 4);
	number(2, 4);
	number(1, 2);
	string("f");
	CU_ASSERT(!chain());
	begin(12);
	number(2, 4);
	number(O_RDONLY, 4);
	CU_ASSERT(!chain());
	n = save_items();
	CU_ASSERT_EQUAL(end_process(), 0);
	start_server(true);
	for (unsigned i = 0; i < n; i++) {
		send_body(MSG_SNAPSHOT_ITEM, items[i].bytes, items[i].header.bytes, "", 0);
		receive_type(&packet, MSG_SNAPSHOT); /* it is taken */
	}
	send_body(MSG_VIRTIO_ASK, &back, sizeof back, "", 0); /* its CPU runs again */
	build_read();
	CU_ASSERT(!chain() && answer(0, 4) == 4 && !memcmp(reply + 11, "text", 4));
	CU_ASSERT_EQUAL(end_process(), 0);
	unlink(path);
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "another process goes on", another_process_goes_on },
		{ "another machine goes on", another_machine_goes_on },
		UNIT_END
	};
	int status;
	char *end;

	(void)argc;
	/* build/tests/unit/share_process -> build/vmp-share */
	if (!realpath(argv[0], program) || strlen(program) >= sizeof folder_of_programs ||
	    !mkdtemp(folder))
		return 1;
	for (unsigned i = 0; i < 3 && (end = strrchr(program, '/')); i++)
		*end = 0;
	strcpy(folder_of_programs, program);
	strcat(program, "/vmp-share");
	status = UNIT_RUN("vmp-share", tests);
	rmdir(folder);
	return status;
}
