/* threads.c - threads of one process: mutexes, condition variables, thread-local storage, atomics,
 * many short-lived threads. */
#include <pthread.h>
#include <semaphore.h>
#include "tests/guest/check.h"

enum { THREADS = 8, ROUNDS = 2000, TURNS = 200, SHORT_LIVES = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int locked_count, turn;
static _Atomic int atomic_count, wrong_tls;
static __thread int own = 17;

static void *count(void *number)
{
	int me = (int)(intptr_t)number;

	own = me;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		locked_count++;
		pthread_mutex_unlock(&lock);
		atomic_count++;
		if (own != me)
			wrong_tls++;
	}
	return (void *)(intptr_t)(me * 3);
}

static void test_counting(void)
{
	pthread_t id[THREADS];
	bool results = true;
	void *result;

	for (int i = 0; i < THREADS; i++)
		expect("a thread starts",
		       pthread_create(&id[i], NULL, count, (void *)(intptr_t)i) == 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(id[i], &result);
		results = results && (intptr_t)result == i * 3;
	}
	expect("each thread returned its result", results);
	expect("a mutex loses no count", locked_count == THREADS * ROUNDS);
	expect("an atomic loses no count", atomic_count == THREADS * ROUNDS);
	expect("thread-local storage is each thread's own", wrong_tls == 0 && own == 17);
}

static void *take_turns(void *number)
{
	int me = (int)(intptr_t)number;

	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&lock);
		while (turn % 2 != me)
			pthread_cond_wait(&turned, &lock);
		turn++;
		pthread_cond_broadcast(&turned);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void test_turns(void)
{
	pthread_t id[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&id[i], NULL, take_turns, (void *)(intptr_t)i);
	for (int i = 0; i < 2; i++)
		pthread_join(id[i], NULL);
	expect("two threads took turns by a condition variable", turn == 2 * TURNS);
}

static sem_t semaphore;

static void *post(void *unused)
{
	(void)unused;
	sem_post(&semaphore);
	return NULL;
}

static void test_short_lives(void)
{
	int waited = 0;

	sem_init(&semaphore, 0, 0);
	for (int i = 0; i < SHORT_LIVES; i++) {
		pthread_t id;

		if (pthread_create(&id, NULL, post, NULL))
			break;
		waited += sem_wait(&semaphore) == 0;
		pthread_join(id, NULL);
	}
	expect("a hundred short threads, each posted a semaphore", waited == SHORT_LIVES);
}

int main(void)
{
	test_counting();
	test_turns();
	test_short_lives();
	return check_result();
}
