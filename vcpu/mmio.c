/* mmio.c - instructions that access device memory: the local APIC's page, which vcpu/ emulates
 * itself, and device memory that env->mmio_* serves.
 *
 * A compiler's readl() and writel() give mov in a few encodings; the kernel adds xchg and
 * read-modify-write operations on APIC registers.  Reads have effects on devices, so the operand
 * is read at most once and only if the operation needs it.
 */
#include "vcpu/internal.h"

uint32_t mmio_device_read(struct vcpu *v, gpa_t gpa, unsigned bytes)
{
	uint32_t value;

	if ((gpa & ~(gpa_t)PAGE_MASK) != VMP_LAPIC_GPA)
		return v->env->mmio_read(v->env->ctx, gpa, bytes);
	value = apic_read(v, gpa & PAGE_MASK) >> (gpa & 3) * 8;
	return bytes == 4 ? value : value & ((1u << bytes * 8) - 1);
}

/* The APIC takes whole aligned registers only (SDM 3, 10.4.1). */
void mmio_device_write(struct vcpu *v, gpa_t gpa, unsigned bytes, uint32_t value)
{
	if ((gpa & ~(gpa_t)PAGE_MASK) != VMP_LAPIC_GPA)
		v->env->mmio_write(v->env->ctx, gpa, bytes, value);
	else if (bytes == 4 && !(gpa & 15))
		apic_write(v, gpa & PAGE_MASK, value);
}

enum mmio_kind {
	MMIO_NONE, MMIO_STORE, MMIO_LOAD, MMIO_EXTEND, MMIO_EXTEND_SIGN, MMIO_EXCHANGE,
	MMIO_ALU_TO_MEMORY, MMIO_ALU_TO_REGISTER, MMIO_ALU_IMMEDIATE, MMIO_STORE_IMMEDIATE,
	MMIO_TEST, MMIO_GROUP3,
};

struct mmio_opcode { uint8_t kind; bool byte; uint16_t form; };

/* The eight operations of the first 64 opcodes, numbered as in bits 3-5. */
enum { ALU_FLAGS = EFLAGS_CF | EFLAGS_PF | EFLAGS_AF | EFLAGS_ZF | EFLAGS_SF | EFLAGS_OF };
enum alu { ALU_ADD, ALU_OR, ALU_ADC, ALU_SBB, ALU_AND, ALU_SUB, ALU_XOR, ALU_CMP };

static struct mmio_opcode mmio_opcode(uint16_t opcode)
{
	if (opcode < 0x40 && (opcode & 7) < 4)
		return (struct mmio_opcode){ opcode & 2 ? MMIO_ALU_TO_REGISTER : MMIO_ALU_TO_MEMORY,
					     !(opcode & 1), FORM_MODRM };
	switch (opcode) {
	case 0x80: return (struct mmio_opcode){ MMIO_ALU_IMMEDIATE, true, FORM_MODRM | FORM_IMM8 };
	case 0x81: return (struct mmio_opcode){ MMIO_ALU_IMMEDIATE, false, FORM_MODRM | FORM_IMM };
	case 0x83: return (struct mmio_opcode){ MMIO_ALU_IMMEDIATE, false, FORM_MODRM | FORM_IMM8 };
	case 0x84: return (struct mmio_opcode){ MMIO_TEST, true, FORM_MODRM };
	case 0x85: return (struct mmio_opcode){ MMIO_TEST, false, FORM_MODRM };
	case 0x86: return (struct mmio_opcode){ MMIO_EXCHANGE, true, FORM_MODRM };
	case 0x87: return (struct mmio_opcode){ MMIO_EXCHANGE, false, FORM_MODRM };
	case 0x88: return (struct mmio_opcode){ MMIO_STORE, true, FORM_MODRM };
	case 0x89: return (struct mmio_opcode){ MMIO_STORE, false, FORM_MODRM };
	case 0x8a: return (struct mmio_opcode){ MMIO_LOAD, true, FORM_MODRM };
	case 0x8b: return (struct mmio_opcode){ MMIO_LOAD, false, FORM_MODRM };
	case 0xa0: return (struct mmio_opcode){ MMIO_LOAD, true, FORM_MOFFS };
	case 0xa1: return (struct mmio_opcode){ MMIO_LOAD, false, FORM_MOFFS };
	case 0xa2: return (struct mmio_opcode){ MMIO_STORE, true, FORM_MOFFS };
	case 0xa3: return (struct mmio_opcode){ MMIO_STORE, false, FORM_MOFFS };
	case 0xc6:
		return (struct mmio_opcode){ MMIO_STORE_IMMEDIATE, true, FORM_MODRM | FORM_IMM8 };
	case 0xc7:
		return (struct mmio_opcode){ MMIO_STORE_IMMEDIATE, false, FORM_MODRM | FORM_IMM };
	case 0xf6: return (struct mmio_opcode){ MMIO_GROUP3, true, FORM_MODRM };
	case 0xf7: return (struct mmio_opcode){ MMIO_GROUP3, false, FORM_MODRM };
	case 0x1b6: return (struct mmio_opcode){ MMIO_EXTEND, true, FORM_MODRM };
	case 0x1b7: return (struct mmio_opcode){ MMIO_EXTEND, false, FORM_MODRM };
	case 0x1be: return (struct mmio_opcode){ MMIO_EXTEND_SIGN, true, FORM_MODRM };
	case 0x1bf: return (struct mmio_opcode){ MMIO_EXTEND_SIGN, false, FORM_MODRM };
	default: return (struct mmio_opcode){ MMIO_NONE, false, 0 };
	}
}

