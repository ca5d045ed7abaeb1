/* migrate.c - virtual nodes move between nodes, with the application's state (PPoPP 2003, section
 * 3.5, figures 1-3).
 *
 * A node that wants to move virtual nodes locks itself and the adjacent node, the one with the
 * smaller resource name first, so that no circle of waiting nodes can arise.  It does not know that
 * node's name, so it asks (query) whoever assumes the adjacent virtual node.  Every answer carries
 * the number of its attempt; an answer to an older attempt is undone (cleanup) or ignored.
 *
 * One thing differs from the figures.  Line 64 sets l = false when another node gives this node's
 * lock back.  But l says that an attempt of this node is under way, which that cleanup does not
 * end: a second attempt would start beside the first.  Here cleanup frees the lock and nothing
 * else.  (tests/model/migration.pml shows the fault with -DLINE64.)
 *
 * The figures end when both locks are held.  From there:
 *   give   the giver releases the interval, packs its state, sends `transfer`, and keeps the state
 *          until `done`
 *   take   the taker unpacks the state, assumes the interval, answers `done`; each frees its own
 *          lock
 *   ask    an initiator that takes first sends `ask`; a partner that has nothing to give answers
 *          `abort`
 *   abort  a taker whose call has given up, or that is leaving, answers `transfer` with it: the
 *          giver takes its interval back.  So does a partner whose application refuses to give, or
 *          has more state than a message holds
 *   death  of the partner frees the lock; a giver whose taker died before `done` takes its interval
 *          back
 *
 * Each message carries its sender's clock of claims, so that the taker's claim is newer than the
 * giver's.  Other nodes may hear of the two claims in any order, or of one alone; they still know
 * which one holds.
 */
#include "phoenix/flow/mapping.h"
#include "phoenix/routing/routes.h"
#include "phoenix/services/migrate_say.h"

enum { ATTEMPT_TIMEOUT = 5000000, MAX_STATE = PH_MSG_MAX - 64 };

static ph_vp_t low(struct phnx *ph) { return ph->me.vps.n ? ph->me.vps.r[0].lo : 0; }
static ph_vp_t high(struct phnx *ph)
{
	return ph->me.vps.n ? ph->me.vps.r[ph->me.vps.n - 1].hi : 0;
}

static void tell(struct phnx *ph, ph_vp_t to, enum kind kind, uint32_t attempt)
{
	migrate_say(ph, to, kind, attempt, low(ph), high(ph));
}

/* ---- the call of the application ---- */

static void finish(struct phnx *ph, int result)
{
	ph->migration->wish = WISH_NONE;
	ph->migration->unwanted = WISH_NONE;
	ph->migration->result = result;
	if (result == 0)
		ph->migration->done++;
	ph->ops->arrived(ph->ctx);	/* wakes the waiting call */
}

static void try_again(struct phnx *ph)
{
	struct migration *m = ph->migration;

	m->trying = false;
	m->unwanted = WISH_NONE;
	m->asked = 0;
	m->refused++;
	m->retry_us = core_now(ph) + MIGRATION_RETRY * (1 + core_random(ph) % 4);
	core_due_by(ph, m->retry_us);
}

static void unlock(struct phnx *ph)
{
	struct migration *m = ph->migration;

	m->locked = false;
	m->holder = m->partner = 0;
	free(m->state);
	m->state = NULL;
	m->moving = false;
}

static void lock(struct phnx *ph, ph_vp_t holder)
{
	ph->migration->locked = true;
	ph->migration->holder = holder;
}

/* Figure 2: begins an attempt. */
static void begin(struct phnx *ph)
{
	struct migration *m = ph->migration;
	bool empty = ph->me.vps.n == 0;
	ph_vp_t v;

	if (m->wish == WISH_LEAVE && empty) {
		finish(ph, 0);
		return;
	}
	if (m->wish == WISH_LEAVE)
		m->side = low(ph) > ph->lower ? -1 : 1;
	if (empty)
		v = ph->lower + (ph_vp_t)(core_random(ph) % (uint64_t)(ph->upper - ph->lower));
	else
		v = m->side > 0 ? high(ph) : low(ph) - 1;
	if (ph->me.vps.n > 1 || (empty && m->wish == WISH_HAND) ||
	    (!empty && m->wish == WISH_JOIN)) {
		finish(ph, PH_EINVAL);
	} else if (v < ph->lower || v >= ph->upper) {
		finish(ph, PH_EBOUND);	/* there is no adjacent virtual node on that side */
	} else {
		m->trying = true;
		m->tried_us = core_now(ph);
		m->attempt++;
		tell(ph, v, QUERY, m->attempt);
	}
}

