/* transfer.c - control flow between segments and levels, flags, and segment registers: int,
 * iret, far jumps, calls and returns, pushf, popf, cli, sti, mov and pop to segment registers.
 */
#include "vcpu/internal.h"

/* Raise the fault that a segment check found; true if there is one. */
static bool check_fails(struct insn *i, int vector, uint32_t error)
{
	if (vector < 0)
		return false;
	decode_raise(i, (unsigned)vector, error);
	return true;
}

/* ---- flags */

uint32_t transfer_merge_eflags(const struct vcpu *v, uint32_t value, unsigned bytes, bool iret)
{
	uint32_t may = EFLAGS_CF | EFLAGS_PF | EFLAGS_AF | EFLAGS_ZF | EFLAGS_SF | EFLAGS_TF |
		       EFLAGS_DF | EFLAGS_OF | EFLAGS_NT | EFLAGS_AC | EFLAGS_ID;

	if (v->cpl == 0)
		may |= EFLAGS_IOPL;
	if (v->cpl <= (v->eflags >> 12 & 3))
		may |= EFLAGS_IF;
	if (iret)
		may |= EFLAGS_RF;
	if (bytes == 2)
		may &= 0xffff;
	return (v->eflags & ~may) | (value & may) | EFLAGS_FIXED;
}

enum vcpu_result emulate_pushf(struct insn *i)
{
	uint32_t value = (i->v->eflags | EFLAGS_FIXED) & ~(uint32_t)(EFLAGS_RF | EFLAGS_VM);

	return stack_push(i, i->operand_bytes, value) ? VCPU_RAISED : VCPU_DONE;
}

enum vcpu_result emulate_popf(struct insn *i)
{
	uint32_t value;

	if (stack_read(i, 0, i->operand_bytes, &value))
		return VCPU_RAISED;
	i->v->gpr[ESP] += i->operand_bytes;
	i->v->eflags = transfer_merge_eflags(i->v, value, i->operand_bytes, false);
	return VCPU_DONE;
}

enum vcpu_result emulate_cli(struct insn *i)
{
	i->v->eflags &= ~(uint32_t)EFLAGS_IF;
	return VCPU_DONE;
}

/* If interrupts were disabled, none is delivered before the next instruction has run: `sti; hlt`
 * must not lose a wake-up. */
enum vcpu_result emulate_sti(struct insn *i)
{
	i->v->interrupt_shadow = !(i->v->eflags & EFLAGS_IF);
	i->v->eflags |= EFLAGS_IF;
	return VCPU_DONE;
}

/* A CPU that halts with interrupts disabled is woken or started again by another CPU alone.  Until
 * the guest kernel has set its entry for system calls it runs on CPU 0 alone, and stops like that
 * after an exception that it cannot handle. */
static void check_halt(struct vcpu *v)
{
	if (v->eflags & EFLAGS_IF || v->nmi_pending)
		return;
	if (v->number == 0 && !v->window_syscall_eip)
		vcpu_kill(v, "the guest kernel has stopped as it began");
	else if (v->n_cpus == 1)
		vcpu_kill(v, "the guest has halted its only processor with interrupts disabled: "
			     "nothing can wake it");
}

enum vcpu_result emulate_hlt(struct insn *i)
{
	check_halt(i->v);
	vcpu_halt(i->v);
	return VCPU_HALTED;
}

enum vcpu_result emulate_pause(struct insn *i)
{
	yield(i->v);
	return VCPU_DONE;
}

/* ---- software interrupts */

/* Deliver int n.  No step trap follows: the gate clears TF before the instruction ends. */
static enum vcpu_result software_interrupt(struct insn *i, unsigned vector)
{
	i->steps = false;
	i->v->eip = i->next;
	vcpu_software_interrupt(i->v, vector, i->start);
	i->next = i->v->eip;
	return VCPU_DONE;
}

enum vcpu_result emulate_int3(struct insn *i) { return software_interrupt(i, VECTOR_BP); }

enum vcpu_result emulate_into(struct insn *i)
{
	return i->v->eflags & EFLAGS_OF ? software_interrupt(i, VECTOR_OF) : VCPU_DONE;
}

