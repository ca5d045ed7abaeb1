/* poll.c - see poll.h. */
#include "vmm/node/poll.h"

#include <event2/event.h>
#include "base/mechanisms.h"
#include "vmm/node/moves/processors.h"
#include "vmm/node/node.h"
#include "vmm/node/pages/batch.h"
#include "vmm/node/pages/wants.h"

enum { NS_PER_US = 1000 };

bool poll_pays(const struct poll_view *view)
{
	if (view->busy || view->quiet_ns >= POLL_US * (uint64_t)NS_PER_US)
		return false;
	return view->awaited || view->halted;
}

void poll_note(struct node *node)
{
	node->page_event_ns = node_now_ns(node);
}

/* Returns whether the slot says that the CPU is halted.  A VM process can write that; the worst
 * result is POLL_US of this processor's time. */
static bool is_halted(const struct node *node, unsigned cpu)
{
	return atomic_load_explicit(&node->shm->doorbell[cpu].state, memory_order_relaxed) ==
	       SLOT_HALTED;
}

/* (TRICKS: poll-where-nothing-runs) */
static bool should_poll(const struct node *node)
{
	struct poll_view view = { .quiet_ns = node_now_ns(node) - node->page_event_ns };
	uint32_t here;

	if (!node->dsm || node->ending ||
	    !mechanism_on(node->o.machine.without, MECHANISM_POLL) ||
	    view.quiet_ns >= POLL_US * (uint64_t)NS_PER_US)
		return false;
	here = processors_users(node, &view.busy);
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++) {
		bool waits = wants_waits(node, cpu);

		view.awaited |= waits;
		if (!(here >> cpu & 1) || waits)
			continue;
		if (is_halted(node, cpu))
			view.halted++;
		else
			view.busy++;
	}
	return poll_pays(&view);
}

void poll_loop(struct node *node)
{
	while (!event_base_got_break(node->base)) {
		bool polls;

		batch_serve(node);
		polls = should_poll(node) || !wants_may_sleep(node);
		if (polls)
			wants_poll(node);
		pagestore_send_delayed(node, !polls);
		if (event_base_loop(node->base, polls ? EVLOOP_NONBLOCK : EVLOOP_ONCE))
			break;
	}
}
