/* gdb_dialogue.c - tests of whole dialogues between GDB and a fake machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"
#include "vmm/cli/gdb/gdb_session.h"
#include "vmm/cli/gdb/rsp.h"

/* ---- dialogues ---- */

enum { CPUS = 2, MEMORY = 3 * PAGE_BYTES, LINEAR = 0x1000 };

/* Linear LINEAR + x is physical x; the second page is not mapped if `hole`. */
static struct world {
	struct gdb_session s;
	uint8_t memory[MEMORY];
	struct debug_registers r[CPUS];
	char went[256];	   /* messages to CPUs, without those that are answered at once */
	char heard[2 * RSP_MAX_TEXT];  /* what GDB has received */
	bool hole, ended, hung_up, refuses;
	struct debug_watch watch[CPUS];
	bool unwatchable[CPUS];
	unsigned again;
	struct { struct msg_debug answer; uint8_t payload[PAGE_BYTES]; size_t n; } queue[8];
	unsigned queued;
} w;

static void to_gdb(void *ctx, const char *bytes, size_t n)
{
	(void)ctx;
	snprintf(w.heard + strlen(w.heard), sizeof w.heard - strlen(w.heard), "%.*s", (int)n,
		 bytes);
}

static void queue(const struct msg_debug *answer, const void *payload, size_t n)
{
	CU_ASSERT_FATAL(w.queued < ARRAY_LEN(w.queue));
	w.queue[w.queued].answer = *answer;
	memcpy(w.queue[w.queued].payload, payload, n);
	w.queue[w.queued++].n = n;
}

static void read_memory(struct msg_debug *a)
{
	uint32_t left = PAGE_BYTES - a->address % PAGE_BYTES, n = a->bytes < left ? a->bytes : left;

	if (a->address - LINEAR >= MEMORY || (w.hole && (a->address - LINEAR) / PAGE_BYTES == 1)) {
		a->error = EFAULT;
		queue(a, "", 0);
		return;
	}
	a->address -= LINEAR;
	queue(a, w.memory + a->address, n);
}

static void to_machine(void *ctx, const struct msg_debug *request, const void *payload, size_t n)
{
	static const char letters[] = {
		[DEBUG_ATTACH] = 'a', [DEBUG_DETACH] = 'd', [DEBUG_STOP] = 'h', [DEBUG_GO] = 'g',
		[DEBUG_STEP] = 's',   [DEBUG_PASS] = 'p',   [DEBUG_FREE] = 'f'
	};
	struct msg_debug a = *request;

	(void)ctx;
	switch (a.op) {
	case DEBUG_READ: read_memory(&a); return;
	case DEBUG_WRITE:
		CU_ASSERT_FATAL(a.address + n <= MEMORY);
		memcpy(w.memory + a.address, payload, n);
		queue(&a, "", 0);
		return;
	case DEBUG_REGISTERS: queue(&a, &w.r[a.cpu], sizeof w.r[0]); return;
	case DEBUG_WATCH:
		CU_ASSERT_FATAL(n == sizeof w.watch[0]);
		memcpy(&w.watch[a.cpu], payload, n);
		a.error = w.watch[a.cpu].control && w.unwatchable[a.cpu] ? ENOSPC : 0;
		queue(&a, "", 0);
		return;
	case DEBUG_SET_REGISTERS:
		memcpy(&w.r[a.cpu], payload, sizeof w.r[0]);
		queue(&a, "", 0);
		return;
	case DEBUG_ATTACH:
		a.error = w.refuses ? EAGAIN : 0;
		queue(&a, "", 0);
		break;
	default: break;
	}
	sprintf(w.went + strlen(w.went), "%c%u", letters[a.op], a.cpu);
}

static void try_again(void *ctx) { (void)ctx, w.again++; }
static void hang_up(void *ctx) { (void)ctx, w.hung_up = true; }
static void end_machine(void *ctx) { (void)ctx, w.ended = true; }

