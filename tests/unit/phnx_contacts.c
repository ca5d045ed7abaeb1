/* phnx_contacts.c - when contact points are dialed: many of them never answer, and the others
 * must not wait for these for ever. */
#include "phoenix/flow/flow_private.h"
#include "phoenix/flow/mapping.h"
#include "phoenix/link/link_private.h"
#include "phoenix/node/life.h"
#include "phoenix/routing/routing_private.h"
#include "phoenix/services/services_private.h"
#include "tests/unit/unit.h"

enum { SILENT = 300, SILENCE = 5000000, STEP = 50000, MINUTE = 60000000 };

static uint64_t now;
static struct attempt {
	struct contact *contact;
	uint64_t since;		/* when it was dialed; 0: it is not being dialed */
	unsigned count;
} attempts[SILENT + 1];
static unsigned under_way, most_under_way;

static uint64_t op_now(void *ctx) { (void)ctx; return now; }
static void op_random(void *ctx, void *buf, size_t n) { (void)ctx; memset(buf, 7, n); }
static void op_undial(void *ctx, struct contact *c) { (void)ctx; (void)c; }
static void op_link(void *ctx, struct plink *l) { (void)ctx; (void)l; }
static void op_report(void *ctx, int error, const char *text)
{
	(void)ctx;
	(void)error;
	(void)text;
}
static void op_arrived(void *ctx) { (void)ctx; }

static void op_dial(void *ctx, struct contact *c)
{
	struct attempt *a = attempts + c->at.port;

	(void)ctx;
	*a = (struct attempt){ c, now, a->count + 1 };
	if (++under_way > most_under_way)
		most_under_way = under_way;
}

static const struct phnx_ops ops = { op_now,  op_random, op_dial,   op_undial,
				     op_link, op_link,	 op_report, op_arrived };

static void advance(struct phnx *ph, uint64_t until)
{
	for (; now < until; now += STEP) {
		node_poll(ph);
		for (struct attempt *a = attempts; a <= attempts + SILENT; a++)
			if (a->since && now >= a->since + SILENCE) {
				a->since = 0;
				under_way--;
				contact_dial_failed(ph, a->contact);
			}
	}
}

static void test_turns(void)
{
	struct phnx *ph = node_new(&ops, NULL, 0, 10);
	unsigned least = 1000;

	now = 1000000;
	for (int i = 0; i <= SILENT; i++)
		contact_add(ph, &(struct phnx_contact){ .host = "silent", .port = i }, 0);
	advance(ph, now + 2 * MINUTE);
	for (int i = 0; i <= SILENT; i++)
		least = attempts[i].count < least ? attempts[i].count : least;
	CU_ASSERT_EQUAL(most_under_way, MAX_DIALING);
	CU_ASSERT(least >= 2 * MINUTE / SILENCE * MAX_DIALING / (SILENT + 1) - 1);
	node_free(ph);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "silent contacts take turns", test_turns },
		UNIT_END
	};

	return UNIT_RUN("contacts", tests);
}
