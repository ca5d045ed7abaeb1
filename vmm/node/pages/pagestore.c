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
 * How long a page stays that has just come is hold.c's decision; which copies go when there are too many is share.c's.
 */
#include "vmm/node/node.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/log.h"
#include "dsm/dsm.h"
#include "vmm/node/cut/copy.h"
#include "vmm/node/pages/hold.h"
#include "vmm/node/pages/share.h"
#include "vmm/node/poll.h"
#include "vmm/node/wire/conn.h"

enum {
	RECENT = 1024,	 /* pages whose arrival is remembered (direct-mapped) */
	GIVEN_BACK = 16, /* aligned pages that are copied at once for a snapshot */
};

struct retry { /* one pending dsm_retry() */
	struct retry *next;
	uint64_t at_ns;
	gfn_t gfn;
};

struct pagestore {
	int pipe[2];
	struct page_hold recent[RECENT];
	struct share *share;
	struct retry *retries, *spare; /* the one that is due first, first */
	int retry_fd;		       /* a timer, set for the first */
	uint8_t scratch[PAGE_BYTES];
};

static uint8_t *alias_of(struct node *node, gfn_t gfn)
{
	bug_on(gfn >= node->ram_pages);
	return node->ram + ((size_t)gfn << PAGE_BITS);
}

static struct page_hold *recent_of(struct node *node, gfn_t gfn)
{
	return &node->pages->recent[gfn % RECENT];
}

static void set_right(struct node *node, gfn_t gfn, enum page_right right)
{
	atomic_store(&node->shm->page_right[gfn], right);
}

/* (TRICKS: punch-everywhere) */
static void punch(struct node *node, gfn_t gfn)
{
	if (fallocate(node->ram_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)gfn << PAGE_BITS, PAGE_BYTES))
		die("cannot take a page of guest RAM: %s", strerror(errno));
}

/* Take a page that VM processes may be writing to: afterwards nobody has it, and `contents` is its last state.
 * (TRICKS: splice-then-punch) */
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

	net_send(node->net, VNODE_DAEMON(dsm_node_of(node->dsm, to)), type, body, sizeof *body, payload, payload_bytes);
}

static void host_send_home(void *ctx, const struct msg_home *body, const void *payload, uint32_t payload_bytes)
{
	struct node *node = ctx;

	net_send(node->net, VNODE_DAEMON(body->to), MSG_HOME_STATE, body, sizeof *body, payload, payload_bytes);
}

/* Its VM processes die with it. What they had begun is lost with the machine. */
static bool monitor_is_gone(void *ctx, unsigned cpu)
{
	const struct node *node = ctx;
	siginfo_t child = { 0 };
	pid_t pid = node->monitor[cpu].pid;

	return !pid || waitid(P_PID, pid, &child, WEXITED | WNOHANG | WNOWAIT) || child.si_pid == pid;
}

static void host_take(void *ctx, gfn_t gfn, enum page_right new_right, void *contents)
{
	struct node *node = ctx;
	uint8_t *alias = alias_of(node, gfn), *to = contents ? contents : node->pages->scratch;
	enum page_right right = atomic_load(&node->shm->page_right[gfn]);
	int cpu;

	bug_on(new_right > right || new_right == PAGE_WRITE);
	if (right == new_right) {
		if (contents)
			memcpy(contents, alias, PAGE_BYTES);
		return;
	}
	if (new_right == PAGE_NONE)
		copy_before_loss(node, gfn);
	set_right(node, gfn, PAGE_NONE);
	cpu = hostshm_drain_pins(node->shm, gfn, monitor_is_gone, node);
	if (cpu >= 0) {
		node_end(node, END_GUEST_FAULT, 0, "CPU %d has held page %x for more than %d ms: its guest has changed what is the monitor's",
			 cpu, gfn, HOSTSHM_PIN_LIMIT_MS);
		hostshm_forget_pins(&node->shm->slot[cpu]);
	}
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
	} else {
		hold_went(recent_of(node, gfn), gfn, node_now_ns());
		share_went(node->pages->share, gfn);
	}
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
	copy_before_change(node, gfn);
	hold_arrived(recent_of(node, gfn), gfn, node_now_ns());
	set_right(node, gfn, right);
	if (right == PAGE_READ)
		share_came_copy(node->pages->share, gfn);
	else
		share_came(node->pages->share, 1);
}

