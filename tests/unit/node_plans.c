/* node_plans.c - node 0's decisions, as pure code: which CPUs move, which hosts may be added and
 * removed and which hosts get their homes and CPUs, and where the policies want CPUs to run; and
 * which processors a host gives its CPUs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/wire.h"
#include "dsm/dsm.h"
#include "tests/unit/unit.h"
#include "vmm/node/pages/batch.h"
#include "vmm/node/hosts/hostplan.h"
#include "vmm/node/halted.h"
#include "vmm/node/moves/movequeue.h"
#include "vmm/shared/placement.h"
#include "vmm/node/moves/processors.h"
#include "vmm/node/node.h"
#include "vmm/node/pages/wants.h"
#include "vmm/node/poll.h"

/* ---- moves of CPUs ---- */

static enum move_action begin(struct movequeue *q, const char *complaint)
{
	static const uint32_t at[] = { 0, 1, 0 };
	char why[160] = "";
	enum move_action action = movequeue_begin(q, at, 3, 3, why, sizeof why);

	CU_ASSERT_EQUAL(action == MOVE_FAILED, complaint != NULL);
	CU_ASSERT(!complaint || strstr(why, complaint));
	return action;
}

static enum move_action report(struct movequeue *q, enum cpu_step step, int error)
{
	return movequeue_step(q, &(struct msg_cpu_step){ .cpu = q->wait[0].move.cpu,
							 .move = q->number,
							 .step = step,
							 .error = error });
}

static const struct move_request *request_of(uint32_t cpu, uint32_t host, unsigned client)
{
	static struct move_request request;

	request = (struct move_request){ .move = { .cpu = cpu, .host = host }, .client = client };
	return &request;
}

static void test_moves_one_by_one(void)
{
	static struct movequeue q;

	CU_ASSERT_EQUAL(begin(&q, NULL), MOVE_NOTHING);
	for (unsigned cpu = 0; cpu < 2; cpu++)
		CU_ASSERT(movequeue_push(&q, request_of(cpu, !cpu, cpu)));
	CU_ASSERT_EQUAL(begin(&q, NULL), MOVE_PREPARE);
	CU_ASSERT_EQUAL(begin(&q, NULL), MOVE_NOTHING); /* the second waits */
	CU_ASSERT_EQUAL(report(&q, STEP_TAKEN, 0), MOVE_NOTHING);
	CU_ASSERT_EQUAL(report(&q, STEP_PREPARED, 0), MOVE_GIVE);
	CU_ASSERT_EQUAL(report(&q, STEP_PREPARED, 0), MOVE_NOTHING);
	CU_ASSERT_EQUAL(movequeue_step(&q, &(struct msg_cpu_step){ 0, q.number - 1, STEP_TAKEN, 0,
								   0, 0 }),
			MOVE_NOTHING);
	CU_ASSERT_EQUAL(movequeue_step(&q,
				       &(struct msg_cpu_step){ 1, q.number, STEP_TAKEN, 0, 0, 0 }),
			MOVE_NOTHING);
	CU_ASSERT_EQUAL(movequeue_step(&q, &(struct msg_cpu_step){ 0, q.number, 9, 0, 0, 0 }),
			MOVE_NOTHING);
	CU_ASSERT_EQUAL(report(&q, STEP_TAKEN, 0), MOVE_DONE);
	movequeue_pop(&q);
	CU_ASSERT(q.n == 1 && q.wait[0].client == 1);
	CU_ASSERT_EQUAL(begin(&q, NULL), MOVE_PREPARE);
	CU_ASSERT_EQUAL(q.number, 2);
	CU_ASSERT_EQUAL(report(&q, STEP_PREPARED, EAGAIN), MOVE_FAILED);
	movequeue_pop(&q);
	CU_ASSERT_EQUAL(begin(&q, NULL), MOVE_NOTHING);
	CU_ASSERT(movequeue_push(&q, request_of(2, 1, 0)));
	CU_ASSERT_EQUAL(begin(&q, NULL), MOVE_PREPARE);
	CU_ASSERT_EQUAL(report(&q, STEP_PREPARED, 0), MOVE_GIVE);
	CU_ASSERT_EQUAL(report(&q, STEP_BACK, EAGAIN), MOVE_FAILED);
}

