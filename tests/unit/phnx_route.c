/* phnx_route.c - the routing table of a node between two neighbours, whose updates the test
 * writes: which route it takes by DSDV's rules, who holds a virtual node, how much it announces
 * of a node that assumes very many, and in which order it proves itself to many that greet at
 * once. */
#include "phoenix/flow/flow_private.h"
#include "phoenix/flow/mapping.h"
#include "phoenix/link/link_private.h"
#include "phoenix/node/life.h"
#include "phoenix/routing/routing_private.h"
#include "phoenix/services/services_private.h"
#include "tests/unit/unit.h"

enum { SPACE = 64, ME = 1 };
#define HUGE (1LL << 40)	/* number of virtual nodes */
static const ph_vp_t far = (1LL << 62) + 7, names[] = { (1LL << 62) + 1, (1LL << 62) + 2 };

static uint64_t now = 1000000;
static struct phnx *ph;
static struct plink *links[2];

static uint64_t op_now(void *ctx) { (void)ctx; return now; }
static void op_random(void *ctx, void *buf, size_t n) { (void)ctx; memset(buf, ME, n); }
static void op_contact(void *ctx, struct contact *c) { (void)ctx; (void)c; }
static struct plink *proved[8];		/* the links that proofs were sent to, in order */
static unsigned n_proved;
static void op_kick(void *ctx, struct plink *l)
{
	const struct outframe *f = l->out;

	(void)ctx;
	while (f->next)
		f = f->next;
	if (f->head[2] == FRAME_AUTH)
		proved[n_proved++] = l;
}
static void op_link(void *ctx, struct plink *l) { (void)ctx; (void)l; }
static void op_report(void *ctx, int error, const char *text)
{
	(void)ctx;
	(void)error;
	(void)text;
}
static void op_arrived(void *ctx) { (void)ctx; }
static const struct phnx_ops ops = { op_now,  op_random, op_contact, op_contact,
				     op_kick, op_link,	 op_report,  op_arrived };

static void make_node(void)
{
	ph = node_new(&ops, NULL, 0, HUGE);
	for (int i = 0; i < 2; i++) {
		links[i] = link_open(ph, NULL, NULL, NULL);
		links[i]->peer = names[i];
		links[i]->state = LINK_UP;
		route_link_up(ph, links[i]);
	}
}

/* Neighbour i sends an update with one entry. */
static void hear(int i, ph_vp_t name, uint64_t seq, unsigned hops, uint64_t stamp, ph_vp_t lo,
		 ph_vp_t hi)
{
	struct writer w = { 0 };

	put8(&w, 1);
	put_var(&w, 0);			/* promised to no other node */
	put64(&w, 0);
	put_var(&w, 1);
	put64(&w, (uint64_t)name);
	put_var(&w, seq);
	put8(&w, (uint8_t)hops);
	put8(&w, 0);
	put_var(&w, stamp);
	put8(&w, 0);			/* no address */
	put_var(&w, lo < hi);
	if (lo < hi) {
		put_var(&w, (uint64_t)lo);
		put_var(&w, (uint64_t)(hi - lo));
	}
	struct reader r = { w.data, w.data + w.len, false };
	CU_ASSERT_EQUAL(route_on_update(ph, links[i], &r), 0);
	CU_ASSERT(!r.bad && r.p == r.end);
	free(w.data);
}

static void test_rules(void)
{
	enum { A, B, NONE = -1, LOST = UNREACHABLE };
	static const struct {
		int from;
		uint64_t seq;
		unsigned hops;
		int way;
		unsigned long expected;	/* hops from this node */
		const char *why;
	} rows[] = {
		{ A, 10, 2, A, 3, "the first" },
		{ B, 10, 1, B, 2, "as new and shorter" },
		{ A, 10, 1, B, 2, "as new and no shorter" },
		{ A, 12, 5, A, 6, "newer, however long" },
		{ B, 10, 0, A, 6, "older, however short" },
		{ A, 13, LOST, NONE, LOST, "lost by the way that is taken" },
		{ B, 12, 1, NONE, LOST, "older than the loss" },
		{ B, 14, 1, B, 2, "newer than the loss" },
		{ A, 15, LOST, B, 2, "lost by another" },
		{ A, 13, LOST, B, 2, "lost long ago" },
		{ A, 16, 3, A, 4, "newer again" },
	};

	make_node();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		hear(rows[i].from, far, rows[i].seq, rows[i].hops, 1, 0, 0);
		struct rentry *e = route_find(ph, far);
		struct plink *way = rows[i].way == NONE ? NULL : links[rows[i].way];
		CU_ASSERT_PTR_NOT_NULL_FATAL(e);
		if (e->fwd != way || e->nhops != rows[i].expected)
			printf("\n%s: %u hops\n", rows[i].why, e->nhops);
		CU_ASSERT(e->fwd == way && e->nhops == rows[i].expected);
	}
	/* the neighbour has lost the way: this node asks whether its own way still exists */
	CU_ASSERT_EQUAL(ph->links->frames_out[FRAME_SEQREQ], 1);
	node_free(ph);
}

