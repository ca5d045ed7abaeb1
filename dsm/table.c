/* table.c - the two tables as arrays, and the proof that they are full. */
#include "dsm/table.h"

#include "base/hostshm.h"

/* Completeness.  Each cell defines one enumerator named after it, so a cell given twice does not
 * compile; the product of all states and events then names each enumerator once, so a missing
 * cell does not compile. */
enum {
#define CELL(state, event, ...) NODE_HAS_##state##_##event,
#define NEVER(state, event, why) NODE_HAS_##state##_##event,
#include "dsm/node_table.def"
#undef CELL
#undef NEVER
	NODE_CELLS
};
enum {
#define CELL(state, event, ...) HOME_HAS_##state##_##event,
#define NEVER(state, event, why) HOME_HAS_##state##_##event,
#include "dsm/home_table.def"
#undef CELL
#undef NEVER
	HOME_CELLS
};
#define HAS(event, state) _Static_assert(NODE_HAS_##state##_##event >= 0, "a cell");
#define ALL(state, right, a) NODE_EVENTS(HAS, state)
NODE_STATES(ALL, )
#undef HAS
#undef ALL
#define HAS(event, state) _Static_assert(HOME_HAS_##state##_##event >= 0, "a cell");
#define ALL(state, a) HOME_EVENTS(HAS, state)
HOME_STATES(ALL, )
#undef HAS
#undef ALL
_Static_assert(NODE_CELLS == NODE_STATE_COUNT * NODE_EVENT_COUNT, "every cell once");
_Static_assert(HOME_CELLS == HOME_STATE_COUNT * HOME_EVENT_COUNT, "every cell once");

/* Prefix each of one to four action names: DO(NODE, A, B) is NODE_DO_A, NODE_DO_B. */
#define DO1(who, a) who##_DO_##a
#define DO2(who, a, b) DO1(who, a), DO1(who, b)
#define DO3(who, a, b, c) DO2(who, a, b), DO1(who, c)
#define DO4(who, a, b, c, d) DO3(who, a, b, c), DO1(who, d)
#define DO_N(a, b, c, d, n, ...) DO##n
#define DO(who, ...) DO_N(__VA_ARGS__, 4, 3, 2, 1, )(who, __VA_ARGS__)

const struct dsm_cell node_table[NODE_STATE_COUNT][NODE_EVENT_COUNT] = {
#define CELL(state, event, next, ...) \
	[NODE_##state][NODE_ON_##event] = { NODE_##next, { DO(NODE, __VA_ARGS__) }, 0 },
#define NEVER(state, event, why) [NODE_##state][NODE_ON_##event] = { NODE_##state, { 0 }, why },
#include "dsm/node_table.def"
#undef CELL
#undef NEVER
};

const struct dsm_cell home_table[HOME_STATE_COUNT][HOME_EVENT_COUNT] = {
#define CELL(state, event, next, ...) \
	[HOME_##state][HOME_ON_##event] = { HOME_##next, { DO(HOME, __VA_ARGS__) }, 0 },
#define NEVER(state, event, why) [HOME_##state][HOME_ON_##event] = { HOME_##state, { 0 }, why },
#include "dsm/home_table.def"
#undef CELL
#undef NEVER
};

const uint8_t node_state_right[NODE_STATE_COUNT] = {
#define X(state, right, a) [NODE_##state] = right,
	NODE_STATES(X, )
#undef X
};

const char *const node_state_name[NODE_STATE_COUNT] = {
#define X(state, right, a) [NODE_##state] = #state,
	NODE_STATES(X, )
#undef X
};
const char *const node_event_name[NODE_EVENT_COUNT] = {
#define X(event, a) [NODE_ON_##event] = #event,
	NODE_EVENTS(X, )
#undef X
};
const char *const home_state_name[HOME_STATE_COUNT] = {
#define X(state, a) [HOME_##state] = #state,
	HOME_STATES(X, )
#undef X
};
const char *const home_event_name[HOME_EVENT_COUNT] = {
#define X(event, a) [HOME_ON_##event] = #event,
	HOME_EVENTS(X, )
#undef X
};
