/* runtime.c - one node per process, one lock around it, and who runs the event loop.
 *
 * Exactly one thread at a time waits for events (`driver`).
 *
 * A thread that waits for a message runs the loop itself.  Handing a message from a loop thread to
 * a waiting thread costs more than the message: tens of microseconds when another processor must be
 * woken.
 *
 * While no call waits, a thread of the library's own runs the loop.  It keeps away for AWAY_US
 * after each wait of the application, so that it does not disturb a program that only receives.  If
 * the next wait comes before this thread had anything to do, it came in vain, and the wait has to
 * make it leave (20 us on one processor).  Then it keeps away for AWAY_LONG, until it is needed.
 *
 * A program that computes, and asks for messages in between without waiting, reads the sockets
 * itself when it asks.  Otherwise it would hear of messages only after AWAY_US, at the price of a
 * context switch for each.
 *
 * In a caller's loop (ph_init_in_loop()) there is no such thread.
 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "phoenix/calls/runtime.h"
#include "phoenix/flow/flow.h"
#include "phoenix/link/link.h"
#include "phoenix/node/life.h"

enum { AWAY_US = 2000, AWAY_LONG = 4000, FOREVER_STEP = 1000000 };

struct runtime rt = { .fd = -1 };
_Thread_local unsigned runtime_depth;

static pthread_mutex_t mutex;
static atomic_uint wanted;		/* how many threads wait for the mutex */
static pthread_cond_t changed;		/* the driver has left, or something has arrived */
static pthread_cond_t stopping;		/* ends the sleep of the library's thread */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t away_us = AWAY_US;	/* how long the library's thread keeps away */

/* ---- errors ---- */

const char *ph_strerror(int error)
{
	static const char *const texts[] = {
		"success",
		"the library is not initialised",
		"used in the child of a fork",
		"virtual node out of bounds",
		"too large",
		"the queue is full",
		"out of memory",
		"error in the configuration",
		"error in a message log",
		"no free port",
		"host not reached",
		"virtual node assumed twice",
		"refused",
		"protocol violated by a peer",
		"node gone",
		"timed out",
		"invalid argument",
		"a migration is under way",
		"system error",
	};

	return error > 0 || -error >= (int)(sizeof texts / sizeof *texts) ? "unknown error"
									  : texts[-error];
}

static void report(int error, const char *text)
{
	if (rt.error_fn)
		rt.error_fn(rt.error_arg, error, text);
	else
		fprintf(stderr, "phnx: %s: %s\n", ph_strerror(error), text);
}

int runtime_fail(int error, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	runtime_lock();
	report(error, text);
	runtime_unlock();
	return error;
}

void ph_set_error_callback(ph_error_fn fn, void *arg)
{
	runtime_lock();
	rt.error_fn = fn;
	rt.error_arg = arg;
	runtime_unlock();
}

/* ---- the lock ---- */

static void make_lock(void)
{
	pthread_mutexattr_t attr;
	pthread_condattr_t cond;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&mutex, &attr);
	pthread_condattr_init(&cond);
	pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &cond);
	pthread_cond_init(&stopping, &cond);
}

/* In the child of a fork the node is the parent's: the sockets are shared, and the library's
 * thread does not exist. */
static void in_child(void)
{
	rt.forked |= rt.net != NULL;
	if (rt.ph)
		doubt_unlock(rt.ph);	/* the locks on files would last as long as the child */
	rt.net = NULL;
	rt.ph = NULL;
	rt.driver = NOBODY;
	rt.waiters = rt.senders = rt.corked = 0;
	rt.fd = -1;
	runtime_depth = 0;
	wanted = 0;
	make_lock();
}

static void first_time(void)
{
	make_lock();
	pthread_atfork(NULL, NULL, in_child);
}

void runtime_lock(void)
{
	pthread_once(&once, first_time);
	if (pthread_mutex_trylock(&mutex)) {
		/* a thread that polls with the lock held notices this */
		atomic_fetch_add(&wanted, 1);
		pthread_mutex_lock(&mutex);
		atomic_fetch_sub(&wanted, 1);
	}
	if (runtime_depth++ == 0 && rt.net)
		net_time_goes_on(rt.net);
}