static uint32_t truncate(uint32_t value, unsigned bytes)
{
	return bytes == 4 ? value : value & ((1u << bytes * 8) - 1);
}

static uint32_t sign_extend(uint32_t value, unsigned bytes)
{
	return bytes == 1 ? (uint32_t)(int8_t)value : bytes == 2 ? (uint32_t)(int16_t)value : value;
}

/* Return the operation's result and set the six flags. */
static uint32_t alu(struct vcpu *v, enum alu op, uint32_t a, uint32_t b, unsigned bytes)
{
	uint32_t sign = 1u << (bytes * 8 - 1), carry = v->eflags & EFLAGS_CF, result = 0, flags = 0;
	uint64_t wide = 0;

	switch (op) {
	case ALU_ADD: wide = (uint64_t)a + b; break;
	case ALU_ADC: wide = (uint64_t)a + b + carry; break;
	case ALU_SUB:
	case ALU_CMP: wide = (uint64_t)a - b; break;
	case ALU_SBB: wide = (uint64_t)a - b - carry; break;
	case ALU_OR: wide = a | b; break;
	case ALU_AND: wide = a & b; break;
	case ALU_XOR: wide = a ^ b; break;
	}
	result = truncate((uint32_t)wide, bytes);
	if (op == ALU_ADD || op == ALU_ADC)
		flags |= ((a ^ result) & (b ^ result) & sign) ? EFLAGS_OF : 0;
	if (op == ALU_SUB || op == ALU_SBB || op == ALU_CMP)
		flags |= ((a ^ b) & (a ^ result) & sign) ? EFLAGS_OF : 0;
	if (op != ALU_OR && op != ALU_AND && op != ALU_XOR) {
		flags |= wide >> bytes * 8 & 1 ? EFLAGS_CF : 0;
		flags |= (a ^ b ^ result) & 0x10 ? EFLAGS_AF : 0;
	}
	flags |= result ? 0 : EFLAGS_ZF;
	flags |= result & sign ? EFLAGS_SF : 0;
	flags |= __builtin_parity(result & 0xff) ? 0 : EFLAGS_PF;
	v->eflags = (v->eflags & ~(uint32_t)ALU_FLAGS) | flags;
	return result;
}

static void alu_memory(struct vcpu *v, enum alu op, gpa_t gpa, uint32_t operand, unsigned bytes)
{
	uint32_t result =
		alu(v, op, mmio_device_read(v, gpa, bytes), truncate(operand, bytes), bytes);

	if (op != ALU_CMP)
		mmio_device_write(v, gpa, bytes, result);
}

static void alu_register(struct insn *i, enum alu op, gpa_t gpa, unsigned bytes)
{
	uint32_t result = alu(i->v, op, register_read(i->v, i->reg, bytes),
			      mmio_device_read(i->v, gpa, bytes), bytes);

	if (op != ALU_CMP)
		register_write(i->v, i->reg, bytes, result);
}