/* True if the instruction follows a call of the system-call stub, as in the vDSO.  Anywhere else a
 * program's `int $VMP_INT_SYSCALL` is an int like any other. */
static bool is_behind_stub_call(const struct insn *i)
{
	static const uint8_t call[] = {
		0x9a, (uint8_t)VMP_STUB_SYSCALL, (uint8_t)(VMP_STUB_SYSCALL >> 8),
		(uint8_t)(VMP_STUB_SYSCALL >> 16), (uint8_t)(VMP_STUB_SYSCALL >> 24),
		VMP_SEL_HOST64, 0,
	};
	uint8_t before[sizeof call];
	uint32_t error;

	return i->start >= sizeof call &&
	       !vcpu_read(i->v, i->start - sizeof call, before, sizeof before, true, &error) &&
	       !__builtin_memcmp(before, call, sizeof call);
}

enum vcpu_result emulate_int(struct insn *i)
{
	if (i->v->cpl == 3 && i->imm == VMP_INT_SYSCALL && is_behind_stub_call(i))
		return software_interrupt(i, 0x80);
	if (i->v->cpl == 3 && i->imm == VMP_INT_HYPERCALL && i->v->gpr[EAX] == BARRIER_CALL) {
		hypercall_barrier(i->v);
		return VCPU_DONE;
	}
	if (i->v->cpl == 3)
		return software_interrupt(i, i->imm);
	if (i->imm != VMP_INT_HYPERCALL)
		return software_interrupt(i, i->imm);
	hypercall(i->v);
	return VCPU_DONE;
}

/* ---- iret and far return */

/* The target of a return: popped, checked, then entered. */
struct return_target { uint32_t eip, cs, esp, ss; bool outer; };

static bool target_check(struct insn *i, struct return_target *t)
{
	struct vcpu *v = i->v;
	unsigned rpl = t->cs & SELECTOR_RPL;
	uint32_t error = t->cs & 0xfffc;
	int vector;

	if (selector_is_null((uint16_t)t->cs))
		return check_fails(i, VECTOR_GP, 0);
	if (rpl < v->cpl || (rpl != 0 && rpl != 3))
		return check_fails(i, VECTOR_GP, error);
	vector = segment_check_code(v, (uint16_t)t->cs, rpl, &error);
	t->outer = rpl > v->cpl;
	return check_fails(i, vector, error);
}

static bool target_stack(struct insn *i, struct return_target *t, uint32_t above)
{
	unsigned n = i->operand_bytes;
	uint32_t error;
	int vector;

	if (stack_read(i, above, n, &t->esp) || stack_read(i, above + n, n, &t->ss))
		return true;
	vector = segment_check_stack(i->v, (uint16_t)t->ss, 3, &error);
	return check_fails(i, vector, error);
}

/* Data segments that the outer level may not use become null (SDM 2, IRET). */
static void data_segments_drop(struct vcpu *v)
{
	static const uint8_t data[] = { SEG_DS, SEG_ES, SEG_FS, SEG_GS };
	uint32_t cr2 = v->cr2, error;
	struct vcpu_segment s;
	struct descriptor raw;

	for (unsigned n = 0; n < ARRAY_LEN(data); n++) {
		uint16_t *selector = &v->seg[data[n]];

		if (selector_is_null(*selector) || (n && *selector == v->seg[SEG_DS]))
			continue;
		if (segment_read(v, *selector, &raw, &s, &error) || s.system)
			*selector = 0;
		else if (s.dpl < 3 &&
			 (s.type & (TYPE_CODE | TYPE_CONFORMING)) != (TYPE_CODE | TYPE_CONFORMING))
			*selector = 0;
	}
	v->cr2 = cr2;
}

static void target_enter(struct insn *i, const struct return_target *t, uint32_t pop)
{
	struct vcpu *v = i->v;

	i->next = t->eip;
	v->seg[SEG_CS] = (uint16_t)t->cs;
	if (!t->outer) {
		v->gpr[ESP] += pop;
		return;
	}
	v->cpl = 3;
	v->gpr[ESP] = i->operand_bytes == 2 ? (v->gpr[ESP] & 0xffff0000) | t->esp : t->esp;
	v->seg[SEG_SS] = (uint16_t)t->ss;
	data_segments_drop(v);
}

