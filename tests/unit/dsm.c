/* dsm.c - the page protocol of one node beyond single cells: order, holding, queues, refused
 * messages; fault points. */
#include <errno.h>
#include <stdlib.h>
#include "base/faultpoint.h"
#include "tests/unit/dsm_bench.h"
#include "tests/unit/unit.h"

enum { HOME, SELF, OTHER, N_NODES };

static gfn_t gfn;

static void open_remote_home(void)
{
	gfn = bench_gfn_of(HOME, N_NODES);
	bench_open(SELF, N_NODES, gfn + 1);
}

static void open_home(unsigned n_nodes)
{
	gfn = bench_gfn_of(0, n_nodes);
	bench_open(0, n_nodes, gfn + 1);
}

static void homes_are_spread_one_to_one(void)
{
	static const uint32_t sizes[] = { 1, 255, 256, 257, 0x10000, 0x37000, 1 << 20,
					  MAX_RAM_PAGES };
	static uint8_t used[VNODE_HOME_COUNT];

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		memset(used, 0, sizeof(used));
		for (gfn_t page = 0; page < sizes[i]; page++) {
			vnode_t home = dsm_home(page, sizes[i]);

			CU_ASSERT_FATAL(home >= VNODE_HOME_BASE &&
					home < VNODE_HOME_BASE + VNODE_HOME_COUNT);
			CU_ASSERT_FATAL((home - VNODE_HOME_BASE) / DSM_INTERVAL_VNODES ==
					dsm_interval(page, sizes[i]));
			CU_ASSERT_FALSE_FATAL(used[home - VNODE_HOME_BASE]);
			used[home - VNODE_HOME_BASE] = 1;
		}
	}
	CU_ASSERT_EQUAL(dsm_interval_start(DSM_INTERVALS - 1, 32), 31);
	CU_ASSERT_EQUAL(dsm_interval_start(0, 32), 0);
	bench_open(SELF, 7, 10);
	CU_ASSERT_EQUAL(dsm_node_of(bench.dsm, VNODE_HOME_BASE + VNODE_HOME_COUNT - 1), 6);
	CU_ASSERT_EQUAL(dsm_node_of(bench.dsm, VNODE_DAEMON(5)), 5);
}

/* A block has one home, and any 70 neighbouring blocks over 7 nodes have about 10 each. */
static void neighbours_have_one_home(void)
{
	enum { RAM = 0x10000, BLOCK = RAM / DSM_INTERVALS };
	unsigned count[7] = { 0 };

	CU_ASSERT_EQUAL(1u << dsm_block_bits(RAM), BLOCK);
	CU_ASSERT_EQUAL(1u << dsm_block_bits(RAM + 1), 2 * BLOCK);
	for (gfn_t page = 40 * BLOCK; page < 110 * BLOCK; page++) {
		CU_ASSERT_EQUAL(dsm_interval(page, RAM),
				dsm_interval(page / BLOCK * BLOCK, RAM));
		count[dsm_interval_start(dsm_interval(page, RAM), 7)]++;
	}
	for (unsigned i = 0; i < 7; i++)
		CU_ASSERT(count[i] >= 9 * BLOCK && count[i] <= 11 * BLOCK);
}

static void what_is_wanted_ahead_is_asked_for_once(void)
{
	const struct dsm_stats *stats;

	bench_open(SELF, N_NODES, 100);
	stats = dsm_stats(bench.dsm);
	dsm_preloaded(bench.dsm, 54, 1, SELF);
	dsm_want(bench.dsm, 51, PAGE_READ);
	for (gfn_t page = 51; page < 56; page++) /* 51 is on its way, 54 here */
		dsm_want_ahead(bench.dsm, page, PAGE_READ);
	CU_ASSERT_EQUAL(stats->wants_ahead, 3);
	CU_ASSERT_EQUAL(stats->requests, 1 + 3);
	dsm_want(bench.dsm, 52, PAGE_READ); /* on its way */
	dsm_want_ahead(bench.dsm, 52, PAGE_WRITE);
	dsm_want_ahead(bench.dsm, 54, PAGE_WRITE);
	CU_ASSERT_EQUAL(stats->wants_ahead, 3);
	dsm_want_ahead(bench.dsm, 60, PAGE_WRITE);
	CU_ASSERT_EQUAL(stats->wants_ahead, 4);
	CU_ASSERT_EQUAL(stats->requests, 1 + 3 + 1);
}

