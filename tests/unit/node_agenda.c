/* node_agenda.c - node 0's agenda (vmm/node/agenda.def): what may begin beside what, for every
 * combination of conditions, against the rules in words.
 */
#include <string.h>
#include "tests/unit/unit.h"
#include "vmm/node/agenda.h"

enum { ALL = 1 << AGENDA_CONDITION_COUNT };

static bool has(unsigned conditions, enum agenda_condition one) { return conditions >> one & 1; }

/* Requests: refused because of the machine's state alone, never because of what will end. */
static bool is_refused(enum agenda_operation operation, unsigned c)
{
	bool off = has(c, AGENDA_ENDS) || has(c, AGENDA_STARTS) || has(c, AGENDA_DEBUGGED);

	switch (operation) {
	case AGENDA_MOVE:
	case AGENDA_CHANGE:
	case AGENDA_TURN:
	case AGENDA_SNAPSHOT: return off;
	case AGENDA_DEBUGGER:
		return has(c, AGENDA_STARTS) || has(c, AGENDA_STILL) ||
		       has(c, AGENDA_CHANGE_ASKED) || has(c, AGENDA_MOVE_ASKED);
	default: return false;
	}
}

static bool waits(enum agenda_operation operation, unsigned c)
{
	bool changes = has(c, AGENDA_CHANGED) || has(c, AGENDA_YIELDS);
	bool saves = has(c, AGENDA_STILL) || has(c, AGENDA_SAVED);

	switch (operation) {
	case AGENDA_MOVE:
		return has(c, AGENDA_STILL) || has(c, AGENDA_MOVED) ||
		       has(c, AGENDA_SNAPSHOT_NEXT);
	case AGENDA_CHANGE: return saves || changes || has(c, AGENDA_SNAPSHOT_NEXT);
	case AGENDA_TURN: return saves || changes;
	case AGENDA_SNAPSHOT: return saves || has(c, AGENDA_CHANGED) || has(c, AGENDA_MOVED);
	case AGENDA_DEBUGGER: return false;
	case AGENDA_SAMPLE:
		return has(c, AGENDA_ENDS) || has(c, AGENDA_STARTS) || has(c, AGENDA_DEBUGGED) ||
		       saves || has(c, AGENDA_CHANGE_ASKED);
	case AGENDA_DECISION: return has(c, AGENDA_CHANGE_ASKED) || has(c, AGENDA_MOVE_ASKED);
	default: return false;
	}
}

static void all_combinations(void)
{
	for (unsigned c = 0; c < ALL; c++)
		for (unsigned i = 0; i < AGENDA_OPERATION_COUNT; i++) {
			enum agenda_operation operation = (enum agenda_operation)i;
			enum agenda_condition because = AGENDA_CONDITION_COUNT;
			enum agenda_verdict is = agenda_judge(operation, c, &because);
			enum agenda_verdict wanted = is_refused(operation, c) ? AGENDA_R
						     : waits(operation, c)    ? AGENDA_W
									      : AGENDA_NO;

			CU_ASSERT_EQUAL(is, wanted);
			CU_ASSERT_EQUAL(is, agenda_judge(operation, c, NULL));
			CU_ASSERT_EQUAL(because < AGENDA_CONDITION_COUNT, is != AGENDA_NO);
			CU_ASSERT(is == AGENDA_NO || has(c, because));
		}
}

/* Whoever is refused is told why. */
static void refusals(void)
{
	for (unsigned i = 0; i < AGENDA_CONDITION_COUNT; i++)
		for (unsigned op = AGENDA_MOVE; op <= AGENDA_SNAPSHOT; op++) {
			enum agenda_operation operation = (enum agenda_operation)op;
			bool is = agenda_judge(operation, 1u << i, NULL) == AGENDA_R;
			const char *why = agenda_refusal(operation, (enum agenda_condition)i);

			CU_ASSERT_EQUAL(is, strlen(why) > 0);
		}
}

/* What waits for a condition begins when that has ended: an operation that waits for it is in its
 * row, but for those that look again by themselves (SAMPLE, DECISION), and CHANGE, whose turn comes
 * as TURN, behind a snapshot, or by hosts.c itself, behind another change. */
static void nobody_is_forgotten(void)
{
	for (unsigned c = 0; c < AGENDA_CONDITION_COUNT; c++)
		for (unsigned op = AGENDA_MOVE; op <= AGENDA_SNAPSHOT; op++) {
			enum agenda_operation operation = (enum agenda_operation)op;
			bool found = false;

			if (agenda_judge(operation, 1u << c, NULL) != AGENDA_W)
				continue;
			if (operation == AGENDA_CHANGE || c == AGENDA_YIELDS ||
			    (operation == AGENDA_TURN && c == AGENDA_CHANGED))
				continue;
			/* a snapshot that stands still is being made, too */
			if (c == AGENDA_STILL && operation != AGENDA_MOVE)
				continue;
			for (unsigned n = 0; n < 3; n++)
				found |= agenda_next((enum agenda_condition)c, n) == operation;
			CU_ASSERT(found);
		}
}

/* A snapshot and a change take turns. */
static void turns(void)
{
	CU_ASSERT_EQUAL(agenda_next(AGENDA_SAVED, 0), AGENDA_TURN);
	CU_ASSERT_EQUAL(agenda_next(AGENDA_SAVED, 1), AGENDA_SNAPSHOT);
	CU_ASSERT_EQUAL(agenda_next(AGENDA_CHANGED, 0), AGENDA_SNAPSHOT);
	CU_ASSERT_EQUAL(agenda_next(AGENDA_MOVED, 0), AGENDA_SNAPSHOT); /* ahead of moves */
	CU_ASSERT_EQUAL(agenda_next(AGENDA_MOVED, 1), AGENDA_MOVE);
	CU_ASSERT_EQUAL(agenda_next(AGENDA_MOVED, 2), AGENDA_OPERATION_COUNT);
	CU_ASSERT_EQUAL(agenda_next(AGENDA_ENDS, 0), AGENDA_OPERATION_COUNT);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "all combinations", all_combinations },
		{ "refusals", refusals },
		{ "nobody is forgotten", nobody_is_forgotten },
		{ "turns", turns },
		UNIT_END
	};

	return UNIT_RUN("node 0's agenda", tests);
}