/* Of two claims to a virtual node the newest wins; what this node assumes is its own. */
static void test_holders(void)
{
	enum { CLAIMS = 6, ROUNDS = 300 };
	struct { ph_vp_t lo, hi; uint64_t stamp; } claims[CLAIMS];

	srandom(1);
	make_node();
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CLAIMS; i++) {
			claims[i].lo = random() % SPACE;
			claims[i].hi = claims[i].lo + random() % (SPACE / 2);
			claims[i].stamp = (uint64_t)(1 + round * CLAIMS + (i * 5 + round) % CLAIMS);
			hear(i % 2, far + i, (uint64_t)(10 + 2 * round), 1, claims[i].stamp,
			     claims[i].lo, claims[i].hi);
		}
		for (ph_vp_t v = 0; v < SPACE; v++) {
			ph_vp_t expected = 0;
			uint64_t newest = 0;
			for (int i = 0; i < CLAIMS; i++)
				if (v >= claims[i].lo && v < claims[i].hi &&
				    claims[i].stamp > newest) {
					newest = claims[i].stamp;
					expected = far + i;
				}
			CU_ASSERT_EQUAL(holder_of(ph, v), expected);
		}
	}
	ph_vps_t mine = ph_vps_create_range(10, 20);
	CU_ASSERT_EQUAL(mapping_assume(ph, mine), 0);
	ph_vps_destroy(mine);
	CU_ASSERT_EQUAL(holder_of(ph, 15), ph->name);
	CU_ASSERT_EQUAL(holder_of(ph, far), far);
	CU_ASSERT_EQUAL(holder_of(ph, far + CLAIMS), 0);
	node_free(ph);
}

/* A set of a million millions of virtual nodes is one range, in memory and in frames. */
static void test_size(void)
{
	make_node();
	ph_vps_t all = ph_vps_create_range(0, HUGE);
	node_tick(ph);
	size_t before = links[0]->out_bytes;
	CU_ASSERT_EQUAL(mapping_assume(ph, all), 0);
	now += 1000000;
	node_tick(ph);
	size_t said = links[0]->out_bytes - before;
	CU_ASSERT(said > 0 && said < 500);
	hear(0, far, 10, 1, 1000, 0, HUGE);
	CU_ASSERT_EQUAL(route_find(ph, far)->payload.vps.n, 1);
	CU_ASSERT_EQUAL(mapping_release(ph, all), 0);
	CU_ASSERT_EQUAL(holder_of(ph, HUGE - 1), far);
	ph_vps_destroy(all);
	node_free(ph);
}

/* A peer greets like this node, but with another name. */
static void greets(struct plink *l, ph_vp_t name)
{
	enum { NAME = 4 + 4 + 16 };
	size_t room, n = link_of(l)->my_hello.len;
	unsigned char *to = link_space(l, &room);
	struct writer w = { .data = to, .room = room };

	put8(&w, 'P');
	put8(&w, 'H');
	put8(&w, FRAME_HELLO);
	put8(&w, PHNX_VERSION);
	put32(&w, (uint32_t)n);
	put_bytes(&w, link_of(l)->my_hello.data, n);
	w.len = FRAME_HEAD + NAME;
	put64(&w, (uint64_t)name);
	CU_ASSERT_EQUAL(link_input(l, FRAME_HEAD + n), 0);
}

/* Proofs go out in the order of the greetings; some peers, the last one too, are lost before. */
static void test_proofs(void)
{
	enum { N = 6 };
	static const int order[N] = { 3, 0, 4, 1, 5, 2 };
	struct plink *all[N];
	unsigned n = 0;

	ph = node_new(&ops, NULL, 0, SPACE);
	for (int i = 0; i < N; i++)
		all[i] = link_open(ph, NULL, NULL, NULL);
	for (int i = 0; i < N - 1; i++)
		greets(all[order[i]], names[0] + 1 + order[i]);
	link_lost(all[4]);
	link_lost(all[5]);
	greets(all[2], names[0] + 3);
	CU_ASSERT_EQUAL(n_proved, 0);
	node_poll(ph);
	CU_ASSERT_EQUAL(n_proved, N - 2);
	for (int i = 0; i < N; i++)
		if (order[i] < 4)
			CU_ASSERT_PTR_EQUAL(proved[n++], all[order[i]]);
	node_free(ph);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "which route is taken", test_rules },
		{ "who holds a virtual node", test_holders },
		{ "very many virtual nodes", test_size },
		{ "proofs go in the order of the greetings", test_proofs },
		UNIT_END
	};

	return UNIT_RUN("routing table", tests);
}