static enum vcpu_result iret_to_task(struct insn *i)
{
	if (i->v->cpl == 3)
		return decode_raise(i, VECTOR_TS, 0);
	vcpu_kill(i->v, "iret at %x with the nested-task flag", i->start);
	return VCPU_DONE;
}

enum vcpu_result emulate_iret(struct insn *i)
{
	struct vcpu *v = i->v;
	unsigned n = i->operand_bytes;
	struct return_target t = { 0 };
	uint32_t eflags;

	if (v->eflags & EFLAGS_NT)
		return iret_to_task(i);
	if (stack_read(i, 0, n, &t.eip) || stack_read(i, n, n, &t.cs) ||
	    stack_read(i, 2 * n, n, &eflags))
		return VCPU_RAISED;
	t.cs &= 0xffff;
	if (v->cpl == 0 && (eflags & EFLAGS_VM)) {
		vcpu_kill(v, "iret at %x to virtual-8086 mode", i->start);
		return VCPU_DONE;
	}
	if (target_check(i, &t) || (t.outer && target_stack(i, &t, 3 * n)))
		return VCPU_RAISED;
	v->eflags = transfer_merge_eflags(v, eflags, n, true);
	i->loads_rf = true;
	target_enter(i, &t, 3 * n);
	v->nmi_blocked = false;
	return VCPU_DONE;
}

enum vcpu_result vcpu_iret(struct vcpu *v)
{
	struct insn i;

	decode_start(&i, v);
	return decode_finish(&i, emulate_iret(&i));
}

enum vcpu_result emulate_far_return(struct insn *i)
{
	struct vcpu *v = i->v;
	unsigned n = i->operand_bytes;
	struct return_target t = { 0 };

	if (stack_read(i, 0, n, &t.eip) || stack_read(i, n, n, &t.cs))
		return VCPU_RAISED;
	t.cs &= 0xffff;
	if (target_check(i, &t) || (t.outer && target_stack(i, &t, 2 * n + i->imm)))
		return VCPU_RAISED;
	target_enter(i, &t, 2 * n + i->imm);
	if (t.outer)
		v->gpr[ESP] += i->imm;
	return VCPU_DONE;
}

/* ---- far jump and call */

static bool gate_dies(struct vcpu *v, uint16_t selector, uint32_t eip)
{
	uint32_t cr2 = v->cr2, error;
	struct vcpu_segment s;
	struct descriptor raw;

	if (v->cpl == 0 && !segment_read(v, selector, &raw, &s, &error) && s.system && s.present &&
	    s.type != SYSTEM_LDT)
		vcpu_kill(v, "far transfer at %x through a gate or task, selector %x", eip,
			  selector);
	v->cr2 = cr2;
	return v->dead;
}

static enum vcpu_result far_transfer(struct insn *i, uint16_t selector, uint32_t offset, bool call)
{
	struct vcpu *v = i->v;
	uint32_t error, cs = v->seg[SEG_CS];
	int vector;

	if (!selector_is_null(selector) && gate_dies(v, selector, i->start))
		return VCPU_DONE;
	vector = segment_check_code(v, selector, v->cpl, &error);
	if (check_fails(i, vector, error))
		return VCPU_RAISED;
	if ((selector & SELECTOR_RPL) > v->cpl)
		return decode_raise(i, VECTOR_GP, error);
	if (call) {
		unsigned n = i->operand_bytes;
		uint32_t frame[2] = { i->next, cs };

		if (n == 2)
			frame[0] = (i->next & 0xffff) | cs << 16;
		if (memory_write(i, v->gpr[ESP] - 2 * n, frame, 2 * n))
			return VCPU_RAISED;
		v->gpr[ESP] -= 2 * n;
	}
	v->seg[SEG_CS] = (uint16_t)((selector & ~SELECTOR_RPL) | v->cpl);
	i->next = offset;
	return VCPU_DONE;
}

