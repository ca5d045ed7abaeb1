/* phnx_ends.c - phnx_cluster's tests of what ends a wait: a death, a timeout, a log that is
 * loaded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "phoenix/flow/msglog.h"
#include "tests/sim/phnx_cluster.h"

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

/* Messages under way to a node that is gone are sent to the next holder, returned, or discarded. */
static void test_gone_policies(void)
{
	static const struct {
		enum ph_gone_policy policy;
		bool returned, resent;
	} rows[] = { { PH_GONE_RESEND, false, true },
		     { PH_GONE_RETURN, true, false },
		     { PH_GONE_DISCARD, false, false } };

	for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
		struct sim s;
		sim_init(&s, seed, 3, 0, SPACE);
		sim_know(&s, 1, 0);
		sim_know(&s, 2, 0);
		CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
		assume(&s, 2, 0, SPACE);
		for (int i = 0; i < s.n; i++) {
			detect_set_timeout(s.nodes[i].ph, 3000000);
			flow_set_gone(s.nodes[i].ph, rows[row].policy, on_gone, NULL);
		}
		sim_run(&s, s.now + 1000000);
		gone_seen = returned_seen = 0;
		sim_kill(&s, 2);
		struct pbuf *b = pbuf_new("x", 1);
		CU_ASSERT_EQUAL(flow_send_own(s.nodes[0].ph, 5, b, 7, 0, 0), 0);
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

/* Whoever gets messages back takes the place of the dead node, and sends them to itself.  That
 * ends their destinations, while others of that node are still to be returned. */
static struct sim *taker;
static char taken_log[] = "/tmp/phnx-sim-gone-XXXXXX";

static void take_over(void *arg, ph_vp_t name, const struct ph_msg *returned)
{
	struct phnx *ph = taker->nodes[0].ph;
	char text[256];

	on_gone(arg, name, returned);
	if (!returned)
		return;
	if (returned_seen == 1)
		assume(taker, 0, 0, SPACE);
	CU_ASSERT_EQUAL(msglog_store(ph, taken_log, text, sizeof text), 0);
	CU_ASSERT_TRUE(flow_idle(ph));	/* what is returned does not wait here any more */
	if (returned->dest == name)
		return;
	struct pbuf *b = pbuf_new(returned->body, returned->len);
	CU_ASSERT_EQUAL(flow_send_own(ph, returned->dest, b, returned->tag, 0, 0), 0);
	pbuf_put(b);
}

static void test_gone_and_taken_over(void)
{
	enum { MESSAGES = 5 };
	struct sim s;
	int fd = mkstemp(taken_log), received = 0;
	ph_vp_t dead;

	sim_init(&s, seed, 3, 0, SPACE);
	taker = &s;
	sim_know(&s, 1, 0);
	sim_know(&s, 2, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	assume(&s, 2, 0, SPACE);
	for (int i = 0; i < s.n; i++) {
		detect_set_timeout(s.nodes[i].ph, 3000000);
		flow_set_gone(s.nodes[i].ph, PH_GONE_RETURN, i ? on_gone : take_over, NULL);
	}
	sim_run(&s, s.now + 1000000);
	gone_seen = returned_seen = 0;
	dead = s.nodes[2].ph->name;
	sim_kill(&s, 2);
	struct pbuf *b = pbuf_new("x", 1);
	for (int i = 0; i < MESSAGES; i++)
		CU_ASSERT_EQUAL(flow_send_own(s.nodes[0].ph, 5 + i, b, 7, 0, 0), 0);
	/* to its name, which no other node will have */
	CU_ASSERT_EQUAL(flow_send_own(s.nodes[0].ph, dead, b, 8, 0, 0), 0);
	pbuf_put(b);
	sim_touch(&s, 0);
	sim_run(&s, s.now + 10000000);
	CU_ASSERT_EQUAL(gone_seen, 2);
	CU_ASSERT_EQUAL(returned_seen, MESSAGES + 1);
	for (struct rmsg *m; (m = flow_receive(s.nodes[0].ph, 7)); rmsg_free(m))
		received++;
	CU_ASSERT_EQUAL(received, MESSAGES);
	sim_free(&s);
	close(fd);
	unlink(taken_log);
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
		s.nodes[i].ph->detector->timeout_us = 6000000;
		s.nodes[i].ph->flows->gone_policy = PH_GONE_RETURN;
		s.nodes[i].ph->flows->gone_fn = on_gone;
	}
	sim_run(&s, s.now + 20000000);
	CU_ASSERT_EQUAL(gone_seen, 0);		/* no node is declared gone while all live */
	sim_kill(&s, 9);
	struct pbuf *b = pbuf_new("x", 1);
	CU_ASSERT_EQUAL(flow_send_own(s.nodes[0].ph, SPACE - 1, b, 7, 0, 0), 0);
	sim_run(&s, s.now + 20000000);
	CU_ASSERT_EQUAL(gone_seen, 9);		/* each node learns it once */
	CU_ASSERT_EQUAL(returned_seen, 1);
	CU_ASSERT_EQUAL(flow_send_own(s.nodes[1].ph, SPACE - 1, b, 7, 0, 0), 0);
	assume(&s, 3, SPACE * 9 / 10, SPACE);	/* another node takes its place */
	sim_run(&s, s.now + 1000000);
	struct rmsg *m = flow_receive(s.nodes[3].ph, 7);
	CU_ASSERT_PTR_NOT_NULL(m);
	free(m);
	pbuf_put(b);
	sim_free(&s);
}

/* The timeout follows from the number of nodes: no node is declared gone while it lives, and one
 * that dies is, by all, in that time and a few rounds. */
static void test_timeout_by_size(void)
{
	static const int sizes[] = { 2, 10, 40 };

	for (size_t row = 0; row < sizeof sizes / sizeof *sizes; row++) {
		int n = sizes[row];
		struct sim s;

		sim_init(&s, seed, n, 0, SPACE);
		for (int i = 1; i < n; i++)
			sim_know(&s, i, 0);
		CU_ASSERT_TRUE(sim_until(&s, 20000000, converged));
		gone_seen = 0;
		for (int i = 0; i < n; i++) {
			detect_by_size(s.nodes[i].ph);
			flow_set_gone(s.nodes[i].ph, PH_GONE_DISCARD, on_gone, NULL);
		}
		sim_run(&s, s.now + 60000000);
		CU_ASSERT_EQUAL(gone_seen, 0);
		sim_kill(&s, n - 1);
		uint64_t rounds = detect_rounds(DETECT_DBRR, (unsigned)n),
			 timeout = detect_cleanup(DETECT_DBRR, (unsigned)n, GOSSIP_INTERVAL);
		timeout = timeout > CLEANUP_LEAST ? timeout : CLEANUP_LEAST;
		sim_run(&s, s.now + timeout - (2 + rounds) * GOSSIP_INTERVAL);
		CU_ASSERT_EQUAL(gone_seen, 0);
		sim_run(&s, s.now + (2 * rounds + 4) * GOSSIP_INTERVAL);
		CU_ASSERT_EQUAL(gone_seen, n - 1);
		sim_free(&s);
	}
}

/* A destination waits for a while after messages have come back; timers that expire earlier must
 * not end that wait without a try. */
static void test_wait_ends(void)
{
	struct sim s;
	struct rmsg *m = NULL;

	sim_init(&s, seed, 2, 0, SPACE);
	sim_know(&s, 1, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	struct pbuf *b = pbuf_new("wait", 4);
	CU_ASSERT_EQUAL(flow_send_own(s.nodes[0].ph, 5, b, 7, 0, 0), 0);
	pbuf_put(b);
	s.nodes[0].ph->flows->active->wait_us = s.now + 3 * PING_INTERVAL;
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
	/* nobody assumes 5 in time */
	CU_ASSERT_EQUAL(flow_send_own(s.nodes[0].ph, 5, b, 7, 0, s.now + 100000), 0);
	sim_run(&s, s.now + 500000);
	assume(&s, 1, 0, 10);
	sim_run(&s, s.now + 500000);
	CU_ASSERT_PTR_NULL(flow_receive(s.nodes[1].ph, 7));
	CU_ASSERT_TRUE(flow_idle(s.nodes[0].ph));
	/* the message arrives, but nobody receives it */
	CU_ASSERT_EQUAL(flow_send_own(s.nodes[0].ph, 6, b, 7, 0, s.now + 100000), 0);
	sim_touch(&s, 0);
	sim_run(&s, s.now + 500000);
	CU_ASSERT_PTR_NULL(flow_receive(s.nodes[1].ph, 7));
	sim_run(&s, s.now + 500000);
	CU_ASSERT_TRUE(flow_idle(s.nodes[0].ph));

	/* a neighbour keeps it while node 0 leaves */
	CU_ASSERT_EQUAL(flow_send_own(s.nodes[0].ph, 100, b, 7, 0, 0), 0);
	flow_custody(s.nodes[0].ph);
	sim_touch(&s, 0);
	sim_run(&s, s.now + 500000);
	CU_ASSERT_TRUE(flow_idle(s.nodes[0].ph));
	node_goodbye(s.nodes[0].ph);
	sim_touch(&s, 0);
	sim_run(&s, s.now + 100000);
	sim_kill(&s, 0);
	assume(&s, 1, 100, 101);
	sim_run(&s, s.now + 1000000);
	struct rmsg *m = flow_receive(s.nodes[1].ph, 7);
	CU_ASSERT(m && m->pub.len == 4 && !memcmp(m->pub.body, "late", 4));
	free(m);
	CU_ASSERT_EQUAL(flow_send_own(s.nodes[1].ph, SPACE, b, 7, 0, 0), PH_EBOUND);
	CU_ASSERT_EQUAL(flow_send_own(s.nodes[1].ph, -1, b, 7, 0, 0), PH_EBOUND);
	pbuf_put(b);
	sim_free(&s);
}

/* A node that leaves, or whose log is written, may be about to end: the messages that it is given
 * to keep go back, and to another node. */
static void keeper_ends(bool by_log)
{
	char file[] = "/tmp/phnx-keeper-XXXXXX", text[200];
	struct sim s;

	close(mkstemp(file));
	sim_init(&s, seed, 3, 0, SPACE);
	sim_know(&s, 1, 0);
	sim_know(&s, 2, 1);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, all_direct));
	struct pbuf *b = pbuf_new("kept", 4);
	CU_ASSERT_EQUAL(flow_send_own(s.nodes[0].ph, 100, b, 7, 0, 0), 0);
	pbuf_put(b);
	flow_custody(s.nodes[0].ph);
	struct flow *f = s.nodes[0].ph->flows->all;
	while (f->next_seq == f->una)
		f = f->all_next;
	int keeper = f->peer == s.nodes[1].ph->name ? 1 : 2;
	s.nodes[keeper].ph->leaving = !by_log;		/* no other node has heard of it yet */
	if (by_log)
		CU_ASSERT_EQUAL(msglog_store(s.nodes[keeper].ph, file, text, sizeof text), 0);
	sim_touch(&s, 0);
	sim_run(&s, s.now + 500000);
	CU_ASSERT_TRUE(flow_idle(s.nodes[keeper].ph));
	CU_ASSERT_FALSE(flow_idle(s.nodes[0].ph));
	node_goodbye(s.nodes[keeper].ph);
	sim_touch(&s, keeper);
	sim_run(&s, s.now + 100000);
	sim_kill(&s, keeper);
	flow_custody(s.nodes[0].ph);
	sim_touch(&s, 0);
	sim_run(&s, s.now + 500000);
	CU_ASSERT_TRUE(flow_idle(s.nodes[0].ph));
	assume(&s, 3 - keeper, 100, 101);
	sim_run(&s, s.now + 500000);
	struct rmsg *m = flow_receive(s.nodes[3 - keeper].ph, 7);
	CU_ASSERT(m && m->pub.len == 4 && !memcmp(m->pub.body, "kept", 4));
	rmsg_free(m);
	sim_free(&s);
	unlink(file);
}

