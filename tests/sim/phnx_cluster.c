/* phnx_cluster.c - seeded clusters of Phoenix nodes: convergence, exactly-once and ordered delivery under cuts,
 * partitions, migration, join and leave, death.  Usage: phnx_cluster [SEED]; a failure prints the seed. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <unistd.h>
#include <string.h>
#include "phoenix/msglog.h"
#include "tests/sim/phnx_sim.h"

enum { SPACE = 1024 };
static uint64_t seed = 1, tardy_us;

static bool converged(struct sim *s)
{
	uint64_t digest = 0;

	for (int i = 0; i < s->n; i++) {
		if (s->nodes[i].dead)
			continue;
		struct phnx *ph = s->nodes[i].ph;
		int reachable = 0, alive = 0;
		for (unsigned k = 0; k < ph->routes.n; k++)
			reachable += ph->routes.list[k]->nhops < UNREACHABLE;
		for (int k = 0; k < s->n; k++)
			alive += !s->nodes[k].dead && s->nodes[k].group == s->nodes[i].group;
		if (reachable != alive || (digest && digest != ph->routes.digest && s->nodes[i].group == 0))
			return false;
		if (s->nodes[i].group == 0)
			digest = ph->routes.digest;
	}
	return true;
}

static void assume(struct sim *s, int node, ph_vp_t lo, ph_vp_t hi)
{
	ph_vps_t vps = ph_vps_create_range(lo, hi);

	CU_ASSERT_EQUAL(phnx_assume(s->nodes[node].ph, vps), 0);
	ph_vps_destroy(vps);
	sim_touch(s, node);
}

static void release(struct sim *s, int node, ph_vp_t lo, ph_vp_t hi)
{
	ph_vps_t vps = ph_vps_create_range(lo, hi);

	CU_ASSERT_EQUAL(phnx_release(s->nodes[node].ph, vps), 0);
	ph_vps_destroy(vps);
	sim_touch(s, node);
}

static void share_out(struct sim *s)
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
		CU_ASSERT_EQUAL(s.nodes[i].ph->n_links, 23);	/* direct links between all, one each */
	sim_free(&s);
}

/* ---- how much is said until all know all: in one place, each node tells each neighbour once, which is the least there can be;
 * where connections come slowly, some twice ---- */

static uint64_t updates_of_mesh(uint64_t delay_min, uint64_t delay_max)
{
	struct sim s;
	uint64_t updates = 0;

	sim_init(&s, seed, 24, 0, SPACE);
	s.delay_min = delay_min;
	s.delay_max = delay_max;
	for (int i = 0; i < s.n; i++)
		for (int k = 0; k < s.n; k++)
			sim_know(&s, i, k);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	sim_run(&s, s.now + 2000000);
	for (int i = 0; i < s.n; i++) {
		CU_ASSERT_EQUAL(s.nodes[i].ph->n_links, (unsigned)s.n - 1);
		updates += s.nodes[i].ph->frames_out[FRAME_ROUTE];
	}
	sim_free(&s);
	return updates;
}

static void test_few_updates(void)
{
	enum { LEAST = 24 * 23 };
	uint64_t near = updates_of_mesh(50, 500), far = updates_of_mesh(1000, 20000), farther = updates_of_mesh(1000, 50000);

	if (getenv("SIM_VERBOSE"))
		printf("updates of 24 nodes: %llu, %llu, %llu\n", (unsigned long long)near, (unsigned long long)far,
		       (unsigned long long)farther);
	CU_ASSERT_EQUAL(near, LEAST);
	CU_ASSERT(far <= LEAST * 5 / 4);
	CU_ASSERT(farther <= LEAST * 3 / 2);
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
	CU_ASSERT_EQUAL(route_holder(s.nodes[0].ph, SPACE - 1), s.nodes[11].ph->name);
	sim_cut(&s, 5, 0);	/* heals by itself */
	sim_cut(&s, 5, 0);
	sim_run(&s, s.now + 100000);
	CU_ASSERT_TRUE(sim_until(&s, 10000000, converged));
	sim_free(&s);
}

/* ---- direct links come back soon, however long they were away ---- */

static bool blocked;

static bool unless_blocked(const struct sim *s, int from, int to)
{
	(void)s;
	return !blocked || (from != 1 && to != 1) || from == 0 || to == 0;
}

