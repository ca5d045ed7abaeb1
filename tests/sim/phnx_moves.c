/* phnx_moves.c - phnx_cluster's tests of virtual nodes that move with their state, and of nodes
 * that leave. */
#include <string.h>
#include "tests/sim/phnx_cluster.h"

/* ---- migration ---- */

static int no_state(void *arg, ph_vp_t lo, ph_vp_t hi, void **state, size_t *len)
{
	/* the application's state: one byte for each virtual node */
	unsigned char *owned = arg;

	*state = malloc((size_t)(hi - lo));
	*len = (size_t)(hi - lo);
	memcpy(*state, owned + lo, *len);
	memset(owned + lo, 0, *len);
	return 0;
}

static void take_state(void *arg, ph_vp_t lo, ph_vp_t hi, const void *state, size_t len)
{
	unsigned char *owned = arg;

	CU_ASSERT_EQUAL(len, (size_t)(hi - lo));
	for (ph_vp_t v = lo; v < hi; v++)
		CU_ASSERT_EQUAL(owned[v], 0);
	memcpy(owned + lo, state, len);
}

static bool nobody_wishes(struct sim *s)
{
	for (int i = 0; i < s->n; i++) {
		if (s->nodes[i].dead)
			continue;
		receive_all(s, i);
		if (s->nodes[i].ph->migration->wish != WISH_NONE ||
		    s->nodes[i].ph->migration->locked)
			return false;
	}
	return true;
}

static void wish(struct sim *s, int node)
{
	struct phnx *ph = s->nodes[node].ph;

	if (sim_random(s, 8) == 0)
		migrate_cancel(ph);
	if (ph->me.vps.n == 0)
		migrate_begin(ph, WISH_JOIN, 1, 1);
	else switch (sim_random(s, 4)) {
	case 0: migrate_begin(ph, WISH_LEAVE, 1, 1); break;
	case 1:
		migrate_begin(ph, WISH_TAKE, 1 + (ph_vp_t)sim_random(s, 100),
			      sim_random(s, 2) ? 1 : -1);
		break;
	default:
		migrate_begin(ph, WISH_HAND, 1 + (ph_vp_t)sim_random(s, 100),
			      sim_random(s, 2) ? 1 : -1);
		break;
	}
	sim_touch(s, node);
}

static void test_random_migration(void)
{
	struct sim s;
	static unsigned char owned[8][SPACE];
	uint64_t moved = 0;

	sim_init(&s, seed, 8, 0, SPACE);
	sim_tardy(&s, tardy_us);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	memset(owned, 0, sizeof owned);
	memset(owned[0], 1, SPACE);
	for (int i = 0; i < 8; i++)
		s.nodes[i].ph->migration->app =
			(struct ph_migration){ no_state, take_state, owned[i] };
	assume(&s, 0, 0, SPACE);
	start_traffic(&s);
	for (int round = 0; round < 2000; round++) {
		send_one(&s, (int)sim_random(&s, 8));
		wish(&s, (int)sim_random(&s, 8));
		if (sim_random(&s, 3) == 0)
			receive_all(&s, (int)sim_random(&s, 8));
		if (sim_random(&s, 100) == 0)
			sim_cut(&s, (int)sim_random(&s, 8), (unsigned)sim_random(&s, 8));
		sim_run(&s, s.now + sim_random(&s, 4000));
	}
	CU_ASSERT_TRUE(sim_until(&s, 30000000, nobody_wishes));
	ph_vp_t covered = 0;
	for (int i = 0; i < 8; i++) {
		struct phnx *ph = s.nodes[i].ph;
		CU_ASSERT(ph->me.vps.n <= 1);
		for (size_t k = 0; k < ph->me.vps.n; k++)
			covered += ph->me.vps.r[k].hi - ph->me.vps.r[k].lo;
		for (int v = 0; v < SPACE; v++)
			CU_ASSERT_EQUAL(owned[i][v], ph_vps_is_member(&ph->me.vps, v));
		moved += ph->migration->done;
	}
	CU_ASSERT_EQUAL(covered, SPACE);	/* disjoint, since the state is */
	CU_ASSERT(moved > 100);
	end_traffic(&s);
	sim_free(&s);
}

