/* node_pages.c - which pages a host keeps: for how long against requests, and how many. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "dsm/dsm.h"
#include "tests/unit/unit.h"
#include "vmm/node/pages/batch.h"
#include "vmm/node/pages/extract.h"
#include "vmm/node/pages/hoard.h"
#include "vmm/node/pages/hold.h"
#include "vmm/node/pages/room.h"
#include "vmm/node/pages/share.h"
#include "vmm/node/pages/spin.h"

/* ---- how long a page stays ---- */

enum {
	HOLD_GFN = 7, US = 1000,
	/* where no locked instruction ends holds */
	SHORT_MIN_US = 100, SHORT_MAX_US = 400, SHORT_SOON_US = 2000,
};
static const uint64_t HOLD_START = 1000000000;

/* The page goes `away_us` before it comes back. */
static void come_back(struct page_hold *hold, uint64_t *now, uint64_t away_us)
{
	hold_went(hold, HOLD_GFN, *now);
	*now += away_us * US;
	hold_arrived(hold, HOLD_GFN, hold_lengths(false), false, *now);
}

static void test_hold_between_writers(void)
{
	struct page_hold hold = { 0 };
	uint64_t now = HOLD_START;

	/* nothing is known of it */
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, true, 0, now), 0);
	hold_arrived(&hold, HOLD_GFN, hold_lengths(false), false, now);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, 0, now),
			SHORT_MIN_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, 0, now + 30 * US),
			SHORT_MIN_US - 30);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, 0,
				now + SHORT_MIN_US * US),
			0);
	come_back(&hold, &now, 500);
	CU_ASSERT_EQUAL(hold.writer_us, 2 * SHORT_MIN_US);
	/* It comes in two steps, to read and then to write: it has come back once. */
	come_back(&hold, &now, 500);
	hold_arrived(&hold, HOLD_GFN, hold_lengths(false), false, now + 50 * US);
	CU_ASSERT_EQUAL(hold.writer_us, 4 * SHORT_MIN_US);
	come_back(&hold, &now, 500);
	CU_ASSERT_EQUAL(hold.writer_us, SHORT_MAX_US);
	come_back(&hold, &now, SHORT_SOON_US + 1);
	CU_ASSERT_EQUAL(hold.writer_us, SHORT_MIN_US);
	come_back(&hold, &now, 500);
	hold_arrived(&hold, HOLD_GFN, hold_lengths(false), false, now + 50 * US);
	CU_ASSERT_EQUAL(hold.writer_us, 2 * SHORT_MIN_US);
	hold_went(&hold, HOLD_GFN + 1, now); /* another page */
	CU_ASSERT_EQUAL(hold.went_ns, 0);
	hold_arrived(&hold, HOLD_GFN + 1, hold_lengths(false), false, now);
	CU_ASSERT_EQUAL(hold.writer_us, SHORT_MIN_US);
}

static void test_hold_lengths(void)
{
	const struct hold_lengths *length = hold_lengths(false), *longer = hold_lengths(true);
	struct page_hold hold = { 0 };
	uint64_t now = HOLD_START;

	CU_ASSERT_EQUAL(length->min_us, SHORT_MIN_US);
	CU_ASSERT_EQUAL(length->max_us, SHORT_MAX_US);
	CU_ASSERT_EQUAL(length->soon_us, SHORT_SOON_US);
	CU_ASSERT(longer->max_us < DSM_HOLD_MAX_US);
	hold_arrived(&hold, HOLD_GFN, longer, false, now);
	for (uint32_t us = longer->min_us; us < 2 * longer->max_us; us *= 2) {
		CU_ASSERT_EQUAL(hold.writer_us, us);
		hold_went(&hold, HOLD_GFN, now);
		hold_arrived(&hold, HOLD_GFN, longer, false, now += longer->soon_us * US);
	}
	CU_ASSERT_EQUAL(hold.writer_us, longer->max_us);
	hold_went(&hold, HOLD_GFN, now);
	hold_arrived(&hold, HOLD_GFN, longer, false, now += (longer->soon_us + 1) * US);
	CU_ASSERT_EQUAL(hold.writer_us, longer->min_us);
}

/* A locked instruction ends the holds of the pages that were here then, of no others, and none that
 * a CPU needs to run with its page. */
