/* extract.h - takes pages of guest RAM away from all processes of this host at once, and keeps
 * their last contents: one page, or several together, which costs less than half of it for each.
 *
 * Taking a page needs no action by a VM process, and stops no CPU.  VM processes have mapped the
 * page, and may be writing to it at this moment.  So a page that may be written on this host is
 * taken as follows:
 *     lower the right; drain the pins                      - the caller (base/hostshm.h)
 *     splice() the page into a pipe         - the pipe holds the page itself, not a copy
 *     punch the page's hole in the memfd    - it leaves every mapping of every process at once:
 *                                             the last write is over
 *     read() the pipe                       - the final contents
 * This takes about 5 us, and no write can fall between copy and removal.
 */
#ifndef VMM_NODE_PAGES_EXTRACT_H
#define VMM_NODE_PAGES_EXTRACT_H

#include <stdint.h>
#include "base/types.h"

enum {
	EXTRACT_MOST = 16, /* pages at once: what a pipe holds, unless it is a smaller one */
	EXTRACT_GATHERED = 64,
};

struct extract; /* the RAM and the pipe */

/* Ends the process if it cannot make the pipe.  `ram` is the alias mapping of the memfd `fd`. */
struct extract *extract_new(int fd, uint8_t *ram);

void extract_free(struct extract *extract);

/* Removes a page that nobody may write to.  Between extract_gather() and extract_gathered() pages
 * stay until the latter, so that neighbours go together: EXTRACT_GATHERED at most, and nothing may
 * be put back in between. */
void extract_punch(struct extract *extract, gfn_t gfn);
void extract_gather(struct extract *extract);
void extract_gathered(struct extract *extract);

/* Removes `count` pages, in ascending order, and writes their contents side by side to `contents`.
 * If `written` is false, nobody may write to them; then `contents` may be NULL. */
void extract_pages(struct extract *extract, const gfn_t *gfn, unsigned count, bool written,
		   uint8_t *contents);

/* Gives `count` removed pages, in ascending order, these contents. */
void extract_put_back(struct extract *extract, const gfn_t *gfn, unsigned count,
		      const uint8_t *contents);

/* Returns how many of the pages, from the first on, follow each other.  Pure. */
unsigned extract_run(const gfn_t *gfn, unsigned count);

#endif
