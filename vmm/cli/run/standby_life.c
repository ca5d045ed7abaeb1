/* standby_life.c - see standby_life.h. */
#include "vmm/cli/run/standby_life.h"

static const struct cell {
	bool is_there;
	unsigned char next, action;
} table[STANDBY_STATE_COUNT][STANDBY_EVENT_COUNT] = {
#define LIFE(state, event, next, action) \
	[STANDBY_IS_##state][STANDBY_ON_##event] = { \
		true, STANDBY_IS_##next, STANDBY_DO_##action \
	},
#include "vmm/cli/run/standby_life.def"
};

enum standby_action standby_life(enum standby_state *state, enum standby_event event)
{
	const struct cell *cell = &table[*state][event];

	if (!cell->is_there)
		return STANDBY_ACTION_COUNT;
	*state = (enum standby_state)cell->next;
	return (enum standby_action)cell->action;
}

#define NAME(name) #name,

const char *standby_state_name(enum standby_state state)
{
	static const char *const names[] = { STANDBY_STATES(NAME) };

	return names[state];
}

const char *standby_event_name(enum standby_event event)
{
	static const char *const names[] = { STANDBY_EVENTS(NAME) };

	return names[event];
}
