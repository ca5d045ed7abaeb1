/* system.c - the system's registers and tables: control and debug registers, descriptor tables,
 * MSRs, TSC, CPUID, XCR0, and the queries lar, lsl, verr, verw.
 */
#include "vcpu/internal.h"

/* ---- control registers */

enum {
	CR0_NW = 1 << 29, CR0_CD = 1 << 30,
	CR0_KNOWN = CR0_PE | CR0_MP | CR0_EM | CR0_TS | CR0_ET | CR0_NE | CR0_WP | CR0_AM |
		    CR0_NW | CR0_CD,
	CR4_KNOWN = CR4_TSD | CR4_DE | CR4_PSE | CR4_PAE | CR4_PGE | CR4_OSFXSR |
		    CR4_OSXMMEXCPT | CR4_OSXSAVE,
	CR3_KNOWN = VMP_CR3_SPACE | ~PAGE_MASK,
};

/* Load the top level's four entries, if there are any with these control registers.  False: one has
 * reserved bits, and nothing has changed. (SDM 3, 4.4.1) */
static bool load_top(struct vcpu *v, uint32_t cr0, uint32_t cr4, uint32_t cr3)
{
	uint64_t pdpte[4];

	if (!(cr0 & CR0_PG) || !(cr4 & CR4_PAE))
		return true;
	switch (paging_load_pdptes(v, cr3, pdpte)) {
	case PDPTES_LOADED: break;
	case PDPTES_RESERVED: return false;
	case PDPTES_NO_RAM:
		vcpu_kill(v, "the page tables of cr3 %x are outside RAM", cr3);
		return true;
	}
	__builtin_memcpy(v->pdpte, pdpte, sizeof pdpte);
	return true;
}

static enum vcpu_result write_cr0(struct insn *i, uint32_t value)
{
	struct vcpu *v = i->v;
	uint32_t changed;

	if (((value & CR0_PG) && !(value & CR0_PE)) || ((value & CR0_NW) && !(value & CR0_CD)))
		return decode_raise(i, VECTOR_GP, 0);
	if (!(value & CR0_PE)) {
		vcpu_kill(v, "real mode entered at %x", i->start);
		return VCPU_DONE;
	}
	value = (value & (CR0_KNOWN | CR0_PG)) | CR0_ET;
	changed = v->cr0 ^ value;
	if ((changed & (CR0_PG | CR0_NW | CR0_CD)) && !load_top(v, value, v->cr4, v->cr3))
		return decode_raise(i, VECTOR_GP, 0);
	v->cr0 = value;
	if (changed & (CR0_PG | CR0_WP))
		v->env->flush_all(v->env->ctx);
	return VCPU_DONE;
}

static enum vcpu_result write_cr4(struct insn *i, uint32_t value)
{
	struct vcpu *v = i->v;
	uint32_t changed = v->cr4 ^ value;

	if (value & ~(uint32_t)CR4_KNOWN)
		return decode_raise(i, VECTOR_GP, 0);
	if ((changed & (CR4_PSE | CR4_PAE | CR4_PGE)) && !load_top(v, v->cr0, value, v->cr3))
		return decode_raise(i, VECTOR_GP, 0);
	v->cr4 = value;
	if (changed & (CR4_PSE | CR4_PAE | CR4_PGE))
		v->env->flush_all(v->env->ctx);
	return VCPU_DONE;
}

bool system_write_cr3(struct vcpu *v, uint32_t value)
{
	if (!load_top(v, v->cr0, v->cr4, value))
		return false;
	v->cr3 = value & (uint32_t)CR3_KNOWN;
	v->env->switch_space(v->env->ctx, value & VMP_CR3_KEEP);
	return true;
}

enum vcpu_result emulate_mov_to_control(struct insn *i)
{
	struct vcpu *v = i->v;
	uint32_t value = v->gpr[i->rm];

	switch (i->reg) {
	case 0: return write_cr0(i, value);
	case 2: v->cr2 = value; return VCPU_DONE;
	case 3:
		return system_write_cr3(v, value) ? VCPU_DONE : decode_raise(i, VECTOR_GP, 0);
	case 4: return write_cr4(i, value);
	default: return decode_raise(i, VECTOR_UD, -1);
	}
}

enum vcpu_result emulate_mov_from_control(struct insn *i)
{
	struct vcpu *v = i->v;

