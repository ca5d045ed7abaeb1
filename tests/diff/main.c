/* main.c - runs sequences and prints a line for each: number, mode, the digest on which all
 * machines must agree, and the digest on which both engines must agree.
 *
 * Command line: seed=S first=N count=N, and
 *   verbose=1 print all that is recorded of each subsets=1 run each with every choice of slots left
 *   out; the line's number is that choice, a
 *                  bit for each slot
 *   drop=MASK      leave out these slots
 *   without=MASK   do not run these flavours; a line is still printed for each sequence
 *   flush=1        write each line at once, so that the last one is known if the machine dies
 */
#include "tests/diff/diff.h"

static struct {
	uint32_t seed, first, count, verbose, subsets, drop, without, flush;
} wanted = { 1, 0, 10, 0, 0, 0, 0, 0 };

static const char *const flavours[] = { "kernel", "kernel-strict", "user", "user-strict",
					"user-flags" };

void *memcpy(void *to, const void *from, unsigned bytes)
{
	void *start = to;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
	return start;
}
void *memset(void *to, int value, unsigned bytes)
{
	void *start = to;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
	return start;
}

/* ---- command line */

static const char *command_line(const uint32_t *multiboot)
{
#ifdef DIFF_VMP
	(void)multiboot;
	return physical(VMP_CMDLINE_GPA);
#else
	return physical(((const uint32_t *)physical((uint32_t)multiboot))[4]);
#endif
}

static bool parse_name(const char **at, const char *name)
{
	const char *p = *at;

	while (*name)
		if (*p++ != *name++)
			return false;
	*at = p;
	return true;
}

static void parse(const char *at)
{
	static const struct { const char *name; uint32_t *value;
	} names[] = {
		{ "seed=", &wanted.seed },       { "first=", &wanted.first },
		{ "count=", &wanted.count },     { "verbose=", &wanted.verbose },
		{ "subsets=", &wanted.subsets }, { "drop=", &wanted.drop },
		{ "without=", &wanted.without }, { "flush=", &wanted.flush },
	};

	while (*at) {
		for (unsigned i = 0; i < ARRAY_LEN(names); i++)
			if (parse_name(&at, names[i].name))
				for (*names[i].value = 0; *at >= '0' && *at <= '9'; at++)
					*names[i].value =
						*names[i].value * 10 + (uint32_t)(*at - '0');
		while (*at && *at != ' ')
			at++;
		while (*at == ' ')
			at++;
	}
}

/* ---- one sequence */

static uint32_t start_flags(void)
{
	uint32_t may = EFLAGS_STATUS | EFLAGS_DF | EFLAGS_AC | EFLAGS_ID | EFLAGS_NT |
		       (random_chance(10) ? EFLAGS_TF : 0);
	uint32_t must = EFLAGS_FIXED | (sequence.stepped ? EFLAGS_TF : 0);

	return (random_word() & may & allowed_flags()) | must |
	       (sequence.user || random_chance(50) ? EFLAGS_IF : 0);
}

enum { KERNEL_STACK_ROOM = 128 }; /* bytes above, for what it pops */

/* Return the state in which a sequence starts.  run_sequence() loads it from the end of the stack
 * that the sequence uses. */
static struct frame *start_state(void)
{
	static struct frame user_frame;
	struct frame *f = &user_frame;

	if (!sequence.user) { /* the words above EFLAGS are the sequence's stack */
		f = (struct frame *)(DIRECT + PHYS_STACK_TOP - KERNEL_STACK_ROOM -
				     __builtin_offsetof(struct frame, esp));
		memset(&f->esp, 0, KERNEL_STACK_ROOM);
	}
	f->eax = random_word(), f->ecx = random_below(40), f->edx = random_word();
	f->ebx = random_pointer(), f->esi = random_pointer(), f->edi = random_pointer(),
	f->ebp = random_pointer();
	f->ds = f->es = sequence.user ? SEL_USER_DS : SEL_KERNEL_DS;
	f->fs = f->gs = 0;
	f->eip = sequence.base;
	f->cs = sequence.user ? SEL_USER_CS : SEL_KERNEL_CS;
	f->eflags = start_flags();
	if (sequence.user) {
		f->esp = USER_AREA + AREA_STACK * 4096 +
			 (random_chance(20) ? random_below(32) : 2048);
		f->ss = SEL_USER_DS;
	}
	return f;
}

static void take_leftover_interrupts(void)
{
	apic_timer(0);
	draining = true;
	__asm__ volatile("sti; nop; nop; cli" ::: "memory");
	draining = false;
}

static void listing(void)
{
	text("sequence %u, seed %u, %s%s\n", sequence.number, wanted.seed,
	     flavours[sequence.flavour],
	     sequence.stepped ? ", stepped"
	     : sequence.timer ? ", timer"
			      : "");
	for (unsigned n = 0; n <= sequence.slots; n++) {
		const struct slot *s = &sequence.slot[n];

		text("slot %u %s at %8x:", n, s->name, sequence.base + s->at);
		for (unsigned i = 0; i < s->bytes; i++)
			text(" %2x", sequence.code[s->at + i]);
		text("\n");
	}
}

/* A processor may fetch code that it does not execute, so the accessed bit of code pages is
 * masked. */
static uint32_t shown_entry(uint32_t area, unsigned page)
{
	uint32_t entry = *area_entry(area, page);

	return page == AREA_CODE || page == AREA_CODE + 1 ? entry & ~(uint32_t)ENTRY_ACCESSED
							  : entry;
}

static void record_memories(void)
{
	for (unsigned page = 0; page < AREA_PAGES; page++) {
		record("user page", shown_entry(USER_AREA, page), ~0u);
		record("kernel page", shown_entry(KERNEL_AREA, page), ~0u);
	}
	for (unsigned frame = FRAME_FIRST; frame < FRAMES; frame++)
		for (unsigned quarter = 0; quarter < 4; quarter++)
			record_memory("memory", frame_words(frame) + quarter * 256, 256);
	spaces_record();
}

static void print_line(uint32_t name)
{
	text("%u %s %8x %8x\n", name, flavours[sequence.flavour], record_same, record_exact);
	if (wanted.flush)
		text_flush();
}

static void run_one(uint32_t number, uint32_t dropped)
{
	struct frame *f;

	random_seed(wanted.seed, number);
	sequence.number = number;
	sequence_generate(dropped);
	spaces_reset();
	areas_reset();
	record_begin(wanted.verbose);
	if (wanted.verbose)
		listing();
	traps_begin();
	if (wanted.without >> sequence.flavour & 1)
		return;
	machine_reset();
	f = start_state();
	if (sequence.timer)
		apic_timer(random_below(15000) + 1);
	run_sequence(f, sequence.fxsave_image);
	take_leftover_interrupts();
	record_final();
	fpu_record(final_fxsave);
	record_memories();
}

static void run_subsets(uint32_t number)
{
	run_one(number, 0);
	for (uint32_t dropped = 0; dropped < 1u << sequence.slots; dropped++) {
		run_one(number, dropped);
		print_line(dropped);
	}
}

void kernel_main(const uint32_t *multiboot)
{
	machine_init();
	parse(command_line(multiboot));
	for (uint32_t n = wanted.first; n < wanted.first + wanted.count; n++) {
		if (wanted.subsets) {
			run_subsets(n);
			continue;
		}
		run_one(n, wanted.drop);
		print_line(n);
	}
	text("done\n");
	machine_end();
}
