/* owner_life.c - the life of a machine's owner (vmm/cli/run/owner_life.def): the ways through it,
 * and what holds for each state and event.
 */
#include "tests/unit/unit.h"
#include "vmm/cli/run/owner_life.h"

static enum owner_state state;

/* The event comes: does this action follow, and this state? */
static bool then(enum owner_event event, enum owner_action action, enum owner_state next)
{
	return owner_life(&state, event) == action && state == next;
}

#define THEN(event, action, next) \
	CU_ASSERT(then(OWNER_ON_##event, OWNER_DO_##action, OWNER_##next))

static void on_one_computer(void)
{
	state = OWNER_STARTS;
	THEN(THERE, NOTHING, RUNS);
	THEN(LOST, GO_BACK, GATHERS);
	THEN(GATHERED, LOAD, RETURNS);
	THEN(LOST, GO_BACK, GATHERS);
	THEN(GATHERED, LOAD, RETURNS);
	THEN(THERE, NOTHING, RUNS);
	THEN(ASKED, LEAVE, LEAVES);
	THEN(STILL, HAND_OVER, STANDS);
	THEN(MOVE, RELOAD, MOVES);
	THEN(LOST, GO_BACK, MOVES); /* the request is kept */
	THEN(GATHERED, LOAD, MOVES);
	THEN(THERE, SAY_GONE, RUNS);
}

static void to_a_standby(void)
{
	state = OWNER_RUNS;
	THEN(ASKED, LEAVE, LEAVES);
	THEN(ALONE, LOOK, LEAVES); /* another one may stand by */
	THEN(STILL, HAND_OVER, STANDS);
	THEN(GO, HAND, HANDED);
	THEN(LOST, NOTHING, HANDED);
	THEN(UP, LINGER, AWAY);
	THEN(LOST, NOTHING, AWAY);
}

static void the_standby_does_not_go_on(void)
{
	state = OWNER_HANDED;
	THEN(FAILED, START_AGAIN, GATHERS);
	THEN(GATHERED, LOAD, RETURNS);
	THEN(THERE, NOTHING, RUNS);
	state = OWNER_HANDED; /* it may have gone on */
	THEN(DOUBT, END, AWAY);
}

static void host_0_stays(void)
{
	state = OWNER_LEAVES;
	THEN(UNPREPARED, STAY, RUNS);
	THEN(STILL, THAW, RUNS); /* the last checkpoint was under way */
	state = OWNER_LEAVES;
	THEN(TROUBLE, STAY, RUNS);
	state = OWNER_STANDS;
	THEN(ALONE, STAY_THAW, RUNS);
	state = OWNER_STANDS;
	THEN(UNPREPARED, STAY_THAW, RUNS);
}

static void failures(void)
{
	for (unsigned n = 0; n < 16; n++) {
		const struct standby_failure f = { n & 1, n & 2, n & 4, n & 8 };
		enum owner_event event = owner_event_of(&f);

		CU_ASSERT_EQUAL(event == OWNER_ON_TAKEN, f.is_over);
		CU_ASSERT_EQUAL(event == OWNER_ON_DOUBT,
				!f.is_over && f.was_told && f.may_go_on);
		CU_ASSERT_EQUAL(event == OWNER_ON_FAILED,
				!f.is_over && f.was_told && !f.may_go_on);
		CU_ASSERT_EQUAL(event == OWNER_ON_UNPREPARED,
				!f.is_over && !f.was_told && f.is_there);
	}
}

/* What holds of a row, whichever it is. */
static void check_row(enum owner_state from, enum owner_event event, enum owner_state to,
		      enum owner_action action)
{
	bool thaws = action == OWNER_DO_THAW || action == OWNER_DO_STAY_THAW;
	bool stays = action == OWNER_DO_STAY || action == OWNER_DO_STAY_THAW;

	/* one machine: what may be another owner's is not started here */
	if (from == OWNER_AWAY)
		CU_ASSERT(to == OWNER_AWAY && action == OWNER_DO_NOTHING);
	if (event == OWNER_ON_TAKEN || event == OWNER_ON_DOUBT)
		CU_ASSERT(to == OWNER_AWAY && action == OWNER_DO_END);
	if (from == OWNER_HANDED)
		CU_ASSERT(to == OWNER_HANDED || to == OWNER_AWAY || event == OWNER_ON_FAILED);
	/* a machine that stands still goes on, here or elsewhere */
	if (from == OWNER_STANDS && to == OWNER_RUNS)
		CU_ASSERT_EQUAL(action, OWNER_DO_STAY_THAW);
	if (event == OWNER_ON_STILL && to != OWNER_STANDS)
		CU_ASSERT(thaws);
	/* who asked for host 0 to leave gets an answer, and one alone */
	if (owner_leaves(from) && to == OWNER_RUNS)
		CU_ASSERT(stays);
	if (stays)
		CU_ASSERT(owner_leaves(from) && to == OWNER_RUNS);
	/* it is loaded only when all of its processes have ended, from a checkpoint */
	if (action == OWNER_DO_LOAD || action == OWNER_DO_RELOAD)
		CU_ASSERT(owner_has_stopped(to) && (owner_has_stopped(from) ||
						    from == OWNER_STANDS));
	/* a lost host has no effect on a machine that is another owner's alone */
	if (event == OWNER_ON_LOST)
		CU_ASSERT_EQUAL(action == OWNER_DO_GO_BACK,
				from != OWNER_HANDED && from != OWNER_AWAY);
	if (event == OWNER_ON_THERE)
		CU_ASSERT_EQUAL(to, OWNER_RUNS);
}

static void each_cell(void)
{
	unsigned rows = 0;

	for (unsigned from = 0; from < OWNER_STATE_COUNT; from++)
		for (unsigned event = 0; event < OWNER_EVENT_COUNT; event++) {
			enum owner_state to = (enum owner_state)from;
			enum owner_action action = owner_life(&to, (enum owner_event)event);

			rows += action != OWNER_ACTION_COUNT;
			if (action != OWNER_ACTION_COUNT)
				check_row((enum owner_state)from, (enum owner_event)event, to,
					  action);
			else if (to != from)
				CU_FAIL("an event that cannot come changes the state");
		}
#define LIFE(...) rows--;
#include "vmm/cli/run/owner_life.def"
	CU_ASSERT_EQUAL(rows, 0); /* no two rows for one cell */
}

/* Wherever a host can be lost, there is a row for it; and from each state the end of the life, or a
 * running machine, can be reached. */
static void no_dead_end(void)
{
	bool good[OWNER_STATE_COUNT] = { [OWNER_RUNS] = true, [OWNER_AWAY] = true };
	enum owner_state next;

	for (unsigned round = 0; round < OWNER_STATE_COUNT; round++)
		for (unsigned from = 0; from < OWNER_STATE_COUNT; from++)
			for (unsigned event = 0; event < OWNER_EVENT_COUNT; event++) {
				next = (enum owner_state)from;
				owner_life(&next, (enum owner_event)event);
				good[from] |= good[next];
			}
	for (unsigned from = 0; from < OWNER_STATE_COUNT; from++) {
		CU_ASSERT(good[from]);
		next = (enum owner_state)from;
		CU_ASSERT_NOT_EQUAL(owner_life(&next, OWNER_ON_LOST), OWNER_ACTION_COUNT);
	}
}

static void names(void)
{
	CU_ASSERT_STRING_EQUAL(owner_state_name(OWNER_AWAY), "AWAY");
	CU_ASSERT_STRING_EQUAL(owner_event_name(OWNER_ON_ALONE), "ALONE");
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "on one computer", on_one_computer },
		{ "to a standby", to_a_standby },
		{ "the standby does not go on", the_standby_does_not_go_on },
		{ "host 0 stays", host_0_stays },
		{ "failures", failures },
		{ "each cell", each_cell },
		{ "no dead end", no_dead_end },
		{ "names", names },
		UNIT_END
	};

	return UNIT_RUN("owner life", tests);
}
