/* decode.c - bytes at EIP into a struct insn: prefixes, opcode, ModRM, immediates (SDM 2,
 * chapter 2).
 *
 * Bytes are fetched in small windows that never cross a page's end: the next page may be missing,
 * so it is read only if the instruction reaches into it.
 */
#include "vcpu/internal.h"

void decode_start(struct insn *i, struct vcpu *v)
{
	__builtin_memset(i, 0, sizeof *i);
	i->v = v;
	i->start = i->next = i->first = v->eip;
	i->operand_bytes = 4;
	i->override = NO_SEGMENT_OVERRIDE;
	i->vector = -1;
	i->steps = v->eflags & EFLAGS_TF;
}

enum vcpu_result decode_raise(struct insn *i, unsigned vector, int64_t error)
{
	if (i->vector < 0) {
		i->vector = (int)vector;
		i->error = error;
	}
	return VCPU_RAISED;
}

/* (TRICKS: emulated-step, guest-watch) */
enum vcpu_result decode_finish(struct insn *i, enum vcpu_result result)
{
	struct vcpu *v = i->v;

	if (v->dead)
		return VCPU_DONE;
	switch (result) {
	case VCPU_DONE:
	case VCPU_HALTED:
		v->eip = i->next;
		if (!i->loads_rf)
			v->eflags &= ~(uint32_t)EFLAGS_RF;
		if (!i->steps || result == VCPU_HALTED || v->interrupt_shadow)
			break;
		v->dr[6] |= DR6_SINGLE_STEP;
		vcpu_exception(v, VECTOR_DB, -1);
		return VCPU_RAISED;
	case VCPU_RAISED:
		v->eip = i->start;
		vcpu_exception(v, (unsigned)i->vector, i->error);
		break;
	case VCPU_NOT_MINE:
		break;
	}
	return result;
}

static bool window_fill(struct insn *i)
{
	struct vcpu *v = i->v;
	uint32_t left = PAGE_BYTES - (i->next & PAGE_MASK);
	struct vcpu_walk walk;
	uint8_t *page;

	if (vcpu_walk(v, i->next, ACCESS_FETCH, v->cpl == 3, &walk)) {
		v->cr2 = i->next;
		decode_raise(i, VECTOR_PF, walk.error);
		return true;
	}
	page = v->env->pin(v->env->ctx, walk.gpa, false);
	if (!page) {
		vcpu_kill(v, "code outside RAM: eip %x, physical %lx", i->next, walk.gpa);
		decode_raise(i, VECTOR_UD, -1);
		return true;
	}
	i->window_at = i->next;
	i->window_bytes = left < sizeof i->window ? left : sizeof i->window;
	copy_bytes(i->window, page + (walk.gpa & PAGE_MASK), i->window_bytes);
	v->env->unpin(v->env->ctx, walk.gpa);
	return false;
}

bool decode_fetch(struct insn *i, void *to, unsigned bytes)
{
	uint8_t *out = to;

	for (; bytes; bytes--, i->next++) {
		if (i->next - i->first >= INSN_MAX_BYTES) {
			decode_raise(i, VECTOR_GP, 0);
			return true;
		}
		if (i->next - i->window_at >= i->window_bytes && window_fill(i))
			return true;
		*out++ = i->window[i->next - i->window_at];
	}
	return false;
}

static bool prefix(struct insn *i, uint8_t byte)
{
	switch (byte) {
	case 0x26: i->override = SEG_ES; return true;
	case 0x2e: i->override = SEG_CS; return true;
	case 0x36: i->override = SEG_SS; return true;
	case 0x3e: i->override = SEG_DS; return true;
	case 0x64: i->override = SEG_FS; return true;
	case 0x65: i->override = SEG_GS; return true;
	case 0x66: i->operand_bytes = 2; return true;
	case 0x67: i->address16 = true; return true;
	case 0xf0: i->lock = true; return true;
	case 0xf2: i->repeat = REPEAT_NE; return true;
	case 0xf3: i->repeat = REPEAT_E; return true;
	default: return false;
	}
}

