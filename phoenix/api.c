/* api.c - the calls of phnx.h: one node per process, one lock around it, and who runs the event loop.
 *
 * Who runs the loop.  Exactly one thread at a time waits for events (`driver`).  A thread that waits for a message runs the
 * loop itself: handing a message from a loop thread to a waiting thread costs more (tens of microseconds when another
 * processor must be woken) than the message.  While no call waits, a thread of the library's own runs the loop; it keeps
 * away for AWAY_US after each wait of the application's, so that a program that only receives never meets it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "phoenix/msglog.h"
#include "phoenix/net.h"
#include "phoenix/secret.h"

enum { AWAY_US = 2000, FOREVER_STEP = 1000000, FAREWELL_US = 3000000 };

ph_vp_t PH_VP_LOWER_BOUND, PH_VP_UPPER_BOUND;

static struct {
	struct net *net;
	struct phnx *ph;
	bool shared_secret, stop, forked;
	enum { NOBODY, BACKGROUND, APPLICATION } driver;
	unsigned waiters;
	uint64_t last_drive_us;
	pthread_t thread;
	int fd;			/* of ph_get_fd(), or -1 */
	bool fd_set;
	ph_error_fn error_fn;
	void *error_arg;
} g = { .fd = -1 };

static pthread_mutex_t mutex;
static pthread_cond_t changed;		/* the driver has gone, or something has arrived */
static pthread_cond_t stopping;		/* ends the background thread's sleep */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local unsigned depth;	/* more than 1: called from a handler */

/* ---- errors ---- */

const char *ph_strerror(int error)
{
	static const char *const texts[] = {
		"success", "the library is not initialised", "used in the child of a fork", "virtual node out of bounds",
		"too large", "the queue is full", "out of memory", "error in the configuration", "error in a message log",
		"no free port", "unknown host", "virtual node assumed twice", "refused", "protocol violated by a peer",
		"node gone", "timed out", "invalid argument", "a migration is under way", "system error",
	};

	return error > 0 || -error >= (int)(sizeof texts / sizeof *texts) ? "unknown error" : texts[-error];
}

static void report(int error, const char *text)
{
	if (g.error_fn)
		g.error_fn(g.error_arg, error, text);
	else
		fprintf(stderr, "phnx: %s: %s\n", ph_strerror(error), text);
}

static int __attribute__((format(printf, 2, 3))) fail(int error, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	report(error, text);
	return error;
}

