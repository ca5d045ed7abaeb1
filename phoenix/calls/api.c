/* api.c - the calls of phnx.h on a running node: mapping, messages, migration, collective
 * operations. */
#include <sys/eventfd.h>
#include <sys/uio.h>
#include "phoenix/calls/runtime.h"
#include "phoenix/core/entropy.h"
#include "phoenix/flow/flow.h"
#include "phoenix/flow/mapping.h"
#include "phoenix/routing/detect.h"
#include "phoenix/services/collective.h"
#include "phoenix/services/migrate.h"

/* ---- mapping ---- */

static void change(const char *call, int (*what)(struct phnx *, const struct ph_vps *),
		   const struct ph_vps *vps)
{
	if (runtime_enter(call))
		return;
	int error = vps ? what(rt.ph, vps) : PH_EINVAL;
	if (error)
		runtime_fail(error, "%s(): [%lld, %lld)", call,
			     ph_vps_get_lower_bound((ph_vps_t)vps),
			     ph_vps_get_upper_bound((ph_vps_t)vps));
	runtime_leave();
}

void ph_assume_vps(const ph_vps_t vps)
{
	change("ph_assume_vps", mapping_assume, vps);
}

void ph_release_vps(const ph_vps_t vps)
{
	change("ph_release_vps", mapping_release, vps);
}

void ph_assume_vp(ph_vp_t vp)
{
	struct vrange r = { vp, vp < INT64_MAX ? vp + 1 : vp };

	change("ph_assume_vp", mapping_assume, &(struct ph_vps){ .n = 1, .r = &r });
}

void ph_release_vp(ph_vp_t vp)
{
	struct vrange r = { vp, vp < INT64_MAX ? vp + 1 : vp };

	change("ph_release_vp", mapping_release, &(struct ph_vps){ .n = 1, .r = &r });
}

ph_vps_t ph_get_assumed_vps(void)
{
	if (runtime_enter("ph_get_assumed_vps"))
		return ph_vps_create_empty();
	ph_vps_t vps = ph_vps_dup(&rt.ph->me.vps);
	runtime_leave();
	return vps;
}

ph_vp_t ph_get_resource_name(void)
{
	if (runtime_enter("ph_get_resource_name"))
		return PH_INVALID_VP;
	ph_vp_t name = rt.ph->name;
	runtime_unlock();
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

	return size > 0 ? lower + (ph_vp_t)(entropy_u64() % (uint64_t)size) : PH_INVALID_VP;
}

/* ---- messages ---- */

/* Drops a message that was not sent: its bytes stay the caller's. */
static void drop_body(struct pbuf *body)
{
	if (body)
		body->release = NULL;
	pbuf_put(body);
}

/* Sends a message and takes the reference of body.  It waits for room if `wait`.  Borrowed bytes
 * are copied only after the message was written to the socket, so that the receiver reads it
 * meanwhile; so is everything else that can wait. */
static int send_message(const char *call, ph_vp_t dest, struct pbuf *body, int tag, unsigned flags,
			long long timeout, bool wait)
{
	uint64_t deadline = timeout >= 0 ? runtime_now() + (uint64_t)timeout + 1 : 0;
	size_t len = body ? body->len : 0;
	int error = runtime_enter(call);

	if (error) {
		drop_body(body);
		return error;
	}
	for (;;) {
		error = body ? flow_send_own(rt.ph, dest, body, tag, flags, deadline) : PH_ENOMEM;
		if (error != PH_EAGAIN || !wait || runtime_depth > 1)
			break;
		runtime_wait_for_room();
		if (!rt.ph) {
			error = PH_ENOTINIT;
			break;
		}
	}
	runtime_send();
	if (body && !body->release)
		pbuf_keep(body);
	if (error)
		drop_body(body);
	else
		pbuf_put(body);
	runtime_settle();
	if (!error)
		runtime_sent(len);
	runtime_unlock();
	return error;
}

/* Checks a message's body from the caller.  Returns 0 or an error. */
static int check_body(const void *body, size_t len, size_t most)
{
	return len > most ? PH_ETOOBIG : len && !body ? PH_EINVAL : 0;
}

