/* phnx_wire.c - numbers and bytes in frames; which node the failure detector gossips to. */
#include "phoenix/flow/flow_private.h"
#include "phoenix/flow/mapping.h"
#include "phoenix/link/link_private.h"
#include "phoenix/node/life.h"
#include "phoenix/routing/routing_private.h"
#include "phoenix/services/services_private.h"
#include "tests/unit/unit.h"

/* ---- bytes.h ---- */

static const uint64_t numbers[] = { 0,	   1,	       127,	   128,	       255,	  16383,
				    16384, UINT32_MAX, 1ULL << 62, 1ULL << 63, UINT64_MAX };
enum { N = sizeof numbers / sizeof *numbers };

static void test_numbers(void)
{
	struct writer w = { 0 };
	char text[5];

	for (int i = 0; i < N; i++) {
		put8(&w, (uint8_t)numbers[i]);
		put32(&w, (uint32_t)numbers[i]);
		put64(&w, numbers[i]);
		put_var(&w, numbers[i]);
		put_bytes(&w, "five", 5);
	}
	struct reader r = { w.data, w.data + w.len, false };
	for (int i = 0; i < N; i++) {
		CU_ASSERT_EQUAL(get8(&r), (uint8_t)numbers[i]);
		CU_ASSERT_EQUAL(get32(&r), (uint32_t)numbers[i]);
		CU_ASSERT_EQUAL(get64(&r), numbers[i]);
		CU_ASSERT_EQUAL(get_var(&r), numbers[i]);
		get_bytes(&r, text, sizeof text);
		CU_ASSERT_STRING_EQUAL(text, "five");
	}
	CU_ASSERT(!r.bad && r.p == r.end);
	free(w.data);
}

/* Small numbers are short; the bytes are little-endian. */
static void test_layout(void)
{
	static const struct {
		uint64_t number;
		size_t len;
		unsigned char bytes[10];
	} rows[] = {
		{ 0, 1, { 0 } },
		{ 127, 1, { 127 } },
		{ 128, 2, { 128, 1 } },
		{ 300, 2, { 0xac, 2 } },
		{ 1 << 14, 3, { 128, 128, 1 } },
		{ UINT64_MAX, 10, { 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 } },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct writer w = { 0 };
		put_var(&w, rows[i].number);
		CU_ASSERT_EQUAL(w.len, rows[i].len);
		CU_ASSERT(!memcmp(w.data, rows[i].bytes, rows[i].len));
		free(w.data);
		unsigned char laid[16] = { 0 };
		CU_ASSERT_PTR_EQUAL(lay_var(laid, rows[i].number), laid + rows[i].len);
		CU_ASSERT(!memcmp(laid, rows[i].bytes, rows[i].len));
	}
	unsigned char laid[13];
	CU_ASSERT_PTR_EQUAL(lay64(lay32(lay8(laid, 5), 0x01020304), 0x0807060504030201), laid + 13);
	CU_ASSERT(!memcmp(laid, "\5\4\3\2\1\1\2\3\4\5\6\7\10", 13));
	struct writer w = { 0 };
	put32(&w, 0x01020304);
	CU_ASSERT(!memcmp(w.data, "\4\3\2\1", 4));
	free(w.data);
}

/* A message that is cut at any length reads as zeros and bad; never a byte beyond its end. */
static void test_ends(void)
{
	unsigned char bytes[16], endless[16], to[8];

	memset(bytes, 0x55, sizeof bytes);
	memset(endless, 0xff, sizeof endless);
	for (size_t n = 0; n < 8; n++) {
		struct reader r = { bytes, bytes + n, false };
		CU_ASSERT(get64(&r) == 0 && r.bad && r.p == r.end);
		CU_ASSERT(get8(&r) == 0 && get_var(&r) == 0 && r.p == r.end);
		r = (struct reader){ bytes, bytes + n, false };
		get_bytes(&r, to, sizeof to);
		CU_ASSERT(r.bad && r.p == r.end && !memcmp(to, "\0\0\0\0\0\0\0", 8));
		r = (struct reader){ endless, endless + n, false };
		get_var(&r);
		CU_ASSERT(r.bad && r.p == r.end);
	}
	struct reader r = { endless, endless + sizeof endless, false };
	get_var(&r);
	CU_ASSERT(r.bad);		/* more than 64 bits */
	struct writer full = { .bad = true };
	put_bytes(&full, bytes, 8);
	CU_ASSERT(full.bad && full.len == 0);
}

/* ---- detect.c: the double binary round-robin ---- */

/* A heartbeat reaches all other nodes within a cycle, whenever it begins; no node gossips to
 * itself. */
static void spreads(enum detect_protocol p)
{
	for (unsigned n = 2; n <= 130; n++)
		for (unsigned first = 0; first < detect_rounds(p, n); first++) {
			bool knows[130] = { true }, next[130];
			unsigned told = 0;
			for (unsigned round = first; round < first + detect_rounds(p, n);
			     round++) {
				memcpy(next, knows, sizeof next);
				for (unsigned s = 0; s < n; s++) {
					unsigned to = detect_target(p, s, n, round);
					CU_ASSERT_FATAL(to < n && to != s);
					next[to] |= knows[s];
				}
				memcpy(knows, next, sizeof knows);
			}
			for (unsigned s = 0; s < n; s++)
				told += knows[s];
			CU_ASSERT_EQUAL(told, n);
		}
}

static void test_gossip(void)
{
	spreads(DETECT_DBRR);
	spreads(DETECT_BRR);
	CU_ASSERT_EQUAL(detect_target(DETECT_DBRR, 0, 1, 5), 0);
	CU_ASSERT_EQUAL(detect_target(DETECT_DBRR, 0, 8, 3), 7);
	CU_ASSERT_EQUAL(detect_target(DETECT_BRR, 0, 8, 3), 1);
	CU_ASSERT_EQUAL(detect_rounds(DETECT_DBRR, 1), 0);
	CU_ASSERT_EQUAL(detect_rounds(DETECT_DBRR, 8), 6);
	CU_ASSERT_EQUAL(detect_rounds(DETECT_BRR, 8), 3);
	CU_ASSERT_EQUAL(detect_rounds(DETECT_DBRR, 9), 8);
	CU_ASSERT_EQUAL(detect_cleanup(DETECT_DBRR, 2, 500000), 1500000);
	CU_ASSERT_EQUAL(detect_cleanup(DETECT_DBRR, 9, 500000), 6000000);
	CU_ASSERT_EQUAL(detect_cleanup(DETECT_BRR, 9, 500000), 4000000);
	CU_ASSERT_EQUAL(detect_cleanup(DETECT_DBRR, 1000, 500000), 15000000);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "what is written is read", test_numbers },
		{ "how numbers lie in bytes", test_layout },
		{ "a reader stops at its end", test_ends },
		{ "gossip reaches all in time", test_gossip },
		UNIT_END
	};

	return UNIT_RUN("wire and gossip", tests);
}
