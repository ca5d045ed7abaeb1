/* portio.c - in, out, ins, outs.
 *
 * A repeated string instruction goes in chunks that end at a page's end.  Each chunk walks its
 * page, moves the data and commits ECX and ESI/EDI, so that a page fault or an interrupt between
 * chunks finds the instruction half done and restartable, as on the processor.  An IDE sector by
 * `rep insw` is one or two chunks, hence one or two messages.
 */
#include "vcpu/internal.h"

static uint16_t port_of(const struct insn *i)
{
	return (uint16_t)(i->opcode & 8 ? i->v->gpr[EDX] : i->imm);
}

enum vcpu_result emulate_in(struct insn *i)
{
	unsigned bytes = i->opcode & 1 ? i->operand_bytes : 1;

	register_write(i->v, EAX, bytes, i->v->env->port_in(i->v->env->ctx, port_of(i), bytes));
	return VCPU_DONE;
}

enum vcpu_result emulate_out(struct insn *i)
{
	unsigned bytes = i->opcode & 1 ? i->operand_bytes : 1;

	i->v->env->port_out(i->v->env->ctx, port_of(i), bytes, register_read(i->v, EAX, bytes));
	return VCPU_DONE;
}

struct string { enum vcpu_gpr pointer; enum vcpu_seg segment; unsigned bytes; bool input; };

static bool walk_raises(struct insn *i, gva_t gva, bool write, struct vcpu_walk *walk)
{
	struct vcpu *v = i->v;

	if (!vcpu_walk(v, gva, write ? ACCESS_WRITE : ACCESS_READ, v->cpl == 3, walk))
		return false;
	v->cr2 = gva;
	decode_raise(i, VECTOR_PF, walk->error);
	return true;
}

/* Move `count` elements that lie in one page.  The page is walked first, because data taken from
 * a port cannot be put back.  True: a fault was raised. */
static bool chunk_move(struct insn *i, const struct string *s, gva_t gva, unsigned count)
{
	const struct vcpu_env *env = i->v->env;
	uint16_t port = (uint16_t)i->v->gpr[EDX];
	uint8_t data[PAGE_BYTES];
	struct vcpu_walk walk;

	if (walk_raises(i, gva, s->input, &walk))
		return true;
	if (s->input) {
		env->port_in_string(env->ctx, port, s->bytes, count, data);
		paging_copy_physical(i->v, walk.gpa, data, count * s->bytes, true);
	} else {
		paging_copy_physical(i->v, walk.gpa, data, count * s->bytes, false);
		env->port_out_string(env->ctx, port, s->bytes, count, data);
	}
	return false;
}

/* Move one element that lies across two pages.  True: a fault was raised. */
static bool split_move(struct insn *i, const struct string *s, gva_t gva)
{
	const struct vcpu_env *env = i->v->env;
	uint16_t port = (uint16_t)i->v->gpr[EDX];
	struct vcpu_walk walk;
	uint8_t data[4];

	if (!s->input) {
		if (memory_read(i, gva, data, s->bytes))
			return true;
		env->port_out_string(env->ctx, port, s->bytes, 1, data);
		return false;
	}
	if (walk_raises(i, gva, true, &walk) || walk_raises(i, (gva | PAGE_MASK) + 1, true, &walk))
		return true;
	env->port_in_string(env->ctx, port, s->bytes, 1, data);
	return memory_write(i, gva, data, s->bytes);
}

/* Return how many elements from gva upwards lie in its page; 0: the first one crosses into the
 * next.  Backwards or when single-stepping: at most one. */
static unsigned chunk_count(const struct insn *i, gva_t gva, unsigned bytes, uint32_t left)
{
	uint32_t fit = (PAGE_BYTES - (gva & PAGE_MASK)) / bytes;

	if ((i->v->eflags & EFLAGS_DF) || i->steps)
		left = 1;
	return fit < left ? fit : left;
}

static enum vcpu_result string_io(struct insn *i, const struct string *s)
{
	struct vcpu *v = i->v;
	uint32_t left = i->repeat ? v->gpr[ECX] : 1;
	gva_t gva;

	if (i->address16) {
		vcpu_kill(v, "string I/O with 16-bit addresses at %x", i->start);
		return VCPU_DONE;
	}
	while (left) {
		unsigned count;

		if (segment_linear(i, s->segment, v->gpr[s->pointer], &gva))
			return VCPU_RAISED;
		count = chunk_count(i, gva, s->bytes, left);
		if (count ? chunk_move(i, s, gva, count) : split_move(i, s, gva))
			return VCPU_RAISED;
		count += !count;
		v->gpr[s->pointer] += v->eflags & EFLAGS_DF ? 0 - s->bytes : count * s->bytes;
		left -= count;
		if (!i->repeat)
			break;
		v->gpr[ECX] = left;
		if (left && (i->steps || (vcpu_can_interrupt(v) && vcpu_interrupt_pending(v)))) {
			i->next = i->start; /* the trap or interrupt comes first; then the rest */
			break;
		}
	}
	return VCPU_DONE;
}

enum vcpu_result emulate_ins(struct insn *i)
{
	struct string s = { EDI, SEG_ES, i->opcode & 1 ? i->operand_bytes : 1, true };

	return string_io(i, &s);
}

enum vcpu_result emulate_outs(struct insn *i)
{
	struct string s = { ESI, SEG_DS, i->opcode & 1 ? i->operand_bytes : 1, false };

	if (i->override != NO_SEGMENT_OVERRIDE)
		s.segment = (enum vcpu_seg)i->override;
	return string_io(i, &s);
}
