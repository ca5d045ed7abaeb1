/* startup.c - from ph_init() to ph_finalize(): bounds, session, configuration, message logs, the
 * farewell. */
#include <errno.h>
#include <stdio.h>
#include "phoenix/calls/netconf.h"
#include "phoenix/calls/runtime.h"
#include "phoenix/core/entropy.h"
#include "phoenix/core/secret.h"
#include "phoenix/flow/flow.h"
#include "phoenix/flow/mapping.h"
#include "phoenix/flow/msglog.h"
#include "phoenix/link/link.h"
#include "phoenix/node/life.h"
#include "phoenix/routing/contact.h"
#include "phoenix/services/migrate.h"

enum { FAREWELL_US = 3000000 };

ph_vp_t PH_VP_LOWER_BOUND, PH_VP_UPPER_BOUND;

/* ---- initialisation ---- */

static int load_secret(const char *session)
{
	char text[512] = "";
	int error = secret_of_session(session, rt.ph->secret, &rt.shared_secret, text, sizeof text);

	if (!error)
		return 0;
	if (!session)
		/* nobody knows this key: no peer is better than any peer */
		entropy_fill(rt.ph->secret, sizeof rt.ph->secret);
	return runtime_fail(error, "%s", text);
}

/* Returns 0 or an error. */
static int init_runtime(ph_vp_t lower, ph_vp_t upper, struct event_base *base)
{
	if (rt.net || lower < 0 || upper < lower || upper >= INT64_MAX - 1)
		return runtime_fail(PH_EINVAL, "%s",
				    rt.net ? "the library is initialised already"
					   : "the bounds of the virtual nodes are not valid");
	int error = runtime_start(lower, upper, base);
	if (error)
		return error;
	PH_VP_LOWER_BOUND = lower;
	PH_VP_UPPER_BOUND = upper;
	return 0;
}

void ph_init_runtime(ph_vp_t lower, ph_vp_t upper)
{
	runtime_lock();
	if (init_runtime(lower, upper, NULL) == 0)
		load_secret(NULL);
	runtime_unlock();
}

static void name_session(const char *session)
{
	snprintf(rt.ph->session, sizeof rt.ph->session, "%s", session);
	rt.ph->has_session = true;
}

void ph_set_session_id(const char *session)
{
	if (runtime_enter("ph_set_session_id"))
		return;
	if (contact_count(rt.ph) || rt.ph->me.n_addrs)
		runtime_fail(PH_EINVAL,
			     "ph_set_session_id() must precede listen ports and contact points");
	else if (session && load_secret(session) == 0)
		name_session(session);
	runtime_leave();
}

/* ---- in a caller's loop ---- */

int ph_init_in_loop(ph_vp_t lower, ph_vp_t upper, const char *session, const char *secret_file,
		    struct event_base *base)
{
	char text[512];

	if (!base || !session || !secret_file || strlen(session) >= MAX_SESSION)
		return runtime_fail(PH_EINVAL, "ph_init_in_loop()");
	runtime_lock();
	int error = init_runtime(lower, upper, base);
	if (!error) {
		name_session(session);
		rt.shared_secret = true;
		error = secret_from_file(secret_file, rt.ph->secret, text, sizeof text);
		if (error) {
			runtime_fail(error, "%s", text);
			runtime_stop();
		}
	}
	runtime_leave();
	return error;
}

int ph_listen_unix(const char *path)
{
	int error = runtime_enter("ph_listen_unix");

	if (error)
		return error;
	error = path ? net_listen_unix(rt.net, path) : PH_EINVAL;
	runtime_leave();
	return error;
}

static void listen_on(const int *ports, size_t n, bool anywhere)
{
	int error = net_listen(rt.net, ports, n, anywhere);

	if (error == PH_EINVAL)
		runtime_fail(error, "this node already listens on a port");
	else if (error)
		runtime_fail(error, "cannot listen on any of %zu ports from %d on", n, ports[0]);
}

static void listen_between(const char *call, int lower, int upper, bool near)
{
	if (runtime_enter(call))
		return;
	if (lower < 1 || upper > 65536 || upper <= lower) {
		runtime_fail(PH_EINVAL, "[%d, %d) is not a range of ports (1 to 65535)", lower,
			     upper);
	} else {
		int *ports = malloc((size_t)(upper - lower) * sizeof *ports);
		for (int p = lower; ports && p < upper; p++)
			ports[p - lower] = p;
		if (ports)
			listen_on(ports, (size_t)(upper - lower), rt.shared_secret && !near);
		free(ports);
	}
	runtime_leave();
}

void ph_set_listen_port(int lower, int upper)
{
	listen_between("ph_set_listen_port", lower, upper, false);
}

void ph_set_near_port(int lower, int upper)
{
	listen_between("ph_set_near_port", lower, upper, true);
}

int ph_get_listen_port(void)
{
	int port = runtime_enter("ph_get_listen_port");

	if (port)
		return port;
	port = rt.ph->me.n_addrs ? rt.ph->me.addrs[0].port : 0;
	runtime_leave();
	return port;
}

