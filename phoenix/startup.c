/* startup.c - from ph_init() to ph_finalize(): bounds, session, configuration, message logs, the farewell. */
#include <errno.h>
#include <stdio.h>
#include "phoenix/msglog.h"
#include "phoenix/runtime.h"
#include "phoenix/secret.h"

enum { FAREWELL_US = 3000000 };

ph_vp_t PH_VP_LOWER_BOUND, PH_VP_UPPER_BOUND;

/* ---- initialisation ---- */

static int load_secret(const char *session)
{
	char text[512] = "";
	int error = phnx_secret(session, rt.ph->secret, &rt.shared_secret, text, sizeof text);

	if (!error)
		return 0;
	if (!session)
		phnx_random_bytes(rt.ph->secret, sizeof rt.ph->secret);	/* nobody knows it: better no peer than any */
	return rt_fail(error, "%s", text);
}

/* 0 or an error. */
static int init_runtime(ph_vp_t lower, ph_vp_t upper, struct event_base *base)
{
	if (rt.net || lower < 0 || upper < lower || upper >= INT64_MAX - 1)
		return rt_fail(PH_EINVAL, "%s", rt.net ? "the library is initialised already" : "impossible bounds");
	int error = rt_start(lower, upper, base);
	if (error)
		return error;
	PH_VP_LOWER_BOUND = lower;
	PH_VP_UPPER_BOUND = upper;
	return 0;
}

void ph_init_runtime(ph_vp_t lower, ph_vp_t upper)
{
	rt_lock();
	if (init_runtime(lower, upper, NULL) == 0)
		load_secret(NULL);
	rt_unlock();
}

static void name_session(const char *session)
{
	snprintf(rt.ph->session, sizeof rt.ph->session, "%s", session);
	rt.ph->has_session = true;
}

void ph_set_session_id(const char *session)
{
	if (rt_enter("ph_set_session_id"))
		return;
	if (rt.ph->contacts.n || rt.ph->me.n_addrs)
		rt_fail(PH_EINVAL, "ph_set_session_id() after a listen port or contact point");
	else if (session && load_secret(session) == 0)
		name_session(session);
	rt_leave();
}

/* ---- in a caller's loop ---- */

int ph_init_in_loop(ph_vp_t lower, ph_vp_t upper, const char *session, const char *secret_file, struct event_base *base)
{
	char text[512];

	if (!base || !session || !secret_file || strlen(session) >= MAX_SESSION)
		return rt_fail(PH_EINVAL, "ph_init_in_loop()");
	rt_lock();
	int error = init_runtime(lower, upper, base);
	if (!error) {
		name_session(session);
		rt.shared_secret = true;
		error = phnx_secret_file(secret_file, rt.ph->secret, text, sizeof text);
		if (error) {
			rt_fail(error, "%s", text);
			rt_stop();
		}
	}
	rt_leave();
	return error;
}

int ph_listen_unix(const char *path)
{
	int error = rt_enter("ph_listen_unix");

	if (error)
		return error;
	error = path ? net_listen_unix(rt.net, path) : PH_EINVAL;
	rt_leave();
	return error;
}

static void listen_on(const int *ports, size_t n)
{
	int error = net_listen(rt.net, ports, n, rt.shared_secret);

	if (error == PH_EINVAL)
		rt_fail(error, "this node listens already");
	else if (error)
		rt_fail(error, "none of %zu ports from %d on can be listened to", n, ports[0]);
}

void ph_set_listen_port(int lower, int upper)
{
	if (rt_enter("ph_set_listen_port"))
		return;
	if (lower < 1 || upper > 65536 || upper <= lower) {
		rt_fail(PH_EINVAL, "[%d, %d) is no range of ports", lower, upper);
	} else {
		int *ports = malloc((size_t)(upper - lower) * sizeof *ports);
		for (int p = lower; ports && p < upper; p++)
			ports[p - lower] = p;
		if (ports)
			listen_on(ports, (size_t)(upper - lower));
		free(ports);
	}
	rt_leave();
}

int ph_get_listen_port(void)
{
	int port = rt_enter("ph_get_listen_port");

	if (port)
		return port;
	port = rt.ph->me.n_addrs ? rt.ph->me.addrs[0].port : 0;
	rt_leave();
	return port;
}

