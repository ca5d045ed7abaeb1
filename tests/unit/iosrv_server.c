/* iosrv_server.c - the I/O server as a process: messages that a daemon may send, well-formed or
 * not, and how the server ends. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#undef PAGE_MASK /* <sys/user.h> has another one */
#include <sys/wait.h>
#include <unistd.h>
#include "base/agent_abi.h"
#include "base/guest_abi.h"
#include "base/packet.h"
#include "tests/unit/unit.h"

enum { WAIT_MS = 60000 /* for hangs alone */, STILL_MS = 50 };

static char program[4096];
static int daemon_end = -1;
static pid_t server;

struct packet {
	struct msg_header header;
	uint8_t bytes[256 + MAX_MSG_PAYLOAD];
};

static void start_with(const char *option, const char *value)
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

static void start(const char *disk) { start_with(disk ? "--disk" : NULL, disk); }

/* Closing the socket ends it. */
static void stop(void)
{
	int status = -1;

	close(daemon_end);
	CU_ASSERT(waitpid(server, &status, 0) == server && WIFEXITED(status) &&
		  WEXITSTATUS(status) == 0);
}

/* The next message; false if none comes. */
static bool receive(struct packet *p, int timeout_ms)
{
	struct pollfd wait = { .fd = daemon_end, .events = POLLIN };
	ssize_t n;

	if (poll(&wait, 1, timeout_ms) != 1)
		return false;
	n = recv(daemon_end, p, sizeof *p, 0);
	return n > 0 && (size_t)n == sizeof p->header + p->header.bytes &&
	       p->header.version == (uint16_t)wire_version;
}

static void send_bytes(uint16_t type, const void *bytes, size_t count)
{
	struct packet p = { .header = packet_header(type, VNODE_IOSRV, 0, (uint32_t)count) };

	memcpy(p.bytes, bytes, count);
	CU_ASSERT(send(daemon_end, &p, sizeof p.header + count, 0) > 0);
}

static void request(struct msg_io_request q, const void *payload, size_t payload_bytes)
{
	uint8_t bytes[sizeof q + MAX_MSG_PAYLOAD];

	memcpy(bytes, &q, sizeof q);
	if (payload_bytes)
		memcpy(bytes + sizeof q, payload, payload_bytes);
	send_bytes(MSG_IO_REQUEST, bytes, sizeof q + payload_bytes);
}

/* A well-formed request is answered, and nothing else comes before its answer. */
static bool answers(void)
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

/* Checks that the server ends the machine with a line that contains `word`. */
static bool fails(const char *word)
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

static void expect_hello(void)
{
	struct packet p;
	struct msg_hello hello;

	CU_ASSERT_FATAL(receive(&p, WAIT_MS) && p.header.type == MSG_HELLO);
	memcpy(&hello, p.bytes, sizeof hello);
	CU_ASSERT(hello.role == PEER_IOSRV && hello.wire_version == wire_version);
}

static void test_requests(void)
{
	uint8_t text[8] = "console";
	struct packet p;

	start(NULL);
	expect_hello();
	CU_ASSERT(answers());
	request((struct msg_io_request){ .seq = 9,
					 .address = VMP_UART_PORT,
					 .kind = IO_PORT_OUT,
					 .size = 1,
					 .count = 7 },
		text, 7);
	CU_ASSERT(receive(&p, WAIT_MS) && p.header.type == MSG_IO_REPLY);
	CU_ASSERT(receive(&p, WAIT_MS) && p.header.type == MSG_CONSOLE);
	CU_ASSERT(p.header.bytes == sizeof(struct msg_console) + 7 &&
		  !memcmp(p.bytes + sizeof(struct msg_console), text, 7));
	stop();
}

