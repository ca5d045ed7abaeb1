/* standby_life.c - the life of a standby (vmm/cli/run/standby_life.def): the ways through it, and
 * what holds for each state and event.
 */
#include "tests/unit/unit.h"
#include "vmm/cli/run/standby_life.h"

static enum standby_state state;

/* The event comes: does this action follow, and this state? */
static bool then(enum standby_event event, enum standby_action action, enum standby_state next)
{
	return standby_life(&state, event) == action && state == next;
}

#define THEN(event, action, next) \
	CU_ASSERT(then(STANDBY_ON_##event, STANDBY_DO_##action, STANDBY_IS_##next))

static void is_told(void)
{
	state = STANDBY_IS_NEW;
	THEN(ORDERS, LISTEN, FOLLOWS);
	THEN(ORDERS, NOTHING, FOLLOWS); /* it listens already */
	THEN(PREPARE, PREPARE, PREPARES);
	THEN(SOME, SAY_MISSING, FOLLOWS);
	THEN(PREPARE, PREPARE, PREPARES);
	THEN(CANNOT, REFUSE, FOLLOWS);
	THEN(PREPARE, PREPARE, PREPARES);
	THEN(ALL, SAY_PREPARED, READY);
	THEN(RELEASE, RELEASE, FOLLOWS); /* host 0 stays after all */
	THEN(PREPARE, PREPARE, PREPARES);
	THEN(ALL, SAY_PREPARED, READY);
	THEN(GO, NOTHING, TOLD);
	THEN(LOST, NOTHING, TOLD);
	THEN(WORD, NOTHING, TOLD);
	THEN(VOTES, NOTHING, TOLD);
	THEN(NO_VOTES, FAIL, TOLD);
}

static void owner_is_lost(void)
{
	state = STANDBY_IS_FOLLOWS;
	THEN(LOST, PREPARE_LOOK, GATHERS);
	THEN(GONE, NOTHING, ALONE);
	THEN(SOME, COUNT, ASKS);
	THEN(VOTES, SAY_OVER, TAKES);
	state = STANDBY_IS_PREPARES;
	THEN(SILENT, LOOK, GATHERS);
	THEN(ALL, COUNT, WAITS);
	THEN(GONE, NOTHING, ASKS);
	THEN(NO_VOTES, FAIL, ASKS);
	THEN(WORD, END, ASKS);
	state = STANDBY_IS_READY;
	THEN(LOST, LOOK, WAITS);
	state = STANDBY_IS_READY;
	THEN(SILENT, RELEASE_PREPARE_LOOK, GATHERS);
	THEN(CANNOT, FAIL, GATHERS);
}

static void owner_lives(void)
{
	state = STANDBY_IS_WAITS;
	THEN(HELD, FAIL, WAITS);
	THEN(WORD, END, WAITS);
	state = STANDBY_IS_TAKES;
	THEN(WORD, END, TAKES);
}

static bool prepares(enum standby_action action)
{
	return action == STANDBY_DO_PREPARE || action == STANDBY_DO_PREPARE_LOOK ||
	       action == STANDBY_DO_RELEASE_PREPARE_LOOK;
}

static bool releases(enum standby_action action)
{
	return action == STANDBY_DO_RELEASE || action == STANDBY_DO_SAY_MISSING ||
	       action == STANDBY_DO_RELEASE_PREPARE_LOOK;
}

static bool is_loss(enum standby_event event)
{
	return event == STANDBY_ON_LOST || event == STANDBY_ON_SILENT;
}

/* The other hosts are prepared. */
static bool is_prepared(enum standby_state from)
{
	return from == STANDBY_IS_READY || from == STANDBY_IS_TOLD || from == STANDBY_IS_WAITS ||
	       from == STANDBY_IS_ASKS || from == STANDBY_IS_TAKES;
}

/* What holds of a row, whichever it is. */
static void check_row(enum standby_state from, enum standby_event event, enum standby_state to,
		      enum standby_action action)
{
	bool ends = action == STANDBY_DO_END || action == STANDBY_DO_FAIL;
	bool had = is_prepared(from) || standby_is_preparing(from);
	bool has = is_prepared(to) || standby_is_preparing(to);

	/* one machine: it is started when the owner says so, or when nothing of it is left here and
	 * the hosts have given their votes */
	if (to == STANDBY_IS_TOLD && from != to)
		CU_ASSERT(from == STANDBY_IS_READY && event == STANDBY_ON_GO);
	CU_ASSERT_EQUAL(action == STANDBY_DO_SAY_OVER,
			from == STANDBY_IS_ASKS && event == STANDBY_ON_VOTES);
	if (standby_asks(to) || to == STANDBY_IS_TAKES || to == STANDBY_IS_ALONE)
		CU_ASSERT(is_prepared(to) || standby_is_preparing(to));
	if (to == STANDBY_IS_ALONE && from != to)
		CU_ASSERT_EQUAL(event, STANDBY_ON_GONE);
	if (to == STANDBY_IS_ASKS && from != to)
		CU_ASSERT(event == STANDBY_ON_GONE || from == STANDBY_IS_ALONE);
	if (to == STANDBY_IS_TAKES && from != to)
		CU_ASSERT(event == STANDBY_ON_VOTES && from == STANDBY_IS_ASKS);
	/* an owner that is lost once stays so */
	if (standby_has_lost(from))
		CU_ASSERT(standby_has_lost(to));
	if (standby_has_lost(to) && !standby_has_lost(from))
		CU_ASSERT(standby_has_owner(from) && is_loss(event));
	/* hosts: begun once, and released before they are prepared again */
	CU_ASSERT_EQUAL(prepares(action) && !releases(action), has && !had);
	if (releases(action) && !prepares(action))
		CU_ASSERT(had && !has);
	if (prepares(action))
		CU_ASSERT(standby_is_preparing(to));
	/* an end does not change the state */
	if (ends)
		CU_ASSERT_EQUAL(from, to);
	CU_ASSERT_EQUAL(action == STANDBY_DO_LISTEN, from == STANDBY_IS_NEW &&
							     event == STANDBY_ON_ORDERS);
}

static void each_cell(void)
{
	unsigned rows = 0;

	for (unsigned from = 0; from < STANDBY_STATE_COUNT; from++)
		for (unsigned event = 0; event < STANDBY_EVENT_COUNT; event++) {
			enum standby_state to = (enum standby_state)from;
			enum standby_action action =
				standby_life(&to, (enum standby_event)event);

			rows += action != STANDBY_ACTION_COUNT;
			if (action != STANDBY_ACTION_COUNT)
				check_row((enum standby_state)from, (enum standby_event)event, to,
					  action);
			else if (to != from)
				CU_FAIL("an event that cannot come changes the state");
		}
#define LIFE(...) rows--;
#include "vmm/cli/run/standby_life.def"
	CU_ASSERT_EQUAL(rows, 0); /* no two rows for one cell */
}

/* Whether this event has a row in this state. */
static bool comes(unsigned from, enum standby_event event)
{
	enum standby_state to = (enum standby_state)from;

	return standby_life(&to, event) != STANDBY_ACTION_COUNT;
}

/* What can come from outside at any time has a row wherever it can. */
static void nothing_missing(void)
{
	for (unsigned from = 0; from < STANDBY_STATE_COUNT; from++) {
		enum standby_state s = (enum standby_state)from;
		bool ordered = s != STANDBY_IS_NEW;

		CU_ASSERT_EQUAL(comes(s, STANDBY_ON_LOST), ordered);
		CU_ASSERT_EQUAL(comes(s, STANDBY_ON_SILENT), ordered);
		CU_ASSERT_EQUAL(comes(s, STANDBY_ON_WORD), ordered);
		CU_ASSERT_EQUAL(comes(s, STANDBY_ON_BARE), standby_has_owner(s));
		CU_ASSERT_EQUAL(comes(s, STANDBY_ON_ALL), standby_is_preparing(s));
		CU_ASSERT_EQUAL(comes(s, STANDBY_ON_SOME), standby_is_preparing(s));
		CU_ASSERT_EQUAL(comes(s, STANDBY_ON_HELD),
				s == STANDBY_IS_GATHERS || s == STANDBY_IS_WAITS);
		CU_ASSERT_EQUAL(comes(s, STANDBY_ON_GONE), comes(s, STANDBY_ON_HELD));
		CU_ASSERT_EQUAL(comes(s, STANDBY_ON_VOTES), standby_asks(s));
		CU_ASSERT_EQUAL(comes(s, STANDBY_ON_NO_VOTES), standby_asks(s));
		CU_ASSERT_EQUAL(comes(s, STANDBY_ON_GO), s == STANDBY_IS_READY);
	}
}

static void names(void)
{
	CU_ASSERT_STRING_EQUAL(standby_state_name(STANDBY_IS_TAKES), "TAKES");
	CU_ASSERT_STRING_EQUAL(standby_event_name(STANDBY_ON_END), "END");
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "is told", is_told },
		{ "owner is lost", owner_is_lost },
		{ "owner lives", owner_lives },
		{ "each cell", each_cell },
		{ "nothing missing", nothing_missing },
		{ "names", names },
		UNIT_END
	};

	return UNIT_RUN("standby life", tests);
}
