/* trap.c - handles every entry into the kernel: records it as an event of the sequence, and
 * continues the sequence.
 *
 * After a fault the sequence continues with the next slot, after all other events where it was.
 */
#include "tests/diff/diff.h"

enum { EVENTS_MAX = 80 };
enum {
	VECTOR_DE = 0,
	VECTOR_DB = 1,
	VECTOR_NMI = 2,
	VECTOR_BP = 3,
	VECTOR_OF = 4,
	VECTOR_PF = 14,
	VECTOR_LAST_EXCEPTION = 31
};

bool draining;
uint8_t final_fxsave[512] __attribute__((aligned(16)));
static struct frame final;
static uint32_t final_esp;
static unsigned events;
static int timers; /* how many times the timer may still be set again */
static int nmis;   /* how many NMIs a handler may still send */

void traps_begin(void)
{
	events = 0;
	timers = 4;
	nmis = 2;
	/* vmp's kernel keeps AC and ID where the window does not reach */
	return_by_window = sequence.user && sequence.number & 1;
}

/* Return the recorded form of a selector.  A null selector may or may not keep its RPL, and the
 * kernel's own selectors differ between the builds. */
static uint32_t shown_selector(uint32_t selector)
{
	selector &= 0xffff;
	if (selector < 4)
		return 0;
	return selector >> 3 == VMP_GDT_KERNEL_DS ? VMP_SEL_KERNEL_DS : selector;
}

static uint32_t shown_eip(uint32_t eip)
{
	uint32_t at = eip - sequence.base;

	return at < sequence.bytes ? sequence.base + sequence.canonical[at] : eip;
}

/* Whether it may have come in the middle of a rep cmps or rep scas. */
static bool at_repeated_compare(const struct frame *f)
{
	uint32_t at = f->eip - sequence.base;

	if (at >= sequence.bytes || (sequence.code[at] & 0xfe) != 0xf2)
		return false;
	at += 1 + (sequence.code[at + 1] == 0x66);
	return (sequence.code[at] & 0xf6) == 0xa6;
}

static void record_registers(const struct frame *f, uint32_t esp)
{
	uint32_t flags_same = ~(uint32_t)EFLAGS_RF;

	if (f->vector == VECTOR_DE || at_repeated_compare(f))
		flags_same &= ~(uint32_t)EFLAGS_STATUS;
	record("eax", f->eax, ~0u), record("ecx", f->ecx, ~0u), record("edx", f->edx, ~0u),
		record("ebx", f->ebx, ~0u);
	record("esi", f->esi, ~0u), record("edi", f->edi, ~0u), record("ebp", f->ebp, ~0u);
	record("esp", esp, ~0u);
	record("eip", shown_eip(f->eip), ~0u);
	record("eflags", f->eflags, flags_same);
	record("cs", f->cs & 0xffff, ~0u);
	if (from_user(f))
		record("ss", f->ss & 0xffff, ~0u);
	record("ds", shown_selector(f->ds), ~0u), record("es", shown_selector(f->es), ~0u);
	record("fs", shown_selector(f->fs), ~0u), record("gs", shown_selector(f->gs), ~0u);
}

static void __attribute__((noreturn)) finish(const struct frame *f)
{
	/* with interrupts disabled, and before anything else uses the stack below */
	final = *f;
	final_esp = from_user(f) ? f->esp : (uint32_t)&f->esp;
	__asm__ volatile("fxsave %0" : "=m"(final_fxsave));
	end_sequence();
}

void record_final(void)
{
	record_heading("the end", final.vector);
	record_registers(&final, final_esp);
}

static void record_event(const struct frame *f, uint32_t dr6)
{
	uint32_t cr2;

	record_heading("vector", f->vector);
	record("error", f->error, ~0u);
	record_registers(f, from_user(f) ? f->esp : (uint32_t)&f->esp);
	if (f->vector == VECTOR_PF) {
		__asm__ volatile("mov %%cr2, %0" : "=r"(cr2));
		record("cr2", cr2, ~0u);
	}
	if (f->vector == VECTOR_DB)
		record("dr6", dr6, ~0xfu); /* breakpoints that are off may show there */
}

static bool goes_on_behind(const struct frame *f)
{
	return f->vector != VECTOR_DB && f->vector != VECTOR_NMI && f->vector != VECTOR_BP &&
	       f->vector != VECTOR_OF && f->vector <= VECTOR_LAST_EXCEPTION;
}

/* Uses no random_word(): the moment of the interrupt differs between machines. */
static void timer_again(void)
{
	if (timers-- > 0)
		apic_timer(2000 + timers % 7 * 1100);
}

/* Read DR6 and reset it: steps over padding set bits there too. */
static uint32_t take_debug_status(const struct frame *f)
{
	uint32_t dr6 = 0;

	if (f->vector == VECTOR_DB)
		__asm__ volatile("mov %%dr6, %0; mov %1, %%dr6" : "=&r"(dr6) : "r"(0xffff0ff0));
	return dr6;
}

void trap(struct frame *f)
{
	uint32_t dr6;
	int slot;

	__asm__ volatile("cli" ::: "memory"); /* a trap gate leaves them on */
	if (f->vector == VECTOR_TIMER || f->vector == VECTOR_IPI || draining)
		apic_end();
	if (f->vector == VECTOR_TIMER && !draining)
		timer_again();
	if (f->vector == VECTOR_TIMER || draining)
		return;
	dr6 = take_debug_status(f);
	slot = sequence_slot(shown_eip(f->eip));
	if (f->vector == VECTOR_DB && slot >= 0 && sequence.step_hidden[f->eip - sequence.base])
		return;
	/* behind a trap gate; by which instruction of the handler is not said */
	if ((f->vector == VECTOR_IPI || f->vector == VECTOR_NMI) && slot < 0) {
		record("interrupt in a handler", f->vector, ~0u);
		return;
	}
	if (f->vector != VECTOR_END)
		record_event(f, dr6);
	if (at_repeated_compare(f))
		f->eflags &= ~(uint32_t)EFLAGS_STATUS;
	if (f->vector == VECTOR_END || slot < 0 || events++ > EVENTS_MAX)
		finish(f);
	return_by_window = events & 1;
	if (f->vector == VECTOR_SYSCALL && from_user(f) && f->eax & 1)
		apic_post_self(VECTOR_IPI); /* it comes when user code goes on */
	if (f->vector == VECTOR_NMI && nmis-- > 0)
		apic_post_nmi(); /* blocked until this handler returns */
	if (f->vector == VECTOR_DB && sequence.stepped)
		apic_post_self(VECTOR_IPI);
	if (f->vector == VECTOR_SPACE)
		spaces_switch(f->eax);
	if (sequence.slot[slot].sleeps)
		/* a single step would let the interrupt in before the hlt */
		f->eflags &= ~(uint32_t)EFLAGS_TF;
	if (goes_on_behind(f) && slot < (int)sequence.slots)
		f->eip = sequence.base + sequence.slot[slot].at + sequence.slot[slot].bytes;
}