static bool all_direct(struct sim *s)
{
	for (int i = 0; i < s->n; i++)
		for (int k = 0; k < s->n; k++)
			if (i != k && !link_find(s->nodes[i].ph, s->nodes[k].ph->name))
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
	blocked = true;		/* between node 1 and all but node 0, by whom they stay reachable */
	for (unsigned k = s.nodes[1].n_ends; k--;)
		sim_cut(&s, 1, k);
	sim_run(&s, s.now + 60000000);
	CU_ASSERT_TRUE(converged(&s));
	CU_ASSERT_FALSE(all_direct(&s));
	blocked = false;
	CU_ASSERT_TRUE(sim_until(&s, 2000000, all_direct));

	for (int i = 4; i < s.n; i++)	/* nor are they by anybody */
		s.nodes[i].group = 1;
	sim_cut_groups(&s);
	sim_run(&s, s.now + 20000000);
	CU_ASSERT_FALSE(all_direct(&s));
	for (int i = 4; i < s.n; i++)
		s.nodes[i].group = 0;
	CU_ASSERT_TRUE(sim_until(&s, 3000000, all_direct));
	sim_free(&s);
}

/* Who is behind an sshd that waits for acknowledgements gets something back for all that it sends, at once; nobody else does. */
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
	CU_ASSERT_EQUAL(s.nodes[1].ph->frames_out[FRAME_HEARD], 0);
	s.nodes[1].ph->links->contact->at.protocol = PHNX_SSH;
	for (int way = 0; way < 2; way++) {
		heard[way] = s.nodes[1].ph->frames_out[FRAME_HEARD];
		for (int i = 0; i < MESSAGES; i++) {
			struct pbuf *b = pbuf_new("x", 1);

			CU_ASSERT_EQUAL(phnx_send(s.nodes[way].ph, 5, b, 7, 0, 0), 0);
			pbuf_put(b);
			sim_touch(&s, way);
			sim_run(&s, s.now + 1000);	/* later comes what acknowledges the message itself */
		}
		heard[way] = s.nodes[1].ph->frames_out[FRAME_HEARD] - heard[way];
	}
	CU_ASSERT(heard[0] >= MESSAGES);
	CU_ASSERT(heard[1] < MESSAGES / 2);
	CU_ASSERT_EQUAL(s.nodes[0].ph->frames_out[FRAME_HEARD], 0);
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
		CU_ASSERT_EQUAL(s.nodes[i].ph->routes.n, 1);
		CU_ASSERT(s.nodes[i].errors > 0);		/* both sides learn why */
		CU_ASSERT_EQUAL(s.nodes[i].last_error, PH_EREFUSED);
	}
	sim_free(&s);
}

/* ---- traffic: numbered messages from every node to random virtual nodes ---- */

struct traffic {
	uint32_t sent[SPACE];		/* per destination */
};
struct ledger {
	unsigned char seen[64][4096];	/* by sender and serial number: how often */
	uint32_t last[64][SPACE];	/* of (sender, destination): for the order */
	uint32_t serial[64];
	unsigned received, sent, doubled, disordered;
};
struct letter {
	uint32_t sender, serial, per_dest;
};
static struct ledger *ledger;
static unsigned traffic_flags;

static void send_one(struct sim *s, int from)
{
	struct phnx *ph = s->nodes[from].ph;
	struct traffic *t = s->nodes[from].app;
	ph_vp_t dest = (ph_vp_t)sim_random(s, SPACE / 16) * 16;
	struct letter letter = { (uint32_t)from, ledger->serial[from], t->sent[dest] + 1 };
	struct pbuf *b = pbuf_new(&letter, sizeof letter);

	if (ledger->serial[from] < 4096 && phnx_send(ph, dest, b, 7, traffic_flags, 0) == 0) {
		ledger->serial[from]++;
		t->sent[dest]++;
		ledger->sent++;
	}
	pbuf_put(b);
	sim_touch(s, from);
}

static void receive_all(struct sim *s, int node)
{
	struct rmsg *m;

	while ((m = flow_receive(s->nodes[node].ph, 7))) {
		struct letter *l = m->pub.body;
		ledger->received++;
		ledger->doubled += ledger->seen[l->sender][l->serial]++ != 0;
		ledger->disordered += l->per_dest != ledger->last[l->sender][m->pub.dest] + 1;
		ledger->last[l->sender][m->pub.dest] = l->per_dest;
		free(m);
	}
	sim_touch(s, node);
}

static bool all_received(struct sim *s)
{
	for (int i = 0; i < s->n; i++)
		if (!s->nodes[i].dead)
			receive_all(s, i);
	return ledger->received >= ledger->sent;
}

static void start_traffic(struct sim *s)
{
	ledger = calloc(1, sizeof *ledger);
	for (int i = 0; i < s->n; i++)
		s->nodes[i].app = calloc(1, sizeof(struct traffic));
}

