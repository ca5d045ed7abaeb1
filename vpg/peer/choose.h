/* choose.h - which computers become the hosts of a machine, and how many processors of each.  Pure.
 *
 * The nearest computers come first, by round-trip time, as in P2P-MPI (section 3.2).  Computers
 * count as equally near within a millisecond, and then between 1 and 2, 2 and 4, 4 and 8
 * milliseconds, and so on.  Among equally near computers, the one comes first whose processors do
 * more work, if it is more by about a quarter: by their speed and what their load leaves.
 * Otherwise the nearest one comes first.
 *
 *   near         each chosen computer gives one processor; the nearest ones give the rest
 *   spread       each chosen computer gives one processor in turn, as long as it has any
 *   concentrate  the nearest computer gives all that it has, then the next one, until there are
 *                enough
 */
#ifndef VPG_CHOOSE_H
#define VPG_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum choose_how { CHOOSE_NEAR, CHOOSE_SPREAD, CHOOSE_CONCENTRATE, CHOOSE_KINDS };

struct candidate {
	const char *nick;
	bool self;		/* the computer that asks: host 0, with or without processors */
	uint64_t rtt_us;
	uint32_t free;		/* processors; 0: it cannot be chosen */
	uint32_t worth;		/* choose_worth() */
	/* the result */
	bool chosen;
	uint32_t gives;		/* processors */
};

struct choice { uint32_t others, processors; };	/* what was found */

/* Returns the speed that one more program gets from a processor there: the whole speed while
 * processors are idle, then a share of it. load_percent: 100 for each program that runs. */
uint32_t choose_worth(uint32_t speed, uint64_t processors, uint64_t load_percent);

/* Sorts the candidates, itself first, and chooses.  At most `others` computers besides itself are
 * chosen; concentrate may need fewer.  Returns how many were chosen, and how many processors they
 * give: at most `processors`. */
struct choice choose(struct candidate *c, size_t n, enum choose_how how, uint32_t others,
		     uint32_t processors);
/* Returns whether the choice is enough. */
bool choose_suffices(const struct choice *found, enum choose_how how, uint32_t others,
		     uint32_t processors);

/* Returns the kind of this name; CHOOSE_KINDS if there is none. */
enum choose_how choose_by_word(const char *word);

#endif
