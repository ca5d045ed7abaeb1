/* phnx_contacts.c - who is dialed when: many contact points never answer, and the others must not wait for them for ever. */
#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include "phoenix/core.h"

enum { SILENT = 300, SILENCE = 5000000, STEP = 50000, MINUTE = 60000000 };

static uint64_t now;
static struct attempt {
	struct contact *contact;
	uint64_t since;		/* 0: none under way */
	unsigned count;
} attempts[SILENT + 1];
static unsigned under_way, most_under_way;

static uint64_t op_now(void *ctx) { (void)ctx; return now; }
static void op_random(void *ctx, void *buf, size_t n) { (void)ctx; memset(buf, 7, n); }
static void op_undial(void *ctx, struct contact *c) { (void)ctx; (void)c; }
static void op_link(void *ctx, struct plink *l) { (void)ctx; (void)l; }
static void op_report(void *ctx, int error, const char *text) { (void)ctx; (void)error; (void)text; }
static void op_arrived(void *ctx) { (void)ctx; }

static void op_dial(void *ctx, struct contact *c)
{
	struct attempt *a = attempts + c->at.port;

	(void)ctx;
	*a = (struct attempt){ c, now, a->count + 1 };
	if (++under_way > most_under_way)
		most_under_way = under_way;
}

static const struct phnx_ops ops = { op_now, op_random, op_dial, op_undial, op_link, op_link, op_report, op_arrived };

static void advance(struct phnx *ph, uint64_t until)
{
	for (; now < until; now += STEP) {
		phnx_poll(ph);
		for (struct attempt *a = attempts; a <= attempts + SILENT; a++)
			if (a->since && now >= a->since + SILENCE) {
				a->since = 0;
				under_way--;
				phnx_dial_failed(ph, a->contact);
			}
	}
}

static void test_turns(void)
{
	struct phnx *ph = phnx_new(&ops, NULL, 0, 10);
	unsigned least = 1000;

	now = 1000000;
	for (int i = 0; i <= SILENT; i++)
		phnx_add_contact(ph, &(struct phnx_contact){ .host = "silent", .port = i }, 0);
	advance(ph, now + 2 * MINUTE);
	for (int i = 0; i <= SILENT; i++)
		least = attempts[i].count < least ? attempts[i].count : least;
	CU_ASSERT_EQUAL(most_under_way, MAX_DIALING);
	CU_ASSERT(least >= 2 * MINUTE / SILENCE * MAX_DIALING / (SILENT + 1) - 1);
	phnx_free(ph);
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite s = CU_add_suite("contacts", NULL, NULL);
	CU_add_test(s, "silent contacts take turns", test_turns);
	CU_basic_run_tests();
	return CU_get_number_of_failures() != 0;
}