static void end_traffic(struct sim *s)
{
	CU_ASSERT_TRUE(sim_until(s, 60000000, all_received));
	sim_run(s, s->now + 3000000);
	all_received(s);
	if (ledger->received != ledger->sent || ledger->doubled || ledger->disordered)
		printf("\nseed %llu: sent %u received %u doubled %u out of order %u\n", (unsigned long long)seed, ledger->sent,
		       ledger->received, ledger->doubled, ledger->disordered);
	CU_ASSERT_EQUAL(ledger->received, ledger->sent);
	CU_ASSERT_EQUAL(ledger->doubled, 0);
	CU_ASSERT(traffic_flags == DATA_UNORDERED || ledger->disordered == 0);
	for (int i = 0; i < s->n; i++)
		free(s->nodes[i].app);
	free(ledger);
}

static void test_cuts_lose_nothing(void)
{
	struct sim s;

	sim_init(&s, seed, 8, 0, SPACE);
	sim_tardy(&s, tardy_us);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, i - 1);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	share_out(&s);
	start_traffic(&s);
	for (int round = 0; round < 1500; round++) {
		send_one(&s, (int)sim_random(&s, 8));
		if (sim_random(&s, 20) == 0)
			sim_cut(&s, (int)sim_random(&s, 8), (unsigned)sim_random(&s, 8));
		receive_all(&s, (int)sim_random(&s, 8));
		sim_run(&s, s.now + 200 + sim_random(&s, 3000));
	}
	end_traffic(&s);
	sim_free(&s);
}

/* Unordered messages may overtake each other, and do, but none is lost or doubled either. */
static void test_unordered(void)
{
	traffic_flags = DATA_UNORDERED;
	test_cuts_lose_nothing();
	traffic_flags = 0;
}

/* Nodes that are slow, each busy for milliseconds with every packet, as many processes on few processors are: what takes long has
 * not got lost, and is not sent again, which would only make it take longer. */
static void test_slow_nodes(void)
{
	enum { EACH = 240, TOGETHER = 12 };
	struct sim s;
	uint64_t resent = 0, probes = 0, began;

	sim_init(&s, seed, 8, 0, SPACE);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	share_out(&s);
	sim_run(&s, s.now + 1000000);
	start_traffic(&s);
	s.packet_cost_ns = 1000000;
	s.kib_cost_ns = 10000000;
	began = s.now;
	for (int sent = 0; sent < EACH; sent += TOGETHER) {
		for (int i = 0; i < s.n; i++)
			for (int k = 0; k < TOGETHER; k++)
				send_one(&s, i);
		sim_run(&s, s.now + 10000);
	}
	CU_ASSERT_TRUE(sim_until(&s, 60000000, all_received));
	for (int i = 0; i < s.n; i++) {
		resent += s.nodes[i].ph->flows.resent;
		probes += s.nodes[i].ph->frames_out[FRAME_PROBE];
	}
	if (getenv("SIM_VERBOSE"))
		printf("slow nodes: %u sent, %llu resent, %llu times asked, %.1f s\n", ledger->sent, (unsigned long long)resent,
		       (unsigned long long)probes, (double)(s.now - began) / 1e6);
	CU_ASSERT_EQUAL(resent, 0);
	CU_ASSERT(probes < ledger->sent / 4);
	s.packet_cost_ns = s.kib_cost_ns = 0;
	end_traffic(&s);
	sim_free(&s);
}

