/* dsm_table.c - every cell of the page protocol's two tables, by what the host and the other nodes
 * see of it.
 *
 * The expectations are written a second time here, in another form than the tables: the text of the
 * callbacks.  A cell without an expectation must be impossible, and must stop the process with the
 * table's sentence.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/dsm_bench.h"
#include "tests/unit/unit.h"

enum { HOME, SELF, OTHER, N_NODES, TXN = 9 };

static const struct expected {
	uint8_t state, event, next;
	const char *seen;
} node_expected[] = {
#define E(state, event, next, seen) { NODE_##state, NODE_ON_##event, NODE_##next, seen }
	E(NONE, WANT_READ, READING, "READ>home"),
	E(NONE, WANT_WRITE, WRITING, "WRITE>home"),
	E(NONE, DROP, NONE, ""),
	E(NONE, HAND_OVER, NONE, ""),
	E(NONE, INVALIDATE, NONE, "ACK>2"),
	E(READING, WANT_READ, READING, ""),
	E(READING, WANT_WRITE, READING, ""),
	E(READING, DROP, READING, ""),
	E(READING, HAND_OVER, READING, ""),
	E(READING, INVALIDATE, READING, "ACK>2"),
	E(READING, GRANT_READ, COPY, "fill(read,page) CONFIRM>home ready(read)"),
	E(READING, GRANT_ZERO, WRITE, "fill(write) CONFIRM>home ready(write)"),
	E(WRITING, WANT_READ, WRITING, ""),
	E(WRITING, WANT_WRITE, WRITING, ""),
	E(WRITING, DROP, WRITING, ""),
	E(WRITING, HAND_OVER, WRITING, ""),
	E(WRITING, INVALIDATE, WRITING, "ACK>2"),
	E(WRITING, GRANT_WRITE, WRITE, "fill(write,page) CONFIRM>home ready(write)"),
	E(WRITING, GRANT_WRITE_WAIT, AWAITING, "fill(read,page) ready(read)"),
	E(WRITING, GRANT_ZERO, WRITE, "fill(write) CONFIRM>home ready(write)"),
	E(WRITING, ACK, WRITING, ""),
	E(COPY, WANT_READ, COPY, "ready(read)"),
	E(COPY, WANT_WRITE, COPY_WRITING, "UPGRADE>home"),
	E(COPY, DROP, NONE, "take(none)"),
	E(COPY, HAND_OVER, COPY, ""),
	E(COPY, INVALIDATE, NONE, "take(none) ACK>2"),
	E(COPY_WRITING, WANT_READ, COPY_WRITING, "ready(read)"),
	E(COPY_WRITING, WANT_WRITE, COPY_WRITING, ""),
	E(COPY_WRITING, DROP, COPY_WRITING, ""),
	E(COPY_WRITING, HAND_OVER, COPY_WRITING, ""),
	E(COPY_WRITING, INVALIDATE, WRITING, "take(none) ACK>2"),
	E(COPY_WRITING, GRANT_UPGRADE, WRITE, "raise CONFIRM>home ready(write)"),
	E(COPY_WRITING, GRANT_UPGRADE_WAIT, AWAITING, ""),
	E(COPY_WRITING, ACK, COPY_WRITING, ""),
	E(OWNED, WANT_READ, OWNED, "ready(read)"),
	E(OWNED, WANT_WRITE, OWNED_WRITING, "UPGRADE>home"),
	E(OWNED, DROP, OWNED, ""),
	E(OWNED, HAND_OVER, OWNED, "HANDOVER/2>home"),
	E(OWNED, FORWARD_READ, OWNED, "take(read,page) GRANT_READ>2+page"),
	E(OWNED, FORWARD_WRITE, NONE, "take(none,page) GRANT_WRITE/1>2+page"),
	E(OWNED, INVALIDATE, NONE, "take(none) ACK>2"),
	E(OWNED_WRITING, WANT_READ, OWNED_WRITING, "ready(read)"),
	E(OWNED_WRITING, WANT_WRITE, OWNED_WRITING, ""),
	E(OWNED_WRITING, DROP, OWNED_WRITING, ""),
	E(OWNED_WRITING, HAND_OVER, OWNED_WRITING, "HANDOVER/2>home"),
	E(OWNED_WRITING, FORWARD_READ, OWNED_WRITING, "take(read,page) GRANT_READ>2+page"),
	E(OWNED_WRITING, FORWARD_WRITE, WRITING, "take(none,page) GRANT_WRITE/1>2+page"),
	E(OWNED_WRITING, INVALIDATE, WRITING, "take(none) ACK>2"),
	E(OWNED_WRITING, GRANT_UPGRADE, WRITE, "raise CONFIRM>home ready(write)"),
	E(OWNED_WRITING, GRANT_UPGRADE_WAIT, AWAITING, ""),
	E(OWNED_WRITING, ACK, OWNED_WRITING, ""),
	E(AWAITING, WANT_READ, AWAITING, "ready(read)"),
	E(AWAITING, WANT_WRITE, AWAITING, ""),
	E(AWAITING, DROP, AWAITING, ""),
	E(AWAITING, HAND_OVER, AWAITING, ""),
	E(AWAITING, ACK, AWAITING, ""),
	E(AWAITING, ACK_LAST, WRITE, "raise CONFIRM>home ready(write)"),
	E(WRITE, WANT_READ, WRITE, "ready(write)"),
	E(WRITE, WANT_WRITE, WRITE, "ready(write)"),
	E(WRITE, DROP, WRITE, ""),
	E(WRITE, HAND_OVER, WRITE, "HANDOVER/2>home"),
	E(WRITE, FORWARD_READ, OWNED, "take(read,page) GRANT_READ>2+page"),
	E(WRITE, FORWARD_WRITE, NONE, "take(none,page) GRANT_WRITE/1>2+page"),
#undef E
};

/* The home is the node itself; node 1 owns the page, nodes 2 and 3 may have copies. dsm.c tests
 * what a BUSY home does later. */
