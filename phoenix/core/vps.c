/* vps.c - sets of virtual nodes (thesis A.5): pure code on sorted arrays of ranges.
 *
 * A set of millions of virtual nodes is usually one range, so everything is linear in the number of
 * ranges.  Union, intersection and difference are one merge, told apart by a table of which of (in
 * x, in y) belongs to the result.
 */
#include <string.h>
#include "phoenix/core/bounds.h"
#include "phoenix/core/entropy.h"
#include "phoenix/core/vps.h"

bool vps_append(struct ph_vps *s, ph_vp_t lo, ph_vp_t hi)
{
	if (hi <= lo)
		return true;
	if (s->n && lo <= s->r[s->n - 1].hi) {
		if (hi > s->r[s->n - 1].hi)
			s->r[s->n - 1].hi = hi;
		return true;
	}
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 1;
		struct vrange *r = realloc(s->r, room * sizeof *r);
		if (!r)
			return false;
		s->r = r;
		s->room = room;
	}
	s->r[s->n++] = (struct vrange){ lo, hi };
	return true;
}

ph_vps_t ph_vps_create_empty(void)
{
	return calloc(1, sizeof(struct ph_vps));
}

ph_vps_t ph_vps_create_range(ph_vp_t l, ph_vp_t u)
{
	ph_vps_t s = ph_vps_create_empty();

	if (s && !vps_append(s, l, u)) {
		ph_vps_destroy(s);
		return NULL;
	}
	return s;
}

ph_vps_t ph_vps_create_singleton(ph_vp_t vp)
{
	return ph_vps_create_range(vp, vp < INT64_MAX ? vp + 1 : vp);
}

void ph_vps_destroy(ph_vps_t vps)
{
	if (vps)
		free(vps->r);
	free(vps);
}

/* Returns whether `at` is inside s, and sets *border to the next border of s above it.  *i skips
 * the ranges that end at or below `at`. */
static bool inside(const struct ph_vps *s, size_t *i, ph_vp_t at, ph_vp_t *border)
{
	while (*i < s->n && s->r[*i].hi <= at)
		++*i;
	*border = INT64_MAX;
	if (*i == s->n)
		return false;
	bool in = s->r[*i].lo <= at;
	*border = in ? s->r[*i].hi : s->r[*i].lo;
	return in;
}

/* Returns the set of all points for which belongs[in x][in y] is true. */
static ph_vps_t combine(const struct ph_vps *x, const struct ph_vps *y, const bool belongs[2][2])
{
	static const struct ph_vps nothing;
	ph_vps_t s = ph_vps_create_empty();
	size_t i = 0, j = 0;
	ph_vp_t at = INT64_MIN;

	x = x ? x : &nothing;
	y = y ? y : &nothing;
	while (s && (i < x->n || j < y->n)) {
		ph_vp_t bx, by;
		bool in_x = inside(x, &i, at, &bx), in_y = inside(y, &j, at, &by);
		ph_vp_t next = bx < by ? bx : by;

		if (belongs[in_x][in_y] && !vps_append(s, at, next)) {
			ph_vps_destroy(s);
			return NULL;
		}
		at = next;
	}
	return s;
}

ph_vps_t ph_vps_create_inter(const ph_vps_t x, const ph_vps_t y)
{
	return combine(x, y, (const bool[2][2]){ { false, false }, { false, true } });
}

ph_vps_t ph_vps_create_union(const ph_vps_t x, const ph_vps_t y)
{
	return combine(x, y, (const bool[2][2]){ { false, true }, { true, true } });
}

ph_vps_t ph_vps_create_diff(const ph_vps_t x, const ph_vps_t y)
{
	return combine(x, y, (const bool[2][2]){ { false, false }, { true, false } });
}

ph_vps_t ph_vps_dup(const ph_vps_t vps)
{
	return ph_vps_create_union(vps, NULL);
}

int ph_vps_is_empty(const ph_vps_t vps)
{
	return !vps || vps->n == 0;
}

/* Returns whether there is no point that is in x and for which (in y) == in_y. */
static bool none(const struct ph_vps *x, const struct ph_vps *y, bool in_y)
{
	size_t j = 0;
	ph_vp_t border;

	for (size_t i = 0; x && i < x->n; i++)
		for (ph_vp_t at = x->r[i].lo; at < x->r[i].hi; at = border) {
			bool in = false;
			border = INT64_MAX;
			if (y)
				in = inside(y, &j, at, &border);
			if (in == in_y)
				return false;
		}
	return true;
}

int ph_vps_is_sub(const ph_vps_t x, const ph_vps_t y)
{
	return none(x, y, false);
}

int ph_vps_is_exclusive(const ph_vps_t x, const ph_vps_t y)
{
	return none(x, y, true);
}