/* Sends, for the calls that return nothing. */
static void send_or_report(const char *call, ph_vp_t dest, const void *body, size_t len, int tag,
			   long long timeout)
{
	int error = check_body(body, len, PH_MSG_MAX);

	if (!error)
		error = send_message(call, dest, pbuf_lent(body, len), tag, 0, timeout, true);
	if (error && error != PH_ENOTINIT && error != PH_EFORK)
		runtime_fail(error, "%s(): %zu bytes to %lld", call, len, dest);
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
	int error = check_body(body, len, PH_MSG_MAX);

	return error ? error
		     : send_message("ph_sendx", dest, pbuf_lent(body, len), tag,
				    flags & PH_UNORDERED ? DATA_UNORDERED : 0, -1, false);
}

static int send_lasting(const char *call, ph_vp_t dest, const void *body, size_t len, int tag,
			void (*release)(void *arg), void *arg, bool sealed)
{
	if (!release || (len && !body))
		return PH_EINVAL;
	struct pbuf *b = pbuf_of(body, len, release, arg);
	if (b && sealed)
		b->sealed = len;
	return b ? send_message(call, dest, b, tag, 0, -1, false) : PH_ENOMEM;
}

int ph_send_page(ph_vp_t dest, const void *body, size_t len, int tag, void (*release)(void *arg),
		 void *arg)
{
	return send_lasting("ph_send_page", dest, body, len, tag, release, arg, false);
}

int ph_send_sealed(ph_vp_t dest, const void *body, size_t len, int tag, void (*release)(void *arg),
		   void *arg)
{
	return send_lasting("ph_send_sealed", dest, body, len, tag, release, arg, true);
}

int ph_sendv(ph_vp_t dest, const struct iovec *pieces, int n, int tag)
{
	size_t len = 0;

	if (n < 0 || (n && !pieces))
		return PH_EINVAL;
	for (int i = 0; i < n; len += pieces[i++].iov_len) {
		int error = check_body(pieces[i].iov_base, pieces[i].iov_len, PH_MSG_MAX - len);
		if (error)
			return error;
	}
	struct pbuf *b = pbuf_new(NULL, len);
	unsigned char *to = b ? b->own : NULL;
	for (int i = 0; b && i < n; to += pieces[i++].iov_len)
		if (pieces[i].iov_len)
			memcpy(to, pieces[i].iov_base, pieces[i].iov_len);
	return send_message("ph_sendv", dest, b, tag, 0, -1, false);
}

/* Receives; does not wait if end is 0. */
static ph_msg_t receive(const char *call, int tag, uint64_t end)
{
	if (runtime_enter(call))
		return PH_MSG_INVALID;
	struct rmsg *m = flow_receive(rt.ph, tag);
	if (!m && !end && runtime_look())
		m = flow_receive(rt.ph, tag);
	while (!m && net_time(rt.net) < end) {
		if (!runtime_may_wait(call))
			break;
		runtime_wait(end);
		if (!rt.ph) {	/* another thread has finalised the library */
			runtime_unlock();
			return PH_MSG_INVALID;
		}
		m = flow_receive(rt.ph, tag);
	}
	if (m)
		runtime_took();
	if (m && runtime_may_answer())
		runtime_unlock();
	else
		runtime_leave();
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
	return receive("ph_timed_recv", tag, timeout > 0 ? runtime_now() + (uint64_t)timeout : 0);
}

ph_msg_t ph_timed_rcv(int tag, long long timeout)
{
	return receive("ph_timed_rcv", tag, timeout > 0 ? runtime_now() + (uint64_t)timeout : 0);
}

void ph_msg_destroy(ph_msg_t msg)
{
	rmsg_free((struct rmsg *)(void *)msg);	/* `pub` is its first member */
}

ph_vp_t ph_get_source(ph_msg_t msg)
{
	return msg ? ((struct rmsg *)(void *)msg)->source : PH_INVALID_VP;
}

/* ---- beyond the appendix ---- */

int ph_set_handler(int tag, ph_handler_fn fn, void *arg)
{
	int error = runtime_enter("ph_set_handler");

	if (error)
		return error;
	error = flow_set_handler(rt.ph, tag, fn, arg);
	runtime_leave();
	return error;
}

int ph_get_fd(void)
{
	int error = runtime_enter("ph_get_fd");

	if (error)
		return error;
	if (rt.fd < 0)
		rt.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	runtime_arrived();
	int fd = rt.fd;
	runtime_leave();
	return fd < 0 ? PH_ESYSTEM : fd;
}

long long ph_get_rtt(ph_vp_t resource_name)
{
	int error = runtime_enter("ph_get_rtt");

	if (error)
		return error;
	struct plink *l = route_link_to(rt.ph, resource_name);
	long long rtt = l ? (long long)l->rtt_us : PH_EINVAL;
	runtime_unlock();
	return rtt;
}

