/* silence.h - how long each part of a machine may be silent before the others take it for lost.
 *
 * All these times are here, because safety depends on their order alone.  When the network is cut,
 * each side must know of it before the other may go on with the machine; and a process that merely
 * runs late must not be lost.  A row:
 *
 *   daemon   a node daemon that the others have not heard for so long is lost; on their side of a
 *            cut they have then ended, or have told the owner, which stops its machine
 *   alive    owner and standby each say now and then that they are alive
 *   doubt    an owner that loses a host, and has not heard its standby for so long, no longer
 *            relies on that: it goes on only with the votes of half of the hosts (quorum.def)
 *   standby  a standby that has not heard its owner for so long, while it ran itself (hearing.h),
 *            takes it for lost, and goes on only with the votes of more than half of the hosts, or
 *            on the other one of two
 *   looks    how long a standby then watches the machine's processes on its own computer: if they
 *            do not end, the owner is alive.  After their end it waits as long again for the votes
 *            of hosts that still belong to the owner
 *
 * PROMPT is for machines that have a checkpoint: a loss costs the way back alone, which then begins
 * and ends within some seconds.  Where a loss ends the machine, PATIENT is better: an overloaded
 * computer may not run a daemon for seconds. */
#ifndef VMM_SHARED_SILENCE_H
#define VMM_SHARED_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

#define SILENCES(X) \
	/* in ms   daemon  alive  doubt  standby  looks */ \
	X(PATIENT, 10000,  2000,  6000,  15000,   15000) \
	X(PROMPT,  3000,   500,   1500,  5000,    8000)

enum silence_kind {
#define SILENCE(name, ...) SILENCE_##name,
	SILENCES(SILENCE)
#undef SILENCE
};

struct silence { uint32_t daemon_ms, alive_ms, doubt_ms, standby_ms, looks_ms; };

enum {
	/* how often a daemon sends to each of the others, and checks who is silent (Phoenix) */
	SILENCE_PING_MS = 500,
	/* how late a process that is ready may run; bench/notebook/checkpoints.md */
	SILENCE_LATE_MS = 1000,
	/* from a daemon's decision to end until a standby has seen that all is over there */
	SILENCE_END_MS = 3000,
};

#define SILENCE(name, daemon, alive, doubt, standby, looks) \
	/* the next messages of a daemon that runs late arrive before it is lost */ \
	_Static_assert(daemon >= 2 * (SILENCE_PING_MS + SILENCE_LATE_MS), #name); \
	_Static_assert(doubt >= 3 * alive, #name); \
	/* a cut between an owner and its standby, who was heard just before: when the owner's \
	 * daemons notice, the owner doubts the standby */ \
	_Static_assert(doubt + SILENCE_PING_MS + SILENCE_LATE_MS <= daemon, #name); \
	/* and that is before the standby goes on, which had not heard the owner just before */ \
	_Static_assert(standby >= daemon + SILENCE_PING_MS + alive + SILENCE_LATE_MS, #name); \
	/* a standby that has lost its owner at the first moment watches until its own computer's \
	 * daemon has noticed, too */ \
	_Static_assert(looks >= \
		       daemon + SILENCE_PING_MS + SILENCE_LATE_MS + SILENCE_END_MS, #name);
SILENCES(SILENCE)
#undef SILENCE

/* An owner that is awake has noticed a cut, and decided, before this time has passed since its
 * standby received something from it; the standby does not take over before.  After a longer time
 * without an answer the owner stood still, and the standby may have taken over. */
static inline uint32_t silence_gone_on_ms(const struct silence *silence)
{
	return silence->daemon_ms + SILENCE_PING_MS + SILENCE_LATE_MS;
}

static inline const struct silence *silence_of(enum silence_kind kind)
{
	static const struct silence all[] = {
#define SILENCE(name, ...) { __VA_ARGS__ },
		SILENCES(SILENCE)
#undef SILENCE
	};

	return &all[kind];
}

/* Return the times for a machine that takes a checkpoint so often; 0: it takes none. */
static inline const struct silence *silence_for(uint32_t checkpoint_ms)
{
	return silence_of(checkpoint_ms ? SILENCE_PROMPT : SILENCE_PATIENT);
}

#endif