/* Returns whether the sender is adjacent "as intended" (figure 3). */
static bool adjacent(struct phnx *ph, const struct note *n)
{
	if (n->hi <= n->lo || ph->migration->wish == WISH_NONE || ph->migration->unwanted)
		return false;
	if (ph->me.vps.n == 0)
		return ph->migration->wish == WISH_JOIN || ph->migration->wish == WISH_TAKE;
	return ph->me.vps.n == 1 &&
	       (ph->migration->side > 0 ? n->lo == high(ph) : n->hi == low(ph));
}

/* ---- release, transfer, death ---- */

/* Takes [lo, hi) over, with the application's state, which is copied to an aligned block if need
 * be.  False: out of memory, and nothing was done. */
static bool take(struct phnx *ph, ph_vp_t lo, ph_vp_t hi, const void *state, size_t len)
{
	struct vrange range = { lo, hi };
	ph_vps_t all = ph_vps_create_union(&ph->me.vps, &(struct ph_vps){ .n = 1, .r = &range });
	bool askew = (uintptr_t)state % BODY_ALIGN != 0;
	void *own = askew ? malloc(len + 1) : NULL;

	if (!all || (askew && !own)) {
		ph_vps_destroy(all);
		free(own);
		return false;
	}
	if (own)
		state = memcpy(own, state, len);
	if (ph->migration->app.take)
		ph->migration->app.take(ph->migration->app.arg, lo, hi, state, len);
	mapping_become(ph, all);
	free(own);
	return true;
}

static void take_back(struct phnx *ph, ph_vp_t lo, ph_vp_t hi, const void *state, size_t len)
{
	if (!take(ph, lo, hi, state, len))
		core_report(
			ph, PH_ENOMEM,
			"out of memory: virtual nodes [%lld, %lld), which could not move, are lost",
			lo, hi);
}

/* Both nodes are locked and agree: gives [lo, hi) to the partner.  Returns 0, or an error after
 * which this node has it as before. */
static int give(struct phnx *ph, ph_vp_t lo, ph_vp_t hi, uint32_t attempt)
{
	struct migration *m = ph->migration;
	struct vrange range = { lo, hi };
	struct ph_vps moving = { .n = 1, .r = &range };

	m->lo = lo;
	m->hi = hi;
	m->moving = true;
	m->state = NULL;
	m->state_len = 0;
	mapping_release(ph, &moving);
	int error = m->app.give ? m->app.give(m->app.arg, lo, hi, &m->state, &m->state_len) : 0;
	if (error) {
		mapping_assume(ph, &moving);
		return error < 0 ? error : PH_EINVAL;
	}
	if (m->state_len > MAX_STATE) {
		take_back(ph, lo, hi, m->state, m->state_len);
		return PH_ETOOBIG;
	}
	migrate_say(ph, m->partner, TRANSFER, attempt, lo, hi);
	return 0;
}

static bool i_lead(struct phnx *ph)
{
	return ph->migration->locked && ph->migration->holder == ph->name;
}

/* Lines 56 and 62: the initiator holds both locks. */
static void both_locked(struct phnx *ph, ph_vp_t partner)
{
	struct migration *m = ph->migration;
	bool gives = m->wish == WISH_LEAVE || m->wish == WISH_HAND;

	m->trying = false;
	m->asked = 0;
	m->partner = partner;
	/* The call has given up meanwhile, or the application has assumed or released virtual
	 * nodes. */
	if (m->unwanted || m->wish == WISH_NONE || (gives && ph->me.vps.n != 1)) {
		unlock(ph);
		tell(ph, partner, CLEANUP, m->attempt);
		try_again(ph);
		return;
	}
	int error = 0;
	switch (m->wish) {
	case WISH_LEAVE:
		error = give(ph, low(ph), high(ph), m->attempt);
		break;
	case WISH_HAND:
		if (m->count >= high(ph) - low(ph))
			m->count = high(ph) - low(ph);
		error = m->side > 0 ? give(ph, high(ph) - m->count, high(ph), m->attempt)
				    : give(ph, low(ph), low(ph) + m->count, m->attempt);
		break;
	case WISH_JOIN:
	case WISH_TAKE:
		tell(ph, partner, ASK, m->attempt);
		break;
	case WISH_NONE:
	case WISH_FORMER:
		break;
	}
	if (error) {
		unlock(ph);
		tell(ph, partner, CLEANUP, m->attempt);
		finish(ph, error);
	}
}