static bool far_pointer(struct insn *i, uint32_t *offset, uint16_t *selector)
{
	uint8_t pointer[6];
	gva_t gva;

	if (operand_linear(i, &gva) || memory_read(i, gva, pointer, i->operand_bytes + 2))
		return true;
	*offset = 0;
	__builtin_memcpy(offset, pointer, i->operand_bytes);
	__builtin_memcpy(selector, pointer + i->operand_bytes, 2);
	return false;
}

static enum vcpu_result far_transfer_memory(struct insn *i, bool call)
{
	uint16_t selector;
	uint32_t offset;

	return far_pointer(i, &offset, &selector)
		? VCPU_RAISED : far_transfer(i, selector, offset, call);
}

enum vcpu_result emulate_far_jump(struct insn *i)
{
	return far_transfer(i, i->selector, i->imm, false);
}

enum vcpu_result emulate_far_call(struct insn *i)
{
	return far_transfer(i, i->selector, i->imm, true);
}

enum vcpu_result emulate_far_jump_memory(struct insn *i) { return far_transfer_memory(i, false); }
enum vcpu_result emulate_far_call_memory(struct insn *i) { return far_transfer_memory(i, true); }

/* ---- segment registers */

static bool segment_load(struct insn *i, enum vcpu_seg segment, uint16_t selector)
{
	struct vcpu *v = i->v;
	uint32_t error = 0;
	int vector = segment == SEG_SS ? segment_check_stack(v, selector, v->cpl, &error)
				       : segment_check_data(v, selector, &error);

	if (check_fails(i, vector, error))
		return true;
	v->seg[segment] = selector;
	return false;
}

/* Bits 3-5 of push and pop opcodes number the segment as ModRM does. */
static enum vcpu_seg opcode_segment(const struct insn *i) { return i->opcode >> 3 & 7; }

enum vcpu_result emulate_push_segment(struct insn *i)
{
	return stack_push(i, i->operand_bytes, i->v->seg[opcode_segment(i)])
		? VCPU_RAISED : VCPU_DONE;
}

enum vcpu_result emulate_pop_segment(struct insn *i)
{
	enum vcpu_seg segment = opcode_segment(i);
	uint32_t value;

	if (stack_read(i, 0, 2, &value) || segment_load(i, segment, (uint16_t)value))
		return VCPU_RAISED;
	i->v->gpr[ESP] += i->operand_bytes;
	i->v->interrupt_shadow = segment == SEG_SS;
	return VCPU_DONE;
}

enum vcpu_result emulate_mov_from_segment(struct insn *i)
{
	if (i->reg >= SEG_COUNT)
		return decode_raise(i, VECTOR_UD, -1);
	return operand_write(i, i->memory ? 2 : i->operand_bytes, i->v->seg[i->reg])
		? VCPU_RAISED : VCPU_DONE;
}

enum vcpu_result emulate_mov_to_segment(struct insn *i)
{
	uint32_t selector;

	if (i->reg >= SEG_COUNT || i->reg == SEG_CS)
		return decode_raise(i, VECTOR_UD, -1);
	if (operand_read(i, 2, &selector) || segment_load(i, i->reg, (uint16_t)selector))
		return VCPU_RAISED;
	i->v->interrupt_shadow = i->reg == SEG_SS;
	return VCPU_DONE;
}

/* les, lds, lss, lfs, lgs: c4 c5 0f-b2 0f-b4 0f-b5.  With a register operand the first two are
 * VEX prefixes. */
enum vcpu_result emulate_load_far_pointer(struct insn *i)
{
	enum vcpu_seg segment = i->opcode == 0xc4   ? SEG_ES
				: i->opcode == 0xc5
					? SEG_DS : (enum vcpu_seg)(i->opcode & 7);
	uint16_t selector;
	uint32_t offset;

	if (!i->memory)
		return VCPU_NOT_MINE;
	if (far_pointer(i, &offset, &selector) || segment_load(i, segment, selector))
		return VCPU_RAISED;
	register_write(i->v, i->reg, i->operand_bytes, offset);
	return VCPU_DONE;
}
