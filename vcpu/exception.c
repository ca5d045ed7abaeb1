/* exception.c - delivers events to the guest: gate, stack, frame (SDM 3, 6.8 - 6.15), and faults
 * during delivery.
 *
 * One attempt at delivery is a sequence of checks that change nothing, then one write of the
 * whole frame, then the registers.  If a check fails, its own exception takes the event's place,
 * by the table of SDM 3, 6-5.
 */
#include "vcpu/internal.h"

struct event {
	unsigned vector;
	bool has_error;
	uint32_t error;
	enum event_kind kind;
	uint32_t eip; /* the value in the frame */
};

/* An exception that occurred during delivery. */
struct nested { unsigned vector; uint32_t error; };

struct gate { uint16_t selector; uint32_t offset; uint8_t type, dpl; bool present; };

static const struct { enum exception_class class; bool has_error; bool restarts; } vectors[] = {
	[VECTOR_DE] = { CLASS_CONTRIBUTORY, false, true },
	[VECTOR_DB] = { CLASS_BENIGN, false, false },
	[VECTOR_NMI] = { CLASS_BENIGN, false, false },
	[VECTOR_BP] = { CLASS_BENIGN, false, false },
	[VECTOR_OF] = { CLASS_BENIGN, false, false },
	[VECTOR_BR] = { CLASS_BENIGN, false, true },
	[VECTOR_UD] = { CLASS_BENIGN, false, true },
	[VECTOR_NM] = { CLASS_BENIGN, false, true },
	[VECTOR_DF] = { CLASS_DOUBLE_FAULT, true, false },
	[VECTOR_TS] = { CLASS_CONTRIBUTORY, true, true },
	[VECTOR_NP] = { CLASS_CONTRIBUTORY, true, true },
	[VECTOR_SS] = { CLASS_CONTRIBUTORY, true, true },
	[VECTOR_GP] = { CLASS_CONTRIBUTORY, true, true },
	[VECTOR_PF] = { CLASS_PAGE_FAULT, true, true },
	[VECTOR_MF] = { CLASS_BENIGN, false, true },
	[VECTOR_AC] = { CLASS_BENIGN, true, true },
	[VECTOR_MC] = { CLASS_BENIGN, false, false },
	[VECTOR_XM] = { CLASS_BENIGN, false, true },
};

enum exception_class exception_class_of(unsigned vector)
{
	return vector < ARRAY_LEN(vectors) ? vectors[vector].class : CLASS_BENIGN;
}

/* SDM 3, table 6-5.  Rows: the event being delivered; columns: the exception raised meanwhile. */
enum nesting exception_nesting(enum exception_class first, enum exception_class second)
{
	static const enum nesting table[CLASS_COUNT][CLASS_COUNT] = {
		/* columns: benign, contributory, page fault, double fault (never a second event) */
		[CLASS_BENIGN]	     = { NEST_SERIAL, NEST_SERIAL, NEST_SERIAL, NEST_TRIPLE },
		[CLASS_CONTRIBUTORY] = { NEST_SERIAL, NEST_DOUBLE, NEST_SERIAL, NEST_TRIPLE },
		[CLASS_PAGE_FAULT]   = { NEST_SERIAL, NEST_DOUBLE, NEST_DOUBLE, NEST_TRIPLE },
		[CLASS_DOUBLE_FAULT] = { NEST_SERIAL, NEST_TRIPLE, NEST_TRIPLE, NEST_TRIPLE },
	};
	return table[first][second];
}

static bool nest(struct nested *n, int vector, uint32_t error)
{
	n->vector = (unsigned)vector;
	n->error = error;
	return true;
}

/* Return the EXT bit: the fault occurred while delivering an event that is not a software
 * interrupt. */
static uint32_t ext_bit(const struct event *e) { return e->kind != EVENT_SOFTWARE; }

