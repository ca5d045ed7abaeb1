/* vcpu_fake.c - the machine of arrays: see vcpu_fake.h. */
#include "tests/unit/unit.h"
#include "tests/unit/vcpu_fake.h"

struct fake fake;

/* Every call except pin and unpin must find no pin held. */
static void unpinned(void) { CU_ASSERT_EQUAL_FATAL(fake.pins, 0); }

static void *fake_pin(void *ctx, gpa_t gpa, bool write)
{
	struct fake *f = ctx;

	unpinned();
	if (f->on_pin)
		f->on_pin(f, gpa, write);
	if (gpa >= RAM_BYTES)
		return NULL;
	f->pins++;
	f->pin_calls++;
	f->write_pins += write;
	return f->ram + (gpa & ~(gpa_t)PAGE_MASK);
}

static void fake_unpin(void *ctx, gpa_t gpa)
{
	(void)gpa;
	CU_ASSERT_EQUAL_FATAL(((struct fake *)ctx)->pins, 1);
	fake.pins--;
}

static uint32_t fake_port_in(void *ctx, uint16_t port, unsigned size)
{
	(void)ctx;
	unpinned();
	fake.port_ins++;
	fake.port = port;
	fake.size = size;
	return fake.port_value;
}

static void fake_port_out(void *ctx, uint16_t port, unsigned size, uint32_t value)
{
	(void)ctx;
	unpinned();
	fake.port_outs++;
	fake.port = port;
	fake.size = size;
	fake.value = value;
}

static void string_call(uint16_t port, unsigned size, unsigned count)
{
	unpinned();
	CU_ASSERT_FATAL(size * count <= 4096);
	CU_ASSERT_FATAL(fake.port_data_at + size * count <= sizeof fake.port_data);
	fake.port = port;
	fake.size = size;
	fake.count = count;
}

static void fake_in_string(void *ctx, uint16_t port, unsigned size, unsigned count, void *data)
{
	(void)ctx;
	string_call(port, size, count);
	fake.string_ins++;
	memcpy(data, fake.port_data + fake.port_data_at, size * count);
	fake.port_data_at += size * count;
}

static void fake_out_string(void *ctx, uint16_t port, unsigned size, unsigned count,
			    const void *data)
{
	(void)ctx;
	string_call(port, size, count);
	fake.string_outs++;
	memcpy(fake.port_data + fake.port_data_at, data, size * count);
	fake.port_data_at += size * count;
}

static uint32_t fake_mmio_read(void *ctx, gpa_t gpa, unsigned size)
{
	(void)ctx;
	unpinned();
	fake.mmio_reads++;
	fake.mmio_gpa = gpa;
	fake.size = size;
	return size == 4 ? fake.mmio_value : fake.mmio_value & ((1u << size * 8) - 1);
}

static void fake_mmio_write(void *ctx, gpa_t gpa, unsigned size, uint32_t value)
{
	(void)ctx;
	unpinned();
	fake.mmio_writes++;
	fake.mmio_gpa = gpa;
	fake.size = size;
	fake.mmio_value = value;
}

static void fake_flush_range(void *ctx, gva_t first, uint32_t pages)
{
	(void)ctx;
	unpinned();
	fake.flush_page++;
	fake.flushed = first;
	fake.flushed_pages = pages;
}

static void fake_flush_all(void *ctx) { (void)ctx; unpinned(); fake.flush_all++; }
static void fake_switch_space(void *ctx, bool keep)
{
	(void)ctx;
	unpinned();
	fake.switch_space++;
	fake.kept_space = keep;
}
static uint32_t fake_tsc_khz(void *ctx) { (void)ctx; unpinned(); return fake.tsc_khz; }
static void fake_yield(void *ctx, unsigned times) { (void)ctx; unpinned(); fake.yields = times; }
static void fake_crowded(void *ctx) { (void)ctx; unpinned(); fake.crowds++; }
static int fake_barrier(void *ctx, const struct barrier_call *call)
{
	(void)ctx;
	unpinned();
	fake.barrier = *call;
	return fake.reached;
}

static void fake_segment_changed(void *ctx, unsigned index, const struct vcpu_segment *segment)
{
	(void)ctx;
	unpinned();
	CU_ASSERT_FATAL(index < VMP_GDT_ENTRIES);
	fake.segments_changed++;
	fake.segment[index] = *segment;
}

static void fake_send(void *ctx, uint32_t cpus, uint8_t vector, bool nmi)
{
	(void)ctx;
	unpinned();
	CU_ASSERT_FATAL(!(cpus >> fake.v.number & 1));
	fake.sends++;
	fake.sent_cpus = cpus;
	fake.sent_vector = vector;
	fake.sent_nmi = nmi;
}

static int fake_start_cpu(void *ctx, unsigned cpu, uint32_t eip)
{
	(void)ctx;
	unpinned();
	fake.starts++;
	fake.start_cpu = cpu;
	fake.start_eip = eip;
	return 0;
}