void ph_prefer_ssl(void)
{
	if (runtime_enter("ph_prefer_ssl"))
		return;
	contact_set_protocol(rt.ph, PHNX_TLS);
	net_be_wary(rt.net);
	runtime_leave();
}

static void add_contact(const char *call, const char *host, int port, enum phnx_protocol protocol,
			const char *user)
{
	struct phnx_contact at = { .host = (char *)host,
				   .port = port,
				   .protocol = protocol,
				   .user = (char *)user };

	if (runtime_enter(call))
		return;
	if (!host || !*host || *host == '-' || strlen(host) >= MAX_HOST || port < 1 || port > 65535)
		runtime_fail(PH_EINVAL, "%s(): the host or the port is not valid", call);
	else if (!contact_add(rt.ph, &at, 0))
		runtime_fail(PH_ENOMEM, "%s()", call);
	else if (protocol == PHNX_TLS)
		contact_set_protocol(rt.ph, PHNX_TLS);
	runtime_leave();
}

void ph_add_port_tcp(const char *hostname, int port)
{
	add_contact("ph_add_port_tcp", hostname, port, PHNX_TCP, NULL);
}

void ph_add_port_ssh(const char *hostname, int port, const char *user)
{
	add_contact("ph_add_port_ssh", hostname, port, PHNX_SSH, user);
}

void ph_set_ssh_starter(ph_ssh_fn fn, void *arg)
{
	if (runtime_enter("ph_set_ssh_starter"))
		return;
	net_set_ssh_starter(rt.net, fn, arg);
	runtime_leave();
}

int ph_add_port_unix(const char *path)
{
	struct phnx_contact at = { .host = (char *)path, .protocol = PHNX_UNIX };
	int error = runtime_enter("ph_add_port_unix");

	if (error)
		return error;
	error = !path || !*path || strlen(path) >= MAX_UNIX_PATH ? PH_EINVAL
		: contact_add(rt.ph, &at, 0) ? 0 : PH_ENOMEM;
	runtime_leave();
	return error;
}

void ph_flush(long long timeout)
{
	if (runtime_enter("ph_flush"))
		return;
	net_flush(rt.net, timeout > 0 ? (uint64_t)timeout : 0);
	runtime_leave();
}

int ph_has_more(void)
{
	int more;

	if (runtime_enter("ph_has_more"))
		return 0;
	more = link_has_more(rt.ph);
	runtime_unlock();
	return more;
}

/* Keeps the lock, so all calls until ph_uncork() are as those of a handler. */
void ph_cork(void)
{
	if (!runtime_enter("ph_cork"))
		rt.corked++;
}

void ph_uncork(void)
{
	if (!runtime_depth || !rt.corked)
		return;
	rt.corked--;
	runtime_leave();
}

void ph_break_connections(void)
{
	if (runtime_enter("ph_break_connections"))
		return;
	net_break(rt.net);
	runtime_leave();
}

void ph_add_port_ssl(const char *hostname, int port)
{
	add_contact("ph_add_port_ssl", hostname, port, PHNX_TLS, NULL);
}

static void read_config(const char *buf, size_t len, const char *tag, const char *file)
{
	struct netconf c;

	if (netconf_parse(&c, buf, len, tag)) {
		runtime_fail(PH_ECONFIG, "%s:%s", file, c.error);
	} else {
		for (size_t i = 0; i < c.n_contacts; i++) {
			contact_add(rt.ph, c.contacts + i, 0);
			if (c.contacts[i].protocol == PHNX_TLS)
				contact_set_protocol(rt.ph, PHNX_TLS);
		}
		if (c.n_ports)
			listen_on(c.ports, c.n_ports, rt.shared_secret);
	}
	netconf_free(&c);
}

void ph_read_config(char *buf, size_t len, const char *config_tag)
{
	if (runtime_enter("ph_read_config"))
		return;
	if (buf)
		read_config(buf, len, config_tag, "configuration");
	else
		runtime_fail(PH_EINVAL, "ph_read_config() without a configuration");
	runtime_leave();
}

static void read_config_file(const char *name, const char *tag)
{
	FILE *f = fopen(name, "r");
	char *text = malloc(MAX_CONFIG_BYTES + 1);
	size_t n = f && text ? fread(text, 1, MAX_CONFIG_BYTES + 1, f) : 0;

	if (!f || !text || ferror(f))
		runtime_fail(PH_ECONFIG, "%s: %s", name, strerror(errno));
	else
		read_config(text, n, tag, name);
	if (f)
		fclose(f);
	free(text);
}

void ph_load_msgs(const char *filename)
{
	char text[512];

	if (runtime_enter("ph_load_msgs"))
		return;
	int error = filename ? msglog_load(rt.ph, filename, text, sizeof text) : PH_EINVAL;
	if (error)
		runtime_fail(error, "%s", filename ? text : "ph_load_msgs() without a file");
	runtime_leave();
}