static bool gate_read(struct vcpu *v, const struct event *e, struct gate *g, struct nested *n)
{
	uint32_t where = e->vector * 8 + 2, raw[2], error;

	if (e->vector * 8 + 7 > v->idtr.limit)
		return nest(n, VECTOR_GP, where | ext_bit(e));
	if (vcpu_read(v, v->idtr.base + e->vector * 8, raw, sizeof raw, false, &error))
		return nest(n, VECTOR_PF, error);
	g->selector = raw[0] >> 16;
	g->offset = (raw[0] & 0xffff) | (raw[1] & 0xffff0000);
	g->type = raw[1] >> 8 & 31; /* with the S bit: never set in a gate */
	g->dpl = raw[1] >> 13 & 3;
	g->present = raw[1] >> 15 & 1;
	if (g->type == SYSTEM_TASK_GATE && g->present)
		vcpu_kill(v, "vector %u has a task gate (eip %x)", e->vector, v->eip);
	if (g->type != SYSTEM_INTERRUPT_GATE && g->type != SYSTEM_TRAP_GATE)
		return nest(n, VECTOR_GP, where | ext_bit(e));
	if (e->kind == EVENT_SOFTWARE && v->cpl > g->dpl)
		return nest(n, VECTOR_GP, where);
	if (!g->present)
		return nest(n, VECTOR_NP, where | ext_bit(e));
	return false;
}

/* Set *cpl to the privilege that the gate's code segment gives the handler.  True: the check
 * failed, with exception *n. */
static bool handler_cpl(struct vcpu *v, const struct event *e, const struct gate *g, unsigned *cpl,
			struct nested *n)
{
	struct vcpu_segment s;
	struct descriptor raw;
	uint32_t error, where = (g->selector & ~(uint32_t)SELECTOR_RPL) | ext_bit(e);

	if (selector_is_null(g->selector))
		return nest(n, VECTOR_GP, ext_bit(e));
	switch (segment_read(v, g->selector, &raw, &s, &error)) {
	case 0: break;
	case ERR_FAULT: return nest(n, VECTOR_PF, error);
	default: return nest(n, VECTOR_GP, where);
	}
	if (s.system || !(s.type & TYPE_CODE) || s.dpl > v->cpl)
		return nest(n, VECTOR_GP, where);
	if (!s.present)
		return nest(n, VECTOR_NP, where);
	*cpl = s.type & TYPE_CONFORMING ? v->cpl : s.dpl;
	if (!s.big || s.base || (*cpl != 0 && *cpl != 3))
		vcpu_kill(v, "vector %u: code segment %x is not flat 32-bit at level 0 or 3",
			  e->vector, g->selector);
	if (g->offset > s.limit)
		return nest(n, VECTOR_GP, ext_bit(e));
	return false;
}

/* Read the stack of level 0 from the task state segment (SDM 3, 7.2.1: esp0 at 4, ss0 at 8).
 * True: failed, with exception *n. */
static bool inner_stack(struct vcpu *v, const struct event *e, uint32_t *esp, uint16_t *ss,
			struct nested *n)
{
	uint32_t stack[2], error;
	int vector;

	if (v->tss_limit < 9)
		return nest(n, VECTOR_TS, (v->tr & ~(uint32_t)SELECTOR_RPL) | ext_bit(e));
	if (vcpu_read(v, v->tss_base + 4, stack, 6, false, &error))
		return nest(n, VECTOR_PF, error);
	*esp = stack[0];
	*ss = (uint16_t)stack[1];
	vector = segment_check_stack(v, *ss, 0, &error);
	if (vector == VECTOR_PF)
		return nest(n, VECTOR_PF, error);
	if (vector >= 0)
		return nest(n, vector == VECTOR_GP ? VECTOR_TS : vector, error | ext_bit(e));
	return false;
}

/* A page fault of the host's, which the guest does not see, sets RF until its instruction is done.
 * A single step may come before that, behind an iteration of a string instruction; processors
 * differ in what they push then. */
static uint32_t frame_eflags(const struct vcpu *v, const struct event *e)
{
	bool restarts = e->kind == EVENT_FAULT && e->vector < ARRAY_LEN(vectors) &&
			vectors[e->vector].restarts;
	uint32_t eflags = v->eflags | EFLAGS_FIXED;

	if (e->vector == VECTOR_DB)
		return eflags & ~(uint32_t)EFLAGS_RF;
	return eflags | (restarts ? EFLAGS_RF : 0);
}

static bool frame_write(struct vcpu *v, const struct event *e, bool outer, uint32_t *esp,
			struct nested *n)
{
	uint32_t frame[6], words = 0, error;

