/* pagestore.c - how this host gives pages to its CPUs and takes them away: the hands of the page protocol (dsm/).
 *
 * Taking needs nobody's cooperation, and stops no CPU.  Page rights stand in the shared memory, pins exclude monitors
 * (base/hostshm.h); VM processes have mapped the page, and may be writing to it at this moment.  So, to take a page that
 * may be written here:
 *     lower the right; drain the pins
 *     vmsplice() the page into a pipe       - the pipe holds the page itself, not a copy
 *     punch the page's hole in the memfd    - it leaves every mapping of every process at once: the last write is over
 *     read() the pipe                       - the final contents
 * about 5 us; no write can fall between copy and removal.  A write right that becomes a read right goes the same way, and
 * the contents are written back; VM processes then find the page by a minor fault, which their monitor answers with a
 * write-protected mapping.  A page that could only be read is copied first and punched after.
 *
 * A page that has just come is not taken before the CPU that asked for it has run with it.  Between two writers it stays a
 * short time longer, so that both get something done.
 */
#include "vmm/node.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/log.h"
#include "dsm/dsm.h"
#include "vmm/conn.h"

enum {
	RECENT = 1024,		/* pages whose arrival is remembered (direct-mapped) */
	HOLD_RUN_MAX_US = 2000, /* so long the asking CPU may take until it has run with the page */
	HOLD_INSN_US = 20,	/* and so long for the instruction that needed it, */
	HOLD_SECTION_US = 60,	/* or for a short critical section, if it may write */
	HOLD_MIN_US = 100,	/* between two writers it stays for so long ... */
	HOLD_MAX_US = 400,	/* ... up to so long, if it goes to and fro */
	PING_PONG_US = 2000,	/* back within this time of being taken: it goes to and fro */
	HOLD_POLL_US = 50,
};

/* What happened to a page of late; its hold time doubles when it comes back soon, and starts again when it does not. */
struct recent { uint32_t gfn_plus_1, hold_us; uint64_t came_ns, went_ns, used_ns /* since then it is used; 0: not yet */; };

struct retry_timer { /* one pending dsm_retry() */
	struct retry_timer *next;
	struct event *event;
	struct node *node;
	gfn_t gfn;
};

struct pagestore {
	int pipe[2];
	struct recent recent[RECENT];
	struct retry_timer *spare;
	uint8_t scratch[PAGE_BYTES];
};

static uint8_t *alias_of(struct node *node, gfn_t gfn)
{
	bug_on(gfn >= node->ram_pages);
	return node->ram + ((size_t)gfn << PAGE_BITS);
}

static struct recent *recent_of(struct node *node, gfn_t gfn)
{
	return &node->pages->recent[gfn % RECENT];
}

static void set_right(struct node *node, gfn_t gfn, enum page_right right)
{
	atomic_store(&node->shm->page_right[gfn], right);
}

static void punch(struct node *node, gfn_t gfn)
{
	if (fallocate(node->ram_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)gfn << PAGE_BITS, PAGE_BYTES))
		die("cannot take a page of guest RAM: %s", strerror(errno));
}

/* Take a page that VM processes may be writing to: afterwards nobody has it, and `contents` is its last state. */
static void extract(struct node *node, gfn_t gfn, uint8_t *contents)
{
	struct iovec page = { alias_of(node, gfn), PAGE_BYTES };
	size_t got = 0;

	if (vmsplice(node->pages->pipe[1], &page, 1, 0) != PAGE_BYTES)
		die("cannot splice a page of guest RAM: %s", strerror(errno));
	punch(node, gfn);
	while (got < PAGE_BYTES) {
		ssize_t n = read(node->pages->pipe[0], contents + got, PAGE_BYTES - got);

		if (n <= 0 && errno != EINTR)
			die("cannot read a page of guest RAM: %s", strerror(errno));
		if (n > 0)
			got += n;
	}
}

/* --- the callbacks of struct dsm_host ------------------------------------------------------------------------------- */

static void host_send(void *ctx, vnode_t to, uint16_t type, const struct msg_dsm *body, const void *payload,
		      uint32_t payload_bytes)
{
	struct node *node = ctx;

	net_send(node->net, to, type, body, sizeof *body, payload, payload_bytes);
}