static void test_bad_requests(void)
{
	static const struct { struct msg_io_request q; unsigned payload; } rows[] = {
		{ { .cpu = 4, .size = 1, .count = 1 }, 0 },
		{ { .cpu = ~0u, .size = 1, .count = 1 }, 0 },
		{ { .size = 0, .count = 1 }, 0 },
		{ { .size = 3, .count = 1 }, 0 },
		{ { .size = 8, .count = 1 }, 0 },
		{ { .size = 1, .count = 0 }, 0 },
		{ { .size = 1, .count = 4097 }, 0 },
		{ { .size = 4, .count = 1025 }, 0 },
		{ { .size = 4, .count = 0x40000001 }, 0 },
		{ { .size = 2, .count = ~0u }, 0 },
		{ { .size = 1, .count = 1, .kind = 4 }, 0 },
		{ { .size = 2, .count = 4, .kind = IO_PORT_OUT, .address = VMP_UART_PORT }, 7 },
		{ { .size = 2, .count = 4, .kind = IO_PORT_OUT, .address = VMP_UART_PORT }, 0 },
		{ { .size = 1, .count = 4, .kind = IO_PORT_OUT, .address = VMP_UART_PORT }, 8192 },
	};
	static const uint8_t zeros[MAX_MSG_PAYLOAD];

	start(NULL);
	expect_hello();
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		request(rows[i].q, zeros, rows[i].payload);
		CU_ASSERT(fails("I/O request")); /* or the CPU would wait for its answer for ever */
		CU_ASSERT(answers());
	}
	stop();
}

static void test_bad_messages(void)
{
	static const uint8_t zeros[MAX_MSG_PAYLOAD];
	struct packet p = { .header = packet_header(MSG_STREAM, 0, 0, 0) };

	start(NULL);
	expect_hello();
	for (unsigned type = 0; type < 100; type++) {
		send_bytes(type, zeros, 3); /* too short for any body */
		CU_ASSERT(fails("bad message"));
	}
	send_bytes(MSG_STREAM_ROOM, zeros, sizeof(struct msg_stream_room) + 1);
	CU_ASSERT(fails("bad message"));
	send_bytes(MSG_PAGE_WANT, zeros, sizeof(struct msg_page_want));
	CU_ASSERT(fails("PAGE_WANT"));
	CU_ASSERT(send(daemon_end, &p, 1, 0) == 1);
	CU_ASSERT(fails("bad message"));
	p.header.bytes = 100; /* says more than there is */
	CU_ASSERT(send(daemon_end, &p, sizeof p.header + 8, 0) > 0);
	CU_ASSERT(fails("bad message"));
	p.header.bytes = 8;
	p.header.version++;
	CU_ASSERT(send(daemon_end, &p, sizeof p.header + 8, 0) > 0);
	CU_ASSERT(fails("bad message"));
	send_bytes(MSG_STREAM, &(struct msg_stream){ .stream = ~0u }, sizeof(struct msg_stream));
	send_bytes(MSG_STREAM_ROOM, &(struct msg_stream_room){ .stream = 77, .bytes = 1 },
		   sizeof(struct msg_stream_room));
	send_bytes(MSG_CONSOLE_ATTACH, &(struct msg_console_attach){ .client = 1, .backlog = ~0u },
		   sizeof(struct msg_console_attach));
	CU_ASSERT(answers());
	stop();
}

/* A disk image, and what --disk says of it. */
static int make_image(char image[64])
{
	int fd;

	strcpy(image, "/tmp/vmp-iosrv-XXXXXX");
	fd = mkstemp(image);
	CU_ASSERT_FATAL(fd >= 0 && !ftruncate(fd, 65536));
	strcat(image, ",ide");
	return fd;
}

static void remove_image(char *image, int fd)
{
	*strrchr(image, ',') = 0;
	unlink(image);
	close(fd);
}

/* The flush's answer comes through the thread: the interrupt is routed to CPU 2. */
static void test_flush(void)
{
	static const struct { uint32_t address, value; bool mmio;
	} steps[] = {
		{ VMP_IOAPIC_GPA, 0x10 + 2 * VMP_IDE_IRQ + 1, true },
		{ VMP_IOAPIC_GPA + 0x10, 2 << 24, true },
		{ VMP_IOAPIC_GPA, 0x10 + 2 * VMP_IDE_IRQ, true },
		{ VMP_IOAPIC_GPA + 0x10, 0x39, true },
		{ VMP_IDE_PORT + 6, 0xa0, false },
		{ VMP_IDE_PORT + 7, 0xe7, false },
	};
	char image[64];
	int fd = make_image(image);
	struct msg_interrupt interrupt = { 0 };
	struct packet p;
	unsigned replies = 0;

	start(image);
	expect_hello();
	for (unsigned i = 0; i < ARRAY_LEN(steps); i++)
		request((struct msg_io_request){ .address = steps[i].address,
						 .value = steps[i].value,
						 .size = 1,
						 .count = 1,
						 .kind = steps[i].mmio ? IO_MMIO_WRITE
								       : IO_PORT_OUT },
			NULL, 0);
	for (unsigned i = 0; i < ARRAY_LEN(steps) + 1; i++) {
		CU_ASSERT_FATAL(receive(&p, WAIT_MS));
		replies += p.header.type == MSG_IO_REPLY;
		if (p.header.type == MSG_INTERRUPT)
			memcpy(&interrupt, p.bytes, sizeof interrupt);
	}
	CU_ASSERT(replies == ARRAY_LEN(steps));
	CU_ASSERT(interrupt.cpu_mask == 4 && interrupt.vector == 0x39 &&
		  interrupt.kind == INTERRUPT_FIXED);
	stop();
	remove_image(image, fd);
}