static const struct expected home_expected[] = {
#define E(state, event, next, seen) { HOME_##state, HOME_ON_##event, HOME_##next, seen }
	E(UNTOUCHED, READ, BUSY, "GRANT_ZERO>3"),
	E(UNTOUCHED, WRITE, BUSY, "GRANT_ZERO>3"),
	E(UNTOUCHED, HAND_OVER_STALE, UNTOUCHED, ""),
	E(IDLE, READ, BUSY, "FORWARD_READ>1"),
	E(IDLE, WRITE, BUSY, "FORWARD_WRITE/1>1 INVALIDATE>2"),
	E(IDLE, UPGRADE, BUSY, "GRANT_UPGRADE/2>3 INVALIDATE>1 INVALIDATE>2"),
	E(IDLE, HAND_OVER, IDLE, "ADOPT/1>2"),
	E(IDLE, HAND_OVER_STALE, IDLE, ""),
	E(BUSY, READ, BUSY, ""),
	E(BUSY, WRITE, BUSY, ""),
	E(BUSY, UPGRADE, BUSY, ""),
	E(BUSY, OWNER_MISS, BUSY, ""),
	E(BUSY, HAND_OVER, BUSY, ""),
	E(BUSY, HAND_OVER_STALE, BUSY, ""),
	E(BUSY, CONFIRM, IDLE, ""),
#undef E
};

static const struct expected *find(const struct expected *rows, size_t n, unsigned state,
				   unsigned event)
{
	for (size_t i = 0; i < n; i++) {
		if (rows[i].state == state && rows[i].event == event)
			return &rows[i];
	}
	return NULL;
}

static gfn_t gfn;

static struct node_page *put_node(enum node_state state)
{
	struct node_page *page;

	gfn = bench_gfn_of(HOME, N_NODES);
	bench_open(SELF, N_NODES, gfn + 1);
	page = &bench.dsm->pages[gfn];
	page->state = (uint8_t)state;
	page->txn = TXN;
	page->acks_due = state == NODE_AWAITING ? 2 : 0;
	return page;
}

