/* dsm_homes.c - homes that move and nodes that join and leave, as one node sees it. tests/sim tests
 * them together. */
#include <errno.h>
#include <stdlib.h>
#include "tests/unit/dsm_bench.h"
#include "tests/unit/unit.h"

enum { HOME, SELF, OTHER, N_NODES, BLOCK = 1024, PAGES = 220 * BLOCK };

static gfn_t gfn;

/* This node is the home of `gfn`, and then another node is; the parts that it sent are in
 * bench.part. */
static void open_home(void)
{
	gfn = bench_gfn_in(PAGES, SELF, N_NODES);
	bench_open(SELF, N_NODES, PAGES);
}

static int arrive(const struct bench_part *part)
{
	return dsm_on_home_state(bench.dsm, &part->body, part->payload, part->bytes);
}

/* The other side: a node without this home receives the parts. */
static void open_taker(unsigned node, unsigned n_nodes)
{
	struct bench_part kept[BENCH_PARTS];
	unsigned parts = bench.parts;

	memcpy(kept, bench.part, sizeof(kept));
	bench_open(node, n_nodes, PAGES);
	memcpy(bench.part, kept, sizeof(kept));
	bench.parts = parts;
}

static void intervals_hold_each_page_once(void)
{
	unsigned count[DSM_INTERVALS] = { 0 }, blocks = 0;

	CU_ASSERT_EQUAL_FATAL(1u << dsm_block_bits(PAGES), BLOCK);
	for (gfn_t page = 0; page < PAGES; page++)
		count[dsm_interval(page, PAGES)]++;
	for (unsigned i = 0; i < DSM_INTERVALS; i++) { /* RAM is no power of two */
		CU_ASSERT(count[i] == BLOCK || count[i] == 0);
		blocks += count[i] / BLOCK;
	}
	CU_ASSERT_EQUAL(blocks, PAGES / BLOCK);
}

/* A home begins where most pages of its block are; where no page is, it stays. */
static void homes_begin_near_their_pages(void)
{
	const struct page_range ranges[] = {
		{ 0, BLOCK / 2 + 1, OTHER, 0 }, { BLOCK / 2 + 1, BLOCK, HOME, 0 },
		{ 3 * BLOCK, 2 * BLOCK, SELF, 1 }, /* nobody owns them yet */
	};
	const unsigned owner[] = { OTHER, HOME, N_NODES, SELF, SELF };

	bench_open(SELF, N_NODES, PAGES);
	dsm_homes_near(bench.dsm, ranges, sizeof(ranges) / sizeof(*ranges));
	for (unsigned i = 0; i < DSM_INTERVALS; i++)
		CU_ASSERT_EQUAL(dsm_homes(bench.dsm)[i].generation, 0);
	for (unsigned block = 0; block < PAGES / BLOCK; block++) {
		unsigned interval = dsm_interval(block * BLOCK, PAGES);
		bool owned = block < sizeof(owner) / sizeof(*owner) && owner[block] < N_NODES;

		CU_ASSERT_EQUAL(dsm_homes(bench.dsm)[interval].node,
				owned ? owner[block] : dsm_interval_start(interval, N_NODES));
	}
	dsm_preloaded(bench.dsm, 0, BLOCK, OTHER);
	dsm_want(bench.dsm, 0, PAGE_READ); /* two hops: the home is the owner */
	CU_ASSERT(seen("READ>home"));
	CU_ASSERT_EQUAL(dsm_node_of(bench.dsm, dsm_home(0, PAGES)), OTHER);
}