/* A receiver that takes nothing stops its senders before anybody's memory is full; when it takes, all comes. */
static void test_bounds(void)
{
	enum { SENDERS = 10, BYTES = 100000, SOME = 100 };	/* the first sends until it is told to stop */
	static unsigned char body[BYTES];
	unsigned sent[SENDERS + 1] = { 0 }, came[SENDERS + 1] = { 0 }, total = 0;
	struct sim s;
	struct rmsg *m;

	sim_init(&s, seed, SENDERS + 1, 0, SPACE);
	for (int i = 1; i <= SENDERS; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	assume(&s, 0, 0, SPACE);
	sim_run(&s, s.now + 100000);
	for (int i = 1; i <= SENDERS; i++) {
		int error = 0;
		for (memcpy(body, &i, sizeof i); !error && (i == 1 || sent[i] < SOME); sent[i] += !error) {
			struct pbuf *b = pbuf_new(body, sizeof body);
			memcpy(b->own + sizeof i, &sent[i], sizeof sent[i]);
			error = phnx_send(s.nodes[i].ph, 5, b, 7, 0, 0);
			pbuf_put(b);
		}
		CU_ASSERT_EQUAL(error, i == 1 ? PH_EAGAIN : 0);
		CU_ASSERT(s.nodes[i].ph->flows.out_bytes <= SEND_QUEUE_BYTES + sent[i] * sizeof(struct smsg));
		total += sent[i];
		sim_touch(&s, i);
		sim_run(&s, s.now + 300000);
	}
	sim_run(&s, s.now + 3000000);
	CU_ASSERT(s.nodes[0].ph->flows.in_bytes <= 2u * RECV_QUEUE_BYTES);
	for (int quiet = 0; total && quiet < 300; quiet++) {
		for (; (m = flow_receive(s.nodes[0].ph, 7)); total--, quiet = 0) {
			unsigned from, number;
			memcpy(&from, m->pub.body, sizeof from);
			memcpy(&number, (char *)m->pub.body + sizeof from, sizeof number);
			CU_ASSERT_EQUAL(number, came[from]++);
			rmsg_free(m);
		}
		sim_touch(&s, 0);
		sim_run(&s, s.now + 100000);
	}
	CU_ASSERT_EQUAL(total, 0);
	for (int i = 1; i <= SENDERS; i++)
		CU_ASSERT_EQUAL(came[i], sent[i]);
	sim_free(&s);
}

static void test_partition_heals(void)
{
	struct sim s;

	sim_init(&s, seed, 8, 0, SPACE);
	sim_tardy(&s, tardy_us);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	share_out(&s);
	sim_run(&s, s.now + 200000);
	start_traffic(&s);
	for (int round = 0; round < 600; round++) {
		if (round == 200) {
			for (int i = 4; i < 8; i++)
				s.nodes[i].group = 1;
			sim_cut_groups(&s);
		}
		if (round == 400)
			for (int i = 4; i < 8; i++)
				s.nodes[i].group = 0;
		send_one(&s, (int)sim_random(&s, 8));
		receive_all(&s, (int)sim_random(&s, 8));
		sim_run(&s, s.now + 5000);
	}
	CU_ASSERT_TRUE(sim_until(&s, 20000000, converged));
	end_traffic(&s);
	sim_free(&s);
}

/* The mapping changes by hand, without the protocol: released here, assumed there. */
static void test_moving_target(void)
{
	struct sim s;
	int owner[16];

	sim_init(&s, seed, 6, 0, SPACE);
	sim_tardy(&s, tardy_us);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	for (int i = 0; i < 16; i++)
		assume(&s, owner[i] = i % 6, i * 64, i * 64 + 64);
	start_traffic(&s);
	for (int round = 0; round < 2000; round++) {
		send_one(&s, (int)sim_random(&s, 6));
		if (sim_random(&s, 10) == 0) {
			int i = (int)sim_random(&s, 16), to = (int)sim_random(&s, 6);
			release(&s, owner[i], i * 64, i * 64 + 64);
			sim_run(&s, s.now + sim_random(&s, 2000));
			assume(&s, owner[i] = to, i * 64, i * 64 + 64);
		}
		if (sim_random(&s, 4) == 0)
			receive_all(&s, (int)sim_random(&s, 6));
		if (sim_random(&s, 100) == 0)
			sim_cut(&s, (int)sim_random(&s, 6), (unsigned)sim_random(&s, 6));
		sim_run(&s, s.now + sim_random(&s, 1500));
	}
	end_traffic(&s);
	sim_free(&s);
}

/* ---- migration ---- */

static int no_state(void *arg, ph_vp_t lo, ph_vp_t hi, void **state, size_t *len)
{
	unsigned char *owned = arg;	/* one byte for each virtual node: the application's state */

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
		if (s->nodes[i].ph->migration.wish != WISH_NONE || s->nodes[i].ph->migration.locked)
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
	case 1: migrate_begin(ph, WISH_TAKE, 1 + (ph_vp_t)sim_random(s, 100), sim_random(s, 2) ? 1 : -1); break;
	default: migrate_begin(ph, WISH_HAND, 1 + (ph_vp_t)sim_random(s, 100), sim_random(s, 2) ? 1 : -1); break;
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
		s.nodes[i].ph->migration.app = (struct ph_migration){ no_state, take_state, owned[i] };
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
		moved += ph->migration.done;
	}
	CU_ASSERT_EQUAL(covered, SPACE);	/* disjoint, since the state is */
	CU_ASSERT(moved > 100);
	end_traffic(&s);
	sim_free(&s);
}

/* Two nodes, of which the first has everything, and the second has asked for half. */
static unsigned char halves[2][SPACE];

