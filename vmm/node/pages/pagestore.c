/* pagestore.c - gives pages to the CPUs of this host and takes them away: the actions of the page
 * protocol (dsm/).
 *
 * Page rights are in the shared memory; pins exclude engines (base/hostshm.h). extract.h removes a
 * page from all processes; batch.h serves requests that arrive together.  If a write right becomes
 * a read right, the page is removed in the same way, and its contents are written back.  VM
 * processes then find the page by a minor fault, which their engine answers with a write-protected
 * mapping.  A page that could only be read is copied first and punched then.
 *
 * misses.c decides which right is requested for a CPU that waits, and when; hold.c, how long a page
 * stays after it has arrived; spill.c keeps this host to its share of the memory.
 */
#include "vmm/node/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/faultpoint.h"
#include "base/log.h"
#include "base/mechanisms.h"
#include "dsm/dsm.h"
#include "vmm/node/cut/copy.h"
#include "vmm/node/pages/misses.h"
#include "vmm/node/pages/batch.h"
#include "vmm/node/pages/extract.h"
#include "vmm/node/pages/hold.h"
#include "vmm/node/pages/share.h"
#include "vmm/node/pages/spill.h"
#include "vmm/node/pages/spin.h"
#include "vmm/node/pages/starts.h"
#include "vmm/node/pages/pagetrace.h"
#include "vmm/node/pages/wants.h"
#include "vmm/node/poll.h"

enum {
	RECENT = 1024,	 /* pages whose arrival is remembered (direct-mapped) */
	GIVEN_BACK = 16, /* aligned pages that are copied at once for a snapshot */
	LATE_US = 1000,	 /* how late a confirmation is at most */
};

struct retry { /* one pending dsm_retry() */
	struct retry *next;
	uint64_t at_ns;
	gfn_t gfn;
};

