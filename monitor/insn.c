/* insn.c - finds the memory accesses of an ordinary instruction, with Zydis.
 *
 * The host gives a tracer the address of a page fault, but not whether it was a write; and for a
 * segment-limit violation not even the address.  Both are derived from the instruction.  A wrong
 * "no" from insn_writes() costs one more fault: the page is then mapped for reading, and the next
 * fault on it can only be a write.  A "yes" is always right.
 */
#include "monitor/monitor.h"

#include <Zydis/Zydis.h>
#include <string.h>

struct insn {
	ZydisDecodedInstruction decoded;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode(struct monitor *m, struct insn *insn)
{
	static ZydisDecoder decoder;
	static bool ready;
	struct vcpu *v = &m->vcpu;
	uint32_t error, cr2 = v->cr2, room = PAGE_BYTES - (v->eip & PAGE_MASK);
	uint8_t bytes[INSN_MAX_BYTES];
	unsigned count = INSN_MAX_BYTES;

	if (!ready) {
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32);
		ready = true;
	}
	if (vcpu_read(v, v->eip, bytes, count, v->cpl == 3, &error)) {
		v->cr2 = cr2;
		count = room < INSN_MAX_BYTES ? room : INSN_MAX_BYTES;
		if (vcpu_read(v, v->eip, bytes, count, v->cpl == 3, &error)) {
			v->cr2 = cr2;
			return false;
		}
	}
	return ZYAN_SUCCESS(
		ZydisDecoderDecodeFull(&decoder, bytes, count, &insn->decoded, insn->operand));
}

static uint32_t register_value(const struct vcpu *v, ZydisRegister reg)
{
	const ZydisMachineMode mode = ZYDIS_MACHINE_MODE_LONG_COMPAT_32;
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(mode, reg);
	uint32_t mask = ZydisRegisterGetWidth(mode, reg) == 16 ? 0xffff : ~0u;

	if (wide >= ZYDIS_REGISTER_EAX && wide <= ZYDIS_REGISTER_EDI)
		return v->gpr[wide - ZYDIS_REGISTER_EAX] & mask;
	return 0;
}

/* Return the guest's segment that an operand names.  FS and GS have bases of their own. */
static struct vcpu_segment segment_of(struct monitor *m, ZydisRegister segment)
{
	struct vcpu_segment s;

	switch (segment) {
	case ZYDIS_REGISTER_ES: vcpu_segment(&m->vcpu, m->vcpu.seg[SEG_ES] >> 3, &s); break;
	case ZYDIS_REGISTER_SS: vcpu_segment(&m->vcpu, m->vcpu.seg[SEG_SS] >> 3, &s); break;
	case ZYDIS_REGISTER_DS: vcpu_segment(&m->vcpu, m->vcpu.seg[SEG_DS] >> 3, &s); break;
	case ZYDIS_REGISTER_FS:
		vcpu_segment(&m->vcpu, m->vcpu.seg[SEG_FS] >> 3, &s);
		s.base = m->vm.regs.fs_base;
		break;
	case ZYDIS_REGISTER_GS:
		vcpu_segment(&m->vcpu, m->vcpu.seg[SEG_GS] >> 3, &s);
		s.base = m->vm.regs.gs_base;
		break;
	default: s = (struct vcpu_segment){ .limit = UINT32_MAX, .present = true };
	}
	return s;
}

/* True for a far call to 64-bit code, such as a system call's to the window: its pushes ignore the
 * base of SS. */
static bool calls_64(const struct insn *insn)
{
	return insn->decoded.mnemonic == ZYDIS_MNEMONIC_CALL &&
	       insn->operand[0].type == ZYDIS_OPERAND_TYPE_POINTER &&
	       insn->operand[0].ptr.segment == VMP_SEL_HOST64;
}

