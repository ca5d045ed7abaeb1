/* kinds_system.c - privileged and sensitive instructions, and those of them that user code
 * tries. */
#include "tests/diff/emit.h"

/* ---- flags and interrupts */

void kind_cli(void) { emit_byte(0xfa); }

void kind_sti(void)
{
	emit_byte(0xfb);
	emit_hide_next_step(); /* not all machines have a single step end behind it */
}

/* The same through the CPU window, as the guest kernel does it. */
void kind_window_cli(void)
{
	unsigned from = sequence.bytes;

#ifdef DIFF_VMP
	EMIT("\x36\xc7\x05");
	emit_word(VMP_CPU_IFLAG, 4);
	emit_word(0, 4);
#else
	emit_byte(0xfa);
#endif
	emit_as_one(from, 11);
}

/* This `sti` takes interrupts that came before it: the window's code has no interrupt shadow. */
void kind_window_sti(void)
{
	unsigned from = sequence.bytes;

#ifdef DIFF_VMP
	EMIT("\x36\xc7\x05");
	emit_word(VMP_CPU_IFLAG, 4);
	emit_word(EFLAGS_IF, 4);
	EMIT("\xfb");
#else
	for (unsigned i = 0; i < 10; i++)
		emit_byte(0x90);
	EMIT("\xfb\x90");
#endif
	emit_as_one(from, 12);
	emit_hide_next_step();
}

void kind_pushf(void)
{
	if (random_chance(15))
		EMIT_SENSITIVE("\x66\x9c");
	else
		EMIT_SENSITIVE("\x9c");
	if (!sequence.user)
		emit_byte(0x58 | data_register());
}

void kind_popf(void)
{
	uint32_t flags = random_word() & allowed_flags();

	if (random_chance(70))
		flags &= ~(uint32_t)EFLAGS_TF;
	if (random_chance(15)) {
		EMIT("\x66\x68");
		emit_word(flags, 2);
		EMIT_SENSITIVE("\x66\x9d");
	} else {
		emit_byte(0x68);
		emit_word(flags, 4);
		EMIT_SENSITIVE("\x9d");
	}
}

void kind_int(void)
{
	static const uint8_t kernel[] = {
		0, 5, 6, 7, VECTOR_PLAIN, VECTOR_TRAP, VECTOR_KERNEL, VECTOR_SYSCALL
	};
	static const uint8_t user[] = {
		0,    6,    13,  14, VECTOR_PLAIN, VECTOR_TRAP, VECTOR_KERNEL, VECTOR_SYSCALL,
		0x82, 0x83, 0xff
	};

	emit_byte(0xcd);
	emit_byte(sequence.user ? RANDOM_OF(user) : RANDOM_OF(kernel));
}

void kind_int3(void) { emit_byte(0xcc); }

/* Post an interrupt to this processor; the jump makes QEMU check for interrupts. */
void kind_ipi(void)
{
	EMIT("\x36\xc7\x05");
	emit_word(APIC_AREA + 0x300, 4);
	emit_word(0x40000 | VECTOR_IPI, 4);
	EMIT("\xeb\x00");
	sequence.canonical[sequence.bytes - 2] = sequence.canonical[sequence.bytes - 1] =
		(uint16_t)sequence.bytes;
}

/* Its handler sends another one, which waits for the end of the first (trap.c). */
void kind_nmi(void)
{
	EMIT("\x36\xc7\x05");
	emit_word(APIC_AREA + 0x300, 4);
	emit_word(0x4400, 4);
	EMIT("\xeb\x00");
	sequence.canonical[sequence.bytes - 2] = sequence.canonical[sequence.bytes - 1] =
		(uint16_t)sequence.bytes;
}

/* Change to other address spaces, read memory in between, and mostly change back. */
void kind_space(void)
{
	uint32_t choice = random_word();

	sequence.spaces = true;
	emit_move(EAX, choice);
	emit_byte(0xcd);
	emit_byte(VECTOR_SPACE);
	if (random_chance(40))
		return;
	if (random_chance(50))
		kind_load();
	else
		kind_store();
	emit_move(EAX, random_word());
	emit_byte(0xcd);
	emit_byte(VECTOR_SPACE);
	if (random_chance(50))
		kind_load();
	emit_move(EAX, choice);
	emit_byte(0xcd);
	emit_byte(VECTOR_SPACE);
}

