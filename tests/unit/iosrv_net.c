/* The network card, where the test replaces vmp-net; and vmp-net, where the test replaces the
 * card. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/guest_abi.h"
#include "base/netframe.h"
#include "iosrv/virtio.h"
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

enum { SLOT = VIRTIO_NET, NET_LINE = 15, RECEIVE = 0, TRANSMIT = 1, HEADER = 12, WAIT_MS = 60000 };

static uint32_t reg(uint32_t offset)
{
	return VMP_VIRTIO_GPA + SLOT * VIRTIO_SLOT_BYTES + offset;
}

static void start_card(int pair[2])
{
	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	net_attach(pair[0]);
	fake_reset();
	mmio_write(reg(VIRTIO_DRIVER_FEATURES_SEL), 1);
	mmio_write(reg(VIRTIO_DRIVER_FEATURES), 1);
	mmio_write(reg(VIRTIO_STATUS), 11);
	for (unsigned q = 0; q < 2; q++) {
		mmio_write(reg(VIRTIO_QUEUE_SEL), q);
		mmio_write(reg(VIRTIO_QUEUE_NUM), 16);
		mmio_write(reg(VIRTIO_QUEUE_READY), 1);
	}
	mmio_write(reg(VIRTIO_STATUS), 15);
}

static void request(unsigned head, const void *bytes, uint32_t n)
{
	struct msg_virtio ask = {
		.op = VIRTIO_REQUEST, .slot = SLOT, .queue = TRANSMIT, .head = head, .out_bytes = n
	};

	virtio_on_ask(&ask, bytes, n);
}

/* Returns the op of the last message of its kind; -1 if there is none. */
static int told(struct msg_virtio *body, const struct fake_message **m)
{
	*m = fake_take(MSG_VIRTIO_TELL);
	if (!*m)
		return -1;
	memcpy(body, (*m)->body, sizeof *body);
	return (int)body->op;
}

/* Returns the last grant; without one, one that lets the monitor do everything. */
static struct msg_virtio_grant granted(void)
{
	const struct fake_message *m = fake_take(MSG_VIRTIO_GRANT);
	struct msg_virtio_grant grant = { .direct = ~0u };

	if (m)
		memcpy(&grant, m->body, sizeof grant);
	return grant;
}

/* A CPU that sends frames itself also sends their interrupts, as long as no other CPU has the other
 * queue; then its lease is recalled, and the next grant has no route. */
static void test_two_cpus(void)
{
	const struct msg_virtio release = { .op = VIRTIO_RELEASE, .slot = SLOT, .queue = TRANSMIT };
	const struct fake_message *m;
	struct msg_virtio_grant grant;
	struct msg_virtio body;
	int pair[2];

	start_card(pair);
	mmio_write(VMP_IOAPIC_GPA, 0x10 + 2 * NET_LINE);
	mmio_write(VMP_IOAPIC_GPA + 0x10, 0x51);
	mmio_write(reg(VIRTIO_QUEUE_NOTIFY), TRANSMIT);
	grant = granted();
	CU_ASSERT(grant.cpu == 0 && grant.direct == VIRTIO_DIRECT_SEND);
	CU_ASSERT(grant.irq_cpu_mask == 1 && grant.irq_vector == 0x51);
	fake.cpu = 1;
	mmio_write(reg(VIRTIO_QUEUE_NOTIFY), RECEIVE);
	CU_ASSERT(told(&body, &m) == VIRTIO_RECALL && body.cpu == 0 && body.queue == TRANSMIT);
	grant = granted();
	CU_ASSERT(grant.cpu == 1 && grant.queue == RECEIVE && !grant.direct);
	virtio_on_ask(&release, NULL, 0);
	grant = granted();
	CU_ASSERT(grant.cpu == 0 && grant.direct == VIRTIO_DIRECT_SEND && !grant.irq_cpu_mask);
	fake.cpu = 0;
	close(pair[0]);
	close(pair[1]);
	net_attach(-1);
}

/* A socket that a monitor sends to by itself is the card's. */
static void test_shared(void)
{
	char come[8];
	int pair[2], shared;

	start_card(pair);
	mmio_write(reg(VIRTIO_QUEUE_NOTIFY), RECEIVE);
	CU_ASSERT_EQUAL(granted().direct, 0);
	shared = net_share();
	CU_ASSERT_EQUAL(fcntl(shared, F_GETFD), FD_CLOEXEC);
	CU_ASSERT_EQUAL(send(shared, "frame", 5, 0), 5);
	CU_ASSERT(recv(pair[1], come, sizeof come, 0) == 5 && !memcmp(come, "frame", 5));
	close(shared);
	close(pair[0]);
	close(pair[1]);
	net_attach(-1);
	CU_ASSERT_EQUAL(net_share(), -1);
}