static void step(enum snapshot_step step, uint32_t result)
{
	struct msg_snapshot snapshot = { .step = step, .result = result };

	send_bytes(MSG_SNAPSHOT, &snapshot, sizeof snapshot);
}

/* Messages between the save and the thaw are not part of what is saved; they are served afterwards,
 * in order. */
static void test_stands_still(void)
{
	struct msg_snapshot snapshot;
	struct msg_io_reply reply;
	struct packet p;

	start(NULL);
	expect_hello();
	step(SNAPSHOT_SAVE, SNAPSHOT_APART);
	CU_ASSERT_FATAL(receive(&p, WAIT_MS) && p.header.type == MSG_SNAPSHOT);
	memcpy(&snapshot, p.bytes, sizeof snapshot);
	CU_ASSERT(snapshot.step == SNAPSHOT_SAVED && !snapshot.result);
	for (uint32_t seq = 1; seq <= 3; seq++)
		request((struct msg_io_request){ .seq = seq,
						 .address = 0x71,
						 .kind = IO_PORT_IN,
						 .size = 1,
						 .count = 1 },
			NULL, 0);
	CU_ASSERT(!receive(&p, STILL_MS));
	step(SNAPSHOT_THAW, 0);
	for (uint32_t seq = 1; seq <= 3; seq++) {
		CU_ASSERT_FATAL(receive(&p, WAIT_MS) && p.header.type == MSG_IO_REPLY);
		memcpy(&reply, p.bytes, sizeof reply);
		CU_ASSERT(reply.seq == seq);
	}
	step(SNAPSHOT_END, 0);
	CU_ASSERT(answers());
	stop();
}

/* The next message of the type; those before it are for others. */
static void receive_type(struct packet *p, uint16_t type)
{
	do {
		CU_ASSERT_FATAL(receive(p, WAIT_MS));
	} while (p->header.type != type);
}

static void port_out(uint32_t address, uint32_t value)
{
	struct packet p;

	request((struct msg_io_request){ .address = address, .value = value, .size = 1, .count = 1,
					 .kind = IO_PORT_OUT },
		NULL, 0);
	receive_type(&p, MSG_IO_REPLY);
}

static uint32_t port_in(uint32_t address)
{
	struct msg_io_reply reply;
	struct packet p;

	request((struct msg_io_request){ .address = address, .size = 1, .count = 1,
					 .kind = IO_PORT_IN },
		NULL, 0);
	receive_type(&p, MSG_IO_REPLY);
	memcpy(&reply, p.bytes, sizeof reply);
	return reply.value;
}

/* The items of the server's state.  Returns their number. */
static unsigned save(struct packet *items, unsigned most)
{
	struct msg_snapshot_pull pull = { .count = 1 };
	struct msg_snapshot_item item = { 0 };
	unsigned n = 0;

	step(SNAPSHOT_SAVE, SNAPSHOT_APART);
	CU_ASSERT_FATAL(receive(&items[0], WAIT_MS) && items[0].header.type == MSG_SNAPSHOT);
	while (item.kind != SNAPSHOT_LAST) {
		CU_ASSERT_FATAL(n < most);
		send_bytes(MSG_SNAPSHOT_PULL, &pull, sizeof pull);
		CU_ASSERT_FATAL(receive(&items[n], WAIT_MS) &&
				items[n].header.type == MSG_SNAPSHOT_ITEM);
		memcpy(&item, items[n++].bytes, sizeof item);
	}
	return n;
}

/* A user types, and runs a command, while the machine is being loaded: the state that is loaded
 * must not take the place of what came before it. */