static void test_moves_refused(void)
{
	static const struct { uint32_t cpu, host; const char *complaint;
	} wrong[] = {
		{ 3, 0, "no CPU 3" },
		{ UINT32_MAX, 0, "no CPU" },
		{ 0, 2, "no host 2" },
		{ 1, UINT32_MAX, "no host" },
		{ 1, 1, "CPU 1 is on host 1 already" },
	};
	static struct movequeue q;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CU_ASSERT(movequeue_push(&q, request_of(wrong[i].cpu, wrong[i].host, 0)));
		CU_ASSERT_EQUAL(begin(&q, wrong[i].complaint), MOVE_FAILED);
		movequeue_pop(&q);
	}
	for (unsigned i = 0; i < MAX_MOVES; i++)
		CU_ASSERT(movequeue_push(&q, request_of(0, 1, i)));
	CU_ASSERT(!movequeue_push(&q, request_of(0, 1, 0)));
}

/* ---- hosts that come and go ---- */

static void test_host_queue(void)
{
	static struct hostqueue q;

	for (unsigned i = 0; i < MAX_HOST_REQUESTS; i++)
		CU_ASSERT(
			hostplan_push(&q, &(struct host_request){ { .op = HOST_ADD }, i, "", 0 }));
	CU_ASSERT(!hostplan_push(&q, &(struct host_request){ { .op = HOST_ADD }, 0, "", 0 }));
	hostplan_pop(&q);
	CU_ASSERT(q.n == MAX_HOST_REQUESTS - 1 && q.wait[0].client == 1);
	q = (struct hostqueue){ 0 };
	for (unsigned host = 0; host < 4; host++)
		hostplan_push(&q,
			       &(struct host_request){
				       { .op = host == 2 ? HOST_ADD : HOST_REMOVE, .host = host },
				       0,
				       "",
				       0 });
	hostplan_push(&q, &(struct host_request){
				   { .op = HOST_REMOVE, .host = UINT32_MAX }, 0, "", 0 });
	/* 0 is not removed, 2 is added, and there is no such host as the last */
	CU_ASSERT_EQUAL(hostplan_staying(&q, 0, 0x1f), 0x15);
	CU_ASSERT_EQUAL(hostplan_staying(&q, 2, 0x1f), 0x17);
	CU_ASSERT_EQUAL(hostplan_staying(&q, 5, 0x1f), 0x1f);
	CU_ASSERT_EQUAL(hostplan_free(1), 1);
	CU_ASSERT_EQUAL(hostplan_free(0xd), 1);
	CU_ASSERT_EQUAL(hostplan_free(~0u), -1);
}

static void test_host_may_go(void)
{
	static const struct {
		uint32_t hosts, host, mem, host_mem;
		const char *complaint;
	} wrong[] = {
		{ 3, 2, 64, 0, "no host 2" },
		{ 3, UINT32_MAX, 64, 0, "no host 4294967295" },
		{ 6, 0, 64, 0, "no host 0" },
		{ 1, 0, 64, 0, "the last one" },
		{ 7, 2, 64, 31, "hold 62 MiB of the guest's 64 MiB" },
	};
	char why[200];

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		CU_ASSERT_EQUAL(hostplan_may_go(wrong[i].hosts, wrong[i].host, wrong[i].mem,
						wrong[i].host_mem, why, sizeof why),
				-EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, wrong[i].complaint));
	}
	CU_ASSERT_EQUAL(hostplan_may_go(7, 2, 64, 32, why, sizeof why), 0);
	CU_ASSERT_EQUAL(hostplan_may_go(3, 0, 64, 0, why, sizeof why), 0);
	CU_ASSERT_EQUAL(hostplan_has_room(512, 512, why, sizeof why), 0);
	CU_ASSERT_EQUAL(hostplan_has_room(0, 0, why, sizeof why), 0);
	CU_ASSERT_EQUAL(hostplan_has_room(3 * 256, 256, why, sizeof why), -ENOMEM);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(why, "holds 3 MiB, and the computers of the others have memory for 1 MiB"));
	CU_ASSERT_EQUAL(hostplan_may_go(1u << 31 | 1, 31, 64, 0, why, sizeof why), 0);
}

