/* core.c - reports, random numbers, and how late nodes run. */
#include <stdarg.h>
#include <stdio.h>
#include "phoenix/core/core.h"

uint64_t core_random(struct phnx *ph)
{
	uint64_t v;

	ph->ops->random(ph->ctx, &v, sizeof v);
	return v;
}

void core_report(struct phnx *ph, int error, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	ph->ops->report(ph->ctx, error, text);
}

/* Where many nodes share a processor, each node runs late (TRICKS: lateness).  Other nodes may
 * then be about to do what they seem not to do, so a node that takes a pause for an end must
 * wait for a longer pause.  A node measures its own lateness and assumes that all nodes are as
 * late.  The measure halves each second unless it is confirmed.  A node that was suspended for
 * long counts as MOST_LATE. */
void core_note_lateness(struct phnx *ph, uint64_t now, unsigned n_links)
{
	uint64_t late = ph->due && now > ph->due ? now - ph->due : 0;
	uint64_t own_work = LEAST_LATE + (uint64_t)n_links * LEAST_LATE_PER_LINK;

	late = late < MOST_LATE ? late : MOST_LATE;
	if (late < own_work || late < core_lateness(ph, now))
		return;
	ph->late_us = late;
	ph->late_at = now;
}

uint64_t core_lateness(const struct phnx *ph, uint64_t now)
{
	uint64_t seconds = (now - ph->late_at) / 1000000;

	return seconds < 64 ? ph->late_us >> seconds : 0;
}