void ph_prefer_ssl(void)
{
	if (rt_enter("ph_prefer_ssl"))
		return;
	rt.ph->learn_protocol = PHNX_TLS;
	rt_leave();
}

static void add_contact(const char *call, const char *host, int port, enum phnx_protocol protocol, const char *user)
{
	struct phnx_contact at = { .host = (char *)host, .port = port, .protocol = protocol, .user = (char *)user };

	if (rt_enter(call))
		return;
	if (!host || !*host || *host == '-' || strlen(host) >= MAX_HOST || port < 1 || port > 65535)
		rt_fail(PH_EINVAL, "%s(): not a host and port", call);
	else if (!phnx_add_contact(rt.ph, &at, 0))
		rt_fail(PH_ENOMEM, "%s()", call);
	else if (protocol == PHNX_TLS)
		rt.ph->learn_protocol = PHNX_TLS;
	rt_leave();
}

void ph_add_port_tcp(const char *hostname, int port)
{
	add_contact("ph_add_port_tcp", hostname, port, PHNX_TCP, NULL);
}

void ph_add_port_ssh(const char *hostname, int port, const char *user)
{
	add_contact("ph_add_port_ssh", hostname, port, PHNX_SSH, user);
}

int ph_add_port_unix(const char *path)
{
	struct phnx_contact at = { .host = (char *)path, .protocol = PHNX_UNIX };
	int error = rt_enter("ph_add_port_unix");

	if (error)
		return error;
	error = !path || !*path || strlen(path) >= MAX_UNIX_PATH ? PH_EINVAL
		: phnx_add_contact(rt.ph, &at, 0) ? 0 : PH_ENOMEM;
	rt_leave();
	return error;
}

void ph_flush(long long timeout)
{
	if (rt_enter("ph_flush"))
		return;
	net_flush(rt.net, timeout > 0 ? (uint64_t)timeout : 0);
	rt_leave();
}

void ph_break_connections(void)
{
	if (rt_enter("ph_break_connections"))
		return;
	net_break(rt.net);
	rt_leave();
}

void ph_add_port_ssl(const char *hostname, int port)
{
	add_contact("ph_add_port_ssl", hostname, port, PHNX_TLS, NULL);
}

static void read_config(const char *buf, size_t len, const char *tag, const char *file)
{
	struct phnx_config c;

	if (phnx_config_parse(&c, buf, len, tag)) {
		rt_fail(PH_ECONFIG, "%s:%s", file, c.error);
	} else {
		for (size_t i = 0; i < c.n_contacts; i++) {
			phnx_add_contact(rt.ph, c.contacts + i, 0);
			if (c.contacts[i].protocol == PHNX_TLS)
				rt.ph->learn_protocol = PHNX_TLS;
		}
		if (c.n_ports)
			listen_on(c.ports, c.n_ports);
	}
	phnx_config_free(&c);
}

void ph_read_config(char *buf, size_t len, const char *config_tag)
{
	if (rt_enter("ph_read_config"))
		return;
	if (buf)
		read_config(buf, len, config_tag, "configuration");
	else
		rt_fail(PH_EINVAL, "ph_read_config(): there is none");
	rt_leave();
}

static void read_config_file(const char *name, const char *tag)
{
	FILE *f = fopen(name, "r");
	char *text = malloc(MAX_CONFIG_BYTES + 1);
	size_t n = f && text ? fread(text, 1, MAX_CONFIG_BYTES + 1, f) : 0;

	if (!f || !text || ferror(f))
		rt_fail(PH_ECONFIG, "%s: %s", name, strerror(errno));
	else
		read_config(text, n, tag, name);
	if (f)
		fclose(f);
	free(text);
}

void ph_load_msgs(const char *filename)
{
	char text[512];

	if (rt_enter("ph_load_msgs"))
		return;
	int error = filename ? msglog_load(rt.ph, filename, text, sizeof text) : PH_EINVAL;
	if (error)
		rt_fail(error, "%s", filename ? text : "ph_load_msgs() without a file");
	rt_leave();
}

void ph_init(ph_vp_t lower, ph_vp_t upper, const char *config_file, const char *config_tag, const char *session,
	     const char *msg_log_file)
{
	rt_lock();
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
	rt_leave();
}

/* ---- the end ---- */

/* What waits here goes back to its senders, or into the queue if this process is its sender: now and when a node that was to take
 * virtual nodes over gives them back. */
