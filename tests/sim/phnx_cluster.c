/* phnx_cluster.c - clusters of Phoenix nodes in the simulator: how they find each other and
 * refuse strangers.  The rest is in phnx_letters.c, phnx_losses.c, phnx_moves.c and phnx_ends.c.
 * Usage: phnx_cluster [SEED]; a failure prints the seed. */
#include <stdio.h>
#include <string.h>
#include "tests/sim/phnx_cluster.h"

uint64_t seed = 1, tardy_us;

bool converged(struct sim *s)
{
	uint64_t digest = 0;

	for (int i = 0; i < s->n; i++) {
		if (s->nodes[i].dead)
			continue;
		struct phnx *ph = s->nodes[i].ph;
		int reachable = 0, alive = 0;
		for (unsigned k = 0; k < ph->routes->n; k++)
			reachable += ph->routes->list[k]->nhops < UNREACHABLE;
		for (int k = 0; k < s->n; k++)
			alive += !s->nodes[k].dead && s->nodes[k].group == s->nodes[i].group;
		if (reachable != alive ||
		    (digest && digest != ph->routes->digest && s->nodes[i].group == 0))
			return false;
		if (s->nodes[i].group == 0)
			digest = ph->routes->digest;
	}
	return true;
}

void assume(struct sim *s, int node, ph_vp_t lo, ph_vp_t hi)
{
	ph_vps_t vps = ph_vps_create_range(lo, hi);

	CU_ASSERT_EQUAL(mapping_assume(s->nodes[node].ph, vps), 0);
	ph_vps_destroy(vps);
	sim_touch(s, node);
}

void release(struct sim *s, int node, ph_vp_t lo, ph_vp_t hi)
{
	ph_vps_t vps = ph_vps_create_range(lo, hi);

	CU_ASSERT_EQUAL(mapping_release(s->nodes[node].ph, vps), 0);
	ph_vps_destroy(vps);
	sim_touch(s, node);
}

void share_out(struct sim *s)
{
	for (int i = 0; i < s->n; i++)
		assume(s, i, (ph_vp_t)SPACE * i / s->n, (ph_vp_t)SPACE * (i + 1) / s->n);
}

/* ---- convergence ---- */

static void test_star_learns_all(void)
{
	struct sim s;

	sim_init(&s, seed, 24, 0, SPACE);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_FATAL(sim_until(&s, 5000000, converged));
	sim_run(&s, s.now + 3000000);
	for (int i = 0; i < s.n; i++)
		/* direct links between all, one each */
		CU_ASSERT_EQUAL(s.nodes[i].ph->links->n, 23);
	sim_free(&s);
}

/* ---- how many routing messages are sent until all nodes know all others ----
 * In one place each node tells each neighbour what it announces, with its proof, and names its
 * neighbours once; where connections are slow, some twice.  Nodes that seldom run send no more.
 */

static uint64_t updates_of_mesh(uint64_t delay_min, uint64_t delay_max, uint64_t turn_us)
{
	struct sim s;
	uint64_t updates = 0;

	sim_init(&s, seed, 24, 0, SPACE);
	s.delay_min = delay_min;
	s.delay_max = delay_max;
	s.turn_us = turn_us;
	for (int i = 0; i < s.n; i++)
		for (int k = 0; k < s.n; k++)
			sim_know(&s, i, k);
	CU_ASSERT_TRUE(sim_until(&s, 5000000 + 10 * turn_us, converged));
	sim_run(&s, s.now + 2000000 + 10 * turn_us);
	for (int i = 0; i < s.n; i++) {
		CU_ASSERT_EQUAL(s.nodes[i].ph->links->n, (unsigned)s.n - 1);
		updates += s.nodes[i].ph->links->frames_out[FRAME_ROUTE];
	}
	sim_free(&s);
	return updates;
}

static void test_few_updates(void)
{
	enum { LEAST = 2 * 24 * 23 };
	uint64_t near = updates_of_mesh(50, 500, 0), far = updates_of_mesh(1000, 20000, 0),
		 farther = updates_of_mesh(1000, 50000, 0);

	if (getenv("SIM_VERBOSE"))
		printf("updates of 24 nodes: %llu, %llu, %llu\n", (unsigned long long)near,
		       (unsigned long long)far, (unsigned long long)farther);
	CU_ASSERT_EQUAL(near, LEAST);
	CU_ASSERT(far <= LEAST * 21 / 20);
	CU_ASSERT(farther <= LEAST * 11 / 10);
	for (uint64_t turn = 10000; turn <= 6250000; turn *= 5) {
		uint64_t shared = updates_of_mesh(50, 500, turn);
		if (getenv("SIM_VERBOSE"))
			printf("each once in %llu us: %llu\n", (unsigned long long)turn,
			       (unsigned long long)shared);
		CU_ASSERT(shared <= LEAST * (turn < HANDSHAKE_TIMEOUT ? 11 : 13) / 10);
	}
}