static void test_hold_ends(void)
{
	struct page_hold hold = { 0 };
	const uint64_t came = HOLD_START, now = came + 60 * US;

	hold_arrived(&hold, HOLD_GFN, hold_lengths(false), false, came);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, came - 1, now),
			SHORT_MIN_US - 60);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, came, now), 0);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, now, now), 0);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, true, now, now),
			HOLD_POLL_US);
	hold_arrived(&hold, HOLD_GFN, hold_lengths(false), false, came);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, false, now,
				came + 10 * US),
			HOLD_SECTION_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, now, now),
			HOLD_POLL_US);
}

/* A page that a locked instruction needed stays for a critical section, also between two writers;
 * the same page at another time as any other. */
static void test_hold_of_lock(void)
{
	struct page_hold hold = { 0 };
	const uint64_t now = HOLD_START;

	hold_arrived(&hold, HOLD_GFN, hold_lengths(true), true, now);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, true, 0, now),
			HOLD_POLL_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, 0, now),
			HOLD_SECTION_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, 0,
				now + HOLD_SECTION_US * US),
			0);
	hold_arrived(&hold, HOLD_GFN, hold_lengths(true), false, now);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_NONE, false, 0, now),
			hold_lengths(true)->min_us);
}

/* Threads that take turns at a page: the next one spins on it, requests it when it has lost its
 * copy, and must not wait for a timer. */
static void test_hold_in_turns(void)
{
	/* measured: from the right to write here until the next host's request arrives */
	enum { NEXT_REQUEST_US = 36 };
	struct page_hold hold = { 0 };
	uint64_t now = HOLD_START;

	for (int turn = 0; turn < 5; turn++) {
		come_back(&hold, &now, 250);		       /* the copy, */
		/* the right to write to it */
		hold_arrived(&hold, HOLD_GFN, hold_lengths(false), false, now += 60 * US);
		now += NEXT_REQUEST_US * US;
		CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, false, 0, now), 0);
	}
}

/* Without MECHANISM_HOLD a page stays for one instruction of the CPU that requested it, between
 * writers too. */
static void test_hold_one(void)
{
	struct page_hold hold = { 0 };
	uint64_t now = HOLD_START;

	CU_ASSERT_EQUAL(hold_one_us(&hold, HOLD_GFN, true, now), 0); /* nothing is known of it */
	come_back(&hold, &now, 500);
	CU_ASSERT_EQUAL(hold_one_us(&hold, HOLD_GFN, true, now), HOLD_POLL_US);
	CU_ASSERT_EQUAL(hold_one_us(&hold, HOLD_GFN, true, now + HOLD_RUN_MAX_US * US),
			HOLD_INSN_US); /* the CPU does not run: it has had its time */
	come_back(&hold, &now, 500);
	CU_ASSERT_EQUAL(hold_one_us(&hold, HOLD_GFN, true, now), HOLD_POLL_US);
	now += 30 * US;
	CU_ASSERT_EQUAL(hold_one_us(&hold, HOLD_GFN, false, now), HOLD_INSN_US);
	CU_ASSERT_EQUAL(hold_one_us(&hold, HOLD_GFN, false, now + HOLD_INSN_US * US), 0);
}

enum {
	PAGES = 8000, LIMIT = 2048, COPIES_KEPT = LIMIT / 4, TOGETHER = LIMIT / SHARE_TOGETHER,
	NEW_PAGES = LIMIT / SHARE_NEW_PART, FIRST = 3000, ELSE = 6000
};

static void come(struct share *share, gfn_t first, uint32_t count)
{
	for (gfn_t gfn = first; gfn < first + count; gfn++)
		share_came(share, gfn);
}

static void come_copies(struct share *share, gfn_t first, uint32_t count)
{
	for (gfn_t gfn = first; gfn < first + count; gfn++)
		share_came_copy(share, gfn);
}

/* Drops what is to be dropped, once.  Returns the first of these copies; 0: none. */
static gfn_t drop(struct share *share, unsigned *n)
{
	gfn_t gfn[SHARE_TOGETHER];

	*n = share_excess(share, gfn);
	for (unsigned i = 0; i < *n; i++)
		share_went(share, gfn[i]);
	return *n ? gfn[0] : 0;
}