/* A transaction runs, and others wait: the new home continues where the old one was. */
static void a_home_moves_with_its_table_and_its_queue(void)
{
	open_home();
	dsm_preloaded(bench.dsm, gfn, 1, HOME);
	bench_message(OTHER, MSG_DSM_READ, gfn, 0, OTHER, 0);
	bench_message(HOME, MSG_DSM_UPGRADE, gfn, 0, HOME, 0);
	bench_message(HOME, MSG_DSM_HANDOVER, gfn, 0, HOME, OTHER);
	CU_ASSERT(seen("FORWARD_READ>0"));
	CU_ASSERT_EQUAL(dsm_home_give(bench.dsm, dsm_interval(gfn, PAGES), OTHER), 0);
	CU_ASSERT(seen("HOME>2"));
	CU_ASSERT_EQUAL(dsm_home_give(bench.dsm, dsm_interval(gfn, PAGES), OTHER), -ENOENT);
	CU_ASSERT_EQUAL(bench.dsm->homes[gfn].state, HOME_UNTOUCHED);
	bench_message(OTHER, MSG_DSM_CONFIRM, gfn, 1, OTHER, 0);
	CU_ASSERT(seen("CONFIRM>home"));
	CU_ASSERT_EQUAL(dsm_stats(bench.dsm)->home_forwarded, 1);
	CU_ASSERT_EQUAL(dsm_node_of(bench.dsm, dsm_home(gfn, PAGES)), OTHER);

	open_taker(OTHER, N_NODES);
	bench_message(HOME, MSG_DSM_WRITE, gfn, 0, HOME, 0); /* too early: goes to the old home */
	CU_ASSERT(seen("WRITE>home"));
	CU_ASSERT_EQUAL(arrive(&bench.part[0]), 1);
	CU_ASSERT_EQUAL(dsm_homes(bench.dsm)[dsm_interval(gfn, PAGES)].generation, 1);
	bench_message(SELF, MSG_DSM_CONFIRM, gfn, 1, OTHER, 0); /* forwarded by the old home */
	CU_ASSERT(seen("GRANT_UPGRADE/1>0 ACK>0")); /* the invalidation is for this node itself */
	bench_message(HOME, MSG_DSM_CONFIRM, gfn, 2, HOME, 0);
	CU_ASSERT(seen("FORWARD_WRITE>0")); /* this node adopts the page */
	CU_ASSERT_EQUAL(bench.dsm->homes[gfn].queue, 0);
}

/* A home of more than one part is served when all parts are here. */
static void a_large_interval_comes_in_parts(void)
{
	unsigned interval;

	open_home();
	interval = dsm_interval(gfn, PAGES);
	dsm_preloaded(bench.dsm, 0, PAGES, SELF);
	CU_ASSERT_EQUAL(dsm_home_give(bench.dsm, interval, OTHER), 0);
	CU_ASSERT(bench.parts > 1 && bench.parts <= BENCH_PARTS);
	open_taker(OTHER, N_NODES);
	for (unsigned i = 0; i < bench.parts; i++) {
		CU_ASSERT_NOT_EQUAL(dsm_node_of(bench.dsm, dsm_home(gfn, PAGES)), OTHER);
		CU_ASSERT_EQUAL(arrive(&bench.part[i]), i + 1 == bench.parts);
	}
	for (gfn_t page = 0; page < PAGES; page++)
		if (dsm_interval(page, PAGES) == interval &&
		    !(bench.dsm->homes[page].state == HOME_IDLE &&
		      bench.dsm->homes[page].owner == SELF))
			CU_FAIL_FATAL("a page is missing");
}

static void damaged_parts_are_refused(void)
{
	struct bench_part good, bad;
	struct home_item item;

	open_home();
	dsm_preloaded(bench.dsm, gfn, 1, HOME);
	dsm_home_give(bench.dsm, dsm_interval(gfn, PAGES), OTHER);
	open_taker(OTHER, N_NODES);
	good = bench.part[0];
	memcpy(&item, good.payload, sizeof(item));
#define WRONG(change) \
	do { \
		struct home_item kept = item; \
		bad = good; \
		change; \
		memcpy(bad.payload, &item, sizeof(item)); \
		CU_ASSERT_EQUAL(arrive(&bad), -EPROTO); \
		item = kept; \
	} while (0)
	WRONG(bad.body.interval = DSM_INTERVALS);
	WRONG(bad.body.to = HOME);
	WRONG(bad.bytes--);
	WRONG(bad.bytes++);
	WRONG(item.gfn = PAGES);
	WRONG(item.gfn += BLOCK);
	WRONG(item.state = HOME_STATE_COUNT);
	WRONG(item.owner = MAX_NODES);
	WRONG(item.requester = MAX_NODES);
	WRONG(item.waiting = 1);
	WRONG(item.waiting = 0x40000000);
	CU_ASSERT_EQUAL(arrive(&good), 1);
	CU_ASSERT_EQUAL(arrive(&good), -EPROTO); /* it is here already */
}

