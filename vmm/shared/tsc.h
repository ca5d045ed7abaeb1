/* tsc.h - the frequency of this host's time-stamp counter. */
#ifndef VMM_SHARED_TSC_H
#define VMM_SHARED_TSC_H

#include <stdbool.h>
#include <stdint.h>

struct tsc_mark { uint64_t ticks, ns; };

/* The current time, by the counter and by CLOCK_MONOTONIC_RAW; the two readings are at most a few
 * hundred ns apart. */
struct tsc_mark tsc_mark(void);

/* Returns the frequency between then and now, in kHz.  Waits until 5 ms have passed, for an error
 * of at most 1 in 10,000; after half a second it is 1 in 1,000,000. */
uint32_t tsc_khz_since(const struct tsc_mark *then);

/* Returns whether the host's kernel trusts the counters of its processors to run evenly and
 * alike. */
bool tsc_trusted(void);

#endif
