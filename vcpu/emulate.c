/* emulate.c - one sensitive instruction: find it in opcodes.def, check who may run it, run its
 * handler.
 *
 * The engine calls vcpu_emulate() when the host refused an instruction, or at a marker.  The
 * handlers are in system.c (registers and tables of the system), transfer.c (control flow,
 * flags, segment registers) and portio.c.
 */
#include "vcpu/internal.h"

enum {
	INSN_PUSHF = 0x9c, INSN_POPF = 0x9d, INSN_INT = 0xcd, INSN_IRET = 0xcf, INSN_HLT = 0xf4,
	INSN_CLI = 0xfa, INSN_STI = 0xfb,
};

struct opcode { uint16_t form; insn_handler *handler; };

/* Indexed by opcode: one look-up, 8 KiB, constant. */
static const struct opcode opcodes[512] = {
#define X(opcode, form, handler) [opcode] = { form, handler },
#include "vcpu/opcodes.def"
};
static const struct opcode groups[10][8] = {
#define X(opcode, form, handler)
#define G(group, reg, form, handler) [group][reg] = { form, handler },
#include "vcpu/opcodes.def"
};
static const struct opcode register_forms[64] = { /* of group 7: ModRM 0xc0 and up */
#define X(opcode, form, handler)
#define R(modrm, form, handler) [modrm - 0xc0] = { form, handler },
#include "vcpu/opcodes.def"
};

static bool privilege_fails(struct insn *i, unsigned form)
{
	unsigned iopl = i->v->eflags >> 12 & 3;

	if (((form & FORM_CPL0) && i->v->cpl) || ((form & FORM_IOPL) && i->v->cpl > iopl)) {
		decode_raise(i, VECTOR_GP, 0);
		return true;
	}
	return false;
}

static enum vcpu_result run(struct insn *i, const struct opcode *o)
{
	if (!o->handler || ((o->form & FORM_MARKED) && !i->marked))
		return VCPU_NOT_MINE;
	if (decode_operands(i, o->form))
		return VCPU_RAISED;
	/* no emulated instruction may have a lock prefix */
	if (i->lock && !(o->form & FORM_GROUP))
		return decode_raise(i, VECTOR_UD, -1);
	if (privilege_fails(i, o->form))
		return VCPU_RAISED;
	return o->handler(i);
}

static enum vcpu_result run_group(struct insn *i, unsigned group)
{
	return run(i, &groups[group][i->reg]);
}

enum vcpu_result emulate_group5(struct insn *i)
{
	return i->memory ? run_group(i, 5) : VCPU_NOT_MINE;
}

enum vcpu_result emulate_group6(struct insn *i) { return run_group(i, 6); }

enum vcpu_result emulate_group9(struct insn *i)
{
	return i->memory ? run_group(i, 9) : VCPU_NOT_MINE;
}

/* With mod 3 the group has other instructions, except lmsw and smsw, which have register forms. */
enum vcpu_result emulate_group7(struct insn *i)
{
	if (!i->memory && i->reg != 4 && i->reg != 6)
		return run(i, &register_forms[i->reg << 3 | i->rm]);
	return run_group(i, 7);
}

enum vcpu_result emulate_map_0f38(struct insn *i)
{
	uint8_t byte;

	if (decode_fetch(i, &byte, 1))
		return VCPU_RAISED;
	return byte == 0x82 && i->operand_bytes == 2 ? emulate_undefined(i) : VCPU_NOT_MINE;
}

enum vcpu_result emulate_undefined(struct insn *i)
{
	return decode_raise(i, VECTOR_UD, -1);
}

/* Skip a marker and decode the instruction behind it.  A marker counts in kernel mode alone; in
 * user mode it is an int like any other.  True: a fault was raised. */
static bool marker_skip(struct insn *i)
{
	uint8_t vector;
	struct insn unmarked = *i;

	if (i->opcode != INSN_INT || i->v->cpl)
		return false;
	if (decode_fetch(i, &vector, 1))
		return true;
	if (vector != VMP_INT_MARKER) {
		*i = unmarked;
		return false;
	}
	i->marked = true;
	i->operand_bytes = 4;
	i->override = NO_SEGMENT_OVERRIDE;
	i->repeat = REPEAT_NONE;
	return decode_opcode(i);
}