static void acks_may_come_first(void)
{
	open_remote_home();
	dsm_want(bench.dsm, gfn, PAGE_WRITE);
	bench_message(OTHER, MSG_DSM_ACK, gfn, 4, SELF, 0);
	CU_ASSERT(seen("WRITE>home"));
	bench_message(HOME, MSG_DSM_GRANT_WRITE, gfn, 4, SELF, 1);
	CU_ASSERT(seen("fill(write,page) CONFIRM>home ready(write)"));
	CU_ASSERT(dsm_is_owner(bench.dsm, gfn));
}

static void a_write_wanted_while_reading_follows(void)
{
	open_remote_home();
	dsm_want(bench.dsm, gfn, PAGE_READ);
	dsm_want(bench.dsm, gfn, PAGE_WRITE);
	dsm_want(bench.dsm, gfn, PAGE_READ);
	CU_ASSERT(seen("READ>home"));
	bench_message(HOME, MSG_DSM_GRANT_READ, gfn, 1, SELF, 0);
	CU_ASSERT(seen("fill(read,page) CONFIRM>home ready(read) UPGRADE>home"));
	bench_message(HOME, MSG_DSM_GRANT_UPGRADE, gfn, 2, SELF, 0);
	CU_ASSERT(seen("raise CONFIRM>home ready(write)"));
	CU_ASSERT_EQUAL(bench.dsm->pages[gfn].wanted, PAGE_NONE);
}

/* Settled: nothing is outstanding, whatever this node has requested. */
static void settled_when_all_has_come(void)
{
	open_remote_home();
	CU_ASSERT_TRUE(dsm_settled(bench.dsm));
	dsm_want(bench.dsm, gfn, PAGE_READ);
	CU_ASSERT_FALSE(dsm_settled(bench.dsm));
	bench_message(HOME, MSG_DSM_GRANT_READ, gfn, 1, SELF, 0);
	CU_ASSERT_TRUE(dsm_settled(bench.dsm));
	dsm_want(bench.dsm, gfn, PAGE_WRITE);
	CU_ASSERT_FALSE(dsm_settled(bench.dsm));
	bench_message(HOME, MSG_DSM_GRANT_UPGRADE, gfn, 2, SELF, 1);
	CU_ASSERT_FALSE(dsm_settled(bench.dsm)); /* an acknowledgement is still to come */
	bench_message(OTHER, MSG_DSM_ACK, gfn, 2, SELF, 0);
	CU_ASSERT_TRUE(dsm_settled(bench.dsm));
}

static void an_upgrade_that_lost_becomes_a_full_miss(void)
{
	open_home(4);
	dsm_preloaded(bench.dsm, gfn, 1, 1);
	bench_message(2, MSG_DSM_READ, gfn, 0, 2, 0);
	bench_message(2, MSG_DSM_CONFIRM, gfn, 1, 2, 0);
	CU_ASSERT(seen("FORWARD_READ>1"));
	bench_message(1, MSG_DSM_UPGRADE, gfn, 0, 1, 0);
	bench_message(2, MSG_DSM_UPGRADE, gfn, 0, 2, 0); /* both have copies: 1 came first */
	CU_ASSERT(seen("GRANT_UPGRADE/1>1 INVALIDATE>2"));
	bench_message(1, MSG_DSM_CONFIRM, gfn, 2, 1, 0);
	CU_ASSERT(seen("FORWARD_WRITE>1"));
}

static void on_unconfirmed(void *ctx, gfn_t gfn, unsigned requester)
{
	(void)ctx, (void)gfn;
	bench_log("unconfirmed(%u)", requester);
}