/* Two nodes: the first has everything, and the second has asked for half. */
static unsigned char halves[2][SPACE];

static void begin_join(struct sim *s)
{
	sim_init(s, seed, 2, 0, SPACE);
	sim_know(s, 1, 0);
	CU_ASSERT_TRUE(sim_until(s, 5000000, converged));
	memset(halves, 0, sizeof halves);
	memset(halves[0], 1, SPACE);
	for (int i = 0; i < 2; i++)
		s->nodes[i].ph->migration->app =
			(struct ph_migration){ no_state, take_state, halves[i] };
	assume(s, 0, 0, SPACE);
	sim_run(s, s->now + 100000);
	struct migration *m = s->nodes[1].ph->migration;
	migrate_begin(s->nodes[1].ph, WISH_JOIN, 1, 1);
	sim_touch(s, 1);
	for (uint64_t end = s->now + 5000000; !m->partner && s->now < end;)
		sim_run(s, s->now + 10);
	/* it has asked, and nothing has arrived */
	CU_ASSERT_FATAL(m->partner && !s->nodes[1].ph->me.vps.n);
}

static ph_vp_t assumed(struct sim *s, int node)
{
	const struct ph_vps *vps = &s->nodes[node].ph->me.vps;
	ph_vp_t n = 0;

	for (size_t k = 0; k < vps->n; k++)
		n += vps->r[k].hi - vps->r[k].lo;
	return n;
}

static void nothing_moved(struct sim *s)
{
	sim_run(s, s->now + 1000000);
	CU_ASSERT_EQUAL(assumed(s, 0), SPACE);
	CU_ASSERT_EQUAL(assumed(s, 1), 0);
	for (int v = 0; v < SPACE; v++)
		CU_ASSERT_EQUAL(halves[0][v] - halves[1][v], 1);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_FALSE(s->nodes[i].ph->migration->locked);
}

static void join_again(struct sim *s)
{
	CU_ASSERT_EQUAL(migrate_begin(s->nodes[1].ph, WISH_JOIN, 1, 1), 0);
	sim_touch(s, 1);
	sim_run(s, s->now + 1000000);
	CU_ASSERT_EQUAL(s->nodes[1].ph->migration->result, 0);
	CU_ASSERT_EQUAL(assumed(s, 1), SPACE / 2);
}

/* A call whose time is up gets nothing later.  Another call may follow at once, and gets what is
 * still under way for the first one. */
static void test_migration_given_up(void)
{
	struct sim s;

	begin_join(&s);
	migrate_cancel(s.nodes[1].ph);
	nothing_moved(&s);
	join_again(&s);
	sim_free(&s);

	begin_join(&s);
	uint64_t refused = s.nodes[1].ph->migration->refused;
	migrate_cancel(s.nodes[1].ph);
	join_again(&s);
	CU_ASSERT_EQUAL(s.nodes[1].ph->migration->refused, refused);
	sim_free(&s);
}

/* Nothing moves to a node that is leaving: it would leave with it. */
static void test_no_migration_to_who_leaves(void)
{
	struct sim s;

	begin_join(&s);
	s.nodes[1].ph->leaving = true;
	migrate_cancel(s.nodes[1].ph);
	nothing_moved(&s);
	sim_free(&s);
}

/* What the application refuses to give, or what does not fit into a message, stays where it is, and
 * no lock stays held. */
static int give_nothing(void *arg, ph_vp_t lo, ph_vp_t hi, void **state, size_t *len)
{
	(void)arg, (void)lo, (void)hi, (void)state, (void)len;
	return PH_ENOMEM;
}

