/* wants.c - see wants.h. */
#include "vmm/node/pages/wants.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/log.h"
#include "vmm/node/moves/policy.h"
#include "vmm/node/node.h"
#include "vmm/node/pages/barriers.h"
#include "vmm/node/pages/pagetrace.h"
#include "vmm/node/pages/spill.h"
#include "vmm/node/wire/conn.h"

struct wants {
	int bell;
	struct loop_event *on_bell;
	struct want {
		bool waiting, by_slot, locked, guessed;
		bool put_off; /* it waits until this host has room */
		gfn_t gfn;
		enum page_right right;
		uint64_t since_ns;
	} cpu[MAX_CPUS];
};

/* Pages that a CPU may need soon, which it names together with the one that it waits for. */
struct aheads { uint32_t n; gfn_t gfn[MAX_AHEAD]; };

int wants_bell(const struct node *node)
{
	return node->wants->bell;
}

bool wants_waits(const struct node *node, unsigned cpu)
{
	return node->wants->cpu[cpu].waiting;
}

bool wants_waits_for(const struct node *node, unsigned cpu, gfn_t gfn)
{
	return node->wants->cpu[cpu].waiting && node->wants->cpu[cpu].gfn == gfn;
}

bool wants_any_waits_for(const struct node *node, gfn_t gfn)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (wants_waits_for(node, cpu, gfn))
			return true;
	return false;
}

bool wants_locked(const struct node *node, gfn_t gfn)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (wants_waits_for(node, cpu, gfn) && node->wants->cpu[cpu].locked)
			return true;
	return false;
}

bool wants_may_be_vain(const struct node *node, gfn_t gfn)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (wants_waits_for(node, cpu, gfn) && !node->wants->cpu[cpu].guessed)
			return false;
	return true;
}

bool wants_by_slot(const struct node *node, unsigned cpu)
{
	return node->wants->cpu[cpu].by_slot;
}

/* ---- asking ---- */

static bool is_sound(struct node *node, unsigned cpu, const struct want *want)
{
	if (ram_has(node->ram_pages, want->gfn) &&
	    (want->right == PAGE_READ || want->right == PAGE_WRITE))
		return true;
	node_end(node, END_GUEST_FAULT, 0, "CPU %u: it asked for page %x, which is not RAM: its "
		 "guest has changed what is the engine's", cpu, want->gfn);
	return false;
}

/* Requests the pages ahead, in one packet.  The page that the CPU waits for was requested
 * before. */
static void ask_ahead(struct node *node, const struct aheads *aheads, enum page_right right)
{
	if (!aheads->n)
		return;
	node->outside->cork(node);
	for (uint32_t i = 0; i < aheads->n && i < MAX_AHEAD; i++)
		if (ram_has(node->ram_pages, aheads->gfn[i]))
			pagestore_want_ahead(node, aheads->gfn[i], right);
	node->outside->uncork(node);
}

/* `want` is a copy: the CPU may be answered, and want something else, before this returns. */
static void ask(struct node *node, unsigned cpu, struct want want,
		const struct aheads *aheads)
{
	pagestore_want(node, cpu, want.gfn, want.right);
	if (node->dsm)
		policy_on_want(node);
	ask_ahead(node, aheads, want.right);
	if (want.locked && node->dsm)
		pagestore_synchronises(node);
}

static void take(struct node *node, unsigned cpu, struct want want, const struct aheads *aheads)
{
	if (!is_sound(node, cpu, &want))
		return;
	if (want.guessed && node->dsm && spill_is_near(node)) { /* the CPU only reads */
		want.right = PAGE_READ;
		want.guessed = false;
	}
	want.since_ns = node_now_ns(node);
	want.put_off = node->dsm && !spill_lets(node, want.gfn, want.since_ns);
	node->wants->cpu[cpu] = want;
	trace_seen(node, cpu, want.gfn, want.right);
	if (want.put_off)
		node->put_off++;
	else
		ask(node, cpu, want, aheads);
	spill_step(node);
}

void wants_on_message(struct node *node, const struct message *m, const struct msg_page_want *want)
{
	/* The CPU is the one of this socket, whatever the message says. */
	struct aheads aheads = { .n = m->payload_bytes / sizeof(gfn_t) };

	if (aheads.n > MAX_AHEAD)
		aheads.n = MAX_AHEAD;
	if (aheads.n)
		memcpy(aheads.gfn, m->payload, aheads.n * sizeof(gfn_t));
	take(node, m->from,
	     (struct want){ .waiting = true, .gfn = want->gfn, .right = want->right }, &aheads);
}

static void read_aheads(const struct vcpu_slot *slot, struct aheads *aheads)
{
	aheads->n = atomic_load_explicit(&slot->want_aheads, memory_order_relaxed);
	for (uint32_t i = 0; i < aheads->n && i < MAX_AHEAD; i++)
		aheads->gfn[i] = atomic_load_explicit(&slot->want_ahead[i], memory_order_relaxed);
}

