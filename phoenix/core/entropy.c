/* entropy.c - random bytes of the host. */
#include <sys/random.h>
#include "phoenix/core/entropy.h"

void entropy_fill(void *buf, size_t n)
{
	while (getrandom(buf, n, 0) != (ssize_t)n)
		;
}

uint64_t entropy_u64(void)
{
	uint64_t v;

	entropy_fill(&v, sizeof v);
	return v;
}