static void news_of_homes_count_if_they_are_newer(void)
{
	struct home_place places[DSM_INTERVALS];
	unsigned interval = dsm_interval(bench_gfn_in(PAGES, HOME, N_NODES), PAGES),
		 ours = dsm_interval(bench_gfn_in(PAGES, SELF, N_NODES), PAGES);

	bench_open(SELF, N_NODES, PAGES);
	memcpy(places, dsm_homes(bench.dsm), sizeof(places));
	places[interval] = (struct home_place){ OTHER, 2 };
	dsm_homes_learn(bench.dsm, places);
	places[interval] = (struct home_place){ 5, 1 };
	dsm_homes_learn(bench.dsm, places);
	CU_ASSERT_EQUAL(dsm_homes(bench.dsm)[interval].node, OTHER);
	places[interval] = (struct home_place){ SELF, 3 }; /* only its state makes a home */
	places[ours] = (struct home_place){ OTHER, 3 };
	dsm_homes_learn(bench.dsm, places);
	CU_ASSERT_EQUAL(dsm_homes(bench.dsm)[interval].node, OTHER);
	CU_ASSERT_EQUAL(dsm_homes(bench.dsm)[ours].node, SELF);
}

static void who_joins_knows_no_home_before_it_is_told(void)
{
	struct home_place places[DSM_INTERVALS];

	for (unsigned i = 0; i < DSM_INTERVALS; i++)
		places[i] = (struct home_place){ i % 2 ? HOME : OTHER, i % 3 };
	bench_open(SELF, 0, PAGES);
	CU_ASSERT_EQUAL(bench_message(HOME, MSG_DSM_READ, 0, 0, HOME, 0), -EPROTO);
	dsm_homes_learn(bench.dsm, places);
	CU_ASSERT_EQUAL(memcmp(places, dsm_homes(bench.dsm), sizeof(places)), 0);
	dsm_want(bench.dsm, 7, PAGE_READ);
	CU_ASSERT(seen("READ>home"));
}

/* A leaving node offers what it owns to the homes, a window at a time, and again after a while;
 * copies are dropped silently. */
static void a_leaving_node_gives_up_all_it_has(void)
{
	gfn_t copy = 2 * LEAVE_WINDOW;

	bench_open(SELF, N_NODES, 3 * LEAVE_WINDOW);
	for (gfn_t page = 0; page < bench.dsm->n_pages; page++)
		bench.dsm->place[dsm_interval(page, bench.dsm->n_pages)].node = HOME;
	dsm_preloaded(bench.dsm, 0, 2 * LEAVE_WINDOW, SELF);
	bench.dsm->pages[copy].state = NODE_COPY;
	dsm_leave(bench.dsm, true);
	CU_ASSERT_FALSE(dsm_leave_step(bench.dsm, 1000));
	CU_ASSERT_EQUAL(dsm_stats(bench.dsm)->messages_sent, LEAVE_FIRST);
	for (unsigned i = LEAVE_FIRST; i < 2 * LEAVE_WINDOW; i += LEAVE_LEAST)
		CU_ASSERT_FALSE(dsm_leave_step(bench.dsm, 1000));
	CU_ASSERT_EQUAL(dsm_stats(bench.dsm)->messages_sent, LEAVE_WINDOW);
	CU_ASSERT_EQUAL(dsm_pages_here(bench.dsm), 2 * LEAVE_WINDOW + 1);
	for (unsigned i = 0; i < LEAVE_PATIENCE; i++) /* asked again */
		CU_ASSERT_FALSE(dsm_leave_step(bench.dsm, 1000));
	CU_ASSERT_EQUAL(dsm_stats(bench.dsm)->messages_sent, 2 * LEAVE_WINDOW);
	bench.log[0] = 0;
	bench_message(HOME, MSG_DSM_ADOPT, copy, 0, OTHER, 0); /* not here */
	CU_ASSERT(seen(""));
	for (gfn_t page = 0; page < 2 * LEAVE_WINDOW; page++) {
		bench_message(HOME, MSG_DSM_FORWARD_WRITE, page, 1, OTHER, 0);
		for (unsigned i = 0; page == LEAVE_WINDOW - 1 && i < LEAVE_WINDOW; i += LEAVE_LEAST)
			CU_ASSERT_FALSE(dsm_leave_step(bench.dsm, 1000));
	}
	CU_ASSERT_TRUE(dsm_leave_step(bench.dsm, 1000));
	CU_ASSERT_EQUAL(bench.dsm->pages[copy].state, NODE_NONE);
	CU_ASSERT_EQUAL(dsm_stats(bench.dsm)->drops, 1);
}

