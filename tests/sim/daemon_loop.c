/* daemon_loop.c - the loops (vmm/shared/loop.h) of daemon-sim's daemons and of their machine's
 * owner: the simulator's clock, and timers that are its events.  Descriptors are real ones; the
 * simulator looks at them after each timer and when it has written to one. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/daemons.h"

struct sim_event_of_loop {
	struct loop_event common;
	struct sim_event_of_loop *next;
	unsigned node;
	uint32_t life; /* of the daemon that made it */
	enum loop_kind kind;
	loop_fn fn;
	void *context;
	uint64_t armed; /* 0: it is not */
	int fd;
	bool waits; /* for its file */
};

struct timer {
	struct sim_event_of_loop *event; /* NULL: it is called once */
	loop_fn once;
	void *context;
	uint64_t armed;
	uint32_t life;
};

static struct {
	unsigned number[MAX_NODES];
	struct sim_event_of_loop *events; /* all that were ever made */
	uint64_t arms;
} loops;

static bool is_of_file(const struct sim_event_of_loop *event)
{
	return event->kind != LOOP_TIMER && event->kind != LOOP_OWN_TIMER;
}

static uint64_t op_now_ns(const struct loop *loop)
{
	(void)loop;
	return machine->now_ns;
}

static struct loop_event *op_add(const struct loop *loop, enum loop_kind kind, int number,
				 loop_fn fn, void *context)
{
	struct sim_event_of_loop *event = malloc(sizeof *event);
	unsigned node = *(unsigned *)loop->on;

	*event = (struct sim_event_of_loop){ .common = { loop->ops },
					     .next = loops.events,
					     .node = node,
					     .life = daemons[node].life,
					     .kind = kind,
					     .fn = fn,
					     .context = context,
					     .fd = number };
	loops.events = event;
	return &event->common;
}

static void schedule(unsigned node, struct timer *timer, uint64_t after_ns)
{
	timer->armed = ++loops.arms;
	timer->life = daemons[node].life;
	world_after_ns(after_ns, WORLD_TIMER, node, 0, 0, timer, sizeof *timer);
}

static void arm(struct sim_event_of_loop *event, uint64_t after_ns)
{
	struct timer timer = { .event = event };

	schedule(event->node, &timer, after_ns);
	event->armed = loops.arms;
}

static void look_at_file(struct sim_event_of_loop *event)
{
	struct pollfd file = { .fd = event->fd, .events = POLLIN };

	if (event->kind == LOOP_WRITE || event->kind == LOOP_WRITE_ONCE)
		file.events = POLLOUT;
	if (!event->waits || !poll(&file, 1, 0))
		return;
	event->waits = false;
	arm(event, sim_random(machine, 50) * 1000);
}

static int op_arm(struct loop_event *common, uint64_t after_ns)
{
	struct sim_event_of_loop *event = (struct sim_event_of_loop *)common;

	if (event->kind == LOOP_SIGNAL)
		return 0;
	if (!is_of_file(event)) {
		arm(event, after_ns);
		return 0;
	}
	event->waits = true;
	look_at_file(event);
	return 0;
}

static void op_disarm(struct loop_event *common)
{
	struct sim_event_of_loop *event = (struct sim_event_of_loop *)common;

	event->armed = 0;
	event->waits = false;
}

static bool op_is_armed(const struct loop_event *common)
{
	const struct sim_event_of_loop *event = (const struct sim_event_of_loop *)common;

	return event->armed || event->waits;
}

/* An event of its timer may still be on its way, so it is freed at the end. */
static void op_remove(struct loop_event *common) { op_disarm(common); }

static int op_once(const struct loop *loop, uint64_t after_ns, loop_fn fn, void *context)
{
	struct timer timer = { .once = fn, .context = context };

	schedule(*(unsigned *)loop->on, &timer, after_ns);
	return 0;
}

/* A daemon's loop ends, and it exits: in order, or because it hears nothing of the others. */
static void op_stop(const struct loop *loop)
{
	struct daemon *daemon = &daemons[*(unsigned *)loop->on];

	daemon->gave_up = daemon->node.failed || daemon->silent;
	if (daemon->gave_up)
		daemon_dies(daemon->node.o.node);
	else
		daemon_ends(daemon->node.o.node);
}

struct loop world_loop(unsigned node)
{
	static const struct loop_ops ops = { op_now_ns, op_now_ns,   op_add,
					     op_arm,	op_disarm,   op_is_armed,
					     op_remove, op_once,     op_stop };

	loops.number[node] = node;
	return (struct loop){ &ops, &loops.number[node] };
}

void world_look_at_files(void)
{
	for (struct sim_event_of_loop *event = loops.events; event; event = event->next)
		look_at_file(event);
}

static void fire(struct sim_event_of_loop *event)
{
	bool lasts = event->kind == LOOP_READ || event->kind == LOOP_WRITE;
	uint64_t armed = event->armed;

	if (!lasts)
		event->armed = 0;
	event->fn(event->context);
	if (!is_of_file(event))
		return;
	user_look();
	if (lasts && event->armed == armed)
		op_arm(&event->common, 0);
}

/* Checkpoints are taken for ever; but when all processors are done, the run must end. */
void loops_on_timer(const struct sim_event *event)
{
	struct timer timer;

	memcpy(&timer, event->payload, sizeof timer);
	if (timer.life != daemons[event->node].life)
		return;
	if (timer.once)
		timer.once(timer.context);
	else if (timer.event->armed == timer.armed &&
		 (machine->cpus_running || !owner_is_checkpoint(timer.event)))
		fire(timer.event);
}

void loops_signal(unsigned node, int number)
{
	for (struct sim_event_of_loop *event = loops.events; event; event = event->next)
		if (event->kind == LOOP_SIGNAL && event->fd == number && event->node == node &&
		    event->life == daemons[node].life)
			event->fn(event->context);
}

void loops_close(void)
{
	while (loops.events) {
		struct sim_event_of_loop *event = loops.events;

		loops.events = event->next;
		free(event);
	}
}