/* Hosts are added one after the other, and removed again: each has its share, and every order is
 * for a home where it is. */
static void test_host_homes(void)
{
	struct home_place places[DSM_INTERVALS] = { { 0 } };
	struct home_order orders[DSM_INTERVALS];
	uint32_t hosts = 1;

	for (unsigned round = 1; round < 2 * MAX_NODES - 1; round++) {
		bool comes = round < MAX_NODES;
		unsigned host = comes ? round : 2 * MAX_NODES - 1 - round, count[MAX_NODES] = { 0 },
			 n;

		hosts |= 1u << host;
		n = comes ? hostplan_homes_for(places, hosts, host, orders)
			  : hostplan_homes_of(places, hosts & ~(1u << host), host, orders);
		for (unsigned i = 0; i < n; i++) {
			CU_ASSERT_EQUAL_FATAL(orders[i].from, places[orders[i].interval].node);
			CU_ASSERT_EQUAL_FATAL(comes ? orders[i].to : orders[i].from, host);
			places[orders[i].interval].node = orders[i].to;
		}
		if (!comes)
			hosts &= ~(1u << host);
		for (unsigned i = 0; i < DSM_INTERVALS; i++)
			count[places[i].node]++;
		for (unsigned i = 0; i < MAX_NODES; i++) {
			unsigned share = DSM_INTERVALS / (unsigned)__builtin_popcount(hosts);

			CU_ASSERT(hosts >> i & 1 ? count[i] >= share && count[i] <= share + 8
						 : count[i] == 0);
		}
	}
}

static void test_host_cpus(void)
{
	static const uint32_t at[] = { 0, 1, 2, 0, 1 };

	CU_ASSERT_EQUAL(hostplan_place_for_cpu(at, 5, 7), 2);
	CU_ASSERT_EQUAL(hostplan_place_for_cpu(at, 5, 3), 0);
	CU_ASSERT_EQUAL(hostplan_place_for_cpu(at, 5, 1u << 1 | 1u << 3), 3);
}

/* ---- placement ---- */

/* Makes all the moves.  Returns how many CPUs each host has then, as "2 1 1 0". */
static const char *place(enum policy policy, struct placement_look *look)
{
	static char text[64];
	struct placement_move move;
	unsigned moves = 0;

	for (; moves <= look->n_cpus && placement_step(policy, look, &move); moves++) {
		CU_ASSERT_EQUAL_FATAL(look->cpu[move.cpu].host, move.from);
		CU_ASSERT(look->hosts >> move.to & 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(move.why, placement_policy_name(policy)));
		look->cpu[move.cpu].host = move.to;
	}
	CU_ASSERT(moves <= look->n_cpus); /* none moves twice */
	text[0] = 0;
	for (unsigned host = 0; host < 4; host++) {
		unsigned count = 0;

		for (unsigned cpu = 0; cpu < look->n_cpus; cpu++)
			count += look->cpu[cpu].host == host;
		sprintf(text + strlen(text), "%s%u", host ? " " : "", count);
	}
	return text;
}

static struct placement_look four_hosts(void)
{
	struct placement_look look = { .hosts = 0xf, .n_cpus = 6 };

	for (unsigned host = 0; host < 4; host++)
		look.host[host].processors = 2;
	look.host[1].rtt_us = 9000; /* far */
	look.host[2].rtt_us = 60;
	look.host[3].rtt_us = 50; /* as near as 2 */
	return look;
}