/* Returns how many pages one step of that length begins, if those before `until` have come back. */
static unsigned begun_in_step(uint32_t elapsed_us, gfn_t *back, gfn_t until)
{
	uint64_t before;

	for (; *back < until; ++*back)
		bench_message(HOME, MSG_DSM_FORWARD_WRITE, *back, 1, OTHER, 0);
	before = dsm_stats(bench.dsm)->messages_sent;
	CU_ASSERT_FALSE(dsm_leave_step(bench.dsm, elapsed_us));
	return (unsigned)(dsm_stats(bench.dsm)->messages_sent - before);
}

static void the_pace_of_leaving_follows_what_comes_back(void)
{
	enum { PAGES_THERE = 400 };
	gfn_t back = 0, asked = 0;

	bench_open(SELF, N_NODES, PAGES_THERE);
	for (gfn_t page = 0; page < PAGES_THERE; page++)
		bench.dsm->place[dsm_interval(page, bench.dsm->n_pages)].node = HOME;
	dsm_preloaded(bench.dsm, 0, PAGES_THERE, SELF);
	dsm_leave(bench.dsm, true);
	CU_ASSERT_EQUAL(begun_in_step(1000, &back, 0), LEAVE_FIRST);
	asked = LEAVE_FIRST;
	CU_ASSERT_EQUAL(begun_in_step(1000, &back, asked), LEAVE_FIRST + 1); /* all came back */
	asked += LEAVE_FIRST + 1;
	CU_ASSERT_EQUAL(begun_in_step(1000, &back, asked - 3), LEAVE_FIRST + 1); /* most */
	asked += LEAVE_FIRST + 1;
	CU_ASSERT_EQUAL(begun_in_step(1000, &back, asked - LEAVE_FIRST), LEAVE_LEAST); /* too few */
	asked += LEAVE_LEAST;
	/* a step that is late */
	CU_ASSERT_EQUAL(begun_in_step(4000, &back, asked), 4 * (LEAVE_LEAST + 1));
	asked += 4 * (LEAVE_LEAST + 1);
	CU_ASSERT_EQUAL(begun_in_step(10, &back, asked), 1);
	CU_ASSERT_EQUAL(begun_in_step(1000000, &back, asked), LEAVE_WINDOW - 1);
}

/* A page that is in flight must arrive first. */
static void a_leaving_node_waits_for_what_it_has_asked(void)
{
	gfn = bench_gfn_of(HOME, N_NODES);
	bench_open(SELF, N_NODES, gfn + 1);
	dsm_want(bench.dsm, gfn, PAGE_WRITE);
	dsm_leave(bench.dsm, true);
	CU_ASSERT_FALSE(dsm_leave_step(bench.dsm, 1000));
	bench_message(OTHER, MSG_DSM_GRANT_WRITE, gfn, 1, SELF, 0);
	bench.log[0] = 0;
	CU_ASSERT_FALSE(dsm_leave_step(bench.dsm, 1000));
	CU_ASSERT(seen("HANDOVER/32>home"));
	bench_message(HOME, MSG_DSM_FORWARD_WRITE, gfn, 2, OTHER, 0);
	CU_ASSERT_TRUE(dsm_leave_step(bench.dsm, 1000));
}