static void begin_join(struct sim *s)
{
	sim_init(s, seed, 2, 0, SPACE);
	sim_know(s, 1, 0);
	CU_ASSERT_TRUE(sim_until(s, 5000000, converged));
	memset(halves, 0, sizeof halves);
	memset(halves[0], 1, SPACE);
	for (int i = 0; i < 2; i++)
		s->nodes[i].ph->migration.app = (struct ph_migration){ no_state, take_state, halves[i] };
	assume(s, 0, 0, SPACE);
	sim_run(s, s->now + 100000);
	struct migration *m = &s->nodes[1].ph->migration;
	migrate_begin(s->nodes[1].ph, WISH_JOIN, 1, 1);
	sim_touch(s, 1);
	for (uint64_t end = s->now + 5000000; !m->partner && s->now < end;)
		sim_run(s, s->now + 10);
	CU_ASSERT_FATAL(m->partner && !s->nodes[1].ph->me.vps.n);	/* it has asked, and nothing has come */
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
		CU_ASSERT_FALSE(s->nodes[i].ph->migration.locked);
}

static void join_again(struct sim *s)
{
	CU_ASSERT_EQUAL(migrate_begin(s->nodes[1].ph, WISH_JOIN, 1, 1), 0);
	sim_touch(s, 1);
	sim_run(s, s->now + 1000000);
	CU_ASSERT_EQUAL(s->nodes[1].ph->migration.result, 0);
	CU_ASSERT_EQUAL(assumed(s, 1), SPACE / 2);
}

/* A call whose time is up gets nothing afterwards; another one may follow at once, and gets what the first one has under way. */
static void test_migration_given_up(void)
{
	struct sim s;

	begin_join(&s);
	migrate_cancel(s.nodes[1].ph);
	nothing_moved(&s);
	join_again(&s);
	sim_free(&s);

	begin_join(&s);
	uint64_t refused = s.nodes[1].ph->migration.refused;
	migrate_cancel(s.nodes[1].ph);
	join_again(&s);
	CU_ASSERT_EQUAL(s.nodes[1].ph->migration.refused, refused);
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

/* A node that has left is known to have left, however long it could hold what it has to tell: what is sent to its virtual nodes
 * would wait for it for ever. */
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
	phnx_goodbye(s.nodes[3].ph);
	sim_touch(&s, 3);
	ph_vp_t name = s.nodes[3].ph->name;
	sim_run(&s, s.now + 10000);
	sim_kill(&s, 3);
	for (int i = 0; i < 3; i++) {
		const struct rentry *e = route_find(s.nodes[i].ph, name);
		CU_ASSERT(e && e->payload.gone);
		CU_ASSERT_EQUAL(route_holder(s.nodes[i].ph, 0), 0);
	}
	sim_free(&s);
}

/* ... nor if the connection breaks under its last words: another neighbour, which was promised that 2 would hear it, tells 2. */
static void test_farewell_is_passed_on(void)
{
	struct sim s;

	sim_init(&s, seed, 3, 0, SPACE);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, all_direct));
	sim_run(&s, s.now + 1000000);
	ph_vp_t name = s.nodes[1].ph->name, to = s.nodes[2].ph->name;
	phnx_goodbye(s.nodes[1].ph);
	sim_touch(&s, 1);
	for (unsigned k = 0; k < s.nodes[1].n_ends; k++)
		if (sim_peer(&s, 1, k) == 2)
			sim_cut(&s, 1, k);
	CU_ASSERT_PTR_NULL(link_find(s.nodes[2].ph, name));
	CU_ASSERT_PTR_NOT_NULL(link_find(s.nodes[0].ph, to));
	sim_run(&s, s.now + 1000000);
	sim_kill(&s, 1);
	const struct rentry *e = route_find(s.nodes[2].ph, name);
	CU_ASSERT(e && e->payload.gone);
	sim_free(&s);
}

/* 2 is linked with 1 alone. */
static bool two_by_one(const struct sim *s, int from, int to)
{
	(void)s;
	return (from != 2 && to != 2) || from == 1 || to == 1;
}

static bool two_has_joined(struct sim *s)
{
	return assumed(s, 2) > 0;
}

/* What 0 has said is late at 2, which takes over from it; of the two claims that 3 knows then, the taker's is the newer. */
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
	s.nodes[1].ph->routes.tardy_us = UINT64_MAX / 4;
	for (int i = 0; i < 20; i++) {
		assume(&s, 0, SPACE - 20 + i, SPACE - 20 + i + 1);
		sim_run(&s, s.now + 100000);
	}
	s.nodes[0].ph->routes.tardy_us = UINT64_MAX / 4;
	migrate_begin(s.nodes[2].ph, WISH_JOIN, 1, 1);
	sim_touch(&s, 2);
	CU_ASSERT_TRUE_FATAL(sim_until(&s, 60000000, two_has_joined));
	CU_ASSERT_EQUAL(route_holder(s.nodes[3].ph, 0), s.nodes[0].ph->name);	/* as far as it knows */
	sim_kill(&s, 0);
	s.nodes[1].ph->routes.tardy_us = s.nodes[1].ph->routes.tardy_until = 0;
	sim_run(&s, s.now + 1000000);
	CU_ASSERT_EQUAL(route_holder(s.nodes[3].ph, 0), s.nodes[2].ph->name);
	sim_free(&s);
}