void ph_init(ph_vp_t lower, ph_vp_t upper, const char *config_file, const char *config_tag,
	     const char *session, const char *msg_log_file)
{
	runtime_lock();
	if (init_runtime(lower, upper, NULL) == 0) {
		if (session)
			ph_set_session_id(session);
		if (!rt.ph->has_session)
			load_secret(NULL);
		if (config_file && (!session || rt.ph->has_session))
			read_config_file(config_file, config_tag);
		if (msg_log_file)
			ph_load_msgs(msg_log_file);
	}
	runtime_leave();
}

/* ---- the end ---- */

/* Releases all virtual nodes: messages that wait here go back to their senders, or into the
 * queue if this process is the sender.  Called again later, since a node that was to take
 * virtual nodes over may give them back. */
static void release_all(void)
{
	ph_vps_t mine = rt.ph->me.vps.n ? ph_vps_dup(&rt.ph->me.vps) : NULL;

	if (mine)
		mapping_release(rt.ph, mine);
	ph_vps_destroy(mine);
}

void ph_invalidate_routing(void)
{
	if (runtime_enter("ph_invalidate_routing"))
		return;
	rt.ph->leaving = rt.ph->me.leaving = true;
	route_self_changed(rt.ph);
	for (struct plink *l = link_first(rt.ph); l; l = l->next)
		route_resend_all(rt.ph, l);
	runtime_leave();
}

int ph_mqueue_is_empty(void)
{
	if (runtime_enter("ph_mqueue_is_empty"))
		return 1;
	if (rt.ph->leaving) {
		release_all();
		flow_custody(rt.ph);
	}
	int empty = flow_idle(rt.ph);
	runtime_leave();
	return empty;
}

void ph_store_msgs(const char *filename)
{
	char text[512];

	if (runtime_enter("ph_store_msgs"))
		return;
	if (rt.ph->leaving)
		release_all();
	int error = filename ? msglog_store(rt.ph, filename, text, sizeof text) : PH_EINVAL;
	if (error)
		runtime_fail(error, "%s", filename ? text : "ph_store_msgs() without a file");
	runtime_leave();
}

/* What is queued for the sockets goes out, and the peers have read it, before the connections
 * are closed. */
void ph_finalize_runtime(void)
{
	enum { CLOSE_WAIT = 1000000 };

	if (runtime_enter("ph_finalize_runtime"))
		return;
	if (!runtime_may_wait("ph_finalize_runtime")) {
		runtime_leave();
		return;
	}
	node_goodbye(rt.ph);
	net_settle(rt.net);
	net_shutdown(rt.net);
	for (uint64_t end = runtime_now() + CLOSE_WAIT;
	     rt.ph && !net_closed(rt.net) && runtime_now() < end;)
		runtime_wait(end);
	if (rt.ph) {		/* else another thread has ended the library */
		runtime_stop();
		PH_VP_LOWER_BOUND = PH_VP_UPPER_BOUND = 0;
	}
	runtime_unlock();
}

/* Messages of others may have no way but through this node, and each may follow an answer to the
 * one before.  The result of a reduction, for example, goes from node to node, and the first of
 * them might leave with it. */
struct passing {
	/* how many messages had gone out, and when the last one did */
	uint64_t frames, since_us;
};

static bool passes_on(struct passing *p, uint64_t now)
{
	uint64_t frames = link_frames_out(rt.ph, FRAME_DATA);

	if (!p->since_us || frames != p->frames)
		*p = (struct passing){ frames, now };
	return flow_forwarded(rt.ph) && now < p->since_us + PASSED_ON + 2 * link_slowest(rt.ph) +
							PAUSE_TURNS * core_lateness(rt.ph, now);
}

void ph_finalize(const char *msg_log_file, int timeout)
{
	struct passing passing = { 0 };

	if (runtime_enter("ph_finalize"))
		return;
	if (!runtime_may_wait("ph_finalize")) {
		runtime_leave();
		return;
	}
	uint64_t end = timeout < 0 ? UINT64_MAX : runtime_now() + (uint64_t)timeout * 1000000;
	migrate_cancel(rt.ph);
	release_all();
	rt.ph->me.leaving = true;	/* nobody gives it anything to keep any more */
	route_self_changed(rt.ph);
	/* This node's own messages may take for ever.  Messages passed on for others, and the
	 * last acknowledgements, get a few seconds. */
	for (uint64_t farewell = runtime_now() + FAREWELL_US;;) {
		uint64_t now = runtime_now(), step = now + 20000;
		bool late = now >= farewell || now >= end;
		if (!rt.ph->leaving && (late || !passes_on(&passing, now)))
			ph_invalidate_routing();
		bool settled = late ||
			       (rt.ph->leaving && flow_settled(rt.ph) && !migrate_is_locked(rt.ph));
		if ((flow_idle(rt.ph) && settled) || now >= end)
			break;
		release_all();
		flow_custody(rt.ph);
		runtime_wait(step < end ? step : end);
		if (!rt.ph) {	/* another thread has ended the library */
			runtime_unlock();
			return;
		}
	}
	if (msg_log_file && !flow_idle(rt.ph))
		ph_store_msgs(msg_log_file);
	runtime_unlock();
	ph_finalize_runtime();
}