static void test_loads(void)
{
	enum { MCR_RTS = 2, LSR_RX = 1, MODEM = VMP_UART_PORT + 4, LINE = VMP_UART_PORT + 5 };
	static struct packet items[512];
	struct { struct msg_console head; char text[2]; } typed = { .text = "hi" };
	struct { struct msg_exec head; char spec; } run = { { 7, 8, AGENT_SPEC, 0 }, 'x' };
	unsigned n, bytes;

	start(NULL);
	expect_hello();
	port_out(MODEM, MCR_RTS); /* the guest takes input */
	n = save(items, ARRAY_LEN(items));
	stop();

	start_with("--restore", NULL);
	expect_hello();
	send_bytes(MSG_CONSOLE, &typed, sizeof typed.head + 2);
	send_bytes(MSG_EXEC, &run, sizeof run.head + 1);
	for (unsigned i = 0; i < n; i++) {
		send_bytes(MSG_SNAPSHOT_ITEM, items[i].bytes, items[i].header.bytes);
		receive_type(&items[i], MSG_SNAPSHOT); /* it is taken */
	}
	CU_ASSERT(port_in(LINE) & LSR_RX);
	CU_ASSERT(port_in(VMP_UART_PORT) == 'h');
	CU_ASSERT(port_in(VMP_UART_PORT) == 'i');
	bytes = port_in(VMP_AGENT_PORT + VMP_STREAM_STATUS);
	/* AGENT_RESET, then what shall run */
	CU_ASSERT_EQUAL(bytes, 2 * sizeof(struct agent_frame) + 1);
	stop();
}

/* ---- confinement (iosrv/iosrv_confine.c): the server is made to call what it does not need
 * ---- */

/* such a build is not confined: base/confine.h */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/* Stops the server where it waits for messages, which it does sooner or later. */
static void stop_in_epoll_wait(struct user_regs_struct *regs)
{
	int status;

	for (;;) {
		CU_ASSERT_FATAL(!ptrace(PTRACE_ATTACH, server, NULL, NULL));
		CU_ASSERT_FATAL(waitpid(server, &status, 0) == server && WIFSTOPPED(status));
		CU_ASSERT_FATAL(!ptrace(PTRACE_GETREGS, server, NULL, regs));
		if ((regs->orig_rax == SYS_epoll_wait || regs->orig_rax == SYS_epoll_pwait) &&
		    (long)regs->rax == -EINTR)
			return;
		CU_ASSERT_FATAL(!ptrace(PTRACE_DETACH, server, NULL, NULL));
	}
}

/* Makes the server do a system call where it waits.  Returns the call's result; if the server was
 * killed, minus the signal times 10,000. */
static long make_server_call(long number, const unsigned long long arguments[4])
{
	struct user_regs_struct before, regs;
	int status;

	stop_in_epoll_wait(&before);
	regs = before;
	regs.rip -= 2; /* it stands behind the instruction SYSCALL */
	CU_ASSERT_FATAL((ptrace(PTRACE_PEEKTEXT, server, (void *)regs.rip, NULL) & 0xffff) ==
			0x050f);
	regs.orig_rax = ~0ull; /* nothing to be begun again */
	regs.rax = (unsigned long long)number;
	regs.rdi = arguments[0], regs.rsi = arguments[1], regs.rdx = arguments[2],
	regs.r10 = arguments[3];
	CU_ASSERT_FATAL(!ptrace(PTRACE_SETREGS, server, NULL, &regs));
	CU_ASSERT_FATAL(!ptrace(PTRACE_SINGLESTEP, server, NULL, NULL));
	CU_ASSERT_FATAL(waitpid(server, &status, 0) == server);
	if (WIFSIGNALED(status))
		return -10000l * WTERMSIG(status);
	CU_ASSERT_FATAL(!ptrace(PTRACE_GETREGS, server, NULL, &regs));
	before.orig_rax = ~0ull; /* interrupted: it waits again by itself */
	CU_ASSERT_FATAL(!ptrace(PTRACE_SETREGS, server, NULL, &before));
	CU_ASSERT_FATAL(!ptrace(PTRACE_DETACH, server, NULL, NULL));
	return (long)regs.rax;
}

