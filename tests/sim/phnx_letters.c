/* phnx_letters.c - phnx_cluster's tests of messages: each arrives once and in order, whatever
 * breaks; queues are bounded; what is slow is not retransmitted. */
#include <stdio.h>
#include <string.h>
#include "tests/sim/phnx_cluster.h"

/* ---- traffic: numbered messages from every node to random virtual nodes ---- */

struct traffic {
	uint32_t sent[SPACE];		/* per destination */
};
struct ledger {
	unsigned char seen[64][4096];	/* how often each arrived, by sender and serial number */
	uint32_t last[64][SPACE];	/* by sender and destination, for the order */
	uint32_t serial[64];
	unsigned received, sent, doubled, disordered;
};
struct letter {
	uint32_t sender, serial, per_dest;
};
static struct ledger *ledger;
static unsigned traffic_flags;

void send_one(struct sim *s, int from)
{
	struct phnx *ph = s->nodes[from].ph;
	struct traffic *t = s->nodes[from].app;
	ph_vp_t dest = (ph_vp_t)sim_random(s, SPACE / 16) * 16;
	struct letter letter = { (uint32_t)from, ledger->serial[from], t->sent[dest] + 1 };
	struct pbuf *b = pbuf_new(&letter, sizeof letter);

	if (ledger->serial[from] < 4096 && flow_send_own(ph, dest, b, 7, traffic_flags, 0) == 0) {
		ledger->serial[from]++;
		t->sent[dest]++;
		ledger->sent++;
	}
	pbuf_put(b);
	sim_touch(s, from);
}

void receive_all(struct sim *s, int node)
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

bool all_received(struct sim *s)
{
	for (int i = 0; i < s->n; i++)
		if (!s->nodes[i].dead)
			receive_all(s, i);
	return ledger->received >= ledger->sent;
}

void start_traffic(struct sim *s)
{
	ledger = calloc(1, sizeof *ledger);
	for (int i = 0; i < s->n; i++)
		s->nodes[i].app = calloc(1, sizeof(struct traffic));
}

void end_traffic(struct sim *s)
{
	CU_ASSERT_TRUE(sim_until(s, 60000000, all_received));
	sim_run(s, s->now + 3000000);
	all_received(s);
	if (ledger->received != ledger->sent || ledger->doubled || ledger->disordered)
		printf("\nseed %llu: sent %u received %u doubled %u out of order %u\n",
		       (unsigned long long)seed, ledger->sent, ledger->received, ledger->doubled,
		       ledger->disordered);
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

/* Unordered messages may overtake each other, and do; none is lost or doubled. */
static void test_unordered(void)
{
	traffic_flags = DATA_UNORDERED;
	test_cuts_lose_nothing();
	traffic_flags = 0;
}

/* Nodes are slow, each busy for milliseconds with every packet, as many processes on few
 * processors are.  What takes long is not lost, and is not retransmitted, which would make it
 * take longer. */
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
		resent += s.nodes[i].ph->flows->resent;
		probes += s.nodes[i].ph->links->frames_out[FRAME_PROBE];
	}
	if (getenv("SIM_VERBOSE"))
		printf("slow nodes: %u sent, %llu resent, %llu times asked, %.1f s\n", ledger->sent,
		       (unsigned long long)resent, (unsigned long long)probes,
		       (double)(s.now - began) / 1e6);
	CU_ASSERT_EQUAL(resent, 0);
	CU_ASSERT(probes < ledger->sent / 4);
	s.packet_cost_ns = s.kib_cost_ns = 0;
	end_traffic(&s);
	sim_free(&s);
}

/* A receiver that takes nothing stops its senders before any node's memory is full; when it
 * takes messages, all arrive. */
static void test_bounds(void)
{
	/* the first sender sends until it is told to stop */
	enum { SENDERS = 10, BYTES = 100000, SOME = 100 };
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
		for (memcpy(body, &i, sizeof i); !error && (i == 1 || sent[i] < SOME);
		     sent[i] += !error) {
			struct pbuf *b = pbuf_new(body, sizeof body);
			memcpy(b->own + sizeof i, &sent[i], sizeof sent[i]);
			error = flow_send_own(s.nodes[i].ph, 5, b, 7, 0, 0);
			pbuf_put(b);
		}
		CU_ASSERT_EQUAL(error, i == 1 ? PH_EAGAIN : 0);
		CU_ASSERT(s.nodes[i].ph->flows->out_bytes <=
			  SEND_QUEUE_BYTES + sent[i] * sizeof(struct smsg));
		total += sent[i];
		sim_touch(&s, i);
		sim_run(&s, s.now + 300000);
	}
	sim_run(&s, s.now + 3000000);
	CU_ASSERT(s.nodes[0].ph->flows->in_bytes <= 2u * RECV_QUEUE_BYTES);
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

