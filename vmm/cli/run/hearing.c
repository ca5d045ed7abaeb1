/* hearing.c - see hearing.h. */
#include "vmm/cli/run/hearing.h"

void hearing_begin(struct hearing *h, uint64_t every_ns, uint64_t now)
{
	*h = (struct hearing){ .every_ns = every_ns,
			       .heard_ns = now,
			       .due_ns = now + every_ns };
}

/* Returns how much to leave out, if the process looks at its timer now. */
static uint64_t late_until(const struct hearing *h, uint64_t now)
{
	uint64_t since = h->due_ns > h->heard_ns ? h->due_ns : h->heard_ns;

	return h->late_ns + (now > since ? now - since : 0);
}

void hearing_ticks(struct hearing *h, uint64_t now)
{
	h->late_ns = late_until(h, now);
	h->due_ns = now + h->every_ns;
}

void hearing_hears(struct hearing *h, uint64_t now)
{
	h->heard_ns = now;
	h->late_ns = 0;
}

uint64_t hearing_silent_ns(const struct hearing *h, uint64_t now)
{
	return now - h->heard_ns - late_until(h, now);
}