static void on_ask(struct phnx *ph, const struct note *n)
{
	struct migration *m = ph->migration;
	ph_vp_t size = high(ph) - low(ph);

	if (!m->locked || m->holder != n->from)
		return;
	m->partner = n->from;
	ph_vp_t count = n->wish == WISH_JOIN ? size / 2 : n->count < size ? n->count : size;
	/* The taker is below this node if its side is up.  A joining node gets the lower half,
	 * as in appendix B. */
	bool lower = n->wish == WISH_JOIN || n->side > 0;
	int error = count == 0 || ph->me.vps.n != 1 ? PH_EINVAL
		    : lower			    ? give(ph, low(ph), low(ph) + count, n->attempt)
			    : give(ph, high(ph) - count, high(ph), n->attempt);
	if (error) {
		unlock(ph);
		tell(ph, n->from, ABORT, n->attempt);
	}
	if (error == PH_ETOOBIG && !m->reported)
		core_report(ph, error,
			    "another node requests more state than a message holds");
	m->reported |= error == PH_ETOOBIG;
}

static void on_transfer(struct phnx *ph, const struct note *n)
{
	struct migration *m = ph->migration;
	bool mine = i_lead(ph);

	if (!m->locked || (m->holder != n->from && !(mine && m->partner == n->from)))
		return;		/* the giver is dead for this node, and took its interval back */
	/* no call waits for it here, or memory is short */
	if ((mine && m->unwanted) || ph->leaving ||
	    !take(ph, n->lo, n->hi, n->state, n->state_len)) {
		unlock(ph);
		tell(ph, n->from, ABORT, n->attempt);
		if (mine)
			try_again(ph);
		return;
	}
	unlock(ph);
	tell(ph, n->from, DONE, n->attempt);
	if (mine)
		finish(ph, 0);
}

static void on_done(struct phnx *ph, const struct note *n)
{
	bool mine = i_lead(ph);

	if (!ph->migration->moving || ph->migration->partner != n->from)
		return;
	unlock(ph);
	if (mine)
		finish(ph, 0);
}

/* The partner is dead or refuses: gives up the transaction. */
static void undo(struct phnx *ph)
{
	struct migration *m = ph->migration;
	bool mine = i_lead(ph);

	if (m->moving)
		take_back(ph, m->lo, m->hi, m->state, m->state_len);
	if (mine && m->moving && m->unwanted)
		m->wish = WISH_NONE;
	unlock(ph);
	if (mine)
		try_again(ph);
}

void migrate_peer_gone(struct phnx *ph, ph_vp_t peer)
{
	struct migration *m = ph->migration;

	if (m->locked &&
	    (m->holder == peer || m->partner == peer || (i_lead(ph) && m->asked == peer))) {
		undo(ph);
	} else if (m->asked == peer) {
		try_again(ph);
	}
}

/* ---- figure 3 ---- */

static void on_query(struct phnx *ph, const struct note *n)
{
	struct migration *m = ph->migration;

	if (n->from == ph->name) {
		if (m->trying && n->attempt == m->attempt)
			try_again(ph);
	} else if (n->from < ph->name) {
		tell(ph, n->from, LOCK_YOU_FIRST, n->attempt);
	} else if (!m->locked) {
		lock(ph, n->from);
		tell(ph, n->from, OK1, n->attempt);
	} else {
		tell(ph, n->from, FAIL1, n->attempt);
	}
}

static void on_lock_you_first(struct phnx *ph, const struct note *n)
{
	struct migration *m = ph->migration;

	if (!m->locked && adjacent(ph, n)) {
		lock(ph, ph->name);
		m->asked = n->from;
		migrate_say(ph, n->from, LOCK2, m->attempt, n->lo, n->hi);
	} else {
		try_again(ph);
	}
}

static void on_lock2(struct phnx *ph, const struct note *n)
{
	if (!ph->migration->locked && ph->me.vps.n == 1 && low(ph) == n->lo && high(ph) == n->hi) {
		lock(ph, n->from);
		tell(ph, n->from, OK2, n->attempt);
	} else {
		tell(ph, n->from, FAIL2, n->attempt);
	}
}

static void on_ok1(struct phnx *ph, const struct note *n, bool current)
{
	struct migration *m = ph->migration;

	if (current && !m->locked && adjacent(ph, n)) {
		lock(ph, ph->name);
		both_locked(ph, n->from);
		return;
	}
	tell(ph, n->from, CLEANUP, n->attempt);
	if (current)
		m->asked = n->from;
}