void kind_halt(void)
{
	emit_byte(0xfa);
	kind_ipi();
	EMIT("\xfb\xf4");
}

/* A system call: `int` as programs use it, or the window's call as the guest's vDSO uses it.  The
 * latter stores its return address below the stack.  It is a call to 64-bit code, which checks no
 * limit of the stack's segment, so it is not made with a stack in the kernel's pages. */
void kind_syscall(void)
{
	bool plain = random_chance(40), as_vdso = random_chance(30);
	unsigned from;

	if (plain) {
		EMIT("\xcd\x80");
		return;
	}
	if (sequence.user && is_strict() && !as_vdso)
		emit_move(ESP, USER_AREA + AREA_DATA * 4096 +
				       random_below((AREA_PAGES - AREA_DATA) * 4096));
	from = sequence.bytes;
	/* the vDSO's other way: a trap, which is valid only right behind the call that it
	 * replaces */
	if (as_vdso) {
		EMIT("\x90\x90\x90\x90\x90\x90\x90\xeb\x07"); /* jmp over the call */
#ifdef DIFF_VMP
		emit_byte(0x9a);
		emit_word(VMP_STUB_SYSCALL, 4);
		emit_word(VMP_SEL_HOST64, 2);
#endif
		emit_as_one(from, 16);
		emit_byte(0xcd);
		emit_byte(INT_SYSCALL);
	} else {
#ifdef DIFF_VMP
		for (unsigned i = 0; i < 9; i++)
			emit_byte(0x90);
		emit_byte(0x9a);
		emit_word(VMP_STUB_SYSCALL, 4);
		emit_word(VMP_SEL_HOST64, 2);
#else
		EMIT("\xc7\x44\x24\xfc"); /* movl $..., -4(%esp) */
		emit_word(SEL_USER_CS, 4);
		EMIT("\xc7\x44\x24\xf8"); /* movl $..., -8(%esp) */
		emit_word(sequence.base + from + 16, 4);
#endif
		EMIT("\xcd\x80");
	}
	for (unsigned at = from + 1; at < sequence.bytes; at++) {
		sequence.canonical[at] = (uint16_t)from;
		sequence.step_hidden[at] = true;
	}
}

/* ---- segments and far transfers */

void kind_load_segment(void)
{
	static const uint8_t segments[] = { ES, DS, FS, GS, FS, GS, SS, CS };
	/* push %ss; pop */
	static const char *const own[] = {
		[ES] = "\x16\x07", [SS] = "\x16\x17\x90", [DS] = "\x16\x1f"
	};
	unsigned segment = RANDOM_OF(segments);
	bool used = segment <= DS, fixed = used && !sequence.user;
	uint32_t value;

	if (fixed && own[segment] && random_chance(50)) {
		/* a sti must not follow the load of SS: which shadow counts is open */
		emit_text(own[segment]);
		return;
	}
	/* vmp's kernel runs at level 3, so it could load a user's segment as its stack; user
	 * segments end at VMP_USER_LIMIT. */
	if (fixed || random_chance(40))
		value = fixed && segment == SS ? 9 * 8 + 7 : bad_selector();
	else
		/* the window supports no base of SS */
		value = segment == SS && !is_strict() ? SEL_USER_DS : good_selector(used);
	emit_move(EAX, value);
	emit_byte(0x8e);
	emit_registers(segment, EAX);
}

/* pop to a segment; lfs, lgs. */
void kind_pop_segment(void)
{
	emit_byte(0x68);
	emit_word(any_selector(), 4);
	if (random_chance(50)) {
		emit_byte(0x0f);
		emit_byte(0xa1 | random_below(2) << 3);
		return;
	}
	emit_byte(0x68);
	emit_word(random_word(), 4);
	emit_byte(0x0f);
	emit_byte(0xb4 | random_below(2));
	EMIT("\x0c\x24\x8d\x64\x24\x08"); /* (%esp), %ecx; lea 8(%esp), %esp */
}