	if (e->has_error)
		frame[words++] = e->error;
	frame[words++] = e->eip;
	frame[words++] = v->seg[SEG_CS];
	frame[words++] = frame_eflags(v, e);
	if (outer) {
		frame[words++] = v->gpr[ESP];
		frame[words++] = v->seg[SEG_SS];
	}
	*esp -= words * 4;
	if (vcpu_write(v, *esp, frame, words * 4, false, &error))
		return nest(n, VECTOR_PF, error);
	return false;
}

/* Try to deliver once.  True: delivery failed with exception *n, and no register has changed. */
static bool attempt(struct vcpu *v, const struct event *e, struct nested *n)
{
	uint32_t esp = v->gpr[ESP];
	uint16_t ss = v->seg[SEG_SS];
	struct gate gate;
	unsigned cpl = 0;
	bool outer;

	if (gate_read(v, e, &gate, n) || handler_cpl(v, e, &gate, &cpl, n))
		return true;
	outer = cpl < v->cpl;
	if (outer && inner_stack(v, e, &esp, &ss, n))
		return true;
	if (v->dead)
		return false;
	if (frame_write(v, e, outer, &esp, n))
		return true;
	v->gpr[ESP] = esp;
	v->seg[SEG_SS] = ss;
	v->seg[SEG_CS] = (uint16_t)((gate.selector & ~SELECTOR_RPL) | cpl);
	v->cpl = (uint8_t)cpl;
	v->eip = gate.offset;
	v->eflags &= ~(uint32_t)(EFLAGS_TF | EFLAGS_NT | EFLAGS_RF | EFLAGS_VM);
	if (gate.type == SYSTEM_INTERRUPT_GATE)
		v->eflags &= ~(uint32_t)EFLAGS_IF;
	return false;
}

/* Set *e to what is delivered next after `n` occurred while delivering `e`.  False: a triple
 * fault, the CPU is dead.  `fault_eip`: EIP of the instruction. */
static bool escalate(struct vcpu *v, struct event *e, const struct nested *n, uint32_t fault_eip)
{
	enum exception_class first = e->kind == EVENT_FAULT
		? exception_class_of(e->vector) : CLASS_BENIGN;

	switch (exception_nesting(first, exception_class_of(n->vector))) {
	case NEST_SERIAL:
		*e = (struct event){ n->vector, vectors[n->vector].has_error, n->error, EVENT_FAULT,
				     fault_eip };
		return true;
	case NEST_DOUBLE:
		*e = (struct event){ VECTOR_DF, true, 0, EVENT_FAULT, fault_eip };
		return true;
	case NEST_TRIPLE:
		break;
	}
	vcpu_kill(v, "triple fault: vector %u during a double fault, eip %x esp %x cr2 %x cr3 %x",
		  n->vector, v->eip, v->gpr[ESP], v->cr2, v->cr3);
	v->dead = VCPU_TRIPLE_FAULT;
	return false;
}

static void deliver(struct vcpu *v, struct event e, uint32_t fault_eip)
{
	struct nested n;

	if (v->dead)
		return;
	v->halted = false;
	v->interrupt_shadow = false;
	do
		v->delivering = e.vector + 1;
	while (attempt(v, &e, &n) && !v->dead && escalate(v, &e, &n, fault_eip));
	v->delivering = 0;
}

void vcpu_exception(struct vcpu *v, unsigned vector, int64_t error)
{
	bool has_error = error >= 0;
	uint32_t code = has_error ? (uint32_t)error : 0;

	deliver(v, (struct event){ vector, has_error, code, EVENT_FAULT, v->eip }, v->eip);
}

void vcpu_software_interrupt(struct vcpu *v, unsigned vector, uint32_t insn_eip)
{
	deliver(v, (struct event){ vector, false, 0, EVENT_SOFTWARE, v->eip }, insn_eip);
}

void exception_external(struct vcpu *v, unsigned vector)
{
	deliver(v, (struct event){ vector, false, 0, EVENT_EXTERNAL, v->eip }, v->eip);
}

void vcpu_beyond_user_limit(struct vcpu *v, gva_t gva, enum vcpu_access access)
{
	struct vcpu_walk walk = { 0 };

	if (!vcpu_walk(v, gva, access, true, &walk))
		walk.error = PF_USER | PF_PRESENT | (access == ACCESS_WRITE ? PF_WRITE : 0);
	v->cr2 = gva;
	vcpu_exception(v, VECTOR_PF, walk.error);
}