static void release_all(void)
{
	ph_vps_t mine = rt.ph->me.vps.n ? ph_vps_dup(&rt.ph->me.vps) : NULL;

	if (mine)
		phnx_release(rt.ph, mine);
	ph_vps_destroy(mine);
}

void ph_invalidate_routing(void)
{
	if (rt_enter("ph_invalidate_routing"))
		return;
	rt.ph->leaving = rt.ph->me.leaving = true;
	route_self_changed(rt.ph);
	for (struct plink *l = rt.ph->links; l; l = l->next)
		route_resend_all(rt.ph, l);
	rt_leave();
}

int ph_mqueue_is_empty(void)
{
	if (rt_enter("ph_mqueue_is_empty"))
		return 1;
	if (rt.ph->leaving) {
		release_all();
		flow_custody(rt.ph);
	}
	int empty = flow_idle(rt.ph);
	rt_leave();
	return empty;
}

void ph_store_msgs(const char *filename)
{
	char text[512];

	if (rt_enter("ph_store_msgs"))
		return;
	if (rt.ph->leaving)
		release_all();
	int error = filename ? msglog_store(rt.ph, filename, text, sizeof text) : PH_EINVAL;
	if (error)
		rt_fail(error, "%s", filename ? text : "ph_store_msgs() without a file");
	rt_leave();
}

/* What is queued for the sockets goes out, and is seen to have been read by their other ends, before they are closed. */
void ph_finalize_runtime(void)
{
	enum { CLOSE_WAIT = 1000000 };

	if (rt_enter("ph_finalize_runtime"))
		return;
	if (!rt_may_wait("ph_finalize_runtime")) {
		rt_leave();
		return;
	}
	phnx_goodbye(rt.ph);
	net_settle(rt.net);
	net_shutdown(rt.net);
	for (uint64_t end = rt_now() + CLOSE_WAIT; rt.ph && !net_closed(rt.net) && rt_now() < end;)
		rt_wait(end);
	if (rt.ph) {		/* else another thread has ended it */
		rt_stop();
		PH_VP_LOWER_BOUND = PH_VP_UPPER_BOUND = 0;
	}
	rt_unlock();
}

/* Others' messages may have no other way than through this node, and the next follows an answer to the last: so the result of a
 * reduction goes from node to node, of which the first could end with it. */
struct passing {
	uint64_t frames, since_us;	/* so many messages had gone out; the last one then */
};

static bool passes_on(struct passing *p, uint64_t now)
{
	uint64_t frames = rt.ph->frames_out[FRAME_DATA];

	if (!p->since_us || frames != p->frames)
		*p = (struct passing){ frames, now };
	return rt.ph->flows.forwarded && now < p->since_us + PASSED_ON + 2 * rt.ph->slowest_us + PAUSE_TURNS * phnx_lateness(rt.ph, now);
}

void ph_finalize(const char *msg_log_file, int timeout)
{
	struct passing passing = { 0 };

	if (rt_enter("ph_finalize"))
		return;
	if (!rt_may_wait("ph_finalize")) {
		rt_leave();
		return;
	}
	uint64_t end = timeout < 0 ? UINT64_MAX : rt_now() + (uint64_t)timeout * 1000000;
	migrate_cancel(rt.ph);
	release_all();
	rt.ph->me.leaving = true;	/* nobody gives it anything to keep any more */
	route_self_changed(rt.ph);
	/* Our messages may take for ever; others' on their way, and that our senders know what we have received, a few seconds. */
	for (uint64_t farewell = rt_now() + FAREWELL_US;;) {
		uint64_t now = rt_now(), step = now + 20000;
		bool late = now >= farewell || now >= end;
		if (!rt.ph->leaving && (late || !passes_on(&passing, now)))
			ph_invalidate_routing();
		bool settled = late || (rt.ph->leaving && flow_settled(rt.ph) && !rt.ph->migration.locked);
		if ((flow_idle(rt.ph) && settled) || now >= end)
			break;
		release_all();
		flow_custody(rt.ph);
		rt_wait(step < end ? step : end);
		if (!rt.ph) {	/* another thread has ended it */
			rt_unlock();
			return;
		}
	}
	if (msg_log_file && !flow_idle(rt.ph))
		ph_store_msgs(msg_log_file);
	rt_unlock();
	ph_finalize_runtime();
}

