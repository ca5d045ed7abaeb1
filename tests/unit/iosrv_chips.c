/* iosrv_chips.c - the table of chips: an address is one chip's. */
#include <stdio.h>
#include "tests/unit/iosrv_fake.h"
#include "tests/unit/unit.h"

/* False where two chips answer: chips_access() would ask the first one alone.  The guest places a
 * chip with base(), wherever it likes. */
static bool are_apart(const struct chip *a, const struct chip *b)
{
	for (unsigned i = 0; i < CHIP_RANGES; i++)
		for (unsigned j = 0; j < CHIP_RANGES; j++) {
			const struct chip_range *x = &a->range[i], *y = &b->range[j];

			if (x->mmio == y->mmio && !a->base && !b->base &&
			    (uint64_t)x->first < (uint64_t)y->first + y->count &&
			    (uint64_t)y->first < (uint64_t)x->first + x->count) {
				fprintf(stderr, "%s and %s both have %s %#x\n", a->name, b->name,
					x->mmio ? "address" : "port",
					x->first > y->first ? x->first : y->first);
				return false;
			}
		}
	return true;
}

static void each_address_is_one_chips(void)
{
	for (unsigned i = 0; i < N_CHIPS; i++)
		for (unsigned j = 0; j < i; j++)
			CU_ASSERT(are_apart(chips[j], chips[i]));
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "each address is one chip's", each_address_is_one_chips },
		UNIT_END
	};

	return UNIT_RUN("chips", tests);
}
