/* vigil.c - see vigil.h. */
#include "phoenix/net/vigil.h"

bool vigil_begins(struct vigil *v)
{
	if (!v->asleep)
		return true;
	v->asleep--;
	return false;
}

bool vigil_offers(const struct vigil *v, unsigned poll)
{
	return v->shared || poll > VIGIL_ALONE;
}

void vigil_answered(struct vigil *v, bool taken)
{
	v->shared = taken;
	v->prompt++;
}

void vigil_ends(struct vigil *v, bool late)
{
	unsigned next = 2 * v->in_vain + 1;

	v->in_vain = !late ? 0 : next < VIGIL_MOST_ASLEEP ? next : VIGIL_MOST_ASLEEP;
	v->asleep = v->in_vain;
}

bool vigil_is_prompt(const struct vigil *v)
{
	return v->prompt >= VIGIL_PROMPT;
}

void vigil_sleeps(struct vigil *v)
{
	v->prompt = 0;
}