static void the_queue_is_first_in_first_out(void)
{
	open_home(8);
	bench.dsm->host.unconfirmed = on_unconfirmed;
	bench_message(1, MSG_DSM_WRITE, gfn, 0, 1, 0);
	bench_message(5, MSG_DSM_READ, gfn, 0, 5, 0);
	bench_message(3, MSG_DSM_WRITE, gfn, 0, 3, 0);
	/* stale when its turn comes: node 3 is the owner then */
	bench_message(1, MSG_DSM_HANDOVER, gfn, 0, 1, 7);
	bench_message(4, MSG_DSM_READ, gfn, 0, 4, 0);
	CU_ASSERT(seen("GRANT_ZERO>1"));
	bench_message(1, MSG_DSM_CONFIRM, gfn, 1, 1, 0);
	CU_ASSERT(seen("FORWARD_READ>1"));
	bench_message(6, MSG_DSM_HANDOVER, gfn, 0, 6, 7); /* what waits for a copy alone tells */
	CU_ASSERT(seen("unconfirmed(5)"));
	bench_message(5, MSG_DSM_CONFIRM, gfn, 2, 5, 0);
	CU_ASSERT(seen("FORWARD_WRITE/1>1 INVALIDATE>5"));
	bench_message(3, MSG_DSM_CONFIRM, gfn, 3, 3, 0);
	CU_ASSERT(seen("FORWARD_READ>3"));
	CU_ASSERT_EQUAL(dsm_copies(bench.dsm, gfn), 0); /* the home is busy with it */
	bench_message(4, MSG_DSM_CONFIRM, gfn, 4, 4, 0);
	CU_ASSERT_EQUAL(bench.dsm->homes[gfn].state, HOME_IDLE);
	CU_ASSERT_EQUAL(bench.dsm->homes[gfn].copyset, 1u << 3 | 1u << 4);
	CU_ASSERT_EQUAL(dsm_copies(bench.dsm, gfn), 1u << 3 | 1u << 4);
}

static void many_pages_queue_at_once(void)
{
	enum { PAGES = 400 };
	unsigned here = 0;

	bench_open(0, 3, PAGES);
	for (gfn_t page = 0; page < PAGES; page++) {
		if (!home_is_here(bench.dsm, page))
			continue;
		here++;
		bench_message(1, MSG_DSM_WRITE, page, 0, 1, 0);
		bench_message(2, MSG_DSM_WRITE, page, 0, 2, 0);
		bench.log[0] = 0;
	}
	CU_ASSERT_EQUAL(dsm_stats(bench.dsm)->home_queued, here);
	for (gfn_t page = 0; page < PAGES; page++) {
		if (!home_is_here(bench.dsm, page))
			continue;
		bench_message(1, MSG_DSM_CONFIRM, page, 1, 1, 0);
		CU_ASSERT(seen("FORWARD_WRITE>1"));
	}
	CU_ASSERT_EQUAL(dsm_stats(bench.dsm)->home_transactions, 2 * here);
}

/* One node alone: everything is delivered within, and nothing is sent. */
static void within_one_node(void)
{
	bench_open(0, 1, 1000);
	for (gfn_t page = 0; page < 1000; page++)
		dsm_want(bench.dsm, page, PAGE_READ);
	CU_ASSERT_EQUAL(dsm_right(bench.dsm, 999), PAGE_WRITE);
	CU_ASSERT_EQUAL(dsm_stats(bench.dsm)->messages_sent, 0);
	CU_ASSERT_EQUAL(dsm_stats(bench.dsm)->messages_local, 3000);
	CU_ASSERT(!strncmp(bench.log, "fill(write) ready(write) fill(write)", 35));
}

static void preloaded_pages_need_no_message(void)
{
	bench_open(SELF, N_NODES, 100);
	dsm_preloaded(bench.dsm, 10, 20, SELF);
	dsm_want(bench.dsm, 10, PAGE_WRITE);
	CU_ASSERT(seen("ready(write)"));
	CU_ASSERT_EQUAL(dsm_right(bench.dsm, 9), PAGE_NONE);
	CU_ASSERT_EQUAL(dsm_right(bench.dsm, 29), PAGE_WRITE);
	CU_ASSERT_EQUAL(dsm_right(bench.dsm, 30), PAGE_NONE);
}