/* A multicast to virtual nodes that nobody assumes does not fill its sender's memory. */
static void test_cast_bounds(void)
{
	enum { BYTES = 100000, ENOUGH = 2000 };
	static unsigned char body[BYTES];
	struct sim s;
	unsigned sent = 0;
	int error = 0;

	sim_init(&s, seed, 2, 0, SPACE);
	sim_know(&s, 1, 0);
	assume(&s, 0, 0, SPACE / 2);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	for (; !error && sent < ENOUGH; sent += !error) {
		error = collective_multicast(s.nodes[0].ph, SPACE / 4, SPACE, 7, body, sizeof body);
		sim_touch(&s, 0);
		for (struct rmsg *m; (m = flow_receive(s.nodes[0].ph, 7));)
			rmsg_free(m);
	}
	CU_ASSERT_EQUAL(error, PH_EAGAIN);
	assume(&s, 1, SPACE / 2, SPACE);
	for (int i = 0; sent && i < 600; i++) {
		sim_run(&s, s.now + 100000);
		for (struct rmsg *m; (m = flow_receive(s.nodes[1].ph, 7)); sent--)
			rmsg_free(m);
		sim_touch(&s, 1);
	}
	CU_ASSERT_EQUAL(sent, 0);
	CU_ASSERT_EQUAL(collective_multicast(s.nodes[0].ph, SPACE / 4, SPACE, 7, body, sizeof body),
			0);
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

/* Changes the mapping without the protocol: one node releases virtual nodes, another one assumes
 * them. */
static void move_at_random(int nodes, int ranges, int rounds, uint64_t calm, uint64_t intact,
			   uint64_t pause_us)
{
	struct sim s;
	int owner[16], width = SPACE / ranges;

	sim_init(&s, seed, nodes, 0, SPACE);
	sim_tardy(&s, tardy_us);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	for (int i = 0; i < ranges; i++)
		assume(&s, owner[i] = i % nodes, i * width, i * width + width);
	start_traffic(&s);
	for (int round = 0; round < rounds; round++) {
		send_one(&s, (int)sim_random(&s, (uint64_t)nodes));
		if (sim_random(&s, calm) == 0) {
			int i = (int)sim_random(&s, (uint64_t)ranges),
			    to = (int)sim_random(&s, (uint64_t)nodes);
			release(&s, owner[i], i * width, i * width + width);
			sim_run(&s, s.now + sim_random(&s, 2000));
			assume(&s, owner[i] = to, i * width, i * width + width);
		}
		if (sim_random(&s, 4) == 0)
			receive_all(&s, (int)sim_random(&s, (uint64_t)nodes));
		if (sim_random(&s, intact) == 0)
			sim_cut(&s, (int)sim_random(&s, (uint64_t)nodes),
				(unsigned)sim_random(&s, (uint64_t)nodes));
		sim_run(&s, s.now + sim_random(&s, pause_us));
	}
	end_traffic(&s);
	sim_free(&s);
}

static void test_moving_target(void)
{
	move_at_random(6, 16, 2000, 10, 100, 1500);
}

/* Much is under way to virtual nodes that move, come back, and move to where they were, over
 * links that break all the time. */
static void test_hasty_target(void)
{
	move_at_random(3, 4, 6000, 5, 12, 400);
}

static void send_tagged(struct sim *s, int from, ph_vp_t dest, int tag)
{
	struct pbuf *b = pbuf_new(&tag, sizeof tag);

	CU_ASSERT_EQUAL(flow_send_own(s->nodes[from].ph, dest, b, tag, 0, 0), 0);
	pbuf_put(b);
	sim_touch(s, from);
}

static void ignore(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	(void)arg;
	(void)msg;
	(void)source;
}

/* An acknowledgement that travels with a message may be too short for everything that bounced.
 * What its reader then sends to the same virtual node, which is back where it was, must not
 * overtake messages whose bouncing it does not know. */
static void answer_at_once(void *arg, const struct ph_msg *msg, ph_vp_t source)
{
	(void)msg;
	(void)source;
	send_tagged(arg, 1, 100, 2);
}

static void test_short_ack(void)
{
	struct sim s;
	struct rmsg *m;

	sim_init(&s, seed, 2, 0, SPACE);
	sim_know(&s, 1, 0);
	assume(&s, 0, 0, SPACE);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	flow_set_handler(s.nodes[0].ph, 3, ignore, NULL);
	flow_set_handler(s.nodes[1].ph, 4, answer_at_once, &s);
	for (int i = 0; i < 40; i++)
		/* consumed and not consumed in turns: many runs in an acknowledgement */
		send_tagged(&s, 1, 5, i % 2 ? 3 : 7);
	send_tagged(&s, 1, 100, 1);
	sim_run(&s, s.now + 100000);
	ph_vps_t vps = ph_vps_create_range(100, 101);
	mapping_release(s.nodes[0].ph, vps);
	mapping_assume(s.nodes[0].ph, vps);
	ph_vps_destroy(vps);
	send_tagged(&s, 0, s.nodes[1].ph->name, 4);
	sim_run(&s, s.now + 1000000);
	while ((m = flow_receive(s.nodes[0].ph, 7)))
		rmsg_free(m);
	for (int tag = 1; tag <= 2; tag++) {
		m = flow_receive(s.nodes[0].ph, PH_MSG_ANY_TAG);
		CU_ASSERT(m && m->pub.dest == 100 && m->pub.tag == tag);
		rmsg_free(m);
	}
	sim_free(&s);
}

/* Messages that a node has sent to itself and not received, and those that waited for room
 * there, move with the virtual node in order. */
static void test_own_messages_move(void)
{
	enum { EACH = 1 << 20, ROOM = RECV_QUEUE_BYTES / EACH, N = ROOM + ROOM / 4 };
	static unsigned char body[EACH];
	struct sim s;
	int came = 0;

	sim_init(&s, seed, 2, 0, SPACE);
	sim_know(&s, 1, 0);
	assume(&s, 0, 0, SPACE);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	for (int i = 0; i < N; i++) {
		struct pbuf *b = pbuf_new(body, sizeof body);
		CU_ASSERT_EQUAL(flow_send_own(s.nodes[0].ph, 5, b, i, 0, 0), 0);
		pbuf_put(b);
	}
	release(&s, 0, 0, SPACE);
	assume(&s, 1, 0, SPACE);
	for (int quiet = 0; came < N && quiet < 100; quiet++) {
		for (struct rmsg *m; (m = flow_receive(s.nodes[1].ph, PH_MSG_ANY_TAG));
		     came++, quiet = 0) {
			CU_ASSERT_EQUAL(m->pub.tag, came);
			rmsg_free(m);
		}
		sim_touch(&s, 1);
		sim_run(&s, s.now + 100000);
	}
	CU_ASSERT_EQUAL(came, N);
	sim_free(&s);
}

/* Messages that neighbours keep for a node that leaves, because nobody assumes their
 * destination, arrive in order when somebody does. */
static void test_kept_in_order(void)
{
	enum { N = 8, ROUNDS = 200 };
	struct sim s;
	struct rmsg *m;

	sim_init(&s, seed, 4, 0, SPACE);
	for (int i = 1; i < s.n; i++)
		sim_know(&s, i, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, all_direct));
	sim_tardy(&s, 30000);
	for (int round = 0; round < ROUNDS; round++) {
		int came = 0;
		for (int i = 0; i < N; i++)
			send_tagged(&s, 1, 5, i);
		uint64_t somebody = s.now + sim_random(&s, 60000), end = s.now + 1000000;
		while (s.now < end) {
			flow_custody(s.nodes[1].ph);
			sim_touch(&s, 1);
			sim_run(&s, s.now + 50);
			if (s.now >= somebody && !s.nodes[3].ph->me.vps.n)
				assume(&s, 3, 0, SPACE);
			if (s.now >= somebody + 60000)
				sim_run(&s, end);
		}
		for (; (m = flow_receive(s.nodes[3].ph, PH_MSG_ANY_TAG)); rmsg_free(m))
			CU_ASSERT_EQUAL(m->pub.tag, came++);
		CU_ASSERT_EQUAL(came, N);
		release(&s, 3, 0, SPACE);
		sim_run(&s, s.now + 100000);
	}
	sim_free(&s);
}

