/* owner_life.c - see owner_life.h. */
#include "vmm/cli/run/owner_life.h"

#include <stddef.h>

static const struct cell {
	bool is_there;
	unsigned char next, action;
} table[OWNER_STATE_COUNT][OWNER_EVENT_COUNT] = {
#define LIFE(state, event, next, action) \
	[OWNER_##state][OWNER_ON_##event] = { true, OWNER_##next, OWNER_DO_##action },
#include "vmm/cli/run/owner_life.def"
};

enum owner_action owner_life(enum owner_state *state, enum owner_event event)
{
	const struct cell *cell = &table[*state][event];

	if (!cell->is_there)
		return OWNER_ACTION_COUNT;
	*state = (enum owner_state)cell->next;
	return (enum owner_action)cell->action;
}

#define NAME(name) #name,

const char *owner_state_name(enum owner_state state)
{
	static const char *const names[] = { OWNER_STATES(NAME) };

	return names[state];
}

const char *owner_event_name(enum owner_event event)
{
	static const char *const names[] = { OWNER_EVENTS(NAME) };

	return names[event];
}

enum owner_event owner_event_of(const struct standby_failure *failure)
{
	if (failure->is_over)
		return OWNER_ON_TAKEN;
	if (failure->was_told)
		return failure->may_go_on ? OWNER_ON_DOUBT : OWNER_ON_FAILED;
	return failure->is_there ? OWNER_ON_UNPREPARED : OWNER_ON_ALONE;
}
