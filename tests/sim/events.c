/* events.c - what happens next: a binary heap by time, and by age within the same time. */
#include <stdlib.h>
#include "base/log.h"
#include "tests/sim/sim.h"

static struct sim_event *heap;
static size_t heap_count, heap_room, watches;
static uint64_t next_order;

void events_clear(void)
{
	for (size_t i = 0; i < heap_count; i++)
		free(heap[i].payload);
	free(heap);
	heap = NULL;
	heap_count = heap_room = watches = 0;
	next_order = 0;
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void events_add(const struct sim_event *event)
{
	size_t i = heap_count++;
	struct sim_event added = *event;

	if (heap_count > heap_room) {
		heap_room = heap_room ? heap_room * 2 : 256;
		heap = realloc(heap, heap_room * sizeof(*heap));
		if (!heap)
			die("no memory for %zu events", heap_room);
	}
	added.order = next_order++;
	watches += added.kind == EVENT_WATCH;
	for (; i && before(&added, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = added;
}

bool events_next(struct sim_event *event)
{
	struct sim_event last;
	size_t i = 0;

	if (!heap_count)
		return false;
	*event = heap[0];
	watches -= event->kind == EVENT_WATCH;
	last = heap[--heap_count];
	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < heap_count && before(&heap[child + 1], &heap[child]))
			child++;
		if (child >= heap_count || !before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	if (heap_count)
		heap[i] = last;
	return true;
}

bool events_only_watch(void)
{
	return heap_count == watches;
}

bool events_any(bool (*is_one)(const struct sim_event *event, unsigned node), unsigned node)
{
	for (size_t i = 0; i < heap_count; i++)
		if (is_one(&heap[i], node))
			return true;
	return false;
}

void events_forget(bool (*is_gone)(const struct sim_event *event))
{
	size_t n = heap_count;
	struct sim_event *all = heap;

	heap = NULL;
	heap_count = heap_room = watches = 0;
	for (size_t i = 0; i < n; i++)
		if (is_gone(&all[i]))
			free(all[i].payload);
		else
			events_add(&all[i]);
	free(all);
}

/* xorshift64*: the same numbers on every machine. */
uint32_t sim_random(struct sim *sim, uint32_t below)
{
	sim->random ^= sim->random >> 12;
	sim->random ^= sim->random << 25;
	sim->random ^= sim->random >> 27;
	return (uint32_t)((sim->random * 0x2545f4914f6cdd1dull >> 32) * below >> 32);
}

bool sim_chance(struct sim *sim, uint32_t percent)
{
	return sim_random(sim, 100) < percent;
}