static uint64_t fake_now(void *ctx) { (void)ctx; unpinned(); return fake.now_ns; }
static uint64_t fake_wallclock(void *ctx)
{
	(void)ctx;
	unpinned();
	return fake.now_ns + 1700000000000000000;
}
static uint64_t fake_tsc(void *ctx) { (void)ctx; unpinned(); return fake.tsc; }
static uint64_t fake_xcr0(void *ctx) { (void)ctx; return fake.xcr0; }

static void fake_host_cpuid(void *ctx, uint32_t leaf, uint32_t subleaf, uint32_t out[4])
{
	(void)ctx;
	unpinned();
	if (fake.host_cpuid) {
		fake.host_cpuid(leaf, subleaf, out);
		return;
	}
	out[0] = out[1] = out[2] = out[3] = 0xffffffff;
}

static void fake_print(void *ctx, const char *text, unsigned bytes)
{
	(void)ctx;
	unpinned();
	fake.prints++;
	for (unsigned n = 0; n < bytes && fake.printed_bytes < sizeof fake.printed; n++)
		fake.printed[fake.printed_bytes++] = text[n];
}

static void fake_machine_end(void *ctx, unsigned why, uint32_t status)
{
	(void)ctx;
	unpinned();
	fake.ends++;
	fake.end_why = why;
	fake.end_status = status;
}

static void fake_fetch(void *ctx, gfn_t first, unsigned count, bool write)
{
	(void)ctx;
	unpinned();
	if (fake.fetches < FETCHES_MOST)
		fake.fetched[fake.fetches] = (struct fake_fetch){ first, count, write };
	fake.fetches++;
}

static const struct vcpu_env fake_env = {
	.ctx = &fake,
	.pin = fake_pin,
	.unpin = fake_unpin,
	.fetch = fake_fetch,
	.port_in = fake_port_in,
	.port_out = fake_port_out,
	.port_in_string = fake_in_string,
	.port_out_string = fake_out_string,
	.mmio_read = fake_mmio_read,
	.mmio_write = fake_mmio_write,
	.flush_range = fake_flush_range,
	.flush_all = fake_flush_all,
	.switch_space = fake_switch_space,
	.segment_changed = fake_segment_changed,
	.send_interrupt = fake_send,
	.start_cpu = fake_start_cpu,
	.now_ns = fake_now,
	.wallclock_ns = fake_wallclock,
	.tsc = fake_tsc,
	.tsc_khz = fake_tsc_khz,
	.host_cpuid = fake_host_cpuid,
	.host_xcr0 = fake_xcr0,
	.print = fake_print,
	.machine_end = fake_machine_end,
	.yield = fake_yield,
	.crowded = fake_crowded,
	.barrier = fake_barrier,
};

uint32_t ram32(gpa_t gpa)
{
	uint32_t value;

	memcpy(&value, fake.ram + gpa, sizeof value);
	return value;
}

uint16_t ram16(gpa_t gpa) { return (uint16_t)ram32(gpa); }
void set32(gpa_t gpa, uint32_t value) { memcpy(fake.ram + gpa, &value, sizeof value); }
void set_pte(gva_t gva, uint32_t pte) { set32(PAGE_TABLE + (gva >> 12) * 4, pte); }
uint32_t get_pte(gva_t gva) { return ram32(PAGE_TABLE + (gva >> 12) * 4); }

void set_descriptor(unsigned index, uint32_t base, uint32_t limit, uint8_t access, uint8_t flags)
{
	set32(GDT + index * 8, (limit & 0xffff) | base << 16);
	set32(GDT + index * 8 + 4, (base >> 16 & 0xff) | (uint32_t)access << 8 | (limit & 0xf0000) |
					   (uint32_t)flags << 20 | (base & 0xff000000));
}

void set_gate(unsigned vector, uint16_t selector, uint32_t offset, uint8_t access)
{
	set32(IDT + vector * 8, (uint32_t)selector << 16 | (offset & 0xffff));
	set32(IDT + vector * 8 + 4, (offset & 0xffff0000) | (uint32_t)access << 8);
}