static void a_page_is_held_and_then_goes(void)
{
	open_remote_home();
	dsm_preloaded(bench.dsm, gfn, 1, SELF);
	bench.hold_us = 150;
	bench_message(HOME, MSG_DSM_FORWARD_WRITE, gfn, 7, OTHER, 1);
	CU_ASSERT(seen(""));
	CU_ASSERT_EQUAL(bench.retries, 1);
	dsm_retry(bench.dsm, gfn);
	CU_ASSERT_EQUAL(bench.retries, 2);
	bench.hold_us = 0;
	dsm_retry(bench.dsm, gfn);
	CU_ASSERT(seen("take(none,page) GRANT_WRITE/1>2+page"));
	dsm_retry(bench.dsm, gfn);
	CU_ASSERT(seen(""));
}

static void holding_ends(void)
{
	unsigned asked;

	open_remote_home();
	dsm_preloaded(bench.dsm, gfn, 1, SELF);
	bench.hold_us = 1000;
	bench_message(HOME, MSG_DSM_FORWARD_READ, gfn, 7, OTHER, 0);
	for (asked = 0; asked < 1000 && !bench.log[0]; asked++)
		dsm_retry(bench.dsm, gfn);
	CU_ASSERT_EQUAL(asked, DSM_HOLD_MAX_US / 1000);
	CU_ASSERT(seen("take(read,page) GRANT_READ>2+page"));
	CU_ASSERT_EQUAL(dsm_stats(bench.dsm)->holds_expired, 1);
	/* a reader takes nothing from a page that may only be read */
	bench_message(HOME, MSG_DSM_FORWARD_READ, gfn, 8, HOME, 0);
	CU_ASSERT(seen("take(read,page) GRANT_READ>0+page"));
}

static void a_want_while_held_is_asked(void)
{
	open_remote_home();
	dsm_preloaded(bench.dsm, gfn, 1, SELF);
	bench_message(HOME, MSG_DSM_FORWARD_READ, gfn, 1, OTHER, 0);
	bench.log[0] = 0;
	bench.hold_us = 100;
	bench_message(HOME, MSG_DSM_INVALIDATE, gfn, 2, OTHER, 0);
	dsm_want(bench.dsm, gfn, PAGE_WRITE);
	CU_ASSERT(seen("UPGRADE>home"));
	bench.hold_us = 0;
	dsm_retry(bench.dsm, gfn);
	CU_ASSERT(seen("take(none) ACK>2"));
	CU_ASSERT_EQUAL(bench.dsm->pages[gfn].state, NODE_WRITING);
}

static void adopting_is_wanting(void)
{
	open_remote_home();
	bench_message(HOME, MSG_DSM_ADOPT, gfn, 3, OTHER, 0);
	CU_ASSERT(seen("WRITE>home"));
	open_remote_home();
	bench.refuses = true;
	bench_message(HOME, MSG_DSM_ADOPT, gfn, 3, OTHER, 1); /* for this node alone */
	CU_ASSERT(seen("refuse(2)"));
	CU_ASSERT_EQUAL(bench.dsm->pages[gfn].state, NODE_NONE);
	CU_ASSERT_EQUAL(dsm_coming(bench.dsm), 0);
	bench_message(HOME, MSG_DSM_ADOPT, gfn, 3, OTHER, 0); /* its owner leaves */
	CU_ASSERT(seen("refuse(2,must) WRITE>home"));
	CU_ASSERT_EQUAL(dsm_coming(bench.dsm), 1);
	CU_ASSERT_FALSE(dsm_is_elsewhere(bench.dsm, gfn));
	open_home(4);
	dsm_preloaded(bench.dsm, gfn, 1, 1);
	/* no other node has the page: this node takes it */
	bench_message(1, MSG_DSM_HANDOVER, gfn, 0, 1, DSM_ANY_NODE);
	CU_ASSERT(seen("FORWARD_WRITE>1"));
}