void runtime_unlock(void)
{
	runtime_depth--;
	pthread_mutex_unlock(&mutex);
}

int runtime_enter(const char *call)
{
	runtime_lock();
	if (rt.ph)
		return 0;
	int error = runtime_fail(rt.forked ? PH_EFORK : PH_ENOTINIT, "%s()", call);
	runtime_unlock();
	return error;
}

void runtime_settle(void)
{
	if (rt.net && runtime_depth == 1)
		net_settle(rt.net);
	else if (rt.net && rt.lodger)
		/* the rest of the handler may take long, or wake another program
		 * (TRICKS: send-from-handlers) */
		net_push_burst(rt.net, rt.corked, link_has_more(rt.ph));
}

void runtime_send(void)
{
	if (rt.net && runtime_depth == 1)
		net_send(rt.net);
}

void runtime_leave(void)
{
	runtime_settle();
	runtime_unlock();
}

/* Most programs answer a message, and the sender waits for the answer.  So what can wait is done
 * after it.  If there is no answer, the library's thread does it when it takes over. */
bool runtime_may_answer(void)
{
	return runtime_depth == 1 && !rt.lodger && rt.driver == NOBODY && net_can_wait(rt.net);
}

/* ---- waiting ---- */

uint64_t runtime_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void wait_for(pthread_cond_t *what, uint64_t us)
{
	uint64_t at = runtime_now() + us;
	struct timespec t = { (time_t)(at / 1000000), (long)(at % 1000000) * 1000 };

	pthread_cond_timedwait(what, &mutex, &t);
	if (rt.net)
		net_time_goes_on(rt.net);
}

/* Runs the loop, or waits for the thread that runs it. */
void runtime_wait(uint64_t deadline)
{
	uint64_t now = net_time(rt.net), left = deadline <= now ? 0 : deadline - now;

	left = left < FOREVER_STEP ? left : FOREVER_STEP;
	if (rt.driver == NOBODY) {
		rt.driver = APPLICATION;
		net_settle(rt.net);
		bool came = left && net_stay_awake(rt.net, &wanted);
		if (!came) {
			net_watch_all(rt.net);
			runtime_unlock();
			net_loop(rt.net, left);
			runtime_lock();
		}
		rt.driver = NOBODY;
		rt.sent = 0;
		rt.sent_bytes = 0;
		if (rt.net) {
			rt.last_drive_us = net_time(rt.net);
			if (!came || net_has_notes(rt.net))
				/* else the caller does so when it leaves or waits again */
				net_settle(rt.net);
		}
		if (rt.waiters)
			pthread_cond_broadcast(&changed);
		return;
	}
	if (rt.driver == BACKGROUND) {
		away_us = AWAY_LONG;
		net_wake(rt.net);
	}
	rt.waiters++;
	wait_for(&changed, left);
	rt.waiters--;
}

void runtime_wait_for_room(void)
{
	rt.senders++;
	runtime_wait(UINT64_MAX);
	rt.senders--;
}

/* Another thread may wait for room for a message to this node itself. */
void runtime_took(void)
{
	if (!rt.senders)
		return;
	net_wake(rt.net);
	pthread_cond_broadcast(&changed);
}

/* A program that waits by ph_get_fd() between its calls needs the library's thread.  A call from
 * a handler must not read the sockets. */
bool runtime_look(void)
{
	if (rt.lodger || runtime_depth > 1 || rt.driver == APPLICATION)
		return false;
	if (rt.fd < 0)
		rt.last_drive_us = net_time(rt.net);
	if (rt.driver == BACKGROUND || !net_look(rt.net))
		return false;
	if (net_has_notes(rt.net))
		net_settle(rt.net);
	if (rt.waiters)
		pthread_cond_broadcast(&changed);
	return true;
}