/* Makes the event happen as in a real node.  One acknowledgement has arrived already if a grant is
 * to be complete. */
static void cause_node(struct node_page *page, enum node_event event)
{
	switch (event) {
	case NODE_ON_WANT_READ: return dsm_want(bench.dsm, gfn, PAGE_READ);
	case NODE_ON_WANT_WRITE: return dsm_want(bench.dsm, gfn, PAGE_WRITE);
	case NODE_ON_DROP: return (void)dsm_drop(bench.dsm, gfn);
	case NODE_ON_HAND_OVER: return dsm_handover(bench.dsm, gfn, OTHER);
	case NODE_ON_FORWARD_READ:
		bench_message(HOME, MSG_DSM_FORWARD_READ, gfn, TXN, OTHER, 0);
		return;
	case NODE_ON_FORWARD_WRITE:
		bench_message(HOME, MSG_DSM_FORWARD_WRITE, gfn, TXN, OTHER, 1);
		return;
	case NODE_ON_INVALIDATE:
		bench_message(HOME, MSG_DSM_INVALIDATE, gfn, TXN, OTHER, 0);
		return;
	case NODE_ON_GRANT_READ:
		bench_message(OTHER, MSG_DSM_GRANT_READ, gfn, TXN, SELF, 0);
		return;
	case NODE_ON_GRANT_WRITE:
		page->acks_due = -1;
		bench_message(OTHER, MSG_DSM_GRANT_WRITE, gfn, TXN, SELF, 1);
		return;
	case NODE_ON_GRANT_WRITE_WAIT:
		bench_message(OTHER, MSG_DSM_GRANT_WRITE, gfn, TXN, SELF, 1);
		return;
	case NODE_ON_GRANT_UPGRADE:
		page->acks_due = -1;
		bench_message(HOME, MSG_DSM_GRANT_UPGRADE, gfn, TXN, SELF, 1);
		return;
	case NODE_ON_GRANT_UPGRADE_WAIT:
		bench_message(HOME, MSG_DSM_GRANT_UPGRADE, gfn, TXN, SELF, 2);
		return;
	case NODE_ON_GRANT_ZERO: bench_message(HOME, MSG_DSM_GRANT_ZERO, gfn, TXN, SELF, 0); return;
	case NODE_ON_ACK: bench_message(OTHER, MSG_DSM_ACK, gfn, TXN, SELF, 0); return;
	case NODE_ON_ACK_LAST:
		page->acks_due = 1;
		bench_message(OTHER, MSG_DSM_ACK, gfn, TXN, SELF, 0);
		return;
	case NODE_EVENT_COUNT: break;
	}
}

static void put_home(enum home_state state)
{
	struct home_page *page;

	gfn = bench_gfn_of(0, 4);
	bench_open(0, 4, gfn + 1);
	page = &bench.dsm->homes[gfn];
	page->state = (uint8_t)state;
	if (state == HOME_UNTOUCHED)
		return;
	page->owner = 1;
	page->copyset = 1u << 1 | 1u << 2 | 1u << 3;
	page->txn = TXN;
	page->requester = 3;
}

static void cause_home(enum home_event event)
{
	struct home_page *page = &bench.dsm->homes[gfn];

	switch (event) {
	case HOME_ON_READ: bench_message(3, MSG_DSM_READ, gfn, 0, 3, 0); return;
	case HOME_ON_WRITE: bench_message(3, MSG_DSM_WRITE, gfn, 0, 3, 0); return;
	case HOME_ON_UPGRADE:
		page->copyset |= 1u << 3; /* else it is a WRITE */
		bench_message(3, MSG_DSM_UPGRADE, gfn, 0, 3, 0);
		return;
	case HOME_ON_OWNER_MISS: bench_message(1, MSG_DSM_READ, gfn, 0, 1, 0); return;
	case HOME_ON_HAND_OVER: bench_message(1, MSG_DSM_HANDOVER, gfn, 0, 1, 2); return;
	case HOME_ON_HAND_OVER_STALE: bench_message(2, MSG_DSM_HANDOVER, gfn, 0, 2, 3); return;
	case HOME_ON_CONFIRM:
		bench_message(page->requester, MSG_DSM_CONFIRM, gfn, page->txn, page->requester, 0);
		return;
	case HOME_EVENT_COUNT: break;
	}
}