static void host_upgrade(void *ctx, gfn_t gfn)
{
	struct node *node = ctx;

	copy_before_change(node, gfn);
	hold_arrived(recent_of(node, gfn), gfn, node_now_ns());
	set_right(node, gfn, PAGE_WRITE);
	share_owned(node->pages->share, gfn);
}

static void answer(struct node *node, unsigned cpu, gfn_t gfn, enum page_right right)
{
	struct msg_page_ready ready = { .gfn = gfn, .right = right };
	struct msg_header header = packet_header(MSG_PAGE_READY, VNODE_CPU(cpu), node->o.node, sizeof ready);

	node->wait[cpu].waiting = false;
	if (node->monitor[cpu].conn)
		conn_send(node->monitor[cpu].conn, &header, &ready, sizeof ready, NULL, 0);
}

static void host_ready(void *ctx, gfn_t gfn, enum page_right right)
{
	struct node *node = ctx;

	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (node->wait[cpu].waiting && node->wait[cpu].gfn == gfn && node->wait[cpu].right <= right)
			answer(node, cpu, gfn, right);
}

/* A CPU that was given the page and has not resumed with it keeps it; one that still waits for it has not got it. */
static bool not_yet_used(const struct node *node, gfn_t gfn)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (atomic_load(&node->shm->slot[cpu].granted) == gfn + 1 &&
		    !(node->wait[cpu].waiting && node->wait[cpu].gfn == gfn))
			return true;
	return false;
}

static uint32_t host_hold_us(void *ctx, gfn_t gfn, enum page_right new_right)
{
	struct node *node = ctx;
	enum page_right right = atomic_load(&node->shm->page_right[gfn]);

	return hold_us(recent_of(node, gfn), gfn, right, new_right, not_yet_used(node, gfn), node_now_ns());
}

static void set_retry_timer(const struct pagestore *pages)
{
	const uint64_t at_ns = pages->retries->at_ns;
	const struct itimerspec when = { .it_value = { (time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000) } };

	if (timerfd_settime(pages->retry_fd, TFD_TIMER_ABSTIME, &when, NULL))
		die("cannot set a timer: %s", strerror(errno));
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct node *node = arg;
	struct pagestore *pages = node->pages;
	const uint64_t now = node_now_ns();
	uint64_t times;

	(void)what;
	(void)!read(fd, &times, sizeof times);
	while (pages->retries && pages->retries->at_ns <= now) {
		struct retry *retry = pages->retries;

		pages->retries = retry->next;
		retry->next = pages->spare;
		pages->spare = retry;
		if (!node->ending)
			dsm_retry(node->dsm, retry->gfn);
	}
	if (pages->retries)
		set_retry_timer(pages);
}

/* A descriptor, not timers of libevent's: with these, every wait of the loop would arm one in the host, needed or not. */
static void host_after_us(void *ctx, gfn_t gfn, uint32_t us)
{
	struct node *node = ctx;
	struct pagestore *pages = node->pages;
	struct retry *retry = pages->spare, **at = &pages->retries;

	if (retry)
		pages->spare = retry->next;
	else if (!(retry = malloc(sizeof *retry)))
		die("out of memory");
	retry->gfn = gfn;
	retry->at_ns = node_now_ns() + us * 1000ull;
	while (*at && (*at)->at_ns <= retry->at_ns)
		at = &(*at)->next;
	retry->next = *at;
	*at = retry;
	if (pages->retries == retry)
		set_retry_timer(pages);
}

static void make_retry_timer(struct node *node)
{
	struct event *event;

	node->pages->retry_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	event = event_new(node->base, node->pages->retry_fd, EV_READ | EV_PERSIST, on_retry, node);
	if (node->pages->retry_fd < 0 || !event || event_add(event, NULL))
		die("cannot make a timer: %s", strerror(errno));
}

/* --- called by the daemon ------------------------------------------------------------------------------------------- */