/* ---- the acknowledgement that arrives with an answer ---- */

enum { LARGE = 1 << 20, ASK = 5, ANSWER = 6 };
struct asker {
	struct phnx *ph;
	/* called at what shows only after the acknowledgement was read */
	void (*looks)(struct phnx *ph);
	unsigned answers;
};

static void on_question(void *arg, const struct ph_msg *m, ph_vp_t source)
{
	struct pbuf *b = pbuf_new("yes", 3);

	(void)m;
	CU_ASSERT_EQUAL(flow_send_own(arg, source, b, ANSWER, 0, 0), 0);
	pbuf_put(b);
}

static void on_answer(void *arg, const struct ph_msg *m, ph_vp_t source)
{
	struct asker *a = arg;

	(void)m, (void)source;
	a->answers++;
	/* it was not read before the answer was handled */
	CU_ASSERT_TRUE(a->ph->flows->out_bytes > LARGE);
	if (a->looks)
		a->looks(a->ph);
	CU_ASSERT_EQUAL(a->ph->flows->out_bytes > LARGE, !a->looks);
}

static void has_nothing_under_way(struct phnx *ph)
{
	CU_ASSERT_TRUE(flow_idle(ph));
}

static void has_room_again(struct phnx *ph)
{
	CU_ASSERT_TRUE(flow_has_room(ph, SEND_QUEUE_BYTES));
}