/* A thread that only sends reads the acknowledgements itself.  Otherwise the library's thread
 * would take the processor and the lock from it for each.  It must not do so if that could call
 * functions of the application, which may hold a lock of its own here. */
void runtime_sent(size_t bytes)
{
	rt.sent_bytes += bytes;
	if (++rt.sent < ACK_EVERY && rt.sent_bytes < ACK_BYTES)
		return;
	rt.sent = 0;
	rt.sent_bytes = 0;
	if (!node_calls_back(rt.ph) && runtime_look())
		runtime_settle();
}

static void *background(void *arg)
{
	(void)arg;
	runtime_lock();
	while (!rt.stop) {
		uint64_t now = runtime_now(), due = rt.last_drive_us + away_us;
		bool others = rt.driver != NOBODY || rt.waiters;
		if (others || now < due) {
			if (rt.driver == NOBODY && rt.waiters)
				/* one of the waiting threads becomes the driver */
				pthread_cond_broadcast(&changed);
			wait_for(&stopping, others ? AWAY_US : due - now);
			continue;
		}
		rt.driver = BACKGROUND;
		net_settle(rt.net);
		net_watch_all(rt.net);
		runtime_unlock();
		net_loop(rt.net, FOREVER_STEP);
		runtime_lock();
		rt.driver = NOBODY;
		if (!rt.waiters)
			away_us = AWAY_US;
		net_settle(rt.net);
		if (rt.waiters)
			pthread_cond_broadcast(&changed);
	}
	runtime_unlock();
	return NULL;
}

bool runtime_may_wait(const char *call)
{
	if (runtime_depth == 1)
		return true;
	runtime_fail(PH_EINVAL, "%s() must not be called from a handler: it would wait", call);
	return false;
}

void runtime_arrived(void)
{
	uint64_t one = 1;

	if (rt.fd < 0)
		return;
	bool waiting = rt.ph && flow_has_received(rt.ph);
	if (waiting != rt.fd_set) {
		rt.fd_set = waiting;
		if ((waiting ? write(rt.fd, &one, sizeof one) : read(rt.fd, &one, sizeof one)) < 0)
			rt.fd_set = !waiting;
	}
}

/* ---- start and end ---- */

/* In a caller's loop: the callback that has noted an event handles it at once. */
static void stirred(void)
{
	runtime_lock();
	runtime_leave();
}

int runtime_start(ph_vp_t lower, ph_vp_t upper, struct event_base *base)
{
	static const struct net_owner owner = { report, runtime_arrived, stirred };

	rt.net = net_new(&owner, lower, upper, base);
	rt.ph = rt.net ? net_phnx(rt.net) : NULL;
	if (!rt.ph)
		return runtime_fail(PH_ENOMEM, "out of memory: the library cannot start");
	rt.stop = rt.forked = false;
	rt.driver = NOBODY;
	rt.last_drive_us = 0;
	rt.lodger = base != NULL;
	if (!base && pthread_create(&rt.thread, NULL, background, NULL)) {
		net_free(rt.net);
		rt.net = NULL;
		rt.ph = NULL;
		return runtime_fail(PH_ESYSTEM, "cannot start a thread");
	}
	return 0;
}

/* Makes all waiting threads return: they find that the node is gone.  What they wait in may be
 * freed only after that. */
static void send_home(void)
{
	enum { STEP = 1000 };

	rt.ph = NULL;
	while (rt.driver == APPLICATION || rt.waiters) {
		net_wake(rt.net);
		pthread_cond_broadcast(&changed);
		wait_for(&stopping, STEP);
	}
}

void runtime_stop(void)
{
	rt.stop = true;
	send_home();
	net_wake(rt.net);
	pthread_cond_broadcast(&stopping);
	runtime_unlock();
	if (!rt.lodger)
		pthread_join(rt.thread, NULL);
	runtime_lock();
	net_free(rt.net);
	rt.net = NULL;
	if (rt.fd >= 0)
		close(rt.fd);
	rt.fd = -1;
	rt.fd_set = false;
}