static bool look_at(struct node *node, unsigned cpu)
{
	struct vcpu_slot *slot = &node->shm->slot[cpu];
	struct want want = { .waiting = true, .by_slot = true };
	struct aheads aheads;

	if (atomic_load(&slot->want) != WANT_ASKED || node->wants->cpu[cpu].waiting)
		return false;
	want.gfn = atomic_load_explicit(&slot->want_gfn, memory_order_relaxed);
	want.right = atomic_load_explicit(&slot->want_right, memory_order_relaxed);
	want.locked = atomic_load_explicit(&slot->want_locked, memory_order_relaxed);
	want.guessed = atomic_load_explicit(&slot->want_guessed, memory_order_relaxed);
	if (node->shm->many_hosts && ram_has(node->ram_pages, want.gfn))
		atomic_fetch_add_explicit(&hostshm_page_faults(node->shm)[want.gfn], 1,
					  memory_order_relaxed);
	read_aheads(slot, &aheads);
	take(node, cpu, want, &aheads);
	return true;
}

bool wants_put_off(const struct node *node)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (node->wants->cpu[cpu].put_off)
			return true;
	return false;
}

/* Returns the want that has waited longest of those that may go on now, or NULL. */
static struct want *next_to_go_on(struct node *node)
{
	struct want *next = NULL;

	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++) {
		struct want *want = &node->wants->cpu[cpu];

		if (want->put_off && (!next || want->since_ns < next->since_ns) &&
		    spill_lets(node, want->gfn, want->since_ns))
			next = want;
	}
	return next;
}

/* The slot of a CPU that waits still has the pages that it wants next. */
void wants_go_on(struct node *node)
{
	struct want *want;

	while (wants_put_off(node) && (want = next_to_go_on(node))) {
		unsigned cpu = (unsigned)(want - node->wants->cpu);
		struct aheads aheads = { 0 };

		want->put_off = false;
		if (want->by_slot)
			read_aheads(&node->shm->slot[cpu], &aheads);
		ask(node, cpu, *want, &aheads);
	}
}

/* Whatever hostile code writes there, node 0 hears of it once in a while only. */
static void look_for_crowd(struct node *node, unsigned cpu)
{
	_Atomic uint32_t *crowded = &node->shm->slot[cpu].crowded;

	if (atomic_load_explicit(crowded, memory_order_relaxed) && atomic_exchange(crowded, 0) &&
	    node->dsm)
		policy_on_crowded(node, cpu);
}

bool wants_look(struct node *node)
{
	bool found = false;

	if (node->ending)
		return false;
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++) {
		found |= look_at(node, cpu) | barriers_look_at(node, cpu);
		look_for_crowd(node, cpu);
	}
	return found;
}

void wants_poll(struct node *node)
{
	if (!atomic_load_explicit(&node->shm->daemon_polls, memory_order_relaxed))
		atomic_store(&node->shm->daemon_polls, 1);
	wants_look(node);
}

/* (TRICKS: ask-then-ring) */
bool wants_may_sleep(struct node *node)
{
	/* sequentially consistent: the store is visible before the slots are read */
	atomic_store(&node->shm->daemon_polls, 0);
	return !wants_look(node);
}

void wants_vain(struct node *node, gfn_t gfn)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (node->cpus_here >> cpu & 1)
			atomic_store_explicit(&node->shm->slot[cpu].vain[gfn % SLOT_VAIN], gfn + 1,
					      memory_order_relaxed);
}

/* ---- replying ---- */

static void answer(struct node *node, unsigned cpu, gfn_t gfn, enum page_right right)
{
	struct vcpu_slot *slot = &node->shm->slot[cpu];
	struct msg_page_ready ready = { .gfn = gfn, .right = right };
	struct msg_header header = packet_header(MSG_PAGE_READY, VNODE_CPU(cpu), node->o.node,
						 sizeof ready);

	node->wants->cpu[cpu].waiting = node->wants->cpu[cpu].put_off = false;
	trace_answered(node, cpu);
	if (node->wants->cpu[cpu].by_slot) {
		atomic_store(&slot->want, WANT_NONE);
		syscall(SYS_futex, &slot->want, FUTEX_WAKE, 1, NULL, NULL, 0);
	} else if (node->monitor[cpu].conn) {
		conn_send(node->monitor[cpu].conn, &header, &ready, sizeof ready, NULL, 0);
	}
}

void wants_ready(struct node *node, gfn_t gfn, enum page_right right)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (wants_waits_for(node, cpu, gfn) && node->wants->cpu[cpu].right <= right)
			answer(node, cpu, gfn, right);
}

bool wants_unused(const struct node *node, gfn_t gfn)
{
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		if (atomic_load(&node->shm->slot[cpu].granted) == gfn + 1 &&
		    !wants_waits_for(node, cpu, gfn))
			return true;
	return false;
}

/* ---- start ---- */

/* The bell needs no further action: the event loop reads all slots before it sleeps again. */
static void on_bell(void *arg)
{
	const struct node *node = arg;
	uint64_t rings;

	(void)!read(node->wants->bell, &rings, sizeof rings);
}

void wants_start(struct node *node)
{
	node->wants = calloc(1, sizeof *node->wants);
	if (!node->wants)
		die("out of memory");
	node->wants->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	node->wants->on_bell = loop_add(&node->loop, LOOP_READ, node->wants->bell, on_bell, node);
	if (node->wants->bell < 0 || !node->wants->on_bell || loop_watch(node->wants->on_bell))
		die("cannot make an eventfd: %s", strerror(errno));
}

void wants_end(struct node *node)
{
	if (!node->wants)
		return;
	loop_remove(node->wants->on_bell);
	close(node->wants->bell);
	free(node->wants);
	node->wants = NULL;
}