static void test_late_ack(void)
{
	static void (*const looks[])(struct phnx *) = {
		NULL, NULL, has_nothing_under_way, has_room_again, send_logged, NULL
	};
	enum { N = sizeof looks / sizeof *looks };
	struct sim s;

	sim_init(&s, seed, 2, 0, SPACE);
	sim_know(&s, 1, 0);
	CU_ASSERT_TRUE(sim_until(&s, 5000000, converged));
	assume(&s, 1, 0, SPACE);
	sim_run(&s, s.now + 1000000);
	struct asker asker = { .ph = s.nodes[0].ph };
	flow_set_handler(s.nodes[1].ph, ASK, on_question, s.nodes[1].ph);
	flow_set_handler(s.nodes[0].ph, ANSWER, on_answer, &asker);
	for (int i = 0; i < N; i++) {
		struct pbuf *b = pbuf_new(NULL, LARGE);
		memset(b->own, 0, LARGE);
		asker.looks = looks[i];
		CU_ASSERT_EQUAL(flow_send_own(s.nodes[0].ph, 5, b, ASK, 0, 0), 0);
		pbuf_put(b);
		sim_touch(&s, 0);
		sim_run(&s, s.now + 10000);
		CU_ASSERT_EQUAL(asker.answers, i + 1);
		CU_ASSERT_EQUAL(s.nodes[0].ph->flows->out_bytes, 0);
	}
	sim_free(&s);
}

/* ---- the suite ---- */

void add_letters(CU_pSuite suite)
{
	CU_add_test(suite, "cut links lose and double nothing", test_cuts_lose_nothing);
	CU_add_test(suite, "nor do they of messages without order", test_unordered);
	CU_add_test(suite, "what slow nodes have is not sent again", test_slow_nodes);
	CU_add_test(suite, "who takes nothing stops its senders", test_bounds);
	CU_add_test(suite, "a multicast to nobody waits for room", test_cast_bounds);
	CU_add_test(suite, "a partition heals", test_partition_heals);
	CU_add_test(suite, "virtual nodes that move keep their messages", test_moving_target);
	CU_add_test(suite, "also if they move all the time, and links break", test_hasty_target);
	CU_add_test(suite, "nothing overtakes what a short acknowledgement leaves out",
		    test_short_ack);
	CU_add_test(suite, "an acknowledgement is read behind its message, or when somebody asks",
		    test_late_ack);
	CU_add_test(suite, "a node's messages to itself move in order", test_own_messages_move);
	CU_add_test(suite, "nor do neighbours change the order of what they keep",
		    test_kept_in_order);
}

void add_letters_tardily(CU_pSuite suite)
{
	CU_add_test(suite, "cut links lose and double nothing", test_cuts_lose_nothing);
	CU_add_test(suite, "a partition heals", test_partition_heals);
	CU_add_test(suite, "virtual nodes that move keep their messages", test_moving_target);
	CU_add_test(suite, "also if they move all the time, and links break", test_hasty_target);
}