/* ---- death ---- */

static int gone_seen, returned_seen;

static void on_gone(void *arg, ph_vp_t name, const struct ph_msg *returned)
{
	(void)arg;
	(void)name;
	if (returned)
		returned_seen++;
	else
		gone_seen++;
}

/* What was under way to a node that is gone: to the next holder, back to its sender, or nowhere. */
static void test_gone_policies(void)
{
	static const struct {
		enum ph_gone_policy policy;
		bool returned, resent;
	} rows[] = { { PH_GONE_RESEND, false, true }, { PH_GONE_RETURN, true, false }, { PH_GONE_DISCARD, false, false } };

	for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
		struct sim s;
		sim_init(&s, seed, 3, 0, SPACE);
		sim_know(&s, 1, 0);
		sim_know(&s, 2, 0);
		CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
		assume(&s, 2, 0, SPACE);
		for (int i = 0; i < s.n; i++)
			s.nodes[i].ph->detector = (struct detector){ .timeout_us = 3000000, .policy = rows[row].policy, .fn = on_gone };
		sim_run(&s, s.now + 1000000);
		gone_seen = returned_seen = 0;
		sim_kill(&s, 2);
		struct pbuf *b = pbuf_new("x", 1);
		CU_ASSERT_EQUAL(phnx_send(s.nodes[0].ph, 5, b, 7, 0, 0), 0);
		pbuf_put(b);
		sim_touch(&s, 0);
		sim_run(&s, s.now + 10000000);
		CU_ASSERT_EQUAL(gone_seen, 2);
		CU_ASSERT_EQUAL(returned_seen, rows[row].returned);
		CU_ASSERT_EQUAL(flow_idle(s.nodes[0].ph), !rows[row].resent);
		assume(&s, 1, 0, SPACE);
		sim_run(&s, s.now + 1000000);
		struct rmsg *m = flow_receive(s.nodes[1].ph, 7);
		CU_ASSERT_EQUAL(m != NULL, rows[row].resent);
		rmsg_free(m);
		sim_free(&s);
	}
}

static void test_death_is_detected(void)
{
	struct sim s;

	sim_init(&s, seed, 10, 0, SPACE);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	share_out(&s);
	gone_seen = returned_seen = 0;
	for (int i = 0; i < s.n; i++) {
		s.nodes[i].ph->detector.timeout_us = 6000000;
		s.nodes[i].ph->detector.policy = PH_GONE_RETURN;
		s.nodes[i].ph->detector.fn = on_gone;
	}
	sim_run(&s, s.now + 20000000);
	CU_ASSERT_EQUAL(gone_seen, 0);		/* nobody is suspected while all live */
	sim_kill(&s, 9);
	struct pbuf *b = pbuf_new("x", 1);
	CU_ASSERT_EQUAL(phnx_send(s.nodes[0].ph, SPACE - 1, b, 7, 0, 0), 0);
	sim_run(&s, s.now + 20000000);
	CU_ASSERT_EQUAL(gone_seen, 9);		/* each learns it once */
	CU_ASSERT_EQUAL(returned_seen, 1);
	CU_ASSERT_EQUAL(phnx_send(s.nodes[1].ph, SPACE - 1, b, 7, 0, 0), 0);
	assume(&s, 3, SPACE * 9 / 10, SPACE);	/* and another takes its place */
	sim_run(&s, s.now + 1000000);
	struct rmsg *m = flow_receive(s.nodes[3].ph, 7);
	CU_ASSERT_PTR_NOT_NULL(m);
	free(m);
	pbuf_put(b);
	sim_free(&s);
}