static void test_share_copies(void)
{
	struct share *share = share_new(PAGES, LIMIT);
	unsigned n;

	come(share, FIRST, LIMIT - 600);
	come_copies(share, 1, 600);
	CU_ASSERT_EQUAL(drop(share, &n), 0);
	share_came_copy(share, 601);
	CU_ASSERT_EQUAL(drop(share, &n), 1); /* fetched longest ago */
	CU_ASSERT_EQUAL(n, 1 + TOGETHER);
	CU_ASSERT_EQUAL(share_held(share), LIMIT - TOGETHER);
	CU_ASSERT_EQUAL(drop(share, &n), 0);
	share_came_copy(share, 1); /* fetched again: the newest */
	come_copies(share, 602, TOGETHER);
	share_owned(share, 2 + TOGETHER);
	share_owned(share, 2 + TOGETHER);
	CU_ASSERT_EQUAL(drop(share, &n), 3 + TOGETHER);
	/* only the newest copies stay, and are kept */
	come(share, ELSE, 1000);
	while (drop(share, &n))
		CU_ASSERT(n > 0 && n <= SHARE_TOGETHER);
	CU_ASSERT_EQUAL(share_kept(share), share_held(share));
	CU_ASSERT(share_held(share) >= LIMIT - 600 + 1 + 1000 + COPIES_KEPT);
	CU_ASSERT(share_held(share) <= LIMIT - 600 + 1 + 1000 + COPIES_KEPT + TOGETHER);
	share_free(share);
}

/* The owned page that goes first; 0: none. */
static gfn_t next_owned(const struct share *share)
{
	gfn_t gfn;

	return share_spills(share, &gfn) ? gfn : 0;
}

static void test_share_owned(void)
{
	struct share *share = share_new(PAGES, LIMIT);

	share_loaded(share, 1, 3);
	share_loaded(share, 2, 2); /* the leader makes a mistake */
	CU_ASSERT_EQUAL(share_held(share), 3);
	come(share, 4, LIMIT - 3);
	CU_ASSERT_EQUAL(next_owned(share), 0);
	share_adopts(share, FIRST);
	CU_ASSERT_TRUE(share_adopted(share, FIRST));
	share_came(share, FIRST);
	CU_ASSERT_FALSE(share_adopted(share, FIRST));
	CU_ASSERT_EQUAL(next_owned(share), FIRST); /* adopted: the first to go */
	share_offers(share, FIRST);
	CU_ASSERT_EQUAL(next_owned(share), 0);
	CU_ASSERT_EQUAL(share_offered(share), 1);
	share_stays(share, FIRST); /* refused */
	share_stays(share, FIRST);
	CU_ASSERT_FALSE(share_is_offered(share, FIRST));
	CU_ASSERT_EQUAL(next_owned(share), FIRST);
	share_went(share, FIRST);
	CU_ASSERT_EQUAL(share_offered(share), 0);
	share_adopts(share, FIRST + 2);
	share_wanted(share, FIRST + 2); /* by a CPU of this host, before it comes */
	share_came(share, FIRST + 2);
	CU_ASSERT_NOT_EQUAL(next_owned(share), FIRST + 2);
	share_adopts(share, FIRST + 3);
	share_came_copy(share, FIRST + 3);
	share_owned(share, FIRST + 3); /* adopted in two steps */
	CU_ASSERT_EQUAL(next_owned(share), FIRST + 3);
	CU_ASSERT_EQUAL(share_held_most(share), LIMIT + 2);
	share_free(share);
}

/* One page comes and another one goes: returns that one. */
static gfn_t pass(struct share *share, gfn_t gfn)
{
	gfn_t goes;

	share_came(share, gfn);
	goes = next_owned(share);
	share_offers(share, goes);
	share_went(share, goes);
	return goes;
}

/* Goes through `count` pages.  Returns how many of them were here. */
static uint32_t go_through(struct share *share, bool here[PAGES], gfn_t first, uint32_t count)
{
	uint32_t found = 0;

	for (gfn_t gfn = first; gfn < first + count; gfn++) {
		found += here[gfn];
		if (here[gfn])
			continue;
		here[gfn] = true;
		here[pass(share, gfn)] = false;
	}
	return found;
}

/* A program that goes through more memory than the share finds the settled pages each time.  One
 * that uses other memory, which fits in, finds nearly all of that the third time. */
