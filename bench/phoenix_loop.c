/* phoenix_loop.c - measures what can carry the messages of node daemons, in the daemons' own kind
 * of loop: half round trips between two processes that hold a bare connection
 * (vmm/node/wire/conn.c: AF_UNIX, one message a packet) and Phoenix links at the same time.
 *
 * A request of 40 bytes is answered with 40 bytes, or with 40 bytes and a page, as in the page
 * protocol.  Blocks of the ways take turns, so that other work on the machine affects all alike;
 * the figures are medians of the blocks.
 *
 * Usage: phoenix_loop [BLOCKS [same]]; same: both processes run on one processor.
 */
#include <event2/event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/wire.h"
#include "bench/clocks.h"
#include "bench/free_ports.h"
#include "bench/median.h"
#include "phnx/phnx.h"
#include "vmm/node/wire/conn.h"
#include "vmm/shared/loop.h"

enum { ROUNDS = 200, MAX_BLOCKS = 1000, TAG = MSG_DSM_GRANT_READ };
enum way { BARE, OVERLAY_UNIX, OVERLAY_TCP, WAYS };
static const char *const names[WAYS] = { "bare AF_UNIX", "Phoenix, AF_UNIX", "Phoenix, TCP" };

static struct event_base *base;
static struct conn *bare;
static bool child, overlay;
static unsigned left;		/* answers that have not arrived */
static bool with_page;
static uint8_t page[PAGE_BYTES];

/* Sends a request; its gfn says whether the answer is to bring a page. */
static void send_one(bool page_too)
{
	struct msg_dsm body = { .gfn = with_page };
	uint32_t bytes = page_too ? sizeof page : 0;
	struct msg_header header = packet_header(page_too ? MSG_DSM_GRANT_READ : MSG_DSM_READ,
						 !child, child, sizeof body + bytes);
	struct iovec parts[] = { { &header, sizeof header },
				 { &body, sizeof body },
				 { page, bytes } };

	if (overlay ? ph_sendv(!child, parts, 3, header.type)
		    : conn_send(bare, &header, &body, sizeof body, page, bytes))
		_exit(1);
}

static void take(const struct msg_dsm *body)
{
	if (child)
		send_one(body->gfn);
	else if (--left == 0)
		event_base_loopbreak(base);
	else
		send_one(false);
}

static void on_bare(struct conn *conn, const struct message *message)
{
	struct msg_dsm m;

	(void)conn;
	overlay = false;
	memcpy(&m, message->body, sizeof m);
	take(&m);
}

static void on_closed(struct conn *conn, int reason)
{
	(void)conn, (void)reason;
	_exit(0);
}

static void on_overlay(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	struct msg_dsm m;

	(void)arg, (void)source;
	overlay = true;
	memcpy(&m, (const char *)msg->body + sizeof(struct msg_header), sizeof m);
	take(&m);
}

static double block(bool over, bool page_too, double *cpu)
{
	double start = now_us(), before = cpu_us();

	overlay = over;
	with_page = page_too;
	left = ROUNDS;
	send_one(false);
	event_base_dispatch(base);
	*cpu = (cpu_us() - before) / ROUNDS;
	return (now_us() - start) / ROUNDS;
}

static int port; /* of the first node */

static void start(int fd, enum way way, const char *dir, bool same)
{
	static const struct conn_handler handler = { LINK_NODE_TO_NODE, on_bare, on_closed, NULL };
	char path[128];
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(same ? 0 : child, &one);
	sched_setaffinity(0, sizeof one, &one);
	struct event_config *config = event_config_new();
	event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	base = event_base_new_with_config(config);
	event_config_free(config);
	struct loop loop = loop_on_event_base(base);
	bare = conn_new(&loop, fd, "the other", &handler, NULL, 0);
	if (way == BARE)
		return;
	snprintf(path, sizeof path, "%s/secret", dir);
	if (ph_init_in_loop(0, 2, "bench", path, base))
		_exit(1);
	snprintf(path, sizeof path, "%s/0.sock", dir);
	if (way == OVERLAY_TCP && !child)
		ph_set_listen_port(port, port + 1);
	else if (way == OVERLAY_TCP)
		ph_add_port_tcp("127.0.0.1", port);
	else if (!child && ph_listen_unix(path))
		_exit(1);
	else if (child)
		ph_add_port_unix(path);
	ph_assume_vp(child);
	ph_set_handler(MSG_DSM_READ, on_overlay, NULL);
	ph_set_handler(MSG_DSM_GRANT_READ, on_overlay, NULL);
}

static void compare(enum way way, const char *dir, bool same, int blocks)
{
	static double us[2][2][MAX_BLOCKS], cpu[2][2][MAX_BLOCKS];
	char path[128];
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd))
		exit(1);
	fflush(stdout);
	port = free_ports(1);
	pid_t pid = fork();
	child = pid == 0;
	close(fd[!child]);
	start(fd[child], way, dir, same);
	if (child) {
		event_base_dispatch(base);
		_exit(0);
	}
	for (int i = -1; i < blocks; i++)
		for (int over = 0; over < 2; over++)
			for (int page_too = 0; page_too < 2; page_too++) {
				int at = i < 0 ? 0 : i;
				us[over][page_too][at] =
					block(over, page_too, &cpu[over][page_too][at]);
			}
	for (int page_too = 0; page_too < 2; page_too++)
		printf("%-18s %5s  %7.2f us %7.2f us  cpu %6.2f %6.2f\n", names[way],
		       page_too ? "page" : "short", median(us[0][page_too], blocks),
		       median(us[1][page_too], blocks), median(cpu[0][page_too], blocks),
		       median(cpu[1][page_too], blocks));
	ph_finalize(NULL, 1);
	conn_close(bare);
	snprintf(path, sizeof path, "%s/0.sock", dir);
	unlink(path);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/phoenix-loop-XXXXXX", path[64];
	int blocks = argc > 1 ? atoi(argv[1]) : 51;
	bool same = argc > 2;

	if (blocks < 1 || blocks > MAX_BLOCKS || !mkdtemp(dir))
		return 2;
	snprintf(path, sizeof path, "%s/secret", dir);
	FILE *f = fopen(path, "w");
	if (!f || fputs("for the bench", f) < 0 || fclose(f) || chmod(path, 0600))
		return 1;
	printf("round trips, %s; medians of %d blocks: bare, Phoenix\n",
	       same ? "one processor" : "two processors", blocks);
	compare(OVERLAY_UNIX, dir, same, blocks);
	compare(OVERLAY_TCP, dir, same, blocks);
	unlink(path);
	rmdir(dir);
	return 0;
}
