/* choose.c - see choose.h. */
#include "vpg/peer/choose.h"

#include <stdlib.h>
#include <string.h>

static unsigned log2_of(uint64_t n)
{
	return n ? 63 - (unsigned)__builtin_clzll(n) : 0;
}

/* Returns how far the computer is: 0 within a millisecond; each further step is twice as far. */
static unsigned distance(const struct candidate *c)
{
	return c->rtt_us < 1000 ? 0 : 1 + log2_of(c->rtt_us / 1000);
}

/* Returns the worth in steps of a quarter or less: 1, 1.25, 1.5, 1.75, 2, and so on. */
static unsigned worth_step(const struct candidate *c)
{
	uint64_t worth = (uint64_t)c->worth << 2;
	unsigned k = log2_of(worth);

	return worth ? 4 * k + (unsigned)(worth >> (k - 2) & 3) : 0;
}

uint32_t choose_worth(uint32_t speed, uint64_t processors, uint64_t load_percent)
{
	uint64_t most = UINT32_MAX, programs = (load_percent < most ? load_percent : most) + 100;
	uint64_t share = 100 * (processors < most ? processors : most);

	return share >= programs ? speed : (uint32_t)(speed * share / programs);
}

static int by_distance(const void *one, const void *other)
{
	const struct candidate *a = one, *b = other;

	if (a->self != b->self)
		return a->self ? -1 : 1;
	if (distance(a) != distance(b))
		return distance(a) < distance(b) ? -1 : 1;
	if (worth_step(a) != worth_step(b))
		return worth_step(a) > worth_step(b) ? -1 : 1;
	if (a->rtt_us != b->rtt_us)
		return a->rtt_us < b->rtt_us ? -1 : 1;
	return strcmp(a->nick, b->nick);	/* so that the order is the same each time */
}

/* Chooses the nearest `others` that have a processor, and the computer itself. */
static void choose_nearest(struct candidate *c, size_t n, uint32_t others)
{
	for (size_t i = 0; i < n; i++) {
		c[i].gives = 0;
		c[i].chosen = c[i].self || (others && c[i].free);
		others -= c[i].chosen && !c[i].self;
	}
}

/* Takes one more processor of each chosen computer that has one left.  Returns how many. */
static uint32_t deal(struct candidate *c, size_t n, uint32_t most)
{
	uint32_t dealt = 0;

	for (size_t i = 0; i < n && dealt < most; i++)
		if (c[i].chosen && c[i].gives < c[i].free) {
			c[i].gives++;
			dealt++;
		}
	return dealt;
}

static uint32_t fill(struct candidate *c, size_t n, uint32_t most)
{
	uint32_t filled = 0;

	for (size_t i = 0; i < n && filled < most; i++) {
		uint32_t more = c[i].chosen ? c[i].free - c[i].gives : 0;

		more = more < most - filled ? more : most - filled;
		c[i].gives += more;
		filled += more;
	}
	return filled;
}

struct choice choose(struct candidate *c, size_t n, enum choose_how how, uint32_t others,
		     uint32_t processors)
{
	struct choice found = { 0, 0 };
	uint32_t dealt;

	qsort(c, n, sizeof *c, by_distance);
	choose_nearest(c, n, others);
	if (how == CHOOSE_SPREAD)
		while ((dealt = deal(c, n, processors - found.processors)))
			found.processors += dealt;
	if (how == CHOOSE_NEAR)
		found.processors = deal(c, n, processors);
	if (how != CHOOSE_SPREAD)
		found.processors += fill(c, n, processors - found.processors);
	for (size_t i = 0; i < n; i++) {
		c[i].chosen = c[i].self || c[i].gives;
		found.others += c[i].chosen && !c[i].self;
	}
	return found;
}

bool choose_suffices(const struct choice *found, enum choose_how how, uint32_t others,
		     uint32_t processors)
{
	return found->processors == processors &&
	       (found->others == others || how == CHOOSE_CONCENTRATE);
}

enum choose_how choose_by_word(const char *word)
{
	static const char *const words[] = { "near", "spread", "concentrate" };
	int how = 0;

	while (how < CHOOSE_KINDS && strcmp(word, words[how]))
		how++;
	return (enum choose_how)how;
}
