/* dump.c - a virtual CPU for human eyes: `vmp regs`, and the log when one dies. Changes nothing. */
#include "vcpu/internal.h"

static void dump_walk(struct vcpu *v, struct text *t, const char *name, gva_t gva)
{
	struct vcpu_walk walk;
	bool used;

	text_add(t, "%s %08x -> ", name, gva);
	if (!(v->cr0 & CR0_PG))
		text_add(t, "%08x (paging off)\n", gva);
	else if (vcpu_peek(v, gva, &walk, &used))
		text_add(t, "not present (cr3 %08x)\n", v->cr3);
	else
		text_add(t, "%08lx%s%s%s%s%s\n", walk.gpa, walk.user ? " user" : " kernel",
			 walk.writable ? " writable" : "", walk.global ? " global" : "",
			 walk.large ? " large" : "", used ? "" : " untouched");
}

static void dump_code(struct vcpu *v, struct text *t)
{
	uint32_t left = PAGE_BYTES - (v->eip & PAGE_MASK), bytes = left < 16 ? left : 16;
	struct vcpu_walk walk;
	uint8_t code[16];
	uint8_t *page;
	bool used;

	if (vcpu_peek(v, v->eip, &walk, &used))
		return;
	page = v->env->pin(v->env->ctx, walk.gpa, false);
	if (!page)
		return;
	copy_bytes(code, page + (walk.gpa & PAGE_MASK), bytes);
	v->env->unpin(v->env->ctx, walk.gpa);
	text_add(t, "code");
	for (uint32_t n = 0; n < bytes; n++)
		text_add(t, " %02x", code[n]);
	text_add(t, "\n");
}

static bool peek_word(struct vcpu *v, gva_t gva, uint32_t *word)
{
	struct vcpu_walk walk;
	uint8_t *page;
	bool used;

	if (vcpu_peek(v, gva, &walk, &used))
		return false;
	page = v->env->pin(v->env->ctx, walk.gpa, false);
	if (!page)
		return false;
	copy_bytes(word, page + (walk.gpa & PAGE_MASK), sizeof *word);
	v->env->unpin(v->env->ctx, walk.gpa);
	return true;
}

/* Print the kernel's words from ESP upwards.  If the stack has overflowed into an unmapped page,
 * print the words above that page. */
static void dump_stack(struct vcpu *v, struct text *t)
{
	enum { WORDS = 96, PER_LINE = 8 };
	gva_t at = v->gpr[ESP] & ~3u;
	uint32_t word;

	if (!peek_word(v, at, &word))
		at = (at | PAGE_MASK) + 1;
	for (unsigned n = 0; v->cpl == 0 && n < WORDS && peek_word(v, at + n * 4, &word); n++)
		text_add(t, "%s%08x%s", n % PER_LINE ? " " : "stack ", word,
			 n % PER_LINE == PER_LINE - 1 ? "\n" : "");
	text_add(t, "\n");
}

static void dump_flags(const struct vcpu *v, struct text *t)
{
	static const struct { uint32_t bit; const char *name; } names[] = {
		{ EFLAGS_CF, " CF" }, { EFLAGS_PF, " PF" }, { EFLAGS_AF, " AF" },
		{ EFLAGS_ZF, " ZF" }, { EFLAGS_SF, " SF" },
		{ EFLAGS_TF, " TF" }, { EFLAGS_IF, " IF" }, { EFLAGS_DF, " DF" },
		{ EFLAGS_OF, " OF" }, { EFLAGS_NT, " NT" },
		{ EFLAGS_RF, " RF" }, { EFLAGS_AC, " AC" }, { EFLAGS_ID, " ID" },
	};

	text_add(t, "eip %08x eflags %08x", v->eip, v->eflags);
	for (unsigned n = 0; n < ARRAY_LEN(names); n++)
		if (v->eflags & names[n].bit)
			text_add(t, "%s", names[n].name);
	text_add(t, "\n");
}

static void dump_vectors(struct text *t, const char *name, const uint32_t map[8])
{
	text_add(t, " %s", name);
	for (unsigned vector = 0; vector < 256; vector++)
		if (map[vector / 32] >> vector % 32 & 1)
			text_add(t, " %02x", vector);
}

static void dump_apic(const struct apic *a, struct text *t)
{
	text_add(t, "apic spiv %x tpr %x timer %x initial %x", a->spiv, a->tpr, a->lvt_timer,
		 a->timer_initial);
	dump_vectors(t, "irr", a->irr);
	dump_vectors(t, "isr", a->isr);
	text_add(t, "\n");
}

unsigned vcpu_dump(struct vcpu *v, char *text, unsigned room)
{
	static const char *const state[] = { "", " TRIPLE FAULT", " KILLED" };
	struct text t = { text, room, 0 };

	text_add(&t, "cpu %u level %u%s%s%s%s%s\n", v->number, v->cpl, v->halted ? " halted" : "",
		 v->interrupt_shadow ? " shadow" : "", v->nmi_pending ? " nmi-pending" : "",
		 v->nmi_blocked ? " nmi-blocked" : "", state[v->dead]);
	if (v->dead)
		text_add(&t, "reason: %s\n", v->dead_reason);
	text_add(&t, "eax %08x ebx %08x ecx %08x edx %08x\n", v->gpr[EAX], v->gpr[EBX], v->gpr[ECX],
		 v->gpr[EDX]);
	text_add(&t, "esi %08x edi %08x ebp %08x esp %08x\n", v->gpr[ESI], v->gpr[EDI], v->gpr[EBP],
		 v->gpr[ESP]);
	dump_flags(v, &t);
	text_add(&t, "cs %04x ss %04x ds %04x es %04x fs %04x gs %04x\n", v->seg[SEG_CS],
		 v->seg[SEG_SS], v->seg[SEG_DS], v->seg[SEG_ES], v->seg[SEG_FS], v->seg[SEG_GS]);
	text_add(&t, "cr0 %08x cr2 %08x cr3 %08x cr4 %08x xcr0 %x\n", v->cr0, v->cr2, v->cr3,
		 v->cr4, (uint32_t)v->xcr0);
	text_add(&t, "gdt %08x/%04x idt %08x/%04x tr %04x at %08x/%x ldt %04x\n", v->gdtr.base,
		 v->gdtr.limit, v->idtr.base, v->idtr.limit, v->tr, v->tss_base, v->tss_limit,
		 v->ldtr);
	dump_apic(&v->apic, &t);
	dump_walk(v, &t, "eip", v->eip);
	dump_walk(v, &t, "esp", v->gpr[ESP]);
	dump_code(v, &t);
	dump_stack(v, &t);
	return t.used;
}
