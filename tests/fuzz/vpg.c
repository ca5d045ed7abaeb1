/* vpg.c - fuzzes what peers and shells hear: a frame, if the first byte is 0, or a command line. */
#include <errno.h>
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "vpg/shell/line.h"
#include "vpg/wire/message.h"

static void hear_frame(const uint8_t *data, size_t size)
{
	static unsigned char again[VPG_FRAME_MAX];
	static char *words[VPG_FRAME_MAX];
	union vpg_any m;
	int type = message_get(data, size, &m);

	FUZZ_CHECK(type > 0 || type == -EPROTO);
	if (type == VPG_SPAWN)
		message_words(&m.SPAWN.words, words);
	if (type > 0)	/* there is one way to say it */
		FUZZ_CHECK(message_put(type, &m, again, sizeof again) == size &&
			   !memcmp(again, data, size));
}

static void read_line(const char *data, size_t size)
{
	struct line l;
	int error = line_parse(&l, data, size);

	FUZZ_CHECK(!error == !l.error[0]);
	for (size_t i = 0; !error && i < l.n_stages; i++) {
		const struct line_stage *s = l.stages + i;

		FUZZ_CHECK(s->n_words && !s->words[s->n_words]);
		for (size_t w = 0; w < s->n_words; w++)
			FUZZ_CHECK(strlen(s->words[w]) <= size);
		FUZZ_CHECK(!s->nick || strlen(s->nick) < 33);
		FUZZ_CHECK(s->after != AFTER_PIPE || i + 1 < l.n_stages);
		FUZZ_CHECK(line_pipeline_end(&l, i) > i && line_list_end(&l, i) > i);
	}
	line_free(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && !data[0])
		hear_frame(data + 1, size - 1);
	else
		read_line((const char *)data, size);
	return 0;
}
