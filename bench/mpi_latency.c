/* mpi_latency.c - measures of MPI what phoenix_latency.c measures of the overlay: half round trips
 * by message size, and one-way bandwidth, between two processes.  Prints a line for each size, then
 * the bandwidth. */
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 3000, WARM = 300, BULK = 65536, BULK_COUNT = 4000 };
static const int sizes[] = { 1, 64, 1024, 4096, 16384, 65536 };
static char buf[BULK];

static void send(int to, int n) { MPI_Send(buf, n, MPI_CHAR, to, 1, MPI_COMM_WORLD); }
static void receive(int from, int n)
{
	MPI_Recv(buf, n, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double half_round_trip(int rank, int n)
{
	double start = 0;

	for (int i = 0; i < ROUNDS + WARM; i++) {
		if (i == WARM)
			start = MPI_Wtime();
		if (rank == 0)
			send(1, n);
		receive(!rank, n);
		if (rank == 1)
			send(0, n);
	}
	return (MPI_Wtime() - start) * 1e6 / ROUNDS / 2;
}

static double bandwidth(int rank)
{
	double start = MPI_Wtime();

	for (int i = 0; i < BULK_COUNT; i++)
		if (rank)
			receive(0, BULK);
		else
			send(1, BULK);
	if (rank)
		send(0, 1);
	else
		receive(1, 1);
	return (double)BULK * BULK_COUNT / (MPI_Wtime() - start) / 1e6;
}

int main(int argc, char **argv)
{
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		double us = half_round_trip(rank, sizes[k]);
		if (rank == 0)
			printf("%10d %12.1f\n", sizes[k], us);
	}
	double rate = bandwidth(rank);
	if (rank == 0)
		printf("%10s %12.0f\n", "MB/s", rate);
	MPI_Finalize();
	return 0;
}
