/* phnx_inbox.c - tests of phoenix/link/inbox.c alone: bytes cut anywhere give the same frames. */
#include <stdarg.h>
#include "phoenix/link/link_private.h"
#include "tests/unit/unit.h"

enum { MOST_FRAMES = 64, STREAM = 4 << 20 };

static uint64_t now_us = 1;
static uint64_t op_now(void *ctx) { (void)ctx; return now_us; }
static const struct phnx_ops ops = { .now = op_now };
static struct links links;
static struct phnx ph = { .ops = &ops, .links = &links };
static struct link one;

/* ---- what the inbox calls ---- */

static size_t lengths[MOST_FRAMES];	/* of the frames that are to come */
static unsigned n_handled, n_landed, n_heard, n_closed;
static size_t sealed;			/* link_sealed() in the last call */
static bool answers;

static unsigned char pattern(unsigned frame, size_t i)
{
	return (unsigned char)(frame * 31 + i * 7 + (i >> 8));
}

int link_handle(struct plink *l, enum frame_type type, const unsigned char *body, size_t len)
{
	bool same = len == lengths[n_handled];

	if (type == FRAME_BARE) {
		struct reader r = { body, body + len, false };
		return inbox_on_bare(l, &r);
	}
	CU_ASSERT_EQUAL(type, FRAME_DATA);
	for (size_t i = 0; i < len && same; i++)
		same = body[i] == pattern(n_handled, i);
	CU_ASSERT(same);
	if (ph.landed) {
		n_landed++;
		CU_ASSERT(body == ph.landed->block + FRAME_HEAD);
		CU_ASSERT(rmsg_room(ph.landed) >= FRAME_HEAD + len);
	}
	sealed = link_sealed(&ph);
	n_handled++;
	link_of(l)->out.has_spoken = answers;
	return 0;
}

void link_close(struct plink *l, int error, const char *format, ...)
{
	(void)error;
	(void)format;
	l->state = LINK_CLOSING;
	n_closed++;
}

void link_send(struct plink *l, enum frame_type type, const struct writer *head, struct pbuf *body)
{
	(void)l;
	CU_ASSERT(type == FRAME_HEARD && !head && !body);
	n_heard++;
}

/* ---- the tests ---- */

static void begin(enum link_state state)
{
	inbox_free(&one.pub);
	one = (struct link){ .pub = { .ph = &ph, .state = state } };
	n_handled = n_landed = n_heard = n_closed = 0;
	sealed = 0;
	answers = false;
}

static size_t put_head(unsigned char *p, enum frame_type type, size_t len)
{
	lay32(lay8(lay8(lay8(lay8(p, 'P'), 'H'), (uint8_t)type), PHNX_VERSION), (uint32_t)len);
	return FRAME_HEAD;
}

static size_t put_frame(unsigned char *p, unsigned k, size_t len)
{
	lengths[k] = len;
	put_head(p, FRAME_DATA, len);
	for (size_t i = 0; i < len; i++)
		p[FRAME_HEAD + i] = pattern(k, i);
	return FRAME_HEAD + len;
}

/* Gives n bytes to the inbox, at most `most` at once.  Returns link_input()'s last result. */
static int feed(const unsigned char *p, size_t n, size_t most)
{
	int closed = 0;

	while (n && !closed) {
		size_t room, part = n < most ? n : most;
		unsigned char *at = link_space(&one.pub, &room);
		CU_ASSERT_FATAL(room > 0);
		part = part < room ? part : room;
		memcpy(at, p, part);
		closed = link_input(&one.pub, part);
		p += part;
		n -= part;
	}
	return closed;
}

static unsigned random_below(unsigned n)
{
	static uint64_t state = 18;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % n;
}

static void any_cut_gives_the_same_frames(void)
{
	static const size_t sizes[] = { 0, 1, 40, 2000, 4096, 16376, 16384, 70000 };
	unsigned char *stream = malloc(STREAM);

	CU_ASSERT_FATAL(stream != NULL);
	for (unsigned round = 0; round < 200; round++) {
		size_t n = 0, most = 1 + random_below(round % 4 ? 40000 : 40);
		unsigned n_frames = 1 + random_below(MOST_FRAMES / 2);
		begin(LINK_UP);
		for (unsigned k = 0; k < n_frames; k++)
			n += put_frame(stream + n, k, sizes[random_below(8)] + random_below(3));
		CU_ASSERT_EQUAL(feed(stream, n, most), 0);
		CU_ASSERT_EQUAL(n_handled, n_frames);
		CU_ASSERT_EQUAL(one.pub.in_len, 0);
		CU_ASSERT(!link_has_more(&ph));
	}
	free(stream);
}

/* Behind a large frame another one is expected: it is read into the block that becomes the
 * message. */