static void test_placement(void)
{
	struct placement_look look = four_hosts();

	CU_ASSERT_STRING_EQUAL(place(POLICY_SPREAD, &look), "2 1 2 1");
	CU_ASSERT_STRING_EQUAL(place(POLICY_CONCENTRATE, &look), "2 0 2 2");
	CU_ASSERT_STRING_EQUAL(place(POLICY_CONCENTRATE, &look), "2 0 2 2");
	look.n_cpus = 10; /* more than processors */
	CU_ASSERT_STRING_EQUAL(place(POLICY_CONCENTRATE, &look), "3 2 3 2");
	look.hosts = 0x5;
	for (unsigned cpu = 0; cpu < look.n_cpus; cpu++)
		look.cpu[cpu].host = 0;
	CU_ASSERT_STRING_EQUAL(place(POLICY_SPREAD, &look), "5 0 5 0");
	CU_ASSERT_EQUAL(placement_policy_of_name("auto"), POLICY_AUTO);
	CU_ASSERT_EQUAL(placement_policy_of_name("away"), -EINVAL);
}

/* Returns after how long auto moves a CPU if nothing changes; 0: not within ten seconds. */
static uint32_t ms_until(struct placement_auto *state, struct placement_look *look,
			 struct placement_move *move)
{
	look->window_ms = 20;
	for (uint32_t ms = 20; ms <= 10000; ms += 20)
		if (placement_auto(state, look, move))
			return ms;
	return 0;
}

static void test_placement_towards_pages(void)
{
	struct placement_look look = four_hosts();
	struct placement_auto state = { 0 };
	struct placement_move move;

	look.n_cpus = 2;
	look.cpu[1].host = 2;
	look.cpu[0].waited_percent = look.cpu[1].waited_percent = 40;
	look.cpu[0].fetched[2] = 400; /* it would be better there; only one of the two moves */
	look.cpu[1].fetched[0] = 300;
	look.cpu[1].fetched[3] = 100;
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), AUTO_PULL_MS);
	CU_ASSERT(move.cpu == 1 && move.from == 2 && move.to == 0);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(move.why, "waits for pages for 40 % of its time, and 75 % of the last 400"));
	memset(look.cpu, 0, sizeof look.cpu);
	look.cpu[0].host = look.cpu[1].host = 2;
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0); /* together: nothing is fetched */

	look.cpu[0].waited_percent = 100;
	look.cpu[0].fetched[3] = 1000; /* pages on a host without CPUs come once */
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0);
	look.n_cpus = 3;
	look.cpu[2].host = 3;
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), AUTO_PULL_MS);
	look.cpu[0].host = 3;
	memset(look.cpu[0].fetched, 0, sizeof look.cpu[0].fetched);
	look.cpu[0].fetched[2] = 1000; /* and back: not so soon */
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), AUTO_REST_MS);
	state = (struct placement_auto){ 0 };
	look.cpu[0].waited_percent = AUTO_WAIT_PERCENT - 1; /* it computes */
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0);
	look.cpu[0].waited_percent = AUTO_WAIT_PERCENT;
	look.cpu[0].fetched[2] = AUTO_PAGES - 1; /* too few */
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0);
	look.cpu[0].fetched[2] = look.cpu[0].fetched[1] = 500; /* from everywhere */
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0);
	look.cpu[0].fetched[1] = 0;
	look.host[2].processors = 1; /* full */
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0);
	look.host[2].processors = 2;
	look.cpu[0].fetched[2] = 500;
	CU_ASSERT(!placement_auto(&state, &look, &move));
	look.cpu[0].fetched[2] = 0; /* it was only for a moment */
	CU_ASSERT(!placement_auto(&state, &look, &move));
	look.cpu[0].fetched[2] = 500;
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), AUTO_PULL_MS);
	look.window_ms = 1000; /* one sample after such a long time is enough */
	state = (struct placement_auto){ 0 };
	CU_ASSERT(placement_auto(&state, &look, &move));
}

