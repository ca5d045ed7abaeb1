/* loop_event.c - the loop of loop.h on libevent and the host's clock. */
#include "vmm/shared/loop.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"

struct watched {
	struct loop_event common;
	enum loop_kind kind;
	loop_fn fn;
	void *context;
	struct event *event;
	int timer_fd; /* of LOOP_OWN_TIMER; otherwise -1 */
	bool armed;   /* LOOP_OWN_TIMER */
};

static struct timeval to_timeval(uint64_t ns)
{
	return (struct timeval){ (time_t)(ns / LOOP_S), (suseconds_t)(ns % LOOP_S / 1000) };
}

static uint64_t op_now_ns(const struct loop *loop)
{
	(void)loop;
	return clock_now_ns();
}

static uint64_t op_date_ns(const struct loop *loop)
{
	(void)loop;
	return clock_date_ns();
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	struct watched *watched = arg;
	uint64_t times;

	(void)fd, (void)what;
	if (watched->kind == LOOP_OWN_TIMER) {
		if (read(watched->timer_fd, &times, sizeof times) != sizeof times)
			return; /* it was armed again meanwhile */
		watched->armed = false;
	}
	watched->fn(watched->context);
}

static void op_remove(struct loop_event *event)
{
	struct watched *watched = (struct watched *)event;

	if (watched->event)
		event_free(watched->event);
	if (watched->timer_fd >= 0)
		close(watched->timer_fd);
	free(watched);
}

static struct loop_event *op_add(const struct loop *loop, enum loop_kind kind, int number,
				 loop_fn fn, void *context)
{
	static const short what[] = {
		[LOOP_TIMER] = 0,
		[LOOP_OWN_TIMER] = EV_READ | EV_PERSIST,
		[LOOP_READ] = EV_READ | EV_PERSIST,
		[LOOP_READ_ONCE] = EV_READ,
		[LOOP_WRITE] = EV_WRITE | EV_PERSIST,
		[LOOP_WRITE_ONCE] = EV_WRITE,
		[LOOP_SIGNAL] = EV_SIGNAL | EV_PERSIST,
	};
	struct watched *watched = malloc(sizeof *watched);

	if (!watched)
		return NULL;
	*watched = (struct watched){ { loop->ops }, kind, fn, context, NULL, -1, false };
	if (kind == LOOP_OWN_TIMER)
		number = watched->timer_fd = timerfd_create(CLOCK_MONOTONIC,
							    TFD_NONBLOCK | TFD_CLOEXEC);
	if (kind != LOOP_OWN_TIMER || number >= 0)
		watched->event = event_new(loop->on, number, what[kind], on_event, watched);
	if (!watched->event || (kind == LOOP_OWN_TIMER && event_add(watched->event, NULL))) {
		op_remove(&watched->common);
		return NULL;
	}
	return &watched->common;
}

static int set_own_timer(struct watched *watched, uint64_t ns)
{
	const struct itimerspec when = { .it_value = { (time_t)(ns / LOOP_S),
						       (long)(ns % LOOP_S) } };

	watched->armed = ns;
	return timerfd_settime(watched->timer_fd, 0, &when, NULL);
}

static int op_arm(struct loop_event *event, uint64_t after_ns)
{
	struct watched *watched = (struct watched *)event;
	const struct timeval after = to_timeval(after_ns);

	if (watched->kind == LOOP_OWN_TIMER)
		return set_own_timer(watched, after_ns ? after_ns : 1);
	return event_add(watched->event, watched->kind == LOOP_TIMER ? &after : NULL);
}

static void op_disarm(struct loop_event *event)
{
	struct watched *watched = (struct watched *)event;

	if (watched->kind == LOOP_OWN_TIMER)
		set_own_timer(watched, 0);
	else
		event_del(watched->event);
}

static bool op_is_armed(const struct loop_event *event)
{
	const struct watched *watched = (const struct watched *)event;

	if (watched->kind == LOOP_OWN_TIMER)
		return watched->armed;
	return event_pending(watched->event, EV_TIMEOUT | EV_READ | EV_WRITE | EV_SIGNAL, NULL);
}

struct single { loop_fn fn; void *context; };

static void on_single(evutil_socket_t fd, short what, void *arg)
{
	const struct single single = *(struct single *)arg;

	(void)fd, (void)what;
	free(arg);
	single.fn(single.context);
}

static int op_once(const struct loop *loop, uint64_t after_ns, loop_fn fn, void *context)
{
	const struct timeval after = to_timeval(after_ns);
	struct single *single = malloc(sizeof *single);

	if (!single)
		return -1;
	*single = (struct single){ fn, context };
	if (!event_base_once(loop->on, -1, EV_TIMEOUT, on_single, single, &after))
		return 0;
	free(single);
	return -1;
}

static void op_stop(const struct loop *loop) { event_base_loopbreak(loop->on); }

static const struct loop_ops ops = { op_now_ns, op_date_ns,  op_add,	op_arm, op_disarm,
				     op_is_armed, op_remove, op_once,	op_stop };

struct loop loop_on_event_base(struct event_base *base)
{
	return (struct loop){ &ops, base };
}