bool decode_opcode(struct insn *i)
{
	uint8_t byte;

	i->first = i->next;
	do
		if (decode_fetch(i, &byte, 1))
			return true;
	while (prefix(i, byte));
	i->opcode = byte;
	if (byte != 0x0f)
		return false;
	if (decode_fetch(i, &byte, 1))
		return true;
	i->opcode = 0x100 | byte;
	return false;
}

static bool fetch_displacement(struct insn *i, unsigned bytes)
{
	uint32_t value = 0;

	if (decode_fetch(i, &value, bytes))
		return true;
	if (bytes == 1)
		value = (uint32_t)(int8_t)value;
	i->offset += value;
	return false;
}

static void default_segment(struct insn *i, enum vcpu_seg segment)
{
	i->segment = i->override == NO_SEGMENT_OVERRIDE ? segment : (enum vcpu_seg)i->override;
}

static bool decode_sib(struct insn *i)
{
	uint8_t sib, base, index;

	if (decode_fetch(i, &sib, 1))
		return true;
	base = sib & 7;
	index = sib >> 3 & 7;
	if (index != ESP)
		i->offset += i->v->gpr[index] << (sib >> 6);
	if (base == EBP && i->mod == 0)
		return fetch_displacement(i, 4);
	i->offset += i->v->gpr[base];
	default_segment(i, base == ESP || base == EBP ? SEG_SS : SEG_DS);
	return false;
}

static bool decode_address32(struct insn *i)
{
	default_segment(i, SEG_DS);
	if (i->rm == 4) {
		if (decode_sib(i))
			return true;
	} else if (i->mod == 0 && i->rm == 5) {
		return fetch_displacement(i, 4);
	} else {
		i->offset = i->v->gpr[i->rm];
		default_segment(i, i->rm == EBP ? SEG_SS : SEG_DS);
	}
	return i->mod ? fetch_displacement(i, i->mod == 1 ? 1 : 4) : false;
}

static bool decode_address16(struct insn *i)
{
	static const struct { uint8_t base, index; } pairs[] = {
		{ EBX, ESI }, { EBX, EDI }, { EBP, ESI }, { EBP, EDI }, { ESI, 8 }, { EDI, 8 },
		{ EBP, 8 }, { EBX, 8 },
	};
	const uint32_t *gpr = i->v->gpr;
	bool fails = false;

	default_segment(i, SEG_DS);
	if (i->mod == 0 && i->rm == 6) {
		fails = fetch_displacement(i, 2);
	} else {
		i->offset = gpr[pairs[i->rm].base] +
			    (pairs[i->rm].index < 8 ? gpr[pairs[i->rm].index] : 0);
		default_segment(i, pairs[i->rm].base == EBP ? SEG_SS : SEG_DS);
		if (i->mod)
			fails = fetch_displacement(i, i->mod);
	}
	i->offset &= 0xffff;
	return fails;
}

static bool decode_modrm(struct insn *i, bool registers)
{
	uint8_t modrm;

	if (decode_fetch(i, &modrm, 1))
		return true;
	i->mod = modrm >> 6;
	i->reg = modrm >> 3 & 7;
	i->rm = modrm & 7;
	i->memory = i->mod != 3 && !registers;
	if (!i->memory)
		return false;
	i->offset = 0;
	return i->address16 ? decode_address16(i) : decode_address32(i);
}

bool decode_operands(struct insn *i, unsigned form)
{
	if ((form & FORM_MODRM) && decode_modrm(i, form & FORM_REGISTERS))
		return true;
	if ((form & FORM_IMM8) && decode_fetch(i, &i->imm, 1))
		return true;
	if ((form & FORM_IMM16) && decode_fetch(i, &i->imm, 2))
		return true;
	if ((form & (FORM_IMM | FORM_FAR)) && decode_fetch(i, &i->imm, i->operand_bytes))
		return true;
	if ((form & FORM_FAR) && decode_fetch(i, &i->selector, 2))
		return true;
	if (form & FORM_MOFFS) {
		i->memory = true;
		default_segment(i, SEG_DS);
		return decode_fetch(i, &i->offset, i->address16 ? 2 : 4);
	}
	return false;
}
