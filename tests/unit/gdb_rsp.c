/* gdb_rsp.c - tests of GDB's remote protocol: packets, frames, commands, actions. */
#include <stdio.h>
#include <string.h>
#include "tests/unit/unit.h"
#include "vmm/cli/gdb/rsp.h"

/* ---- packets ---- */

/* One letter an event: P packet, I interrupt, + -, D damaged, F foreign. */
static const char *events_of(const char *bytes, size_t n)
{
	static const char letters[] = {
		[RSP_NOTHING] = 0, [RSP_PACKET] = 'P',	[RSP_INTERRUPT] = 'I', [RSP_ACK] = '+',
		[RSP_NAK] = '-',   [RSP_DAMAGED] = 'D', [RSP_FOREIGN] = 'F'
	};
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
	static const struct { const char *bytes, *events;
	} cases[] = {
		{ "", "" },
		{ "$?#3f", "P" },
		{ "$#00", "P" },
		{ "+$?#3F+", "+P+" },
		{ "$g#66", "D" },
		{ "-\003", "-I" },
		{ "$g#6", "" },
		{ "$g#67$g#67", "PP" },
		{ "$a\003b#c6", "P" },
		{ "$g#zz", "FF" },
		{ "$g#6z", "F" },
		{ "GET / HTTP/1.1", "FFFFFFFFFFFFFF" },
		{ "$g$g#f2", "P" },
	};
	char longest[RSP_MAX_TEXT + 8], zero[] = "$m\0";

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
		CU_ASSERT_STRING_EQUAL(events_of(cases[i].bytes, strlen(cases[i].bytes)),
				       cases[i].events);
	CU_ASSERT_STRING_EQUAL(events_of(zero, 3), "F");
	memset(longest, 'x', sizeof longest);
	longest[0] = '$';
	CU_ASSERT_STRING_EQUAL(events_of(longest, RSP_MAX_TEXT + 1), "");
	CU_ASSERT_STRING_EQUAL(events_of(longest, RSP_MAX_TEXT + 2), "F");
}

static void frames(void)
{
	static const struct {
		const char *text, *frame;
	} cases[] = { { "", "$#00" }, { "OK", "$OK#9a" }, { "E0e", "$E0e#da" } };
	char out[32];

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		size_t n = rsp_frame(cases[i].text, strlen(cases[i].text), out);

		CU_ASSERT(n == strlen(cases[i].frame) && !memcmp(out, cases[i].frame, n));
	}
}

static void commands(void)
{
	static const struct {
		const char *text;
		enum rsp_kind kind;
		int32_t thread;
		uint32_t address, length;
		const char *rest;
	} cases[] = {
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
		/* GDB derives it from Z4 */
		{ "Z3,c0001000,4", RSP_UNKNOWN, 0, 0, 0, "Z3,c0001000,4" },
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
		{ "qXfer:features:read:other.xml:0,ffb", RSP_UNKNOWN, 0, 0, 0,
		  "qXfer:features:read:other.xml:0,ffb" },
		{ "vCont?", RSP_RESUMES, 0, 0, 0, "" },
		{ "vCont;c", RSP_RESUME, 0, 0, 0, ";c" },
		{ "vMustReplyEmpty", RSP_UNKNOWN, 0, 0, 0, "vMustReplyEmpty" },
		{ "D", RSP_DETACH, 0, 0, 0, "" },
		{ "k", RSP_KILL, 0, 0, 0, "" },
		{ "", RSP_UNKNOWN, 0, 0, 0, "" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct rsp_command c = rsp_parse(cases[i].text);

		CU_ASSERT(c.kind == cases[i].kind && c.thread == cases[i].thread &&
			  c.address == cases[i].address && c.length == cases[i].length &&
			  !strcmp(c.rest, cases[i].rest));
	}
}

static void actions(void)
{
	static const struct { const char *rest, *actions, *left;
	} cases[] = {
		{ ";c", "c-1 ", "" },
		{ ";s:1;c", "s1 c-1 ", "" },
		{ ";C05:2;S0b:-1", "c2 s-1 ", "" },
		{ ";s:1f", "s31 ", "" },
		{ "", "", "" },
		{ ";", "", ";" },
		{ ";t", "", ";t" },
		{ ";c:", "", ";c:" },
		{ ";cx", "", ";cx" },
		{ ";C", "", ";C" },
		{ ";c;r1,2", "c-1 ", ";r1,2" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		const char *rest = cases[i].rest;
		struct rsp_action action;
		char text[64] = "";

		while (rsp_next_action(&rest, &action))
			sprintf(text + strlen(text), "%c%d ", action.step ? 's' : 'c',
				action.thread);
		CU_ASSERT_STRING_EQUAL(text, cases[i].actions);
		CU_ASSERT_STRING_EQUAL(rest, cases[i].left);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "packets", packets },
		{ "frames", frames },
		{ "commands", commands },
		{ "actions", actions },
		UNIT_END
	};

	return UNIT_RUN("GDB packets", tests);
}
