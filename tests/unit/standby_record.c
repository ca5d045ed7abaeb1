/* standby_record.c - records from a stream that is cut anywhere (vmm/cli/standby/record.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/standby.h"

static struct {
	unsigned n, stop_after; /* 0: never */
	bool right;
} read_so_far;
static const uint32_t sizes[] = { 0, 1, 0, 0, 300, MAX_MSG_PAYLOAD, 5 };
static uint8_t stream[ARRAY_LEN(sizes) * HEAD + 306 + MAX_MSG_PAYLOAD];

static uint8_t byte_of(uint32_t record, size_t i) { return (uint8_t)(record * 37 + i * 11); }

static bool check_record(void *context, const struct snapfile_record *record, const void *data)
{
	const uint8_t *bytes = data;
	unsigned i = read_so_far.n++;

	(void)context;
	read_so_far.right &= i < ARRAY_LEN(sizes) && record->kind == i && record->index == ~i &&
			     record->bytes == sizes[i];
	for (size_t at = 0; read_so_far.right && at < record->bytes; at++)
		read_so_far.right = bytes[at] == byte_of(i, at);
	return read_so_far.n != read_so_far.stop_after;
}

static void make_stream(void)
{
	uint8_t *to = stream;

	for (uint32_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct snapfile_record record = { i, ~i, sizes[i] };

		memcpy(to, &record, HEAD);
		to += HEAD;
		for (size_t at = 0; at < sizes[i]; at++)
			*to++ = byte_of(i, at);
	}
	CU_ASSERT_EQUAL(to - stream, sizeof stream);
}

static struct record_reader *new_reader(unsigned stop_after)
{
	static struct record_reader reader;

	memset(&reader, 0xa5, sizeof reader);
	reader.on_record = check_record;
	reader.n = 0;
	read_so_far.n = 0;
	read_so_far.stop_after = stop_after;
	read_so_far.right = true;
	return &reader;
}

/* Reads all of `bytes`, in a copy of its own, so that the sanitizer notices a read beyond its
 * end. */
static int read_piece(struct record_reader *r, const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);
	int error;

	memcpy(copy, bytes, n);
	error = record_read(r, copy, n);
	free(copy);
	return error;
}

static void records_cut_anywhere(void)
{
	bool all = true;

	make_stream();
	for (size_t cut = 0; cut <= sizeof stream; cut++) {
		struct record_reader *r = new_reader(0);

		all &= !read_piece(r, stream, cut) &&
		       !read_piece(r, stream + cut, sizeof stream - cut);
		all &= read_so_far.right && read_so_far.n == ARRAY_LEN(sizes) && !r->n;
	}
	for (size_t piece = 1; piece < 100; piece++) {
		struct record_reader *r = new_reader(0);

		for (size_t at = 0; at < sizeof stream; at += piece)
			all &= !read_piece(r, stream + at,
					   piece < sizeof stream - at ? piece : sizeof stream - at);
		all &= read_so_far.right && read_so_far.n == ARRAY_LEN(sizes);
	}
	CU_ASSERT(all);
}

static void no_more_is_read_than_is_wanted(void)
{
	for (unsigned stop = 1; stop < ARRAY_LEN(sizes); stop++) {
		CU_ASSERT_EQUAL(read_piece(new_reader(stop), stream, sizeof stream), 0);
		CU_ASSERT(read_so_far.right && read_so_far.n == stop);
	}
}

/* Each byte of a head may be the first of the next piece. */
static void what_is_no_record(void)
{
	static const uint32_t too_many[] = { MAX_MSG_PAYLOAD + 1, MAX_MSG_PAYLOAD + HEAD, 1u << 31,
					     ~0u - HEAD,	  ~0u - HEAD + 1,	  ~0u };

	for (size_t i = 0; i < ARRAY_LEN(too_many); i++)
		for (size_t cut = 0; cut <= HEAD; cut++) {
			struct snapfile_record record = { 1, 2, too_many[i] };
			struct record_reader *r = new_reader(0);
			uint8_t bytes[2 * HEAD] = { 0 }; /* a good one before it */

			memcpy(bytes + HEAD, &record, HEAD);
			((struct snapfile_record *)bytes)->index = ~0u;
			CU_ASSERT_EQUAL(read_piece(r, bytes, HEAD + cut), cut < HEAD ? 0 : -EPROTO);
			CU_ASSERT_EQUAL(read_piece(r, bytes + HEAD + cut, HEAD - cut), -EPROTO);
			CU_ASSERT_EQUAL(read_piece(r, stream, 1), -EPROTO); /* and it stays so */
			CU_ASSERT(read_so_far.right && read_so_far.n == 1);
		}
}

const struct unit_test tests_of_records[] = {
	{ "records cut anywhere", records_cut_anywhere },
	{ "no more is read than is wanted", no_more_is_read_than_is_wanted },
	{ "what is no record", what_is_no_record },
	UNIT_END
};