static void test_card(void)
{
	uint8_t bytes[HEADER + 60] = { 0 }, come[NET_FRAME_BYTES];
	const struct fake_message *m;
	struct msg_virtio body;
	unsigned sent = 0, pushed = 0;
	int pair[2];

	start_card(pair);
	CU_ASSERT((mmio_read(reg(VIRTIO_CONFIG)) & 0xffff) == ('v' << 8 | 2));
	mmio_write(reg(VIRTIO_QUEUE_NOTIFY), TRANSMIT);
	CU_ASSERT_EQUAL(granted().direct, VIRTIO_DIRECT_SEND);
	memcpy(bytes + HEADER, "a frame", 7);
	request(3, bytes, sizeof bytes);
	CU_ASSERT(told(&body, &m) == VIRTIO_DONE && body.head == 3 && body.in_bytes == 1);
	CU_ASSERT(recv(pair[1], come, sizeof come, MSG_DONTWAIT) == 60 &&
		  !memcmp(come, "a frame", 7));
	request(4, bytes, HEADER); /* no frame */
	CU_ASSERT(told(&body, &m) == VIRTIO_DONE &&
		  recv(pair[1], come, sizeof come, MSG_DONTWAIT) < 0);
	/* While no process takes frames, they wait with their requests, and are not lost. */
	while (fake.n_messages < FAKE_MESSAGES - 4 && sent < 10000) {
		request(5, bytes, sizeof bytes);
		sent++;
		if (told(&body, &m) != VIRTIO_DONE)
			break;
		fake.n_messages = 0;
	}
	CU_ASSERT(sent > 1 && sent < 10000);
	for (unsigned i = 0; i < sent - 1; i++)
		CU_ASSERT(recv(pair[1], come, sizeof come, MSG_DONTWAIT) == 60);
	net_on_ready();
	CU_ASSERT(told(&body, &m) == VIRTIO_DONE &&
		  recv(pair[1], come, sizeof come, MSG_DONTWAIT) == 60);
	/* Towards the guest: as many frames as may be in flight; the others wait in the socket. */
	fake.n_messages = 0;
	for (unsigned i = 0; i < VIRTIO_PUSHES + 2; i++)
		CU_ASSERT(send(pair[1], "0123456789", 10, MSG_DONTWAIT) == 10);
	net_on_ready();
	CU_ASSERT_EQUAL(told(&body, &m), -1); /* no queue yet */
	mmio_write(reg(VIRTIO_QUEUE_NOTIFY), RECEIVE);
	net_on_ready();
	while (told(&body, &m) == VIRTIO_PUSH) {
		CU_ASSERT(m->payload_bytes == HEADER + 10 && m->payload[10] == 1 &&
			  !memcmp(m->payload + HEADER, "0123456789", 10));
		pushed++;
	}
	CU_ASSERT_EQUAL(pushed, VIRTIO_PUSHES);
	virtio_on_ask(
		&(struct msg_virtio){
			.op = VIRTIO_PUSHED, .slot = SLOT, .queue = RECEIVE, .in_bytes = 2 },
		NULL, 0);
	net_on_ready();
	CU_ASSERT(told(&body, &m) == VIRTIO_PUSH && told(&body, &m) == VIRTIO_PUSH &&
		  told(&body, &m) == -1);
	/* The other end is gone: the machine ends. */
	close(pair[1]);
	fake.may_fail = true;
	net_on_ready();
	CU_ASSERT_EQUAL(fake.failures, 1);
	close(pair[0]);
	virtio_add(SLOT, NULL);
}

