/* passes.c - memory that is written in one order alone, so that a copy of it from one moment can be
 * told from one of several moments.  Pass after pass writes its number into all pages, in order,
 * and checks that each holds the number of the pass before.  If a machine is saved meanwhile, and
 * goes on from there, a page that is not of the same moment as the others is too new or too old.
 *
 *   passes [MIB]       default: 8; prints "begun" after the first pass, and ends with the line of
 *                      input that it waits for
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include "tests/guest/check.h"

enum { THREADS = 2, WORDS = 1024 /* in a page */, LOOKED_AT = 341 /* words apart */ };

static _Atomic bool over;
static _Atomic unsigned begun;
static unsigned mib = 8;

static bool pass(uint32_t *at, uint32_t number)
{
	for (uint32_t *end = at + (size_t)mib * 256 * WORDS; at < end; at += WORDS)
		for (unsigned i = 0; i < WORDS; i += LOOKED_AT) {
			if (at[i] != number - 1)
				return false;
			at[i] = number;
		}
	return true;
}

static void *make_passes(void *arg)
{
	/* MAP_POPULATE: no page is first found to be shared with zeroes */
	uint32_t *at = mmap(NULL, (size_t)mib << 20, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint32_t number = 1;
	bool good = at != MAP_FAILED && pass(at, number);

	(void)arg;
	begun++;
	while (good && !over)
		good = pass(at, ++number);
	return good ? arg : NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	char line[80];
	void *good;

	if (argc > 1)
		mib = strtoul(argv[1], NULL, 10);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, make_passes, &begun);
	while (begun < THREADS)
		usleep(1000);
	printf("begun\n");
	fflush(stdout);
	expect("a line comes", fgets(line, sizeof line, stdin));
	over = true;
	for (unsigned i = 0; i < THREADS; i++)
		expect("every page is of its pass", pthread_join(thread[i], &good) == 0 && good);
	return check_result();
}
