/* queens.c - in how many ways can n queens stand on an n x n board so that none attacks another?
 *
 *   queens [S|W|A] [--threads N]
 *
 * A tree search by work stealing: a thread has a stack of boards that are partly filled, works on
 * the newest, and when its stack is empty takes the oldest board of another thread's. How large the
 * tree below a board is nobody knows before. The number of ways must be the known one.
 */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "npb.h"

enum { STACK = 256, SPLIT_ROWS = 5 }; /* a board of so many queens is not split further */

static const struct class {
	int n;
	double ways; /* known */
} classes[] = { { 12, 14200 }, { 14, 365596 }, { 16, 14772512 } };

/* Queens stand in the first rows; bits say which columns of the next row they attack. */
struct board {
	unsigned columns, left, right; /* straight, and by the diagonals that go left and right */
	int rows;
};

struct worker {
	_Alignas(64) pthread_mutex_t mutex;
	int first, end; /* the stack: the oldest board, and behind the newest */
	struct board board[STACK];
	uint64_t ways; /* found by this worker */
	unsigned steals;
};

static int n, workers;
static unsigned all_columns;
static struct worker *worker;
static atomic_int unfinished; /* boards on stacks or being worked on */

/* ---- Stacks ---- */

static void push(struct worker *w, const struct board *b)
{
	pthread_mutex_lock(&w->mutex);
	if (w->end == STACK) {
		fprintf(stderr, "queens: a stack is full\n");
		exit(1);
	}
	w->board[w->end++] = *b;
	pthread_mutex_unlock(&w->mutex);
}

/* Take the newest board, or another's oldest; returns whether there was one. */
static bool pop(struct worker *w, bool is_own, struct board *b)
{
	bool found;

	pthread_mutex_lock(&w->mutex);
	found = w->first < w->end;
	if (found)
		*b = is_own ? w->board[--w->end] : w->board[w->first++];
	if (w->first == w->end)
		w->first = w->end = 0;
	pthread_mutex_unlock(&w->mutex);
	return found;
}

/* ---- Search ---- */

/* The board with one more queen, in the column whose bit is given. */
static struct board with_queen(const struct board *b, unsigned column)
{
	return (struct board){ b->columns | column, (b->left | column) << 1,
		(b->right | column) >> 1, b->rows + 1 };
}

static uint64_t count(const struct board *b)
{
	unsigned open = all_columns & ~(b->columns | b->left | b->right);
	uint64_t ways = 0;

	if (b->rows == n)
		return 1;
	for (; open; open &= open - 1) {
		struct board next = with_queen(b, open & -open);

		ways += count(&next);
	}
	return ways;
}

/* Work on a board: split it, or count. */
static void work_on(struct worker *me, const struct board *b)
{
	unsigned open = all_columns & ~(b->columns | b->left | b->right);

	if (b->rows >= SPLIT_ROWS) {
		me->ways += count(b);
	} else {
		for (; open; open &= open - 1) {
			struct board next = with_queen(b, open & -open);

			atomic_fetch_add(&unfinished, 1);
			push(me, &next);
		}
	}
	atomic_fetch_sub(&unfinished, 1);
}

static void *run_worker(void *argument)
{
	struct worker *me = argument;
	int number = (int)(me - worker);
	struct board b;

	while (atomic_load(&unfinished) > 0) {
		bool found = pop(me, true, &b);

		for (int i = 1; i < workers && !found; i++) {
			found = pop(&worker[(number + i) % workers], false, &b);
			me->steals += found;
		}
		if (found)
			work_on(me, &b);
		else
			sched_yield();
	}
	return NULL;
}

static void run(void)
{
	pthread_t thread[NPB_MAX_THREADS];

	atomic_store(&unfinished, 1);
	push(&worker[0], &(struct board){ 0 });
	for (int i = 0; i < workers; i++)
		if (pthread_create(&thread[i], NULL, run_worker, &worker[i])) {
			fprintf(stderr, "queens: no thread could be made\n");
			exit(1);
		}
	for (int i = 0; i < workers; i++)
		pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
	int c = npb_parse(argc, argv, "queens");
	double start, seconds, ways = 0;
	unsigned steals = 0;
	bool good;

	n = classes[c].n;
	all_columns = (1u << n) - 1;
	workers = omp_get_max_threads();
	worker = npb_allocate(workers, sizeof *worker);
	for (int i = 0; i < workers; i++)
		pthread_mutex_init(&worker[i].mutex, NULL);
	start = omp_get_wtime();
	run();
	seconds = omp_get_wtime() - start;
	for (int i = 0; i < workers; i++) {
		ways += (double)worker[i].ways;
		steals += worker[i].steals;
	}
	good = ways == classes[c].ways;
	printf("%-15s %.0f  known %.0f\n", "ways", ways, classes[c].ways);
	printf("%-15s %u\n", "steals", steals);
	return npb_report("queens", c, seconds, 1e-6 * ways, good);
}