/* A frame that comes while the queue's CPU stands still waits, and goes to the guest once. */
static void test_card_stands_still(void)
{
	struct msg_virtio body;
	const struct fake_message *m;
	int pair[2];

	start_card(pair);
	mmio_write(reg(VIRTIO_QUEUE_NOTIFY), RECEIVE);
	CU_ASSERT_PTR_NOT_NULL(fake_take(MSG_VIRTIO_GRANT));
	virtio_on_ask(&(struct msg_virtio){ .op = VIRTIO_LEAVE }, NULL, 0);
	CU_ASSERT_EQUAL(told(&body, &m), VIRTIO_LEFT);
	virtio_on_ask(&(struct msg_virtio){ .op = VIRTIO_RELEASE,
					    .slot = SLOT,
					    .queue = RECEIVE,
					    .head = 5,
					    .offset = 5 },
		      NULL, 0);
	CU_ASSERT_PTR_NULL(fake_take(MSG_VIRTIO_GRANT)); /* the farewell was before it */
	virtio_on_ask(&(struct msg_virtio){ .op = VIRTIO_LEAVE }, NULL, 0);
	CU_ASSERT_EQUAL(told(&body, &m), VIRTIO_LEFT);
	CU_ASSERT(send(pair[1], "0123456789", 10, MSG_DONTWAIT) == 10);
	net_on_ready();
	CU_ASSERT_EQUAL(told(&body, &m), -1);
	virtio_on_ask(&(struct msg_virtio){ .op = VIRTIO_BACK }, NULL, 0);
	CU_ASSERT_PTR_NOT_NULL(fake_take(MSG_VIRTIO_GRANT));
	net_on_ready();
	CU_ASSERT_EQUAL(told(&body, &m), VIRTIO_PUSH);
	CU_ASSERT_EQUAL(told(&body, &m), -1);
	close(pair[0]);
	close(pair[1]);
	virtio_add(SLOT, NULL);
}

/* ---- vmp-net ---- */

static char program[4096];
static pid_t pid;
static int card;

static void start_net(const char *spec)
{
	char number[16];
	int pair[2];

	CU_ASSERT_FATAL(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	pid = fork();
	if (!pid) {
		close(pair[0]);
		snprintf(number, sizeof number, "%d", pair[1]);
		execl(program, "vmp-net", "--socket", number, "--net", spec, NULL);
		_exit(127);
	}
	close(pair[1]);
	card = pair[0];
}

/* Returns the next packet; -1 if the other end is gone, or nothing arrives. */
static ssize_t hear(void *to, size_t bytes)
{
	struct pollfd p = { .fd = card, .events = POLLIN };
	ssize_t n = poll(&p, 1, WAIT_MS) == 1 ? recv(card, to, bytes, 0) : -1;

	return n > 0 ? n : -1;
}

static void stop_net(void)
{
	close(card);
	waitpid(pid, NULL, 0);
}

/* Who has 10.0.2.2? */
static void ask_for_gateway(void)
{
	static const uint8_t arp[42] = { 255, 255, 255, 255, 255, 255, 2,  'v', 'm', 'p', 0,
					 1,   8,   6,	0,   1,	  8,   0,  6,	4,   0,	  1,
					 2,   'v', 'm', 'p', 0,	  1,   10, 0,	2,   15,  0,
					 0,   0,   0,	0,   0,	  10,  0,  2,	2 };

	CU_ASSERT_EQUAL(send(card, arp, sizeof arp, 0), sizeof arp);
}

/* other frames may arrive too */
static bool is_answered(void)
{
	uint8_t frame[NET_FRAME_BYTES];
	ssize_t n;

	while ((n = hear(frame, sizeof frame)) > 0)
		if (n >= 42 && frame[12] == 8 && frame[13] == 6 && frame[21] == 2 &&
		    !memcmp(frame + 28, "\12\0\2\2", 4))
			return true;
	return false;
}

/* As on any network, a frame may be lost: while it is not read, there is room for few. */
static bool gateway_answers(void)
{
	for (unsigned tries = 0; tries < 20; tries++) {
		ask_for_gateway();
		if (is_answered())
			return true;
	}
	return false;
}

static void test_net(void)
{
	uint8_t first[NET_FRAME_BYTES], noise[NET_FRAME_BYTES];
	char path[64], line[256];
	unsigned confined = 0;
	FILE *file;

	start_net("user,forward=127.0.0.1:0x:1");
	CU_ASSERT_EQUAL(hear(first, sizeof first), -1); /* the parser's refusal is in the log */
	stop_net();
	start_net("user");
	CU_ASSERT(hear(first, sizeof first) == 1 && !first[0]);
	CU_ASSERT_TRUE(gateway_answers());
	srand(1);
	for (unsigned i = 0; i < 2000; i++) { /* what no guest's driver would send */
		size_t n = 1 + (size_t)rand() % (i % 10 ? 100 : sizeof noise - 1);

		for (size_t at = 0; at < n; at++)
			noise[at] = (uint8_t)rand();
		if (n > 14) {
			noise[12] = i & 1 ? 8 : 0x86;
			noise[13] = i & 1 ? (i & 2 ? 6 : 0) : 0xdd;
			noise[14] = i & 1 ? 0x45 : 0x60;
		}
		CU_ASSERT_EQUAL(send(card, noise, n, 0), (ssize_t)n);
	}
	CU_ASSERT_TRUE(gateway_answers());
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof line, file))
		confined += !strcmp(line, "NoNewPrivs:\t1\n") || !strcmp(line, "Seccomp:\t2\n");