static void answer_one(void)
{
	struct msg_debug answer = w.queue[0].answer;
	uint8_t payload[PAGE_BYTES];
	size_t n = w.queue[0].n;

	CU_ASSERT_FATAL(w.queued > 0);
	memcpy(payload, w.queue[0].payload, n);
	memmove(w.queue, w.queue + 1, --w.queued * sizeof *w.queue);
	gdb_on_answer(&w.s, &answer, payload, n);
}

static void answer_all(void)
{
	while (w.queued)
		answer_one();
}

static void stops(unsigned cpu, enum debug_why why, gpa_t gpa)
{
	struct msg_debug stop = { .cpu = cpu, .op = DEBUG_STOP, .why = why, .address = gpa };

	gdb_on_answer(&w.s, &stop, "", 0);
	answer_all();
}

static void begin(bool held)
{
	static const struct gdb_ops ops = { to_gdb, to_machine, try_again, hang_up, end_machine };

	memset(&w, 0, sizeof w);
	gdb_init(&w.s, &ops, NULL, CPUS, held);
}

static void send_packet(const char *text)
{
	char frame[RSP_MAX_TEXT + 8];
	size_t n = rsp_frame(text, strlen(text), frame);

	CU_ASSERT_EQUAL(gdb_take(&w.s, (const uint8_t *)frame, n), n);
}

/* GDB sends text.  Returns what it receives, without acknowledgements. */
static const char *say(const char *text)
{
	static char heard[sizeof w.heard];

	w.heard[0] = w.went[0] = 0;
	send_packet(text);
	answer_all();
	strcpy(heard, w.heard);
	return *heard == '+' ? heard + 1 : heard;
}

/* All CPUs stand, there are no acknowledgements, and swbreak was negotiated. */
static void begin_attached(void)
{
	begin(true);
	stops(0, WHY_ASKED, 0);
	stops(1, WHY_ASKED, 0);
	say("qSupported:swbreak+;hwbreak+");
	CU_ASSERT_STRING_EQUAL(say("QStartNoAckMode"), "$OK#9a");
}

/* All CPUs have died before a debugger attaches. */
static void dead_before(void)
{
	begin(false);
	stops(0, WHY_DEAD, 0);
	stops(1, WHY_DEAD, 0);
	CU_ASSERT(!strncmp(say("qSupported:swbreak+"), "$PacketSize=", 12));
	gdb_gone(&w.s);
	answer_all();
	CU_ASSERT_EQUAL(w.s.state, GDB_ALONE);
}

static void breakpoint_hit(void)
{
	begin_attached();
	w.memory[0x10] = 0x55;
	CU_ASSERT_STRING_EQUAL(say("Z0,1010,1"), "$OK#9a");
	CU_ASSERT_EQUAL(w.memory[0x10], 0xcc);
	CU_ASSERT_STRING_EQUAL(say("Z0,1010,1"), "$OK#9a"); /* twice is once */
	CU_ASSERT_STRING_EQUAL(say("m1010,1"), "$55#6a"); /* GDB does not see it */
	CU_ASSERT_STRING_EQUAL(say("M1010,1:66"), "$OK#9a"); /* nor write over it */
	CU_ASSERT_EQUAL(w.memory[0x10], 0xcc);
	CU_ASSERT_STRING_EQUAL(say("m1010,1"), "$66#6c");
	CU_ASSERT_STRING_EQUAL(say("vCont;c"), "");
	CU_ASSERT_STRING_EQUAL(w.went, "g0g1");
	stops(1, WHY_BREAKPOINT, 0x10);
	CU_ASSERT_STRING_EQUAL(w.went, "g0g1h0");
	CU_ASSERT_STRING_EQUAL(w.heard, ""); /* not before all CPUs stand */
	stops(0, WHY_ASKED, 0);
	CU_ASSERT(strstr(w.heard, "$T05thread:2;swbreak:;#") != NULL);
	CU_ASSERT_STRING_EQUAL(say("z0,1010,1"), "$OK#9a");
	CU_ASSERT_EQUAL(w.memory[0x10], 0x66);
	CU_ASSERT_STRING_EQUAL(say("z0,1010,1"), "$OK#9a");
}

