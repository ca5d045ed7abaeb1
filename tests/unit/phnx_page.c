/* phnx_page.c - the path of a page between two processes: what ph_send_page() is given goes to
 * the socket from where it lies, a handler sees it where it arrived, and nothing is allocated
 * for a message on either side; the same of ph_sendv(), which copies once.  Linked with --wrap,
 * so that the library's calls of the allocator and of the sockets come here. */
#include <event2/event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "phnx/phnx.h"
#include "tests/unit/free_port.h"
#include "tests/unit/unit.h"

enum {
	PAGE = 12288, /* what is smaller is read several at once, and copied (link/inbox.c) */
	WARM_UP = 500,
	PAGES = 20000,
	AHEAD = 16,
	HEAD = 40,
	PATIENCE = 60000000,
	TAG = 5,
	TAG_NEXT = 6,
	TAG_END = 7,
	BY_THE_CLOCK = 1000
};

/* What a process has counted since the warm-up. */
static struct {
	unsigned sent_in_place, came_in_place, came, wrong, released;
	atomic_uint allocations;
} seen;
static unsigned char page[PAGE];
static const unsigned char *landed, *landed_end;	/* the bytes of the last recv() */

/* ---- wrappers around the library's calls ---- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __real_recv(int fd, void *buf, size_t n, int flags);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t n, int flags);

void *__wrap_malloc(size_t n)
{
	seen.allocations++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	seen.allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	seen.allocations++;
	return __real_realloc(p, n);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		seen.sent_in_place += msg->msg_iov[i].iov_base == page;
	return __real_sendmsg(fd, msg, flags);
}

ssize_t __wrap_recv(int fd, void *buf, size_t n, int flags)
{
	ssize_t got = __real_recv(fd, buf, n, flags);

	landed = buf;
	landed_end = landed + (got > 0 ? got : 0);
	return got;
}

/* ---- the two processes; one fails by returning a line number ---- */

#define CHECK(x) do { if (!(x)) return __LINE__; } while (0)
static int port;

/* Checks that the last byte of the message is where recv() put it. */
static void on_page(void *arg, const struct ph_msg *m, ph_vp_t source)
{
	const unsigned char *end = (const unsigned char *)m->body + m->len;

	(void)arg;
	if (++seen.came == WARM_UP) {
		seen.allocations = 0;
		seen.came_in_place = 0;
	}
	seen.came_in_place += end > landed && end <= landed_end;
	seen.wrong += m->len < PAGE || end[-1] != 0x77 || *(end - PAGE) != 0x11;
	if (seen.came % AHEAD == 0)
		ph_send(source, NULL, 0, TAG_NEXT);
}

static void on_released(void *arg)
{
	(void)arg;
	seen.released++;
}

static int send_one(bool copied)
{
	static char head[HEAD];
	struct iovec pieces[] = { { head, sizeof head }, { page, sizeof page } };

	if (!copied)
		return ph_send_page(1, page, sizeof page, TAG, on_released, NULL);
	return ph_sendv(1, pieces, 2, TAG);
}

/* Allows one allocation for each message by which the receiver asks for more, and those of pings
 * and gossip. */
static bool few(unsigned allocations)
{
#ifdef __SANITIZE_ADDRESS__
	return allocations;		/* with the sanitizer the library keeps no memory */
#else
	return allocations < PAGES / AHEAD + BY_THE_CLOCK;
#endif
}

static int sender(bool copied)
{
	page[0] = 0x11;
	page[PAGE - 1] = 0x77;
	ph_init_runtime(0, 2);
	ph_set_listen_port(port, port + 1);
	ph_assume_vp(0);
	ph_msg_t m = ph_timed_recv(TAG, PATIENCE);
	CHECK(m);
	ph_msg_destroy(m);
	for (unsigned i = 1; i <= WARM_UP + PAGES; i++) {
		CHECK(send_one(copied) == 0);
		if (i % AHEAD == 0) {
			CHECK((m = ph_timed_recv(TAG_NEXT, PATIENCE)));
			ph_msg_destroy(m);
		}
		if (i == WARM_UP)
			seen.allocations = seen.sent_in_place = 0;
	}
	ph_send(1, NULL, 0, TAG_END);
	CHECK((m = ph_timed_recv(TAG_END, PATIENCE)));
	ph_msg_destroy(m);
	unsigned allocations = seen.allocations;
	ph_finalize(NULL, 5);
	printf("\n    %s: %u allocations for %d pages sent", copied ? "ph_sendv" : "ph_send_page",
	       allocations, PAGES);
	CHECK(few(allocations));
	CHECK(copied || seen.sent_in_place >= PAGES);
	CHECK(copied || seen.released == WARM_UP + PAGES);
	return 0;
}

static int receiver(bool copied)
{
	(void)copied;
	ph_init_runtime(0, 2);
	ph_add_port_tcp("127.0.0.1", port);
	ph_assume_vp(1);
	ph_set_handler(TAG, on_page, NULL);
	ph_send(0, NULL, 0, TAG);
	ph_msg_t m = ph_timed_recv(TAG_END, PATIENCE);
	unsigned allocations = seen.allocations;
	CHECK(m);
	ph_msg_destroy(m);
	ph_send(0, NULL, 0, TAG_END);
	ph_finalize(NULL, 5);
	printf("\n    received: %u allocations, %u of %d where they arrived", allocations,
	       seen.came_in_place, PAGES);
	CHECK(seen.came == WARM_UP + PAGES && seen.wrong == 0);
	CHECK(few(allocations));
	CHECK(seen.came_in_place > PAGES / 10 * 9);
	return 0;
}

static pid_t start(int (*role)(bool), bool copied)
{
	fflush(stdout);
	pid_t pid = fork();

	if (pid == 0) {
		alarm(120);
		int line = role(copied);
		fflush(stdout);
		_exit(line % 256);
	}
	return pid;
}

static void run(bool copied)
{
	pid_t pids[2];

	for (port++; !port_is_free(port);)
		port++;
	pids[0] = start(sender, copied);
	pids[1] = start(receiver, copied);
	for (int i = 0; i < 2; i++) {
		int status;
		waitpid(pids[i], &status, 0);
		if (status)
			printf("\nrole %d: line %d (mod 256), signal %d\n", i, WEXITSTATUS(status),
			       WTERMSIG(status));
		CU_ASSERT_EQUAL(status, 0);
	}
}

static void test_in_place(void)
{
	run(false);
}

static void test_one_copy(void)
{
	run(true);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "a page goes and comes without a copy or an allocation", test_in_place },
		{ "a page in pieces takes no allocation either", test_one_copy },
		UNIT_END
	};
	char folder[] = "/tmp/phnx-page-XXXXXX", command[64];
	int status;

	if (!mkdtemp(folder))
		return 1;
	setenv("XDG_CONFIG_HOME", folder, 1);
	event_set_mem_functions(__wrap_malloc, __wrap_realloc, free);
	port = 20000 + (int)(getpid() % 6000) * 2;
	status = UNIT_RUN("phnx_page", tests);
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command) || status;
}