static void host_take(void *ctx, gfn_t gfn, enum page_right new_right, void *contents)
{
	struct node *node = ctx;
	uint8_t *alias = alias_of(node, gfn), *to = contents ? contents : node->pages->scratch;
	enum page_right right = atomic_load(&node->shm->page_right[gfn]);

	bug_on(new_right > right || new_right == PAGE_WRITE);
	if (right == new_right) {
		if (contents)
			memcpy(contents, alias, PAGE_BYTES);
		return;
	}
	set_right(node, gfn, PAGE_NONE);
	hostshm_drain_pins(node->shm, gfn);
	if (right == PAGE_WRITE) {
		extract(node, gfn, to);
	} else {
		if (contents)
			memcpy(contents, alias, PAGE_BYTES);
		punch(node, gfn);
	}
	if (new_right == PAGE_READ) {
		memcpy(alias, to, PAGE_BYTES);
		set_right(node, gfn, PAGE_READ);
	} else if (recent_of(node, gfn)->gfn_plus_1 == gfn + 1) {
		recent_of(node, gfn)->went_ns = node_now_ns();
	}
}

static void remember_arrival(struct node *node, gfn_t gfn)
{
	struct recent *recent = recent_of(node, gfn);
	uint64_t now = node_now_ns();

	if (recent->gfn_plus_1 != gfn + 1)
		*recent = (struct recent){ .gfn_plus_1 = gfn + 1, .hold_us = HOLD_MIN_US };
	else if (recent->went_ns && now - recent->went_ns > PING_PONG_US * 1000ull)
		recent->hold_us = HOLD_MIN_US;
	else if (recent->went_ns && recent->hold_us < HOLD_MAX_US)
		recent->hold_us *= 2;
	recent->came_ns = recent->used_ns = now;
}

static void host_fill(void *ctx, gfn_t gfn, const void *contents, enum page_right right)
{
	struct node *node = ctx;
	uint8_t *alias = alias_of(node, gfn);

	bug_on(atomic_load(&node->shm->page_right[gfn]) != PAGE_NONE);
	if (contents)
		memcpy(alias, contents, PAGE_BYTES);
	else
		*(volatile uint8_t *)alias = 0; /* the memfd's fresh page is zero; it must exist to be mapped */
	remember_arrival(node, gfn);
	set_right(node, gfn, right);
}

static void host_upgrade(void *ctx, gfn_t gfn)
{
	struct node *node = ctx;

	remember_arrival(node, gfn);
	set_right(node, gfn, PAGE_WRITE);
}

static void answer(struct node *node, unsigned cpu, gfn_t gfn, enum page_right right)
{
	struct msg_page_ready ready = { .gfn = gfn, .right = right };
	struct msg_header header = { .type = MSG_PAGE_READY, .version = WIRE_VERSION, .bytes = sizeof ready,
				     .to = VNODE_CPU(cpu), .from_node = node->o.node };

	node->wait[cpu].waiting = false;
	if (node->monitor[cpu].conn)
		conn_send(node->monitor[cpu].conn, &header, &ready, sizeof ready, NULL, 0);
}

static void host_ready(void *ctx, gfn_t gfn, enum page_right right)
{
	struct node *node = ctx;

	for (unsigned cpu = node->o.node; cpu < node->o.n_cpus; cpu += node->o.n_nodes)
		if (node->wait[cpu].waiting && node->wait[cpu].gfn == gfn && node->wait[cpu].right <= right)
			answer(node, cpu, gfn, right);
}

/* A CPU that was given the page and has not resumed with it keeps it; one that still waits for it has not got it. */
static bool not_yet_used(const struct node *node, gfn_t gfn)
{
	for (unsigned cpu = node->o.node; cpu < node->o.n_cpus; cpu += node->o.n_nodes)
		if (atomic_load(&node->shm->slot[cpu].granted) == gfn + 1 &&
		    !(node->wait[cpu].waiting && node->wait[cpu].gfn == gfn))
			return true;
	return false;
}

/* A CPU's mark goes away just before it resumes: the first time that it is seen gone, the CPU gets `grace_us` more. */
static uint32_t hold_until_run_us(struct node *node, struct recent *recent, gfn_t gfn, uint64_t now, uint32_t grace_us)
{
	if (now - recent->came_ns < HOLD_RUN_MAX_US * 1000ull && not_yet_used(node, gfn)) {
		recent->used_ns = 0;
		return HOLD_POLL_US;
	}
	if (!recent->used_ns)
		recent->used_ns = now;
	return now - recent->used_ns < grace_us * 1000ull ? grace_us : 0;
}