	switch (i->reg) {
	case 0: v->gpr[i->rm] = v->cr0; return VCPU_DONE;
	case 2: v->gpr[i->rm] = v->cr2; return VCPU_DONE;
	case 3: v->gpr[i->rm] = v->cr3; return VCPU_DONE;
	case 4: v->gpr[i->rm] = v->cr4; return VCPU_DONE;
	default: return decode_raise(i, VECTOR_UD, -1);
	}
}

enum vcpu_result emulate_clts(struct insn *i)
{
	i->v->cr0 &= ~(uint32_t)CR0_TS;
	return VCPU_DONE;
}

/* Sets PE, MP, EM and TS; it cannot clear PE (SDM 2, LMSW). */
enum vcpu_result emulate_lmsw(struct insn *i)
{
	uint32_t value, low = CR0_PE | CR0_MP | CR0_EM | CR0_TS;

	if (operand_read(i, 2, &value))
		return VCPU_RAISED;
	return write_cr0(i, (i->v->cr0 & ~(low & ~(uint32_t)CR0_PE)) | (value & low));
}

enum vcpu_result emulate_smsw(struct insn *i)
{
	return operand_write(i, i->memory ? 2 : i->operand_bytes, i->v->cr0)
		? VCPU_RAISED : VCPU_DONE;
}

/* ---- debug registers: kept here; the engine decides whether the host gets them */

/* dr4 and dr5 are dr6 and dr7, unless CR4.DE makes them undefined. */
static bool debug_register(struct insn *i, unsigned *number)
{
	*number = i->reg;
	if (i->reg != 4 && i->reg != 5)
		return false;
	*number += 2;
	if (!(i->v->cr4 & CR4_DE))
		return false;
	decode_raise(i, VECTOR_UD, -1);
	return true;
}

enum vcpu_result emulate_mov_from_debug(struct insn *i)
{
	unsigned number;

	if (debug_register(i, &number))
		return VCPU_RAISED;
	i->v->gpr[i->rm] = i->v->dr[number];
	return VCPU_DONE;
}

enum vcpu_result emulate_mov_to_debug(struct insn *i)
{
	uint32_t value = i->v->gpr[i->rm];
	unsigned number;

	if (debug_register(i, &number))
		return VCPU_RAISED;
	if (number == 6)
		value = (value & 0xe00f) | 0xffff0ff0;
	if (number == 7)
		value = (value & 0xffff03ff) | 0x400; /* general detect is not offered */
	i->v->dr[number] = value;
	return VCPU_DONE;
}

/* ---- translations and caches */

enum vcpu_result emulate_invlpg(struct insn *i)
{
	gva_t gva;

	if (operand_linear(i, &gva))
		return VCPU_RAISED;
	i->v->env->flush_range(i->v->env->ctx, gva, 1);
	return VCPU_DONE;
}

/* The host's caches are coherent with everything that the guest can see. */
enum vcpu_result emulate_cache_control(struct insn *i)
{
	(void)i;
	return VCPU_DONE;
}

/* ---- descriptor tables */

/* ModRM's reg field: 0 sgdt, 1 sidt, 2 lgdt, 3 lidt. */
static bool is_interrupt_table(const struct insn *i) { return i->reg & 1; }

enum vcpu_result emulate_store_table(struct insn *i)
{
	const struct vcpu_table *table = is_interrupt_table(i) ? &i->v->idtr : &i->v->gdtr;
	uint8_t image[6];
	gva_t gva;

	__builtin_memcpy(image, &table->limit, 2);
	__builtin_memcpy(image + 2, &table->base, 4);
	return operand_linear(i, &gva) || memory_write(i, gva, image, sizeof image)
		? VCPU_RAISED : VCPU_DONE;
}

enum vcpu_result emulate_load_table(struct insn *i)
{
	struct vcpu_table *table = is_interrupt_table(i) ? &i->v->idtr : &i->v->gdtr;
	uint8_t image[6];
	gva_t gva;

	if (operand_linear(i, &gva) || memory_read(i, gva, image, sizeof image))
		return VCPU_RAISED;
	__builtin_memcpy(&table->limit, image, 2);
	__builtin_memcpy(&table->base, image + 2, 4);
	if (i->operand_bytes == 2)
		table->base &= 0xffffff;
	if (table == &i->v->gdtr)
		segments_announce(i->v, 0, VMP_GDT_ENTRIES);
	return VCPU_DONE;
}

enum vcpu_result emulate_sldt(struct insn *i)
{
	return operand_write(i, i->memory ? 2 : i->operand_bytes, i->v->ldtr)
		? VCPU_RAISED : VCPU_DONE;
}