static void test_placement_where_tasks_wait(void)
{
	struct placement_look look = four_hosts();
	struct placement_auto state = { 0 };
	struct placement_move move;

	look.n_cpus = 3; /* one on host 0, two on host 2 */
	look.cpu[1].host = look.cpu[2].host = 2;
	look.cpu[0].crowded = true;
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0); /* nobody is idle */
	look.cpu[1].idle_percent = AUTO_IDLE_PERCENT - 1;
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0);
	look.cpu[1].idle_percent = AUTO_IDLE_PERCENT;
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), AUTO_CROWD_MS);
	CU_ASSERT(move.cpu == 1 && move.from == 2 && move.to == 0);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(move.why, "idle for 60 % of its time, and tasks wait for CPU 0 there"));
	look.cpu[0].crowded = false; /* nobody waits */
	state = (struct placement_auto){ 0 };
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0);
	look.cpu[2].crowded = true; /* on its own host: the guest's scheduler sees to it */
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0);
	look.cpu[0].idle_percent = 100; /* nor does this one go: CPU 1 is idle there */
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0);
	look.cpu[1].idle_percent = 0;
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0); /* full */
	look.host[2].processors = 3;
	look.host[2].load_percent = AUTO_LESS_PERCENT; /* it would be taken away again */
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0);
	look.host[2].load_percent = AUTO_LESS_PERCENT - 1;
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), AUTO_CROWD_MS);
	CU_ASSERT(move.cpu == 0 && move.from == 0 && move.to == 2);
	look.cpu[0].waited_percent = 40; /* pages of another host come first */
	look.cpu[0].fetched[3] = 400;
	look.n_cpus = 4;
	look.cpu[3].host = 3;
	state = (struct placement_auto){ 0 };
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), AUTO_PULL_MS);
	CU_ASSERT_EQUAL(move.to, 3);
}

static void test_placement_away_from_load(void)
{
	struct placement_look look = four_hosts();
	struct placement_auto state = { 0 };
	struct placement_move move;

	look.n_cpus = 2;
	for (unsigned host = 0; host < 4; host++)
		look.host[host].load_percent = 200; /* the same computer */
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0);
	look.host[3].load_percent = 20;
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), AUTO_LOAD_MS);
	CU_ASSERT(move.from == 0 && move.to == 3 && strstr(move.why, "load of 200 %"));
	look.host[0].load_percent = AUTO_LOADED_PERCENT - 1;
	state = (struct placement_auto){ 0 };
	CU_ASSERT_EQUAL(ms_until(&state, &look, &move), 0);
}

/* ---- processors of a host ---- */

static void test_processors(void)
{
	static const struct {
		uint32_t cpus;
		unsigned processors;
		bool shared;
		uint16_t of[5];
	} rows[] = {
		{ 0x00, 2, false, { 0 } },
		{ 0x01, 1, false, { 0 } },
		{ 0x03, 1, true, { 0, 0 } },
		{ 0x02, 2, false, { 9, 1 } },
		{ 0x03, 2, false, { 0, 1 } },
		{ 0x05, 2, false, { 0, 9, 1 } },
		{ 0x0a, 2, false, { 9, 1, 9, 0 } },
		{ 0x0f, 2, true, { 0, 1, 0, 1 } },
		{ 0x15, 2, true, { 0, 9, 1, 9, 0 } },
		{ 0x11, 4, false, { 0, 9, 9, 9, 1 } },
		{ 0x13, 4, false, { 0, 1, 9, 9, 2 } },
		{ 0x1f, 4, true, { 0, 1, 2, 3, 0 } },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		uint16_t processor[MAX_CPUS] = { 9, 9, 9, 9, 9 };

		CU_ASSERT_EQUAL(processors_deal(rows[i].cpus, rows[i].processors, processor),
				rows[i].shared);
		for (unsigned cpu = 0; cpu < 5; cpu++)
			CU_ASSERT_EQUAL(processor[cpu],
					rows[i].cpus >> cpu & 1 ? rows[i].of[cpu] : 9);
	}
}

/* what poll.c calls; not used in this test */
bool wants_waits(const struct node *node, unsigned cpu) { (void)node, (void)cpu; return false; }
void batch_serve(struct node *node) { (void)node; }
void wants_poll(struct node *node) { (void)node; }
uint64_t pagestore_send_delayed(struct node *node, bool all) { (void)node, (void)all; return 0; }
bool wants_may_sleep(struct node *node) { (void)node; return true; }

