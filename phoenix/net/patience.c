/* patience.c - see patience.h. */
#include "phoenix/net/patience.h"

static void let_pass(struct patience *p, uint64_t now)
{
	uint64_t share;

	if (now < p->at_us)
		now = p->at_us;
	share = (now - p->at_us) / PATIENCE_SHARE;
	if (share >= p->owed_us) {
		p->owed_us = 0;
		p->at_us = now;
	} else {	/* the rest of the division is not lost */
		p->owed_us -= share;
		p->at_us += share * PATIENCE_SHARE;
	}
}

void patience_spend(struct patience *p, uint64_t now, uint64_t cost_us)
{
	let_pass(p, now);
	p->owed_us += cost_us;
}

void patience_give_back(struct patience *p, uint64_t cost_us)
{
	p->owed_us -= cost_us < p->owed_us ? cost_us : p->owed_us;
}

uint64_t patience_until(struct patience *p, uint64_t now)
{
	let_pass(p, now);
	return p->owed_us < PATIENCE_BURST_US
		       ? 0
		       : now + (p->owed_us - PATIENCE_BURST_US + 1) * PATIENCE_SHARE;
}
