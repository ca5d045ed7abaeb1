/* net_loop.c - a node on real connections: the loop.
 *
 * Readiness comes from libevent; bytes go directly to the sockets.  There are no bufferevents,
 * since a message is written at once by the thread that sends it and read by the thread that waits
 * for it.
 */
#include <errno.h>
#include <event2/thread.h>
#include <poll.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "phoenix/net/net_private.h"
#include "phoenix/node/life.h"
#include "phoenix/routing/routes.h"

/* ---- what the node asks of its environment ---- */

uint64_t net_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t net_time(struct net *net)
{
	if (!net->now)
		net->now = net_now();
	return net->now;
}

void net_time_goes_on(struct net *net)
{
	net->now = 0;
}

static uint64_t op_now(void *ctx)
{
	return net_time(ctx);
}

static void op_random(void *ctx, void *buf, size_t n)
{
	(void)ctx;
	while (n) {
		ssize_t got = getrandom(buf, n, 0);
		if (got > 0) {
			buf = (char *)buf + got;
			n -= (size_t)got;
		}
	}
}

static void op_kick(void *ctx, struct plink *l)
{
	(void)ctx;
	conn_has_more(l->transport);
}

static void op_report(void *ctx, int error, const char *text)
{
	((struct net *)ctx)->owner->report(error, text);
}

static void op_arrived(void *ctx)
{
	((struct net *)ctx)->owner->arrived();
}

static void op_dial(void *ctx, struct contact *c)
{
	dial_start(ctx, c);
}

static void op_undial(void *ctx, struct contact *c)
{
	dial_stop(ctx, c);
}

static void op_close(void *ctx, struct plink *l)
{
	(void)ctx;
	conn_close(l->transport);
}

static const struct phnx_ops ops = { op_now,  op_random, op_dial,   op_undial,
				     op_kick, op_close,	 op_report, op_arrived };

/* ---- timer and wake-up ---- */

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	net_woken(arg);	/* net_settle() reads the clock */
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	uint64_t times;

	(void)!read(fd, &times, sizeof times);
	((struct net *)arg)->armed = false;
	on_wake(fd, what, arg);
}

void net_be_wary(struct net *net)
{
	net->wary = true;
}

void net_set_ssh_starter(struct net *net, int (*fn)(void *, const char *, int, int, int), void *arg)
{
	net->ssh_starter = fn;
	net->ssh_starter_arg = arg;
}

/* ---- the loop ---- */

