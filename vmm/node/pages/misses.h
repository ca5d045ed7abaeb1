/* misses.h - which requests the page store makes of the page protocol for the CPUs that wait, and
 * when: both.h applied to each page that comes and goes.  Also notes which pages were requested
 * ahead in vain.
 */
#ifndef VMM_NODE_PAGES_MISSES_H
#define VMM_NODE_PAGES_MISSES_H

#include "base/types.h"

struct misses;
struct node;

struct misses *misses_new(void); /* NULL: no memory */
void misses_free(struct misses *misses);

/* A CPU waits for the page: requests it, now or in a moment.  Returns the right that is
 * requested; PAGE_NONE: later. */
enum page_right misses_ask(struct node *node, unsigned cpu, gfn_t gfn, enum page_right right);

/* A CPU will probably need the page with this right.  Returns the right to request ahead. */
enum page_right misses_ask_ahead(struct node *node, gfn_t gfn, enum page_right right);

/* Returns a request that was delayed until now, or any if `all` is set, in *gfn: it is a request to
 * write.  Returns false if there is none; *next_ns then says when the next one is due, 0: never. */
bool misses_due(struct node *node, bool all, gfn_t *gfn, uint64_t *next_ns);

/* The page has come with the right to write. */
void misses_came(struct node *node, gfn_t gfn, const uint8_t *contents);

/* This host had the right `has`, and keeps `left`.  The contents matter only if `has` is
 * PAGE_WRITE. */
void misses_left(struct node *node, gfn_t gfn, enum page_right has, enum page_right left,
		 const uint8_t *contents);

/* Returns whether a host that requests the page to write probably waits for a word in it. */
bool misses_is_word(struct node *node, gfn_t gfn);

#endif