static void test_keeper_ends(void)
{
	keeper_ends(false);
	keeper_ends(true);
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
		CU_ASSERT_EQUAL(flow_send_own(s->nodes[node].ph, 5, b, 7, 0, 0), 0);
		pbuf_put(b);
	}
	sim_touch(s, node);
}

/* A second later node 1's messages are acknowledged. */
static void end_acknowledged(struct sim *s, const char *file)
{
	sim_run(s, s->now + 1000000);
	CU_ASSERT_TRUE(flow_idle(s->nodes[1].ph));
	sim_free(s);
	unlink(file);
}

static void three_connected(struct sim *s)
{
	sim_init(s, seed, 3, 0, SPACE);
	for (int i = 1; i < s->n; i++)
		sim_know(s, i, 0);
	CU_ASSERT_TRUE(sim_until(s, 5000000, all_direct));
}

/* Node 1 has sent three numbers to node 0, which has received them; no acknowledgement has
 * arrived yet. */
static void three_in_doubt(struct sim *s, int *next)
{
	three_connected(s);
	assume(s, 0, 0, 10);
	sim_run(s, s->now + 100000);
	send_numbers(s, 1, 0, 3);
	sim_run(s, s->now + 1000);
	CU_ASSERT_EQUAL(received_numbers(s, 0, next), 3);
}

