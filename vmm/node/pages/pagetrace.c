/* pagetrace.c - see pagetrace.h. */
#include "vmm/node/pages/pagetrace.h"

#include <stdlib.h>
#include "base/log.h"
#include "base/trace.h"
#include "vmm/node/node.h"
#include "vmm/node/pages/wants.h"

struct trace {
	struct trace_event *event;
	uint32_t count, room;
	uint64_t lost; /* events for which there was no room */
	/* each CPU's last request; it is stored when the next one shows when the guest continued */
	struct { bool open; struct trace_event event; } last[MAX_CPUS];
};

void trace_start(struct node *node)
{
	if (!node->o.machine.trace)
		return;
	node->trace = calloc(1, sizeof *node->trace);
	if (!node->trace)
		die("out of memory");
	atomic_store(&node->shm->traced, 1);
}

uint64_t trace_now_ns(const struct node *node)
{
	return node->trace ? node_clock_ns(node) : 0;
}

static bool make_room(struct trace *trace)
{
	uint32_t room = trace->room ? trace->room * 2 : 4096;
	struct trace_event *more;

	if (trace->count < trace->room)
		return true;
	more = room <= TRACE_EVENTS_MOST ? realloc(trace->event, room * sizeof *more) : NULL;
	if (!more)
		return false;
	trace->event = more;
	trace->room = room;
	return true;
}

static void keep(struct trace *trace, const struct trace_event *event)
{
	if (make_room(trace))
		trace->event[trace->count++] = *event;
	else
		trace->lost++;
}

/* Stores a CPU's last request.  A VM process writes its slot, so the time from there is only
 * shown. */
static void keep_last(struct node *node, unsigned cpu)
{
	struct trace_event *event = &node->trace->last[cpu].event;
	uint64_t resumed_ns = atomic_load(&node->shm->slot[cpu].fault.resumed_ns);

	if (!node->trace->last[cpu].open)
		return;
	node->trace->last[cpu].open = false;
	if (event->at_ns[TRACE_FAULT] && resumed_ns >= event->at_ns[TRACE_ANSWERED])
		event->at_ns[TRACE_RESUMED] = resumed_ns;
	keep(node->trace, event);
}

void trace_seen(struct node *node, unsigned cpu, gfn_t gfn, enum page_right right)
{
	struct vcpu_slot *slot = &node->shm->slot[cpu];
	uint64_t fault_ns, now_ns = trace_now_ns(node);
	struct trace_event *event;

	if (!node->trace)
		return;
	keep_last(node, cpu);
	event = &node->trace->last[cpu].event;
	*event = (struct trace_event){ .gfn = gfn, .kind = TRACE_FETCH, .cpu = (uint8_t)cpu,
				       .right = (uint8_t)right, .from = MAX_NODES };
	fault_ns = atomic_load(&slot->fault.ns);
	if (wants_by_slot(node, cpu) && fault_ns && fault_ns <= now_ns) {
		event->at_ns[TRACE_FAULT] = fault_ns;
		event->gva = atomic_load(&slot->fault.gva);
		event->eip = atomic_load(&slot->fault.eip);
	}
	event->at_ns[TRACE_SEEN] = now_ns;
	node->trace->last[cpu].open = true;
}

static enum trace_answer answer_of(uint16_t type)
{
	switch (type) {
	case MSG_DSM_GRANT_READ: return TRACE_ANSWER_COPY;
	case MSG_DSM_GRANT_WRITE: return TRACE_ANSWER_PAGE;
	case MSG_DSM_GRANT_UPGRADE: return TRACE_ANSWER_UPGRADE;
	case MSG_DSM_GRANT_ZERO: return TRACE_ANSWER_ZERO;
	default: return TRACE_ANSWER_HERE;
	}
}

void trace_came(struct node *node, gfn_t gfn, unsigned from, uint16_t type)
{
	enum trace_answer answer = answer_of(type);

	if (!node->trace || answer == TRACE_ANSWER_HERE)
		return;
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++) {
		struct trace_event *event = &node->trace->last[cpu].event;

		if (!wants_waits_for(node, cpu, gfn) || !node->trace->last[cpu].open)
			continue;
		event->at_ns[TRACE_CAME] = trace_now_ns(node);
		event->from = from < MAX_NODES ? from : MAX_NODES;
		event->answer = (uint8_t)answer;
	}
}

void trace_answered(struct node *node, unsigned cpu)
{
	if (node->trace && node->trace->last[cpu].open)
		node->trace->last[cpu].event.at_ns[TRACE_ANSWERED] = trace_now_ns(node);
}

void trace_taken(struct node *node, gfn_t gfn, enum page_right right, uint64_t begin_ns)
{
	struct trace_event event = { .at_ns = { begin_ns, trace_now_ns(node) }, .gfn = gfn,
				     .kind = TRACE_TAKE, .right = (uint8_t)right,
				     .from = MAX_NODES };

	if (node->trace)
		keep(node->trace, &event);
}

void trace_send(struct node *node)
{
	struct msg_trace body = { .node = node->o.node };
	uint32_t sent = 0, n;

	if (!node->trace)
		return;
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++)
		keep_last(node, cpu);
	body.lost = node->trace->lost;
	do {
		n = node->trace->count - sent;
		if (n > TRACE_EVENTS_PER_PART)
			n = TRACE_EVENTS_PER_PART;
		body.last = sent + n == node->trace->count;
		net_send(node->net, VNODE_CLI, MSG_TRACE, &body, sizeof body,
			 node->trace->event + sent, n * sizeof *node->trace->event);
		sent += n;
	} while (!body.last);
}