static void test_share_settled(void)
{
	struct share *share = share_new(PAGES, LIMIT);
	static bool here[PAGES];
	enum { WORK = LIMIT - 2 * NEW_PAGES };

	memset(here, 0, sizeof here);
	memset(here, true, LIMIT);
	come(share, 1, LIMIT - 1);
	share_came(share, 0);
	for (unsigned round = 0; round < 3; round++)
		CU_ASSERT(go_through(share, here, 0, 5 * LIMIT / 2) >= LIMIT - COPIES_KEPT);
	CU_ASSERT_EQUAL(go_through(share, here, ELSE, WORK), 0);
	CU_ASSERT(go_through(share, here, ELSE, WORK) < WORK);
	CU_ASSERT(go_through(share, here, ELSE, WORK) >= WORK - NEW_PAGES);
	CU_ASSERT_EQUAL(go_through(share, here, ELSE, WORK), WORK);
	share_renew(share, ELSE);
	CU_ASSERT_EQUAL(share_held(share), LIMIT);
	share_free(share);
}

/* A host is full a little above its share, and until a run of pages has left. */
static void test_share_full(void)
{
	struct share *share = share_new(PAGES, LIMIT), *all = share_new(PAGES, PAGES),
		     *small = share_new(PAGES, 3);

	CU_ASSERT_EQUAL(share_most(LIMIT), LIMIT + LIMIT / SHARE_ABOVE);
	CU_ASSERT_EQUAL(share_most(3), 4);
	share_loaded(share, 0, LIMIT);
	CU_ASSERT_FALSE(share_full(share, LIMIT / SHARE_ABOVE - 1));
	CU_ASSERT_TRUE(share_full(share, LIMIT / SHARE_ABOVE)); /* what comes counts */
	CU_ASSERT_TRUE(share_full(share, LIMIT / SHARE_ABOVE - 1));
	CU_ASSERT_TRUE(share_full(share, LIMIT / SHARE_ABOVE - LIMIT / SHARE_RUN_PART + 1));
	CU_ASSERT_FALSE(share_full(share, LIMIT / SHARE_ABOVE - LIMIT / SHARE_RUN_PART));
	CU_ASSERT_FALSE(share_full(share, LIMIT / SHARE_ABOVE - 1));
	share_loaded(all, 0, PAGES);
	CU_ASSERT_FALSE(share_full(all, 0)); /* it has no limit */
	CU_ASSERT_EQUAL(next_owned(all), 0);
	share_loaded(small, 0, 3);
	CU_ASSERT_FALSE(share_full(small, 0));
	CU_ASSERT_TRUE(share_full(small, 1));
	CU_ASSERT_FALSE(share_full(small, 0));
	share_free(share);
	share_free(all);
	share_free(small);
}