static void stop_and_load(bool gone)
{
	char file[] = "/tmp/phnx-doubt-XXXXXX", text[200];
	struct sim s;
	int next = 0;

	close(mkstemp(file));
	three_in_doubt(&s, &next);
	s.may_connect = nobody;
	while (s.nodes[1].n_ends)
		sim_cut(&s, 1, 0);
	send_numbers(&s, 1, 3, 6);
	CU_ASSERT_EQUAL(msglog_store(s.nodes[1].ph, file, text, sizeof text), 0);
	sim_kill(&s, 1);
	if (gone) {
		for (int i = 0; i < s.n; i += 2)
			s.nodes[i].ph->detector->timeout_us = 3000000;
		sim_run(&s, s.now + 15000000);
	}
	s.may_connect = NULL;
	sim_restart(&s, 1);
	CU_ASSERT_EQUAL(msglog_load(s.nodes[1].ph, file, text, sizeof text), 0);
	send_numbers(&s, 1, 6, 9);
	sim_know(&s, 1, 2);
	sim_run(&s, s.now + 3000000);
	CU_ASSERT_EQUAL(received_numbers(&s, 0, &next), 6);
	end_acknowledged(&s, file);
}

static void test_log_doubles_nothing(void)
{
	stop_and_load(false);
	stop_and_load(true);
}

