/* record.c - the results of a sequence: two digests, or a line for each value if one sequence is
 * examined. */
#include "tests/diff/diff.h"

uint32_t record_exact, record_same;
static bool verbose;

static uint32_t fold(uint32_t digest, uint32_t value)
{
	digest = (digest ^ value) * 0x9e3779b1;
	return digest ^ digest >> 15;
}

void record_begin(bool aloud)
{
	record_exact = record_same = 0;
	verbose = aloud;
}

void record(const char *name, uint32_t value, uint32_t same)
{
	record_exact = fold(record_exact, value);
	record_same = fold(record_same, value & same);
	if (!verbose)
		return;
	text("  %s %8x", name, value & same);
	if (value & ~same)
		text(" (%8x)", value);
	text("\n");
}

void record_heading(const char *heading, uint32_t value)
{
	record_exact = fold(record_exact, value);
	record_same = fold(record_same, value);
	if (verbose)
		text("%s %x\n", heading, value);
}

void record_memory(const char *name, const void *at, uint32_t words)
{
	const uint32_t *word = at;
	uint32_t digest = 0;

	while (words--)
		digest = fold(digest, *word++);
	record(name, digest, ~0u);
}
