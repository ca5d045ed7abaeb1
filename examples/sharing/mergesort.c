/* mergesort.c - random keys sorted by a recursive merge sort.
 *
 *   mergesort [S|W|A] [--threads N]
 *
 * OpenMP's tasks: each half of a range is a task, until a range is short. So which thread sorts a
 * range is left to the run time system, and a thread merges what others have sorted; the last merge
 * is one thread's alone. The result must be in order, and its keys those of the beginning.
 */
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "npb.h"

enum { SHORT = 8192, TINY = 16 };

static const int key_bits[] = { 18, 21, 24 }; /* by class: 2^bits keys */

/* Sort at most TINY keys. */
static void insert_each(uint32_t *key, size_t keys)
{
	for (size_t i = 1; i < keys; i++) {
		uint32_t moved = key[i];
		size_t to = i;

		for (; to > 0 && key[to - 1] > moved; to--)
			key[to] = key[to - 1];
		key[to] = moved;
	}
}

/* Merge the two sorted parts of a range, the first of which has `first` keys. */
static void merge(uint32_t *key, size_t first, size_t keys, uint32_t *scratch)
{
	size_t a = 0, b = first;

	memcpy(scratch, key, first * sizeof *key);
	for (size_t to = 0; a < first; to++)
		key[to] = b < keys && key[b] < scratch[a] ? key[b++] : scratch[a++];
}

/* Sort a range; `scratch` is memory for as many keys. */
static void sort_short(uint32_t *key, size_t keys, uint32_t *scratch)
{
	size_t half = keys / 2;

	if (keys <= TINY) {
		insert_each(key, keys);
		return;
	}
	sort_short(key, half, scratch);
	sort_short(key + half, keys - half, scratch);
	merge(key, half, keys, scratch);
}

static void sort(uint32_t *key, size_t keys, uint32_t *scratch)
{
	size_t half = keys / 2;

	if (keys <= SHORT) {
		sort_short(key, keys, scratch);
		return;
	}
#pragma omp task
	sort(key, half, scratch);
	sort(key + half, keys - half, scratch + half);
#pragma omp taskwait
	merge(key, half, keys, scratch);
}

/* A sum over all keys that does not depend on their order, and that exchanged bits would change. */
static uint64_t sum_of(const uint32_t *key, size_t keys)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < keys; i++)
		sum += (key[i] + 1ULL) * (key[i] ^ 0x9e3779b9u);
	return sum;
}

static bool is_sorted(const uint32_t *key, size_t keys)
{
	for (size_t i = 1; i < keys; i++)
		if (key[i - 1] > key[i])
			return false;
	return true;
}

int main(int argc, char **argv)
{
	int c = npb_parse(argc, argv, "mergesort");
	size_t keys = (size_t)1 << key_bits[c];
	uint32_t *key = npb_allocate(keys, sizeof *key);
	uint32_t *scratch = npb_allocate(keys, sizeof *scratch);
	uint64_t seed = npb_first_seed, sum;
	double start, seconds;
	bool same, sorted;

	for (size_t i = 0; i < keys; i++)
		key[i] = (uint32_t)(randlc(&seed) * 0x1p32);
	sum = sum_of(key, keys);
	start = omp_get_wtime();
#pragma omp parallel
#pragma omp single
	sort(key, keys, scratch);
	seconds = omp_get_wtime() - start;
	same = sum == sum_of(key, keys);
	sorted = is_sorted(key, keys);
	printf("%-15s %zu, %s, %s\n", "keys", keys, sorted ? "sorted" : "NOT SORTED",
		same ? "all there" : "OTHERS THAN BEFORE");
	return npb_report("mergesort", c, seconds, 1e-6 * (double)keys * key_bits[c],
		same && sorted);
}