/* Beyond this host's share, copies go; one that the page protocol keeps is owned here by now, or soon. */
static void keep_to_share(struct node *node)
{
	gfn_t gfn;

	while (share_excess(node->pages->share, &gfn))
		if (!dsm_drop(node->dsm, gfn))
			share_owned(node->pages->share, gfn);
}

/* A snapshot took the right to write from the CPUs here, not from this host (vmm/node/cut/copy.h). */
static void give_back_right(struct node *node, gfn_t gfn)
{
	if ((node->dsm && dsm_right(node->dsm, gfn) != PAGE_WRITE) || atomic_load(&node->shm->page_right[gfn]) != PAGE_READ)
		return;
	copy_before_change(node, gfn);
	set_right(node, gfn, PAGE_WRITE);
}

/* To copy a page costs less than to be asked for it: where no other host may want them, its neighbours come along. */
static void give_back_rights(struct node *node, gfn_t wanted)
{
	gfn_t count = node->dsm ? 1 : GIVEN_BACK, first = wanted & ~(count - 1);

	for (gfn_t gfn = first; gfn < first + count && gfn < node->ram_pages; gfn++)
		give_back_right(node, gfn);
}

void pagestore_want(struct node *node, const struct msg_page_want *want)
{
	struct page_wait *wait = &node->wait[want->cpu];

	if (want->gfn >= node->ram_pages || want->right < PAGE_READ || want->right > PAGE_WRITE) {
		node_end(node, END_FAILURE, 0, "CPU %u asked for page %x, which is not RAM; this is a bug in vmp", want->cpu,
			 want->gfn);
		return;
	}
	poll_note(node);
	*wait = (struct page_wait){ .waiting = true, .gfn = want->gfn, .right = want->right };
	if (want->right == PAGE_WRITE)
		give_back_rights(node, want->gfn);
	if (node->dsm)
		dsm_want(node->dsm, want->gfn, want->right);
	else
		answer(node, want->cpu, want->gfn, want->right);
}

/* A page has come that these CPUs wait for. */
static void count_fetch(struct node *node, gfn_t gfn, unsigned from)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus && from < MAX_NODES; cpu++)
		if (node->wait[cpu].waiting && node->wait[cpu].gfn == gfn)
			node->fetched[cpu][from]++;
}

void pagestore_on_message(struct node *node, const struct message *m, const struct msg_dsm *dsm)
{
	const void *page = m->payload_bytes ? m->payload : NULL;

	poll_note(node);
	if (page)
		count_fetch(node, dsm->gfn, m->from);
	if (!node->dsm || dsm_on_message(node->dsm, &m->header, dsm, page))
		node_end(node, END_FAILURE, 0, "host %u sent a wrong %s for page %x; this is a bug in vmp", m->from,
			 wire_type_name(m->header.type), dsm->gfn);
	else
		keep_to_share(node);
}

void pagestore_preloaded(struct node *node, gfn_t first, uint32_t count)
{
	memset((void *)&node->shm->page_right[first], PAGE_WRITE, count);
	share_came(node->pages->share, count);
}

void pagestore_start(struct node *node)
{
	struct dsm_host host = {
		.ctx = node, .send = host_send, .send_home = host_send_home, .take = host_take, .fill = host_fill, .upgrade = host_upgrade,
		.ready = host_ready, .hold_us = host_hold_us, .after_us = host_after_us,
	};

	copy_start(node);
	if (!node_shares_memory(node)) {
		memset((void *)node->shm->page_right, PAGE_WRITE, node->ram_pages);
		return;
	}
	node->pages = calloc(1, sizeof *node->pages);
	if (!node->pages)
		die("out of memory");
	if (pipe2(node->pages->pipe, O_CLOEXEC | O_NONBLOCK))
		die("cannot make a pipe: %s", strerror(errno));
	make_retry_timer(node);
	node->pages->share = share_new(node->ram_pages, node->o.machine.host_mem_mib ?
				       node->o.machine.host_mem_mib << (20 - PAGE_BITS) : node->ram_pages);
	node->dsm = dsm_new(node->o.node, node->o.join ? 0 : node->o.machine.hosts, node->ram_pages, &host);
}
