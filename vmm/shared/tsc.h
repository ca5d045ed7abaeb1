/* tsc.h - the frequency of this host's time-stamp counter. */
#ifndef VMM_SHARED_TSC_H
#define VMM_SHARED_TSC_H

#include <stdbool.h>
#include <stdint.h>

struct tsc_mark { uint64_t ticks, ns; };

/* Now, by the counter and by CLOCK_MONOTONIC_RAW, to within a few hundred ns. */
struct tsc_mark tsc_mark(void);

/* kHz between then and now; waits until 5 ms have passed, so that it is right to 1 in 10,000, and to 1 in 1,000,000 after
 * half a second. */
uint32_t tsc_khz_since(const struct tsc_mark *then);

/* Does the host itself believe that the counters of its processors run evenly and alike? */
bool tsc_trusted(void);

#endif