void kind_read_segment(void)
{
	static const uint8_t segments[] = { ES, CS, DS, FS, GS };
	unsigned segment = RANDOM_OF(segments);

	if (segment == CS)
		emit_sensitive();
	/* the kernel's own differs by build */
	else if (!sequence.user && (segment == ES || segment == DS))
		segment = FS;
	emit_byte(0x8c);
	emit_registers(segment, data_register());
	if (segment == CS)
		emit_sensitive_end();
}

void kind_question(void) /* lar, lsl, verr, verw */
{
	emit_move(EAX, any_selector());
	emit_sensitive();
	emit_byte(0x0f);
	if (random_chance(50)) {
		emit_byte(2 + random_below(2));
		emit_registers(data_register(), EAX);
	} else {
		emit_byte(0);
		emit_registers(4 + random_below(2), EAX);
	}
	emit_sensitive_end();
}

/* A far transfer there and back, or to a forbidden place. */
void kind_far(void)
{
	static const uint16_t bad[] = { 0,         3,          SEL_USER_DS, 5 * 8 + 7,
					8 * 8 + 7, 13 * 8 + 7, 32 * 8 + 7,  0xffff };
	uint32_t selector = random_chance(50) ? RANDOM_OF(bad)
			    : sequence.user   ? SEL_USER_CS
					      : SEL_KERNEL_CS;
	/* QEMU pushes as if from the kernel */
	bool call = random_chance(50) && (!sequence.user || is_strict());

	emit_sensitive();
	emit_byte(call ? 0x9a : 0xea);
#ifdef DIFF_VMP
	emit_word(emit_here() + 6, 4);
#else
	emit_word(emit_here() + 6 + (sequence.user ? 0 : 2), 4);
#endif
	emit_word(selector, 2);
#ifndef DIFF_VMP
	if (!sequence.user)
		EMIT("\x90\x90");
#endif
	if (call)
		EMIT("\x8d\x64\x24\x08"); /* lea 8(%esp), %esp */
}

/* An iret or a far return within the level, over a frame that may be wrong. */
void kind_return(void)
{
	static const uint16_t bad[] = { 0,         3,          SEL_USER_DS, 5 * 8 + 7,
					8 * 8 + 7, 13 * 8 + 7, 32 * 8 + 7,  0xffff };
	/* processors read beyond the frame of what then fails */
	bool plain = sequence.user && !is_strict();
	uint32_t selector = random_chance(30) && !plain ? RANDOM_OF(bad)
			    : sequence.user             ? SEL_USER_CS
							: SEL_KERNEL_CS;
	bool far = random_chance(40) || plain;

	if (!far) {
		emit_byte(0x68);
		emit_word(random_word() & allowed_flags() & ~0x1b0000u /* RF VM VIF VIP */ &
				  (random_chance(80) ? ~(uint32_t)EFLAGS_TF : ~0u),
			  4);
	}
	emit_byte(0x68);
	emit_word(selector, 4);
	emit_byte(0x68);
	emit_word(emit_here() + 4 + 1 + (sequence.user ? 0 : 2), 4);
	emit_sensitive();
	emit_byte(far ? 0xcb : 0xcf);
#ifndef DIFF_VMP
	if (!sequence.user)
		EMIT("\x90\x90");
#endif
}

/* ---- tables and registers of the system */

void kind_store_table(void) /* sgdt, sidt; sldt, str; smsw */
{
	static const uint8_t forms[][2] = { { 1, 0 }, { 1, 1 }, { 0, 0 }, { 0, 1 }, { 1, 4 } };
	unsigned form = random_below(ARRAY_LEN(forms));
	bool memory = form < 2 || random_chance(50);

	if (memory)
		/* half of it may be written before the other half faults */
		emit_move(EBX, random_pointer() & ~7u);
	emit_sensitive();
	if (!memory && random_chance(30))
		emit_byte(0x66);
	emit_byte(0x0f);
	emit_byte(forms[form][0]);
	if (memory)
		emit_byte(forms[form][1] << 3 | EBX);
	else
		emit_registers(forms[form][1], data_register());
	emit_sensitive_end();
}