static void test_room(void)
{
	struct room room = { 0 };
	const uint32_t least = LIMIT / ROOM_LEAST_PART;

	CU_ASSERT_EQUAL(room_of(&room, 1, LIMIT), LIMIT); /* it has said nothing: it is empty */
	CU_ASSERT_EQUAL(room_choose(&room, 0, 1, LIMIT), ROOM_NOBODY);
	room_told(&room, 1, LIMIT, LIMIT / 2, 0);
	room_told(&room, 2, LIMIT, LIMIT / 4, 10);
	room_told(&room, 3, 2 * LIMIT - 1, LIMIT, 0);
	CU_ASSERT_EQUAL(room_of(&room, 2, LIMIT), LIMIT - LIMIT / 4 - 10);
	CU_ASSERT_EQUAL(room_choose(&room, 1 << 1 | 1 << 2, ROOM_NOBODY, LIMIT), 2);
	CU_ASSERT_EQUAL(room_choose(&room, 1 << 1 | 1 << 2 | 1 << 3, ROOM_NOBODY, LIMIT), 3);
	CU_ASSERT_EQUAL(room_choose(&room, 1 << 1 | 1 << 2 | 1 << 3, 1, LIMIT), 1); /* the home */
	CU_ASSERT_EQUAL(room_choose(&room, 1 << 2 | 1 << 3, 1, LIMIT), 3);
	room_sent(&room, 3, LIMIT);
	CU_ASSERT_EQUAL(room_choose(&room, 1 << 1 | 1 << 2 | 1 << 3, 3, LIMIT), 2);
	CU_ASSERT_EQUAL(room_of(&room, 3, LIMIT), 0);
	CU_ASSERT_EQUAL(room_choose(&room, 1 << 1 | 1 << 2 | 1 << 3, ROOM_NOBODY, LIMIT), 2);
	room_told(&room, 2, LIMIT, LIMIT - least, 0); /* too little */
	CU_ASSERT_EQUAL(room_choose(&room, 1 << 2, ROOM_NOBODY, LIMIT), ROOM_NOBODY);
	room_told(&room, 2, LIMIT, LIMIT - least - 1, 0);
	CU_ASSERT_EQUAL(room_choose(&room, 1 << 2, ROOM_NOBODY, LIMIT), 2);
	room_told(&room, 2, 0, ~0u, ~0u); /* what a malicious host may say */
	CU_ASSERT_EQUAL(room_of(&room, 2, LIMIT), 0);
	room_forget(&room, 2);
	CU_ASSERT_EQUAL(room_choose(&room, 1 << 2, ROOM_NOBODY, LIMIT), 2);
	CU_ASSERT_FALSE(room_must_tell(LIMIT, 100, 100 + LIMIT / ROOM_TOLD_PART - 1, 0));
	CU_ASSERT_TRUE(room_must_tell(LIMIT, 100, 100 + LIMIT / ROOM_TOLD_PART, 0));
	CU_ASSERT_TRUE(room_must_tell(LIMIT, 100, 100 - LIMIT / ROOM_TOLD_PART, 0));
	CU_ASSERT_FALSE(room_must_tell(LIMIT, 100, 100, LIMIT / ROOM_TOLD_PART - 1));
	CU_ASSERT_TRUE(room_must_tell(LIMIT, 100, 100, LIMIT / ROOM_TOLD_PART));
	CU_ASSERT_TRUE(room_must_tell(3, 1, 2, 0));
	CU_ASSERT_FALSE(room_must_tell(3, 2, 2, 0));
}

static void test_hold_until_run(void)
{
	struct page_hold hold = { 0 };
	const uint64_t now = HOLD_START, late = now + HOLD_RUN_MAX_US * US;

	hold_arrived(&hold, HOLD_GFN, hold_lengths(false), false, now);
	/* awaited: asked again and again, but not for ever */
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, 0, now + 500 * US),
			HOLD_POLL_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, 0, late - US),
			HOLD_POLL_US);
	/* The CPU runs now: it has time for an instruction, or a critical section, from the moment
	 * at which this is noticed. */
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, 0, late),
			HOLD_INSN_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_READ, PAGE_NONE, true, 0,
				late + HOLD_INSN_US * US),
			0);
	hold_arrived(&hold, HOLD_GFN, hold_lengths(false), false, now);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, true, 0, now + 10 * US),
			HOLD_POLL_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, false, 0, now + 60 * US),
			HOLD_SECTION_US);
	CU_ASSERT_EQUAL(hold_us(&hold, HOLD_GFN, PAGE_WRITE, PAGE_READ, false, 0,
				now + (60 + HOLD_SECTION_US) * US),
			0);
}

/* ---- pages that leave together ---- */

enum { FILE_PAGES = 64 };

static void test_batch_is_request(void)
{
	enum page_right left;

	CU_ASSERT(batch_is_request(MSG_DSM_READ, &left) && left == PAGE_READ);
	CU_ASSERT(batch_is_request(MSG_DSM_FORWARD_READ, &left) && left == PAGE_READ);
	CU_ASSERT(batch_is_request(MSG_DSM_WRITE, &left) && left == PAGE_NONE);
	CU_ASSERT(batch_is_request(MSG_DSM_UPGRADE, &left) && left == PAGE_NONE);
	CU_ASSERT(batch_is_request(MSG_DSM_FORWARD_WRITE, &left) && left == PAGE_NONE);
	CU_ASSERT(batch_is_request(MSG_DSM_INVALIDATE, &left) && left == PAGE_NONE);
	CU_ASSERT(batch_is_request(MSG_DSM_HANDOVER, &left) && left == PAGE_WRITE);
	CU_ASSERT(batch_is_request(MSG_DSM_ADOPT, &left) && left == PAGE_WRITE);
	CU_ASSERT_FALSE(batch_is_request(MSG_DSM_CONFIRM, &left));
	CU_ASSERT_FALSE(batch_is_request(MSG_DSM_GRANT_READ, &left));
	CU_ASSERT_FALSE(batch_is_request(MSG_HELLO, &left));
}