struct pagestore {
	struct extract *extract;
	struct batch *batch;
	struct page_hold recent[RECENT];
	struct misses *misses;
	struct share *share;
	struct spin *spin;
	struct retry *retries, *spare; /* ordered by time */
	struct loop_event *retry_timer; /* for the first */
	struct loop_event *late_timer;	/* runs while confirmations may be late */
	bool late;
	uint64_t synced_ns; /* when holds were last ended: by locked instructions, or loops */
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

/* Returns whether locked instructions end holds.  The reference engine does not detect them. */
static bool holds_end(const struct node *node)
{
	return node->o.machine.engine == ENGINE_DIRECT &&
	       mechanism_on(node->o.machine.without, MECHANISM_SYNC);
}

/* Returns whether CPUs that wait in loops end holds. */
static bool looks(const struct node *node)
{
	return holds_end(node) && mechanism_on(node->o.machine.without, MECHANISM_SPIN);
}

static void arrived(struct node *node, gfn_t gfn)
{
	bool end = holds_end(node);

	hold_arrived(recent_of(node, gfn), gfn, hold_lengths(end),
		     end && wants_locked(node, gfn), node_now_ns(node));
}

struct extract *pagestore_extract(struct node *node)
{
	return node->pages->extract;
}

struct batch *pagestore_batch(struct node *node)
{
	return node->pages->batch;
}

struct misses *pagestore_misses(struct node *node)
{
	return node->pages->misses;
}

struct share *pagestore_share(const struct node *node)
{
	return node->pages->share;
}

static void set_right(struct node *node, gfn_t gfn, enum page_right right)
{
	atomic_store(&node->shm->page_right[gfn], right);
}

/* ---- the callbacks of struct dsm_host ---- */

static bool confirms_late(const struct node *node)
{
	return mechanism_on(node->o.machine.without, MECHANISM_LATE);
}

/* Sends a confirmation, for which nobody waits, with the next message to that host.  A message of
 * its own would wake a daemon beside a guest that computes, and costs this host as much before its
 * guest goes on.  (TRICKS: late-confirmations) */
static void confirm_late(struct node *node, unsigned peer, const struct msg_dsm *body)
{
	struct pagestore *pages = node->pages;

	net_send_late(node->net, VNODE_DAEMON(peer), MSG_DSM_CONFIRM, body, sizeof *body);
	if (pages->late)
		return;
	pages->late = true;
	if (loop_after(pages->late_timer, LATE_US * 1000ull))
		die("cannot set a timer: %s", strerror(errno));
}

static void on_late(void *arg)
{
	struct node *node = arg;

	node->pages->late = false;
	for (unsigned peer = 0; peer < MAX_NODES; peer++)
		net_flush_late(node->net, peer);
}

static void host_send(void *ctx, vnode_t to, uint16_t type, const struct msg_dsm *body,
		      const void *payload, uint32_t payload_bytes)
{
	struct node *node = ctx;
	unsigned peer = dsm_node_of(node->dsm, to);

	if (type == MSG_DSM_CONFIRM && confirms_late(node) &&
	    (atomic_load(&node->shm->page_right[body->gfn]) != PAGE_WRITE ||
	     !wants_any_waits_for(node, body->gfn)))
		confirm_late(node, peer, body);
	else
		net_send(node->net, VNODE_DAEMON(peer), type, body, sizeof *body, payload,
			 payload_bytes);
	if (type == MSG_DSM_GRANT_READ)
		starts_note(&node->starts, peer, body->gfn);
}

/* Another host's confirmation may be late, and a request waits for it here. */
static void host_unconfirmed(void *ctx, gfn_t gfn, unsigned requester)
{
	struct node *node = ctx;
	const struct msg_page_awaited body = { .gfn = gfn };

	if (confirms_late(node))
		net_send(node->net, VNODE_DAEMON(requester), MSG_PAGE_AWAITED, &body, sizeof body,
			 NULL, 0);
}

void pagestore_on_awaited(struct node *node, const struct message *m)
{
	net_flush_late(node->net, m->from);
}

static void host_send_home(void *ctx, const struct msg_home *body, const void *payload,
			   uint32_t payload_bytes)
{
	struct node *node = ctx;

	net_send(node->net, VNODE_DAEMON(body->to), MSG_HOME_STATE, body, sizeof *body, payload,
		 payload_bytes);
}

/* Returns whether a CPU's monitor has died.  Its VM processes die with it, and what they had begun
 * is lost with the machine. */
static bool monitor_is_gone(void *ctx, unsigned cpu)
{
	const struct node *node = ctx;
	siginfo_t child = { 0 };
	pid_t pid = node->monitor[cpu].pid;

	return !pid || waitid(P_PID, pid, &child, WEXITED | WNOHANG | WNOWAIT) ||
	       child.si_pid == pid;
}

void pagestore_drain(struct node *node, gfn_t gfn)
{
	int cpu = hostshm_drain_pins(node->shm, gfn, monitor_is_gone, node);

	if (cpu < 0)
		return;
	node_end(node, END_GUEST_FAULT, 0, "CPU %d has held page %x for more than %d ms: its guest "
		 "has changed what is the monitor's", cpu, gfn, HOSTSHM_PIN_LIMIT_MS);
	hostshm_forget_pins(&node->shm->slot[cpu]);
}

/* Takes a page that is not staged; its contents go to `to`, if they may be needed. */
static void take_now(struct node *node, gfn_t gfn, enum page_right has, enum page_right left,
		     uint8_t *to, bool needed)
{
	if (left == PAGE_NONE)
		copy_before_loss(node, gfn);
	set_right(node, gfn, PAGE_NONE);
	pagestore_drain(node, gfn);
	if (has == PAGE_WRITE || needed)
		extract_pages(node->pages->extract, &gfn, 1, has == PAGE_WRITE, to);
	else
		extract_punch(node->pages->extract, gfn);
	if (left == PAGE_READ)
		extract_put_back(node->pages->extract, &gfn, 1, to);
}

/* Finishes what batch.h has begun, or takes the page now.  Returns the right that this host had. */
static enum page_right take(struct node *node, gfn_t gfn, enum page_right left, void *contents)
{
	const struct staged *staged = batch_take(node, gfn, left);
	uint8_t *to = contents ? contents : staged ? staged->contents : node->pages->scratch;
	enum page_right has = staged ? staged->had : atomic_load(&node->shm->page_right[gfn]);

