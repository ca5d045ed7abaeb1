/* loop.h - the loop of a program, which is passed in: its clock, its timers, and the descriptors
 * that it watches.  vmm/shared/loop_event.c makes one on libevent.  The simulator makes its own
 * (tests/sim/daemon_loop.c), so that the code of the node daemon and of the machine's owner runs
 * there as it is.
 *
 * Rules of use: an event is made once, armed as often as needed, and freed by its owner.  A timer
 * and an event of LOOP_READ_ONCE or LOOP_WRITE_ONCE are armed until they have fired; those of
 * LOOP_READ, LOOP_WRITE and LOOP_SIGNAL stay armed.  A function is called by the loop alone, never
 * by one of the functions below.
 */
#ifndef VMM_SHARED_LOOP_H
#define VMM_SHARED_LOOP_H

#include <stdbool.h>
#include <stdint.h>

enum loop_kind {
	LOOP_TIMER,
	/* with a descriptor of its own, so that arming another timer costs no host call (TRICKS:
	 * timer-descriptors) */
	LOOP_OWN_TIMER,
	LOOP_READ,
	LOOP_READ_ONCE,
	LOOP_WRITE,
	LOOP_WRITE_ONCE,
	LOOP_SIGNAL,
};

typedef void (*loop_fn)(void *context);

struct loop;
struct loop_event;
struct loop_ops {
	uint64_t (*now_ns)(const struct loop *loop);  /* CLOCK_MONOTONIC */
	uint64_t (*date_ns)(const struct loop *loop); /* CLOCK_REALTIME */
	struct loop_event *(*add)(const struct loop *loop, enum loop_kind kind, int number,
				  loop_fn fn, void *context);
	int (*arm)(struct loop_event *event, uint64_t after_ns);
	void (*disarm)(struct loop_event *event);
	bool (*is_armed)(const struct loop_event *event);
	void (*remove)(struct loop_event *event);
	int (*once)(const struct loop *loop, uint64_t after_ns, loop_fn fn, void *context);
	void (*stop)(const struct loop *loop);
};

/* Of each implementation's events the first member. */
struct loop_event { const struct loop_ops *ops; };
struct loop { const struct loop_ops *ops; void *on; };

enum { LOOP_MS = 1000000, LOOP_S = 1000000000 }; /* in ns */

static inline uint64_t loop_now_ns(const struct loop *loop) { return loop->ops->now_ns(loop); }
static inline uint64_t loop_date_ns(const struct loop *loop) { return loop->ops->date_ns(loop); }

/* Make an event, not armed.  `number` is the descriptor or the signal.  NULL: no memory, or no
 * descriptor is free. */
static inline struct loop_event *loop_add(const struct loop *loop, enum loop_kind kind, int number,
					  loop_fn fn, void *context)
{
	return loop->ops->add(loop, kind, number, fn, context);
}

static inline struct loop_event *loop_timer(const struct loop *loop, loop_fn fn, void *context)
{
	return loop->ops->add(loop, LOOP_TIMER, -1, fn, context);
}

/* Arm an event: a timer for this time from now, another event now.  Return 0 or -1. */
static inline int loop_after(struct loop_event *timer, uint64_t ns)
{
	return timer->ops->arm(timer, ns);
}

static inline int loop_watch(struct loop_event *event) { return event->ops->arm(event, 0); }
static inline void loop_disarm(struct loop_event *event) { event->ops->disarm(event); }
static inline bool loop_is_armed(const struct loop_event *event)
{
	return event->ops->is_armed(event);
}

/* Disarm and free an event.  NULL: nothing happens. */
static inline void loop_remove(struct loop_event *event)
{
	if (event)
		event->ops->remove(event);
}

/* Call a function once, after this time.  Return 0 or -1. */
static inline int loop_once(const struct loop *loop, uint64_t after_ns, loop_fn fn, void *context)
{
	return loop->ops->once(loop, after_ns, fn, context);
}

/* End the loop, when the running function has returned. */
static inline void loop_stop(const struct loop *loop) { loop->ops->stop(loop); }

struct event_base;
struct loop loop_on_event_base(struct event_base *base);

#endif