/* Counts the links that were made, at both ends.  All nodes know the first node and learn of the
 * others from it, each with two addresses. */
static unsigned ends_of_star(uint64_t turn_us)
{
	struct sim s;
	unsigned ends = 0;

	sim_init(&s, seed, 24, 0, SPACE);
	s.turn_us = turn_us;
	for (int i = 0; i < s.n; i++) {
		struct payload *me = &s.nodes[i].ph->me;
		me->addrs[me->n_addrs] = me->addrs[0];
		me->addrs[me->n_addrs++].port++;
		route_self_changed(s.nodes[i].ph);
		if (i)
			sim_know(&s, i, 0);
	}
	CU_ASSERT_TRUE(sim_until(&s, 20000000, converged));
	sim_run(&s, s.now + 5000000);
	for (int i = 0; i < s.n; i++) {
		CU_ASSERT_EQUAL(s.nodes[i].ph->links->n, (unsigned)s.n - 1);
		ends += (unsigned)s.nodes[i].ph->links->serial;
	}
	sim_free(&s);
	return ends;
}

static void test_no_second_links(void)
{
	for (uint64_t turn = 0; turn <= 200000; turn += 100000) {
		unsigned ends = ends_of_star(turn);
		if (getenv("SIM_VERBOSE"))
			printf("ends of links, each node once in %llu us: %u\n",
			       (unsigned long long)turn, ends);
		CU_ASSERT(ends <= 24 * 23 * 21 / 20);
	}
}

static bool only_neighbours(const struct sim *s, int from, int to)
{
	(void)s;
	return from - to == 1 || to - from == 1;
}

static void test_chain_routes(void)
{
	struct sim s;

	sim_init(&s, seed, 12, 0, SPACE);
	s.may_connect = only_neighbours;
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, i - 1);
	CU_ASSERT_FATAL(sim_until(&s, 10000000, converged));
	struct rentry *e = route_find(s.nodes[0].ph, s.nodes[11].ph->name);
	CU_ASSERT(e && e->nhops == 11);
	share_out(&s);
	sim_run(&s, s.now + 1000000);
	CU_ASSERT_EQUAL(holder_of(s.nodes[0].ph, SPACE - 1), s.nodes[11].ph->name);
	sim_cut(&s, 5, 0);	/* the node reconnects by itself */
	sim_cut(&s, 5, 0);
	sim_run(&s, s.now + 100000);
	CU_ASSERT_TRUE(sim_until(&s, 10000000, converged));
	sim_free(&s);
}

/* ---- direct links come back soon after an interruption of any length ---- */

static bool blocked;

static bool unless_blocked(const struct sim *s, int from, int to)
{
	(void)s;
	return !blocked || (from != 1 && to != 1) || from == 0 || to == 0;
}

bool all_direct(struct sim *s)
{
	for (int i = 0; i < s->n; i++)
		for (int k = 0; k < s->n; k++)
			if (i != k && !route_link_to(s->nodes[i].ph, s->nodes[k].ph->name))
				return false;
	return true;
}

static void test_direct_again(void)
{
	struct sim s;

	blocked = false;
	sim_init(&s, seed, 8, 0, SPACE);
	s.may_connect = unless_blocked;
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 3000000, all_direct));
	blocked = true;	/* between node 1 and all but node 0, through which these stay reachable */
	for (unsigned k = s.nodes[1].n_ends; k--;)
		sim_cut(&s, 1, k);
	sim_run(&s, s.now + 60000000);
	CU_ASSERT_TRUE(converged(&s));
	CU_ASSERT_FALSE(all_direct(&s));
	blocked = false;
	CU_ASSERT_TRUE(sim_until(&s, 2000000, all_direct));

	for (int i = 4; i < s.n; i++)	/* and no other node has a link to them */
		s.nodes[i].group = 1;
	sim_cut_groups(&s);
	sim_run(&s, s.now + 20000000);
	CU_ASSERT_FALSE(all_direct(&s));
	for (int i = 4; i < s.n; i++)
		s.nodes[i].group = 0;
	CU_ASSERT_TRUE(sim_until(&s, 3000000, all_direct));
	sim_free(&s);
}

/* ---- how soon a link comes back that breaks ---- */