/* Seed 1873 of the simulator: the copy was dropped, and the node was gone before it had
 * acknowledged; the writer waited for ever. */
static void a_leaving_node_answers_what_it_holds(void)
{
	gfn = bench_gfn_of(HOME, N_NODES);
	bench_open(SELF, N_NODES, gfn + 1);
	bench.dsm->pages[gfn].state = NODE_COPY;
	bench.hold_us = 100;
	bench_message(HOME, MSG_DSM_INVALIDATE, gfn, 1, OTHER, 0);
	dsm_leave(bench.dsm, true);
	CU_ASSERT_FALSE(dsm_leave_step(bench.dsm, 1000));
	CU_ASSERT(seen("take(none)"));
	CU_ASSERT_FALSE(dsm_leave_step(bench.dsm, 1000));
	bench.hold_us = 0;
	dsm_retry(bench.dsm, gfn);
	CU_ASSERT(seen("ACK>2"));
	CU_ASSERT_TRUE(dsm_leave_step(bench.dsm, 1000));
}

static void who_adopts_is_there_and_stays(void)
{
	gfn = bench_gfn_of(0, 4);
	bench_open(0, 4, gfn + 1);
	dsm_preloaded(bench.dsm, gfn, 1, 1);
	bench.dsm->homes[gfn].copyset |= 1u << 2 | 1u << 3;
	dsm_set_nodes(bench.dsm, 1u << 0 | 1u << 1 | 1u << 3);
	bench_message(1, MSG_DSM_HANDOVER, gfn, 0, 1, DSM_ANY_NODE);
	CU_ASSERT(seen("ADOPT>3")); /* it has a copy; so has 2, but that leaves */
	bench.dsm->homes[gfn].copyset = 1u << 1;
	dsm_set_nodes(bench.dsm, 1u << 1 | 1u << 3);
	bench_message(1, MSG_DSM_HANDOVER, gfn, 0, 1, DSM_ANY_NODE);
	CU_ASSERT(seen("ADOPT>3"));
	dsm_set_nodes(bench.dsm, 1u << 1);
	bench_message(1, MSG_DSM_HANDOVER, gfn, 0, 1, DSM_ANY_NODE);
	CU_ASSERT(seen("")); /* nobody */
}

static void a_node_that_is_forgotten_is_not_asked(void)
{
	gfn = bench_gfn_of(0, 4);
	bench_open(0, 4, gfn + 1);
	dsm_preloaded(bench.dsm, gfn, 1, 1);
	bench.dsm->homes[gfn].copyset |= 1u << 2 | 1u << 3;
	dsm_forget_node(bench.dsm, 2);
	bench_message(1, MSG_DSM_UPGRADE, gfn, 0, 1, 0);
	CU_ASSERT(seen("GRANT_UPGRADE/1>1 INVALIDATE>3"));
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(intervals_hold_each_page_once),
		UNIT_TEST(homes_begin_near_their_pages),
		UNIT_TEST(a_home_moves_with_its_table_and_its_queue),
		UNIT_TEST(a_large_interval_comes_in_parts),
		UNIT_TEST(damaged_parts_are_refused),
		UNIT_TEST(news_of_homes_count_if_they_are_newer),
		UNIT_TEST(who_joins_knows_no_home_before_it_is_told),
		UNIT_TEST(a_leaving_node_gives_up_all_it_has),
		UNIT_TEST(the_pace_of_leaving_follows_what_comes_back),
		UNIT_TEST(a_leaving_node_waits_for_what_it_has_asked),
		UNIT_TEST(a_leaving_node_answers_what_it_holds),
		UNIT_TEST(who_adopts_is_there_and_stays),
		UNIT_TEST(a_node_that_is_forgotten_is_not_asked),
		UNIT_END
	};
	int status;

	status = UNIT_RUN("dsm_homes", tests);
	bench_close();
	return status;
}