/* Set first byte and length of a memory operand; for a push, below the stack pointer. */
static bool memory_range(struct monitor *m, const struct insn *insn, const ZydisDecodedOperand *o,
			 uint32_t *at, uint32_t *bytes)
{
	const struct vcpu *v = &m->vcpu;

	if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
		return false;
	*at = register_value(v, o->mem.base) + register_value(v, o->mem.index) * o->mem.scale +
	      (o->mem.disp.has_displacement ? (uint32_t)o->mem.disp.value : 0) +
	      segment_of(m, o->mem.segment).base;
	*bytes = o->size ? o->size / 8 : PAGE_BYTES;
	if (o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && o->mem.base == ZYDIS_REGISTER_ESP &&
	    o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
		uint32_t pushed = insn->decoded.mnemonic == ZYDIS_MNEMONIC_PUSHAD ? 32 : *bytes;

		*at -= pushed;
		*bytes = pushed;
		if (calls_64(insn))
			*at -= segment_of(m, o->mem.segment).base;
	}
	return true;
}

bool insn_writes(struct monitor *m, gva_t gva)
{
	struct insn insn;
	uint32_t at, bytes;
	bool writes = false;

	if (gva - m->vcpu.eip < INSN_MAX_BYTES || !decode(m, &insn))
		return false;
	for (unsigned i = 0; i < insn.decoded.operand_count; i++) {
		if (!memory_range(m, &insn, &insn.operand[i], &at, &bytes) || gva - at >= bytes)
			continue;
		if (!(insn.operand[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			return false; /* movs reads first */
		writes = true;
	}
	return writes;
}

/* Find the first operand with this access that crosses a limit which the host, not the guest, has
 * set. */
static bool operand_beyond_limit(struct monitor *m, const struct insn *insn,
				 enum vcpu_access access, gva_t *gva)
{
	uint32_t at, bytes;

	for (unsigned i = 0; i < insn->decoded.operand_count; i++) {
		const ZydisDecodedOperand *o = &insn->operand[i];
		bool writes = o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;

		if (writes != (access == ACCESS_WRITE) || !memory_range(m, insn, o, &at, &bytes) ||
		    at + bytes - 1 < VMP_USER_LIMIT)
			continue;
		if (segment_of(m, o->mem.segment).limit < VMP_USER_LIMIT - 1)
			continue;
		*gva = at < VMP_USER_LIMIT ? VMP_USER_LIMIT : at;
		return true;
	}
	return false;
}

bool insn_beyond_user_limit(struct monitor *m, gva_t *gva, enum vcpu_access *access)
{
	struct insn insn;

	if (!decode(m, &insn))
		return false;
	for (*access = ACCESS_READ; *access <= ACCESS_WRITE; ++*access) /* reads come first */
		if (operand_beyond_limit(m, &insn, *access, gva))
			return true;
	return false;
}

/* True for an SSE instruction.  A pending x87 exception is raised at x87 and MMX instructions
 * alone. */
bool insn_is_sse(struct monitor *m)
{
	struct insn insn;

	return decode(m, &insn) && insn.decoded.opcode_map != ZYDIS_OPCODE_MAP_DEFAULT &&
	       insn.decoded.meta.isa_ext != ZYDIS_ISA_EXT_MMX;
}

bool insn_is_bound(struct monitor *m)
{
	struct insn insn;
	struct vcpu_segment s;
	uint32_t at, bytes;

	if (!decode(m, &insn) || insn.decoded.mnemonic != ZYDIS_MNEMONIC_BOUND ||
	    !memory_range(m, &insn, &insn.operand[1], &at, &bytes))
		return false;
	s = segment_of(m, insn.operand[1].mem.segment);
	return s.present && at - s.base <= s.limit && s.limit - (at - s.base) >= bytes - 1;
}

bool insn_was_into(struct monitor *m)
{
	enum { INTO = 0xce };
	struct vcpu *v = &m->vcpu;
	uint32_t error, cr2 = v->cr2, at, bytes;
	struct insn insn;
	uint8_t byte = 0;

	vcpu_read(v, v->eip - 1, &byte, 1, v->cpl == 3, &error);
	v->cr2 = cr2;
	if (byte != INTO || !(v->eflags & EFLAGS_OF))
		return false;
	for (unsigned i = 0; decode(m, &insn) && i < insn.decoded.operand_count; i++)
		if (memory_range(m, &insn, &insn.operand[i], &at, &bytes))
			return false; /* this may be the cause */
	return true;
}
