/* pipeline.c - blocks of data pass through a chain of threads.
 *
 *   pipeline [S|W|A] [--threads N]      N: at least 2
 *
 * The first thread makes the blocks, each further one mixes them, and the last one also adds up
 * what it sees. Between two neighbours there is a queue of bounded length: a mutex, and two
 * condition variables. So a block, once written by one thread, is read and written by the next, and
 * threads often sleep and wake each other. The sum must be that of the same work without threads.
 */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "npb.h"

enum { WORDS = 4096, BLOCKS = 16, QUEUE_LENGTH = 4, ROUNDS = 4 };

static const int blocks_of_class[] = { 500, 5000, 50000 };

struct block {
	uint32_t word[WORDS];
};

/* What waits for a stage. By queue 0, which can hold all blocks, the last stage gives them back to
 * the first.
 */
struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t not_empty, not_full;
	int first, length, capacity;
	struct block *block[BLOCKS];
};

static int stages, blocks;
static struct queue queues[NPB_MAX_THREADS]; /* by the stage that takes from it */
static uint64_t total;

/* ---- Queues ---- */

static void put(struct queue *q, struct block *b)
{
	pthread_mutex_lock(&q->mutex);
	while (q->length == q->capacity)
		pthread_cond_wait(&q->not_full, &q->mutex);
	q->block[(q->first + q->length++) % BLOCKS] = b;
	pthread_cond_signal(&q->not_empty);
	pthread_mutex_unlock(&q->mutex);
}

static struct block *take(struct queue *q)
{
	struct block *b;

	pthread_mutex_lock(&q->mutex);
	while (q->length == 0)
		pthread_cond_wait(&q->not_empty, &q->mutex);
	b = q->block[q->first];
	q->first = (q->first + 1) % BLOCKS;
	q->length--;
	pthread_cond_signal(&q->not_full);
	pthread_mutex_unlock(&q->mutex);
	return b;
}

/* ---- Work ---- */

static void make(struct block *b, int number)
{
	uint32_t word = (uint32_t)number * 2654435761u + 1;

	for (int i = 0; i < WORDS; i++)
		b->word[i] = word = word * 1664525 + 1013904223;
}

/* Mix each word with the one before, differently in each stage. */
static void mix(struct block *b, int stage)
{
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t before = (uint32_t)(stage * ROUNDS + round);

		for (int i = 0; i < WORDS; i++) {
			before = (b->word[i] ^ before) * 0x85ebca6bu;
			before ^= before >> 15;
			b->word[i] = before;
		}
	}
}

static uint64_t sum_of(const struct block *b)
{
	uint64_t sum = 0;

	for (int i = 0; i < WORDS; i++)
		sum = sum * 3 + b->word[i];
	return sum;
}

static void *run_stage(void *argument)
{
	int stage = (int)(intptr_t)argument;

	for (int i = 0; i < blocks; i++) {
		struct block *b = take(&queues[stage]);

		if (stage == 0)
			make(b, i);
		else
			mix(b, stage);
		if (stage == stages - 1)
			total += sum_of(b);
		put(&queues[(stage + 1) % stages], b);
	}
	return NULL;
}

static uint64_t expected_total(void)
{
	struct block *b = npb_allocate(1, sizeof *b);
	uint64_t sum = 0;

	for (int i = 0; i < blocks; i++) {
		make(b, i);
		for (int stage = 1; stage < stages; stage++)
			mix(b, stage);
		sum += sum_of(b);
	}
	return sum;
}

static void run(void)
{
	pthread_t thread[NPB_MAX_THREADS];

	for (intptr_t stage = 0; stage < stages; stage++)
		if (pthread_create(&thread[stage], NULL, run_stage, (void *)stage)) {
			fprintf(stderr, "pipeline: no thread could be made\n");
			exit(1);
		}
	for (int stage = 0; stage < stages; stage++)
		pthread_join(thread[stage], NULL);
}

int main(int argc, char **argv)
{
	int c = npb_parse(argc, argv, "pipeline");
	struct block *memory = npb_allocate(BLOCKS, sizeof *memory);
	double start, seconds;
	uint64_t expected;

	if (omp_get_max_threads() < 2)
		omp_set_num_threads(2);
	stages = omp_get_max_threads();
	blocks = blocks_of_class[c];
	for (int i = 0; i < stages; i++) {
		queues[i].capacity = i == 0 ? BLOCKS : QUEUE_LENGTH;
		pthread_mutex_init(&queues[i].mutex, NULL);
		pthread_cond_init(&queues[i].not_empty, NULL);
		pthread_cond_init(&queues[i].not_full, NULL);
	}
	for (int i = 0; i < BLOCKS; i++)
		put(&queues[0], &memory[i]);
	start = omp_get_wtime();
	run();
	seconds = omp_get_wtime() - start;
	expected = expected_total();
	printf("%-15s %016llx  expected %016llx\n", "sum", (unsigned long long)total,
		(unsigned long long)expected);
	return npb_report("pipeline", c, seconds, 1e-6 * blocks * WORDS * stages,
		total == expected);
}
