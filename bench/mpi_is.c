/* mpi_is.c - the integer sort of examples/phoenix/intsort with MPI: the same keys, buckets and
 * local steps. */
#include <mpi.h>
#include <stdio.h>
#include "examples/phoenix/intsort/keys.h"

enum { BUCKETS = 64 };

static int rank, n_ranks;

static int owner(int bucket) { return bucket * n_ranks / BUCKETS; }

/* Sums over the buckets of each rank. */
static void by_rank(const uint32_t *counts, int *sums, int *offsets)
{
	memset(sums, 0, (size_t)n_ranks * sizeof *sums);
	for (int j = 0; j < BUCKETS; j++)
		sums[owner(j)] += (int)counts[j];
	for (int r = 0; r < n_ranks; r++)
		offsets[r] = r ? offsets[r - 1] + sums[r - 1] : 0;
}

static int is_sorted(const uint32_t *keys, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (keys[i - 1] > keys[i])
			return 0;
	return 1;
}

static void *allocate(size_t n)
{
	void *p = malloc(n ? n : 1);

	if (!p)
		MPI_Abort(MPI_COMM_WORLD, 1);
	return p;
}

int main(int argc, char **argv)
{
	unsigned log_n = argc > 1 ? (unsigned)atoi(argv[1]) : 20,
		 bits = argc > 2 ? (unsigned)atoi(argv[2]) : 16;
	uint32_t counts[BUCKETS];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
	size_t n = (size_t)1 << log_n, first = n * (size_t)rank / (size_t)n_ranks,
	       mine = n * (size_t)(rank + 1) / (size_t)n_ranks - first;
	uint32_t *chunk = allocate(mine * sizeof *chunk), *keys = allocate(mine * sizeof *keys);
	int *send = allocate(4 * (size_t)n_ranks * sizeof *send), *send_at = send + n_ranks,
	    *get = send_at + n_ranks, *get_at = get + n_ranks;
	for (size_t i = 0; i < mine; i++)
		chunk[i] = key_number(first + i, bits);

	MPI_Barrier(MPI_COMM_WORLD);
	double start = MPI_Wtime();
	partition(chunk, mine, bits - 6, BUCKETS, counts, keys);
	by_rank(counts, send, send_at);
	MPI_Alltoall(send, 1, MPI_INT, get, 1, MPI_INT, MPI_COMM_WORLD);
	size_t total = 0;
	for (int r = 0; r < n_ranks; total += (size_t)get[r++])
		get_at[r] = (int)total;
	uint32_t *sorted = allocate(total * sizeof *sorted), *in = allocate(total * sizeof *in);
	MPI_Alltoallv(keys, send, send_at, MPI_UINT32_T, in, get, get_at, MPI_UINT32_T,
		      MPI_COMM_WORLD);
	partition(in, total, bits - 6, BUCKETS, counts, sorted);
	size_t at = 0;
	for (uint32_t j = 0; j < BUCKETS; at += counts[j++])
		counting_sort(sorted + at, counts[j], j << (bits - 6), 1U << (bits - 6));
	MPI_Barrier(MPI_COMM_WORLD);
	double time = MPI_Wtime() - start;

	uint64_t sums[2] = { 0, total }, all[2];
	int right = is_sorted(sorted, total), all_right;
	for (size_t i = 0; i < total; i++)
		sums[0] += sorted[i];
	for (size_t i = 0; i < mine; i++)
		sums[0] -= chunk[i];
	MPI_Allreduce(sums, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
	if (rank == 0)
		printf("mpi_is: 2^%u keys below 2^%u: %s, %.3f s\n", log_n, bits,
		       all_right && all[0] == 0 && all[1] == n ? "verified" : "WRONG", time);
	MPI_Finalize();
	return 0;
}
