/* fpregs.c - see fpregs.h. */
#include "monitor/fpregs.h"

#include <string.h>

/* SLOT: bytes of each register. */
enum {
	AT_FCW = 0, AT_FSW = 2, AT_TAGS = 4, AT_FOP = 6, AT_FIP = 8, AT_FCS = 12, AT_FDP = 16,
	AT_FDS = 20, AT_MXCSR = 24, AT_ST = 32, AT_XMM = 160, SLOT = 16, TOP_SHIFT = 11,
	REGISTERS = 8,
};
enum tag { TAG_VALID, TAG_ZERO, TAG_SPECIAL, TAG_EMPTY };

static uint16_t word_at(const uint8_t *area, unsigned at)
{
	uint16_t value;

	memcpy(&value, area + at, sizeof value);
	return value;
}

static void put_word(uint8_t *area, unsigned at, uint32_t value)
{
	memcpy(area + at, &(uint16_t){ (uint16_t)value }, sizeof(uint16_t));
}

static enum tag tag_of(const uint8_t st[10])
{
	uint64_t mantissa;
	uint16_t exponent;

	memcpy(&mantissa, st, sizeof mantissa);
	memcpy(&exponent, st + sizeof mantissa, sizeof exponent);
	exponent &= 0x7fff;
	if (!exponent && !mantissa)
		return TAG_ZERO;
	return exponent == 0x7fff || !(mantissa >> 63) ? TAG_SPECIAL : TAG_VALID;
}

/* Return the tag word.  Tags are numbered by physical register, st(i) from the top of the stack. */
static uint32_t tags_of(const uint8_t *area)
{
	unsigned top = word_at(area, AT_FSW) >> TOP_SHIFT & 7;
	uint32_t tags = 0;

	for (unsigned n = 0; n < REGISTERS; n++) {
		enum tag tag = TAG_EMPTY;

		if (area[AT_TAGS] >> n & 1)
			tag = tag_of(area + AT_ST + SLOT * ((n - top) & 7));
		tags |= (uint32_t)tag << 2 * n;
	}
	return tags;
}

void fpregs_get(const uint8_t *area, struct debug_registers *r)
{
	for (unsigned i = 0; i < REGISTERS; i++) {
		memcpy(r->st[i], area + AT_ST + SLOT * i, sizeof r->st[i]);
		memcpy(r->xmm[i], area + AT_XMM + SLOT * i, sizeof r->xmm[i]);
	}
	r->fctrl = word_at(area, AT_FCW);
	r->fstat = word_at(area, AT_FSW);
	r->ftag = tags_of(area);
	r->fop = word_at(area, AT_FOP);
	r->fiseg = word_at(area, AT_FCS);
	r->foseg = word_at(area, AT_FDS);
	memcpy(&r->fioff, area + AT_FIP, sizeof r->fioff);
	memcpy(&r->fooff, area + AT_FDP, sizeof r->fooff);
	memcpy(&r->mxcsr, area + AT_MXCSR, sizeof r->mxcsr);
}

void fpregs_set(uint8_t *area, const struct debug_registers *r)
{
	for (unsigned i = 0; i < REGISTERS; i++) {
		memcpy(area + AT_ST + SLOT * i, r->st[i], sizeof r->st[i]);
		memcpy(area + AT_XMM + SLOT * i, r->xmm[i], sizeof r->xmm[i]);
	}
	put_word(area, AT_FCW, r->fctrl);
	put_word(area, AT_FSW, r->fstat);
	area[AT_TAGS] = 0;
	for (unsigned n = 0; n < REGISTERS; n++)
		if ((r->ftag >> 2 * n & 3) != TAG_EMPTY)
			area[AT_TAGS] |= (uint8_t)(1 << n);
	memcpy(area + AT_MXCSR, &r->mxcsr, sizeof r->mxcsr);
}

bool fpregs_same(const struct debug_registers *a, const struct debug_registers *b)
{
	return !memcmp(a->st, b->st, sizeof a->st) && !memcmp(a->xmm, b->xmm, sizeof a->xmm) &&
	       a->fctrl == b->fctrl && a->fstat == b->fstat && a->ftag == b->ftag &&
	       a->mxcsr == b->mxcsr;
}
