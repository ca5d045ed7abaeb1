/* phnx_vps.c - sets of virtual nodes: every operation against a bitmap of a small space, and the
 * loop of the appendix. */
#include <stdint.h>
#include <stdlib.h>
#include "phoenix/core/vps.h"
#include "tests/unit/unit.h"

enum { SPACE = 24, ROUNDS = 2000 };

static ph_vps_t from_bits(uint32_t bits)
{
	ph_vps_t s = ph_vps_create_empty();

	for (int v = 0; v < SPACE; v++)
		if (bits >> v & 1)
			vps_append(s, v, v + 1);
	return s;
}

static uint32_t to_bits(ph_vps_t s)
{
	uint32_t bits = 0;

	for (int v = 0; v < SPACE; v++)
		bits |= (uint32_t)ph_vps_is_member(s, v) << v;
	return bits;
}

static uint32_t random_bits(void)
{
	uint32_t b = (uint32_t)random() & ((1u << SPACE) - 1);

	return random() % 2 ? b : b & (b << 1) & ((1u << SPACE) - 1);
}

static void test_operations(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t a = random_bits(), b = i % 5 ? random_bits() : a;
		ph_vps_t x = from_bits(a), y = from_bits(b);
		ph_vps_t u = ph_vps_create_union(x, y), n = ph_vps_create_inter(x, y),
			 d = ph_vps_create_diff(x, y);

		ph_vps_t same = ph_vps_dup(x);

		CU_ASSERT_EQUAL(to_bits(same), a);
		CU_ASSERT_EQUAL(ph_vps_get_lower_bound(same), ph_vps_get_min_elem(x));
		ph_vps_destroy(same);
		CU_ASSERT_EQUAL(to_bits(u), a | b);
		CU_ASSERT_EQUAL(to_bits(n), a & b);
		CU_ASSERT_EQUAL(to_bits(d), a & ~b);
		CU_ASSERT_EQUAL(ph_vps_is_sub(x, y), (a & ~b) == 0);
		CU_ASSERT_EQUAL(ph_vps_is_equal(x, y), a == b);
		CU_ASSERT_EQUAL(ph_vps_is_exclusive(x, y), (a & b) == 0);
		CU_ASSERT_EQUAL(ph_vps_is_empty(n), (a & b) == 0);
		CU_ASSERT(a == 0 || ph_vps_is_member(x, ph_vps_get_any_elem(x)));
		CU_ASSERT_EQUAL(ph_vps_get_min_elem(x), a ? __builtin_ctz(a) : -1);
		CU_ASSERT_EQUAL(ph_vps_get_max_elem(x), a ? 31 - __builtin_clz(a) : -1);
		CU_ASSERT_EQUAL(ph_vps_get_upper_bound(x), a ? 32 - __builtin_clz(a) : -1);
		ph_vps_destroy(u);
		ph_vps_destroy(n);
		ph_vps_destroy(d);
		ph_vps_destroy(x);
		ph_vps_destroy(y);
	}
}

static void test_iteration(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t bits = random_bits(), seen = 0;
		ph_vps_t s = from_bits(bits);
		ph_vps_iter_t iter = ph_vps_iter_create(s);
		ph_vp_t lower, upper, stride, v;

		while (ph_vps_iter_has_next(iter)) {
			ph_vps_iter_next(iter, &lower, &upper, &stride);
			for (v = lower; v < upper; v += stride) {
				CU_ASSERT_FALSE(seen >> v & 1);
				seen |= 1u << v;
			}
		}
		CU_ASSERT_EQUAL(seen, bits);
		ph_vps_iter_next(iter, &lower, &upper, &stride);
		CU_ASSERT(lower == PH_INVALID_VP && upper == PH_INVALID_VP &&
			  stride == PH_INVALID_VP);
		ph_vps_iter_destroy(iter);

		iter = ph_vps_iter_create(s);
		for (seen = 0; ph_vps_iter_has_next(iter); )
			for (ph_vps_iter_range_next(iter, &lower, &upper); lower < upper; lower++)
				seen |= 1u << lower;
		CU_ASSERT_EQUAL(seen, bits);
		ph_vps_iter_destroy(iter);
		ph_vps_destroy(s);
	}
}

static void slice_is(ph_vps_iter_t iter, ph_vp_t l, ph_vp_t u, ph_vp_t s)
{
	ph_vp_t lower, upper, stride;

	ph_vps_iter_next(iter, &lower, &upper, &stride);
	CU_ASSERT_EQUAL(lower, l);
	CU_ASSERT_EQUAL(upper, u);
	CU_ASSERT_EQUAL(stride, s);
}

static void test_slices(void)
{
	ph_vps_t s = ph_vps_create_empty();

	for (ph_vp_t v = 3; v < 30; v += 3)	/* 3, 6, ..., 27, then a singleton */
		vps_append(s, v, v + 1);
	vps_append(s, 100, 101);
	ph_vps_iter_t iter = ph_vps_iter_create(s);
	slice_is(iter, 3, 28, 3);
	slice_is(iter, 100, 101, 1);
	CU_ASSERT_FALSE(ph_vps_iter_has_next(iter));
	ph_vps_iter_destroy(iter);
	ph_vps_destroy(s);

	s = ph_vps_create_range(0, 1LL << 62);	/* millions of members, one range */
	CU_ASSERT_EQUAL(s->n, 1);
	iter = ph_vps_iter_create(s);
	slice_is(iter, 0, 1LL << 62, 1);
	ph_vps_iter_destroy(iter);
	ph_vps_destroy(s);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "operations against a bitmap", test_operations },
		{ "iterators visit every member once", test_iteration },
		{ "slices are the largest with the first stride", test_slices },
		UNIT_END
	};

	srandom(1);
	return UNIT_RUN("phnx_vps", tests);
}
