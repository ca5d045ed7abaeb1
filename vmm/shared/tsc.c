/* tsc.c - see tsc.h. */
#include "vmm/shared/tsc.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

enum { LEAST_NS = 5000000, TRIES = 8 };

/* Reads the clock between two readings of the counter.  Of some tries, the one with the closest
 * pair counts. */
struct tsc_mark tsc_mark(void)
{
	struct tsc_mark best = { 0 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		struct timespec t;
		uint64_t before = __rdtsc(), after;

		clock_gettime(CLOCK_MONOTONIC_RAW, &t);
		after = __rdtsc();
		if (after - before >= least)
			continue;
		least = after - before;
		best = (struct tsc_mark){ before + least / 2,
					  t.tv_sec * 1000000000ull + t.tv_nsec };
	}
	return best;
}

uint32_t tsc_khz_since(const struct tsc_mark *then)
{
	struct tsc_mark now = tsc_mark();

	while (now.ns - then->ns < LEAST_NS) {
		nanosleep(&(struct timespec){ .tv_nsec = LEAST_NS - (now.ns - then->ns) }, NULL);
		now = tsc_mark();
	}
	return (uint32_t)((unsigned __int128)(now.ticks - then->ticks) * 1000000 /
			  (now.ns - then->ns));
}

bool tsc_trusted(void)
{
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/available_clocksource", "r");
	char names[256] = "";
	bool trusted = false;

	if (!f)
		return false;
	if (fgets(names, sizeof names, f))
		for (char *name = strtok(names, " \n"); name; name = strtok(NULL, " \n"))
			trusted |= !strcmp(name, "tsc");
	fclose(f);
	return trusted;
}
