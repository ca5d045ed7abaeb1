/* is.c - the NAS Parallel Benchmarks' IS (integer sort), written from its published specification.
 *
 *   is [--buckets] [S|W|A] [--threads N]
 *
 * Keys of a bell-shaped distribution are ranked ten times; after each time five ranks are compared
 * with the published ones, and at the end the keys are sorted by the last ranks and checked. The
 * specification leaves open how keys are ranked. NPB's own OpenMP program has two ways, and so has
 * this one:
 *
 * Counting: a thread owns a tile of the keys and a tile of the key values. It counts the values of
 * its keys, and then sums up the ranks of its values over all threads' counts: of each count, the
 * part with other threads' values crosses to them. Two barriers.
 *
 * Buckets, with --buckets: a thread owns a tile of the keys and the buckets that hold its share of
 * them. Each ranking scatters the tile's keys into the buckets (every thread writes to every
 * bucket, one run of keys each) and then counts the keys of the own buckets: all keys cross between
 * the threads once, and on the pages where runs meet two threads write. Three barriers.
 */
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "npb.h"

enum { RANKINGS = 10, PROBES = 5, MAX_BUCKETS = 1024 };

static const struct class {
	int key_bits, range_bits, bucket_bits;
	/* published: where to look, and the rank before the ranking's number is added */
	int index[PROBES], rank[PROBES];
	int sign[PROBES]; /* expected is rank + ranking - late_up, or rank - ranking + late_down */
	int late_up, late_down;
} classes[] = {
	{ 16, 11, 9, { 48427, 17148, 23627, 62548, 4431 },
	  { 0, 18, 346, 64917, 65463 }, { 1, 1, 1, -1, -1 }, 0, 0 },
	{ 20, 16, 10, { 357773, 934767, 875723, 898999, 404505 },
	  { 1249, 11698, 1039987, 1043896, 1048018 }, { 1, 1, -1, -1, -1 }, 2, 0 },
	{ 23, 19, 10, { 2112377, 662041, 5336171, 3642833, 4250760 },
	  { 104, 17523, 123928, 8288932, 8388264 }, { 1, 1, 1, -1, -1 }, 1, 1 },
};

static const struct class *class;
static int keys, range, buckets, shift; /* a key's bucket is key >> shift */
static int *key;                        /* as generated */
static int *scattered;                  /* sorted by bucket */
static int *rank_end;                   /* of each key value: how many keys are not larger */
static int (*count)[MAX_BUCKETS];       /* of each thread and bucket: keys of the thread's tile */
static int **not_larger; /* of each thread, and key value: keys of its tile that are not larger */
static bool by_buckets;
static int good_ranks;

/* A thread's tiles of the keys and of the key values, or its buckets. */
struct share {
	struct npb_tile tile, values, buckets;
	int first_key; /* the number of keys in lower buckets than its own */
};

/* The thread's tile of the keys, each the sum of four random numbers. */
static void make_keys(struct npb_tile tile)
{
	uint64_t seed = npb_skip(npb_first_seed, 4 * (uint64_t)tile.first);

	for (int i = tile.first; i < tile.end; i++) {
		double sum = randlc(&seed);

		sum += randlc(&seed);
		sum += randlc(&seed);
		sum += randlc(&seed);
		key[i] = (int)(range / 4 * sum);
	}
}

/* Where the thread writes its first key of each bucket; sets which buckets are the thread's own:
 * those that begin in its share of all keys.
 */
static void find_places(struct share *mine, int *place)
{
	int me = omp_get_thread_num(), threads = omp_get_num_threads(), before = 0;
	struct npb_tile target = npb_tile(0, keys);

	mine->buckets = (struct npb_tile){ buckets, buckets };
	for (int b = 0; b < buckets; b++) {
		int is_mine = before >= target.first && before < target.end;

		if (before >= target.end && mine->buckets.end == buckets &&
		    mine->buckets.first < buckets)
			mine->buckets.end = b;
		if (is_mine && mine->buckets.first == buckets) {
			mine->buckets.first = b;
			mine->first_key = before;
		}
		for (int t = 0; t < threads; t++) {
			if (t == me)
				place[b] = before;
			before += count[t][b];
		}
	}
}

static void count_tile(struct npb_tile tile)
{
	int mine[MAX_BUCKETS] = { 0 };

	for (int i = tile.first; i < tile.end; i++)
		mine[key[i] >> shift]++;
	memcpy(count[omp_get_thread_num()], mine, sizeof mine);
}

/* The ranks of the keys in the own buckets: count them, and sum up. */
static void rank_buckets(const struct share *mine)
{
	int first_value = mine->buckets.first << shift, end_value = mine->buckets.end << shift,
	    end = mine->first_key;

	memset(rank_end + first_value, 0, (end_value - first_value) * sizeof *rank_end);
	for (int b = mine->buckets.first; b < mine->buckets.end; b++)
		for (int t = 0; t < omp_get_num_threads(); t++)
			end += count[t][b];
	for (int i = mine->first_key; i < end; i++)
		rank_end[scattered[i]]++;
	end = mine->first_key;
	for (int value = first_value; value < end_value; value++)
		rank_end[value] = end += rank_end[value];
}

/* Compare the ranks of the probed keys with the published ones; returns how many agree. */
static int check_probes(int ranking, const int *probed)
{
	int good = 0;

	for (int i = 0; i < PROBES; i++) {
		int lower = probed[i] > 0 ? rank_end[probed[i] - 1] : 0; /* keys that are smaller */
		int expected = class->rank[i] + (class->sign[i] > 0 ? ranking - class->late_up :
								      class->late_down - ranking);

		if (lower == expected)
			good++;
		else
			printf("ranking %d: key %d has rank %d, published %d\n", ranking, probed[i],
			       lower, expected);
	}
	return good;
}

