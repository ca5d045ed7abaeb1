/* poll.c - see poll.h. */
#include "vmm/node/poll.h"

#include <event2/event.h>
#include "vmm/node/moves/processors.h"
#include "vmm/node/node.h"

enum { NS_PER_US = 1000 };

bool poll_pays(const struct poll_view *view)
{
	if (view->busy || view->quiet_ns >= POLL_US * (uint64_t)NS_PER_US)
		return false;
	return view->awaited || view->halted;
}

void poll_note(struct node *node)
{
	node->page_event_ns = node_now_ns();
}

/* A VM process may write what its CPU is said to do: the worst that follows is POLL_US of this processor. */
static bool is_halted(const struct node *node, unsigned cpu)
{
	return atomic_load_explicit(&node->shm->slot[cpu].state, memory_order_relaxed) == SLOT_HALTED;
}

/* (TRICKS: poll-where-nothing-runs) */
static bool should_poll(const struct node *node)
{
	struct poll_view view = { .quiet_ns = node_now_ns() - node->page_event_ns };
	uint32_t here;

	if (!node->dsm || node->ending || view.quiet_ns >= POLL_US * (uint64_t)NS_PER_US)
		return false;
	here = processors_users(node, &view.busy);
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++) {
		bool waits = node->wait[cpu].waiting;

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
	while (!event_base_got_break(node->base))
		if (event_base_loop(node->base, should_poll(node) ? EVLOOP_NONBLOCK : EVLOOP_ONCE))
			break;
}