static void test_batch_choose(void)
{
	const struct batch_wish wish[] = {
		{ 9, PAGE_WRITE, PAGE_READ, false },
		{ 3, PAGE_WRITE, PAGE_NONE, false },
		{ 5, PAGE_READ, PAGE_READ, false },  /* stays */
		{ 4, PAGE_WRITE, PAGE_NONE, true },  /* is held */
		{ 9, PAGE_WRITE, PAGE_NONE, false }, /* the second of its page */
		{ 7, PAGE_NONE, PAGE_NONE, false },  /* is not here */
		{ 6, PAGE_READ, PAGE_NONE, false },
	};
	struct batch_wish many[EXTRACT_MOST + 3];
	struct staged page[EXTRACT_MOST];

	CU_ASSERT_EQUAL(batch_choose(wish, 0, page), 0);
	CU_ASSERT_EQUAL_FATAL(batch_choose(wish, 7, page), 3);
	CU_ASSERT(page[0].gfn == 3 && page[0].had == PAGE_WRITE && page[0].left == PAGE_NONE);
	CU_ASSERT(page[1].gfn == 6 && page[1].had == PAGE_READ && page[1].left == PAGE_NONE);
	CU_ASSERT(page[2].gfn == 9 && page[2].had == PAGE_WRITE && page[2].left == PAGE_READ);
	for (unsigned i = 0; i < EXTRACT_MOST + 3; i++)
		many[i] = (struct batch_wish){ 100 - i, PAGE_WRITE, PAGE_READ, false };
	CU_ASSERT_EQUAL(batch_choose(many, EXTRACT_MOST + 3, page), EXTRACT_MOST);
	CU_ASSERT_EQUAL(page[0].gfn, 100 - EXTRACT_MOST + 1);
}

static void test_runs(void)
{
	const gfn_t gfn[] = { 3, 4, 5, 9, 10, 12 };

	CU_ASSERT_EQUAL(extract_run(gfn, 6), 3);
	CU_ASSERT_EQUAL(extract_run(gfn, 2), 2);
	CU_ASSERT_EQUAL(extract_run(gfn + 3, 3), 2);
	CU_ASSERT_EQUAL(extract_run(gfn + 5, 1), 1);
}

/* What a new pipe holds; 0: as the kernel makes it. */
static int pipe_bytes;

int pipe2(int ends[2], int flags)
{
	int result = (int)syscall(SYS_pipe2, ends, flags);

	if (!result && pipe_bytes)
		CU_ASSERT_EQUAL(fcntl(ends[1], F_SETPIPE_SZ, pipe_bytes), pipe_bytes);
	return result;
}

/* Pages leave a file that is mapped elsewhere too, with their contents, and come back. */
static void test_extract(void)
{
	static uint8_t contents[EXTRACT_MOST * PAGE_BYTES];
	const gfn_t gfn[] = { 2, 3, 4, 8, 9, 60 }, gathered[] = { 8, 60, 7 };
	const size_t bytes = FILE_PAGES * PAGE_BYTES;
	int fd = memfd_create("pages", MFD_CLOEXEC);
	uint8_t *ram, *other;
	struct extract *extract;

	CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	ram = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	other = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CU_ASSERT_FATAL(ram != MAP_FAILED && other != MAP_FAILED);
	extract = extract_new(fd, ram);
	for (unsigned written = 0; written < 2; written++) {
		for (unsigned i = 0; i < FILE_PAGES; i++)
			memset(other + i * PAGE_BYTES, (int)(i + 1), PAGE_BYTES);
		extract_pages(extract, gfn, 6, written, contents);
		for (unsigned i = 0; i < 6; i++) {
			CU_ASSERT_EQUAL(contents[i * PAGE_BYTES], gfn[i] + 1);
			CU_ASSERT_EQUAL(contents[(i + 1) * PAGE_BYTES - 1], gfn[i] + 1);
			CU_ASSERT_EQUAL(other[gfn[i] * PAGE_BYTES], 0);
		}
		CU_ASSERT_EQUAL(other[5 * PAGE_BYTES], 6);
		extract_put_back(extract, gfn, 6, contents);
		for (unsigned i = 0; i < FILE_PAGES; i++)
			CU_ASSERT_EQUAL(other[(i + 1) * PAGE_BYTES - 1], i + 1);
	}
	extract_gather(extract);
	for (unsigned i = 0; i < 3; i++)
		extract_punch(extract, gathered[i]);
	CU_ASSERT_EQUAL(other[7 * PAGE_BYTES], 8);
	extract_gathered(extract);
	extract_gathered(extract);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(other[gathered[i] * PAGE_BYTES], 0);
	extract_punch(extract, 1);
	CU_ASSERT_EQUAL(other[1 * PAGE_BYTES], 0);
	extract_pages(extract, gfn, 1, false, NULL);
	CU_ASSERT_EQUAL(other[2 * PAGE_BYTES], 0);
	munmap(ram, bytes);
	munmap(other, bytes);
	close(fd);
	extract_free(extract);
}

