/* machine.c - the machine on which sequences run: descriptors, page tables, the local APIC, output,
 * and the machine's end. */
#include "tests/diff/diff.h"

enum { P = 1, W = 2, U = 4, CACHE_DISABLE = 0x10, A = 0x20, D = 0x40 };

/* ---- descriptors */

struct table_register { uint16_t limit; uint32_t base; } __attribute__((packed));

static void set_descriptor(unsigned index, uint32_t base, uint32_t limit, uint8_t access,
			   bool pages, bool big)
{
	uint32_t *entry = physical(PHYS_GDT + index * 8);

	entry[0] = base << 16 | (limit & 0xffff);
	entry[1] = (base & 0xff000000) | (pages ? 0x800000 : 0) | (big ? 0x400000 : 0) |
		   (limit & 0xf0000) | (uint32_t)access << 8 | (base >> 16 & 0xff);
}

/* All descriptors have the accessed bit set, since vmp does not set it.  Those that the kernel
 * loads with RPL 3 are of level 3.  On a plain machine the LDT is the GDT, as on vmp. */
static void descriptors_init(void)
{
	enum {
		CODE0 = 0x9b,
		DATA0 = 0x93,
		CODE3 = 0xfb,
		DATA3 = 0xf3,
		DATA3_READ = 0xf1,
		DATA3_DOWN = 0xf7
	};
	static const struct {
		uint8_t index, access;
		bool pages, big;
		uint32_t base, limit;
	} table[] = {
		{ VMP_GDT_BOOT_CS, CODE0, true, true, 0, 0xfffff },
		{ VMP_GDT_BOOT_DS, DATA0, true, true, 0, 0xfffff },
		{ 5, DATA3 & 0x7f, true, true, 0, 0xfffff }, /* not present */
		{ 6, DATA3, false, true, USER_AREA, AREA_READ_ONLY * 4096 + 99 },
		{ 7, DATA3_READ, true, true, 0, 0xfffff },
		{ 8, CODE3 & 0x7f, true, true, 0, 0xfffff },
		{ 9, 0xec, false, false, 0, 0 }, /* a call gate that nobody calls */
		{ VMP_GDT_TLS_MIN, DATA3, true, true, USER_AREA + AREA_DATA * 4096 + 64, 0xfffff },
		{ VMP_GDT_TLS_MIN + 2, DATA3_READ, true, true, 0, 0xfffff },
		{ VMP_GDT_KERNEL_CS, CODE0, true, true, 0, 0xfffff },
		{ VMP_GDT_KERNEL_DS, DATA0, true, true, 0, 0xfffff },
		{ VMP_GDT_USER_CS, CODE3, true, true, 0, 0xfffff },
		{ VMP_GDT_USER_DS, DATA3, true, true, 0, 0xfffff },
		{ VMP_GDT_PERCPU, DATA3, true, true, KERNEL_AREA + AREA_DATA * 4096 + 16, 0xfffff },
		{ VMP_GDT_ESPFIX, DATA3_DOWN, false, true, USER_AREA, AREA_DATA * 4096 },
		{ VMP_GDT_TSS, 0x89, false, false, DIRECT + PHYS_TSS, 0x67 },
		{ VMP_GDT_LDT, 0x82, false, false, DIRECT + PHYS_GDT, VMP_GDT_ENTRIES * 8 - 1 },
	};
	uint32_t *tss = physical(PHYS_TSS);

	for (unsigned i = 0; i < ARRAY_LEN(table); i++)
		set_descriptor(table[i].index, table[i].base, table[i].limit, table[i].access,
			       table[i].pages, table[i].big);
	tss[1] = DIRECT + PHYS_STACK_TOP;
	tss[2] = SEL_KERNEL_DS;
	tss[25] = 0x68 << 16; /* no I/O permission map */
}

static void set_gate(unsigned vector, uint8_t access)
{
	uint32_t *gate = physical(PHYS_IDT + vector * 8), at = (uint32_t)vectors + vector * 16;

	gate[0] = SEL_KERNEL_CS << 16 | (at & 0xffff);
	gate[1] = (at & 0xffff0000) | (uint32_t)access << 8;
}

