/* The messages of peers and shells: vpg/wire. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"
#include "vpg/wire/message.h"
#include "vpg/wire/nick.h"

static unsigned char frame[VPG_FRAME_MAX + 8];

static size_t put_spawn(void)
{
	char *const words[] = { "tar", "-c", "", "x y" };
	static char room[64];
	struct vpg_SPAWN m = { .job = 1ull << 63, .stage = 2, .nick = "E", .in = IO_STREAM,
			       .in_stream = 77, .in_at = "G", .out_at = "/x", .err = IO_LIKE_OUT,
			       .words = message_list(words, 4, room, sizeof room) };

	CU_ASSERT_EQUAL(m.words.n, 4);
	return message_put(VPG_SPAWN, &m, frame, sizeof frame);
}

static void test_there_and_back(void)
{
	size_t n = put_spawn();
	union vpg_any m;
	char *words[5];

	CU_ASSERT_EQUAL(message_size(frame, n), n);
	CU_ASSERT_EQUAL(message_get(frame, n, &m), VPG_SPAWN);
	CU_ASSERT(m.SPAWN.job == 1ull << 63 && m.SPAWN.stage == 2 && m.SPAWN.in_stream == 77);
	CU_ASSERT_STRING_EQUAL(m.SPAWN.in_at, "G");
	CU_ASSERT_STRING_EQUAL(m.SPAWN.folder, "");	/* NULL is an empty text */
	message_words(&m.SPAWN.words, words);
	CU_ASSERT_STRING_EQUAL(words[0], "tar");
	CU_ASSERT_STRING_EQUAL(words[2], "");
	CU_ASSERT_STRING_EQUAL(words[3], "x y");
	CU_ASSERT_PTR_NULL(words[4]);
}

/* Each byte of a frame is changed, and the frame cut at each byte: nothing outside is read. */
static void test_damage(void)
{
	size_t n = put_spawn();
	union vpg_any m;

	for (size_t cut = 0; cut < n; cut++) {
		unsigned char *exact = malloc(cut ? cut : 1);

		memcpy(exact, frame, cut);
		CU_ASSERT_EQUAL(message_get(exact, cut, &m), -EPROTO);
		free(exact);
	}
	for (size_t i = 0; i < n; i++)
		for (int bit = 0; bit < 8; bit++) {
			unsigned char *exact = malloc(n);

			memcpy(exact, frame, n);
			exact[i] ^= (unsigned char)(1 << bit);
			message_get(exact, n, &m);
			free(exact);
		}
}

static void test_bounds(void)
{
	static unsigned char data[VPG_FRAME_MAX];
	struct vpg_DATA m = { 1, { data, VPG_FRAME_MAX - 17 } };
	unsigned char length[4] = { 0 };

	CU_ASSERT_EQUAL(message_put(VPG_DATA, &m, frame, sizeof frame), VPG_FRAME_MAX);
	CU_ASSERT_EQUAL(message_size(frame, 4), VPG_FRAME_MAX);
	m.bytes.n++;
	CU_ASSERT_EQUAL(message_put(VPG_DATA, &m, frame, sizeof frame), 0);
	CU_ASSERT_EQUAL(message_put((enum vpg_type)63, &m, frame, sizeof frame), 0);
	CU_ASSERT_EQUAL(message_put((enum vpg_type)99, &m, frame, sizeof frame), 0);
	CU_ASSERT_EQUAL(message_size(length, 4), -EPROTO);
	CU_ASSERT_EQUAL(message_size(length, 3), 0);
	length[3] = 1;
	CU_ASSERT_EQUAL(message_size(length, 4), -EPROTO);
	CU_ASSERT_STRING_EQUAL(message_name(VPG_SPAWN), "SPAWN");
	CU_ASSERT_STRING_EQUAL(message_name(-1), "?");
	CU_ASSERT_STRING_EQUAL(message_name(63), "?");
}

/* The head of DATA without message_put() is the same, and a message leads back to its frame. */
static void test_data_head(void)
{
	static unsigned char data[VPG_CHUNK], whole[VPG_FRAME_MAX];
	const size_t sizes[] = { 0, 1, 300, VPG_CHUNK };
	union vpg_any m;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct vpg_DATA say = { 0x123456789abcdef0, { data, sizes[i] } };
		size_t n = message_put(VPG_DATA, &say, whole, sizeof whole);

		CU_ASSERT_EQUAL(n, VPG_DATA_HEAD + sizes[i]);
		message_data_head(frame, say.stream, sizes[i]);
		CU_ASSERT(!memcmp(frame, whole, VPG_DATA_HEAD));
		CU_ASSERT_EQUAL(message_get(whole, n, &m), VPG_DATA);
		CU_ASSERT_EQUAL(message_data_frame(&m.DATA).at, whole);
		CU_ASSERT_EQUAL(message_data_frame(&m.DATA).n, n);
	}
}

static void test_nicks(void)
{
	char nick[NICK_BYTES];

	CU_ASSERT(nick_is_valid("A") && nick_is_valid("7.x_y-z"));
	CU_ASSERT(nick_is_valid("0123456789012345678901234567890a"));
	CU_ASSERT(!nick_is_valid("0123456789012345678901234567890ab"));
	CU_ASSERT(!nick_is_valid("") && !nick_is_valid("-a") && !nick_is_valid(".a"));
	CU_ASSERT(!nick_is_valid("a/b") && !nick_is_valid("a b") && !nick_is_valid("\xc3\xa4"));
	nick_of_host("tuba.example.org", nick);
	CU_ASSERT_STRING_EQUAL(nick, "tuba");
	nick_of_host("--", nick);
	CU_ASSERT_STRING_EQUAL(nick, "here");
	nick_of_host("012345678901234567890123456789012345678", nick);
	CU_ASSERT_STRING_EQUAL(nick, "01234567890123456789012345678901");
}

int main(void)
{
	static const struct unit_test tests[] = {
		{ "a message there and back", test_there_and_back },
		{ "damaged frames", test_damage },
		{ "bounds", test_bounds },
		{ "the head of data", test_data_head },
		{ "nicknames", test_nicks },
		UNIT_END
	};

	return UNIT_RUN("vpg_message", tests);
}