static void test_soon_back(void)
{
	enum { TIMES = 50, SOON = 15000, OFTEN = 1000000 };
	struct sim s;
	uint64_t links;

	sim_init(&s, seed, 2, 0, SPACE);
	sim_know(&s, 1, 0);
	CU_ASSERT_TRUE_FATAL(sim_until(&s, 5000000, all_direct));
	for (int i = 0; i < TIMES; i++) {
		sim_run(&s, s.now + LASTED);
		sim_cut(&s, 1, 0);
		CU_ASSERT_TRUE(sim_until(&s, SOON, all_direct));
	}
	/* links that break at once are not made so often */
	links = s.nodes[1].ph->links->serial;
	for (uint64_t end = s.now + OFTEN; s.now < end; sim_run(&s, s.now + 1000))
		sim_cut(&s, 1, 0);
	CU_ASSERT(s.nodes[1].ph->links->serial - links <= OFTEN / RETRY_MIN + 1);
	CU_ASSERT_TRUE(sim_until(&s, 2 * RETRY_MAX, all_direct));
	sim_free(&s);
}

/* ---- two nodes dial each other at once: each knows the round-trip time, whichever link is left
 * ---- */

static bool knows_time(const struct sim *s, int node)
{
	struct plink *l = route_link_to(s->nodes[node].ph, s->nodes[!node].ph->name);

	return l && l->rtt_us;
}

static bool times_are_known(uint64_t sub_seed)
{
	/* LATE: what a closed link has swallowed was retransmitted by then */
	enum { UNTIL = 100000, STEP = 5, LATE = 2000000 };
	struct sim s;
	bool known = true;

	sim_init(&s, sub_seed, 2, 0, SPACE);
	share_out(&s);
	for (int i = 0; i < 2; i++) {
		struct pbuf *b = pbuf_new("x", 1);
		CU_ASSERT_EQUAL(flow_send_own(s.nodes[i].ph, i ? 0 : SPACE - 1, b, 7, 0, 0), 0);
		pbuf_put(b);
		sim_know(&s, i, !i);
	}
	for (uint64_t end = s.now + UNTIL; s.now < end; sim_run(&s, s.now + STEP))
		for (int i = 0; i < 2; i++)
			known &= !s.nodes[i].ph->flows->received || knows_time(&s, i);
	sim_run(&s, s.now + LATE);
	for (int i = 0; i < 2; i++)
		known &= s.nodes[i].ph->flows->received && s.nodes[i].ph->links->n == 1;
	sim_free(&s);
	return known;
}

static void test_time_of_a_double_link(void)
{
	enum { TIMES = 200 };
	int unknown = 0;

	for (int i = 0; i < TIMES; i++)
		unknown += !times_are_known(seed * TIMES + (uint64_t)i);
	CU_ASSERT_EQUAL(unknown, 0);
}

/* A node behind an sshd that waits for acknowledgements gets something back at once for
 * everything that it sends; no other node does. */
static void test_heard_through_ssh(void)
{
	enum { MESSAGES = 20 };
	struct sim s;
	uint64_t heard[2];

	sim_init(&s, seed, 2, 0, SPACE);
	sim_know(&s, 1, 0);
	CU_ASSERT_TRUE_FATAL(sim_until(&s, 5000000, converged));
	assume(&s, 1, 0, SPACE);
	sim_run(&s, s.now + 1000000);
	CU_ASSERT_EQUAL(s.nodes[1].ph->links->frames_out[FRAME_HEARD], 0);
	link_of(s.nodes[1].ph->links->list)->through_ssh = true;
	for (int way = 0; way < 2; way++) {
		heard[way] = s.nodes[1].ph->links->frames_out[FRAME_HEARD];
		for (int i = 0; i < MESSAGES; i++) {
			struct pbuf *b = pbuf_new("x", 1);

			CU_ASSERT_EQUAL(flow_send_own(s.nodes[way].ph, 5, b, 7, 0, 0), 0);
			pbuf_put(b);
			sim_touch(&s, way);
			/* the message itself is acknowledged later */
			sim_run(&s, s.now + 1000);
		}
		heard[way] = s.nodes[1].ph->links->frames_out[FRAME_HEARD] - heard[way];
	}
	CU_ASSERT(heard[0] >= MESSAGES);
	CU_ASSERT(heard[1] < MESSAGES / 2);
	CU_ASSERT_EQUAL(s.nodes[0].ph->links->frames_out[FRAME_HEARD], 0);
	sim_free(&s);
}

