/* segments.c - descriptors of the guest's GDT, and what each kind of selector may name (SDM 3,
 * 3.4 and 5.5 - 5.8).
 *
 * A selector with the table bit set names the same GDT entry as one without: the host's LDT
 * shadows the guest's GDT (base/guest_abi.h).  Guest kernel selectors carry RPL 3 for the same
 * reason, so at CPL 0 the RPL of data and stack selectors is not compared with the descriptor's
 * DPL; at CPL 3 everything is.
 */
#include "vcpu/internal.h"

static void descriptor_decode(const struct descriptor *raw, struct vcpu_segment *out)
{
	uint32_t limit = (raw->low & 0xffff) | (raw->high & 0xf0000);

	out->base = raw->low >> 16 | (raw->high & 0xff) << 16 | (raw->high & 0xff000000);
	out->granular = raw->high >> 23 & 1;
	out->limit = out->granular ? limit << 12 | 0xfff : limit;
	out->type = raw->high >> 8 & 15;
	out->system = !(raw->high >> 12 & 1);
	out->dpl = raw->high >> 13 & 3;
	out->present = raw->high >> 15 & 1;
	out->big = raw->high >> 22 & 1;
}

/* Set *raw to a flat segment of the boot protocol.  False: `index` is none of them, or the guest
 * has loaded a GDT. */
static bool boot_descriptor(const struct vcpu *v, unsigned index, struct descriptor *raw)
{
	if (v->gdtr.limit || v->gdtr.base)
		return false;
	if (index == VMP_GDT_BOOT_CS)
		*raw = (struct descriptor){ 0x0000ffff, 0x00cf9b00 };
	else if (index == VMP_GDT_BOOT_DS)
		*raw = (struct descriptor){ 0x0000ffff, 0x00cf9300 };
	else
		return false;
	return true;
}

int segment_read(struct vcpu *v, uint16_t selector, struct descriptor *raw,
		 struct vcpu_segment *out, uint32_t *error)
{
	unsigned index = selector >> 3;

	if (!boot_descriptor(v, index, raw)) {
		if (index * 8 + 7 > v->gdtr.limit)
			return ERR_RANGE;
		if (vcpu_read(v, v->gdtr.base + index * 8, raw, sizeof *raw, false, error))
			return ERR_FAULT;
	}
	descriptor_decode(raw, out);
	return 0;
}

int vcpu_segment(struct vcpu *v, unsigned index, struct vcpu_segment *out)
{
	uint32_t cr2 = v->cr2, error;
	struct descriptor raw;

	if (index <= 0xffff >> 3 && !segment_read(v, (uint16_t)(index * 8), &raw, out, &error))
		return 0;
	v->cr2 = cr2; /* this fault is not raised */
	*out = (struct vcpu_segment){ .present = false };
	return ERR_FAULT;
}

/* Notify the engine of `count` entries.  Entries beyond the guest's limit, or unreadable ones, are
 * announced as not present. */
void segments_announce(struct vcpu *v, unsigned first, unsigned count)
{
	for (unsigned index = first; index < VMP_GDT_ENTRIES && index - first < count; index++) {
		struct vcpu_segment segment;

		vcpu_segment(v, index, &segment);
		v->env->segment_changed(v->env->ctx, index, &segment);
	}
}

/* Read the segment of a selector, as all checks begin.  Returns -1, or the vector to raise; sets
 * *error.  The caller checks last whether the segment is present. */
static int selector_lookup(struct vcpu *v, uint16_t selector, struct vcpu_segment *segment,
			   uint32_t *error)
{
	struct descriptor raw;

	switch (segment_read(v, selector, &raw, segment, error)) {
	case 0:
		*error = selector & ~(uint32_t)SELECTOR_RPL;
		return -1;
	case ERR_FAULT:
		return VECTOR_PF;
	default:
		*error = selector & ~(uint32_t)SELECTOR_RPL;
		return VECTOR_GP;
	}
}

/* As selector_lookup(), for stack and code, where a null selector is an error. */
static int selector_lookup_needed(struct vcpu *v, uint16_t selector, struct vcpu_segment *segment,
				  uint32_t *error)
{
	*error = 0;
	return selector_is_null(selector)
		? VECTOR_GP : selector_lookup(v, selector, segment, error);
}

int segment_check_data(struct vcpu *v, uint16_t selector, uint32_t *error)
{
	struct vcpu_segment s;
	int vector;

	if (selector_is_null(selector))
		return -1;
	vector = selector_lookup(v, selector, &s, error);
	if (vector >= 0)
		return vector;
	if (s.system || ((s.type & TYPE_CODE) && !(s.type & TYPE_READABLE)))
		return VECTOR_GP;
	if (v->cpl == 3 && s.dpl < 3 &&
	    (s.type & (TYPE_CODE | TYPE_CONFORMING)) != (TYPE_CODE | TYPE_CONFORMING))
		return VECTOR_GP;
	return s.present ? -1 : VECTOR_NP;
}

int segment_check_stack(struct vcpu *v, uint16_t selector, unsigned cpl, uint32_t *error)
{
	struct vcpu_segment s;
	int vector = selector_lookup_needed(v, selector, &s, error);

	if (vector >= 0)
		return vector;
	if (s.system || (s.type & TYPE_CODE) || !(s.type & TYPE_WRITABLE))
		return VECTOR_GP;
	if (cpl == 3 && ((selector & SELECTOR_RPL) != 3 || s.dpl != 3))
		return VECTOR_GP;
	return s.present ? -1 : VECTOR_SS;
}

int segment_check_code(struct vcpu *v, uint16_t selector, unsigned cpl, uint32_t *error)
{
	struct vcpu_segment s;
	int vector = selector_lookup_needed(v, selector, &s, error);

	if (vector >= 0)
		return vector;
	if (s.system || !(s.type & TYPE_CODE))
		return VECTOR_GP;
	if (s.type & TYPE_CONFORMING ? s.dpl > cpl : s.dpl != cpl)
		return VECTOR_GP;
	if (!s.present)
		return VECTOR_NP;
	if (!s.big || s.base) {
		if (cpl == 3)
			return VECTOR_GP; /* a user's unusual segment harms only the user */
		vcpu_kill(v, "code segment %x is not a flat 32-bit one", selector);
	}
	return -1;
}