static void a_large_frame_lands_in_its_own_block(void)
{
	unsigned char *stream = malloc(STREAM);
	size_t n, room;

	CU_ASSERT_FATAL(stream != NULL);
	begin(LINK_UP);
	n = put_frame(stream, 0, 5000); /* not large enough */
	CU_ASSERT_EQUAL(feed(stream, n, n), 0);
	CU_ASSERT(link_space(&one.pub, &room) == links.in.bytes);
	CU_ASSERT_EQUAL(room, IN_BYTES);

	begin(LINK_UP);
	n = put_frame(stream, 0, 9000);
	CU_ASSERT_EQUAL(feed(stream, n, n), 0);
	CU_ASSERT_EQUAL(n_landed, 0);
	CU_ASSERT(link_space(&one.pub, &room) != links.in.bytes);
	CU_ASSERT_EQUAL(room, n);
	put_frame(stream, 1, 9000);
	CU_ASSERT_EQUAL(feed(stream, n, n), 0);
	CU_ASSERT_EQUAL(n_handled, 2);
	CU_ASSERT_EQUAL(n_landed, 1);
	free(stream);
}

static void what_may_not_come_ends_the_link(void)
{
	static const struct {
		enum link_state state;
		enum frame_type type;
		size_t len;
		int at;		/* the byte of the head that is wrong; -1: none */
	} rows[] = {
		{ LINK_UP, FRAME_DATA, 0, 0 },
		{ LINK_UP, FRAME_DATA, 0, 1 },
		{ LINK_UP, FRAME_DATA, 0, 3 },
		{ LINK_UP, N_FRAME_TYPES, 0, -1 },
		{ LINK_UP, FRAME_NONE, 0, -1 },
		{ LINK_UP, FRAME_HELLO, 0, -1 },
		{ LINK_UP, FRAME_DATA, MAX_FRAME + 1, -1 },
		{ LINK_HELLO, FRAME_DATA, 0, -1 },
		{ LINK_AUTH, FRAME_HELLO, 0, -1 },
		{ LINK_HELLO, FRAME_HELLO, MAX_HANDSHAKE_FRAME + 1, -1 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		unsigned char head[FRAME_HEAD];
		begin(rows[i].state);
		put_head(head, rows[i].type, rows[i].len);
		if (rows[i].at >= 0)
			head[rows[i].at] ^= 0x40;
		CU_ASSERT_EQUAL(feed(head, sizeof head, sizeof head), -1);
		CU_ASSERT_EQUAL(n_closed, 1);
		CU_ASSERT_EQUAL(n_handled, 0);
	}
}

/* BARE counts for the one frame behind it, which must be DATA and have as many bytes. */
static void bare_bytes_are_of_the_next_frame(void)
{
	unsigned char stream[400];
	size_t n = put_head(stream, FRAME_BARE, 4), whole;

	lay32(stream + n, 64);
	whole = n + 4 + put_frame(stream + n + 4, 0, 100);
	begin(LINK_UP);
	CU_ASSERT_EQUAL(feed(stream, whole, whole), -1);	/* not under TLS */

	begin(LINK_UP);
	one.pub.secured = true;
	CU_ASSERT_EQUAL(feed(stream, whole - 64, whole), 0);
	CU_ASSERT_EQUAL(link_bare(&one.pub), 64);
	CU_ASSERT_EQUAL(feed(stream + whole - 64, 64, 64), 0);
	CU_ASSERT_EQUAL(sealed, 64);
	CU_ASSERT_EQUAL(link_sealed(&ph), 0);
	CU_ASSERT_EQUAL(feed(stream, put_frame(stream, 1, 100), 400), 0);
	CU_ASSERT_EQUAL(sealed, 0);

	begin(LINK_UP);
	one.pub.secured = true;
	put_head(stream, FRAME_BARE, 4);
	lay32(stream + n, 64);
	put_frame(stream + n + 4, 0, 63);
	CU_ASSERT_EQUAL(feed(stream, whole, whole), -1);
	CU_ASSERT_EQUAL(n_handled, 0);
}

/* TRICKS: nagle-behind-ssh */
static void something_goes_back_behind_ssh(void)
{
	unsigned char stream[64];
	size_t n = put_frame(stream, 0, 10);

	for (int way = 0; way < 3; way++) {
		begin(LINK_UP);
		one.through_ssh = way > 0;
		answers = way == 2;
		CU_ASSERT_EQUAL(feed(stream, n, n), 0);
		CU_ASSERT_EQUAL(n_heard, way == 1);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		UNIT_TEST(any_cut_gives_the_same_frames),
		UNIT_TEST(a_large_frame_lands_in_its_own_block),
		UNIT_TEST(what_may_not_come_ends_the_link),
		UNIT_TEST(bare_bytes_are_of_the_next_frame),
		UNIT_TEST(something_goes_back_behind_ssh),
		UNIT_END
	};
	int status = UNIT_RUN("phnx_inbox", tests);

	inbox_free(&one.pub);
	return status;
}