/* Runs it in a child process, which must stop with `why` on its standard error. */
static bool stops_with(void (*cause)(unsigned, unsigned), unsigned state, unsigned event,
		       const char *why)
{
	char text[65536];
	size_t length = 0;
	ssize_t n;
	int pipes[2], status;
	pid_t child;

	if (pipe(pipes))
		return false;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		dup2(pipes[1], 2);
		cause(state, event);
		_exit(0);
	}
	close(pipes[1]);
	while ((n = read(pipes[0], text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)n;
	text[length] = 0;
	close(pipes[0]);
	return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && strstr(text, why);
}

static void node_die(unsigned state, unsigned event)
{
	cause_node(put_node((enum node_state)state), (enum node_event)event);
}

static void home_die(unsigned state, unsigned event)
{
	put_home((enum home_state)state);
	cause_home((enum home_event)event);
}

static bool check(const struct expected *row, uint8_t next)
{
	if (row->next == next && !strcmp(row->seen, bench.log))
		return true;
	fprintf(stderr, "state %u event %u: next %u, seen '%s', not '%s'\n", row->state, row->event,
		next, bench.log, row->seen);
	return false;
}

static void every_node_cell(void)
{
	for (unsigned state = 0; state < NODE_STATE_COUNT; state++) {
		for (unsigned event = 0; event < NODE_EVENT_COUNT; event++) {
			const struct expected *row = find(node_expected, ARRAY_LEN(node_expected),
							  state, event);
			const char *why = node_table[state][event].impossible;

			CU_ASSERT_EQUAL_FATAL(row == NULL, why != NULL);
			if (row) {
				struct node_page *page = put_node((enum node_state)state);

				cause_node(page, (enum node_event)event);
				CU_ASSERT(check(row, page->state));
			/* no message can cause it except in AWAITING */
			} else if (event != NODE_ON_ACK_LAST) {
				CU_ASSERT(stops_with(node_die, state, event, why));
			}
		}
	}
}

static void every_home_cell(void)
{
	for (unsigned state = 0; state < HOME_STATE_COUNT; state++) {
		for (unsigned event = 0; event < HOME_EVENT_COUNT; event++) {
			const struct expected *row = find(home_expected, ARRAY_LEN(home_expected),
							  state, event);
			const char *why = home_table[state][event].impossible;
			bool no_owner = state == HOME_UNTOUCHED &&
					(event == HOME_ON_OWNER_MISS || event == HOME_ON_HAND_OVER);

			CU_ASSERT_EQUAL_FATAL(row == NULL, why != NULL);
			if (row) {
				put_home((enum home_state)state);
				cause_home((enum home_event)event);
				CU_ASSERT(check(row, bench.dsm->homes[gfn].state));
			} else if (!no_owner) { /* without an owner, no node is taken for it */
				CU_ASSERT(stops_with(home_die, state, event, why));
			}
		}
	}
}

static void no_right_without_a_page(void)
{
	for (unsigned state = 0; state < NODE_STATE_COUNT; state++) {
		/* what a state lets local CPUs do: only WRITE lets them write */
		CU_ASSERT_EQUAL(node_state_right[state] == PAGE_WRITE, state == NODE_WRITE);
		CU_ASSERT_EQUAL(node_state_right[state] == PAGE_NONE,
				state == NODE_NONE || state == NODE_READING ||
					state == NODE_WRITING);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(every_node_cell),
		UNIT_TEST(every_home_cell),
		UNIT_TEST(no_right_without_a_page),
		UNIT_END
	};
	int status;

	status = UNIT_RUN("dsm_table", tests);
	bench_close();
	return status;
}