/* A copy goes as soon as it was used.  A writer keeps its page against readers for a critical section's length: while it
 * updates the guest's clock, all other CPUs look at the sequence counter in the same page again and again.  Not longer,
 * or a thread that spins on a word would wait for its turn (a handover between two hosts took 3.1-6.8 ms with 100-400 us
 * against everybody, 1.9-2.5 ms without).  Only between two writers that want nothing but the page it stays longer. */
static uint32_t host_hold_us(void *ctx, gfn_t gfn, enum page_right new_right)
{
	struct node *node = ctx;
	struct recent *recent = recent_of(node, gfn);
	uint64_t now = node_now_ns(), age_us = (now - recent->came_ns) / 1000;
	bool writer = atomic_load(&node->shm->page_right[gfn]) == PAGE_WRITE;

	if (recent->gfn_plus_1 != gfn + 1)
		return 0;
	if (writer && new_right == PAGE_NONE && age_us < recent->hold_us)
		return recent->hold_us - (uint32_t)age_us;
	return hold_until_run_us(node, recent, gfn, now, writer ? HOLD_SECTION_US : HOLD_INSN_US);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct retry_timer *timer = arg;
	struct node *node = timer->node;
	gfn_t gfn = timer->gfn;

	(void)fd, (void)what;
	timer->next = node->pages->spare;
	node->pages->spare = timer;
	if (!node->ending)
		dsm_retry(node->dsm, gfn);
}

static void host_after_us(void *ctx, gfn_t gfn, uint32_t us)
{
	struct node *node = ctx;
	struct retry_timer *timer = node->pages->spare;
	const struct timeval delay = { us / 1000000, us % 1000000 };

	if (timer) {
		node->pages->spare = timer->next;
	} else {
		timer = calloc(1, sizeof *timer);
		if (!timer)
			die("out of memory");
		timer->node = node;
		timer->event = evtimer_new(node->base, on_retry, timer);
		if (!timer->event)
			die("no memory for events");
	}
	timer->gfn = gfn;
	event_add(timer->event, &delay);
}

/* --- called by the daemon ------------------------------------------------------------------------------------------- */

void pagestore_want(struct node *node, const struct msg_page_want *want)
{
	struct page_wait *wait = &node->wait[want->cpu];

	if (want->gfn >= node->ram_pages || want->right < PAGE_READ || want->right > PAGE_WRITE) {
		node_end(node, END_FAILURE, 0, "CPU %u asked for page %x, which is not RAM; this is a bug in vmp", want->cpu,
			 want->gfn);
		return;
	}
	*wait = (struct page_wait){ .waiting = true, .gfn = want->gfn, .right = want->right };
	if (!node->dsm)
		answer(node, want->cpu, want->gfn, PAGE_WRITE);
	else
		dsm_want(node->dsm, want->gfn, want->right);
}

void pagestore_on_message(void *ctx, const struct msg_header *header, const void *body)
{
	struct node *node = ctx;
	struct msg_dsm dsm;
	uint32_t payload = header->bytes - sizeof dsm;
	bool with_page = header->type == MSG_DSM_GRANT_READ || header->type == MSG_DSM_GRANT_WRITE;

	memcpy(&dsm, body, sizeof dsm);
	if (!node->dsm || payload != (with_page ? PAGE_BYTES : 0) ||
	    dsm_on_message(node->dsm, header, &dsm, with_page ? (const char *)body + sizeof dsm : NULL))
		node_end(node, END_FAILURE, 0, "host %u sent a wrong %s for page %x; this is a bug in vmp", header->from_node,
			 wire_type_name(header->type), dsm.gfn);
}

void pagestore_start(struct node *node)
{
	struct dsm_host host = {
		.ctx = node, .send = host_send, .take = host_take, .fill = host_fill, .upgrade = host_upgrade,
		.ready = host_ready, .hold_us = host_hold_us, .after_us = host_after_us,
	};

	if (node->o.n_nodes == 1) {
		memset((void *)node->shm->page_right, PAGE_WRITE, node->ram_pages);
		return;
	}
	node->pages = calloc(1, sizeof *node->pages);
	if (!node->pages)
		die("out of memory");
	if (pipe2(node->pages->pipe, O_CLOEXEC | O_NONBLOCK))
		die("cannot make a pipe: %s", strerror(errno));
	node->dsm = dsm_new(node->o.node, node->o.n_nodes, node->ram_pages, &host);
}