static void on_cleanup(struct phnx *ph, const struct note *n)
{
	if (ph->migration->locked && ph->migration->holder == n->from && !ph->migration->moving)
		unlock(ph);
	tell(ph, n->from, CLEANUP_ACK, n->attempt);
}

void migrate_on_message(struct phnx *ph, const struct rmsg *msg)
{
	struct migration *m = ph->migration;
	struct note n;

	if (!migrate_read(msg, &n))
		return;
	route_saw_stamp(ph, n.clock);
	/* whether it answers the attempt that is under way */
	bool current = m->trying && n.attempt == m->attempt;
	switch (n.kind) {
	case QUERY:
		on_query(ph, &n);
		break;
	case LOCK_YOU_FIRST:
		if (current && !m->asked)
			on_lock_you_first(ph, &n);
		break;
	case LOCK2:
		on_lock2(ph, &n);
		break;
	case FAIL1:
		if (current)
			try_again(ph);
		break;
	case FAIL2:
		if (current && i_lead(ph)) {
			unlock(ph);
			try_again(ph);
		}
		break;
	case OK1:
		on_ok1(ph, &n, current && !m->asked);
		break;
	case OK2:
		if (current && i_lead(ph) && m->asked == n.from)
			both_locked(ph, n.from);
		else
			tell(ph, n.from, CLEANUP, n.attempt);
		break;
	case CLEANUP:
		on_cleanup(ph, &n);
		break;
	case CLEANUP_ACK:
		if (current && m->asked == n.from)
			try_again(ph);
		break;
	case ASK:
		on_ask(ph, &n);
		break;
	case TRANSFER:
		on_transfer(ph, &n);
		break;
	case DONE:
		on_done(ph, &n);
		break;
	case ABORT:
		if ((m->moving || i_lead(ph)) && m->partner == n.from)
			undo(ph);
		break;
	case N_KINDS:
		break;
	}
}

/* ---- calls ---- */

void migrate_set_app(struct phnx *ph, const struct ph_migration *m)
{
	ph->migration->app = m ? *m : (struct ph_migration){ 0 };
}

int migrate_result(const struct phnx *ph)
{
	return ph->migration->result;
}

bool migrate_is_locked(const struct phnx *ph)
{
	return ph->migration->locked;
}

int migrate_begin(struct phnx *ph, enum wish wish, ph_vp_t count, int side)
{
	struct migration *m = ph->migration;

	if (m->wish != WISH_NONE)
		return PH_EBUSY;
	if (count < 1 || ph->upper <= ph->lower)
		return PH_EINVAL;
	m->wish = wish;
	/* What an earlier call with the same wish has under way belongs to this one: so many
	 * short calls get as far as a long one. */
	if (m->unwanted == wish &&
	    (wish == WISH_JOIN || wish == WISH_LEAVE || (m->count == count && m->side == side))) {
		m->unwanted = WISH_NONE;
	} else {
		m->count = count;
		m->side = side;
		m->unwanted = m->unwanted ? WISH_FORMER : WISH_NONE;
	}
	m->result = 1;
	m->retry_us = 0;
	migrate_tick(ph, core_now(ph), &(uint64_t){ UINT64_MAX });
	return 0;
}

/* The call has given up; its attempt may still go on (TRICKS: unwanted-goes-back). */
void migrate_cancel(struct phnx *ph)
{
	struct migration *m = ph->migration;

	if (!m->unwanted && (m->trying || i_lead(ph)))
		m->unwanted = m->wish;
	/* else what is on its way may arrive; there is no other wish before it has, or has come
	 * back */
	if (!m->moving || !i_lead(ph))
		m->wish = WISH_NONE;
}

void migrate_tick(struct phnx *ph, uint64_t now, uint64_t *next)
{
	struct migration *m = ph->migration;

	if (m->n_unsaid) {
		migrate_say_rest(ph);
		*next = now + MEMORY_WAIT < *next ? now + MEMORY_WAIT : *next;
	}
	/* A query whose receiver has died is never answered: begins another attempt; late
	 * answers are undone. */
	if (m->trying && !m->asked && now >= m->tried_us + ATTEMPT_TIMEOUT)
		try_again(ph);
	if (m->wish == WISH_NONE)
		return;
	if (!m->trying && !m->locked && now >= m->retry_us)
		begin(ph);
	if (!m->trying && m->retry_us > now && m->retry_us < *next)
		*next = m->retry_us;
}
