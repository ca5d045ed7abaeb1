/* phoenix_latency.c - Phoenix against raw TCP on this machine: half round trips by message size,
 * and one-way bandwidth.
 *
 * Two processes hold a raw connection (TCP_NODELAY) and an overlay link at the same time.  Short
 * blocks of the two take turns; a ratio is the median of the ratios of neighbouring blocks, so that
 * other work on the machine affects both alike.  Raw TCP is measured in two ways: with a read()
 * that sleeps, as most programs use it, and with one that polls, which is as fast as the connection
 * can be.  Each process has a processor of its own ("apart"), or both share one ("together").
 *
 * Usage: phoenix_latency [BLOCKS [apart|together [TCP|TLS]]]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/clocks.h"
#include "bench/free_ports.h"
#include "bench/median.h"
#include "phnx/phnx.h"

enum { ROUNDS = 50, BULK = 65536, BULK_COUNT = 200, MAX_BLOCKS = 1000 };
static const size_t sizes[] = { 1, 64, 1024, 4096, 16384, 65536 };
enum { N = sizeof sizes / sizeof *sizes };
static char buf[BULK];
static int sock, blocks = 51;
static bool child, tls, together;

/* the result of one block */
struct sample {
	double us, cpu_us;
};

/* ---- the two ways ---- */

static void raw_receive(size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = read(sock, buf, n - at);
		if (got <= 0)
			_exit(1);
		at += (size_t)got;
	}
}

static void awake_receive(size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = recv(sock, buf, n - at, MSG_DONTWAIT);
		if (got == 0 || (got < 0 && errno != EAGAIN))
			_exit(1);
		at += got > 0 ? (size_t)got : 0;
	}
}

static void raw_send(size_t n)
{
	if (write(sock, buf, n) != (ssize_t)n)
		_exit(1);
}

static void overlay_receive(size_t n)
{
	ph_msg_t m = ph_recv(1);

	if (!m || m->len != n)
		_exit(1);
	ph_msg_destroy(m);
}

static void overlay_send(size_t n)
{
	ph_send(!child, buf, n, 1);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void page_send(size_t n)
{
	while (ph_send_page(!child, buf, n, 1, nothing, NULL) == PH_EAGAIN)
		usleep(10);
}

struct way {
	void (*send)(size_t n), (*receive)(size_t n);
};
static const struct way raw = { raw_send, raw_receive }, awake = { raw_send, awake_receive },
			overlay = { overlay_send, overlay_receive },
			page = { page_send, overlay_receive };

/* ---- blocks ---- */

static struct sample ping_pong(const struct way *way, size_t size)
{
	double start = now_us(), cpu = cpu_us();

	for (int i = 0; i < ROUNDS; i++) {
		if (!child)
			way->send(size);
		way->receive(size);
		if (child)
			way->send(size);
	}
	return (struct sample){ (now_us() - start) / ROUNDS / 2, (cpu_us() - cpu) / ROUNDS / 2 };
}

/* Sends from the parent to the child; measures microseconds per message. */
static struct sample bulk(const struct way *way, size_t size)
{
	double start = now_us(), cpu = cpu_us();

	for (int i = 0; i < BULK_COUNT; i++)
		child ? way->receive(size) : way->send(size);
	child ? way->send(1) : way->receive(1);
	return (struct sample){ (now_us() - start) / BULK_COUNT, (cpu_us() - cpu) / BULK_COUNT };
}

/* Prints a row of the table: `other` compared with raw TCP that sleeps, and raw TCP that polls. */
static void compare(const char *label, struct sample (*block)(const struct way *, size_t),
		    const struct way *other, size_t size)
{
	enum { WAYS = 3 };
	static double us[WAYS][MAX_BLOCKS], cpu[WAYS][MAX_BLOCKS], ratio[WAYS][MAX_BLOCKS];
	const struct way *ways[WAYS] = { other, &raw, &awake };
	/* a reader that polls on a shared processor only delays the other side's answer */
	int n = together ? WAYS - 1 : WAYS;

	for (int i = -1; i < blocks; i++)
		for (int w = 0; w < n; w++) {
			struct sample a = block(ways[w], size);
			if (i < 0)
				continue;	/* warm-up */
			us[w][i] = a.us;
			cpu[w][i] = a.cpu_us;
			ratio[w][i] = us[0][i] / a.us;
		}
	if (child)
		return;
	printf("%-8s %-4s %-9s %7zu", together ? "together" : "apart", tls ? "TLS" : "TCP", label,
	       size);
	for (int w = 0; w < n; w++)
		printf(" %8.2f %6.2f", median(us[w], blocks), median(cpu[w], blocks));
	for (int w = 1; w < n; w++)
		printf(" %6.2f", median(ratio[w], blocks));
	printf("\n");
	fflush(stdout);
}

/* ---- set-up ---- */

static int first_port; /* the bare socket's; the nodes have the two that follow */

static void connect_raw(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)first_port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int on = 1;

	sock = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (child) {
		while (connect(sock, (struct sockaddr *)&in, sizeof in)) {
			close(sock);
			usleep(10000);
			sock = socket(AF_INET, SOCK_STREAM, 0);
		}
	} else {
		if (bind(sock, (struct sockaddr *)&in, sizeof in) || listen(sock, 1))
			_exit(1);
		int s = accept(sock, NULL, NULL);
		close(sock);
		sock = s;
	}
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static cpu_set_t all;

static void pin(void)
{
	cpu_set_t one;
	int skip = child && !together;

	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && (skip-- == 0 || CPU_COUNT(&all) == 1)) {
			CPU_ZERO(&one);
			CPU_SET(i, &one);
			sched_setaffinity(0, sizeof one, &one);
			return;
		}
}

static void run(void)
{
	pin();
	connect_raw();
	/* like a random secret, but without the time that making a key takes */
	setenv("PHNX_SECRET",
	       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 1);
	ph_init_runtime(0, 2);
	ph_set_session_id("bench");
	ph_set_listen_port(first_port + 1 + child, first_port + 2 + child);
	if (child && tls)
		ph_add_port_ssl("127.0.0.1", first_port + 1);
	else if (child)
		ph_add_port_tcp("127.0.0.1", first_port + 1);
	ph_assume_vp(child);
	for (int k = 0; k < N; k++)
		compare("latency", ping_pong, &overlay, sizes[k]);
	compare("bulk", bulk, &overlay, BULK);
	compare("bulk-page", bulk, &page, BULK);
	ph_finalize(NULL, 5);
	close(sock);
}

int main(int argc, char **argv)
{
	const char *place = argc > 2 ? argv[2] : NULL, *over = argc > 3 ? argv[3] : NULL;

	if (argc > 1)
		blocks = atoi(argv[1]);
	if (blocks < 1 || blocks > MAX_BLOCKS)
		return 2;
	sched_getaffinity(0, sizeof all, &all);
	printf("medians of %d blocks; us and, behind each, us of processor time\n"
	       "%-8s %-4s %-9s %7s %15s %15s %15s %6s %6s\n",
	       blocks, "", "", "", "bytes", "phnx", "raw, sleeps", "raw, polls", "/raw", "/polls");
	for (int run_no = 0; run_no < 4; run_no++) {
		together = run_no / 2;
		tls = run_no % 2;
		if ((place && strcmp(place, together ? "together" : "apart")) ||
		    (over && strcmp(over, tls ? "TLS" : "TCP")))
			continue;
		fflush(stdout);
		first_port = free_ports(3);
		pid_t pid = fork();
		child = pid == 0;
		run();
		if (child)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	return 0;
}