static int give_too_much(void *arg, ph_vp_t lo, ph_vp_t hi, void **state, size_t *len)
{
	unsigned char *owned = arg;

	*len = PH_MSG_MAX;
	*state = calloc(1, *len);
	memset(owned + lo, 0, (size_t)(hi - lo));
	return 0;
}

static void take_much_back(void *arg, ph_vp_t lo, ph_vp_t hi, const void *state, size_t len)
{
	unsigned char *owned = arg;

	(void)state;
	CU_ASSERT_EQUAL(len, PH_MSG_MAX);
	memset(owned + lo, 1, (size_t)(hi - lo));
}

static void test_what_is_not_given(void)
{
	enum { LEFT = 100 };
	static const struct {
		struct ph_migration app;
		int error;
	} rows[] = {
		{ { give_nothing, take_state, halves[0] }, PH_ENOMEM },
		{ { give_too_much, take_much_back, halves[0] }, PH_ETOOBIG },
	};
	/* the last one is node 1's */
	static const enum wish wishes[] = { WISH_HAND, WISH_LEAVE, WISH_TAKE };
	struct sim s;

	begin_join(&s);
	sim_run(&s, s.now + 1000000);
	struct phnx *giver = s.nodes[0].ph;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (size_t k = 0; k < sizeof wishes / sizeof *wishes; k++) {
			int caller = wishes[k] == WISH_TAKE;
			struct migration *m = s.nodes[caller].ph->migration;
			giver->migration->app = rows[i].app;
			CU_ASSERT_EQUAL(
				migrate_begin(s.nodes[caller].ph, wishes[k], LEFT, caller ? 1 : -1),
				0);
			sim_touch(&s, caller);
			sim_run(&s, s.now + 1000000);
			CU_ASSERT_EQUAL(m->result, caller ? 1 : rows[i].error);
			migrate_cancel(s.nodes[caller].ph);
			sim_run(&s, s.now + 1000000);
			CU_ASSERT_EQUAL(assumed(&s, 0), SPACE / 2);
			CU_ASSERT_EQUAL(assumed(&s, 1), SPACE / 2);
			for (int v = 0; v < SPACE; v++)
				CU_ASSERT_EQUAL(halves[0][v], v >= SPACE / 2);
			CU_ASSERT_FALSE(s.nodes[0].ph->migration->locked ||
					s.nodes[1].ph->migration->locked);
		}
	CU_ASSERT_EQUAL(s.nodes[0].last_error, PH_ETOOBIG);
	CU_ASSERT_EQUAL(s.nodes[0].errors, 1);
	giver->migration->app = (struct ph_migration){ no_state, take_state, halves[0] };
	CU_ASSERT_EQUAL(migrate_begin(giver, WISH_HAND, LEFT, -1), 0);
	sim_touch(&s, 0);
	sim_run(&s, s.now + 1000000);
	CU_ASSERT_EQUAL(assumed(&s, 1), SPACE / 2 + LEFT);
	sim_free(&s);
}

/* A node that has left is known to have left, however long routing messages may be held:
 * otherwise messages to its virtual nodes would wait for ever. */
static void test_farewell_is_not_held(void)
{
	struct sim s;

	sim_init(&s, seed, 4, 0, SPACE);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, all_direct));
	assume(&s, 3, 0, SPACE);
	sim_run(&s, s.now + 100000);
	sim_tardy(&s, 60000000);
	release(&s, 3, 0, SPACE);
	node_goodbye(s.nodes[3].ph);
	sim_touch(&s, 3);
	ph_vp_t name = s.nodes[3].ph->name;
	sim_run(&s, s.now + 10000);
	sim_kill(&s, 3);
	for (int i = 0; i < 3; i++) {
		const struct rentry *e = route_find(s.nodes[i].ph, name);
		CU_ASSERT(e && e->payload.gone);
		CU_ASSERT_EQUAL(holder_of(s.nodes[i].ph, 0), 0);
	}
	sim_free(&s);
}

