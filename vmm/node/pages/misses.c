/* misses.c - see misses.h. */
#include "vmm/node/pages/misses.h"

#include <stdlib.h>
#include <string.h>
#include "base/mechanisms.h"
#include "dsm/dsm.h"
#include "vmm/node/node.h"
#include "vmm/node/pages/both.h"
#include "vmm/node/pages/share.h"
#include "vmm/node/pages/wants.h"

enum { PLACES = 16384 }; /* pages whose history is kept (direct-mapped): 64 MiB of an array */

/* A page that arrived with the right to write while no CPU was waiting for it.  The checksum of its
 * contents tells whether it was written to before it left. */
struct came_ahead { uint32_t gfn_plus_1, sum; };

struct misses {
	struct came_ahead ahead[PLACES];
	struct both both[PLACES];
	/* each CPU's request to write that is not sent yet; at_ns 0: none */
	struct delayed { gfn_t gfn; uint64_t at_ns; } delayed[MAX_CPUS];
};

struct misses *misses_new(void)
{
	return calloc(1, sizeof(struct misses));
}

void misses_free(struct misses *misses)
{
	free(misses);
}

/* A checksum of a page, to see whether it has changed, in a tenth of a microsecond: Fletcher's sums
 * of four lanes of words.  Never 0. */
static uint32_t page_sum(const uint8_t *contents)
{
	typedef uint64_t pair __attribute__((vector_size(16)));
	pair word[2], sum[2] = { 0 }, sums[2] = { 0 };
	uint64_t all = 1;

	for (unsigned i = 0; i < PAGE_BYTES; i += sizeof word) {
		memcpy(word, contents + i, sizeof word);
		sum[0] += word[0];
		sums[0] += sum[0];
		sum[1] += word[1];
		sums[1] += sum[1];
	}
	for (unsigned k = 0; k < 4; k++) {
		all = (all ^ sum[k / 2][k % 2]) * 0x9e3779b97f4a7c15u;
		all = (all ^ sums[k / 2][k % 2]) * 0x9e3779b97f4a7c15u;
	}
	return (uint32_t)(all >> 32) | 1;
}

static struct both *both_of(struct node *node, gfn_t gfn)
{
	return &pagestore_misses(node)->both[gfn % PLACES];
}

static bool is_on(const struct node *node)
{
	return mechanism_on(node->o.machine.without, MECHANISM_BOTH);
}

/* A page is counted as coming when it is requested.  So a host that is nearly full does not let
 * other requests leave before one that has been let through (spill.h). */
static bool is_nearly_full(const struct node *node)
{
	const struct share *share = pagestore_share(node);

	return share_limit(share) < node->ram_pages &&
	       share_held(share) + dsm_coming(node->dsm) + node->o.machine.cpus >=
	       share_limit(share);
}

enum page_right misses_ask(struct node *node, unsigned cpu, gfn_t gfn, enum page_right right)
{
	struct both *both = both_of(node, gfn);
	const uint64_t now_ns = node_now_ns(node);
	uint64_t at_ns;

	if (!is_on(node) || dsm_right(node->dsm, gfn) >= right)
		return right;
	right = both_missed(both, gfn, right);
	node->boths += both_expects(both, gfn);
	at_ns = both_leaves_ns(both, now_ns);
	if (at_ns > now_ns && !is_nearly_full(node)) {
		pagestore_misses(node)->delayed[cpu] = (struct delayed){ gfn, at_ns };
		return PAGE_NONE;
	}
	both_sent(both, now_ns);
	return right;
}

enum page_right misses_ask_ahead(struct node *node, gfn_t gfn, enum page_right right)
{
	if (!is_on(node) || dsm_right(node->dsm, gfn) >= right)
		return right;
	return both_ahead(both_of(node, gfn), gfn, right);
}

bool misses_due(struct node *node, bool all, gfn_t *gfn, uint64_t *next_ns)
{
	*next_ns = 0;
	for (unsigned cpu = 0; cpu < node->o.machine.cpus; cpu++) {
		struct delayed *delayed = &pagestore_misses(node)->delayed[cpu];

		if (!delayed->at_ns)
			continue;
		if (!all && delayed->at_ns > node_now_ns(node)) {
			if (!*next_ns || delayed->at_ns < *next_ns)
				*next_ns = delayed->at_ns;
			continue;
		}
		delayed->at_ns = 0;
		/* the page may have come in another way */
		if (!wants_waits_for(node, cpu, delayed->gfn))
			continue;
		*gfn = delayed->gfn;
		both_sent(both_of(node, *gfn), node_now_ns(node));
		return true;
	}
	return false;
}

static void note_ahead(struct node *node, gfn_t gfn, const uint8_t *contents)
{
	struct came_ahead *came = &pagestore_misses(node)->ahead[gfn % PLACES];

	if (!wants_may_be_vain(node, gfn) || share_adopted(pagestore_share(node), gfn))
		*came = (struct came_ahead){ 0 };
	else
		*came = (struct came_ahead){ gfn + 1, page_sum(contents) };
}

static void judge_ahead(struct node *node, gfn_t gfn, const uint8_t *contents)
{
	struct came_ahead *came = &pagestore_misses(node)->ahead[gfn % PLACES];

	if (came->gfn_plus_1 != gfn + 1)
		return;
	came->gfn_plus_1 = 0;
	if (came->sum == page_sum(contents))
		wants_vain(node, gfn);
}

void misses_came(struct node *node, gfn_t gfn, const uint8_t *contents)
{
	struct both *both = both_of(node, gfn);

	note_ahead(node, gfn, contents);
	if (both_expects(both, gfn))
		both_came(both, page_sum(contents), node_now_ns(node));
}

void misses_left(struct node *node, gfn_t gfn, enum page_right has, enum page_right left,
		 const uint8_t *contents)
{
	struct both *both = both_of(node, gfn);
	bool compared = has == PAGE_WRITE && both_compares(both, gfn);

	if (has == PAGE_WRITE)
		judge_ahead(node, gfn, contents);
	both_left(both, gfn, left, compared ? page_sum(contents) : 0, node_now_ns(node));
}

bool misses_is_word(struct node *node, gfn_t gfn)
{
	return is_on(node) && both_is_on(both_of(node, gfn), gfn);
}