static void gates_init(void)
{
	enum { INTERRUPT = 0x8e, TRAP = 0x8f, FOR_USER = 0x60 };
	static const uint8_t user[] = { 3, 4, VECTOR_END, VECTOR_PLAIN, VECTOR_SYSCALL };

	for (unsigned vector = 0; vector < 256; vector++)
		set_gate(vector, INTERRUPT);
	for (unsigned i = 0; i < ARRAY_LEN(user); i++)
		set_gate(user[i], INTERRUPT | FOR_USER);
	set_gate(VECTOR_TRAP, TRAP | FOR_USER);
	set_gate(VECTOR_SPACE, TRAP | FOR_USER);
}

/* ---- pages */

static const struct { uint8_t page, frame, flags;
} layout[] = {
	{ AREA_CODE, FRAME_CODE, P }, { AREA_CODE + 1, FRAME_CODE + 1, P },
	{ AREA_DATA, 2, P | W },      { AREA_DATA + 1, 3, P | W },
	{ AREA_READ_ONLY, 4, P },     { AREA_DATA2, 5, P | W },
	{ AREA_STACK, 6, P | W },     { AREA_ALIAS, 2, P | W },
};

uint32_t *area_entry(uint32_t area, unsigned page)
{
	return (uint32_t *)physical(area == USER_AREA ? PHYS_PT_USER : PHYS_PT_KERNEL) + page;
}

static void invalidate(uint32_t linear)
{
	__asm__ volatile("invlpg (%0)" : : "r"(linear) : "memory");
}

static void area_map(uint32_t area, uint32_t more)
{
	for (unsigned page = 0; page < AREA_PAGES; page++)
		/* in use once P is set */
		*area_entry(area, page) = (PHYS_FRAMES + FRAME_FIRST * 4096) | W | more;
	for (unsigned i = 0; i < ARRAY_LEN(layout); i++)
		*area_entry(area, layout[i].page) =
			(PHYS_FRAMES + layout[i].frame * 4096) | layout[i].flags | more;
	for (unsigned page = 0; page < AREA_PAGES; page++)
		invalidate(area + page * 4096);
}

void areas_reset(void)
{
	area_map(USER_AREA, U);
	area_map(KERNEL_AREA, 0);
	for (unsigned frame = FRAME_FIRST; frame < FRAMES; frame++)
		for (uint32_t *word = frame_words(frame), i = 0; i < 1024; i++)
			word[i] = (frame << 16 | i) * 0x9e3779b1;
}

static void pages_init(void)
{
	uint32_t *directory = physical(PHYS_PAGE_DIR);

	directory[USER_AREA >> 22] = PHYS_PT_USER | P | W | U | A;
	directory[KERNEL_AREA >> 22] = PHYS_PT_KERNEL | P | W | U | A;
	directory[APIC_AREA >> 22] = PHYS_PT_APIC | P | W | A;
	*(uint32_t *)physical(PHYS_PT_APIC) = VMP_LAPIC_GPA | P | W | A | D | CACHE_DISABLE;
	directory[0] = 0;
}

/* ---- the local APIC */

enum {
	APIC_EOI = 0xb0,
	APIC_SPIV = 0xf0,
	APIC_ICR = 0x300,
	APIC_TIMER = 0x320,
	APIC_LINT0 = 0x350,
	APIC_COUNT = 0x380,
	APIC_DIVIDE = 0x3e0
};

static volatile uint32_t *apic(uint32_t offset) { return (uint32_t *)(APIC_AREA + offset); }
void apic_timer(uint32_t count) { *apic(APIC_COUNT) = count; }
void apic_post_self(uint32_t vector) { *apic(APIC_ICR) = 0x40000 | vector; }
void apic_post_nmi(void) { *apic(APIC_ICR) = 0x4400; } /* to processor 0 */