int ph_is_held(ph_vp_t vp)
{
	if (runtime_enter("ph_is_held"))
		return 0;
	ph_vp_t holder = holder_of(rt.ph, vp);
	int held = holder && (holder == rt.ph->name || route_way(rt.ph, holder));
	runtime_unlock();
	return held;
}

void ph_set_failure_timeout(long long timeout, enum ph_gone_policy policy, ph_gone_fn fn, void *arg)
{
	if (runtime_enter("ph_set_failure_timeout"))
		return;
	if (timeout == PH_TIMEOUT_BY_SIZE)
		detect_by_size(rt.ph);
	else
		detect_set_timeout(rt.ph, timeout > 0 ? (uint64_t)timeout : 0);
	flow_set_gone(rt.ph, policy, fn, arg);
	runtime_leave();
}

long long ph_get_silence(ph_vp_t resource_name)
{
	int error = runtime_enter("ph_get_silence");

	if (error)
		return error;
	long long silence = detect_silence(rt.ph, resource_name);
	runtime_unlock();
	return silence < 0 ? PH_EINVAL : silence;
}

void ph_set_migration(const struct ph_migration *m)
{
	if (runtime_enter("ph_set_migration"))
		return;
	migrate_set_app(rt.ph, m);
	runtime_leave();
}

static int migrate(const char *call, int wish, ph_vp_t count, int side, long long timeout)
{
	uint64_t end = timeout < 0 ? UINT64_MAX : runtime_now() + (uint64_t)timeout;
	int error = runtime_enter(call);

	if (error)
		return error;
	error = runtime_may_wait(call) ? migrate_begin(rt.ph, wish, count, side) : PH_EINVAL;
	while (!error && migrate_result(rt.ph) > 0 && runtime_now() < end) {
		runtime_wait(end);
		if (!rt.ph) {
			runtime_unlock();
			return PH_ENOTINIT;
		}
	}
	if (!error && migrate_result(rt.ph) > 0) {
		migrate_cancel(rt.ph);
		error = PH_ETIMEDOUT;
	} else if (!error) {
		error = migrate_result(rt.ph);
	}
	runtime_leave();
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
	return lower < upper && lower >= rt.ph->lower && upper <= rt.ph->upper;
}

int ph_multicast(ph_vp_t lower, ph_vp_t upper, const void *body, size_t len, int tag)
{
	int error = runtime_enter("ph_multicast");

	if (error)
		return error;
	error = in_space(lower, upper) ? check_body(body, len, PH_MSG_MAX - 64) : PH_EBOUND;
	while (!error &&
	       (error = collective_multicast(rt.ph, lower, upper, tag, body, len)) == PH_EAGAIN &&
	       runtime_depth == 1) {
		runtime_wait_for_room();
		error = rt.ph ? 0 : PH_ENOTINIT;
	}
	runtime_leave();
	return error;
}

int ph_reduce(ph_vp_t lower, ph_vp_t upper, int id, void *value, size_t len, ph_combine_fn combine,
	      long long timeout)
{
	uint64_t end = timeout < 0 ? UINT64_MAX : runtime_now() + (uint64_t)timeout;
	int error = runtime_enter("ph_reduce");

	if (error)
		return error;
	error = in_space(lower, upper) ? check_body(value, len, PH_MSG_MAX - 64) : PH_EBOUND;
	if (error || !runtime_may_wait("ph_reduce") || (len && !combine)) {
		runtime_leave();
		return error ? error : PH_EINVAL;
	}
	struct reduction *r = reduce_begin(rt.ph, lower, upper, id, len);
	error = r ? PH_EAGAIN : PH_EINVAL;
	while (r && (error = reduce_poll(rt.ph, r, value, len, combine)) == PH_EAGAIN &&
	       runtime_now() < end) {
		runtime_wait(end);
		if (!rt.ph) {
			runtime_unlock();
			return PH_ENOTINIT;
		}
	}
	if (error == PH_EAGAIN) {
		reduce_end(rt.ph, r);
		error = PH_ETIMEDOUT;
	}
	runtime_leave();
	return error;
}

int ph_barrier(ph_vp_t lower, ph_vp_t upper, int id, long long timeout)
{
	return ph_reduce(lower, upper, id, NULL, 0, NULL, timeout);
}