static void test_processors_room(void)
{
	CU_ASSERT_EQUAL(processors_room(0, 1), PROCESSORS_SPARE);
	CU_ASSERT_EQUAL(processors_room(1, 2), PROCESSORS_SPARE);
	CU_ASSERT_EQUAL(processors_room(2, 2), PROCESSORS_EXACT);
	CU_ASSERT_EQUAL(processors_room(3, 2), PROCESSORS_CROWDED);
}

static void test_poll(void)
{
	enum { NS = 1000 };
	static const struct { struct poll_view view; bool pays; } rows[] = {
		{ { 0 }, false }, /* a processor of the daemon's own, but nothing to gain */
		{ { .awaited = true }, true },
		{ { .awaited = true, .busy = 1 }, false }, /* its time is another CPU's */
		{ { .halted = 1 }, true },
		{ { .halted = 1, .busy = 1 }, false },
		{ { .awaited = true, .halted = 1 }, true },
		{ { .awaited = true, .halted = 1, .busy = 1 }, false },
		{ { .busy = 1 }, false },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct poll_view view = rows[i].view;

		CU_ASSERT_EQUAL(poll_pays(&view), rows[i].pays);
		view.quiet_ns = POLL_US * NS - 1;
		CU_ASSERT_EQUAL(poll_pays(&view), rows[i].pays);
		view.quiet_ns = POLL_US * NS;
		CU_ASSERT_FALSE(poll_pays(&view));
	}
}

/* ---- CPUs that have halted for good ---- */

enum { SECOND = 1000000000 };

/* Each of these CPUs says at `s` seconds that it has halted for good.  Returns the last answer. */
static bool say_halted(struct halted *h, unsigned s, uint32_t mask, uint32_t started)
{
	bool ends = false;

	for (unsigned cpu = 0; cpu < 32; cpu++)
		if (mask >> cpu & 1)
			ends = halted_take(h, 3,
					   &(struct msg_cpu_halted){ cpu, started >> cpu & 1 },
					   (uint64_t)s * SECOND);
	return ends;
}

static void test_halted(void)
{
	struct halted h = { .since_ns = 0 };

	for (unsigned s = 1; s < 20; s++)
		CU_ASSERT_FALSE(say_halted(&h, s, 6, 2)); /* CPU 0 runs */
	for (unsigned s = 20; s < 25; s++)
		CU_ASSERT_FALSE(say_halted(&h, s, 7, 3)); /* it may have started another */
	/* one was started meanwhile */
	h = (struct halted){ .since_ns = 0 };
	for (unsigned s = 1; s < 5; s++)
		CU_ASSERT_FALSE(say_halted(&h, s, 7, 3));
	for (unsigned s = 5; s < 20; s++)
		CU_ASSERT_FALSE(say_halted(&h, s, 5, 1));
	for (unsigned s = 20; s < 25; s++)
		CU_ASSERT_FALSE(say_halted(&h, s, 7, 3));
	CU_ASSERT_TRUE(say_halted(&h, 25, 7, 3));
	/* none was started yet: the machine begins */
	h = (struct halted){ .since_ns = 0 };
	for (unsigned s = 1; s < 20; s++)
		CU_ASSERT_FALSE(say_halted(&h, s, 7, 0));
	CU_ASSERT_FALSE(say_halted(&h, 20, 0xfffffff8, 8)); /* there is no such CPU */
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "moves, one by one", test_moves_one_by_one },
		{ "moves that cannot be", test_moves_refused },
		{ "requests for hosts", test_host_queue },
		{ "hosts that may go", test_host_may_go },
		{ "homes of hosts that come and go", test_host_homes },
		{ "CPUs of hosts that go", test_host_cpus },
		{ "spread and concentrate", test_placement },
		{ "a CPU follows its pages", test_placement_towards_pages },
		{ "an idle CPU goes where tasks wait", test_placement_where_tasks_wait },
		{ "a CPU leaves a loaded host", test_placement_away_from_load },
		{ "processors of a host", test_processors },
		{ "processors: room for the daemon", test_processors_room },
		{ "when the daemon looks instead of sleeping", test_poll },
		{ "CPUs that have halted for good", test_halted },
		UNIT_END
	};

	return UNIT_RUN("plans of node 0", tests);
}
