/* gdb.c - what GDB sends as packets and commands, whole dialogues between GDB and a machine of make-believe, addresses. */
#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "vmm/cli/gdb/gdb_peer.h"
#include "vmm/cli/gdb/gdb_server.h"
#include "vmm/cli/gdb/gdb_session.h"
#include "vmm/cli/gdb/rsp.h"

/* ---- packets ---- */

/* One letter an event: P packet, I interrupt, + -, D damaged, F foreign. */
static const char *events_of(const char *bytes, size_t n)
{
	static const char letters[] = { [RSP_NOTHING] = 0, [RSP_PACKET] = 'P', [RSP_INTERRUPT] = 'I', [RSP_ACK] = '+', [RSP_NAK] = '-',
					[RSP_DAMAGED] = 'D', [RSP_FOREIGN] = 'F' };
	static char events[RSP_MAX_TEXT + 16];
	struct rsp_reader reader = { 0 };
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		enum rsp_event event = rsp_read(&reader, (uint8_t)bytes[i]);

		if (event != RSP_NOTHING && at + 1 < sizeof events)
			events[at++] = letters[event];
	}
	events[at] = 0;
	return events;
}

static void packets(void)
{
	static const struct { const char *bytes, *events; } cases[] = {
		{ "", "" }, { "$?#3f", "P" }, { "$#00", "P" }, { "+$?#3F+", "+P+" }, { "$g#66", "D" }, { "-\003", "-I" }, { "$g#6", "" },
		{ "$g#67$g#67", "PP" }, { "$a\003b#c6", "P" }, { "$g#zz", "FF" }, { "$g#6z", "F" }, { "GET / HTTP/1.1", "FFFFFFFFFFFFFF" },
		{ "$g$g#f2", "P" },
	};
	char longest[RSP_MAX_TEXT + 8], zero[] = "$m\0";

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
		CU_ASSERT_STRING_EQUAL(events_of(cases[i].bytes, strlen(cases[i].bytes)), cases[i].events);
	CU_ASSERT_STRING_EQUAL(events_of(zero, 3), "F");
	memset(longest, 'x', sizeof longest);
	longest[0] = '$';
	CU_ASSERT_STRING_EQUAL(events_of(longest, RSP_MAX_TEXT + 1), "");
	CU_ASSERT_STRING_EQUAL(events_of(longest, RSP_MAX_TEXT + 2), "F");
}

static void frames(void)
{
	static const struct { const char *text, *frame; } cases[] = { { "", "$#00" }, { "OK", "$OK#9a" }, { "E0e", "$E0e#da" } };
	char out[32];

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		size_t n = rsp_frame(cases[i].text, strlen(cases[i].text), out);

		CU_ASSERT(n == strlen(cases[i].frame) && !memcmp(out, cases[i].frame, n));
	}
}