/* Through the CPU window, where it is offered there. */
void apic_end(void)
{
#ifdef DIFF_VMP
	bool offered;

	__asm__ volatile("btrl $0, %0"
			 : "+m"(*(volatile uint32_t *)VMP_CPU_EOI), "=@ccc"(offered)
			 :
			 : "memory");
	if (offered)
		return;
#endif
	*apic(APIC_EOI) = 0;
}

static void apic_init(void)
{
	*apic(APIC_SPIV) = 0x1ff;
	*apic(APIC_LINT0) = 0x10000; /* the 8259 stays silent */
	*apic(APIC_TIMER) = VECTOR_TIMER;
	*apic(APIC_DIVIDE) = 0xb;    /* by 1 */
}

/* ---- outside */

static void out8(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "d"(port));
}
static void out32(uint16_t port, uint32_t value)
{
	__asm__ volatile("outl %0, %1" : : "a"(value), "d"(port));
}
static void out_string(uint16_t port, const char *from, uint32_t bytes)
{
	__asm__ volatile("rep outsb" : "+S"(from), "+c"(bytes) : "d"(port) : "memory");
}

#ifdef DIFF_VMP
enum { STDOUT = VMP_STREAM_PORT + 16 };

void write_text(const char *from, uint32_t bytes)
{
	uint32_t room;

	while (bytes) {
		__asm__ volatile("inl %1, %0"
				 : "=a"(room)
				 : "d"((uint16_t)(STDOUT + VMP_STREAM_STATUS)));
		if (room & VMP_STREAM_EOF)
			return;
		room = room < bytes ? room : bytes;
		out_string(STDOUT + VMP_STREAM_DATA, from, room);
		from += room;
		bytes -= room;
	}
}

void machine_end(void)
{
	text_flush();
	out32(VMP_STREAM_EXIT_PORT, 0);
	for (;;) /* a hlt would be another end of the machine */
		__asm__ volatile("pause");
}

/* System calls through the window enter at the gate's handler (base/guest_abi.h). */
static void platform_init(void)
{
	*(volatile uint32_t *)VMP_CPU_SP0 = DIRECT + PHYS_STACK_TOP;
	*(volatile uint32_t *)VMP_CPU_SYSCALL = (uint32_t)vectors + VECTOR_SYSCALL * 16;
	*(volatile uint32_t *)VMP_CPU_SYSCALL_CS = SEL_KERNEL_CS | 3;
}
#else
enum { DEBUG_CONSOLE = 0xe9, DEBUG_EXIT = 0xf4 };

void write_text(const char *from, uint32_t bytes) { out_string(DEBUG_CONSOLE, from, bytes); }

void machine_end(void)
{
	text_flush();
	out32(DEBUG_EXIT, 0);
	for (;;)
		__asm__ volatile("hlt");
}

/* Switch off the devices that the BIOS has left enabled. */
static void platform_init(void)
{
	out8(0x21, 0xff);
	out8(0xa1, 0xff);
}
#endif

void machine_reset(void)
{
	__asm__ volatile("mov %0, %%cr4; mov %1, %%cr0" : : "r"(CR4_START), "r"(CR0_START));
	__asm__ volatile("mov %0, %%cr2; mov %1, %%dr6" : : "r"(0), "r"(0xffff0ff0));
	__asm__ volatile("mov %0, %%dr0; mov %0, %%dr1; mov %0, %%dr2; mov %0, %%dr3; mov %1, %%dr7"
			 :
			 : "r"(0), "r"(0x400));
}

void machine_init(void)
{
	struct table_register *gdtr = physical(PHYS_GDTR), *idtr = physical(PHYS_IDTR);

	*gdtr = (struct table_register){ VMP_GDT_ENTRIES * 8 - 1, DIRECT + PHYS_GDT };
	*idtr = (struct table_register){ 256 * 8 - 1, DIRECT + PHYS_IDT };
	descriptors_init();
	gates_init();
	platform_init();
	load_tables(gdtr, idtr);
	pages_init();
	machine_reset();
	spaces_init();
	__asm__ volatile("fninit");
	out8(0x3f8 + 1, 0); /* the UART raises nothing */
	apic_init();
}
