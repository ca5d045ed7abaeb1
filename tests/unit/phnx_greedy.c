/* phnx_greedy.c - a neighbour that knows the secret and costs this node as much as it can: it
 * reads nothing, answers questions for ever, and gives messages to keep and to pass on that
 * nobody will ever take; or the node itself does.  The node's memory stays within bounds. */
#include <malloc.h>
#include "phoenix/flow/flow_private.h"
#include "phoenix/flow/mapping.h"
#include "phoenix/link/link_private.h"
#include "phoenix/node/life.h"
#include "phoenix/routing/routing_private.h"
#include "phoenix/services/services_private.h"
#include "tests/unit/unit.h"

enum { MESSAGE = 1 << 20, MESSAGES = 450, SMALL_FRAMES = 2000000 };
#define SPACE (1LL << 40)	/* number of virtual nodes */
static const ph_vp_t greedy = (1LL << 62) + 1;

static uint64_t now = 1000000;
static bool closed;
static int last_error;
static struct phnx *ph;
static struct plink *l;

static uint64_t op_now(void *ctx) { (void)ctx; return now; }
static void op_random(void *ctx, void *buf, size_t n) { (void)ctx; memset(buf, 1, n); }
static void op_contact(void *ctx, struct contact *c) { (void)ctx; (void)c; }
static void op_kick(void *ctx, struct plink *link) { (void)ctx; (void)link; }
static void op_close(void *ctx, struct plink *link) { (void)ctx; (void)link; closed = true; }
static void op_report(void *ctx, int error, const char *text)
{
	(void)ctx;
	(void)text;
	last_error = error;
}
static void op_arrived(void *ctx) { (void)ctx; }
static const struct phnx_ops ops = { op_now,  op_random, op_contact, op_contact,
				     op_kick, op_close,	 op_report,  op_arrived };

static void make_node(void)
{
	closed = false;
	last_error = 0;
	ph = node_new(&ops, NULL, 0, SPACE);
	l = link_open(ph, NULL, NULL, NULL);
	l->peer = greedy;
	l->state = LINK_UP;
	ph->links->n_proving--;
	route_link_up(ph, l);
}

static size_t megabytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return (m.uordblks + m.hblkhd) >> 20;
}

/* A frame arrives.  Returns false if the link is closed. */
static bool comes(enum frame_type type, const struct writer *w)
{
	unsigned char head[FRAME_HEAD] = { 'P',
					   'H',
					   (unsigned char)type,
					   PHNX_VERSION,
					   (unsigned char)w->len,
					   (unsigned char)(w->len >> 8),
					   (unsigned char)(w->len >> 16),
					   (unsigned char)(w->len >> 24) };

	for (size_t at = 0, n, room; at < FRAME_HEAD + w->len && !closed; at += n) {
		unsigned char *to = link_space(l, &room);
		const unsigned char *from = at < FRAME_HEAD ? head + at : w->data + at - FRAME_HEAD;
		n = at < FRAME_HEAD ? FRAME_HEAD - at : FRAME_HEAD + w->len - at;
		n = n < room ? n : room;
		memcpy(to, from, n);
		if (link_input(l, n))
			break;
	}
	now += 10;
	if (!closed)
		node_poll(ph);
	return !closed;
}

/* The neighbour reads what was sent to it, and acknowledges nothing. */
static void reads_all(void)
{
	if (!closed && l->out_bytes)
		link_taken(l, l->out_bytes);
}

/* A message arrives, in its turn. */
static bool message_comes(ph_vp_t dest, int tag, unsigned flags, const struct writer *body)
{
	struct writer w = { 0 };
	const struct flow *f = ph->flows->all;
	uint64_t seq = f && f->recv_next != UINT64_MAX ? f->recv_next : 1;

	put64(&w, (uint64_t)ph->name);
	put64(&w, (uint64_t)greedy);
	put8(&w, 0);
	put_var(&w, seq);		/* the sender knows the outcomes of all before */
	put_var(&w, 0);
	put_var(&w, 0);
	put64(&w, (uint64_t)greedy);
	put64(&w, (uint64_t)dest);
	put32(&w, (uint32_t)tag);
	put8(&w, (uint8_t)flags);
	put_var(&w, 0);
	put8(&w, 0);
	put8(&w, 0);
	put_bytes(&w, body->data, body->len);
	bool up = comes(FRAME_DATA, &w);
	free(w.data);
	reads_all();
	return up;
}

static void put_much(struct writer *w)
{
	static unsigned char much[MESSAGE];

	put_bytes(w, much, sizeof much);
}

/* ---- what the neighbour does ---- */

