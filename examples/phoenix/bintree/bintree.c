/* bintree.c - a binary tree of a given depth, the template of divide and conquer (PPoPP 2003,
 * section 6.1: depth 27).
 *
 * Each leaf adds one to a count and its number, and the square of that number, to two sums.  A leaf
 * that was visited twice, or never, changes at least one of them.
 *
 *   bintree [OPTIONS of crew.h] [DEPTH [WORK]]     WORK: how many rounds a leaf computes
 */
#include "examples/phoenix/crew/divide.h"

static long sizes[] = { 20, 100 };

static void leaf(uint64_t item, uint64_t sums[DIVIDE_SUMS])
{
	volatile uint64_t x = item;

	for (long i = 0; i < sizes[1]; i++)
		x = x * 6364136223846793005u + 1;
	sums[0]++;
	sums[1] += item;
	sums[2] += item * item;
}

static void done(const uint64_t sums[DIVIDE_SUMS])
{
	uint64_t n = 1ULL << sizes[0], sum = 0, squares = 0;

	crew_stop_clock();
	for (uint64_t i = 0; i < n; i++) {
		sum += i;
		squares += i * i;
	}
	crew_finish(sums[0] == n && sums[1] == sum && sums[2] == squares, "%llu leaves",
		    (unsigned long long)sums[0]);
}

int main(int argc, char **argv)
{
	crew_options(argc, argv, sizes, 2, "[DEPTH [WORK]]");
	struct divide tree = { .items = 1ULL << sizes[0],
			       .leaves_per_step = 2000,
			       .leaf = leaf,
			       .done = done };
	return divide_run("bintree", 0, &tree);
}