static void bad_messages_are_refused(void)
{
	struct msg_dsm body = { 0 };
	struct msg_header header = { .type = MSG_DSM_READ,
				     .bytes = sizeof(body),
				     .from_node = OTHER };

	open_remote_home();
	body.gfn = gfn;
	header.bytes++;
	CU_ASSERT_EQUAL(dsm_on_message(bench.dsm, &header, &body, NULL), -EPROTO);
	header.bytes--;
	CU_ASSERT_EQUAL(bench_message(HOME, MSG_DSM_INVALIDATE, gfn + 1, 1, OTHER, 0), -EPROTO);
	CU_ASSERT_EQUAL(bench_message(HOME, MSG_DSM_INVALIDATE, gfn, 1, MAX_NODES, 0), -EPROTO);
	CU_ASSERT_EQUAL(bench_message(HOME, MSG_DSM_FORWARD_WRITE, gfn, 1, OTHER, MAX_NODES),
			-EPROTO);
	CU_ASSERT_EQUAL(bench_message(MAX_NODES, MSG_DSM_INVALIDATE, gfn, 1, OTHER, 0), -EPROTO);
	CU_ASSERT_EQUAL(bench_message(HOME, MSG_PING, gfn, 1, OTHER, 0), -EPROTO);
	header.type = MSG_DSM_GRANT_READ; /* without its page */
	CU_ASSERT_EQUAL(dsm_on_message(bench.dsm, &header, &body, NULL), -EPROTO);
	CU_ASSERT(seen(""));
}

static unsigned told_wrong;

static void note_wrong(void *ctx, const char *text)
{
	(void)ctx;
	told_wrong += text[0] != 0;
}

/* Each message is well-formed, and no correct node sends it: the host is told once, and nothing is
 * served from then on. */
static void a_peer_that_breaks_the_protocol_ends_it(void)
{
	static const struct {
		uint16_t type;
		unsigned requester;
		uint32_t acks;
		enum page_right had;
	} wrong[] = {
		{ MSG_DSM_GRANT_READ, SELF, 0, PAGE_NONE },
		{ MSG_DSM_GRANT_ZERO, SELF, 0, PAGE_WRITE },
		{ MSG_DSM_GRANT_WRITE, OTHER, 0, PAGE_NONE },
		{ MSG_DSM_GRANT_UPGRADE, SELF, 1, PAGE_NONE },
		{ MSG_DSM_ACK, SELF, 0, PAGE_WRITE },
		{ MSG_DSM_ACK, OTHER, 0, PAGE_NONE },
		{ MSG_DSM_FORWARD_READ, OTHER, 0, PAGE_NONE },
		{ MSG_DSM_FORWARD_WRITE, SELF, 0, PAGE_WRITE },
		{ MSG_DSM_INVALIDATE, OTHER, 0, PAGE_WRITE },
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		open_remote_home();
		bench.dsm->host.wrong = note_wrong;
		told_wrong = 0;
		if (wrong[i].had)
			dsm_preloaded(bench.dsm, gfn, 1, SELF);
		bench_message(HOME, wrong[i].type, gfn, 1, wrong[i].requester, wrong[i].acks);
		CU_ASSERT_EQUAL(told_wrong, 1);
		bench.log[0] = 0;
		bench_message(HOME, MSG_DSM_INVALIDATE, gfn, 2, OTHER, 0);
		dsm_want(bench.dsm, gfn, PAGE_WRITE);
		CU_ASSERT(seen(""));
		CU_ASSERT_EQUAL(told_wrong, 1);
	}
}

static void acknowledgements_do_not_run_over(void)
{
	open_remote_home();
	bench.dsm->host.wrong = note_wrong;
	told_wrong = 0;
	dsm_want(bench.dsm, gfn, PAGE_WRITE);
	for (unsigned i = 0; i < 2 * MAX_NODES; i++)
		bench_message(OTHER, MSG_DSM_ACK, gfn, 4, SELF, 0);
	CU_ASSERT_EQUAL(told_wrong, 1);
}