enum vcpu_result emulate_str(struct insn *i)
{
	return operand_write(i, i->memory ? 2 : i->operand_bytes, i->v->tr)
		? VCPU_RAISED : VCPU_DONE;
}

/* Look up the system segment that lldt or ltr selects.  False: a fault was raised. */
static bool system_segment(struct insn *i, uint16_t selector, unsigned type, struct descriptor *raw,
			   struct vcpu_segment *s)
{
	uint32_t error, where = selector & ~(uint32_t)SELECTOR_RPL;

	switch (segment_read(i->v, selector, raw, s, &error)) {
	case 0: break;
	case ERR_FAULT: decode_raise(i, VECTOR_PF, error); return false;
	default: decode_raise(i, VECTOR_GP, where); return false;
	}
	if (!s->system || s->type != type) {
		decode_raise(i, VECTOR_GP, where);
		return false;
	}
	if (!s->present)
		decode_raise(i, VECTOR_NP, where);
	return s->present;
}

enum vcpu_result emulate_lldt(struct insn *i)
{
	struct vcpu_segment s;
	struct descriptor raw;
	uint32_t selector;

	if (operand_read(i, 2, &selector))
		return VCPU_RAISED;
	if (!selector_is_null((uint16_t)selector) &&
	    !system_segment(i, (uint16_t)selector, SYSTEM_LDT, &raw, &s))
		return VCPU_RAISED;
	i->v->ldtr = (uint16_t)selector;
	return VCPU_DONE;
}

enum vcpu_result emulate_ltr(struct insn *i)
{
	struct vcpu *v = i->v;
	struct vcpu_segment s;
	struct descriptor raw;
	uint32_t selector, error;

	if (operand_read(i, 2, &selector))
		return VCPU_RAISED;
	if (selector_is_null((uint16_t)selector))
		return decode_raise(i, VECTOR_GP, 0);
	if (!system_segment(i, (uint16_t)selector, SYSTEM_TSS, &raw, &s))
		return VCPU_RAISED;
	raw.high |= 1 << 9; /* busy */
	if (vcpu_write(v, v->gdtr.base + (selector & 0xfff8) + 4, &raw.high, 4, false, &error))
		return decode_raise(i, VECTOR_PF, error);
	v->tr = (uint16_t)selector;
	v->tss_base = s.base;
	v->tss_limit = s.limit;
	return VCPU_DONE;
}

/* ---- queries about descriptors: the result is ZF */

/* Read the descriptor; true if this CPL may see it.  At CPL 0 all RPLs are 3 (guest_abi.h), so
 * they are not compared. */
static bool question_sees(struct insn *i, struct descriptor *raw, struct vcpu_segment *s,
			  bool *raised)
{
	struct vcpu *v = i->v;
	uint32_t selector, error, cr2 = v->cr2;

	*raised = operand_read(i, 2, &selector);
	if (*raised || selector_is_null((uint16_t)selector))
		return false;
	switch (segment_read(v, (uint16_t)selector, raw, s, &error)) {
	case 0: break;
	case ERR_FAULT:
		*raised = true;
		decode_raise(i, VECTOR_PF, error);
		return false;
	default:
		v->cr2 = cr2;
		return false;
	}
	return v->cpl <= s->dpl || (!s->system && (s->type & (TYPE_CODE | TYPE_CONFORMING)) ==
							  (TYPE_CODE | TYPE_CONFORMING));
}

static enum vcpu_result answer(struct insn *i, bool yes)
{
	i->v->eflags = (i->v->eflags & ~(uint32_t)EFLAGS_ZF) | (yes ? EFLAGS_ZF : 0);
	return VCPU_DONE;
}

/* Which system types lar and lsl know (SDM 2, tables 3-53 and 3-57), a bit per type. */
enum {
	LAR_TYPES = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 9 | 1 << 11 | 1 << 12,
	LSL_TYPES = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 9 | 1 << 11,
};

static enum vcpu_result question(struct insn *i, unsigned system_types, bool limit)
{
	struct vcpu_segment s;
	struct descriptor raw;
	bool raised, yes = question_sees(i, &raw, &s, &raised);

	if (raised)
		return VCPU_RAISED;
	if (yes && s.system)
		yes = system_types >> s.type & 1;
	if (yes)
		register_write(i->v, i->reg, i->operand_bytes,
			       limit ? s.limit : raw.high & 0x00f0ff00);
	return answer(i, yes);
}

