/* both.c - see both.h. */
#include "vmm/node/pages/both.h"

enum { NS_PER_US = 1000 };

static bool is_of(const struct both *both, gfn_t gfn)
{
	return both->gfn_plus_1 == gfn + 1;
}

bool both_is_on(const struct both *both, gfn_t gfn)
{
	return is_of(both, gfn) && both->pairs >= both->needs;
}

bool both_expects(const struct both *both, gfn_t gfn)
{
	return is_of(both, gfn) && both->at_once;
}

bool both_compares(const struct both *both, gfn_t gfn)
{
	return both_expects(both, gfn) || both_is_on(both, gfn);
}

/* The page is requested. */
static void begin(struct both *both, gfn_t gfn)
{
	if (!is_of(both, gfn))
		*both = (struct both){ .gfn_plus_1 = gfn + 1, .needs = BOTH_PAIRS,
				       .away_us = BOTH_AWAY_US };
	both->at_once = false;
	both->sent_ns = 0;
}

enum page_right both_missed(struct both *both, gfn_t gfn, enum page_right right)
{
	begin(both, gfn);
	if (right == PAGE_WRITE) {
		if (both->has_read && both->pairs < both->needs)
			both->pairs++;
		both->has_read = false;
		return right;
	}
	if (both_is_on(both, gfn)) {
		both->at_once = true;
		return PAGE_WRITE;
	}
	both->has_read = true;
	return right;
}

/* No CPU waits for a word in it, so that nothing is learned of when it should be requested. */
enum page_right both_ahead(struct both *both, gfn_t gfn, enum page_right right)
{
	if (right == PAGE_WRITE)
		return right;
	begin(both, gfn);
	both->left_sum = 0;
	both->at_once = both_is_on(both, gfn);
	both->has_read = !both->at_once;
	return both->at_once ? PAGE_WRITE : PAGE_READ;
}

/* (TRICKS: early-requests-lose) */
uint64_t both_leaves_ns(const struct both *both, uint64_t now_ns)
{
	uint64_t at_ns = both->left_ns + both->away_us * (uint64_t)NS_PER_US;

	return both->at_once && both->left_ns && at_ns > now_ns ? at_ns : now_ns;
}

void both_sent(struct both *both, uint64_t now_ns)
{
	both->sent_ns = now_ns;
}

static void turn_off(struct both *both)
{
	both->pairs = 0;
	both->away_us = BOTH_AWAY_US;
	if (both->needs < BOTH_MOST_PAIRS)
		both->needs *= 4;
	if (both->needs > BOTH_MOST_PAIRS)
		both->needs = BOTH_MOST_PAIRS;
}

/* Returns whether the request that is answered now was held.  The time that others take is the
 * least one lately. */
static bool was_held(struct both *both, uint64_t now_ns)
{
	uint32_t took_us = (uint32_t)((now_ns - both->sent_ns) / NS_PER_US);

	if (!both->sent_ns)
		return false;
	both->sent_ns = 0;
	if (!both->fast_us || took_us <= both->fast_us)
		both->fast_us = took_us;
	else
		both->fast_us++;
	return took_us > both->fast_us + BOTH_HELD_US;
}

void both_came(struct both *both, uint32_t sum, uint64_t now_ns)
{
	bool held = was_held(both, now_ns);

	both->came_sum = sum;
	if (!both->left_sum)
		return;
	if (held || sum == both->left_sum)
		both->away_us += BOTH_EARLY_US;
	else if (both->away_us > BOTH_AWAY_MIN_US)
		both->away_us--;
	if (both->away_us > BOTH_AWAY_MAX_US)
		turn_off(both);
}

void both_left(struct both *both, gfn_t gfn, enum page_right left, uint32_t sum, uint64_t now_ns)
{
	if (!is_of(both, gfn))
		return;
	if (both->at_once && sum && sum == both->came_sum) {
		both->pairs -= both->pairs > 0;
	} else if (both->at_once && both_is_on(both, gfn)) {
		both->pairs += both->pairs < both->needs + BOTH_SPARE_PAIRS;
	} else if (both->has_read && left == PAGE_NONE) {
		both->pairs -= both->pairs > 0;
	}
	both->at_once = false;
	if (left != PAGE_NONE)
		return;
	both->has_read = false;
	both->left_ns = now_ns;
	both->left_sum = sum;
}
