/* table.h - the page protocol as two full tables, state x event -> next state and actions.
 *
 * One table is a page as a node sees it (node_table.def), the other a page as its home sees it
 * (home_table.def); lists.h names their states, events and actions.  They are data: table.c
 * makes arrays of them, and a cell that is missing or given twice does not compile.  An
 * impossible cell says why it is impossible; meeting one at run time is a bug of ours and stops
 * the process with that sentence.  dsm_node.c and home.c turn messages into events and carry the
 * actions out.
 */
#ifndef DSM_TABLE_H
#define DSM_TABLE_H

#include <stdint.h>
#include "dsm/lists.h"

enum node_state {
#define X(state, right, a) NODE_##state,
	NODE_STATES(X, )
#undef X
	NODE_STATE_COUNT
};
enum node_event {
#define X(event, a) NODE_ON_##event,
	NODE_EVENTS(X, )
#undef X
	NODE_EVENT_COUNT
};
enum node_action {
	NODE_DO_NOTHING,
#define X(action) NODE_DO_##action,
	NODE_ACTIONS(X)
#undef X
};
enum home_state {
#define X(state, a) HOME_##state,
	HOME_STATES(X, )
#undef X
	HOME_STATE_COUNT
};
enum home_event {
#define X(event, a) HOME_ON_##event,
	HOME_EVENTS(X, )
#undef X
	HOME_EVENT_COUNT
};
enum home_action {
	HOME_DO_NOTHING,
#define X(action) HOME_DO_##action,
	HOME_ACTIONS(X)
#undef X
};

enum { CELL_ACTIONS = 4 };

struct dsm_cell {
	uint8_t next;
	uint8_t actions[CELL_ACTIONS]; /* carried out in this order; 0 ends them */
	const char *impossible;	       /* why, or NULL */
};

extern const struct dsm_cell node_table[NODE_STATE_COUNT][NODE_EVENT_COUNT];
extern const struct dsm_cell home_table[HOME_STATE_COUNT][HOME_EVENT_COUNT];
extern const uint8_t node_state_right[NODE_STATE_COUNT]; /* enum page_right of the local CPUs */
extern const char *const node_state_name[NODE_STATE_COUNT],
	*const node_event_name[NODE_EVENT_COUNT];
extern const char *const home_state_name[HOME_STATE_COUNT],
	*const home_event_name[HOME_EVENT_COUNT];

#endif