enum vcpu_result emulate_lar(struct insn *i) { return question(i, LAR_TYPES, false); }
enum vcpu_result emulate_lsl(struct insn *i) { return question(i, LSL_TYPES, true); }

enum vcpu_result emulate_verify(struct insn *i)
{
	struct vcpu_segment s;
	struct descriptor raw;
	bool raised, yes = question_sees(i, &raw, &s, &raised);

	if (raised)
		return VCPU_RAISED;
	if (yes && s.system)
		yes = false;
	else if (yes && i->reg == 4) /* verr: data is always readable */
		yes = !(s.type & TYPE_CODE) || (s.type & TYPE_READABLE);
	else if (yes)
		yes = !(s.type & TYPE_CODE) && (s.type & TYPE_WRITABLE);
	return answer(i, yes);
}

/* ---- MSRs, counters, CPUID, XCR0 */

static void set_edx_eax(struct vcpu *v, uint64_t value)
{
	v->gpr[EAX] = (uint32_t)value;
	v->gpr[EDX] = (uint32_t)(value >> 32);
}

static uint64_t edx_eax(const struct vcpu *v) { return (uint64_t)v->gpr[EDX] << 32 | v->gpr[EAX]; }

enum vcpu_result emulate_rdmsr(struct insn *i)
{
	uint64_t value;

	if (!msr_read(i->v, i->v->gpr[ECX], &value))
		return decode_raise(i, VECTOR_GP, 0);
	set_edx_eax(i->v, value);
	return VCPU_DONE;
}

enum vcpu_result emulate_wrmsr(struct insn *i)
{
	return msr_write(i->v, i->v->gpr[ECX], edx_eax(i->v))
		? VCPU_DONE : decode_raise(i, VECTOR_GP, 0);
}

enum vcpu_result emulate_rdtsc(struct insn *i)
{
	struct vcpu *v = i->v;

	if (v->cpl && (v->cr4 & CR4_TSD))
		return decode_raise(i, VECTOR_GP, 0);
	set_edx_eax(v, v->env->tsc(v->env->ctx));
	return VCPU_DONE;
}

/* Hidden from the kernel, but user programs that see the host's CPUID may use it where the host
 * traps it. */
enum vcpu_result emulate_rdtscp(struct insn *i)
{
	enum vcpu_result result = emulate_rdtsc(i);

	if (result == VCPU_DONE)
		i->v->gpr[ECX] = i->v->number;
	return result;
}

enum vcpu_result emulate_rdpmc(struct insn *i)
{
	return decode_raise(i, VECTOR_GP, 0); /* no counters */
}

enum vcpu_result emulate_cpuid(struct insn *i)
{
	struct vcpu *v = i->v;
	uint32_t out[4];

	vcpu_cpuid(v, v->gpr[EAX], v->gpr[ECX], out);
	v->gpr[EAX] = out[0];
	v->gpr[EBX] = out[1];
	v->gpr[ECX] = out[2];
	v->gpr[EDX] = out[3];
	return VCPU_DONE;
}

enum vcpu_result emulate_xgetbv(struct insn *i)
{
	struct vcpu *v = i->v;

	if (!(v->cr4 & CR4_OSXSAVE))
		return decode_raise(i, VECTOR_UD, -1);
	if (v->gpr[ECX] != 0)
		return decode_raise(i, VECTOR_GP, 0);
	set_edx_eax(v, v->xcr0);
	return VCPU_DONE;
}

/* SDM 2, XSETBV: x87 always, AVX needs SSE, the three parts of AVX-512 go together and need AVX. */
static bool xcr0_valid(const struct vcpu *v, uint64_t value)
{
	enum { X87 = 1, SSE = 2, AVX = 4, AVX512 = 0xe0 };

	if ((value & ~cpuid_xcr0_allowed(v)) || !(value & X87))
		return false;
	if ((value & AVX) && !(value & SSE))
		return false;
	return !(value & AVX512) || ((value & AVX512) == AVX512 && (value & AVX));
}

enum vcpu_result emulate_xsetbv(struct insn *i)
{
	struct vcpu *v = i->v;

	if (!(v->cr4 & CR4_OSXSAVE))
		return decode_raise(i, VECTOR_UD, -1);
	if (v->cpl || v->gpr[ECX] != 0 || !xcr0_valid(v, edx_eax(v)))
		return decode_raise(i, VECTOR_GP, 0);
	v->xcr0 = edx_eax(v);
	return VCPU_DONE;
}