int ph_vps_is_equal(const ph_vps_t x, const ph_vps_t y)
{
	size_t nx = x ? x->n : 0, ny = y ? y->n : 0;

	return nx == ny && (nx == 0 || memcmp(x->r, y->r, nx * sizeof *x->r) == 0);
}

int ph_vps_is_member(const ph_vps_t vps, ph_vp_t vp)
{
	size_t low = 0, high = vps ? vps->n : 0;

	while (low < high) {
		size_t mid = (low + high) / 2;
		if (vps->r[mid].hi <= vp)
			low = mid + 1;
		else
			high = mid;
	}
	return vps && low < vps->n && vps->r[low].lo <= vp;
}

ph_vp_t ph_vps_get_min_elem(const ph_vps_t vps)
{
	return ph_vps_is_empty(vps) ? PH_INVALID_VP : vps->r[0].lo;
}

ph_vp_t ph_vps_get_max_elem(const ph_vps_t vps)
{
	return ph_vps_is_empty(vps) ? PH_INVALID_VP : vps->r[vps->n - 1].hi - 1;
}

ph_vp_t ph_vps_get_lower_bound(const ph_vps_t vps)
{
	return ph_vps_get_min_elem(vps);
}

ph_vp_t ph_vps_get_upper_bound(const ph_vps_t vps)
{
	return ph_vps_is_empty(vps) ? PH_INVALID_VP : vps->r[vps->n - 1].hi;
}

ph_vp_t ph_vps_get_any_elem(const ph_vps_t vps)
{
	uint64_t members = 0;

	if (ph_vps_is_empty(vps))
		return PH_INVALID_VP;
	for (size_t i = 0; i < vps->n; i++)
		members += (uint64_t)(vps->r[i].hi - vps->r[i].lo);
	uint64_t k = entropy_u64() % members;
	size_t i = 0;
	while (k >= (uint64_t)(vps->r[i].hi - vps->r[i].lo)) {
		k -= (uint64_t)(vps->r[i].hi - vps->r[i].lo);
		i++;
	}
	return vps->r[i].lo + (ph_vp_t)k;
}

/* ---- iterators: they work on a copy of the members that are left ---- */

struct ph_vps_iter {
	ph_vps_t left;
	size_t first;	/* the ranges before this one are used up */
};

ph_vps_iter_t ph_vps_iter_create(ph_vps_t vps)
{
	ph_vps_iter_t x = calloc(1, sizeof *x);

	if (x && !(x->left = ph_vps_dup(vps))) {
		free(x);
		return NULL;
	}
	return x;
}

void ph_vps_iter_destroy(ph_vps_iter_t x)
{
	if (x)
		ph_vps_destroy(x->left);
	free(x);
}

int ph_vps_iter_has_next(ph_vps_iter_t x)
{
	return x && x->first < x->left->n;
}

void ph_vps_iter_range_next(ph_vps_iter_t x, ph_vp_t *lower, ph_vp_t *upper)
{
	*lower = *upper = PH_INVALID_VP;
	if (!ph_vps_iter_has_next(x))
		return;
	*lower = x->left->r[x->first].lo;
	*upper = x->left->r[x->first++].hi;
}

/* Removes lo, lo + stride, ... below hi from the members that are left. */
static void remove_slice(ph_vps_iter_t x, ph_vp_t lo, ph_vp_t hi, ph_vp_t stride)
{
	struct ph_vps slice = { 0 },
		      rest = { .n = x->left->n - x->first, .r = x->left->r + x->first };
	ph_vps_t left = NULL;
	bool ok = true;

	for (ph_vp_t v = lo; ok && v < hi; v += stride)
		ok = vps_append(&slice, v, v + 1);
	if (ok)
		left = ph_vps_create_diff(&rest, &slice);
	free(slice.r);
	if (!left) {	/* out of memory: end the iteration, or members would come twice */
		x->first = x->left->n;
		return;
	}
	ph_vps_destroy(x->left);
	x->left = left;
	x->first = 0;
}

void ph_vps_iter_next(ph_vps_iter_t x, ph_vp_t *lower, ph_vp_t *upper, ph_vp_t *stride)
{
	*lower = *upper = *stride = PH_INVALID_VP;
	if (!ph_vps_iter_has_next(x))
		return;
	struct vrange *r = x->left->r + x->first;
	*stride = 1;
	if (r->hi - r->lo > 1 || x->first + 1 == x->left->n) {
		ph_vps_iter_range_next(x, lower, upper);
		return;
	}
	*lower = r->lo;
	*stride = r[1].lo - r->lo;
	ph_vp_t last = r[1].lo;
	for (int members = 2; members < SLICE_MAX && last <= INT64_MAX - *stride &&
			      ph_vps_is_member(x->left, last + *stride); members++)
		last += *stride;
	*upper = last + 1;
	remove_slice(x, *lower, *upper, *stride);
}