static void test_forbidden_calls(void)
{
	static const struct { long number; unsigned long long arguments[4]; } rows[] = {
		{ SYS_open, { 0 } },
		{ SYS_openat, { 0 } },
		{ SYS_unlink, { 0 } },
		{ SYS_newfstatat, { 0 } },
		{ SYS_execve, { 0 } },
		{ SYS_clone, { 0 } },
		{ SYS_fork, { 0 } },
		{ SYS_socket, { AF_INET, SOCK_STREAM } },
		{ SYS_ioctl, { 0 } },
		{ SYS_ptrace, { PTRACE_TRACEME } },
		{ SYS_process_vm_readv, { 1 } },
		{ SYS_prctl, { 0 } },
		{ SYS_prlimit64, { 0 } },
		{ SYS_kill, { 1, 0 } },
		{ SYS_tgkill, { 1, 1, 0 } },
		{ SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS } },
		{ SYS_mprotect, { 0, 4096, PROT_EXEC } },
		{ SYS_getpid | 0x40000000 /* an x32 call */, { 0 } },
	};
	int status;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		start(NULL);
		expect_hello();
		CU_ASSERT(answers());
		CU_ASSERT_EQUAL(make_server_call(rows[i].number, rows[i].arguments),
				-10000l * SIGSYS);
		close(daemon_end);
		CU_ASSERT(waitpid(server, &status, WNOHANG) == -1); /* it is gone */
	}
}

/* Checks the test itself: calls that are allowed are made, and the server goes on. */
static void test_allowed_calls(void)
{
	start(NULL);
	expect_hello();
	CU_ASSERT(answers());
	CU_ASSERT_EQUAL(make_server_call(SYS_getpid, (unsigned long long[4]){ 0 }), server);
	CU_ASSERT(answers());
	CU_ASSERT(make_server_call(SYS_mmap,
				   (unsigned long long[4]){ 0, 4096, PROT_READ,
							    MAP_PRIVATE | MAP_ANONYMOUS }) > 0);
	CU_ASSERT(answers());
	stop();
}

/* Each thread has no new privileges and a filter; a crash leaves no dump. */
static void test_all_threads_are_confined(void)
{
	char path[64], line[256], image[64];
	int fd = make_image(image);
	unsigned threads = 0, confined = 0, no_dump = 0;
	struct dirent *entry;
	FILE *file;
	DIR *tasks;

	start(image);
	expect_hello();
	CU_ASSERT(answers());
	snprintf(path, sizeof path, "/proc/%d/task", server);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		snprintf(path, sizeof path, "/proc/%d/task/%.20s/status", server, entry->d_name);
		file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
		threads += file != NULL;
		while (file && fgets(line, sizeof line, file))
			confined += !strcmp(line, "NoNewPrivs:\t1\n") ||
				    !strcmp(line, "Seccomp:\t2\n");
		if (file)
			fclose(file);
	}
	closedir(tasks);
	CU_ASSERT(threads == 2 && confined == 2 * threads);
	snprintf(path, sizeof path, "/proc/%d/limits", server);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof line, file))
		no_dump += sscanf(line, "Max core file size %*1[01] %*1[01] bytes") == 0 &&
			   strstr(line, "core file") && !strstr(line, "unlimited");
	if (file)
		fclose(file);
	CU_ASSERT(no_dump == 1);
	stop();
	remove_image(image, fd);
}
#endif

static void test_missing_image(void)
{
	struct msg_machine_end end;
	struct packet p;

	start("/nonesuch/image");
	expect_hello();
	CU_ASSERT_FATAL(receive(&p, WAIT_MS) && p.header.type == MSG_MACHINE_END);
	memcpy(&end, p.bytes, sizeof end);
	CU_ASSERT(end.reason == END_FAILURE && end.status == EXIT_VMP_FAILURE);
	CU_ASSERT(memmem(p.bytes + sizeof end, p.header.bytes - sizeof end, "/nonesuch/image",
			 15) != NULL);
	stop();
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "requests", test_requests },
		{ "bad requests", test_bad_requests },
		{ "bad messages", test_bad_messages },
		{ "flush", test_flush },
		{ "it stands still", test_stands_still },
		{ "it is loaded", test_loads },
		{ "missing image", test_missing_image },
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		{ "forbidden calls", test_forbidden_calls },
		{ "allowed calls", test_allowed_calls },
		{ "all threads are confined", test_all_threads_are_confined },
#endif
		UNIT_END
	};
	char *slash;

	(void)argc;
	signal(SIGPIPE, SIG_IGN);
	/* build/tests/unit/iosrv_server -> build/vmp-iosrv */
	snprintf(program, sizeof program - 32, "%s", argv[0]);
	for (unsigned i = 0; i < 3 && (slash = strrchr(program, '/')); i++)
		*slash = '\0';
	strcat(program, "/vmp-iosrv");
	return UNIT_RUN("I/O server", tests);
}