/* The user's pipes have all that they may have together: a new one is small. */
static void test_extract_by_a_small_pipe(void)
{
	pipe_bytes = 2 * PAGE_BYTES;
	test_extract();
	pipe_bytes = PAGE_BYTES;
	test_extract();
	pipe_bytes = 0;
}

static void test_spin(void)
{
	static const struct {
		const char *text;
		struct spin_view before, now;
		bool waits;
	} rows[] = {
		{ "not interrupted since", { 1, 100, 7, true }, { 1, 100, 7, true }, false },
		{ "at PAUSE, and counts", { 1, 100, 7, false }, { 2, 4000, 8, true }, true },
		{ "at PAUSE before", { 1, 100, 7, true }, { 2, 100, 8, false }, false },
		{ "no register changes", { 1, 100, 7, false }, { 2, 100, 7, false }, true },
		{ "elsewhere in the loop", { 1, 100, 7, false }, { 2, 110, 7, false }, true },
		{ "before, in the loop", { 1, 110, 7, false }, { 3, 100, 7, false }, true },
		{ "far away", { 1, 100, 7, false }, { 2, 200, 7, false }, false },
		{ "far before", { 1, 200, 7, false }, { 2, 100, 7, false }, false },
		{ "a register changes", { 1, 100, 7, false }, { 2, 100, 8, false }, false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (spin_sees(&rows[i].before, &rows[i].now) != rows[i].waits)
			CU_FAIL_FATAL(rows[i].text);
}

static void test_hoards(void)
{
	enum { SHARE = 1 << 17, MOST = SHARE + SHARE / SHARE_ABOVE };

	CU_ASSERT_FALSE(hoard_is_seen(0, SHARE) || hoard_is_seen(MOST, SHARE));
	CU_ASSERT_FALSE(hoard_is_seen(MOST + SHARE / HOARD_PART + HOARD_PAGES, SHARE));
	CU_ASSERT_TRUE(hoard_is_seen(MOST + SHARE / HOARD_PART + HOARD_PAGES + 1, SHARE));
	CU_ASSERT_FALSE(hoard_is_seen(1 << 24, 1 << 24));
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "a page between writers", test_hold_between_writers },
		{ "how long a page stays at most", test_hold_lengths },
		{ "a locked instruction ends holds", test_hold_ends },
		{ "a page with a lock stays for a critical section", test_hold_of_lock },
		{ "a page that is taken in turns does not wait", test_hold_in_turns },
		{ "without holds, one instruction", test_hold_one },
		{ "a CPU that waits in a loop", test_spin },
		{ "copies that a host drops to keep to its share", test_share_copies },
		{ "owned pages that leave, in order", test_share_owned },
		{ "pages that settle, and pages that pass through", test_share_settled },
		{ "a host that is full", test_share_full },
		{ "which host has room", test_room },
		{ "a page stays until it is used", test_hold_until_run },
		{ "which messages may be served together", test_batch_is_request },
		{ "which pages are staged", test_batch_choose },
		{ "pages that follow each other", test_runs },
		{ "pages leave all processes, and come back", test_extract },
		{ "and by a small pipe", test_extract_by_a_small_pipe },
		UNIT_TEST(test_hoards),
		UNIT_END
	};

	return UNIT_RUN("pages that a host keeps", tests);
}
