/* parts_layout.c - see parts_layout.h. */
#include "vmm/cli/parts/parts_layout.h"

unsigned layout_first(uint32_t holders, const struct snapfile_record *record)
{
	return (record->index / LAYOUT_RUN + record->kind) % holders;
}

bool layout_has(uint32_t holders, unsigned holder, const struct snapfile_record *record)
{
	unsigned first = layout_first(holders, record);

	return holder == first || holder == (first + 1) % holders;
}

static unsigned giver(uint32_t holders, uint32_t alive, unsigned first)
{
	unsigned second = (first + 1) % holders;

	return alive >> first & 1 ? first : alive >> second & 1 ? second : LAYOUT_NOBODY;
}

unsigned layout_giver(uint32_t holders, uint32_t alive, const struct snapfile_record *record)
{
	return giver(holders, alive, layout_first(holders, record));
}

bool layout_is_whole(uint32_t holders, uint32_t alive, unsigned *lost)
{
	for (unsigned first = 0; first < holders; first++)
		if (giver(holders, alive, first) == LAYOUT_NOBODY) {
			*lost = first;
			return false;
		}
	return true;
}