	bug_on(left > has || left == PAGE_WRITE);
	if (has == left) {
		if (contents)
			memcpy(contents, alias_of(node, gfn), PAGE_BYTES);
		return has;
	}
	if (!staged)
		take_now(node, gfn, has, left, to, contents != NULL);
	else if (contents)
		memcpy(contents, staged->contents, PAGE_BYTES);
	misses_left(node, gfn, has, left, to);
	return has;
}

static void host_take(void *ctx, gfn_t gfn, enum page_right new_right, void *contents)
{
	struct node *node = ctx;
	uint64_t begin_ns = trace_now_ns(node);

	if (take(node, gfn, new_right, contents) == new_right)
		return;
	if (new_right == PAGE_READ) {
		set_right(node, gfn, PAGE_READ);
	} else {
		hold_went(recent_of(node, gfn), gfn, node_now_ns(node));
		share_went(node->pages->share, gfn);
	}
	trace_taken(node, gfn, new_right, begin_ns);
}

static void host_fill(void *ctx, gfn_t gfn, const void *contents, enum page_right right)
{
	static const uint8_t zeros[PAGE_BYTES];
	struct node *node = ctx;

	bug_on(gfn >= node->ram_pages || atomic_load(&node->shm->page_right[gfn]) != PAGE_NONE);
	extract_put_back(node->pages->extract, &gfn, 1, contents ? contents : zeros);
	copy_before_change(node, gfn);
	arrived(node, gfn);
	set_right(node, gfn, share_adopted(node->pages->share, gfn) ? PAGE_READ : right);
	if (right == PAGE_READ) {
		share_came_copy(node->pages->share, gfn);
	} else {
		misses_came(node, gfn, contents ? contents : zeros);
		share_came(node->pages->share, gfn);
	}
}

static void host_upgrade(void *ctx, gfn_t gfn)
{
	struct node *node = ctx;

	copy_before_change(node, gfn);
	arrived(node, gfn);
	set_right(node, gfn, PAGE_WRITE);
	misses_came(node, gfn, alias_of(node, gfn));
	share_owned(node->pages->share, gfn);
}

static void host_ready(void *ctx, gfn_t gfn, enum page_right right)
{
	wants_ready(ctx, gfn, right);
}

uint32_t pagestore_hold_us(struct node *node, gfn_t gfn, enum page_right new_right)
{
	enum page_right right = atomic_load(&node->shm->page_right[gfn]);
	bool awaited = wants_unused(node, gfn);
	uint64_t now_ns = node_now_ns(node);
	uint32_t us;

	if (fault_on(FAULT_HOLD_NOTHING))
		return 0;
	if (new_right == PAGE_NONE && misses_is_word(node, gfn))
		new_right = PAGE_READ;
	if (!mechanism_on(node->o.machine.without, MECHANISM_HOLD))
		return hold_one_us(recent_of(node, gfn), gfn, awaited, now_ns);
	us = hold_us(recent_of(node, gfn), gfn, right, new_right, awaited, node->pages->synced_ns,
		     now_ns);
	if (us <= SPIN_LOOK_US || !looks(node))
		return us;
	if (!spin_look(node->pages->spin, node, now_ns))
		return SPIN_LOOK_US;
	node->pages->synced_ns = now_ns;
	return hold_us(recent_of(node, gfn), gfn, right, new_right, awaited, now_ns, now_ns);
}

static uint32_t host_hold_us(void *ctx, gfn_t gfn, enum page_right new_right)
{
	return pagestore_hold_us(ctx, gfn, new_right);
}

static bool host_adopts(void *ctx, gfn_t gfn, unsigned owner, bool must)
{
	return spill_adopts(ctx, gfn, owner, must);
}

/* Ends the machine, and does nothing worse: another daemon may be faulty or malicious. */
static void host_wrong(void *ctx, const char *text)
{
	node_end(ctx, END_FAILURE, 0, "the page protocol is broken: %s; this is a bug in vmp, or "
		 "of another host", text);
}

static void set_retry_timer(const struct pagestore *pages, uint64_t now_ns)
{
	const uint64_t at_ns = pages->retries->at_ns;

	if (loop_after(pages->retry_timer, at_ns > now_ns ? at_ns - now_ns : 0))
		die("cannot set a timer: %s", strerror(errno));
}

static void on_retry(void *arg)
{
	struct node *node = arg;
	struct pagestore *pages = node->pages;
	const uint64_t now = node_now_ns(node);

	while (pages->retries && pages->retries->at_ns <= now) {
		struct retry *retry = pages->retries;

		pages->retries = retry->next;
		retry->next = pages->spare;
		pages->spare = retry;
		if (!node->ending)
			dsm_retry(node->dsm, retry->gfn);
	}
	if (pages->retries)
		set_retry_timer(pages, now);
}

static void host_after_us(void *ctx, gfn_t gfn, uint32_t us)
{
	struct node *node = ctx;
	struct pagestore *pages = node->pages;
	struct retry *retry = pages->spare, **at = &pages->retries;
	const uint64_t now_ns = node_now_ns(node);

	if (retry)
		pages->spare = retry->next;
	else if (!(retry = malloc(sizeof *retry)))
		die("out of memory");
	retry->gfn = gfn;
	retry->at_ns = now_ns + us * 1000ull;
	while (*at && (*at)->at_ns <= retry->at_ns)
		at = &(*at)->next;
	retry->next = *at;
	*at = retry;
	if (pages->retries == retry)
		set_retry_timer(pages, now_ns);
}

/* Asks again about all requests that are held.  The protocol holds those again whose page the CPU
 * has not run with yet.  (TRICKS: locked-ends-holds) */
void pagestore_synchronises(struct node *node)
{
	struct pagestore *pages = node->pages;
	struct retry *held, *last;

	if (!pages || !holds_end(node)) /* a host that shares nothing holds nothing */
		return;
	node->synced++;
	pages->synced_ns = node_now_ns(node);
	held = pages->retries;
	if (!held)
		return;
	pages->retries = NULL;
	node->outside->cork(node);
	for (struct retry *retry = last = held; retry; last = retry, retry = retry->next)
		if (!node->ending && !fault_on(FAULT_SYNC_FORGETS))
			dsm_retry(node->dsm, retry->gfn);
	node->outside->uncork(node);
	last->next = pages->spare;
	pages->spare = held;
}

/* ---- requests of CPUs ---- */

/* Gives a right to write back to the CPUs that this host has and they do not: after a cut (copy.h),
 * or if it adopted the page (TRICKS: adopted-to-read).  Returns whether it did. */
static bool give_back_right(struct node *node, gfn_t gfn)
{
	if (gfn >= node->ram_pages || (node->dsm && dsm_right(node->dsm, gfn) != PAGE_WRITE) ||
	    atomic_load(&node->shm->page_right[gfn]) != PAGE_READ)
		return false;
	copy_before_change(node, gfn);
	set_right(node, gfn, PAGE_WRITE);
	return true;
}

/* Copying a page costs less than a request, so with the wanted page those around it get their right
 * back that were written to before the cut, and, if no other host can want them, the nearest. */
static void give_back_rights(struct node *node, gfn_t wanted)
{
	unsigned at = wanted % COPY_GUESSED, near = at & ~(GIVEN_BACK - 1u);
	uint64_t which = copy_guess_changes(node, wanted);

	if (!give_back_right(node, wanted))
		return;
	if (node->dsm)
		arrived(node, wanted);
	else
		which |= ((1ull << GIVEN_BACK) - 1) << near;
	for (; which; which &= which - 1)
		give_back_right(node, wanted - at + (unsigned)__builtin_ctzll(which));
}

static void request(struct node *node, gfn_t gfn, enum page_right right)
{
	poll_note(node);
	if (right == PAGE_WRITE)
		give_back_rights(node, gfn);
	if (!node->dsm) {
		wants_ready(node, gfn, right);
		return;
	}
	spill_fetches(node, gfn);
	share_wanted(node->pages->share, gfn);
	dsm_want(node->dsm, gfn, right);
}

uint64_t pagestore_send_delayed(struct node *node, bool all)
{
	uint64_t next_ns = 0;
	gfn_t gfn;

	while (node->pages && !node->ending && misses_due(node, all, &gfn, &next_ns))
		request(node, gfn, PAGE_WRITE);
	return next_ns;
}

void pagestore_want(struct node *node, unsigned cpu, gfn_t gfn, enum page_right right)
{
	if (node->dsm)
		right = misses_ask(node, cpu, gfn, right);
	if (right != PAGE_NONE)
		request(node, gfn, right);
	else
		poll_note(node); /* the daemon polls meanwhile */
}

static void make_timers(struct node *node)
{
	node->pages->retry_timer = loop_add(&node->loop, LOOP_OWN_TIMER, -1, on_retry, node);
	node->pages->late_timer = loop_add(&node->loop, LOOP_OWN_TIMER, -1, on_late, node);
	if (!node->pages->retry_timer || !node->pages->late_timer)
		die("cannot make a timer: %s", strerror(errno));
}

static void free_retries(struct retry *retry)
{
	while (retry) {
		struct retry *next = retry->next;

		free(retry);
		retry = next;
	}
}

/* ---- called by the daemon ---- */

void pagestore_want_ahead(struct node *node, gfn_t gfn, enum page_right right)
{
	if (node->dsm && spill_lets_ahead(node, gfn))
		dsm_want_ahead(node->dsm, gfn, misses_ask_ahead(node, gfn, right));
}

/* Counts a page that has arrived for the CPUs that wait for it. */
static void count_fetch(struct node *node, gfn_t gfn, unsigned from)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus && from < MAX_NODES; cpu++)
		if (wants_waits_for(node, cpu, gfn))
			node->fetched[cpu][from]++;
}