/* Emulate test, not, neg with memory; mul and div with device memory are not supported. */
static bool group3(struct insn *i, gpa_t gpa, unsigned bytes)
{
	struct vcpu *v = i->v;

	switch (i->reg) {
	case 0:
	case 1:
		if (decode_fetch(i, &i->imm, bytes))
			return false;
		alu(v, ALU_AND, mmio_device_read(v, gpa, bytes), i->imm, bytes);
		return true;
	case 2:
		mmio_device_write(v, gpa, bytes, truncate(~mmio_device_read(v, gpa, bytes), bytes));
		return true;
	case 3:
		mmio_device_write(v, gpa, bytes,
				  alu(v, ALU_SUB, 0, mmio_device_read(v, gpa, bytes), bytes));
		return true;
	default:
		return false;
	}
}

static void exchange(struct insn *i, gpa_t gpa, unsigned bytes)
{
	uint32_t old = mmio_device_read(i->v, gpa, bytes);

	mmio_device_write(i->v, gpa, bytes, register_read(i->v, i->reg, bytes));
	register_write(i->v, i->reg, bytes, old);
}

static bool execute(struct insn *i, struct mmio_opcode o, gpa_t gpa)
{
	struct vcpu *v = i->v;
	unsigned bytes = o.byte ? 1 : i->operand_bytes;
	uint32_t value;

	switch ((enum mmio_kind)o.kind) {
	case MMIO_STORE:
		mmio_device_write(v, gpa, bytes, register_read(v, i->reg, bytes));
		return true;
	case MMIO_LOAD:
		register_write(v, i->reg, bytes, mmio_device_read(v, gpa, bytes));
		return true;
	case MMIO_STORE_IMMEDIATE: mmio_device_write(v, gpa, bytes, i->imm); return true;
	case MMIO_EXCHANGE: exchange(i, gpa, bytes); return true;
	case MMIO_ALU_TO_MEMORY:
		alu_memory(v, i->opcode >> 3 & 7, gpa, register_read(v, i->reg, bytes), bytes);
		return true;
	case MMIO_ALU_TO_REGISTER: alu_register(i, i->opcode >> 3 & 7, gpa, bytes); return true;
	case MMIO_ALU_IMMEDIATE:
		value = i->opcode == 0x83 ? sign_extend(i->imm, 1) : i->imm;
		alu_memory(v, i->reg, gpa, value, bytes);
		return true;
	case MMIO_TEST:
		alu(v, ALU_AND, mmio_device_read(v, gpa, bytes), register_read(v, i->reg, bytes),
		    bytes);
		return true;
	case MMIO_GROUP3: return group3(i, gpa, bytes);
	case MMIO_EXTEND:
	case MMIO_EXTEND_SIGN:
		bytes = o.byte ? 1 : 2;
		value = mmio_device_read(v, gpa, bytes);
		register_write(v, i->reg, i->operand_bytes,
			       o.kind == MMIO_EXTEND ? value : sign_extend(value, bytes));
		return true;
	case MMIO_NONE: break;
	}
	return false;
}

enum vcpu_result vcpu_emulate_mmio(struct vcpu *v, gva_t gva, gpa_t gpa)
{
	bool shadow = v->interrupt_shadow;
	struct mmio_opcode o;
	struct insn i;

	if (v->dead)
		return VCPU_DONE;
	decode_start(&i, v);
	if (decode_opcode(&i))
		return decode_finish(&i, VCPU_RAISED);
	o = mmio_opcode(i.opcode);
	if (o.kind != MMIO_NONE && decode_operands(&i, o.form))
		return decode_finish(&i, VCPU_RAISED);
	v->interrupt_shadow = false;
	if (o.kind == MMIO_NONE || !i.memory || !execute(&i, o, gpa)) {
		if (i.vector >= 0)
			return decode_finish(&i, VCPU_RAISED);
		v->interrupt_shadow = shadow;
		vcpu_kill(v, "device memory at %x (physical %lx) touched by an instruction that "
			     "is not emulated: eip %x, opcode %x",
			  gva, gpa, i.start, i.opcode);
	}
	return decode_finish(&i, VCPU_DONE);
}