/* An int3 that is not GDB's is passed to the guest.  While other CPUs stop, it waits, and the CPU
 * meets it again. */
static void foreign_breakpoint(void)
{
	begin_attached();
	say("vCont;c");
	stops(0, WHY_BREAKPOINT, 0x20);
	CU_ASSERT_STRING_EQUAL(w.went, "g0g1p0");
	stops(1, WHY_STEP, 0);
	stops(0, WHY_BREAKPOINT, 0x20);
	CU_ASSERT_STRING_EQUAL(w.went, "g0g1p0h0");
	CU_ASSERT(strstr(w.heard, "$T05thread:2;#") != NULL);
}

/* Returns DR7 as text: enable bits, kind and length of each register. */
static void watch_plans(void)
{
	static const struct {
		struct gdb_watch watch[GDB_MAX_WATCHES];
		int error;
		struct debug_watch plan;
	} cases[] = {
		{ { { 0 } }, 0, { { 0 }, 0 } },
		{ { { 1, 0x1003, false } }, 0, { { 0x1003 }, 0x00010001 } },
		{ { { 2, 0x1002, true } }, 0, { { 0x1002 }, 0x00070001 } },
		{ { { 4, 0x1004, false } }, 0, { { 0x1004 }, 0x000d0001 } },
		{ { { 8, 0x1008, false } }, 0, { { 0x1008 }, 0x00090001 } },
		{ { { 8, 0x1004, false } }, 0, { { 0x1004, 0x1008 }, 0x00dd0005 } },
		{ { { 4, 0x1001, false } }, 0, { { 0x1001, 0x1002, 0x1004 }, 0x01510015 } },
		{ { { 0 }, { 32, 0x1000, true } },
		  0,
		  { { 0x1000, 0x1008, 0x1010, 0x1018 }, 0xbbbb0055 } },
		{ { { 4, 0x1000, false }, { 1, 0x2000, true } },
		  0,
		  { { 0x1000, 0x2000 }, 0x003d0005 } },
		{ { { 32, 0x1000, false }, { 1, 0x2000, false } }, -ENOSPC, { { 0 }, 0 } },
		{ { { 7, 0x1001, false }, { 7, 0x2001, false } }, -ENOSPC, { { 0 }, 0 } },
		{ { { ~0u, 0, false } }, -ENOSPC, { { 0 }, 0 } },
		{ { { 1, ~0u, false } }, 0, { { ~0u }, 0x00010001 } },
		{ { { 2, ~0u, false } }, -EINVAL, { { 0 }, 0 } },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct debug_watch plan;

		CU_ASSERT_EQUAL(gdb_watch_plan(cases[i].watch, &plan), cases[i].error);
		CU_ASSERT(cases[i].error || !memcmp(&plan, &cases[i].plan, sizeof plan));
	}
}

static bool watched_everywhere(uint32_t address, uint32_t control)
{
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		if (w.watch[cpu].address[0] != address || w.watch[cpu].control != control)
			return false;
	return true;
}

static void watchpoints(void)
{
	begin_attached();
	CU_ASSERT_STRING_EQUAL(say("Z2,1010,4"), "$OK#9a");
	CU_ASSERT(watched_everywhere(0x1010, 0x000d0001));
	CU_ASSERT_STRING_EQUAL(say("Z2,1010,4"), "$OK#9a"); /* twice is once */
	CU_ASSERT_STRING_EQUAL(say("vCont;c"), "");
	stops(1, WHY_WATCH, 0x1012);
	stops(0, WHY_ASKED, 0);
	CU_ASSERT(strstr(w.heard, "$T05thread:2;watch:1012;#") != NULL);
	CU_ASSERT_STRING_EQUAL(say("z2,1010,4"), "$OK#9a");
	CU_ASSERT(watched_everywhere(0, 0));
	CU_ASSERT_STRING_EQUAL(say("z2,1010,4"), "$OK#9a");
	CU_ASSERT_STRING_EQUAL(say("Z4,1018,8"), "$OK#9a");
	CU_ASSERT(watched_everywhere(0x1018, 0x000b0001));
	say("vCont;s:1;c");
	stops(0, WHY_WATCH, 0x1018);
	stops(1, WHY_ASKED, 0);
	CU_ASSERT(strstr(w.heard, "$T05thread:1;awatch:1018;#") != NULL);
	say("vCont;c");
	stops(0, WHY_STEP, 0x1018);
	stops(1, WHY_ASKED, 0);
	CU_ASSERT(strstr(w.heard, "$T05thread:1;#") != NULL);
}