/* The same if the connection breaks while the last message is under way to node 2: another
 * neighbour, which was promised that 2 would hear it, tells 2. */
static void test_farewell_is_passed_on(void)
{
	struct sim s;

	sim_init(&s, seed, 3, 0, SPACE);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, all_direct));
	sim_run(&s, s.now + 1000000);
	ph_vp_t name = s.nodes[1].ph->name, to = s.nodes[2].ph->name;
	node_goodbye(s.nodes[1].ph);
	sim_touch(&s, 1);
	for (unsigned k = 0; k < s.nodes[1].n_ends; k++)
		if (sim_peer(&s, 1, k) == 2)
			sim_cut(&s, 1, k);
	CU_ASSERT_PTR_NULL(route_link_to(s.nodes[2].ph, name));
	CU_ASSERT_PTR_NOT_NULL(route_link_to(s.nodes[0].ph, to));
	sim_run(&s, s.now + 1000000);
	sim_kill(&s, 1);
	const struct rentry *e = route_find(s.nodes[2].ph, name);
	CU_ASSERT(e && e->payload.gone);
	sim_free(&s);
}

/* Node 2 has a link to node 1 alone. */
static bool two_by_one(const struct sim *s, int from, int to)
{
	(void)s;
	return (from != 2 && to != 2) || from == 1 || to == 1;
}

static bool two_has_joined(struct sim *s)
{
	return assumed(s, 2) > 0;
}

/* Node 2 takes virtual nodes over from node 0, and what 0 has announced arrives late at 2.  Of the
 * two claims that node 3 knows then, the taker's is the newer one. */
static void test_taker_claims_last(void)
{
	struct sim s;

	sim_init(&s, seed, 4, 0, SPACE);
	s.may_connect = two_by_one;
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, i == 2 ? 1 : 0);
	sim_know(&s, 3, 1);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	assume(&s, 0, 0, SPACE - 20);
	sim_run(&s, s.now + 1000000);
	s.nodes[1].ph->routes->tardy_us = UINT64_MAX / 4;
	for (int i = 0; i < 20; i++) {
		assume(&s, 0, SPACE - 20 + i, SPACE - 20 + i + 1);
		sim_run(&s, s.now + 100000);
	}
	s.nodes[0].ph->routes->tardy_us = UINT64_MAX / 4;
	migrate_begin(s.nodes[2].ph, WISH_JOIN, 1, 1);
	sim_touch(&s, 2);
	CU_ASSERT_TRUE_FATAL(sim_until(&s, 60000000, two_has_joined));
	/* as far as it knows */
	CU_ASSERT_EQUAL(holder_of(s.nodes[3].ph, 0), s.nodes[0].ph->name);
	sim_kill(&s, 0);
	s.nodes[1].ph->routes->tardy_us = s.nodes[1].ph->routes->tardy_until = 0;
	sim_run(&s, s.now + 1000000);
	CU_ASSERT_EQUAL(holder_of(s.nodes[3].ph, 0), s.nodes[2].ph->name);
	sim_free(&s);
}

/* ---- the suite ---- */

void add_moves(CU_pSuite suite)
{
	CU_add_test(suite, "random migration keeps the space covered", test_random_migration);
	CU_add_test(suite, "who gives a migration up gets nothing", test_migration_given_up);
	CU_add_test(suite, "nothing moves to a node that leaves", test_no_migration_to_who_leaves);
	CU_add_test(suite, "what is not given stays", test_what_is_not_given);
	CU_add_test(suite, "a farewell is not held back", test_farewell_is_not_held);
	CU_add_test(suite, "a farewell is passed on", test_farewell_is_passed_on);
	CU_add_test(suite, "who takes over claims last", test_taker_claims_last);
}

void add_moves_tardily(CU_pSuite suite)
{
	CU_add_test(suite, "random migration keeps the space covered", test_random_migration);
}
