/* phnx_losses.c - phnx_cluster's tests of many messages that a link has lost: they arrive soon,
 * whichever link it was. */
#include <stdio.h>
#include "tests/sim/phnx_cluster.h"

enum { MANY = 4000 };

static bool all_have_come(struct sim *s)
{
	unsigned n = 0;

	for (const struct rmsg *m = s->nodes[0].ph->flows->received; m; m = m->next)
		n++;
	return n == MANY;
}

/* Many messages that a broken link has lost arrive soon after the next link is up, although the
 * receiver takes none of them: it may wait for the last. */
static void test_many_lost(void)
{
	struct sim s;

	sim_init(&s, seed, 2, 0, SPACE);
	sim_know(&s, 1, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	assume(&s, 0, 0, SPACE);
	sim_run(&s, s.now + 1000000);
	for (int i = 0; i < MANY; i++) {
		struct pbuf *b = pbuf_new(&i, sizeof i);
		CU_ASSERT_EQUAL(flow_send_own(s.nodes[1].ph, 5, b, i, 0, 0), 0);
		pbuf_put(b);
	}
	sim_touch(&s, 1);
	sim_cut(&s, 1, 0);
	CU_ASSERT_TRUE(sim_until(&s, 1500000, all_have_come));
	CU_ASSERT_EQUAL(s.nodes[1].ph->flows->resent, MANY);
	sim_free(&s);
}

static bool in_a_row(const struct sim *s, int from, int to)
{
	(void)s;
	return from - to == 1 || to - from == 1;
}

static void send_more(struct sim *s, int node, int n)
{
	for (int i = 0; i < n; i++) {
		struct pbuf *b = pbuf_new(&i, sizeof i);
		CU_ASSERT_EQUAL(flow_send_own(s->nodes[node].ph, 5, b, i, 0, 0), 0);
		pbuf_put(b);
	}
	sim_touch(s, node);
}

static unsigned taken;

static bool all_are_taken(struct sim *s)
{
	for (struct rmsg *m; (m = flow_receive(s->nodes[0].ph, PH_MSG_ANY_TAG)); taken++)
		rmsg_free(m);
	sim_touch(s, 0);
	return taken == MANY;
}

/* Cuts the link of node 0 as soon as node 2 asks.  Returns false if it has not asked soon. */
static bool cut_when_asked(struct sim *s)
{
	const uint64_t *questions = s->nodes[2].ph->links->frames_out + FRAME_PROBE;
	uint64_t before = *questions, until = s->now + 30000;

	while (s->now < until && *questions == before)
		sim_run(s, s->now + 10);
	if (*questions != before)
		sim_cut(s, 0, 0);
	return *questions != before;
}

/* The same if a link in the middle breaks, more is sent afterwards, and the receiver takes what
 * comes.  The sender's own link stays, so that gaps in what has arrived tell it of the loss, while
 * each message that comes again moves its window.  The link breaks again when the sender asks, so
 * many times, and takes the question along. */
static void lose_on_the_way(int questions_lost)
{
	enum { LATER = 40 };
	struct sim s;

	taken = 0;
	sim_init(&s, seed, 3, 0, SPACE);
	s.may_connect = in_a_row;
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, i - 1);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	assume(&s, 0, 0, SPACE);
	sim_run(&s, s.now + 1000000);
	send_more(&s, 2, 1);	/* so that the flow knows how long an answer takes */
	sim_run(&s, s.now + 1000000);
	sim_cut(&s, 0, 0);
	send_more(&s, 2, MANY - 1 - LATER);
	for (int i = 0; i < LATER; i++) {
		sim_run(&s, s.now + 20000);
		send_more(&s, 2, 1);
		if (questions_lost && cut_when_asked(&s))
			questions_lost--;
		all_are_taken(&s);
	}
	uint64_t began = s.now;
	CU_ASSERT_TRUE(sim_until(&s, 100000000, all_are_taken));
	CU_ASSERT_EQUAL(questions_lost, 0);
	CU_ASSERT(s.now - began < 3000000);
	CU_ASSERT(s.nodes[2].ph->flows->resent <= MANY + 2 * LATER);
	if (getenv("SIM_VERBOSE"))
		printf("lost on the way: %.1f s, %llu sent again\n", (double)(s.now - began) / 1e6,
		       (unsigned long long)s.nodes[2].ph->flows->resent);
	sim_free(&s);
}

static void test_lost_on_the_way(void)
{
	for (int questions = 0; questions < 6; questions++)
		lose_on_the_way(questions);
}

void add_losses(CU_pSuite suite)
{
	CU_add_test(suite, "many that a link has lost come soon", test_many_lost);
	CU_add_test(suite, "also if it was a link in the middle", test_lost_on_the_way);
}