static void commands(void)
{
	static const struct { const char *text; enum rsp_kind kind; int32_t thread; uint32_t address, length; const char *rest; } cases[] = {
		{ "?", RSP_WHY, 0, 0, 0, "" },
		{ "g", RSP_GET_REGISTERS, 0, 0, 0, "" },
		{ "p1f", RSP_GET_REGISTER, 0, 0x1f, 0, "" },
		{ "P8=00ff", RSP_SET_REGISTER, 0, 8, 0, "00ff" },
		{ "mc0001000,40", RSP_GET_MEMORY, 0, 0xc0001000, 0x40, "" },
		{ "mFFFFFFFF,ffffffff", RSP_GET_MEMORY, 0, ~0u, ~0u, "" },
		{ "m100000000,1", RSP_UNKNOWN, 0, 0, 0, "m100000000,1" },
		{ "m1000", RSP_UNKNOWN, 0, 0, 0, "m1000" },
		{ "m,4", RSP_UNKNOWN, 0, 0, 0, "m,4" },
		{ "m1,4,", RSP_UNKNOWN, 0, 0, 0, "m1,4," },
		{ "M10,2:abcd", RSP_SET_MEMORY, 0, 0x10, 2, "abcd" },
		{ "Z0,c0,1", RSP_INSERT, 0, 0xc0, 1, "" },
		{ "z0,c0,1", RSP_REMOVE, 0, 0xc0, 1, "" },
		{ "Z1,c0,1", RSP_UNKNOWN, 0, 0, 0, "Z1,c0,1" },
		{ "Z2,c0001000,4", RSP_WATCH, 0, 0xc0001000, 4, "" },
		{ "z2,c0001000,4", RSP_UNWATCH, 0, 0xc0001000, 4, "" },
		{ "Z3,c0001000,4", RSP_UNKNOWN, 0, 0, 0, "Z3,c0001000,4" }, /* GDB makes it out of Z4 */
		{ "Z4,c0001000,10", RSP_WATCH_ACCESS, 0, 0xc0001000, 16, "" },
		{ "z4,c0001000,10", RSP_UNWATCH_ACCESS, 0, 0xc0001000, 16, "" },
		{ "Z2,c0001000", RSP_UNKNOWN, 0, 0, 0, "Z2,c0001000" },
		{ "Hg0", RSP_THREAD_OF_G, 0, 0, 0, "" },
		{ "Hc-1", RSP_THREAD_OF_C, -1, 0, 0, "" },
		{ "Hg80000000", RSP_UNKNOWN, 0, 0, 0, "Hg80000000" },
		{ "T3", RSP_THREAD_LIVES, 3, 0, 0, "" },
		{ "qC", RSP_THREAD_NOW, 0, 0, 0, "" },
		{ "qCRC:0,1", RSP_UNKNOWN, 0, 0, 0, "qCRC:0,1" },
		{ "qSupported:swbreak+", RSP_SUPPORTED, 0, 0, 0, ":swbreak+" },
		{ "qXfer:features:read:target.xml:0,ffb", RSP_FEATURES, 0, 0, 0xffb, "" },
		{ "qXfer:features:read:other.xml:0,ffb", RSP_UNKNOWN, 0, 0, 0, "qXfer:features:read:other.xml:0,ffb" },
		{ "vCont?", RSP_RESUMES, 0, 0, 0, "" },
		{ "vCont;c", RSP_RESUME, 0, 0, 0, ";c" },
		{ "vMustReplyEmpty", RSP_UNKNOWN, 0, 0, 0, "vMustReplyEmpty" },
		{ "D", RSP_DETACH, 0, 0, 0, "" },
		{ "k", RSP_KILL, 0, 0, 0, "" },
		{ "", RSP_UNKNOWN, 0, 0, 0, "" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct rsp_command c = rsp_parse(cases[i].text);

		CU_ASSERT(c.kind == cases[i].kind && c.thread == cases[i].thread && c.address == cases[i].address &&
			  c.length == cases[i].length && !strcmp(c.rest, cases[i].rest));
	}
}

static void actions(void)
{
	static const struct { const char *rest, *actions, *left; } cases[] = {
		{ ";c", "c-1 ", "" }, { ";s:1;c", "s1 c-1 ", "" }, { ";C05:2;S0b:-1", "c2 s-1 ", "" }, { ";s:1f", "s31 ", "" },
		{ "", "", "" }, { ";", "", ";" }, { ";t", "", ";t" }, { ";c:", "", ";c:" }, { ";cx", "", ";cx" }, { ";C", "", ";C" },
		{ ";c;r1,2", "c-1 ", ";r1,2" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		const char *rest = cases[i].rest;
		struct rsp_action action;
		char text[64] = "";

		while (rsp_next_action(&rest, &action))
			sprintf(text + strlen(text), "%c%d ", action.step ? 's' : 'c', action.thread);
		CU_ASSERT_STRING_EQUAL(text, cases[i].actions);
		CU_ASSERT_STRING_EQUAL(rest, cases[i].left);
	}
}

/* ---- dialogues ---- */

enum { CPUS = 2, MEMORY = 3 * PAGE_BYTES, LINEAR = 0x1000 };

/* Linear LINEAR + x is physical x, but that the second page is not mapped when `hole`. */
static struct world {
	struct gdb_session s;
	uint8_t memory[MEMORY];
	struct debug_registers r[CPUS];
	char went[256];	   /* to CPUs, without what is answered at once */
	char heard[2 * RSP_MAX_TEXT];  /* by GDB */
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
	snprintf(w.heard + strlen(w.heard), sizeof w.heard - strlen(w.heard), "%.*s", (int)n, bytes);
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
	static const char letters[] = { [DEBUG_ATTACH] = 'a', [DEBUG_DETACH] = 'd', [DEBUG_STOP] = 'h', [DEBUG_GO] = 'g', [DEBUG_STEP] = 's',
					[DEBUG_PASS] = 'p', [DEBUG_FREE] = 'f' };
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

/* GDB sends it; what it hears, without acknowledgements. */
static const char *say(const char *text)
{
	static char heard[sizeof w.heard];

	w.heard[0] = w.went[0] = 0;
	send_packet(text);
	answer_all();
	strcpy(heard, w.heard);
	return *heard == '+' ? heard + 1 : heard;
}

/* All stand, no acknowledgements, swbreak is known. */
static void begin_attached(void)
{
	begin(true);
	stops(0, WHY_ASKED, 0);
	stops(1, WHY_ASKED, 0);
	say("qSupported:swbreak+;hwbreak+");
	CU_ASSERT_STRING_EQUAL(say("QStartNoAckMode"), "$OK#9a");
}

/* All CPUs have died before a debugger comes. */
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
	CU_ASSERT_STRING_EQUAL(w.heard, ""); /* not before all stand */
	stops(0, WHY_ASKED, 0);
	CU_ASSERT(strstr(w.heard, "$T05thread:2;swbreak:;#") != NULL);
	CU_ASSERT_STRING_EQUAL(say("z0,1010,1"), "$OK#9a");
	CU_ASSERT_EQUAL(w.memory[0x10], 0x66);
	CU_ASSERT_STRING_EQUAL(say("z0,1010,1"), "$OK#9a");
}

/* An int3 that is not ours is passed; while others stop it waits, and is met again. */
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

/* DR7 as a text: each register as enabled, kind, length. */
static void watch_plans(void)
{
	static const struct { struct gdb_watch watch[GDB_MAX_WATCHES]; int error; struct debug_watch plan; } cases[] = {
		{ { { 0 } }, 0, { { 0 }, 0 } },
		{ { { 1, 0x1003, false } }, 0, { { 0x1003 }, 0x00010001 } },
		{ { { 2, 0x1002, true } }, 0, { { 0x1002 }, 0x00070001 } },
		{ { { 4, 0x1004, false } }, 0, { { 0x1004 }, 0x000d0001 } },
		{ { { 8, 0x1008, false } }, 0, { { 0x1008 }, 0x00090001 } },
		{ { { 8, 0x1004, false } }, 0, { { 0x1004, 0x1008 }, 0x00dd0005 } },
		{ { { 4, 0x1001, false } }, 0, { { 0x1001, 0x1002, 0x1004 }, 0x01510015 } },
		{ { { 0 }, { 32, 0x1000, true } }, 0, { { 0x1000, 0x1008, 0x1010, 0x1018 }, 0xbbbb0055 } },
		{ { { 4, 0x1000, false }, { 1, 0x2000, true } }, 0, { { 0x1000, 0x2000 }, 0x003d0005 } },
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

/* Both touch it in the same moment: GDB hears of the second when it lets it go, if it still watches. */
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
		CU_ASSERT(!strncmp(say("vCont;c"), still ? "$T05thread:1;awatch:1011;#" : "", still ? 26 : 1));
		CU_ASSERT_STRING_EQUAL(w.went, still ? "" : "g0g1");
		CU_ASSERT(!still || !strcmp(say("vCont;c"), ""));
	}
}

/* It leaves none: who is free watches nothing. */
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
	static const struct { const char *resume, *went; } cases[] = {
		{ "vCont;s:1;c", "s0g1" }, { "vCont;s:2", "s1" }, { "vCont;c:1;s:2", "g0s1" }, { "c", "g0g1" }, { "s", "s0g1" },
		{ "vCont;s", "s0s1" }, { "vCont;C05", "g0g1" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		begin_attached();
		CU_ASSERT_STRING_EQUAL(say(cases[i].resume), "");
		CU_ASSERT_STRING_EQUAL(w.went, cases[i].went);
	}
	begin_attached();
	CU_ASSERT_STRING_EQUAL(say("vCont;s:9"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("vCont;q"), "$E16#ac");
	CU_ASSERT_STRING_EQUAL(say("vCont;s:2"), ""); /* the other one stands */
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
	CU_ASSERT_EQUAL(gdb_take(&w.s, (const uint8_t *)"$", 1), 0); /* nothing is read before the answer is due */
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
	CU_ASSERT_STRING_EQUAL(say("m1ffe,4"), "$0001#c1"); /* as far as there is any */
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
	CU_ASSERT(!strncmp(all, "$44332211", 9) && strlen(all) == 4 + 2 * sizeof(struct debug_registers));
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
	CU_ASSERT(!strncmp(say("qThreadExtraInfo,2"), "$4350552331205b686f737420305d#", 30)); /* CPU#1 [host 0] */
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

/* It died while the machine ran with a breakpoint; the next one waits until that is cleaned up. */
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

/* It died while its breakpoint was on its way into memory. */
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
	w.refuses = true; /* something moves just then */
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

/* Whoever is no GDB is hung up on, and the machine hears nothing; one that waits goes on waiting. */
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

/* ---- addresses ---- */

static void addresses(void)
{
	static const struct { const char *text; unsigned port; bool nowait; const char *wrong; } cases[] = {
		{ "127.0.0.1:1234", 1234, false, NULL }, { "127.9.8.7:1,nowait", 1, true, NULL }, { "localhost:65535", 65535, false, NULL },
		{ "[::1]:1234", 1234, false, NULL }, { "127.0.0.1:0", 0, false, NULL },
		{ "0.0.0.0:1234", 0, false, "only addresses of this computer" }, { "192.168.1.1:1234", 0, false, "only addresses" },
		{ "[::]:1234", 0, false, "only addresses" }, { ":1234", 0, false, "only addresses" }, { "host:1234", 0, false, "only addresses" },
		{ "128.0.0.1:1", 0, false, "only addresses" }, { "1234", 0, false, "write it as" }, { "127.0.0.1", 0, false, "write it as" },
		{ "127.0.0.1:65536", 0, false, "write it as" }, { "127.0.0.1:", 0, false, "write it as" }, { "127.0.0.1:-1", 0, false, "write it as" },
		{ "127.0.0.1:12,wait", 0, false, "write it as" }, { ",nowait", 0, false, "write it as" },
		{ "127.0.0.1:99999999999999999999", 0, false, "write it as" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct gdb_address a;
		struct problem p = { "" };

		CU_ASSERT_EQUAL(gdb_address_parse(cases[i].text, &a, &p) != 0, cases[i].wrong != NULL);
		CU_ASSERT(!cases[i].wrong || strstr(p.line, cases[i].wrong));
		CU_ASSERT(cases[i].wrong || (ntohs(a.at.v4.sin_port) == cases[i].port && a.nowait == cases[i].nowait));
	}
}

/* ---- who connects ---- */

static const char table[] =
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	"   0: 0100007F:04D2 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0\n"
	"   1: 0100007F:04D2 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20 4 0 10 -1\n"
	"   2: 0100007F:C001 0100007F:04D2 01 00000000:00000000 00:00000000 00000000  1001        0 13 1 0 20 4 0 10 -1\n"
	"   3: 0100007F:C002 0100007F:04D2 04 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 0 10 -1\n"
	"   4: 0100007F:C003 0100007F:04D2 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 0 10 -1\n"
	"   5: 0000000000000000FFFF00000100007F:C004 0000000000000000FFFF00000100007F:04D2 01 00000000:00000000 00:00000000 "
	"00000000  1004        0 14 1 0 20 4 0 10 -1\n"
	"   6: 00000000000000000000000001000000:C005 00000000000000000000000001000000:04D2 01 00000000:00000000 00:00000000 "
	"00000000  1005        0 15 1 0 20 4 0 10 -1\n"
	"   7: 01000000:C006 01000000:04D2 01 00000000:00000000 00:00000000 00000000  1006        0 16 1 0 20 4 0 10 -1\n"
	"nonsense\n";

static union gdb_peer end_at(bool v6, unsigned port)
{
	union gdb_peer end = { .v4 = { .sin_family = AF_INET, .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };

	if (v6)
		end.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port),
						.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	return end;
}

static void peers(void)
{
	static const struct { bool v6; unsigned port; bool found; uid_t user; } rows[] = {
		{ false, 0xc001, true, 1001 }, /* the peer's end, not ours */
		{ false, 0xc002, false, 0 }, { false, 0xc003, false, 0 }, /* closed: without a user */
		{ false, 0xc004, true, 1004 }, { true, 0xc005, true, 1005 },
		{ true, 0xc006, false, 0 }, /* another family's address */
		{ false, 0xc009, false, 0 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		union gdb_peer peer = end_at(rows[i].v6, rows[i].port), own = end_at(rows[i].v6, 0x4d2);
		FILE *file = fmemopen((void *)(uintptr_t)table, sizeof table - 1, "r");
		uid_t user = 0;

		CU_ASSERT_EQUAL(gdb_peer_find(file, &peer, &own, &user), rows[i].found);
		CU_ASSERT_EQUAL(user, rows[i].user);
		fclose(file);
	}
}

/* What a real connection is said to be, of another user's process or ours; `closed`: by its maker, at once. */
static int said_of_connection(bool v6, uid_t other, bool closed)
{
	union gdb_peer at = end_at(v6, 0);
	socklen_t bytes = v6 ? sizeof at.v6 : sizeof at.v4;
	int listener = socket(at.any.sa_family, SOCK_STREAM, 0), fd, result, go[2];
	uid_t user = 0;
	pid_t pid;

	if (bind(listener, &at.any, bytes) && v6) { /* this computer has no IPv6 */
		close(listener);
		return other ? -EPERM : closed ? -ESRCH : 0;
	}
	CU_ASSERT_FATAL(!listen(listener, 1) && !getsockname(listener, &at.any, &bytes) && !pipe(go));
	pid = fork();
	if (!pid) {
		char byte;
		int mine;

		close(go[1]);
		if (other && setuid(other))
			_exit(1);
		mine = socket(at.any.sa_family, SOCK_STREAM, 0);
		if (connect(mine, &at.any, bytes))
			_exit(1);
		if (closed)
			close(mine);
		_exit(read(go[0], &byte, 1) != 0); /* until the test is over */
	}
	close(go[0]);
	fd = accept(listener, NULL, NULL);
	if (closed) { /* its end has been seen */
		char byte;

		CU_ASSERT_EQUAL(read(fd, &byte, 1), 0);
	}
	result = gdb_peer_check(fd, &user);
	CU_ASSERT(result == -ESRCH || user == (other ? other : geteuid()));
	close(go[1]);
	CU_ASSERT(waitpid(pid, NULL, 0) == pid);
	close(fd);
	close(listener);
	return result;
}

static void connections(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		CU_ASSERT_EQUAL(said_of_connection(v6, 0, false), 0);
		CU_ASSERT_EQUAL(said_of_connection(v6, 0, true), -ESRCH);
		if (geteuid() == 0) /* nobody else can become another user */
			CU_ASSERT_EQUAL(said_of_connection(v6, 65534, false), -EPERM);
	}
}

/* The path of a kernel may be a snapshot's word; it is shown as a command to paste. */
static void pasted(void)
{
	static const struct { const char *kernel, *line; } rows[] = {
		{ "/k/vmlinux-6.1", "gdb /k/vmlinux-6.1 -ex 'target " }, { "", "gdb '' -ex 'target " },
		{ "/a b;$(reboot)", "gdb '/a b;$(reboot)' -ex 'target " }, { "/it's", "gdb '/it'\\''s' -ex 'target " },
		{ "/a\nb\033c", "gdb '/a?b?c' -ex 'target " },
	};
	struct gdb_address a;
	struct gdbserver g;
	struct problem p;
	char line[4200], word[4096];

	CU_ASSERT_FATAL(!gdb_address_parse("127.0.0.1:0", &a, &p) && !gdbserver_listen(&g, &a, &p));
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		gdbserver_describe(&g, rows[i].kernel, line, sizeof line);
		CU_ASSERT(!strncmp(line, rows[i].line, strlen(rows[i].line)));
	}
	memset(word, '\'', sizeof word - 1);
	word[sizeof word - 1] = 0;
	gdbserver_describe(&g, word, line, sizeof line);
	CU_ASSERT(strlen(line) < sizeof line);
	close(g.fd);
}

int main(void)
{
	static const struct { const char *name; void (*test)(void); } tests[] = {
		{ "packets", packets }, { "frames", frames }, { "commands", commands }, { "actions", actions },
		{ "dead before", dead_before }, { "a breakpoint is hit", breakpoint_hit },
		{ "the guest's own int3", foreign_breakpoint }, { "steps", steps },
		{ "plans of watchpoints", watch_plans }, { "watchpoints", watchpoints }, { "watchpoints that cannot be", watchpoints_refused },
		{ "two CPUs touch what is watched", watched_twice }, { "no watchpoint is left", watch_leaves },
		{ "Ctrl-C", interrupted }, { "memory over pages", memory_over_pages }, { "registers", registers }, { "threads", threads },
		{ "kill", kill_machine }, { "detach", detached }, { "GDB dies", died }, { "GDB dies in a request", died_in_a_request },
		{ "GDB comes later", attaches_later }, { "strangers", strangers }, { "the machine ends", machine_ends },
		{ "wrong answers", wrong_answers }, { "addresses", addresses },
		{ "who connects", peers }, { "connections", connections }, { "a line to paste", pasted },
	};
	unsigned failures;
	CU_pSuite suite;

	if (CU_initialize_registry())
		return 1;
	suite = CU_add_suite("GDB", NULL, NULL);
	for (unsigned i = 0; i < ARRAY_LEN(tests); i++)
		CU_add_test(suite, tests[i].name, tests[i].test);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
