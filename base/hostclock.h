/* hostclock.h - the machine's clock on one host: a linear function of the host's CLOCK_MONOTONIC,
 * in shared memory, which all of the host's processes read, VM processes too.
 *
 * If all hosts are on one computer, the line never changes after the machine's start.  On several
 * computers the daemon changes its rate a little every few seconds, so that it follows node 0's
 * clock (vmm/node/clock/clock_sync.c).  The line is turned about its current value, and its rate
 * stays near 1, so the clock never jumps, stops or goes back.  A reader that finds the line
 * changing reads again.  Otherwise one CPU could use the old line a moment longer than another CPU,
 * which would then be behind.
 */
#ifndef BASE_HOSTCLOCK_H
#define BASE_HOSTCLOCK_H

#include <stdatomic.h>
#include "base/types.h"

/* The clock showed `machine_ns` at `from_ns` of CLOCK_MONOTONIC; since then it runs faster than
 * CLOCK_MONOTONIC by `faster` * 2^-32. */
struct clock_line { uint64_t from_ns, machine_ns; int64_t faster; };

struct host_clock {
	_Atomic uint32_t turns; /* odd: the line is changing now */
	_Atomic uint64_t from_ns, machine_ns;
	_Atomic int64_t faster;
};

static inline uint64_t clock_line_at(const struct clock_line *line, uint64_t monotonic_ns)
{
	int64_t passed = (int64_t)(monotonic_ns - line->from_ns);

	return line->machine_ns + (uint64_t)passed +
	       (uint64_t)((__int128)passed * line->faster >> 32);
}

/* Return when the line will show `machine_ns`, rounded down: a little early rather than late. */
static inline uint64_t clock_line_when(const struct clock_line *line, uint64_t machine_ns)
{
	int64_t left = (int64_t)(machine_ns - line->machine_ns);

	return line->from_ns + (uint64_t)left - (uint64_t)((__int128)left * line->faster >> 32);
}

/* Return the line without checking `turns`; for the daemon, which changes it. */
static inline struct clock_line hostclock_line(const struct host_clock *clock)
{
	return (struct clock_line){ atomic_load_explicit(&clock->from_ns, memory_order_relaxed),
				    atomic_load_explicit(&clock->machine_ns, memory_order_relaxed),
				    atomic_load_explicit(&clock->faster, memory_order_relaxed) };
}

/* Return the line, and the value of CLOCK_MONOTONIC while it is valid. (TRICKS: clock-turns) */
static inline struct clock_line hostclock_read(const struct host_clock *clock,
					       uint64_t (*monotonic_ns)(void), uint64_t *now_ns)
{
	for (;;) {
		uint32_t turns = atomic_load(&clock->turns);
		struct clock_line line = hostclock_line(clock);

		*now_ns = monotonic_ns();
		atomic_thread_fence(memory_order_seq_cst);
		if (!(turns & 1) && atomic_load(&clock->turns) == turns)
			return line;
		__builtin_ia32_pause();
	}
}

static inline uint64_t hostclock_now(const struct host_clock *clock, uint64_t (*monotonic_ns)(void))
{
	uint64_t now_ns;
	struct clock_line line = hostclock_read(clock, monotonic_ns, &now_ns);

	return clock_line_at(&line, now_ns);
}

/* Return when a timer of CLOCK_MONOTONIC must fire for a time of the machine's clock. */
static inline uint64_t hostclock_when(const struct host_clock *clock,
				      uint64_t (*monotonic_ns)(void), uint64_t machine_ns)
{
	uint64_t now_ns;
	struct clock_line line = hostclock_read(clock, monotonic_ns, &now_ns);

	return clock_line_when(&line, machine_ns);
}

/* For the daemon alone: set the line, before any process reads it; change the rate from now on. */
static inline void hostclock_set(struct host_clock *clock, struct clock_line line)
{
	atomic_store(&clock->from_ns, line.from_ns);
	atomic_store(&clock->machine_ns, line.machine_ns);
	atomic_store(&clock->faster, line.faster);
}

static inline void hostclock_turn(struct host_clock *clock, uint64_t (*monotonic_ns)(const void *),
				  const void *context, int64_t faster)
{
	struct clock_line line = hostclock_line(clock);
	uint64_t now_ns;

	atomic_fetch_add(&clock->turns, 1);
	now_ns = monotonic_ns(context);
	hostclock_set(clock, (struct clock_line){ now_ns, clock_line_at(&line, now_ns), faster });
	atomic_fetch_add(&clock->turns, 1);
}

#endif