void ph_set_error_callback(ph_error_fn fn, void *arg)
{
	g.error_fn = fn;
	g.error_arg = arg;
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

/* In the child of a fork the node is the parent's: its sockets are shared, its thread does not exist. */
static void in_child(void)
{
	g.forked |= g.net != NULL;
	g.net = NULL;
	g.ph = NULL;
	g.driver = NOBODY;
	g.fd = -1;
	depth = 0;
	make_lock();
}

static void first_time(void)
{
	make_lock();
	pthread_atfork(NULL, NULL, in_child);
}

static void lock(void)
{
	pthread_once(&once, first_time);
	pthread_mutex_lock(&mutex);
	depth++;
}

static void unlock(void)
{
	depth--;
	pthread_mutex_unlock(&mutex);
}

/* Locks, if there is a node; else reports, and does not. */
static int enter(const char *call)
{
	lock();
	if (g.ph)
		return 0;
	int error = g.forked ? PH_EFORK : PH_ENOTINIT;
	unlock();
	return fail(error, "%s()", call);
}

static void leave(void)
{
	if (g.net && depth == 1)
		net_settle(g.net);
	unlock();
}

/* ---- waiting ---- */

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void wait_for(pthread_cond_t *what, uint64_t us)
{
	uint64_t at = now_us() + us;
	struct timespec t = { (time_t)(at / 1000000), (long)(at % 1000000) * 1000 };

	pthread_cond_timedwait(what, &mutex, &t);
}

/* Waits a step, at most until `deadline`: runs the loop, or lets the thread that runs it go on. */
static void wait_step(uint64_t deadline)
{
	uint64_t now = now_us(), left = deadline <= now ? 0 : deadline - now;

	left = left < FOREVER_STEP ? left : FOREVER_STEP;
	if (g.driver == NOBODY) {
		g.driver = APPLICATION;
		net_settle(g.net);
		unlock();
		net_loop(g.net, left);
		lock();
		g.driver = NOBODY;
		g.last_drive_us = now_us();
		if (g.net)
			net_settle(g.net);
		if (g.waiters)
			pthread_cond_broadcast(&changed);
		return;
	}
	if (g.driver == BACKGROUND)
		net_wake(g.net);
	g.waiters++;
	wait_for(&changed, left);
	g.waiters--;
}

static void *background(void *arg)
{
	(void)arg;
	lock();
	while (!g.stop) {
		uint64_t now = now_us();
		if (g.driver != NOBODY || g.waiters || now < g.last_drive_us + AWAY_US) {
			if (g.driver == NOBODY && g.waiters)
				pthread_cond_broadcast(&changed);	/* one of them drives */
			wait_for(&stopping, AWAY_US);
			continue;
		}
		g.driver = BACKGROUND;
		net_settle(g.net);
		unlock();
		net_loop(g.net, FOREVER_STEP);
		lock();
		g.driver = NOBODY;
		net_settle(g.net);
		if (g.waiters)
			pthread_cond_broadcast(&changed);
	}
	unlock();
	return NULL;
}

/* A handler runs in the loop: it must not wait for it. */
static bool may_wait(const char *call)
{
	if (depth == 1)
		return true;
	fail(PH_EINVAL, "%s() would wait in a handler", call);
	return false;
}

static void on_arrived(void)
{
	uint64_t one = 1;
	bool waiting = g.ph && g.ph->flows.received;

	if (g.fd >= 0 && waiting != g.fd_set) {
		g.fd_set = waiting;
		if ((waiting ? write(g.fd, &one, sizeof one) : read(g.fd, &one, sizeof one)) < 0)
			g.fd_set = !waiting;
	}
}

/* ---- initialisation ---- */

static const struct net_owner owner = { report, on_arrived };

static int load_secret(const char *session)
{
	char text[512] = "";
	int error = phnx_secret(session, g.ph->secret, &g.shared_secret, text, sizeof text);

	if (error)
		return fail(error, "%s", text);
	return 0;
}

void ph_init_runtime(ph_vp_t lower, ph_vp_t upper)
{
	lock();
	if (g.ph || lower < 0 || upper < lower || upper >= INT64_MAX - 1) {
		fail(PH_EINVAL, "%s", g.ph ? "the library is initialised already" : "impossible bounds");
		unlock();
		return;
	}
	g.net = net_new(&owner, lower, upper);
	g.ph = g.net ? net_phnx(g.net) : NULL;
	if (!g.ph) {
		fail(PH_ENOMEM, "cannot start");
		unlock();
		return;
	}
	PH_VP_LOWER_BOUND = lower;
	PH_VP_UPPER_BOUND = upper;
	g.stop = g.forked = false;
	g.driver = NOBODY;
	g.last_drive_us = 0;
	load_secret(NULL);
	if (pthread_create(&g.thread, NULL, background, NULL)) {
		net_free(g.net);
		g.net = NULL;
		g.ph = NULL;
		fail(PH_ESYSTEM, "cannot start a thread");
	}
	unlock();
}

void ph_set_session_id(const char *session)
{
	if (enter("ph_set_session_id"))
		return;
	if (g.ph->contacts || g.ph->me.n_addrs)
		fail(PH_EINVAL, "ph_set_session_id() after a listen port or contact point");
	else if (session && load_secret(session) == 0) {
		snprintf(g.ph->session, sizeof g.ph->session, "%s", session);
		g.ph->has_session = true;
	}
	leave();
}

static void listen_on(const int *ports, size_t n)
{
	int error = net_listen(g.net, ports, n, g.shared_secret);

	if (error)
		fail(error, "none of %zu ports from %d on can be listened to", n, ports[0]);
}

void ph_set_listen_port(int lower, int upper)
{
	if (enter("ph_set_listen_port"))
		return;
	if (lower < 1 || upper > 65536 || upper <= lower) {
		fail(PH_EINVAL, "[%d, %d) is no range of ports", lower, upper);
	} else {
		int *ports = malloc((size_t)(upper - lower) * sizeof *ports);
		for (int p = lower; ports && p < upper; p++)
			ports[p - lower] = p;
		if (ports)
			listen_on(ports, (size_t)(upper - lower));
		free(ports);
	}
	leave();
}

static void add_contact(const char *call, const char *host, int port, enum phnx_protocol protocol, const char *user)
{
	struct phnx_contact at = { .host = (char *)host, .port = port, .protocol = protocol, .user = (char *)user };

	if (enter(call))
		return;
	if (!host || !*host || *host == '-' || strlen(host) >= MAX_HOST || port < 1 || port > 65535)
		fail(PH_EINVAL, "%s(): not a host and port", call);
	else if (!phnx_add_contact(g.ph, &at, 0))
		fail(PH_ENOMEM, "%s()", call);
	else if (protocol == PHNX_TLS)
		g.ph->learn_protocol = PHNX_TLS;
	g.ph->routes.dirty = true;	/* let the timers see it */
	leave();
}

void ph_add_port_tcp(const char *hostname, int port)
{
	add_contact("ph_add_port_tcp", hostname, port, PHNX_TCP, NULL);
}

void ph_add_port_ssh(const char *hostname, int port, const char *user)
{
	add_contact("ph_add_port_ssh", hostname, port, PHNX_SSH, user);
}

void ph_add_port_ssl(const char *hostname, int port)
{
	add_contact("ph_add_port_ssl", hostname, port, PHNX_TLS, NULL);
}

static void read_config(const char *buf, size_t len, const char *tag, const char *file)
{
	struct phnx_config c;

	if (phnx_config_parse(&c, buf, len, tag)) {
		fail(PH_ECONFIG, "%s:%s", file, c.error);
	} else {
		for (size_t i = 0; i < c.n_contacts; i++) {
			phnx_add_contact(g.ph, c.contacts + i, 0);
			if (c.contacts[i].protocol == PHNX_TLS)
				g.ph->learn_protocol = PHNX_TLS;
		}
		if (c.n_ports)
			listen_on(c.ports, c.n_ports);
		g.ph->routes.dirty = true;
	}
	phnx_config_free(&c);
}

void ph_read_config(char *buf, size_t len, const char *config_tag)
{
	if (enter("ph_read_config"))
		return;
	read_config(buf, len, config_tag, "configuration");
	leave();
}

static void read_config_file(const char *name, const char *tag)
{
	FILE *f = fopen(name, "r");
	char *text = malloc(MAX_CONFIG_BYTES + 1);

	if (!f || !text)
		fail(PH_ECONFIG, "%s: %s", name, strerror(errno));
	else
		read_config(text, fread(text, 1, MAX_CONFIG_BYTES + 1, f), tag, name);
	if (f)
		fclose(f);
	free(text);
}

void ph_load_msgs(const char *filename)
{
	char text[512];

	if (enter("ph_load_msgs"))
		return;
	int error = msglog_load(g.ph, filename, text, sizeof text);
	if (error)
		fail(error, "%s", text);
	leave();
}

void ph_init(ph_vp_t lower, ph_vp_t upper, const char *config_file, const char *config_tag, const char *session,
	     const char *msg_log_file)
{
	lock();
	ph_init_runtime(lower, upper);
	if (g.ph) {
		if (session)
			ph_set_session_id(session);
		if (config_file && (!session || g.ph->has_session))
			read_config_file(config_file, config_tag);
		if (msg_log_file)
			ph_load_msgs(msg_log_file);
	}
	leave();
}

/* ---- the end ---- */

void ph_invalidate_routing(void)
{
	if (enter("ph_invalidate_routing"))
		return;
	g.ph->leaving = g.ph->me.leaving = true;
	route_self_changed(g.ph);
	for (struct plink *l = g.ph->links; l; l = l->next)
		route_resend_all(g.ph, l);
	leave();
}

int ph_mqueue_is_empty(void)
{
	if (enter("ph_mqueue_is_empty"))
		return 1;
	if (g.ph->leaving)
		flow_custody(g.ph);
	int empty = flow_idle(g.ph);
	leave();
	return empty;
}

void ph_store_msgs(const char *filename)
{
	char text[512];

	if (enter("ph_store_msgs"))
		return;
	int error = msglog_store(g.ph, filename, text, sizeof text);
	if (error)
		fail(error, "%s", text);
	leave();
}

/* What is queued for the sockets goes out, and is seen to have been read by their other ends, before they are closed. */
void ph_finalize_runtime(void)
{
	enum { CLOSE_WAIT = 1000000 };

	if (enter("ph_finalize_runtime"))
		return;
	if (!may_wait("ph_finalize_runtime")) {
		leave();
		return;
	}
	phnx_goodbye(g.ph);
	net_settle(g.net);
	net_shutdown(g.net);
	for (uint64_t end = now_us() + CLOSE_WAIT; !net_closed(g.net) && now_us() < end;)
		wait_step(end);
	g.stop = true;
	net_wake(g.net);
	pthread_cond_broadcast(&stopping);
	unlock();
	pthread_join(g.thread, NULL);
	lock();
	net_free(g.net);
	g.net = NULL;
	g.ph = NULL;
	if (g.fd >= 0)
		close(g.fd);
	g.fd = -1;
	g.fd_set = false;
	PH_VP_LOWER_BOUND = PH_VP_UPPER_BOUND = 0;
	unlock();
}

void ph_finalize(const char *msg_log_file, int timeout)
{
	if (enter("ph_finalize"))
		return;
	if (!may_wait("ph_finalize")) {
		leave();
		return;
	}
	uint64_t end = timeout < 0 ? UINT64_MAX : now_us() + (uint64_t)timeout * 1000000;
	ph_vps_t mine = ph_vps_dup(&g.ph->me.vps);
	if (mine)
		phnx_release(g.ph, mine);	/* what waits here goes back to its senders */
	ph_vps_destroy(mine);
	ph_invalidate_routing();
	/* Our messages may take for ever; that our senders know what we have received, a few seconds. */
	for (uint64_t farewell = now_us() + FAREWELL_US;;) {
		uint64_t now = now_us(), step = now + 20000;
		bool settled = flow_settled(g.ph) || now >= farewell;
		if ((flow_idle(g.ph) && settled) || now >= end)
			break;
		flow_custody(g.ph);
		wait_step(step < end ? step : end);
	}
	if (msg_log_file && !flow_idle(g.ph))
		ph_store_msgs(msg_log_file);
	unlock();
	ph_finalize_runtime();
}

/* ---- mapping ---- */

static void change(const char *call, int (*what)(struct phnx *, const struct ph_vps *), const struct ph_vps *vps)
{
	if (enter(call))
		return;
	int error = vps ? what(g.ph, vps) : PH_EINVAL;
	if (error)
		fail(error, "%s(): [%lld, %lld)", call, ph_vps_get_lower_bound((ph_vps_t)vps),
		     ph_vps_get_upper_bound((ph_vps_t)vps));
	leave();
}

void ph_assume_vps(const ph_vps_t vps)
{
	change("ph_assume_vps", phnx_assume, vps);
}

void ph_release_vps(const ph_vps_t vps)
{
	change("ph_release_vps", phnx_release, vps);
}

void ph_assume_vp(ph_vp_t vp)
{
	struct vrange r = { vp, vp + 1 };

	change("ph_assume_vp", phnx_assume, &(struct ph_vps){ .n = 1, .r = &r });
}

void ph_release_vp(ph_vp_t vp)
{
	struct vrange r = { vp, vp + 1 };

	change("ph_release_vp", phnx_release, &(struct ph_vps){ .n = 1, .r = &r });
}

ph_vps_t ph_get_assumed_vps(void)
{
	if (enter("ph_get_assumed_vps"))
		return ph_vps_create_empty();
	ph_vps_t vps = ph_vps_dup(&g.ph->me.vps);
	leave();
	return vps;
}

ph_vp_t ph_get_resource_name(void)
{
	if (enter("ph_get_resource_name"))
		return PH_INVALID_VP;
	ph_vp_t name = g.ph->name;
	unlock();
	return name;
}

ph_vp_t ph_get_vp_lower_bound(void)
{
	return PH_VP_LOWER_BOUND;
}

ph_vp_t ph_get_vp_upper_bound(void)
{
	return PH_VP_UPPER_BOUND;
}

ph_vp_t ph_get_random_vp(void)
{
	ph_vp_t lower = PH_VP_LOWER_BOUND, size = PH_VP_UPPER_BOUND - lower;

	return size > 0 ? lower + (ph_vp_t)(phnx_random64() % (uint64_t)size) : PH_INVALID_VP;
}

/* ---- messages ---- */

/* Waits for room unless that is refused. Takes the reference of body. */
static int send_message(const char *call, ph_vp_t dest, struct pbuf *body, int tag, unsigned flags, long long timeout,
			bool wait)
{
	uint64_t deadline = timeout >= 0 ? now_us() + (uint64_t)timeout + 1 : 0;
	int error = enter(call);

	if (error) {
		pbuf_put(body);
		return error;
	}
	for (;;) {
		error = body ? phnx_send(g.ph, dest, body, tag, flags, deadline) : PH_ENOMEM;
		if (error != PH_EAGAIN || !wait || depth > 1)
			break;
		wait_step(now_us() + FOREVER_STEP);
		if (!g.ph) {
			error = PH_ENOTINIT;
			break;
		}
	}
	pbuf_put(body);
	leave();
	return error;
}

/* For the calls that return nothing. */
static void send_or_report(const char *call, ph_vp_t dest, const void *body, size_t len, int tag, long long timeout)
{
	int error = len > PH_MSG_MAX ? PH_ETOOBIG
				     : send_message(call, dest, pbuf_new(body, len), tag, 0, timeout, true);

	if (error && error != PH_ENOTINIT && error != PH_EFORK)
		fail(error, "%s(): %zu bytes to %lld", call, len, dest);
}

void ph_send(ph_vp_t dest, const void *body, size_t len, int tag)
{
	send_or_report("ph_send", dest, body, len, tag, -1);
}

void ph_timed_send(ph_vp_t dest, const void *body, size_t len, int tag, long long timeout)
{
	send_or_report("ph_timed_send", dest, body, len, tag, timeout < 0 ? 0 : timeout);
}

int ph_sendx(ph_vp_t dest, const void *body, size_t len, int tag, int flags)
{
	if (len > PH_MSG_MAX)
		return PH_ETOOBIG;
	return send_message("ph_sendx", dest, pbuf_new(body, len), tag, flags & PH_UNORDERED ? DATA_UNORDERED : 0, -1, false);
}

int ph_send_page(ph_vp_t dest, const void *body, size_t len, int tag, void (*release)(void *arg), void *arg)
{
	struct pbuf *b = malloc(sizeof *b);

	if (!b)
		return PH_ENOMEM;
	*b = (struct pbuf){ .refs = 1, .len = len, .data = body, .release = release, .arg = arg };
	return send_message("ph_send_page", dest, b, tag, 0, -1, false);
}

static ph_msg_t receive(const char *call, int tag, uint64_t end)
{
	struct rmsg *m;

	if (enter(call))
		return PH_MSG_INVALID;
	while (!(m = flow_receive(g.ph, tag)) && now_us() < end) {
		if (!may_wait(call))
			break;
		wait_step(end);
		if (!g.ph) {	/* finalised by another thread */
			unlock();
			return PH_MSG_INVALID;
		}
	}
	leave();
	return m ? &m->pub : PH_MSG_INVALID;
}

ph_msg_t ph_recv(int tag)
{
	return receive("ph_recv", tag, UINT64_MAX);
}

ph_msg_t ph_rcv(int tag)
{
	return receive("ph_rcv", tag, UINT64_MAX);
}

ph_msg_t ph_try_recv(int tag)
{
	return receive("ph_try_recv", tag, 0);
}

ph_msg_t ph_try_rcv(int tag)
{
	return receive("ph_try_rcv", tag, 0);
}

ph_msg_t ph_timed_recv(int tag, long long timeout)
{
	return receive("ph_timed_recv", tag, now_us() + (uint64_t)(timeout > 0 ? timeout : 0));
}

ph_msg_t ph_timed_rcv(int tag, long long timeout)
{
	return receive("ph_timed_rcv", tag, now_us() + (uint64_t)(timeout > 0 ? timeout : 0));
}

void ph_msg_destroy(ph_msg_t msg)
{
	free(msg);	/* `pub` is the first member of struct rmsg */
}

ph_vp_t ph_get_source(ph_msg_t msg)
{
	return msg ? ((struct rmsg *)(void *)msg)->source : PH_INVALID_VP;
}

/* ---- beyond the appendix ---- */

int ph_set_handler(int tag, ph_handler_fn fn, void *arg)
{
	int error = enter("ph_set_handler");

	if (error)
		return error;
	struct handler **at = &g.ph->handlers, *h;
	while (*at && (*at)->tag != tag)
		at = &(*at)->next;
	if (!fn && *at) {
		h = *at;
		*at = h->next;
		free(h);
	} else if (fn) {
		if (!*at)
			*at = calloc(1, sizeof **at);
		if (*at) {
			(*at)->tag = tag;
			(*at)->fn = fn;
			(*at)->arg = arg;
			flow_handle(g.ph);
		} else {
			error = PH_ENOMEM;
		}
	}
	leave();
	return error;
}

int ph_get_fd(void)
{
	int error = enter("ph_get_fd");

	if (error)
		return error;
	if (g.fd < 0)
		g.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	on_arrived();
	leave();
	return g.fd < 0 ? PH_ESYSTEM : g.fd;
}

long long ph_get_rtt(ph_vp_t resource_name)
{
	if (enter("ph_get_rtt"))
		return PH_ENOTINIT;
	struct plink *l = link_find(g.ph, resource_name);
	long long rtt = l && l->rtt_us ? (long long)l->rtt_us : PH_EINVAL;
	unlock();
	return rtt;
}

void ph_set_failure_timeout(long long timeout, enum ph_gone_policy policy, ph_gone_fn fn, void *arg)
{
	if (enter("ph_set_failure_timeout"))
		return;
	struct detector *d = &g.ph->detector;
	d->timeout_us = timeout > 0 ? (uint64_t)timeout : 0;
	d->policy = policy;
	d->fn = fn;
	d->arg = arg;
	leave();
}

void ph_set_migration(const struct ph_migration *m)
{
	if (enter("ph_set_migration"))
		return;
	g.ph->migration.app = m ? *m : (struct ph_migration){ 0 };
	leave();
}

static int migrate(const char *call, int wish, ph_vp_t count, int side, long long timeout)
{
	uint64_t end = timeout < 0 ? UINT64_MAX : now_us() + (uint64_t)timeout;
	int error = enter(call);

	if (error)
		return error;
	error = may_wait(call) ? migrate_begin(g.ph, wish, count, side) : PH_EINVAL;
	while (!error && g.ph->migration.result > 0 && now_us() < end) {
		wait_step(end);
		if (!g.ph) {
			unlock();
			return PH_ENOTINIT;
		}
	}
	if (!error && g.ph->migration.result > 0) {
		migrate_cancel(g.ph);
		error = PH_ETIMEDOUT;
	} else if (!error) {
		error = g.ph->migration.result;
	}
	leave();
	return error;
}

int ph_join_vps(long long timeout)
{
	return migrate("ph_join_vps", WISH_JOIN, 1, 1, timeout);
}

int ph_leave_vps(long long timeout)
{
	return migrate("ph_leave_vps", WISH_LEAVE, 1, 1, timeout);
}

int ph_take_over(ph_vp_t count, int side, long long timeout)
{
	return migrate("ph_take_over", WISH_TAKE, count, side, timeout);
}

int ph_hand_over(ph_vp_t count, int side, long long timeout)
{
	return migrate("ph_hand_over", WISH_HAND, count, side, timeout);
}

/* ---- collective operations ---- */

static bool in_space(ph_vp_t lower, ph_vp_t upper)
{
	return lower < upper && lower >= g.ph->lower && upper <= g.ph->upper;
}

int ph_multicast(ph_vp_t lower, ph_vp_t upper, const void *body, size_t len, int tag)
{
	int error = enter("ph_multicast");

	if (error)
		return error;
	error = len > PH_MSG_MAX - 64 ? PH_ETOOBIG
		: !in_space(lower, upper) ? PH_EBOUND : multicast_send(g.ph, lower, upper, tag, false, body, len);
	leave();
	return error;
}

int ph_reduce(ph_vp_t lower, ph_vp_t upper, int id, void *value, size_t len, ph_combine_fn combine, long long timeout)
{
	uint64_t end = timeout < 0 ? UINT64_MAX : now_us() + (uint64_t)timeout;
	int error = enter("ph_reduce");

	if (error)
		return error;
	if (!may_wait("ph_reduce") || !in_space(lower, upper) || len > PH_MSG_MAX - 64) {
		leave();
		return PH_EINVAL;
	}
	struct reduction *r = reduction_begin(g.ph, lower, upper, id, value, len);
	error = r ? PH_EAGAIN : PH_EINVAL;
	while (r && (error = reduction_poll(g.ph, r, value, len, combine)) == PH_EAGAIN && now_us() < end) {
		wait_step(end);
		if (!g.ph) {
			unlock();
			return PH_ENOTINIT;
		}
	}
	if (error == PH_EAGAIN) {
		reduction_end(g.ph, r);
		error = PH_ETIMEDOUT;
	}
	leave();
	return error;
}

int ph_barrier(ph_vp_t lower, ph_vp_t upper, int id, long long timeout)
{
	return ph_reduce(lower, upper, id, NULL, 0, NULL, timeout);
}
