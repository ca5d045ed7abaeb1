/* spaces.c - see spaces.h. */
#include "vcpu/spaces.h"

static uint32_t bit_of(uint32_t number) { return 1u << number; }

static uint32_t *stale_of(struct spaces *all, const struct space *own)
{
	return own->bare ? &all->bare_stale : &all->stale;
}

static uint32_t directory_of(const struct vcpu *v) { return v->cr3 & ~(uint32_t)PAGE_MASK; }

void spaces_cr3_loaded(struct spaces *all, uint32_t cr3, bool keep)
{
	if (keep)
		return;
	all->stale |= bit_of(spaces_number(cr3));
	all->bare_stale |= bit_of(spaces_number(cr3));
}

static bool reaches_kernel(gva_t first, uint32_t pages)
{
	return first >= VMP_USER_LIMIT || pages > (VMP_USER_LIMIT - first) >> PAGE_BITS;
}

/* (TRICKS: kernel-flush-everywhere) */
void spaces_drop_range(struct spaces *all, struct space *own, struct vcpu *v, gva_t first,
		       uint32_t pages)
{
	uint32_t number = spaces_number(v->cr3);

	if (own->number == number && own->directory == directory_of(v))
		shadow_refresh_range(&own->shadow, v, first, pages);
	else
		shadow_drop_range(&own->shadow, first, pages);
	if (first < VMP_USER_LIMIT && own->number != number)
		all->stale |= bit_of(number); /* the mappings are in a space that runs later */
	if (first < VMP_USER_LIMIT)
		all->bare_stale |= bit_of(number);
	if (!reaches_kernel(first, pages))
		return;
	if (first < VMP_USER_LIMIT) {
		pages -= (VMP_USER_LIMIT - first) >> PAGE_BITS;
		first = VMP_USER_LIMIT;
	}
	all->range[all->ranges % SPACES_LOG].first = first;
	all->range[all->ranges % SPACES_LOG].pages = pages;
	own->seen_ranges = ++all->ranges;
}

void spaces_drop_range_beside(struct spaces *all, struct space *own, struct space *beside,
			      struct vcpu *v, gva_t first, uint32_t pages)
{
	uint32_t bit = bit_of(spaces_number(v->cr3)), was_stale = all->bare_stale & bit;

	spaces_drop_range(all, own, v, first, pages);
	if (was_stale || first >= VMP_USER_LIMIT ||
	    beside->number != spaces_number(v->cr3) || beside->directory != directory_of(v))
		return;
	shadow_refresh_range(&beside->shadow, v, first, pages);
	all->bare_stale &= ~bit;
}

void spaces_drop_all(struct spaces *all, struct space *own)
{
	shadow_drop_all(&own->shadow);
	own->seen_all_drops = ++all->all_drops;
	own->seen_ranges = all->ranges;
}

void spaces_catch_up(const struct spaces *all, struct space *own)
{
	bool too_late = all->ranges - own->seen_ranges > SPACES_LOG;

	if (own->seen_all_drops != all->all_drops || too_late)
		shadow_drop_all(&own->shadow);
	else
		for (uint32_t i = own->seen_ranges; i != all->ranges; i++)
			shadow_drop_range(&own->shadow, all->range[i % SPACES_LOG].first,
					  all->range[i % SPACES_LOG].pages);
	own->seen_all_drops = all->all_drops;
	own->seen_ranges = all->ranges;
}

void spaces_enter(struct spaces *all, struct space *own, struct vcpu *v)
{
	uint32_t number = spaces_number(v->cr3), directory = directory_of(v),
		 *stale = stale_of(all, own);

	spaces_catch_up(all, own);
	if (own->number != number || own->directory != directory)
		shadow_switch_space(&own->shadow);
	else if (*stale & bit_of(number))
		shadow_refresh_user(&own->shadow, v);
	own->number = number;
	own->directory = directory;
	*stale &= ~bit_of(number);
}