static void make_gdt(void)
{
	enum { FLAT = 0xc };

	set_descriptor(VMP_GDT_BOOT_CS, 0, 0xfffff, 0x9a, FLAT);
	set_descriptor(VMP_GDT_BOOT_DS, 0, 0xfffff, 0x92, FLAT);
	set_descriptor(VMP_GDT_KERNEL_CS, 0, 0xfffff, 0x9a, FLAT);
	set_descriptor(VMP_GDT_KERNEL_DS, 0, 0xfffff, 0x92, FLAT);
	set_descriptor(VMP_GDT_USER_CS, 0, (VMP_USER_LIMIT - 1) >> 12, 0xfa, FLAT);
	set_descriptor(VMP_GDT_USER_DS, 0, (VMP_USER_LIMIT - 1) >> 12, 0xf2, FLAT);
	set_descriptor(VMP_GDT_PERCPU, BASED_AT, 0xfffff, 0xf2, FLAT);
	set_descriptor(VMP_GDT_TSS, TSS, 0x67, 0x89, 0);
	set_descriptor(VMP_GDT_LDT, DATA, 0xff, 0x82, 0);
	set_descriptor(GDT_ABSENT, 0, 0xfffff, 0x72, FLAT);
	set_descriptor(GDT_CODE_EXECUTE_ONLY, 0, 0xfffff, 0xf8, FLAT);
	set_descriptor(GDT_READ_ONLY, 0, 0xfffff, 0xf0, FLAT);
	set_descriptor(GDT_ABSENT_CODE, 0, 0xfffff, 0x1a, FLAT);
	set_descriptor(GDT_CALL_GATE, 0, 0, 0x8c, 0);
	set_descriptor(GDT_BASED_DATA, BASED_AT, 0xfffff, 0xf2, FLAT);
	set_descriptor(GDT_CONFORMING, 0, 0xfffff, 0x9e, FLAT);
	set_descriptor(GDT_ABSENT_TSS, TSS, 0x67, 0x09, 0);
	set_descriptor(GDT_SMALL_CODE, 0, 0xffff, 0x9a, 0);
}

static void make_tables(void)
{
	make_gdt();
	for (unsigned vector = 0; vector < 256; vector++)
		set_gate(vector, VMP_SEL_KERNEL_CS, HANDLERS + vector * 16,
			 vector == 0x80 ? GATE_TRAP | GATE_USER : GATE_INTERRUPT);
	set_gate(VECTOR_BP, VMP_SEL_KERNEL_CS, HANDLERS + VECTOR_BP * 16,
		 GATE_INTERRUPT | GATE_USER);
	set_gate(VECTOR_OF, VMP_SEL_KERNEL_CS, HANDLERS + VECTOR_OF * 16,
		 GATE_INTERRUPT | GATE_USER);
	set32(TSS + 4, ENTRY_STACK);
	set32(TSS + 8, VMP_SEL_KERNEL_DS);
	set32(PAGE_DIR, PAGE_TABLE | P | W | U | A);
	for (gva_t gva = 0; gva < RAM_BYTES; gva += PAGE_BYTES)
		set_pte(gva, gva | P | W | U | A | D);
}

void fake_reset(void)
{
	struct vcpu *v = &fake.v;

	memset(&fake, 0, sizeof fake);
	fake.env = fake_env;
	fake.xcr0 = 0xe7;
	make_tables();
	vcpu_init(v, 1, 4, RAM_BYTES >> PAGE_BITS, &fake.env);
	vcpu_start(v, CODE, 0);
	v->gdtr = (struct vcpu_table){ GDT, VMP_GDT_ENTRIES * 8 - 1 };
	v->idtr = (struct vcpu_table){ IDT, 256 * 8 - 1 };
	v->tr = SEL_TSS;
	v->tss_base = TSS;
	v->tss_limit = 0x67;
	v->cr3 = PAGE_DIR;
	v->cr0 |= CR0_PG | CR0_WP;
	v->cr4 = CR4_PSE | CR4_PGE;
	v->seg[SEG_CS] = VMP_SEL_KERNEL_CS;
	v->seg[SEG_SS] = v->seg[SEG_DS] = v->seg[SEG_ES] = VMP_SEL_KERNEL_DS;
	v->seg[SEG_FS] = VMP_SEL_PERCPU;
	v->seg[SEG_GS] = 0;
	v->gpr[ESP] = KERNEL_STACK;
	memset(fake.ram + CODE, 0x90, 2 * PAGE_BYTES);
}

void fake_user(void)
{
	struct vcpu *v = &fake.v;

	v->cpl = 3;
	v->seg[SEG_CS] = VMP_SEL_USER_CS;
	v->seg[SEG_SS] = v->seg[SEG_DS] = v->seg[SEG_ES] = VMP_SEL_USER_DS;
	v->seg[SEG_FS] = 0;
	v->gpr[ESP] = USER_STACK;
	v->eflags |= EFLAGS_IF;
}

enum vcpu_result fake_run_at(uint32_t eip, const uint8_t *code, unsigned bytes)
{
	memcpy(fake.ram + eip, code, bytes);
	fake.v.eip = eip;
	return vcpu_emulate(&fake.v);
}

bool in_handler(unsigned vector)
{
	return !fake.v.dead && fake.v.eip == HANDLERS + vector * 16 && fake.v.cpl == 0 &&
	       fake.v.seg[SEG_CS] == VMP_SEL_KERNEL_CS;
}

uint32_t frame(unsigned word) { return ram32(fake.v.gpr[ESP] + word * 4); }

bool faulted(unsigned vector, int64_t error, uint32_t eip)
{
	return in_handler(vector) &&
	       (error < 0 ? frame(0) == eip : frame(0) == (uint32_t)error && frame(1) == eip);
}