static unsigned load_numbers(struct sim *s, int node, const char *file, int *next)
{
	char text[200];

	sim_kill(s, node);
	sim_restart(s, node);
	CU_ASSERT_EQUAL(msglog_load(s->nodes[node].ph, file, text, sizeof text), 0);
	sim_know(s, node, 2);
	sim_run(s, s->now + 3000000);
	return received_numbers(s, 2, next);
}

/* The writer of a log runs on for a while.  Its messages wait for a holder, or are under way to
 * a node that bounces them. */
static void store_and_stay(bool under_way)
{
	char file[] = "/tmp/phnx-stay-XXXXXX", text[200];
	struct sim s;
	int next = 0;

	close(mkstemp(file));
	three_connected(&s);
	if (under_way)
		assume(&s, 0, 0, 10);
	sim_run(&s, s.now + 100000);
	send_numbers(&s, 1, 0, 3);
	sim_run(&s, s.now + 100000);
	CU_ASSERT_EQUAL(msglog_store(s.nodes[1].ph, file, text, sizeof text), 0);
	CU_ASSERT_TRUE(flow_idle(s.nodes[1].ph));
	flow_custody(s.nodes[1].ph);
	if (under_way)
		release(&s, 0, 0, 10);
	assume(&s, 2, 0, 10);
	sim_run(&s, s.now + 3000000);
	CU_ASSERT_EQUAL(received_numbers(&s, 2, &next), 0);
	/* a later log has all of it too */
	CU_ASSERT_EQUAL(msglog_store(s.nodes[1].ph, file, text, sizeof text), 0);
	CU_ASSERT_EQUAL(load_numbers(&s, 1, file, &next), 3);
	end_acknowledged(&s, file);
}

static void test_log_is_not_sent(void)
{
	store_and_stay(false);
	store_and_stay(true);
}

/* ---- a loader's question that arrives before the messages that it asks about ---- */

static bool around_two(const struct sim *s, int from, int to)
{
	(void)s;
	return from == 2 || to == 2;
}

/* Of three messages, `before` arrive.  The others are slow, through node 2.  Meanwhile their sender
 * ends, and its successor, which has another way, asks. */
static void overtake(int before)
{
	enum { SLOW = 1000000 };
	char file[] = "/tmp/phnx-late-XXXXXX", text[200];
	struct sim s;
	int next = 0;

	close(mkstemp(file));
	sim_init(&s, seed, 3, 0, SPACE);
	s.may_connect = around_two;
	sim_know(&s, 0, 2);
	sim_know(&s, 1, 2);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	assume(&s, 0, 0, 10);
	sim_run(&s, s.now + 100000);
	send_numbers(&s, 1, 0, before);
	sim_run(&s, s.now + 100000);
	CU_ASSERT_EQUAL(received_numbers(&s, 0, &next), (unsigned)before);
	sim_run(&s, s.now + 100000);
	uint64_t arrive = s.now + SLOW;
	send_numbers(&s, 1, before, 3);
	uint64_t least = s.delay_min, most = s.delay_max;
	s.delay_min = s.delay_max = SLOW;
	sim_run(&s, s.now + 1000);
	s.delay_min = least;
	s.delay_max = most;
	CU_ASSERT_EQUAL(msglog_store(s.nodes[1].ph, file, text, sizeof text), 0);
	sim_kill(&s, 1);
	s.may_connect = NULL;
	sim_restart(&s, 1);
	CU_ASSERT_EQUAL(msglog_load(s.nodes[1].ph, file, text, sizeof text), 0);
	sim_know(&s, 1, 0);
	sim_run(&s, arrive - SLOW / 4);
	CU_ASSERT_EQUAL(received_numbers(&s, 0, &next), 3 - (unsigned)before);
	sim_run(&s, arrive + SLOW);
	CU_ASSERT_EQUAL(received_numbers(&s, 0, &next), 0);	/* now the old messages are there */
	CU_ASSERT_TRUE(flow_idle(s.nodes[1].ph));
	sim_free(&s);
	unlink(file);
}