static void watchpoints_refused(void)
{
	begin_attached();
	CU_ASSERT_STRING_EQUAL(say("Z3,1010,4"), "$#00");
	CU_ASSERT_STRING_EQUAL(say("Z2,1010,0"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("Z2,1010,64"), "$E1c#d9");
	CU_ASSERT_STRING_EQUAL(say("Z2,1010,4"), "$OK#9a");
	w.unwatchable[1] = true;
	CU_ASSERT_STRING_EQUAL(say("Z4,1020,4"), "$E1c#d9");
	CU_ASSERT(watched_everywhere(0x1010, 0x000d0001)); /* as before */
	w.unwatchable[1] = false;
	for (unsigned i = 1; i < GDB_MAX_WATCHES; i++) {
		char text[32];

		sprintf(text, "Z2,%x,1", 0x2000 + i);
		CU_ASSERT_STRING_EQUAL(say(text), "$OK#9a");
	}
	CU_ASSERT_STRING_EQUAL(say("Z2,3000,1"), "$E1c#d9");
	CU_ASSERT_STRING_EQUAL(say("z2,2001,1"), "$OK#9a");
	CU_ASSERT_STRING_EQUAL(say("Z2,3000,1"), "$OK#9a");
}

/* Both CPUs touch it at the same moment: GDB gets the second report when it lets that CPU go, if it
 * still watches. */
static void watched_twice(void)
{
	for (unsigned still = 0; still < 2; still++) {
		begin_attached();
		say("Z4,1010,4");
		say("vCont;c");
		stops(1, WHY_WATCH, 0x1010);
		stops(0, WHY_WATCH, 0x1011);
		CU_ASSERT(strstr(w.heard, "$T05thread:2;awatch:1010;#") != NULL);
		say("z4,1010,4");
		if (still)
			say("Z4,1010,4");
		CU_ASSERT(!strncmp(say("vCont;c"), still ? "$T05thread:1;awatch:1011;#" : "",
				   still ? 26 : 1));
		CU_ASSERT_STRING_EQUAL(w.went, still ? "" : "g0g1");
		CU_ASSERT(!still || !strcmp(say("vCont;c"), ""));
	}
}

/* A debugger leaves no watchpoint: a CPU that runs freely watches nothing. */
static void watch_leaves(void)
{
	begin_attached();
	say("Z2,1010,4");
	say("D");
	CU_ASSERT_STRING_EQUAL(w.went, "f0f1d0");
	say("?");
	stops(0, WHY_ASKED, 0);
	stops(1, WHY_ASKED, 0);
	CU_ASSERT_STRING_EQUAL(say("Z2,1020,1"), "$OK#9a");
	CU_ASSERT(watched_everywhere(0x1020, 0x00010001));
}

static void steps(void)
{
	static const struct { const char *resume, *went;
	} cases[] = {
		{ "vCont;s:1;c", "s0g1" }, { "vCont;s:2", "s1" }, { "vCont;c:1;s:2", "g0s1" },
		{ "c", "g0g1" },	   { "s", "s0g1" },	  { "vCont;s", "s0s1" },
		{ "vCont;C05", "g0g1" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		begin_attached();
		CU_ASSERT_STRING_EQUAL(say(cases[i].resume), "");
		CU_ASSERT_STRING_EQUAL(w.went, cases[i].went);
	}
	begin_attached();
	CU_ASSERT_STRING_EQUAL(say("vCont;s:9"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("vCont;q"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("vCont;s:2"), ""); /* the other CPU stands */
	stops(1, WHY_STEP, 0);
	CU_ASSERT(strstr(w.heard, "$T05thread:2;#") != NULL);
	CU_ASSERT_STRING_EQUAL(say("vCont;s:1"), "");
	stops(0, WHY_DEAD, 0);
	CU_ASSERT(strstr(w.heard, "$T06thread:1;#") != NULL);
}

static void interrupted(void)
{
	begin_attached();
	gdb_take(&w.s, (const uint8_t *)"\003", 1); /* all stand already */
	CU_ASSERT_STRING_EQUAL(say("vCont;c"), "");
	CU_ASSERT_EQUAL(gdb_take(&w.s, (const uint8_t *)"\003", 1), 1);
	CU_ASSERT_STRING_EQUAL(w.went, "g0g1h0h1");
	/* nothing is read before the answer is due */
	CU_ASSERT_EQUAL(gdb_take(&w.s, (const uint8_t *)"$", 1), 0);
	stops(1, WHY_ASKED, 0);
	stops(1, WHY_ASKED, 0);
	CU_ASSERT_STRING_EQUAL(w.heard, "");
	stops(0, WHY_ASKED, 0);
	CU_ASSERT(strstr(w.heard, "$T02thread:1;#") != NULL);
}

static void memory_over_pages(void)
{
	char text[2 * GDB_MAX_BYTES + 32];

	begin_attached();
	memset(w.memory + PAGE_BYTES - 1, 0xab, 2);
	CU_ASSERT_STRING_EQUAL(say("m1fff,2"), "$abab#86");
	CU_ASSERT_STRING_EQUAL(say("M1fff,2:0102"), "$OK#9a");
	CU_ASSERT(w.memory[PAGE_BYTES - 1] == 1 && w.memory[PAGE_BYTES] == 2);
	CU_ASSERT_STRING_EQUAL(say("M1fff,2:01"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("M1fff,2:010203"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("M1fff,0:"), "$OK#9a");
	CU_ASSERT_STRING_EQUAL(say("m1fff,0"), "$#00");
	CU_ASSERT_STRING_EQUAL(say("m0,4"), "$E0e#da");
	CU_ASSERT_STRING_EQUAL(say("Z0,0,1"), "$E0e#da");
	CU_ASSERT_STRING_EQUAL(say("mfffffffe,8"), "$E0e#da");
	w.hole = true;
	CU_ASSERT_STRING_EQUAL(say("m1ffe,4"), "$0001#c1"); /* as far as memory is mapped */
	CU_ASSERT_STRING_EQUAL(say("M1fff,2:0506"), "$E0e#da");
	CU_ASSERT_EQUAL(strlen(say("m1000,ffff")), 2 * GDB_MAX_BYTES + 4);
	strcpy(text, "M1000,800:");
	memset(text + 10, '5', 2 * GDB_MAX_BYTES);
	text[10 + 2 * GDB_MAX_BYTES - 20] = 0;
	CU_ASSERT_STRING_EQUAL(say(text), "$E16#ac");
}

static void registers(void)
{
	const char *all;

	begin_attached();
	w.r[1].core[0] = 0x11223344;
	w.r[1].cr3 = 0x1000;
	CU_ASSERT_STRING_EQUAL(say("Hg2"), "$OK#9a");
	all = say("g");
	CU_ASSERT(!strncmp(all, "$44332211", 9) &&
		  strlen(all) == 4 + 2 * sizeof(struct debug_registers));
	CU_ASSERT(!strncmp(say("p0"), "$44332211#", 10));
	memcpy(w.r[1].st[1], "0123456789", 10);
	w.r[1].fop = 0x7ff, w.r[1].mxcsr = 0x1f80;
	memcpy(w.r[1].xmm[7], "0123456789abcdef", 16);
	CU_ASSERT(!strncmp(say("p11"), "$30313233343536373839#", 22));
	CU_ASSERT(!strncmp(say("p1f"), "$ff070000#", 10));
	CU_ASSERT(!strncmp(say("p27"), "$30313233343536373839616263646566#", 34));
	CU_ASSERT(!strncmp(say("p28"), "$801f0000#", 10));
	CU_ASSERT(!strncmp(say("p2d"), "$00100000#", 10));
	CU_ASSERT_STRING_EQUAL(say("p2f"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("pffffffff"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("P1=78563412"), "$OK#9a");
	CU_ASSERT_EQUAL(w.r[1].core[1], 0x12345678);
	CU_ASSERT_STRING_EQUAL(say("Pa=78563412"), "$E16#ac"); /* a selector */
	CU_ASSERT_STRING_EQUAL(say("P11=41424344454647484950"), "$OK#9a");
	CU_ASSERT(!memcmp(w.r[1].st[1], "ABCDEFGHIP", 10));
	CU_ASSERT_STRING_EQUAL(say("P11=4142"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("P1f=00000000"), "$E16#ac"); /* of the last instruction */
	CU_ASSERT_STRING_EQUAL(say("P28=00000000"), "$OK#9a");
	CU_ASSERT_EQUAL(w.r[1].mxcsr, 0);
	CU_ASSERT_STRING_EQUAL(say("Pffffffff=78563412"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("P1=7856"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("G0011"), "$E16#ac");
	CU_ASSERT_EQUAL(w.r[0].core[1], 0);
}

static void threads(void)
{
	begin_attached();
	CU_ASSERT(!strncmp(say("qfThreadInfo"), "$m1,2#", 6));
	CU_ASSERT(!strncmp(say("qsThreadInfo"), "$l#", 3));
	/* CPU#1 [host 0] */
	CU_ASSERT(!strncmp(say("qThreadExtraInfo,2"), "$4350552331205b686f737420305d#", 30));
	CU_ASSERT_STRING_EQUAL(say("qThreadExtraInfo,3"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("T2"), "$OK#9a");
	CU_ASSERT_STRING_EQUAL(say("T0"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("Hg3"), "$E16#ac");
	CU_ASSERT(!strncmp(say("?"), "$T05thread:1;#", 14));
	CU_ASSERT(!strncmp(say("qAttached"), "$1#", 3));
	CU_ASSERT_STRING_EQUAL(say("vMustReplyEmpty"), "$#00");
	CU_ASSERT(!strncmp(say("qXfer:features:read:target.xml:0,10"), "$m<?xml", 7));
	CU_ASSERT(!strncmp(say("qXfer:features:read:target.xml:ffff,10"), "$E16", 4));
}

static void kill_machine(void)
{
	begin_attached();
	say("k");
	CU_ASSERT(w.ended);
}

static void detached(void)
{
	begin_attached();
	say("Z0,1010,1");
	say("Z0,1011,1");
	CU_ASSERT_STRING_EQUAL(say("D"), "$OK#9a");
	CU_ASSERT_STRING_EQUAL(w.went, "f0f1d0");
	CU_ASSERT(!w.memory[0x10] && !w.memory[0x11]);
	gdb_gone(&w.s);
	CU_ASSERT_STRING_EQUAL(w.went, "f0f1d0");
}

/* A debugger has died while the machine ran with a breakpoint.  The next one waits until that is
 * removed. */
static void died(void)
{
	begin_attached();
	say("Z0,1010,1");
	say("vCont;c");
	gdb_gone(&w.s);
	CU_ASSERT_STRING_EQUAL(w.went, "g0g1h0h1");
	CU_ASSERT_EQUAL(gdb_take(&w.s, (const uint8_t *)"$", 1), 0);
	stops(0, WHY_ASKED, 0);
	stops(1, WHY_BREAKPOINT, 0x10);
	CU_ASSERT_STRING_EQUAL(w.went, "g0g1h0h1f0f1d0");
	CU_ASSERT_EQUAL(w.memory[0x10], 0);
	CU_ASSERT_STRING_EQUAL(w.heard, "");
	CU_ASSERT_STRING_EQUAL(say("?"), "");
	CU_ASSERT_STRING_EQUAL(w.went, "a0h0h1");
}

/* A debugger has died while its breakpoint was being written. */
static void died_in_a_request(void)
{
	begin_attached();
	send_packet("Z0,1010,1");
	answer_one();
	CU_ASSERT_EQUAL(w.memory[0x10], 0xcc);
	gdb_gone(&w.s);
	answer_all();
	CU_ASSERT_EQUAL(w.memory[0x10], 0);
	CU_ASSERT(strstr(w.went, "f0f1d0") != NULL);
}

static void attaches_later(void)
{
	begin(false);
	w.refuses = true; /* a CPU is moving just then */
	CU_ASSERT_STRING_EQUAL(say("?"), "");
	CU_ASSERT_EQUAL(w.again, 1);
	CU_ASSERT_STRING_EQUAL(w.went, "a0");
	w.refuses = false;
	gdb_try_again(&w.s);
	answer_all();
	CU_ASSERT_STRING_EQUAL(w.went, "a0a0h0h1");
	stops(1, WHY_ASKED, 0);
	stops(0, WHY_ASKED, 0);
	CU_ASSERT(strstr(w.heard, "$T05thread:1;#") != NULL);
}

/* A peer that is no GDB is disconnected, and nothing of it reaches the machine; a machine that
 * waits keeps waiting. */
static void strangers(void)
{
	static const char *const words[] = { "GET / HTTP/1.1\r\n", "$?#zz", "\377\375", "hello" };

	for (unsigned i = 0; i < 2 * ARRAY_LEN(words); i++) {
		const char *word = words[i / 2];

		begin(i & 1);
		CU_ASSERT_EQUAL(gdb_take(&w.s, (const uint8_t *)word, strlen(word)), strlen(word));
		CU_ASSERT(w.hung_up);
		gdb_gone(&w.s);
		CU_ASSERT_STRING_EQUAL(w.went, "");
	}
}

static void machine_ends(void)
{
	begin_attached();
	say("vCont;c");
	gdb_machine_ended(&w.s, 3);
	CU_ASSERT(strstr(w.heard, "$W03#") != NULL);
}

static void wrong_answers(void)
{
	struct msg_debug answer = { .cpu = 77, .op = DEBUG_STOP };

	begin_attached();
	gdb_on_answer(&w.s, &answer, "", 0);
	send_packet("g");
	answer = (struct msg_debug){ .cpu = 0, .op = DEBUG_REGISTERS };
	gdb_on_answer(&w.s, &answer, "short", 5);
	CU_ASSERT(strstr(w.heard, "$E05#") != NULL);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "dead before", dead_before },
		{ "a breakpoint is hit", breakpoint_hit },
		{ "the guest's own int3", foreign_breakpoint },
		{ "steps", steps },
		{ "plans of watchpoints", watch_plans },
		{ "watchpoints", watchpoints },
		{ "watchpoints that cannot be", watchpoints_refused },
		{ "two CPUs touch what is watched", watched_twice },
		{ "no watchpoint is left", watch_leaves },
		{ "Ctrl-C", interrupted },
		{ "memory over pages", memory_over_pages },
		{ "registers", registers },
		{ "threads", threads },
		{ "kill", kill_machine },
		{ "detach", detached },
		{ "GDB dies", died },
		{ "GDB dies in a request", died_in_a_request },
		{ "GDB comes later", attaches_later },
		{ "strangers", strangers },
		{ "the machine ends", machine_ends },
		{ "wrong answers", wrong_answers },
		UNIT_END
	};

	return UNIT_RUN("GDB dialogues", tests);
}