/* Every PING must be answered; the link of a neighbour that reads no answer is closed. */
static void test_reads_nothing(void)
{
	struct writer w = { 0 };
	size_t before = megabytes(), most = before;
	int i;

	make_node();
	put64(&w, 1);
	put64(&w, ph->routes->digest);
	for (i = 0; i < SMALL_FRAMES && comes(FRAME_PING, &w); i++)
		if (i % 10000 == 0 && megabytes() > most)
			most = megabytes();
	CU_ASSERT(closed);
	CU_ASSERT_EQUAL(last_error, PH_EPEER);
	CU_ASSERT(most - before < 400);
	free(w.data);
	node_free(ph);
}

/* Messages for virtual nodes that nobody assumes: to be kept for a node that leaves, or to be
 * passed on. */
static void test_gives_to_keep(void)
{
	for (int cast = 0; cast < 2; cast++) {
		size_t before = megabytes(), most = before;
		struct writer body = { 0 };
		make_node();
		if (cast) {
			put64(&body, (uint64_t)greedy);
			put64(&body, 1);
			put32(&body, 5);
			put_var(&body, 1);
			put64(&body, 1);
			put64(&body, SPACE);
		}
		put_much(&body);
		for (int i = 0; i < MESSAGES; i++) {
			CU_ASSERT(message_comes(cast ? ph->name : 1, cast ? TAG_MULTICAST : 5,
						cast ? DATA_INTERNAL : DATA_CUSTODY, &body));
			if (megabytes() > most)
				most = megabytes();
		}
		CU_ASSERT(most - before < 330);
		CU_ASSERT(ph->flows->dropped > 0);
		free(body.data);
		node_free(ph);
	}
}

/* A question that this node has passed on is answered again and again, for no virtual node or
 * for one at a time. */
static void test_answers_for_ever(void)
{
	for (uint64_t weight = 0; weight < 2; weight++) {
		size_t before = megabytes(), most = before;
		struct writer question = { 0 }, answer = { 0 };
		make_node();
		put64(&question, 77);
		put64(&question, (uint64_t)greedy);
		put64(&question, 77);
		put64(&question, 0);
		put64(&question, SPACE);
		put32(&question, 3);
		put_var(&question, 1);
		put64(&question, 0);
		put64(&question, SPACE);
		CU_ASSERT(message_comes(ph->name, TAG_GATHER, DATA_INTERNAL, &question));
		CU_ASSERT_PTR_NOT_NULL_FATAL(ph->collectives->gathers);
		CU_ASSERT_EQUAL(ph->collectives->n_gathers, 1);
		for (int i = 0; i < MESSAGES; i++) {
			answer.len = 0;
			put64(&answer, 1);
			put64(&answer, 1 + (uint64_t)i);
			put64(&answer, weight);
			put64(&answer, weight);
			put8(&answer, 0);
			put_var(&answer, 1);
			put32(&answer, MESSAGE);
			put_much(&answer);
			CU_ASSERT(message_comes(ph->name, TAG_VALUE, DATA_INTERNAL, &answer));
			if (megabytes() > most)
				most = megabytes();
		}
		CU_ASSERT(most - before < 330);
		free(question.data);
		free(answer.data);
		node_free(ph);
	}
}

/* A node sends to itself, or multicasts to itself alone, and takes nothing: it is told to wait,
 * then gets everything, in order. */
static void test_sends_to_itself(void)
{
	for (int cast = 0; cast < 2; cast++) {
		size_t before = megabytes();
		struct vrange r = { 7, 9 };
		struct writer body = { 0 };
		uint32_t sent = 0, taken = 0, first;
		int error;

		make_node();
		CU_ASSERT_EQUAL(mapping_assume(ph, &(struct ph_vps){ .n = 1, .r = &r }), 0);
		put_much(&body);
		do {
			memcpy(body.data, &sent, sizeof sent);
			struct pbuf *b = pbuf_new(body.data, body.len);
			error = cast ? collective_multicast(ph, 7, 9, 5, body.data, body.len)
				     : flow_send_own(ph, 7, b, 5, 0, 0);
			pbuf_put(b);
			sent += !error;
			now += 10;
			node_poll(ph);
		} while (!error && sent < MESSAGES);
		CU_ASSERT_EQUAL(error, PH_EAGAIN);
		CU_ASSERT(sent > 50 && megabytes() - before <
					       ((RECV_QUEUE_BYTES + SEND_QUEUE_BYTES) >> 20) + 10);
		for (struct rmsg *m; (m = flow_receive(ph, 5)); taken++) {
			memcpy(&first, m->pub.body, sizeof first);
			CU_ASSERT_EQUAL(first, taken);
			rmsg_free(m);
			node_poll(ph);
		}
		CU_ASSERT_EQUAL(taken, sent);
		CU_ASSERT(flow_idle(ph));
		free(body.data);
		node_free(ph);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "reads nothing", test_reads_nothing },
		{ "gives to keep", test_gives_to_keep },
		{ "answers for ever", test_answers_for_ever },
		{ "sends to itself", test_sends_to_itself },
		UNIT_END
	};

	return UNIT_RUN("a greedy neighbour", tests);
}