static void test_question_overtakes(void)
{
	overtake(0);
	overtake(1);
}

/* A message in doubt is given to no neighbour to keep, since that could not ask about it. */
static void test_doubt_is_not_kept(void)
{
	char file[] = "/tmp/phnx-away-XXXXXX", text[200];
	struct sim s;
	int next = 0;

	close(mkstemp(file));
	three_in_doubt(&s, &next);
	CU_ASSERT_EQUAL(msglog_store(s.nodes[1].ph, file, text, sizeof text), 0);
	sim_kill(&s, 1);
	s.nodes[0].group = 1;
	sim_cut_groups(&s);
	sim_restart(&s, 1);
	CU_ASSERT_EQUAL(msglog_load(s.nodes[1].ph, file, text, sizeof text), 0);
	sim_know(&s, 1, 2);
	sim_run(&s, s.now + 1000000);
	flow_custody(s.nodes[1].ph);
	sim_touch(&s, 1);
	sim_run(&s, s.now + 1000000);
	CU_ASSERT_FALSE(flow_idle(s.nodes[1].ph));
	s.nodes[0].group = 0;
	sim_run(&s, s.now + 5000000);
	CU_ASSERT_EQUAL(received_numbers(&s, 0, &next), 0);
	end_acknowledged(&s, file);
}

/* Nodes that end with nothing in doubt leave nothing behind: otherwise they would crowd out a
 * node that did. */
static void test_many_leave(void)
{
	char file[] = "/tmp/phnx-many-XXXXXX", text[200];
	struct sim s;
	int next = 0, many = 0;

	close(mkstemp(file));
	three_in_doubt(&s, &next);
	CU_ASSERT_EQUAL(msglog_store(s.nodes[1].ph, file, text, sizeof text), 0);
	node_goodbye(s.nodes[1].ph);
	sim_touch(&s, 1);
	sim_run(&s, s.now + 10000);
	sim_kill(&s, 1);
	for (int round = 0; round <= MAX_PAST; round++, many = 0) {
		if (round) {
			sim_restart(&s, 2);
			sim_know(&s, 2, 0);
			sim_run(&s, s.now + 100000);
		}
		send_numbers(&s, 2, 0, 1);
		sim_run(&s, s.now + 10000);
		CU_ASSERT_EQUAL(received_numbers(&s, 0, &many), 1);
		sim_run(&s, s.now + 100000);
		CU_ASSERT_TRUE(flow_idle(s.nodes[2].ph));
		node_goodbye(s.nodes[2].ph);
		sim_touch(&s, 2);
		sim_run(&s, s.now + 10000);
		sim_kill(&s, 2);
	}
	sim_restart(&s, 1);
	CU_ASSERT_EQUAL(msglog_load(s.nodes[1].ph, file, text, sizeof text), 0);
	sim_know(&s, 1, 0);
	sim_run(&s, s.now + 3000000);
	CU_ASSERT_EQUAL(received_numbers(&s, 0, &next), 0);
	CU_ASSERT_TRUE(flow_idle(s.nodes[1].ph));
	sim_free(&s);
	unlink(file);
}

/* ---- the suite ---- */

void add_ends(CU_pSuite suite)
{
	CU_add_test(suite, "a death is detected", test_death_is_detected);
	CU_add_test(suite, "how soon follows from the size", test_timeout_by_size);
	CU_add_test(suite, "what was under way to the dead", test_gone_policies);
	CU_add_test(suite, "what the dead returns is taken over", test_gone_and_taken_over);
	CU_add_test(suite, "a wait ends though other timers come first", test_wait_ends);
	CU_add_test(suite, "time-outs and custody", test_timed_and_custody);
	CU_add_test(suite, "who ends keeps nothing for others", test_keeper_ends);
	CU_add_test(suite, "a log doubles nothing", test_log_doubles_nothing);
	CU_add_test(suite, "nor if its question overtakes what it asks about",
		    test_question_overtakes);
	CU_add_test(suite, "nor through a keeper", test_doubt_is_not_kept);
	CU_add_test(suite, "nor if many others have left since", test_many_leave);
	CU_add_test(suite, "what stands in a log is not sent by its writer", test_log_is_not_sent);
}