static void test_refusals(void)
{
	struct sim s;

	sim_init(&s, seed, 3, 0, SPACE);
	strcpy(s.nodes[1].ph->session, "other");
	s.nodes[1].ph->has_session = true;
	s.nodes[2].ph->secret[0] = 1;
	sim_know(&s, 1, 0);
	sim_know(&s, 2, 0);
	sim_run(&s, s.now + 1000000);
	for (int i = 0; i < s.n; i++) {
		CU_ASSERT_EQUAL(s.nodes[i].ph->routes->n, 1);
		CU_ASSERT(s.nodes[i].errors > 0);		/* both sides report the reason */
		CU_ASSERT_EQUAL(s.nodes[i].last_error, PH_EREFUSED);
	}
	sim_free(&s);
}

static void test_overlap_is_told(void)
{
	struct sim s;

	sim_init(&s, seed, 2, 0, SPACE);
	sim_know(&s, 1, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	assume(&s, 0, 0, 100);
	assume(&s, 1, 50, 60);
	sim_run(&s, s.now + 5000000);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(s.nodes[i].errors, 1);
		CU_ASSERT_EQUAL(s.nodes[i].last_error, PH_EOVERLAP);
	}
	sim_free(&s);
}

/* ---- hostile bytes in every kind of frame, before and after the handshake: the victim lives,
 * in bounded memory ---- */

static void throw_garbage(struct sim *s, struct plink *l)
{
	unsigned char frame[FRAME_HEAD + 400] = { 'P', 'H' };
	size_t len = sim_random(s, 400), room;

	frame[2] = (unsigned char)(1 + sim_random(s, N_FRAME_TYPES - 1));
	frame[3] = PHNX_VERSION;
	frame[4] = (unsigned char)len;
	frame[5] = (unsigned char)(len >> 8);
	for (size_t i = 0; i < len; i++)
		frame[FRAME_HEAD + i] = (unsigned char)sim_random(s, sim_random(s, 2) ? 4 : 256);
	if (sim_random(s, 2) && len >= 17) {	/* a frame that is addressed to the victim */
		memcpy(frame + FRAME_HEAD, &l->ph->name, 8);
		memcpy(frame + FRAME_HEAD + 8, &l->peer, 8);
	}
	size_t n = FRAME_HEAD + len;
	/* as many bytes at a time as the link has room for */
	for (size_t at = 0; at < n; at += room) {
		unsigned char *to = link_space(l, &room);
		room = room < n - at ? room : n - at;
		memcpy(to, frame + at, room);
		if (link_input(l, room))
			break;
	}
}

static void test_garbage(void)
{
	struct sim s;

	sim_init(&s, seed, 3, 0, SPACE);
	sim_know(&s, 1, 0);
	sim_know(&s, 2, 0);
	assume(&s, 0, 0, SPACE / 2);
	for (int round = 0; round < 20000; round++) {
		if (s.nodes[0].ph->links->list)
			throw_garbage(&s, s.nodes[0].ph->links->list);
		sim_touch(&s, 0);
		sim_run(&s, s.now + (round % 8 ? 100 : 20000));
	}
	CU_ASSERT(s.nodes[0].ph->routes->n <= MAX_NODES_KNOWN);
	CU_ASSERT(s.nodes[0].ph->flows->in_bytes <= RECV_QUEUE_BYTES);
	sim_free(&s);
}

static int tardily(void)
{
	tardy_us = 30000;
	return 0;
}

static int in_time(void)
{
	tardy_us = 0;
	return 0;
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("phnx_cluster", NULL, NULL);
	CU_add_test(suite, "a star learns all its nodes", test_star_learns_all);
	CU_add_test(suite, "few updates where all are neighbours", test_few_updates);
	CU_add_test(suite, "no second links", test_no_second_links);
	CU_add_test(suite, "a chain routes, and heals", test_chain_routes);
	CU_add_test(suite, "direct links come back soon", test_direct_again);
	CU_add_test(suite, "a link that breaks comes back soon", test_soon_back);
	CU_add_test(suite, "a neighbour's time is known, whichever of two links is left",
		    test_time_of_a_double_link);
	CU_add_test(suite, "through ssh, what comes is answered at once", test_heard_through_ssh);
	CU_add_test(suite, "strangers are refused, and told why", test_refusals);
	add_letters(suite);
	add_losses(suite);
	add_moves(suite);
	add_ends(suite);
	CU_add_test(suite, "an overlap is told to both", test_overlap_is_told);
	CU_add_test(suite, "hostile bytes", test_garbage);
	suite = CU_add_suite("with news that is held at random", tardily, in_time);
	add_letters_tardily(suite);
	add_moves_tardily(suite);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	if (failures)
		printf("repeat with: %s %llu\n", argv[0], (unsigned long long)seed);
	CU_cleanup_registry();
	return failures != 0;
}