static void rank_by_buckets(struct share *mine)
{
	int place[MAX_BUCKETS];

	count_tile(mine->tile);
#pragma omp barrier
	find_places(mine, place);
	for (int i = mine->tile.first; i < mine->tile.end; i++)
		scattered[place[key[i] >> shift]++] = key[i];
#pragma omp barrier
	rank_buckets(mine);
}

static void rank_by_counting(const struct share *mine)
{
	int *own = not_larger[omp_get_thread_num()], threads = omp_get_num_threads();

	memset(own, 0, range * sizeof *own);
	for (int i = mine->tile.first; i < mine->tile.end; i++)
		own[key[i]]++;
	for (int value = 1; value < range; value++)
		own[value] += own[value - 1];
#pragma omp barrier
	for (int value = mine->values.first; value < mine->values.end; value++) {
		int sum = 0;

		for (int t = 0; t < threads; t++)
			sum += not_larger[t][value];
		rank_end[value] = sum;
	}
}

/* One ranking. As specified, two keys are changed before it, so that none equals the one before. */
static void rank_keys(int ranking, struct share *mine)
{
	int probed[PROBES] = { 0 };

#pragma omp master
	{
		key[ranking] = ranking;
		key[ranking + RANKINGS] = range - ranking;
		for (int i = 0; i < PROBES; i++)
			probed[i] = key[class->index[i]];
	}
	if (by_buckets)
		rank_by_buckets(mine);
	else
		rank_by_counting(mine);
#pragma omp barrier
#pragma omp master
	good_ranks += check_probes(ranking, probed);
}

static void sort_buckets(const struct share *mine)
{
	int end = mine->first_key;

	for (int b = mine->buckets.first; b < mine->buckets.end; b++)
		for (int t = 0; t < omp_get_num_threads(); t++)
			end += count[t][b];
	for (int i = mine->first_key; i < end; i++)
		key[--rank_end[scattered[i]]] = scattered[i];
}

/* Each thread puts the keys of its values into their places. */
static void sort_values(const struct share *mine)
{
	struct npb_tile tile = mine->tile;

	memcpy(scattered + tile.first, key + tile.first, (tile.end - tile.first) * sizeof *key);
#pragma omp barrier
	for (int i = 0; i < keys; i++)
		if (scattered[i] >= mine->values.first && scattered[i] < mine->values.end)
			key[--rank_end[scattered[i]]] = scattered[i];
}

/* Sort the keys by the last ranks, and check the order; returns whether all are in order. */
static bool sort_fully(const struct share *mine)
{
	struct npb_tile tile = npb_tile(1, keys);
	double wrong = 0;

#pragma omp barrier
	if (by_buckets)
		sort_buckets(mine);
	else
		sort_values(mine);
#pragma omp barrier
	for (int i = tile.first; i < tile.end; i++)
		wrong += key[i - 1] > key[i];
	return npb_sum(wrong) == 0;
}

static bool run(double *seconds)
{
	bool is_sorted = false;

#pragma omp parallel
	{
		struct share mine = { .tile = npb_tile(0, keys), .values = npb_tile(0, range) };
		bool well;
		double start;

		make_keys(mine.tile);
		if (!by_buckets)
			not_larger[omp_get_thread_num()] = npb_allocate(range, sizeof(int));
#pragma omp barrier
		/* as specified: untimed, so that all memory has been touched */
		rank_keys(1, &mine);
#pragma omp barrier
#pragma omp master
		good_ranks = 0;
#pragma omp barrier
		start = omp_get_wtime();
		for (int i = 1; i <= RANKINGS; i++)
			rank_keys(i, &mine);
#pragma omp barrier
#pragma omp master
		*seconds = omp_get_wtime() - start;
		well = sort_fully(&mine);
#pragma omp master
		is_sorted = well;
	}
	return is_sorted;
}

/* Whether the option is among the arguments; takes it out. */
static bool take_option(int *argc, char **argv, const char *option)
{
	int kept = 1;

	for (int i = 1; i < *argc; i++)
		if (strcmp(argv[i], option) != 0)
			argv[kept++] = argv[i];
	if (kept == *argc)
		return false;
	*argc = kept;
	return true;
}

int main(int argc, char **argv)
{
	double seconds = 0;
	bool is_sorted;
	int c;

	by_buckets = take_option(&argc, argv, "--buckets");
	c = npb_parse(argc, argv, "is [--buckets]");
	class = &classes[c];
	keys = 1 << class->key_bits;
	range = 1 << class->range_bits;
	buckets = 1 << class->bucket_bits;
	shift = class->range_bits - class->bucket_bits;
	key = npb_allocate(keys, sizeof *key);
	scattered = npb_allocate(keys, sizeof *scattered);
	rank_end = npb_allocate(range + 1, sizeof *rank_end);
	count = npb_allocate(omp_get_max_threads(), sizeof *count);
	not_larger = npb_allocate(omp_get_max_threads(), sizeof *not_larger);
	is_sorted = run(&seconds);
	printf("%-15s %d of %d ranks as published, %s\n", "ranks", good_ranks, RANKINGS * PROBES,
		is_sorted ? "sorted" : "NOT SORTED");
	return npb_report("IS", c, seconds, 1e-6 * RANKINGS * keys,
			  is_sorted && good_ranks == RANKINGS * PROBES);
}
