/* agenda_look.c - says what node 0 is doing, for the table of agenda.c, and begins what may begin
 * when some of it has ended. */
#include "vmm/node/agenda.h"

#include "vmm/node/cut/freeze.h"
#include "vmm/node/cut/turn.h"
#include "vmm/node/debugger.h"
#include "vmm/node/hosts/hosts.h"

static unsigned conditions(const struct node *node)
{
	bool saved = freeze_is_led(node), changed = hosts_one_goes(node);

	return (unsigned)node->ending << AGENDA_ENDS |
	       (unsigned)!node->running << AGENDA_STARTS |
	       (unsigned)debug_holds(node) << AGENDA_DEBUGGED |
	       (unsigned)freeze_holds(node) << AGENDA_STILL |
	       (unsigned)saved << AGENDA_SAVED |
	       (unsigned)changed << AGENDA_CHANGED |
	       (unsigned)hosts_host_0_goes(node) << AGENDA_YIELDS |
	       (unsigned)hosts_under_way(node) << AGENDA_CHANGE_ASKED |
	       (unsigned)moves_one_goes(node) << AGENDA_MOVED |
	       (unsigned)moves_asked(node) << AGENDA_MOVE_ASKED |
	       (unsigned)(turn_waits(node) && !saved && !changed) << AGENDA_SNAPSHOT_NEXT;
}

bool agenda_may(const struct node *node, enum agenda_operation operation)
{
	return agenda_judge(operation, conditions(node), NULL) == AGENDA_NO;
}

const char *agenda_why_not(const struct node *node, enum agenda_operation operation)
{
	enum agenda_condition because;

	return agenda_judge(operation, conditions(node), &because) == AGENDA_R
		       ? agenda_refusal(operation, because) : NULL;
}

enum agenda_condition agenda_waits_for(const struct node *node, enum agenda_operation operation)
{
	enum agenda_condition because = AGENDA_CONDITION_COUNT;

	agenda_judge(operation, conditions(node), &because);
	return because;
}

void agenda_done(struct node *node, enum agenda_condition ended)
{
	enum agenda_operation operation;

	for (unsigned n = 0; (operation = agenda_next(ended, n)) < AGENDA_OPERATION_COUNT; n++)
		switch (operation) {
		case AGENDA_MOVE: moves_begin(node); break;
		case AGENDA_CHANGE:
		case AGENDA_TURN: hosts_begin(node, operation); break;
		case AGENDA_SNAPSHOT: turn_begin(node); break;
		default: break; /* nothing waits for the others */
		}
}
