/* written.c - see written.h. */
#include "vcpu/written.h"

/* Return the place of an instruction, which is its own if its eip is there. */
static unsigned place_of(uint32_t eip)
{
	_Static_assert(WRITTEN_INSNS == 1 << 6, "the bits that are left");
	return eip * 0x9e3779b1u >> 26;
}

static int32_t credit_of(const struct written *written, uint32_t eip)
{
	return written->insn[place_of(eip)].eip == eip ? written->insn[place_of(eip)].credit : 0;
}

static void give(struct written *written, uint32_t eip, int32_t credit)
{
	credit += credit_of(written, eip);
	if (credit > WRITTEN_MOST)
		credit = WRITTEN_MOST;
	if (credit < WRITTEN_LEAST)
		credit = WRITTEN_LEAST;
	written->insn[place_of(eip)].eip = eip;
	written->insn[place_of(eip)].credit = credit;
}

bool written_read(struct written *written, uint32_t eip, uint32_t page)
{
	uint32_t *page_plus_1 = &written->read[page % WRITTEN_PAGES].page_plus_1;
	uint32_t *by = &written->read[page % WRITTEN_PAGES].eip;
	bool on = credit_of(written, eip) >= WRITTEN_ON;

	/* What was requested to write to says nothing: no right is missed later. */
	if (*page_plus_1 && credit_of(written, *by) < WRITTEN_ON)
		give(written, *by, -1);
	*page_plus_1 = page + 1;
	*by = eip;
	return on;
}

void written_upgraded(struct written *written, uint32_t page)
{
	uint32_t *page_plus_1 = &written->read[page % WRITTEN_PAGES].page_plus_1;

	if (*page_plus_1 != page + 1)
		return;
	*page_plus_1 = 0;
	give(written, written->read[page % WRITTEN_PAGES].eip, 1);
}

void written_vain(struct written *written, uint32_t page)
{
	if (written->read[page % WRITTEN_PAGES].page_plus_1 == page + 1)
		give(written, written->read[page % WRITTEN_PAGES].eip, -WRITTEN_VAIN);
}
