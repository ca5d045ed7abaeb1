/* mpi_lu.c - the LU factorisation of examples/phoenix/lu with MPI: the same matrix, blocks, cyclic
 * mapping and local steps. */
#include <mpi.h>
#include <stdio.h>
#include "examples/phoenix/lu/kernel.h"

enum { MAX_BLOCKS = 64 };

static int rank, n_ranks, n_blocks, width;
static double *blocks[MAX_BLOCKS][MAX_BLOCKS];	/* this rank's blocks, and copies of others' */

static int owner(int i, int j) { return (i * n_blocks + j) % n_ranks; }

static double *room(int i, int j)
{
	if (!blocks[i][j])
		blocks[i][j] = malloc((size_t)(width * width) * sizeof(double));
	if (!blocks[i][j])
		MPI_Abort(MPI_COMM_WORLD, 1);
	return blocks[i][j];
}

static void broadcast(int i, int j)
{
	MPI_Bcast(room(i, j), width * width, MPI_DOUBLE, owner(i, j), MPI_COMM_WORLD);
}

static void factor(void)
{
	for (int k = 0; k < n_blocks; k++) {
		if (owner(k, k) == rank)
			block_factor(blocks[k][k], width);
		broadcast(k, k);
		for (int i = k + 1; i < n_blocks; i++) {
			if (owner(i, k) == rank)
				block_solve_right(blocks[i][k], blocks[k][k], width);
			if (owner(k, i) == rank)
				block_solve_left(blocks[k][i], blocks[k][k], width);
		}
		for (int i = k + 1; i < n_blocks; i++) {
			broadcast(i, k);
			broadcast(k, i);
		}
		for (int i = k + 1; i < n_blocks; i++)
			for (int j = k + 1; j < n_blocks; j++)
				if (owner(i, j) == rank)
					block_update(blocks[i][j], blocks[i][k], blocks[k][j],
						     width);
	}
}

static double factored(long i, long j)
{
	return blocks[i / width][j / width][i % width * width + j % width];
}

int main(int argc, char **argv)
{
	long size = argc > 1 ? atol(argv[1]) : 512;

	width = argc > 2 ? atoi(argv[2]) : 32;
	n_blocks = (int)(size / width);
	if (size % width || n_blocks > MAX_BLOCKS)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
	for (int i = 0; i < n_blocks; i++)
		for (int j = 0; j < n_blocks; j++)
			if (owner(i, j) == rank)
				block_fill(room(i, j), i, j, width, size);
	MPI_Barrier(MPI_COMM_WORLD);
	double start = MPI_Wtime();
	factor();	/* every rank has every block after this */
	MPI_Barrier(MPI_COMM_WORLD);
	double time = MPI_Wtime() - start;
	if (rank == 0)
		printf("mpi_lu: %ld x %ld in blocks of %d: %s, %.3f s\n", size, size, width,
		       residual(size, factored) < 1e-9 ? "verified" : "WRONG", time);
	MPI_Finalize();
	return 0;
}
