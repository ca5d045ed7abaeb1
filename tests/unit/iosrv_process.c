/* iosrv_process.c - see iosrv_process.h. */
#include "tests/unit/iosrv_process.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "base/packet.h"
#include "tests/unit/unit.h"

static char program[4096];
int daemon_end = -1;
pid_t server;

void find_server(const char *self)
{
	char *slash;

	signal(SIGPIPE, SIG_IGN);
	snprintf(program, sizeof program - 32, "%s", self);
	for (unsigned i = 0; i < 3 && (slash = strrchr(program, '/')); i++)
		*slash = '\0';
	strcat(program, "/vmp-iosrv");
}

void start_with(const char *option, const char *value)
{
	int fd[2];
	char number[16];

	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd));
	server = fork();
	if (!server) {
		close(fd[0]);
		snprintf(number, sizeof number, "%d", fd[1]);
		setenv("VMP_LOG", "error", 1);
		execl(program, "vmp-iosrv", "--socket", number, "--cpus", "4",
		      option, value, NULL);
		_exit(99);
	}
	close(fd[1]);
	daemon_end = fd[0];
}

void start(const char *disk) { start_with(disk ? "--disk" : NULL, disk); }

void stop(void)
{
	int status = -1;

	close(daemon_end);
	CU_ASSERT(waitpid(server, &status, 0) == server && WIFEXITED(status) &&
		  WEXITSTATUS(status) == 0);
}

bool receive(struct packet *p, int timeout_ms)
{
	struct pollfd wait = { .fd = daemon_end, .events = POLLIN };
	ssize_t n;

	if (poll(&wait, 1, timeout_ms) != 1)
		return false;
	n = recv(daemon_end, p, sizeof *p, 0);
	return n > 0 && (size_t)n == sizeof p->header + p->header.bytes &&
	       p->header.version == (uint16_t)wire_version;
}

void send_bytes(uint16_t type, const void *bytes, size_t count)
{
	struct packet p = { .header = packet_header(type, VNODE_IOSRV, 0, (uint32_t)count) };

	memcpy(p.bytes, bytes, count);
	CU_ASSERT(send(daemon_end, &p, sizeof p.header + count, 0) > 0);
}

void request(struct msg_io_request q, const void *payload, size_t payload_bytes)
{
	uint8_t bytes[sizeof q + MAX_MSG_PAYLOAD];

	memcpy(bytes, &q, sizeof q);
	if (payload_bytes)
		memcpy(bytes + sizeof q, payload, payload_bytes);
	send_bytes(MSG_IO_REQUEST, bytes, sizeof q + payload_bytes);
}

bool answers(void)
{
	static uint32_t seq;
	struct msg_io_reply reply;
	struct packet p;

	request((struct msg_io_request){ .cpu = 3,
					 .seq = ++seq,
					 .address = 0x71,
					 .kind = IO_PORT_IN,
					 .size = 1,
					 .count = 1 },
		NULL, 0);
	if (!receive(&p, WAIT_MS) || p.header.type != MSG_IO_REPLY)
		return false;
	memcpy(&reply, p.bytes, sizeof reply);
	return reply.cpu == 3 && reply.seq == seq && reply.value == 0xff &&
	       p.header.to == VNODE_CPU(3);
}

bool fails(const char *word)
{
	struct msg_machine_end end;
	struct packet p;
	const char *line = (const char *)p.bytes + sizeof end;

	if (!receive(&p, WAIT_MS) || p.header.type != MSG_MACHINE_END ||
	    p.header.bytes <= sizeof end)
		return false;
	memcpy(&end, p.bytes, sizeof end);
	p.bytes[p.header.bytes] = 0;
	return end.reason == END_FAILURE && end.status == EXIT_VMP_FAILURE && strstr(line, word);
}

void expect_hello(void)
{
	struct packet p;
	struct msg_hello hello;

	CU_ASSERT_FATAL(receive(&p, WAIT_MS) && p.header.type == MSG_HELLO);
	memcpy(&hello, p.bytes, sizeof hello);
	CU_ASSERT(hello.role == PEER_IOSRV && hello.wire_version == wire_version);
}

int make_image(char image[64])
{
	int fd;

	strcpy(image, "/tmp/vmp-iosrv-XXXXXX");
	fd = mkstemp(image);
	CU_ASSERT_FATAL(fd >= 0 && !ftruncate(fd, 65536));
	strcat(image, ",ide");
	return fd;
}

void remove_image(char *image, int fd)
{
	*strrchr(image, ',') = 0;
	unlink(image);
	close(fd);
}