/* A destination waits a while after messages have come back; other timers, which are due before, must not end that in silence. */
static void test_wait_ends(void)
{
	struct sim s;
	struct rmsg *m = NULL;

	sim_init(&s, seed, 2, 0, SPACE);
	sim_know(&s, 1, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	struct pbuf *b = pbuf_new("wait", 4);
	CU_ASSERT_EQUAL(phnx_send(s.nodes[0].ph, 5, b, 7, 0, 0), 0);
	pbuf_put(b);
	s.nodes[0].ph->flows.active->wait_us = s.now + 3 * PING_INTERVAL;
	assume(&s, 1, 0, SPACE);
	sim_run(&s, s.now + 2 * PING_INTERVAL);
	CU_ASSERT_PTR_NULL(flow_receive(s.nodes[1].ph, 7));
	sim_run(&s, s.now + 2 * PING_INTERVAL);
	m = flow_receive(s.nodes[1].ph, 7);
	CU_ASSERT_PTR_NOT_NULL(m);
	free(m);
	sim_free(&s);
}

static void test_timed_and_custody(void)
{
	struct sim s;

	sim_init(&s, seed, 3, 0, SPACE);
	sim_know(&s, 1, 0);
	sim_know(&s, 2, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	struct pbuf *b = pbuf_new("late", 4);
	CU_ASSERT_EQUAL(phnx_send(s.nodes[0].ph, 5, b, 7, 0, s.now + 100000), 0);	/* nobody assumes 5 in time */
	sim_run(&s, s.now + 500000);
	assume(&s, 1, 0, 10);
	sim_run(&s, s.now + 500000);
	CU_ASSERT_PTR_NULL(flow_receive(s.nodes[1].ph, 7));
	CU_ASSERT_TRUE(flow_idle(s.nodes[0].ph));
	CU_ASSERT_EQUAL(phnx_send(s.nodes[0].ph, 6, b, 7, 0, s.now + 100000), 0);	/* arrives, but nobody receives */
	sim_touch(&s, 0);
	sim_run(&s, s.now + 500000);
	CU_ASSERT_PTR_NULL(flow_receive(s.nodes[1].ph, 7));
	sim_run(&s, s.now + 500000);
	CU_ASSERT_TRUE(flow_idle(s.nodes[0].ph));

	CU_ASSERT_EQUAL(phnx_send(s.nodes[0].ph, 100, b, 7, 0, 0), 0);	/* kept by a neighbour while 0 leaves */
	flow_custody(s.nodes[0].ph);
	sim_touch(&s, 0);
	sim_run(&s, s.now + 500000);
	CU_ASSERT_TRUE(flow_idle(s.nodes[0].ph));
	phnx_goodbye(s.nodes[0].ph);
	sim_touch(&s, 0);
	sim_run(&s, s.now + 100000);
	sim_kill(&s, 0);
	assume(&s, 1, 100, 101);
	sim_run(&s, s.now + 1000000);
	struct rmsg *m = flow_receive(s.nodes[1].ph, 7);
	CU_ASSERT(m && m->pub.len == 4 && !memcmp(m->pub.body, "late", 4));
	free(m);
	CU_ASSERT_EQUAL(phnx_send(s.nodes[1].ph, SPACE, b, 7, 0, 0), PH_EBOUND);
	CU_ASSERT_EQUAL(phnx_send(s.nodes[1].ph, -1, b, 7, 0, 0), PH_EBOUND);
	pbuf_put(b);
	sim_free(&s);
}

/* ---- a log: what had arrived before its writer stopped does not arrive again ---- */

static bool nobody(const struct sim *s, int from, int to)
{
	(void)s;
	(void)from;
	(void)to;
	return false;
}

static unsigned received_numbers(struct sim *s, int node, int *next)
{
	struct rmsg *m;
	unsigned n = 0;

	for (; (m = flow_receive(s->nodes[node].ph, 7)); n++) {
		CU_ASSERT_EQUAL(*(int *)m->pub.body, *next);
		++*next;
		rmsg_free(m);
	}
	sim_touch(s, node);
	return n;
}

static void send_numbers(struct sim *s, int node, int from, int to)
{
	for (int i = from; i < to; i++) {
		struct pbuf *b = pbuf_new(&i, sizeof i);
		CU_ASSERT_EQUAL(phnx_send(s->nodes[node].ph, 5, b, 7, 0, 0), 0);
		pbuf_put(b);
	}
	sim_touch(s, node);
}

static void stop_and_load(bool gone)
{
	char file[] = "/tmp/phnx-doubt-XXXXXX", text[200];
	struct sim s;
	int next = 0;

	close(mkstemp(file));
	sim_init(&s, seed, 3, 0, SPACE);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, all_direct));
	assume(&s, 0, 0, 10);
	sim_run(&s, s.now + 100000);
	send_numbers(&s, 1, 0, 3);
	sim_run(&s, s.now + 1000);
	CU_ASSERT_EQUAL(received_numbers(&s, 0, &next), 3);	/* but no acknowledgement comes back */
	s.may_connect = nobody;
	while (s.nodes[1].n_ends)
		sim_cut(&s, 1, 0);
	send_numbers(&s, 1, 3, 6);
	CU_ASSERT_EQUAL(msglog_store(s.nodes[1].ph, file, text, sizeof text), 0);
	sim_kill(&s, 1);
	if (gone) {
		for (int i = 0; i < s.n; i += 2)
			s.nodes[i].ph->detector.timeout_us = 3000000;
		sim_run(&s, s.now + 15000000);
	}
	s.may_connect = NULL;
	sim_restart(&s, 1);
	CU_ASSERT_EQUAL(msglog_load(s.nodes[1].ph, file, text, sizeof text), 0);
	send_numbers(&s, 1, 6, 9);
	sim_know(&s, 1, 2);
	sim_run(&s, s.now + 3000000);
	CU_ASSERT_EQUAL(received_numbers(&s, 0, &next), 6);
	sim_run(&s, s.now + 1000000);
	CU_ASSERT_TRUE(flow_idle(s.nodes[1].ph));
	sim_free(&s);
	unlink(file);
}

