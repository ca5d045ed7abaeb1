/* random.c - xorshift128 (Marsaglia), seeded by mixing seed and number. */
#include "tests/diff/diff.h"

static uint32_t state[4];

static uint32_t mix(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352d;
	x = (x ^ x >> 15) * 0x846ca68b;
	return x ^ x >> 16;
}

void random_seed(uint32_t seed, uint32_t number)
{
	for (unsigned i = 0; i < ARRAY_LEN(state); i++)
		state[i] = mix(seed + mix(number * ARRAY_LEN(state) + i)) | 1;
}

uint32_t random_word(void)
{
	uint32_t t = state[3], s = state[0];

	state[3] = state[2];
	state[2] = state[1];
	state[1] = s;
	t ^= t << 11;
	t ^= t >> 8;
	return state[0] = t ^ s ^ s >> 19;
}