static enum vcpu_result emulate_one(struct insn *i)
{
	enum vcpu_result result;

	if (decode_opcode(i) || marker_skip(i))
		return VCPU_RAISED;
	result = run(i, &opcodes[i->opcode]);
	if (result == VCPU_NOT_MINE && i->marked)
		vcpu_kill(i->v,
			  "marker before an instruction that is not emulated: eip %x, opcode %x",
			  i->start, i->opcode);
	return result;
}

enum vcpu_result vcpu_emulate(struct vcpu *v)
{
	bool shadow = v->interrupt_shadow;
	enum vcpu_result result;
	struct insn i;

	if (v->dead)
		return VCPU_DONE;
	decode_start(&i, v);
	/* it covers this one instruction; sti and mov ss set it again */
	v->interrupt_shadow = false;
	result = emulate_one(&i);
	if (result == VCPU_NOT_MINE)
		v->interrupt_shadow = shadow;
	return decode_finish(&i, result);
}

/* (TRICKS: fetched-runs-first) */
bool vcpu_step_by_hand(struct vcpu *v)
{
	uint32_t cr2 = v->cr2;
	struct insn i;

	if (v->cpl != 3 || v->dead)
		return false;
	decode_start(&i, v);
	if (decode_opcode(&i)) {
		v->cr2 = cr2; /* the step raises the fault */
		return false;
	}
	if ((i.opcode != INSN_PUSHF && i.opcode != INSN_POPF && i.opcode != INSN_IRET) || i.lock)
		return false;
	v->interrupt_shadow = false;
	if (i.opcode == INSN_IRET)
		decode_finish(&i, emulate_iret(&i));
	else
		decode_finish(&i, i.opcode == INSN_PUSHF ? emulate_pushf(&i) : emulate_popf(&i));
	return true;
}

bool emulate_traps_next(struct vcpu *v, uint8_t insn[2])
{
	uint32_t error, cr2 = v->cr2;

	if (vcpu_read(v, v->eip, insn, 2, v->cpl == 3, &error)) {
		v->cr2 = cr2;
		return false;
	}
	if (v->cpl == 3)
		return false;
	return insn[0] == INSN_CLI || insn[0] == INSN_STI || insn[0] == INSN_HLT ||
	       (insn[0] == INSN_INT && (insn[1] == VMP_INT_MARKER || insn[1] == VMP_INT_HYPERCALL));
}

static enum vcpu_trap trap_of(const struct vcpu *v, const uint8_t insn[2])
{
	if (insn[0] != INSN_INT)
		return VCPU_TRAP_PRIVILEGED;
	if (v->cpl == 3)
		return VCPU_TRAP_SYSCALL;
	return insn[1] == VMP_INT_HYPERCALL ? VCPU_TRAP_HYPERCALL : VCPU_TRAP_MARKER;
}

enum vcpu_result vcpu_emulate_run(struct vcpu *v, bool one, void (*seen)(void *ctx, enum vcpu_trap),
				  void *ctx)
{
	uint8_t insn[2] = { 0 };
	unsigned yields = v->yields;
	enum vcpu_result result;
	uint32_t eip;

	emulate_traps_next(v, insn);
	do {
		seen(ctx, trap_of(v, insn));
		eip = v->eip;
		result = vcpu_emulate(v);
		if (result != VCPU_DONE)
			return result;
		/* the shadow of sti ends behind the next instruction */
		if (v->interrupt_shadow && insn[0] != INSN_STI)
			v->interrupt_shadow = false;
	} while (!one && !v->dead && !v->halted && v->eip != eip && emulate_traps_next(v, insn) &&
		 !(vcpu_can_interrupt(v) && vcpu_interrupt_pending(v)));
	if (v->yields == yields)
		v->yields = 0;
	return result;
}