void pagestore_on_message(struct node *node, const struct message *m, const struct msg_dsm *dsm)
{
	if (!node->dsm || !batch_keep(node, m, dsm))
		pagestore_serve(node, m, dsm);
}

void pagestore_serve(struct node *node, const struct message *m, const struct msg_dsm *dsm)
{
	const void *page = m->payload_bytes ? m->payload : NULL;

	poll_note(node);
	if (page)
		count_fetch(node, dsm->gfn, m->from);
	trace_came(node, dsm->gfn, m->from, m->header.type);
	if (!node->dsm || dsm_on_message(node->dsm, &m->header, dsm, page))
		node_end(node, END_FAILURE, 0, "host %u sent a wrong %s for page %x; this is a bug "
			 "in vmp", m->from,
			 wire_type_name(m->header.type), dsm->gfn);
	else
		spill_step(node);
}

void pagestore_preloaded(struct node *node, gfn_t first, uint32_t count)
{
	memset((void *)&node->shm->page_right[first], PAGE_WRITE, count);
	share_loaded(node->pages->share, first, count);
}

void pagestore_start(struct node *node)
{
	struct dsm_host host = {
		.ctx = node, .send = host_send, .send_home = host_send_home, .take = host_take,
		.fill = host_fill, .upgrade = host_upgrade, .ready = host_ready,
		.hold_us = host_hold_us, .after_us = host_after_us, .wrong = host_wrong,
		.unconfirmed = host_unconfirmed, .adopts = host_adopts,
	};

	copy_start(node);
	if (!node_shares_memory(node)) {
		hostshm_give_all_rights(node->shm, node->ram_pages);
		return;
	}
	node->pages = calloc(1, sizeof *node->pages);
	if (!node->pages)
		die("out of memory");
	node->pages->extract = extract_new(node->ram_fd, node->ram);
	node->pages->batch = batch_new();
	node->pages->spin = spin_new();
	node->pages->misses = misses_new();
	if (!node->pages->spin || !node->pages->misses)
		die("out of memory");
	make_timers(node);
	if (!node->share_pages)
		node->share_pages = node->o.machine.host_mem_mib ?
				    node->o.machine.host_mem_mib << (20 - PAGE_BITS) :
				    node->ram_pages;
	node->pages->share = share_new(node->ram_pages, node->share_pages);
	spill_start(node);
	node->dsm = dsm_new(node->o.node, node->o.join ? 0 : node->o.machine.hosts, node->ram_pages,
			    &host);
}

void pagestore_end(struct node *node)
{
	struct pagestore *pages = node->pages;

	copy_end(node);
	if (!pages)
		return;
	spill_end(node);
	dsm_free(node->dsm);
	free_retries(pages->retries);
	free_retries(pages->spare);
	extract_free(pages->extract);
	batch_free(pages->batch);
	share_free(pages->share);
	spin_free(pages->spin);
	misses_free(pages->misses);
	loop_remove(pages->retry_timer);
	loop_remove(pages->late_timer);
	free(pages);
	node->pages = NULL;
	node->dsm = NULL;
}