void kind_control(void)
{
	static const uint8_t numbers[] = { 0, 2, 3, 4 };

	EMIT("\x0f\x20");
	emit_registers(RANDOM_OF(numbers), data_register());
}

/* CR0: with and without WP. CR4: PGE, DE, TSD; one that does not exist. */
void kind_set_control(void)
{
	const struct { uint8_t number; uint32_t value;
	} values[] = {
		{ 0, CR0_START },
		{ 0, CR0_START & ~0x10000u },
		{ 0, CR0_START & ~0x10000u },
		{ 3, PHYS_PAGE_DIR },
		{ 3, PHYS_PAGE_DIR },
		{ 4, CR4_START },
		{ 4, CR4_START & ~0x80u },
		{ 4, CR4_START | 8 },
		{ 4, CR4_START | 4 },
		{ 4, CR4_START | (is_strict() ? 0x80000000 : 0) }, /* QEMU comes to no end of it */
	};
	unsigned choice = random_below(ARRAY_LEN(values) + 2);
	bool cr2 = choice >= ARRAY_LEN(values);

	emit_move(EAX, cr2 ? random_word() : values[choice].value);
	EMIT("\x0f\x22");
	emit_registers(cr2 ? 2 : values[choice].number, EAX);
}

/* Breakpoints stay off. */
void kind_debug(void)
{
	static const struct { uint8_t number; uint32_t may, must;
	} registers[] = {
		{ 0, ~0u, 0 },        { 1, ~0u, 0 },
		{ 2, ~0u, 0 },        { 3, ~0u, 0 },
		{ 6, 0, 0xffff0ff0 }, { 7, 0xffff0000, 0x400 },
		{ 4, 0, 0xffff0ff0 }, { 5, 0xffff0000, 0x400 },
	};
	unsigned n = random_below(ARRAY_LEN(registers));

	if (random_chance(50)) {
		emit_move(EAX, (random_word() & registers[n].may) | registers[n].must);
		EMIT("\x0f\x23");
		emit_registers(registers[n].number, EAX);
	} else {
		EMIT("\x0f\x21");
		emit_registers(registers[n].number, data_register());
	}
}

/* Load the same value again, or one that cannot be loaded. */
void kind_load_table(void)
{
	static const uint16_t bad[] = { SEL_USER_DS, SEL_LDT, 9 * 8, 13 * 8, 32 * 8, SEL_TSS };
	bool idt;

	switch (random_below(4)) {
	case 0:
		idt = random_chance(50);
		EMIT("\x36\x0f\x01");
		emit_byte(idt ? 0x1d : 0x15);
		emit_word(DIRECT + (idt ? PHYS_IDTR : PHYS_GDTR), 4);
		break;
	case 1:
		emit_move(EAX, RANDOM_OF(bad));
		EMIT("\x0f\x00\xd8"); /* ltr */
		break;
	case 2:
		emit_move(EAX, random_chance(40) ? SEL_LDT : RANDOM_OF(bad));
		EMIT("\x0f\x00\xd0"); /* lldt */
		break;
	case 3:
		emit_move(EAX, CR0_START & 0xffff);
		if (random_chance(50))
			EMIT("\x0f\x06"); /* clts */
		else
			EMIT("\x0f\x01\xf0"); /* lmsw */
		break;
	}
}

void kind_invlpg(void) { EMIT("\x36\x0f\x01"); emit_memory(7); }

