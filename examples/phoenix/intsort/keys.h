/* keys.h - the keys of the integer sort, and its local steps.  The MPI program that it is
 * compared with uses them too. */
#ifndef KEYS_H
#define KEYS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Returns the i-th key below 2^bits: the mean of four random numbers, as in IS of NAS. */
static inline uint32_t key_number(uint64_t i, unsigned bits)
{
	uint64_t x = (i + 1) * 0x9E3779B97F4A7C15ULL, sum = 0;

	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
	x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
	for (int k = 0; k < 4; k++)
		sum += x >> 16 * k & 0xFFFF;
	return (uint32_t)(((sum << 8 | (x >> 40 & 0xFF)) << bits) / (4 << 24));
}

/* Divides n keys into `parts` parts by key >> shift: counts the keys of each, and orders the
 * keys by part. */
static inline void partition(const uint32_t *keys, size_t n, unsigned shift, unsigned parts,
			     uint32_t *counts, uint32_t *out)
{
	uint32_t at[4096], sum = 0;

	memset(counts, 0, parts * sizeof *counts);
	for (size_t i = 0; i < n; i++)
		counts[keys[i] >> shift]++;
	for (unsigned p = 0; p < parts; sum += counts[p++])
		at[p] = sum;
	for (size_t i = 0; i < n; i++)
		out[at[keys[i] >> shift]++] = keys[i];
}

/* Sorts keys of [base, base + range) in place. */
static inline void counting_sort(uint32_t *keys, size_t n, uint32_t base, uint32_t range)
{
	uint32_t *counts = calloc(range, sizeof *counts);
	size_t at = 0;

	if (!counts)
		abort();
	for (size_t i = 0; i < n; i++)
		counts[keys[i] - base]++;
	for (uint32_t k = 0; k < range; k++)
		for (uint32_t c = counts[k]; c; c--)
			keys[at++] = base + k;
	free(counts);
}

#endif
