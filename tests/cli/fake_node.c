/* fake_node.c - stands in for vmp-node in the tests of the command line: node 0 opens the control
 * socket and plays the part that the environment's FAKE_NODE names; the other nodes wait to be
 * ended.
 *
 *   echo      sends standard input back as standard output, then exits with 7
 *   flood     1 MiB of numbered lines on standard output and one line on standard error, then 0
 *   yes       output without end, until its reader is gone; then 3
 *   policy    sends a message that only a query may receive
 *   panic     MACHINE_END with a line
 *   die       node 0 kills itself; die1: node 1 does
 *   console   echoes the console, ends with `poweroff` when it sees "quit"
 *   hang      does nothing
 *   deaf      never opens the socket, ignores SIGTERM
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/packet.h"

enum { WINDOW = 65536 };
static int control;
static uint32_t room[3] = { 0, WINDOW, WINDOW };
static bool reader_gone;
static char packet[sizeof(struct msg_header) + 256 + MAX_MSG_PAYLOAD];

static void send_message(enum msg_type type, const void *body, size_t body_bytes,
			 const void *payload, size_t n)
{
	struct msg_header header = packet_header(type, VNODE_CLI, 0, (uint32_t)(body_bytes + n));

	memcpy(packet, &header, sizeof header);
	memcpy(packet + sizeof header, body, body_bytes);
	if (n)
		memcpy(packet + sizeof header + body_bytes, payload, n);
	if (send(control, packet, sizeof header + header.bytes, MSG_NOSIGNAL) < 0)
		exit(0);
}

/* Receives the next message.  Returns its type; its body is at packet + sizeof(struct
 * msg_header). */
static enum msg_type receive(size_t *bytes)
{
	struct msg_header header;
	ssize_t n = recv(control, packet, sizeof packet, 0);

	if (n < (ssize_t)sizeof header)
		exit(0);
	memcpy(&header, packet, sizeof header);
	*bytes = header.bytes;
	if (header.type == MSG_MACHINE_END)
		exit(0);
	if (header.type == MSG_STREAM_ROOM) {
		struct msg_stream_room more;

		memcpy(&more, packet + sizeof header, sizeof more);
		room[more.stream] += more.bytes;
	}
	if (header.type == MSG_STREAM) {
		struct msg_stream stream;

		memcpy(&stream, packet + sizeof header, sizeof stream);
		reader_gone |= stream.stream == 1 && stream.eof;
	}
	return header.type;
}

static void put_stream(uint32_t stream, const char *bytes, size_t n)
{
	struct msg_stream body = { stream, 0 };
	char copy[MAX_MSG_PAYLOAD];
	size_t got;

	memcpy(copy, bytes, n);
	while (room[stream] < n && !reader_gone)
		receive(&got);
	room[stream] -= n;
	send_message(MSG_STREAM, &body, sizeof body, copy, n);
}

static void end_command(uint32_t status)
{
	struct msg_command_exit body = { status, 0 };
	size_t bytes;

	send_message(MSG_COMMAND_EXIT, &body, sizeof body, NULL, 0);
	for (;;)
		receive(&bytes);
}

static void end_machine(enum end_reason reason, const char *line)
{
	struct msg_machine_end body = { .reason = reason };

	send_message(MSG_MACHINE_END, &body, sizeof body, line, strlen(line));
	exit(0);
}

static void echo(void)
{
	size_t bytes;

	for (;;) {
		struct msg_stream stream;
		enum msg_type type = receive(&bytes);

		if (type != MSG_STREAM)
			continue;
		memcpy(&stream, packet + sizeof(struct msg_header), sizeof stream);
		if (bytes > sizeof stream) {
			struct msg_stream_room took = { .stream = 0,
							.bytes = bytes - sizeof stream };
			char copy[MAX_MSG_PAYLOAD];

			memcpy(copy, packet + sizeof(struct msg_header) + sizeof stream,
			       took.bytes);
			put_stream(1, copy, took.bytes);
			send_message(MSG_STREAM_ROOM, &took, sizeof took, NULL, 0);
		}
		if (stream.stream == 0 && stream.eof)
			end_command(7);
	}
}

static void flood(void)
{
	char line[33];

	for (unsigned i = 0; i < 32768; i++) {
		snprintf(line, sizeof line, "%031u\n", i);
		put_stream(1, line, 32);
	}
	put_stream(2, "done\n", 5);
	end_command(0);
}

static void play_console(void)
{
	size_t bytes;

	for (;;) {
		const char *text = packet + sizeof(struct msg_header) + sizeof(struct msg_console);
		char copy[MAX_MSG_PAYLOAD];
		struct msg_console body = { 0 };

		if (receive(&bytes) != MSG_CONSOLE)
			continue;
		bytes -= sizeof body;
		memcpy(copy, text, bytes);
		send_message(MSG_CONSOLE, &body, sizeof body, copy, bytes);
		if (memmem(copy, bytes, "quit", 4))
			end_machine(END_POWEROFF, "");
	}
}

static void open_control(const char *dir)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s/control.sock", dir);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 4))
		exit(125);
	control = accept(fd, NULL, NULL);
}

int main(int argc, char **argv)
{
	const char *part = getenv("FAKE_NODE"), *dir = "";
	int node = 0;

	for (int i = 1; i + 1 < argc; i++) {
		if (!strcmp(argv[i], "--dir"))
			dir = argv[i + 1];
		if (!strcmp(argv[i], "--node"))
			node = atoi(argv[i + 1]);
	}
	if (!part)
		return 125;
	if (!strcmp(part, "deaf")) {
		signal(SIGTERM, SIG_IGN);
		for (;;)
			pause();
	}
	if (!strcmp(part, "die1") && node == 1) {
		usleep(100000);
		raise(SIGKILL);
	}
	if (node)
		for (;;)
			pause();
	open_control(dir);
	if (!strcmp(part, "echo"))
		echo();
	if (!strcmp(part, "flood"))
		flood();
	if (!strcmp(part, "console"))
		play_console();
	if (!strcmp(part, "policy"))
		send_message(MSG_POLICY, &(struct msg_policy){ .policy = POLICY_AUTO },
			     sizeof(struct msg_policy), NULL, 0);
	if (!strcmp(part, "panic"))
		end_machine(END_PANIC, "the guest kernel panicked: all is lost");
	if (!strcmp(part, "die"))
		raise(SIGKILL);
	while (!strcmp(part, "yes")) {
		put_stream(1, "y\ny\ny\ny\n", 8);
		if (reader_gone)
			end_command(3);
	}
	for (size_t bytes;;)
		receive(&bytes);
}