/* Change a page-table entry, and flush its page. */
void kind_entry(void)
{
	static const uint8_t bits[] = { 0x01, 0x02, 0x20, 0x40, 0x60, 0x41, 0x42 };
	uint32_t area = random_chance(50) ? USER_AREA : KERNEL_AREA,
		 page = AREA_DATA + random_below(AREA_PAGES - AREA_DATA);

	if (random_chance(60)) {
		EMIT("\x36\x80\x35"); /* xorb */
		emit_word((uint32_t)area_entry(area, page), 4);
		emit_byte(RANDOM_OF(bits));
		EMIT("\x39\xc0"); /* cmp: xor leaves AF undefined */
	} else {
		EMIT("\x36\xc7\x05"); /* movl */
		emit_word((uint32_t)area_entry(area, page), 4);
		emit_word(
			(PHYS_FRAMES + (FRAME_FIRST + random_below(FRAMES - FRAME_FIRST)) * 4096) |
				1 | (random_word() & (area == USER_AREA ? 0x66 : 0x62)),
			4);
	}
	if (random_chance(75)) {
		EMIT("\x36\x0f\x01\x3d"); /* invlpg */
		emit_word(area + page * 4096, 4);
	} else {
		EMIT("\x0f\x20\xd8\x0f\x22\xd8"); /* mov %cr3, %eax; and back */
	}
}

/* Access a register of the local APIC by each kind of memory operand.  Only the top byte of LDR is
 * kept. */
void kind_apic(void)
{
	static const char *const forms[] = { "\x01\x05", "\x29\x15", "\x11\x0d", "\x39\x05",
					     "\x3b\x0d", "\x03\x05", "\x87\x05", "\x89\x15",
					     "\x8b\x0d", "\x85\x15", "\xf7\x15", "\xf7\x1d" };

	EMIT("\x36\xc7\x05");
	emit_word(APIC_AREA + 0xd0, 4);
	emit_word(random_word(), 4);
	emit_byte(0x36);
	emit_bytes(RANDOM_OF(forms), 2);
	emit_word(APIC_AREA + 0xd0, 4);
	EMIT("\x39\xc8"); /* cmp: some leave AF undefined */
}

/* The UART's scratch register. */
void kind_port(void)
{
	emit_move(EDX, 0x3ff);
	EMIT("\xee");
	switch (random_below(4)) {
	case 0:
		EMIT("\xec");
		break;
	case 1:
		emit_byte(random_chance(50) ? 0x6c : 0x6e);
		break;
	default: /* rep outsb, rep insb; inb */
		emit_move(ECX, random_below(30));
		EMIT("\xf3");
		emit_byte(random_chance(50) ? 0x6c : 0x6e);
		EMIT("\xec");
	}
}

/* Only in strict flavours: QEMU's processor is another one, and user code may see the host's. */
void kind_cpuid(void)
{
	static const uint32_t everywhere[] = { 0, 0x80000000, 0x80000002, 0x80000004 };
	static const uint32_t kernel[] = {
		1, 2, 7, 0x80000001, 0x80000007, 0x80000008, 0x40000000
	};

	if (!is_strict()) {
		kind_data();
		return;
	}
	emit_move(EAX,
		  sequence.user || random_chance(40) ? RANDOM_OF(everywhere) : RANDOM_OF(kernel));
	EMIT("\x31\xc9"); /* xor %ecx, %ecx: AF is open until the cmp */
	EMIT_SENSITIVE("\x0f\xa2");
	EMIT("\x39\xc0\x87\xcb"); /* cmp %eax, %eax; xchg %ecx, %ebx */
	emit_move(EBX, random_pointer());
}

/* The MSR of the APIC's base.  An MSR that does not exist raises #GP here, but not on QEMU. */
void kind_msr(void)
{
	emit_move(ECX, 0x1b);
	EMIT("\x0f\x32");
}

void kind_privileged(void) /* for user code */
{
	static const char *const codes[] = {
		"\xf4",         "\xfa",         "\xfb",         "\xec",         "\xee",
		"\x6c",         "\x6e",         "\xf3\x6c",     "\xe4\x80",     "\xe7\x80",
		"\x0f\x20\xc0", "\x0f\x22\xd8", "\x0f\x23\xc0", "\x0f\x06",     "\x0f\x09",
		"\x0f\x32",     "\x0f\x30",     "\x0f\x01\x13", "\x0f\x01\x3b", "\x0f\x01\xf0"
	};

	emit_text(RANDOM_OF(codes));
}