/* such a build is not confined: base/confine.h */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	CU_ASSERT_EQUAL(confined, 2);
#endif
	if (file)
		fclose(file);
	stop_net();
}

static void test_port_in_use(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t bytes = sizeof at;
	int taken = socket(AF_INET, SOCK_STREAM, 0);
	char spec[64], line[400] = "";

	CU_ASSERT(!bind(taken, (struct sockaddr *)&at, sizeof at) && !listen(taken, 1) &&
		  !getsockname(taken, (struct sockaddr *)&at, &bytes));
	snprintf(spec, sizeof spec, "user,forward=127.0.0.1:%u:22", ntohs(at.sin_port));
	start_net(spec);
	CU_ASSERT(hear(line, sizeof line - 1) > 1 &&
		  strstr(line, "Address already in use; take another port"));
	stop_net();
	close(taken);
}

/* This guest says its address only when it is asked, and sends nothing else.  Returns whether an
 * IPv4 packet of `protocol` comes. */
static bool comes_when_asked(uint8_t protocol)
{
	static const uint8_t answer[42] = { 0x52, 0x55, 10, 0, 2, 2, 2,	 'v', 'm', 'p', 0,
					    1,	  8,	6,  0, 1, 8, 0,	 6,   4,   0,	2,
					    2,	  'v',	'm', 'p', 0, 1,	 10,  0,   2,	15,
					    0x52, 0x55, 10, 0, 2, 2, 10, 0,   2,   2 };
	static const uint8_t who[6] = { 0, 1, 10, 0, 2, 15 };
	uint8_t frame[NET_FRAME_BYTES];
	ssize_t n;

	while ((n = hear(frame, sizeof frame)) > 0) {
		if (n >= 42 && frame[12] == 8 && frame[13] == 6 &&
		    !memcmp(frame + 20, who, 2) && !memcmp(frame + 38, who + 2, 4))
			CU_ASSERT_EQUAL(send(card, answer, sizeof answer, 0), sizeof answer);
		if (n >= 34 && frame[12] == 8 && frame[13] == 0 && frame[23] == protocol)
			return true;
	}
	return false;
}

/* What comes first waits in libslirp until the guest has said its address, and no longer. */
static void test_first(int type, uint8_t protocol)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t bytes = sizeof at;
	int taken = socket(AF_INET, type, 0), from = socket(AF_INET, type | SOCK_NONBLOCK, 0);
	char spec[64], first[NET_FRAME_BYTES];

	CU_ASSERT(!bind(taken, (struct sockaddr *)&at, sizeof at) &&
		  !getsockname(taken, (struct sockaddr *)&at, &bytes));
	close(taken);
	snprintf(spec, sizeof spec, "user,forward=%s127.0.0.1:%u:22",
		 type == SOCK_DGRAM ? "udp:" : "", ntohs(at.sin_port));
	start_net(spec);
	CU_ASSERT(hear(first, sizeof first) == 1);
	connect(from, (struct sockaddr *)&at, sizeof at);
	if (type == SOCK_DGRAM)
		CU_ASSERT_EQUAL(send(from, "first", 5, 0), 5);
	CU_ASSERT_TRUE(comes_when_asked(protocol));
	close(from);
	stop_net();
}

static void test_first_datagram(void)
{
	test_first(SOCK_DGRAM, IPPROTO_UDP);
}

static void test_first_connection(void)
{
	test_first(SOCK_STREAM, IPPROTO_TCP);
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "the card", test_card },
		{ "the card's socket, for monitors", test_shared },
		{ "two CPUs", test_two_cpus },
		{ "the card of a machine that stands still", test_card_stands_still },
		{ "vmp-net", test_net },
		{ "a port that is in use", test_port_in_use },
		{ "the first datagram", test_first_datagram },
		{ "the first connection", test_first_connection },
		UNIT_END
	};
	char *slash;

	(void)argc;
	/* build/tests/unit/iosrv_net -> build/vmp-net */
	snprintf(program, sizeof program - 16, "%s", argv[0]);
	for (unsigned i = 0; i < 3 && (slash = strrchr(program, '/')); i++)
		*slash = 0;
	strcat(program, "/vmp-net");
	signal(SIGPIPE, SIG_IGN);
	return UNIT_RUN("network", tests);
}
