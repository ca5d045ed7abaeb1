/* operand.c - registers by size, memory operands by segment and offset, the stack. */
#include "vcpu/internal.h"

static uint32_t low_bits(uint32_t value, unsigned bytes)
{
	return bytes == 4 ? value : value & ((1u << bytes * 8) - 1);
}

/* Byte registers 4-7 are AH, CH, DH and BH. */
uint32_t register_read(const struct vcpu *v, unsigned number, unsigned bytes)
{
	if (bytes == 1 && number >= 4)
		return v->gpr[number - 4] >> 8 & 0xff;
	return low_bits(v->gpr[number], bytes);
}

void register_write(struct vcpu *v, unsigned number, unsigned bytes, uint32_t value)
{
	uint32_t mask = low_bits(0xffffffff, bytes);
	unsigned shift = bytes == 1 && number >= 4 ? 8 : 0;
	uint32_t *r = &v->gpr[shift ? number - 4 : number];

	*r = (*r & ~(mask << shift)) | (value & mask) << shift;
}

/* Limits are not checked here: the page tables stop a user where user segments end; all other
 * segments are flat. */
bool segment_linear(struct insn *i, enum vcpu_seg segment, uint32_t offset, gva_t *out)
{
	uint16_t selector = i->v->seg[segment];
	struct vcpu_segment s;
	struct descriptor raw;
	uint32_t error = 0;

	*out = offset;
	if (segment == SEG_CS || segment == SEG_SS)
		return false; /* always flat: other code segments cannot be loaded */
	if (selector_is_null(selector)) {
		decode_raise(i, VECTOR_GP, 0);
		return true;
	}
	switch (segment_read(i->v, selector, &raw, &s, &error)) {
	case 0:
		*out = s.base + offset;
		return false;
	case ERR_FAULT:
		decode_raise(i, VECTOR_PF, error);
		return true;
	default:
		return false; /* loaded from an earlier GDT: those were flat */
	}
}

bool operand_linear(struct insn *i, gva_t *out)
{
	return segment_linear(i, i->segment, i->offset, out);
}

bool memory_read(struct insn *i, gva_t gva, void *to, unsigned bytes)
{
	uint32_t error;

	if (!vcpu_read(i->v, gva, to, bytes, i->v->cpl == 3, &error))
		return false;
	decode_raise(i, VECTOR_PF, error);
	return true;
}

bool memory_write(struct insn *i, gva_t gva, const void *from, unsigned bytes)
{
	uint32_t error;

	if (!vcpu_write(i->v, gva, from, bytes, i->v->cpl == 3, &error))
		return false;
	decode_raise(i, VECTOR_PF, error);
	return true;
}

bool operand_read(struct insn *i, unsigned bytes, uint32_t *value)
{
	gva_t gva;

	if (!i->memory) {
		*value = register_read(i->v, i->rm, bytes);
		return false;
	}
	*value = 0;
	return operand_linear(i, &gva) || memory_read(i, gva, value, bytes);
}

bool operand_write(struct insn *i, unsigned bytes, uint32_t value)
{
	gva_t gva;

	if (!i->memory) {
		register_write(i->v, i->rm, bytes, value);
		return false;
	}
	return operand_linear(i, &gva) || memory_write(i, gva, &value, bytes);
}

/* Read the value `above` bytes above ESP.  The caller changes ESP after all reads have
 * succeeded. */
bool stack_read(struct insn *i, uint32_t above, unsigned bytes, uint32_t *value)
{
	*value = 0;
	return memory_read(i, i->v->gpr[ESP] + above, value, bytes);
}

bool stack_push(struct insn *i, unsigned bytes, uint32_t value)
{
	uint32_t esp = i->v->gpr[ESP] - bytes;

	if (memory_write(i, esp, &value, bytes))
		return true;
	i->v->gpr[ESP] = esp;
	return false;
}