static void resuming_before_acks_when_asked_to(void)
{
	fault_set(FAULT_RESUME_BEFORE_ACKS, 1);
	open_remote_home();
	dsm_want(bench.dsm, gfn, PAGE_WRITE);
	bench_message(HOME, MSG_DSM_GRANT_WRITE, gfn, 4, SELF, 1);
	CU_ASSERT(seen("WRITE>home fill(read,page) ready(read) raise ready(write)"));
	bench_message(OTHER, MSG_DSM_ACK, gfn, 4, SELF, 0);
	CU_ASSERT(seen("raise CONFIRM>home ready(write)"));
	fault_set(FAULT_RESUME_BEFORE_ACKS, 0);
}

static void delaying_invalidations_when_asked_to(void)
{
	fault_set(FAULT_DELAY_INVALIDATIONS, 1);
	open_remote_home();
	dsm_want(bench.dsm, gfn, PAGE_READ);
	bench_message(HOME, MSG_DSM_GRANT_READ, gfn, 4, SELF, 0);
	bench.log[0] = 0;
	bench_message(HOME, MSG_DSM_INVALIDATE, gfn, 5, OTHER, 0);
	CU_ASSERT(seen("ACK>2"));
	dsm_want(bench.dsm, gfn, PAGE_READ);
	CU_ASSERT(seen("ready(read)"));
	dsm_retry(bench.dsm, gfn);
	CU_ASSERT(seen("take(none)"));
	CU_ASSERT_EQUAL(dsm_right(bench.dsm, gfn), PAGE_NONE);
	fault_set(FAULT_DELAY_INVALIDATIONS, 0);
}

static void fault_lists_are_read_whole_or_not_at_all(void)
{
	CU_ASSERT_EQUAL(fault_parse("resume-before-acks,delay-invalidations:300"), 0);
	CU_ASSERT_EQUAL(fault_on(FAULT_RESUME_BEFORE_ACKS), 1);
	CU_ASSERT_EQUAL(fault_on(FAULT_DELAY_INVALIDATIONS), 300);
	fault_set(FAULT_RESUME_BEFORE_ACKS, 0);
	fault_set(FAULT_DELAY_INVALIDATIONS, 0);
	CU_ASSERT_EQUAL(fault_parse("resume-before-acks,nonsense"), -EINVAL);
	CU_ASSERT_EQUAL(fault_parse("resume-before-acks:"), -EINVAL);
	CU_ASSERT_EQUAL(fault_parse("resume-before-acks:0"), -EINVAL);
	CU_ASSERT_EQUAL(fault_parse("resume-before-acks:9x"), -EINVAL);
	CU_ASSERT_EQUAL(fault_parse("resume-before-acks:99999999999"), -EINVAL);
	CU_ASSERT_EQUAL(fault_parse(""), 0);
	CU_ASSERT_EQUAL(fault_on(FAULT_RESUME_BEFORE_ACKS), 0);
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(homes_are_spread_one_to_one),
		UNIT_TEST(neighbours_have_one_home),
		UNIT_TEST(what_is_wanted_ahead_is_asked_for_once),
		UNIT_TEST(acks_may_come_first),
		UNIT_TEST(a_write_wanted_while_reading_follows),
		UNIT_TEST(settled_when_all_has_come),
		UNIT_TEST(an_upgrade_that_lost_becomes_a_full_miss),
		UNIT_TEST(the_queue_is_first_in_first_out),
		UNIT_TEST(many_pages_queue_at_once),
		UNIT_TEST(within_one_node),
		UNIT_TEST(preloaded_pages_need_no_message),
		UNIT_TEST(a_page_is_held_and_then_goes),
		UNIT_TEST(holding_ends),
		UNIT_TEST(a_want_while_held_is_asked),
		UNIT_TEST(adopting_is_wanting),
		UNIT_TEST(bad_messages_are_refused),
		UNIT_TEST(a_peer_that_breaks_the_protocol_ends_it),
		UNIT_TEST(acknowledgements_do_not_run_over),
		UNIT_TEST(resuming_before_acks_when_asked_to),
		UNIT_TEST(delaying_invalidations_when_asked_to),
		UNIT_TEST(fault_lists_are_read_whole_or_not_at_all),
		UNIT_END
	};
	int status;

	status = UNIT_RUN("dsm", tests);
	bench_close();
	return status;
}