static void test_log_doubles_nothing(void)
{
	stop_and_load(false);
	stop_and_load(true);
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

/* ---- hostile bytes: on every kind of frame, before and after the handshake; the victim lives, in bounded memory ---- */

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
	if (sim_random(s, 2) && len >= 17) {	/* something that is for the victim */
		memcpy(frame + FRAME_HEAD, &l->ph->name, 8);
		memcpy(frame + FRAME_HEAD + 8, &l->peer, 8);
	}
	size_t n = FRAME_HEAD + len;
	for (size_t at = 0; at < n; at += room) {	/* as much at a time as the link has room for */
		unsigned char *to = phnx_link_space(l, &room);
		room = room < n - at ? room : n - at;
		memcpy(to, frame + at, room);
		if (phnx_link_input(l, room))
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
		if (s.nodes[0].ph->links)
			throw_garbage(&s, s.nodes[0].ph->links);
		sim_touch(&s, 0);
		sim_run(&s, s.now + (round % 8 ? 100 : 20000));
	}
	CU_ASSERT(s.nodes[0].ph->routes.n <= MAX_NODES_KNOWN);
	CU_ASSERT(s.nodes[0].ph->flows.in_bytes <= RECV_QUEUE_BYTES);
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
	CU_add_test(suite, "a chain routes, and heals", test_chain_routes);
	CU_add_test(suite, "direct links come back soon", test_direct_again);
	CU_add_test(suite, "through ssh, what comes is answered at once", test_heard_through_ssh);
	CU_add_test(suite, "strangers are refused, and told why", test_refusals);
	CU_add_test(suite, "cut links lose and double nothing", test_cuts_lose_nothing);
	CU_add_test(suite, "nor do they of messages without order", test_unordered);
	CU_add_test(suite, "what slow nodes have is not sent again", test_slow_nodes);
	CU_add_test(suite, "who takes nothing stops its senders", test_bounds);
	CU_add_test(suite, "a partition heals", test_partition_heals);
	CU_add_test(suite, "virtual nodes that move keep their messages", test_moving_target);
	CU_add_test(suite, "random migration keeps the space covered", test_random_migration);
	CU_add_test(suite, "who gives a migration up gets nothing", test_migration_given_up);
	CU_add_test(suite, "nothing moves to a node that leaves", test_no_migration_to_who_leaves);
	CU_add_test(suite, "a farewell is not held back", test_farewell_is_not_held);
	CU_add_test(suite, "a farewell is passed on", test_farewell_is_passed_on);
	CU_add_test(suite, "who takes over claims last", test_taker_claims_last);
	CU_add_test(suite, "a death is detected", test_death_is_detected);
	CU_add_test(suite, "what was under way to the dead", test_gone_policies);
	CU_add_test(suite, "a wait ends though other timers come first", test_wait_ends);
	CU_add_test(suite, "time-outs and custody", test_timed_and_custody);
	CU_add_test(suite, "a log doubles nothing", test_log_doubles_nothing);
	CU_add_test(suite, "an overlap is told to both", test_overlap_is_told);
	CU_add_test(suite, "hostile bytes", test_garbage);
	suite = CU_add_suite("with news that is held at random", tardily, in_time);
	CU_add_test(suite, "cut links lose and double nothing", test_cuts_lose_nothing);
	CU_add_test(suite, "a partition heals", test_partition_heals);
	CU_add_test(suite, "virtual nodes that move keep their messages", test_moving_target);
	CU_add_test(suite, "random migration keeps the space covered", test_random_migration);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	if (failures)
		printf("repeat with: %s %llu\n", argv[0], (unsigned long long)seed);
	CU_cleanup_registry();
	return failures != 0;
}