/* Sets the node's only timer, which is a descriptor (TRICKS: one-timer). */
static void arm(struct net *net, uint64_t at)
{
	const struct itimerspec when = { .it_value = { (time_t)(at / 1000000),
						       (long)(at % 1000000) * 1000 + 1 } };

	net->due = at;
	net->armed = true;
	timerfd_settime(net->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void net_look_by(struct net *net, uint64_t when)
{
	if (when < net->due)
		arm(net, when);
}

static void sweep(struct net *net, uint64_t now)
{
	if (net->deaf_until && now >= net->deaf_until)
		net_hear_again(net);
	for (struct conn *k = net->conns, *next; k; k = next) {
		next = k->next;
		bool another = k->state == CONNECTING && k->address;
		uint64_t limit = k->state == DRAINING ? RETRY_MAX
				 : another	      ? ADDRESS_TIMEOUT
						      : link_handshake_timeout(net->ph, now);
		if (k->l || now < k->since_us + limit)
			continue;
		if (k->state == DRAINING)
			conn_free(k);
		else if (another)
			dial_next(k);
		else
			conn_lost(k);
		next = net->conns;
	}
}

void net_send(struct net *net)
{
	while (net->dirty) {
		struct conn *k = net->dirty;
		net->dirty = k->dirty_next;
		conn_flush(k);
	}
}

/* Whether this connection's peer came by itself and has not proved who it is. */
static bool is_stranger(const struct conn *k)
{
	return !k->contact && (!k->l || k->l->state != LINK_UP);
}

static void handle_ready(struct conn *k, unsigned what)
{
	if (what & READY_SAID)
		ssh_hear(k);
	if (what & READY_WRITE && k->state == OPEN)
		conn_has_more(k);	/* net_send() follows */
	if (what & READY_RESOLVED)
		dial_resolved(k);
	else if (k->state == CONNECTING && what & READY_WRITE)
		dial_connected(k);
	else if (k->state == PEEKING)
		conn_peek(k);
	else if (k->state == DRAINING)
		conn_drain(k);
	else if (what & READY_READ && (k->state == SECURING || k->state == OPEN))
		conn_read(k);
}

static bool is_there(const struct net *net, const struct conn *k)
{
	const struct conn *one = net->conns;

	while (one && one != k)
		one = one->next;
	return one;
}

/* Returns the processor time of this thread. */
static uint64_t worked_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Handles a connection, and counts the time if its peer is a stranger (patience.h). */
static void handle_counted(struct net *net, struct conn *k, unsigned what)
{
	uint64_t before, cost;

	if (*net->unix_path || !is_stranger(k)) {
		handle_ready(k, what);
		return;
	}
	before = worked_us();
	handle_ready(k, what);
	cost = worked_us() - before;
	patience_spend(&net->patience, net_now(), cost);
	if (!is_there(net, k))
		return;
	k->cost_us += cost;
	if (is_stranger(k))
		return;
	patience_give_back(&net->patience, k->cost_us);
	k->cost_us = 0;
}

bool net_has_notes(const struct net *net)
{
	return net->knock || net->notes.any;
}

void net_settle(struct net *net)
{
	struct conn *k;
	unsigned what;

	if (net->knock && atomic_exchange(&net->knock, false))
		net_accept_all(net);
	if (net->notes.any && atomic_exchange(&net->notes.any, false))
		while ((k = notes_pop(net, &what)))
			handle_counted(net, k, what);
	uint64_t now = net_time(net);
	if (now >= net->due)
		sweep(net, now);
	uint64_t due = node_poll(net->ph);
	if (due < net->due || now >= net->due || !net->armed)
		arm(net, due);
	net_send(net);
}

bool net_can_wait(const struct net *net)
{
	return !net_has_notes(net) && !net->dirty && node_can_wait(net->ph);
}

/* Stops watching the connection that brought the last bytes while it answers promptly; look()
 * reads from it anyway.  A socket in an epoll set calls epoll for each packet, at the sender's
 * expense if the sender is on this host.  Before a thread sleeps, it calls net_watch_all(). */
static void leave_out(struct net *net)
{
	if (net->left_out || net->lodger || !net->hot || event_del(net->hot->readable))
		return;
	net->left_out = net->hot;
}

void net_watch_all(struct net *net)
{
	if (net->left_out)
		event_add(net->left_out->readable, NULL);
	net->left_out = NULL;
	vigil_sleeps(&net->vigil);
}

/* Polls without waiting: the connection that brought the last bytes and, if it has none and
 * `all`, all others. */
static bool look(struct net *net, bool all)
{
	net->stirred = false;
	if (net->hot)
		conn_read(net->hot);
	if (!net->stirred && all)
		event_base_loop(net->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	return net->stirred;
}

bool net_look(struct net *net)
{
	enum { ALL_US = 100 };		/* it takes a microsecond */
	uint64_t now = net_time(net);
	bool all = now >= net->looked_us + ALL_US;

	if (all)
		net->looked_us = now;
	return look(net, all);
}

/* vigil.h says why. */
bool net_stay_awake(struct net *net, const atomic_uint *wanted)
{
	enum { OTHERS = 64 };
	struct vigil *v = &net->vigil;
	bool came = false;

	if (!vigil_begins(v))
		return false;
	if (vigil_is_prompt(v))	/* while the peer is at work, not before the answer to it */
		leave_out(net);
	uint64_t start = net_now(), now = start;
	for (unsigned turn = 0; now < start + VIGIL_US && !atomic_load(wanted); turn++) {
		bool taken = false;
		if (vigil_offers(v, turn)) {
			uint64_t before = now;
			sched_yield();
			now = net_now();
			taken = now >= before + VIGIL_OFFER_US;
		}
		net->now = now;
		came = look(net, turn % OTHERS == OTHERS - 1 || !net->hot);
		/* the clock was read just now: it is not read again before the answer */
		if (came) {
			vigil_answered(v, taken);
			break;
		}
		now = net_now();
	}
	net->now = now;
	bool late = now >= start + VIGIL_US;
	if (!late && !came)
		return false;		/* another thread wants the lock */
	vigil_ends(v, late);
	return came;
}

void net_loop(struct net *net, uint64_t timeout_us)
{
	uint64_t now = net_now();

	/* else net->timer expires first */
	if (timeout_us < UINT64_MAX - now && now + timeout_us < net->due) {
		struct timeval t = { (time_t)(timeout_us / 1000000),
				     (suseconds_t)(timeout_us % 1000000) };
		event_add(net->wake, &t);
	}
	event_base_loop(net->base, EVLOOP_ONCE);
}

void net_wake(struct net *net)
{
	net->stirred = true;
	/* wakes a loop that is about to begin as well; event_base_loopbreak() would be forgotten
	 * then */
	event_active(net->wake, 0, 0);
}

void net_push(struct net *net)
{
	for (struct conn *k = net->dirty; k; k = k->dirty_next)
		conn_push(k);
}

static size_t queued_bytes(const struct net *net)
{
	size_t bytes = 0;

	for (const struct conn *k = net->dirty; k; k = k->dirty_next)
		bytes += k->l ? k->l->out_bytes : 0;
	return bytes;
}

/* A write to a socket costs as much as the work for a small message.  The first message of a burst
 * goes at once. */
void net_push_burst(struct net *net, bool corked, bool more)
{
	enum { BURST_BYTES = 16384, BURST_US = 30 };
	bool few = net->dirty && queued_bytes(net) < BURST_BYTES;
	uint64_t now;

	if (!net->dirty || (few && corked))
		return;
	now = net_now();
	if (few && more && now < net->pushed_us + BURST_US)
		return;
	net->pushed_us = now;
	net_push(net);
}

void net_flush(struct net *net, uint64_t timeout_us)
{
	enum { STEP_MS = 10 };
	uint64_t end = net_now() + timeout_us;

	for (struct conn *k = net->conns; k; k = k->next)
		while (conn_push(k) && net_now() < end)
			poll(&(struct pollfd){ .fd = k->fd, .events = POLLOUT }, 1, STEP_MS);
}

void net_break(struct net *net)
{
	for (struct conn *k = net->conns; k; k = k->next)
		if (k->state == OPEN && k->l && k->l->state == LINK_UP)
			shutdown(k->fd, SHUT_RDWR);
}

void net_shutdown(struct net *net)
{
	for (int f = 0; f < 2; f++)
		if (net->listeners[f])
			event_del(net->listeners[f]);
	net->deaf_until = 0;
	net_send(net);
	for (struct plink *l; (l = link_first(net->ph));)
		link_close(l, 0, NULL);
}

bool net_closed(struct net *net)
{
	for (struct conn *k = net->conns; k; k = k->next)
		if (k->state == DRAINING)
			return false;
	return true;
}

struct phnx *net_phnx(struct net *net)
{
	return net->ph;
}

struct net *net_new(const struct net_owner *owner, ph_vp_t lower, ph_vp_t upper,
		    struct event_base *base)
{
	struct net *net = calloc(1, sizeof *net);

	if (!net)
		return NULL;
	if (!base)
		evthread_use_pthreads();
	net->owner = owner;
	net->listen_fds[0] = net->listen_fds[1] = -1;
	net->lodger = base != NULL;
	net->base = base ? base : event_base_new();
	net->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	net->timer =
		net->base ? event_new(net->base, net->timer_fd, EV_READ | EV_PERSIST, on_timer, net)
			  : NULL;
	net->wake = net->base ? event_new(net->base, -1, 0, on_wake, net) : NULL;
	notes_init(net);
	net->ph = net->timer && net->wake && !event_add(net->timer, NULL)
			  ? node_new(&ops, net, lower, upper)
			  : NULL;
	if (!net->ph) {
		net_free(net);
		return NULL;
	}
	char host[64] = "";
	gethostname(host, sizeof host - 1);
	contact_set_host(net->ph, host);
	return net;
}

void net_free(struct net *net)
{
	if (net->ph)
		node_free(net->ph);
	while (net->conns)
		conn_free(net->conns);
	/* no thread is in the loop any more */
	notes_cancel(net);
	if (net->dns)
		evdns_base_free(net->dns, 0);
	notes_free(net);
	for (int f = 0; f < 2; f++) {
		if (net->listeners[f])
			event_free(net->listeners[f]);
		if (net->listen_fds[f] >= 0)
			close(net->listen_fds[f]);
	}
	if (*net->unix_path)
		unlink(net->unix_path);
	if (net->timer)
		event_free(net->timer);
	if (net->timer_fd >= 0)
		close(net->timer_fd);
	if (net->wake)
		event_free(net->wake);
	if (net->base && !net->lodger)
		event_base_free(net->base);
	SSL_CTX_free(net->server);
	SSL_CTX_free(net->client);
	free(net);
}
