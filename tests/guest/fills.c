/* fills.c - one processor fills a large area, and then reads all of it; twice.  Prints how long
 * each part took on standard error.
 *
 *   fills [MIB]      default 64
 */
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include "tests/guest/check.h"

enum { PAGE = 4096, WORDS = PAGE / 4, ROUNDS = 2 };

static uint32_t stamp(uint32_t page, unsigned round)
{
	return page * 2654435761u + round;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void fill(uint32_t *area, uint32_t pages, unsigned round)
{
	for (uint32_t page = 0; page < pages; page++)
		for (unsigned word = 0; word < WORDS; word++)
			area[page * WORDS + word] = stamp(page, round) + word;
}

static bool is_filled(const uint32_t *area, uint32_t pages, unsigned round)
{
	for (uint32_t page = 0; page < pages; page++)
		for (unsigned word = 0; word < WORDS; word++)
			if (area[page * WORDS + word] != stamp(page, round) + word)
				return false;
	return true;
}

int main(int argc, char **argv)
{
	uint32_t pages = (argc > 1 ? (uint32_t)atoi(argv[1]) : 64) * 256, *area;
	double began = now(), filled;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof set, &set);
	area = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (!expect("a large area", area != MAP_FAILED))
		return check_result();
	for (unsigned round = 0; round < ROUNDS; round++) {
		fill(area, pages, round);
		filled = now();
		expect("all of it is what was written", is_filled(area, pages, round));
		fprintf(stderr, "written in %.1f s, read in %.1f s\n", filled - began,
			now() - filled);
		began = now();
	}
	return check_result();
}
